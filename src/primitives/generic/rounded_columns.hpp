#pragma once

// Columns kept as they are, for a device without products of 16 bits.

#include "primitives.hpp"

namespace quoin {

template <class T, class D>
void round_columns(Context<D>& ctx, Arithmetic, View<const T, D> A, Index first, T* place) {
    copy<T>(ctx, A, {place + first * A.rows, A.rows, A.cols});
}

template <class T, class D>
void block_gram_schmidt_step_rounded(Context<D>& ctx, const T* place, Index k, View<T, D> W, View<T, D> S,
                                     Arithmetic arithmetic) {
    block_gram_schmidt_step<T>(ctx, {place, W.rows, k}, W, S, arithmetic, false);
}

}  // namespace quoin
