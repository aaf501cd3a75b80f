// Trees of batches on a GPU: R, products with Q, and Q formed, whatever the sizes of leaves and nodes.

#include "algorithms/one_matrix/batch_tree.hpp"
#include "devices.hpp"
#include "gallery.hpp"
#include "gpu.hpp"

namespace quoin::test {
namespace {

struct Shape {
    Index m, n, leaf_rows, fan_in;
};

/// One matrix; one row more than a leaf has; leaves of n rows; remaining rows, fewer and more than n, on one level and
/// on several; nodes of two triangles and of many; every kernel of a batch.
constexpr Shape shapes[] = {{1, 1, 1, 2},         {5, 3, 3, 2},        {4, 4, 128, 2},        {50, 2, 4, 2},
                            {33, 32, 32, 2},      {129, 32, 128, 2},   {300, 17, 64, 3},      {777, 8, 16, 2},
                            {1003, 31, 128, 4},   {1500, 32, 40, 17},  {2050, 24, 96, 5},     {4096, 32, 128, 4},
                            {20001, 32, 512, 16}, {3000, 5, 1024, 40}, {900, 12, 200, 2},     {33, 33, 128, 2},
                            {300, 100, 128, 2},   {500, 45, 64, 3},    {4099, 192, 1024, 4},  {3000, 256, 256, 2},
                            {2500, 192, 300, 9},  {5000, 33, 40, 40},  {40000, 40, 1024, 400}};

template <class T>
class GpuTrees : public OnGpu {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuTrees, Types);

TYPED_TEST(GpuTrees, ObeyTheLaw) {
    using T = TypeParam;
    auto& g = this->gpu();
    for (const auto& [m, n, leaf_rows, fan_in] : shapes) {
        if (quick() && m * n > 100000) continue;
        SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + ", leaves of " + std::to_string(leaf_rows) +
                     " rows, fan-in " + std::to_string(fan_in));
        const TreePlan plan{leaf_rows, 0, fan_in};
        const double bound = law * std::sqrt(static_cast<double>(levels_of(plan, m, n).size()));
        const Matrix<T> A = with_condition<T>(m, n, 1 / unit_roundoff<T>);
        GpuPadded<T> gA(g, A.view()), gR(g, n, n);
        BatchTree<T, Cuda> tree;
        EXPECT_TRUE(tree.factor(g, plan, gA.view(), false, true, gR.view()));
        EXPECT_TRUE(same_bits<T>(gA.fetch(g).view(), A.view())) << "A is only read";
        const Matrix<T> R = gR.fetch(g);
        EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));

        GpuPadded<T> gQ(g, m, n);
        tree.form_q(g, gQ.view());
        const Matrix<T> Q = gQ.fetch(g);
        EXPECT_LE(orthogonality_error<T>(Q.view(), n), bound);
        EXPECT_LE(column_residual_error<T>(A.view(), Q.view(), R.view()), bound);

        // QᵀA = [R; 0]
        GpuPadded<T> gX(g, A.view());
        tree.apply_q(g, Op::Transpose, gX.view());
        Matrix<T> R0 = filled<T>(m, n, T(0));
        copy_triangle<T>(this->host, R.view(), R0.view().row_block({0, n}));
        EXPECT_LE(difference<T>(gX.fetch(g).view(), R0.view(), n, frobenius_norm<T>(A.view())), bound);

        // QᵀQ C = C
        for (const Index p : {1, 37, 160}) {
            const Matrix<T> C = random_normal<T>(m, p, 2);
            GpuPadded<T> gC(g, C.view());
            tree.apply_q(g, Op::None, gC.view());
            tree.apply_q(g, Op::Transpose, gC.view());
            EXPECT_LE(difference<T>(gC.fetch(g).view(), C.view(), n, frobenius_norm<T>(C.view())), 2 * bound);
        }

        // Q [E; 0], formed and applied
        Matrix<T> E = filled<T>(m, n, T(0));
        const Matrix<T> random = random_normal<T>(n, n, 3);
        copy_triangle<T>(this->host, random.view(), E.view().row_block({0, n}));
        GpuPadded<T> gE(g, E.view());
        tree.form_q(g, gQ.view(), gE.view().row_block({0, n}));
        tree.apply_q(g, Op::None, gE.view());
        EXPECT_LE(difference<T>(gQ.fetch(g).view(), gE.fetch(g).view(), n, frobenius_norm<T>(E.view())), bound);

        // the same bits again, by rows, and of R alone
        const Matrix<T> At = transposed<T>(A.view());
        GpuPadded<T> gAt(g, At.view()), gS(g, n, n);
        const InputView<T, Cuda> by_rows = RowMajorView<const T, Cuda>{gAt.view().data, m, n, gAt.view().ld};
        for (const auto& [input, holds_q] :
             {std::pair<InputView<T, Cuda>, bool>{gA.view(), true}, {by_rows, true}, {gA.view(), false}}) {
            BatchTree<T, Cuda> again;
            EXPECT_TRUE(again.factor(g, plan, input, true, holds_q, gS.view()));
            EXPECT_TRUE(same_bits<T>(gS.fetch(g).view(), R.view())) << "again";
            if (!holds_q) continue;
            tree.form_q(g, gQ.view());
            EXPECT_TRUE(same_bits<T>(gQ.fetch(g).view(), Q.view())) << "again";
        }
    }
}

TYPED_TEST(GpuTrees, SeeColumnsThatAreOutOfRange) {
    using T = TypeParam;
    auto& g = this->gpu();
    for (const T bad : {std::numeric_limits<T>::max() / 4, std::numeric_limits<T>::quiet_NaN()}) {
        Matrix<T> A = random_normal<T>(3001, 20);
        A(3000, 7) = bad;
        GpuPadded<T> gA(g, A.view()), gR(g, 20, 20);
        BatchTree<T, Cuda> tree;
        EXPECT_FALSE(tree.factor(g, {128, 0, 4}, gA.view(), false, true, gR.view()));
        EXPECT_TRUE(tree.factor(g, {128, 0, 4}, gA.view(), true, true, gR.view()));
    }
}

TYPED_TEST(GpuTrees, RefuseWhatOneLaunchCannotHold) {
    using T = TypeParam;
    const auto plan = [&](MethodOptions method) { return plan_qr<T>(this->gpu(), 10000000, 100, {.method = method}); };
    EXPECT_THROW(plan(TSQR{{.leaf_rows = 20000}}), InvalidArgument);
    EXPECT_THROW(plan(TSQR{{.fan_in = 1000}}), InvalidArgument);
    EXPECT_THROW(plan(TSQR{{.fan_in = flat_tree}}), InvalidArgument);
    EXPECT_THROW(plan(TSQR{{.leaf_rows = 99}}), InvalidArgument);
    const TreePlan tree = plan(TSQR{{.leaf_rows = 2000, .fan_in = 3}}).tree();
    EXPECT_EQ(tree.leaf_rows, 2000);
    EXPECT_EQ(tree.fan_in, 3);
    EXPECT_EQ(tree.domain_leaves, 0);
}

}  // namespace
}  // namespace quoin::test
