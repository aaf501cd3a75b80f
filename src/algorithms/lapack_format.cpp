#include <fmt/format.h>

#include "algorithms/factorization.hpp"
#include "algorithms/instantiate.hpp"

namespace quoin {

template <class T, class D>
LapackQR<T, D> to_lapack(Context<D>& ctx, QR<T, D>&& factorization) {
    const Index m = factorization.rows(), n = factorization.cols(), k = std::min(m, n);
    if (factorization.plan().q == QForm::None) {
        throw InvalidArgument("to_lapack needs Q, and the factorization was made with QForm::None");
    }
    LapackQR<T, D> result;
    result.tau = Matrix<T, D>(ctx, k, 1);
    const bool as_it_is = !factorization.impl().is_explicit && factorization.impl().forest.lapack_format();
    if (as_it_is) {
        auto& forest = factorization.impl().forest;
        for (const Panel& panel : forest.panels) {
            copy_diagonal<T>(ctx, forest.panel_t(panel),
                             result.tau.view().row_block({panel.first, panel.first + panel.tree.width}));
        }
        result.V_R = std::move(forest.A);
        return result;
    }
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
    template LapackQR<T, D> to_lapack<T, D>(Context<D>&, QR<T, D> &&); \
    template QR<T, D> from_lapack<T, D>(Context<D>&, LapackQR<T, D> &&);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
