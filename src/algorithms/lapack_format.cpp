// LAPACK's format: in, out, and its compact WY form Q = I − V T Vᵀ as a whole.

#include <fmt/format.h>

#include "algorithms/factorization.hpp"
#include "algorithms/instantiate.hpp"
#include "algorithms/solver_steps.hpp"

namespace quoin {

namespace {

template <class T, class D>
bool holds_lapack_format(const QR<T, D>& f) {
    const auto& impl = f.impl();
    return !impl.is_explicit && impl.plan.q != QForm::None && impl.forest.A.rows() == f.rows() &&
           impl.forest.lapack_format();
}

template <class T, class D>
const ReflectorForest<T, D>& lapack_forest(const QR<T, D>& f, const char* what) {
    if (holds_lapack_format(f)) return f.impl().forest;
    throw InvalidArgument(fmt::format(
        "{} belongs to LAPACK's format, which this factorization by {} does not keep: ask for q = reflectors", what,
        to_string(f.report().method)));
}

/// V of reflectors that are stored below the diagonal of A: its ones and zeros too.
template <class T, class D>
Matrix<T, D> unit_lower(Context<D>& ctx, MatrixView<const T, D> A) {
    Matrix<T, D> V = copy_of(ctx, A);
    set_root<T>(ctx, V.view());
    return V;
}

}  // namespace

template <class T, class D>
Matrix<T, D> QR<T, D>::v(Context<D>& ctx) const {
    const auto& forest = lapack_forest(*this, "V");
    return unit_lower(ctx, forest.A.view().col_block({0, std::min(rows(), cols())}));
}

template <class T, class D>
Matrix<T, D> QR<T, D>::tau(Context<D>& ctx) const {
    const auto& forest = lapack_forest(*this, "tau");
    Matrix<T, D> tau(ctx, std::min(rows(), cols()), 1);
    for (const Panel& panel : forest.panels) {
        copy_diagonal<T>(ctx, forest.panel_t(panel),
                         tau.view().row_block({panel.first, panel.first + panel.tree.width}));
    }
    return tau;
}

template <class T, class D>
Matrix<T, D> QR<T, D>::t(Context<D>& ctx) const {
    const auto& forest = lapack_forest(*this, "T");
    const Index m = rows(), k = std::min(m, cols());
    Matrix<T, D> Tf(ctx, k, k);
    set_zero(ctx, Tf.view());
    for (std::size_t s = 0; s < forest.panels.size(); ++s) {
        const Panel& panel = forest.panels[s];
        const Range before{0, panel.first}, here{panel.first, panel.first + panel.tree.width};
        const auto T22 = Tf.view().block(here, here), T12 = Tf.view().block(before, here);
        copy_triangle<T>(ctx, forest.panel_t(panel), T22);
        if (T12.empty()) continue;
        // G = V₁ᵀV₂; V₂ is zero above its first row, and from there on V₁ lies in A as it is
        const Matrix<T, D> V2 = unit_lower(ctx, forest.panel_a(panel));
        Matrix<T, D> G(ctx, T12.rows, T12.cols), W(ctx, T12.rows, T12.cols);
        multiply_transposed<T>(ctx, forest.A.view().block({panel.first, m}, before), V2.view(), G.view());
        // T₁₂ = −T₁ G T₂, a block row of the triangle T₁ at a time
        set_zero(ctx, W.view());
        for (std::size_t r = 0; r < s; ++r) {
            const Range row{forest.panels[r].first, forest.panels[r + 1].first}, right{row.begin, panel.first};
            subtract_product<T>(ctx, Tf.view().block(row, right), G.view().row_block(right), W.view().row_block(row));
        }
        negate<T>(ctx, W.view());
        subtract_product<T>(ctx, W.view(), T22, T12);
    }
    return Tf;
}

template <class T, class D>
LapackQR<T, D> to_lapack(Context<D>& ctx, QR<T, D>&& factorization) {
    const Index m = factorization.rows(), n = factorization.cols(), k = std::min(m, n);
    if (factorization.plan().q == QForm::None) {
        throw InvalidArgument("to_lapack needs Q, and the factorization was made with QForm::None");
    }
    LapackQR<T, D> result;
    if (holds_lapack_format(factorization)) {
        result.tau = factorization.tau(ctx);
        result.V_R = std::move(factorization.impl().forest.A);
        return result;
    }
    result.tau = Matrix<T, D>(ctx, k, 1);
    // Q₁ = Q S: one panel of k columns, and S R; the columns of R right of it need only the signs
    Matrix<T, D> R = factorization.r(ctx), Tf(ctx, k, k);
    result.V_R = Matrix<T, D>(ctx, m, n);
    const auto V = result.V_R.view().col_block({0, k});
    copy<T>(ctx, std::move(factorization).take_q(ctx).view(), V);
    reconstruct_householder<T, D>(ctx, V, {}, R.view(), Tf.view());
    copy<T>(ctx, R.view().col_block({k, n}), result.V_R.view().block({0, k}, {k, n}));
    copy_diagonal<T>(ctx, Tf.view(), result.tau.view());
    return result;
}

template <class T, class D>
QR<T, D> from_lapack(Context<D>& ctx, LapackQR<T, D>&& factors) {
    const Index m = factors.V_R.rows(), n = factors.V_R.cols(), k = std::min(m, n);
    if (factors.tau.rows() != k || (k > 0 && factors.tau.cols() != 1)) {
        throw InvalidArgument(fmt::format("from_lapack: tau is {} x {}, and V_R is {} x {}", factors.tau.rows(),
                                          factors.tau.cols(), m, n));
    }
    QR<T, D> f(std::make_unique<typename QR<T, D>::Impl>());
    auto& impl = f.impl();
    Options options;
    options.method = Method::BlockedHouseholder;
    options.q = QForm::Reflectors;
    impl.plan = plan_qr<T>(ctx, m, n, options);
    impl.report.method = Method::BlockedHouseholder;
    lay_out_panels(ctx, impl.plan, impl.forest);
    impl.forest.A = std::move(factors.V_R);
    for (const Panel& panel : impl.forest.panels) {
        compact_wy<T>(ctx, impl.forest.panel_a(panel),
                      factors.tau.view().row_block({panel.first, panel.first + panel.tree.width}),
                      impl.forest.panel_t(panel));
    }
    return f;
}

#define QUOIN_INSTANTIATE(T, D)                                        \
    template Matrix<T, D> QR<T, D>::v(Context<D>&) const;              \
    template Matrix<T, D> QR<T, D>::tau(Context<D>&) const;            \
    template Matrix<T, D> QR<T, D>::t(Context<D>&) const;              \
    template LapackQR<T, D> to_lapack<T, D>(Context<D>&, QR<T, D> &&); \
    template QR<T, D> from_lapack<T, D>(Context<D>&, LapackQR<T, D> &&);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
