#pragma once

// A panel's product that prepares nothing, for a device that converts no operands.

#include "primitives.hpp"

namespace quoin {

template <class T, class D>
struct PanelProduct<T, D>::Shared {};

template <class T, class D>
PanelProduct<T, D>::PanelProduct(Context<D>& ctx, Op op, MatrixView<const T, D> V, MatrixView<const T, D> Tf, Index,
                                 Arithmetic arithmetic)
    : ctx_(ctx), op_(op), V_(V), Tf_(Tf), arithmetic_(arithmetic) {}
template <class T, class D>
PanelProduct<T, D>::~PanelProduct() = default;
template <class T, class D>
void PanelProduct<T, D>::apply(MatrixView<T, D> C) const {
    apply_panel<T>(ctx_, op_, V_, Tf_, C, arithmetic_);
}

}  // namespace quoin
