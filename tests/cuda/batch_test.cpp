// Batches on a GPU obey the law of single matrices, whatever their neighbours are.

#include "quoin/batch.hpp"

#include <fmt/format.h>

#include "gallery.hpp"
#include "gpu.hpp"

namespace quoin::test {
namespace {

template <class T>
class GpuBatch : public OnGpu {
protected:
    using View = BatchView<const T, Cuda>;

    std::vector<Matrix<T, Cuda>> on_gpu(const std::vector<Matrix<T>>& matrices) {
        std::vector<Matrix<T, Cuda>> copies;
        for (const auto& A : matrices) copies.push_back(copy_to_device<T>(gpu(), A.view()));
        return copies;
    }
    static View of(const std::vector<Matrix<T, Cuda>>& matrices) {
        std::vector<MatrixView<const T, Cuda>> views;
        for (const auto& A : matrices) views.push_back(A.view());
        return View(std::move(views));
    }
    static View in(const Matrix<T, Cuda>& all, Index n) {
        const Index m = all.rows();
        return {all.data(), m, n, all.ld(), m * n, n > 0 ? all.cols() / n : 0};
    }
    Matrix<T> fetched(MatrixView<T, Cuda> A) { return copy_to_host<T>(gpu(), MatrixView<const T, Cuda>(A)); }

    void expect_law(const std::vector<Matrix<T>>& matrices, const BatchedQR<T, Cuda>& f) {
        Batch<T, Cuda> Q = f.form_q(gpu()), R = f.r(gpu());
        for (Index b = 0; b < f.count(); ++b) {
            const Matrix<T>& A = matrices[b];
            SCOPED_TRACE(fmt::format("matrix {}, {}x{}", b, A.rows(), A.cols()));
            const Matrix<T> Qb = fetched(Q[b]), Rb = fetched(R[b]);
            EXPECT_TRUE(is_upper_trapezoidal<T>(Rb.view()));
            EXPECT_LE(orthogonality_error<T>(Qb.view(), std::min(A.rows(), A.cols())), law);
            EXPECT_LE(column_residual_error<T>(A.view(), Qb.view(), Rb.view()), law);
        }
    }
};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuBatch, Precisions);

struct Shape {
    Index m, n;
};
/// Both sides of every edge of the kernels in cuda/batch.cu, and shapes that none holds.
constexpr Shape shapes[] = {{1, 1},     {3, 3},     {4, 4},    {2, 7},    {16, 8},   {17, 8},   {16, 16},  {16, 17},
                            {64, 8},    {65, 8},    {32, 32},  {33, 32},  {64, 32},  {64, 33},  {64, 64},  {65, 65},
                            {128, 64},  {129, 64},  {256, 64}, {257, 64}, {257, 32}, {512, 32}, {513, 32}, {100, 128},
                            {128, 129}, {192, 192}, {193, 60}, {8, 200},  {200, 200}};

TYPED_TEST(GpuBatch, EveryClassAndShapeInOneMixedBatch) {
    using T = TypeParam;
    std::vector<Matrix<T>> matrices;
    Index turn = 0;
    for (const Gallery matrix_class : gallery()) {
        for (const auto& [m, n] : in_turn(shapes, turn++)) matrices.push_back(generate<T>(matrix_class, m, n));
        matrices.push_back(generate<T>(matrix_class, 16, 8));
    }
    for (const auto& [m, n] : shapes) matrices.push_back(random_normal<T>(m, n));
    const auto copies = this->on_gpu(matrices);
    const auto f = qr<T>(this->gpu(), this->of(copies));
    this->expect_law(matrices, f);
    // each has the bits that it has alone
    Batch<T, Cuda> R = f.r(this->gpu());
    for (std::size_t b = 0; b < matrices.size(); ++b) {
        SCOPED_TRACE(b);
        Batch<T, Cuda> alone = qr<T>(this->gpu(), this->in(copies[b], copies[b].cols())).r(this->gpu());
        EXPECT_TRUE(same_bits<T>(this->fetched(alone[0]).view(), this->fetched(R[static_cast<Index>(b)]).view()));
    }
}

TYPED_TEST(GpuBatch, AppliesQ) {
    using T = TypeParam;
    std::vector<Matrix<T>> matrices, right_sides;
    Index p = 1;
    for (const auto& [m, n] : shapes) {
        for (int twice = 0; twice < 2; ++twice) {
            matrices.push_back(random_normal<T>(m, n, p));
            right_sides.push_back(random_normal<T>(m, p++ % 40 + 1));
        }
    }
    const auto copies = this->on_gpu(matrices);
    const auto f = qr<T>(this->gpu(), this->of(copies));
    for (const Op op : {Op::None, Op::Transpose}) {
        std::vector<GpuPadded<T>> C;
        std::vector<MatrixView<T, Cuda>> views;
        C.reserve(right_sides.size());
        for (const auto& B : right_sides) views.push_back(C.emplace_back(this->gpu(), B.view()).view());
        f.apply_q(this->gpu(), op, BatchView<T, Cuda>(views));
        for (std::size_t b = 0; b < matrices.size(); ++b) {
            SCOPED_TRACE(fmt::format("{}x{}", matrices[b].rows(), matrices[b].cols()));
            const auto I = copy_to_device<T>(this->gpu(), identity<T>(matrices[b].rows()).view());
            Batch<T, Cuda> Q =
                qr<T>(this->gpu(), this->in(copies[b], copies[b].cols())).apply_q(this->gpu(), Op::None, I.view());
            const Index k = std::min(matrices[b].rows(), matrices[b].cols());
            EXPECT_LE(product_error<T>(Side::Left, op, this->fetched(Q[0]).view(), right_sides[b].view(),
                                       C[b].fetch(this->gpu()).view(), k),
                      law);
        }
    }
}

TYPED_TEST(GpuBatch, RowMajorAndManyMatrices) {
    using T = TypeParam;
    for (const auto& [m, n] : {Shape{3, 3}, Shape{16, 8}, Shape{70, 40}, Shape{300, 100}}) {
        const Index count = 1000 / m, k = std::min(m, n);
        const Matrix<T> all = random_normal<T>(m, n * count);
        Matrix<T> rows(n, m * count);  // C order
        for (Index b = 0; b < count; ++b) {
            for (Index i = 0; i < m; ++i) {
                for (Index j = 0; j < n; ++j) rows(j, b * m + i) = all(i, b * n + j);
            }
        }
        const auto by_columns = copy_to_device<T>(this->gpu(), all.view()),
                   by_rows = copy_to_device<T>(this->gpu(), rows.view());
        const auto f = qr<T>(this->gpu(), this->in(by_columns, n));
        const auto g = qr<T>(this->gpu(), BatchView<const T, Cuda>(by_rows.data(), m, n, n, 1, m * n, count));
        Batch<T, Cuda> R = f.r(this->gpu()), S = g.r(this->gpu());
        Batch<T, Cuda> V_R(this->gpu(), m, n, count), tau(this->gpu(), k, 1, count);
        f.lapack(this->gpu(), V_R.view(), tau.view());
        for (Index b = 0; b < count; ++b) {
            EXPECT_TRUE(same_bits<T>(this->fetched(R[b]).view(), this->fetched(S[b]).view()));
            const Matrix<T> both = this->fetched(V_R[b]), Rb = this->fetched(R[b]), t = this->fetched(tau[b]);
            for (Index j = 0; j < n; ++j) {
                for (Index i = 0; i < k; ++i) EXPECT_EQ(Rb(i, j), i <= j ? both(i, j) : T(0));
            }
            // τ = 2/(vᵀv) of every reflector that is not I
            for (Index j = 0; j < k; ++j) {
                double squares = 1;
                for (Index i = j + 1; i < m; ++i) squares += double(both(i, j)) * double(both(i, j));
                if (t(j, 0) != 0) EXPECT_NEAR(t(j, 0), 2 / squares, 50 * unit_roundoff<T>);
            }
        }
    }
}

TYPED_TEST(GpuBatch, NonFiniteEntriesAreNamedOrStayInTheirMatrix) {
    using T = TypeParam;
    for (const auto& [m, n] : {Shape{6, 4}, Shape{90, 70}, Shape{220, 210}}) {
        const Index count = 21;
        Matrix<T> all = random_normal<T>(m, n * count);
        const auto clean = copy_to_device<T>(this->gpu(), all.view());
        all(m - 1, 18 * n + 1) = std::numeric_limits<T>::infinity();
        all(2, 17 * n + 3) = std::numeric_limits<T>::quiet_NaN();
        const auto spoilt = copy_to_device<T>(this->gpu(), all.view());
        try {
            (void)qr<T>(this->gpu(), this->in(spoilt, n));
            FAIL() << "NaN was accepted";
        } catch (const NonFiniteEntry& e) {
            EXPECT_EQ(e.row, 2);
            EXPECT_EQ(e.col, 3);
            EXPECT_NE(std::string(e.what()).find("matrix 17 of the batch"), std::string::npos) << e.what();
        }
        Options options;
        options.check_finite = false;
        Batch<T, Cuda> R = qr<T>(this->gpu(), this->in(spoilt, n), options).r(this->gpu());
        Batch<T, Cuda> expected = qr<T>(this->gpu(), this->in(clean, n), options).r(this->gpu());
        for (Index b = 0; b < count; ++b) {
            if (b == 17 || b == 18) {
                EXPECT_FALSE(is_finite<T>(this->fetched(R[b]).view()));
            } else {
                EXPECT_TRUE(same_bits<T>(this->fetched(R[b]).view(), this->fetched(expected[b]).view()));
            }
        }
    }
}

TYPED_TEST(GpuBatch, NothingToDo) {
    using T = TypeParam;
    EXPECT_EQ(qr<T>(this->gpu(), BatchView<const T, Cuda>(nullptr, 3, 3, 3, 9, 0)).r(this->gpu()).count(), 0);
    std::vector<Matrix<T>> matrices;
    matrices.push_back(random_normal<T>(5, 3));
    matrices.push_back(Matrix<T>(0, 4));
    matrices.push_back(Matrix<T>(4, 0));
    const auto copies = this->on_gpu(matrices);
    this->expect_law(matrices, qr<T>(this->gpu(), this->of(copies)));
}

}  // namespace
}  // namespace quoin::test
