// The tree primitives on the GPU: the reflectors they leave are LAPACK's, since the host applies them; and what they
// compute from given reflectors is what the host computes.

#include "devices.hpp"
#include "gallery.hpp"
#include "gpu.hpp"

namespace quoin::test {
namespace {

template <class T, class D>
void factor(Context<D>& ctx, const PanelTree& tree, MatrixView<T, D> A, MatrixView<T, D> Tf) {
    factor_leaves<T>(ctx, tree, A, Tf);
    for (Index level = 0; level < tree.levels(); ++level) factor_nodes<T>(ctx, tree, level, A, Tf);
}

template <class T, class D>
void apply(Context<D>& ctx, const PanelTree& tree, Op op, MatrixView<const T, D> A, MatrixView<const T, D> Tf,
           MatrixView<T, D> C) {
    if (op == Op::Transpose) apply_leaves<T>(ctx, tree, op, A, Tf, C);
    for (Index step = 0; step < tree.levels(); ++step) {
        apply_nodes<T>(ctx, tree, op == Op::Transpose ? step : tree.levels() - 1 - step, op, A, Tf, C);
    }
    if (op == Op::None) apply_leaves<T>(ctx, tree, op, A, Tf, C);
}

template <class T, class D>
void form(Context<D>& ctx, const PanelTree& tree, MatrixView<T, D> A, MatrixView<const T, D> Tf,
          MatrixView<T, D> C = {}) {
    set_root<T>(ctx, A);
    for (Index level = tree.levels() - 1; level >= 0; --level) form_nodes<T>(ctx, tree, level, A, Tf);
    form_leaves<T>(ctx, tree, A, Tf, C);
}

/// rows, width, inner_block, leaf_rows, domain_rows, fan_in: one leaf, ragged leaves, flat trees, remainders that join
/// the last domain, T with more rows than the panel has columns, tiles of 64, 128 and 256 rows. A node absorbs one
/// member, so that its T is the host's.
const PanelTree trees[] = {{1, 1, 1, 128, 128, 2},       {5, 3, 3, 3, 3, 2},          {32, 32, 32, 32, 32, 2},
                           {33, 32, 32, 128, 128, 2},    {129, 32, 32, 128, 128, 2},  {300, 17, 32, 64, 192, 2},
                           {777, 8, 8, 16, 16, 2},       {1003, 31, 31, 128, 128, 2}, {1500, 32, 32, 40, 1600, 2},
                           {2050, 24, 24, 96, 288, 2},   {4096, 32, 32, 128, 128, 2}, {20000, 32, 32, 128, 1024, 2},
                           {2100, 32, 32, 256, 1024, 2}, {1031, 16, 16, 256, 256, 2}, {900, 32, 32, 201, 402, 2},
                           {1000, 32, 32, 64, 1024, 2}};

/// Nodes of many members: fewer and more than a block has warps, a last node with one, and with none. Then panels wider
/// than a tile: a last sub-panel of one column and of 32, one domain, leaves lower than the panel is wide, a domain as
/// high as that, more tiles of members than warps, remainders that join the last domain, every tile height.
const PanelTree wide_trees[] = {
    {777, 8, 8, 16, 16, 8},        {1003, 31, 31, 128, 128, 3},   {2050, 24, 24, 96, 288, 5},
    {4096, 32, 32, 128, 128, 4},   {3000, 32, 32, 64, 64, 16},    {3000, 32, 32, 64, 64, 17},
    {4500, 17, 17, 64, 64, 40},    {4096, 32, 32, 256, 256, 9},   {1100, 32, 32, 64, 64, 100},
    {33, 33, 32, 128, 128, 2},     {300, 100, 32, 128, 128, 2},   {500, 45, 32, 128, 128, 2},
    {2000, 100, 32, 128, 256, 4},  {4099, 192, 32, 128, 256, 4},  {3000, 256, 32, 256, 256, 2},
    {3000, 200, 32, 64, 256, 17},  {1600, 70, 32, 128, 128, 10},  {257, 256, 32, 128, 256, 4},
    {1280, 256, 32, 128, 256, 3},  {2500, 192, 32, 96, 192, 9},   {5000, 33, 32, 40, 80, 40},
    {20011, 96, 32, 128, 1024, 4}, {1537, 128, 32, 201, 201, 16}, {1024, 64, 32, 64, 128, 8}};

template <class T>
class GpuTrees : public OnGpu {
protected:
    /// `reduce_leaves` reads A, and finds the R of `factor_leaves` to the bit.
    void expect_reduced(const PanelTree& tree, const Matrix<T>& A) {
        auto& g = gpu();
        const Index n = tree.width, stacked = tree.domains() * n;
        GpuPadded<T> gB(g, A.view()), gS(g, stacked, n), gT(g, tree.inner_block, tree.t_cols());
        reduce_leaves<T>(g, tree, gB.view(), gS.view());
        EXPECT_TRUE(same_bits<T>(gB.fetch(g).view(), A.view())) << "A is only read";
        factor_leaves<T>(g, tree, gB.view(), gT.view());
        const Matrix<T> S = gS.fetch(g), L = gB.fetch(g);
        Matrix<T> tops(stacked, n);
        for (Index d = 0; d < tree.domains(); ++d) {
            const Index first = tree.domain(d).begin;
            copy_triangle<T>(host, L.view().row_block({first, first + n}), tops.view().row_block({d * n, d * n + n}));
        }
        EXPECT_TRUE(same_bits<T>(S.view(), tops.view())) << "reduce";
    }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuTrees, Types);

TYPED_TEST(GpuTrees, TheHostAgrees) {
    using T = TypeParam;
    auto& g = this->gpu();
    for (const PanelTree& tree : trees) {
        const Index m = tree.rows, n = tree.width;
        SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + " leaves of " + std::to_string(tree.leaf_rows));
        const Matrix<T> A = random_normal<T>(m, n, 1);
        GpuPadded<T> gA(g, A.view()), gT(g, tree.inner_block, tree.t_cols());
        factor<T, Cuda>(g, tree, gA.view(), gT.view());
        const Matrix<T> F = gA.fetch(g), Tf = gT.fetch(g);

        // QᵀA = [R; 0]
        Matrix<T> X = copy<T>(A.view()), R = filled<T>(m, n, T(0));
        apply<T, Host>(this->host, tree, Op::Transpose, F.view(), Tf.view(), X.view());
        copy_triangle<T>(this->host, F.view().row_block({0, n}), R.view().row_block({0, n}));
        EXPECT_LE(difference<T>(X.view(), R.view(), n, frobenius_norm<T>(A.view())), law) << "factor";

        for (Index p : {0, 1, 16, 35, 160}) {
            for (Op op : {Op::None, Op::Transpose}) {
                Matrix<T> C = random_normal<T>(m, p, 2);
                GpuPadded<T> gC(g, C.view());
                apply<T, Cuda>(g, tree, op, gA.view(), gT.view(), gC.view());
                apply<T, Host>(this->host, tree, op, F.view(), Tf.view(), C.view());
                if (p == 0) continue;
                EXPECT_LE(difference<T>(gC.fetch(g).view(), C.view(), n, frobenius_norm<T>(C.view())), law)
                    << "apply to " << p;
            }
        }

        this->expect_reduced(tree, A);

        // the same bits from run to run, and Q
        GpuPadded<T> gAgain(g, A.view()), gTagain(g, tree.inner_block, tree.t_cols());
        factor<T, Cuda>(g, tree, gAgain.view(), gTagain.view());
        EXPECT_TRUE(same_bits<T>(gAgain.fetch(g).view(), F.view())) << "again";
        form<T, Cuda>(g, tree, gAgain.view(), gTagain.view());
        Matrix<T> Q = copy<T>(F.view());
        form<T, Host>(this->host, tree, Q.view(), Tf.view());
        const Matrix<T> formed = gAgain.fetch(g);
        EXPECT_LE(difference<T>(formed.view(), Q.view(), n, frobenius_norm<T>(Q.view())), law) << "form";
        // beside a product with the leaves, in one kernel up to 128 columns
        for (Index p : {1, 35, 128, 129}) {
            const Matrix<T> C = random_normal<T>(m, p, 3);
            GpuPadded<T> gC(g, C.view()), gF(g, F.view()), gAlone(g, C.view());
            apply_leaves<T>(g, tree, Op::None, gF.view(), gT.view(), gAlone.view());
            form<T, Cuda>(g, tree, gF.view(), gT.view(), gC.view());
            EXPECT_TRUE(same_bits<T>(gF.fetch(g).view(), formed.view())) << "form beside " << p;
            EXPECT_TRUE(same_bits<T>(gC.fetch(g).view(), gAlone.fetch(g).view())) << "apply beside form, " << p;
        }
    }
}

TYPED_TEST(GpuTrees, ManyMembersANodeAndWidePanels) {
    using T = TypeParam;
    auto& g = this->gpu();
    for (const PanelTree& tree : wide_trees) {
        const Index m = tree.rows, n = tree.width;
        if (quick() && m * n > 100000) continue;
        SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + " fan-in " + std::to_string(tree.fan_in));
        const Matrix<T> A = random_normal<T>(m, n, 1);
        this->expect_reduced(tree, A);
        GpuPadded<T> gA(g, A.view()), gT(g, tree.inner_block, tree.t_cols());
        factor<T, Cuda>(g, tree, gA.view(), gT.view());
        const Matrix<T> F = gA.fetch(g);
        // a product of n reflectors a stage, one stage a level beside the leaves
        const double bound = law * std::sqrt(1.0 + static_cast<double>(tree.levels()));

        // QᵀA = [R; 0]
        GpuPadded<T> gX(g, A.view());
        apply<T, Cuda>(g, tree, Op::Transpose, gA.view(), gT.view(), gX.view());
        Matrix<T> R = filled<T>(m, n, T(0));
        copy_triangle<T>(this->host, F.view().row_block({0, n}), R.view().row_block({0, n}));
        EXPECT_LE(difference<T>(gX.fetch(g).view(), R.view(), n, frobenius_norm<T>(A.view())), bound) << "factor";
        EXPECT_LE(gram_error<T>(A.view(), R.view().row_block({0, n})), bound) << "R";

        // QᵀQ C = C
        const Matrix<T> C = random_normal<T>(m, 37, 2);
        GpuPadded<T> gC(g, C.view());
        apply<T, Cuda>(g, tree, Op::None, gA.view(), gT.view(), gC.view());
        EXPECT_LE(std::abs(frobenius_norm<T>(gC.fetch(g).view()) / frobenius_norm<T>(C.view()) - 1),
                  bound * n * unit_roundoff<T>);
        apply<T, Cuda>(g, tree, Op::Transpose, gA.view(), gT.view(), gC.view());
        EXPECT_LE(difference<T>(gC.fetch(g).view(), C.view(), n, frobenius_norm<T>(C.view())), 2 * bound) << "apply";

        // Q [I; 0], formed and applied
        Matrix<T> E = filled<T>(m, n, T(0));
        for (Index j = 0; j < n; ++j) E(j, j) = 1;
        GpuPadded<T> gE(g, E.view());
        apply<T, Cuda>(g, tree, Op::None, gA.view(), gT.view(), gE.view());
        // and C := Q_leaves C beside it
        GpuPadded<T> gFormed(g, C.view()), gApplied(g, C.view());
        apply_leaves<T>(g, tree, Op::None, gA.view(), gT.view(), gApplied.view());
        form<T, Cuda>(g, tree, gA.view(), gT.view(), gFormed.view());
        EXPECT_TRUE(same_bits<T>(gFormed.fetch(g).view(), gApplied.fetch(g).view())) << "apply beside form";
        const Matrix<T> Q = gA.fetch(g);
        EXPECT_LE(difference<T>(Q.view(), gE.fetch(g).view(), n, std::sqrt(static_cast<double>(n))), bound) << "form";
        EXPECT_LE(orthogonality_error<T>(Q.view(), n), bound);
        EXPECT_LE(residual_error<T>(A.view(), Q.view(), R.view().row_block({0, n})), bound);

        // the same bits from run to run, and with the leaves applied beside the nodes
        GpuPadded<T> gAgain(g, A.view()), gTagain(g, tree.inner_block, tree.t_cols()), gBeside(g, C.view());
        factor_leaves<T>(g, tree, gAgain.view(), gTagain.view());
        factor_nodes_and_apply_leaves<T>(g, tree, gAgain.view(), gTagain.view(), gBeside.view());
        EXPECT_TRUE(same_bits<T>(gAgain.fetch(g).view(), F.view())) << "again";
        GpuPadded<T> gApart(g, C.view());
        apply_leaves<T>(g, tree, Op::Transpose, gAgain.view(), gTagain.view(), gApart.view());
        EXPECT_TRUE(same_bits<T>(gBeside.fetch(g).view(), gApart.fetch(g).view())) << "leaves beside nodes";
    }
}

TYPED_TEST(GpuTrees, RefuseWhatTheirTilesCannotHold) {
    using T = TypeParam;
    auto& g = this->gpu();
    GpuPadded<T> A(g, 1000, 257), Tf(g, 33, 33 * 1000);
    EXPECT_THROW(factor_leaves<T>(g, PanelTree{1000, 257, 32, 256, 512, 2}, A.view(), Tf.view()), InvalidArgument);
    EXPECT_THROW(factor_leaves<T>(g, PanelTree{1000, 64, 32, 16, 64, 2}, A.view(), Tf.view()), InvalidArgument);
    EXPECT_THROW(factor_leaves<T>(g, PanelTree{1000, 32, 32, 512, 512, 2}, A.view(), Tf.view()), InvalidArgument);
    EXPECT_THROW(factor_leaves<T>(g, PanelTree{1000, 32, 16, 64, 64, 2}, A.view(), Tf.view()), InvalidArgument);
}

}  // namespace
}  // namespace quoin::test
