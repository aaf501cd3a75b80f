#pragma once

// Panels of a matrix on a GPU that the host factors while the GPU updates the trailing matrix, in the schedule of
// Benner, Köhler and Penke's Figure 1. The blocked algorithm requests the next panel during the update on which it does
// not depend:
//
//     host                         panel k+1                               panel k+2
//     device   update 1 │ the rest of update k; T, S │ S, update 1 │ the rest of update k+1; T, S │
//     copies            └─out──┘          └───in─────┘             └─out──┘
//
// "update 1" updates the next panel's columns. One buffer is enough: panel k+2 leaves once panel k+1 is back.

#include "primitives.hpp"

namespace quoin {

/// Factors A (m×n, m >= n) = H R by all cores of the host, in ?geqrt3's format: V below the diagonal, R on and above
/// it, Tf n×n with exact zeros below its diagonal.
template <class T>
void factor_panel_by_all_cores(Context<Host>& ctx, MatrixView<T> A, MatrixView<T> Tf);

/// The host, and the memory for panels of up to m rows and nb columns on their way.
template <class T, class D>
class HostPanels {
public:
    HostPanels(Context<D>& ctx, Index m, Index nb);
    HostPanels(const HostPanels&) = delete;
    /// Waits for a panel that has left and was not factored.
    ~HostPanels();

    /// Sends A to the host, after the work on `where`, the context or its side stream.
    void leave(Context<D>& where, Index step, MatrixView<const T, D> A);
    /// Factors the panel that left last, A = H R, with T in Tf, if `by_tsqr` by TSQR. Waits until it has reached the
    /// host. V, R and T are on their way back on `where` when this returns.
    void factor(Context<D>& where, Index step, bool by_tsqr, MatrixView<T, D> A, MatrixView<T, D> Tf);

private:
    MatrixView<T> panel(Index m, Index n) const { return {memory_, m, n}; }

    Context<Host>& host_;
    T* memory_;
    Context<D>* leaving_ = nullptr;  // the context with a panel on its way to the host
};

}  // namespace quoin
