// The host's side of panels that it factors for a GPU: buffers, copies and the factorization.

#include "algorithms/one_matrix/host_panel.hpp"
#include "algorithms/one_matrix/blocked_householder.hpp"
#include "algorithms/one_matrix/full_t.hpp"
#include "algorithms/one_matrix/reconstruct_householder.hpp"
#include "algorithms/one_matrix/tsqr_caqr.hpp"

#include "devices.hpp"

namespace quoin {

namespace {

/// Factors A as `factor_panel_by_all_cores` does, by TSQR and Householder reconstruction.
template <class T>
void factor_panel_by_tsqr(Context<Host>& ctx, MatrixView<T> A, MatrixView<T> Tf) {
    const Plan plan = plan_qr<T>(ctx, A.rows, A.cols, {.method = Method::TSQR});
    Matrix<T> R(A.cols, A.cols);
    orthonormalize_by_tree<T, Host>(ctx, plan, A, R.view());
    reconstruct_householder<T, Host>(ctx, A, R.view(), Tf);
}

}  // namespace

template <class T>
void factor_panel_by_all_cores(Context<Host>& ctx, MatrixView<T> A, MatrixView<T> Tf) {
    Options options;
    options.method = Method::BlockedHouseholder;
    options.q = QForm::Reflectors;
    const Plan plan = plan_qr<T>(ctx, A.rows, A.cols, options);
    ReflectorForest<T, Host> forest;
    lay_out_panels(ctx, plan, forest);
    const ForestView<T, Host> panels{forest.panels, A, forest.Tf.view()};
    factor_blocked_householder<T, Host>(ctx, plan, panels);
    join_t<T, Host>(ctx, {panels.panels, panels.A, panels.Tf}, Tf);
}

template <class T, class D>
HostPanels<T, D>::HostPanels(Context<D>& ctx, Index m, Index nb)
    : host_(host_context(ctx)),
      memory_(static_cast<T*>(pinned_staging(ctx, detail::checked_bytes(m + nb, nb, sizeof(T))))) {}

template <class T, class D>
HostPanels<T, D>::~HostPanels() {
    if (!leaving_) return;
    try {
        leaving_->wait();
    } catch (const Error&) {
        // the error that ended the factorization is on its way to the caller already
    }
}

template <class T, class D>
void HostPanels<T, D>::leave(Context<D>& where, Index step, MatrixView<const T, D> A) {
    const Span span(where, "copy out", step, Trace::Row::ToHost);
    leaving_ = &where;
    start_copy_to_host<T>(where, A, panel(A.rows, A.cols));
}

template <class T, class D>
void HostPanels<T, D>::factor(Context<D>& where, Index step, bool by_tsqr, MatrixView<T, D> A, MatrixView<T, D> Tf) {
    const MatrixView<T> V = panel(A.rows, A.cols), T_of_V(memory_ + A.rows * A.cols, A.cols, A.cols);
    where.wait();
    leaving_ = nullptr;
    {
        const Span<Host> span(where.trace(), "panel", step);
        (by_tsqr ? factor_panel_by_tsqr<T> : factor_panel_by_all_cores<T>)(host_, V, T_of_V);
    }
    const Span span(where, "copy in", step, Trace::Row::ToDevice);
    start_copy_from_host<T>(where, V, A);
    start_copy_from_host<T>(where, T_of_V, Tf);
}

template decltype(factor_panel_by_all_cores<QUOIN_F32>) factor_panel_by_all_cores<QUOIN_F32>;
template decltype(factor_panel_by_all_cores<QUOIN_F64>) factor_panel_by_all_cores<QUOIN_F64>;

#define QUOIN_INSTANTIATE(T, D) template class HostPanels<T, D>;
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
