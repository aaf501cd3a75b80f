#pragma once

// Products of tall matrices.

#include <span>

#include "primitives/context.hpp"
#include "quoin/options.hpp"

namespace quoin {

/// C := AᵀB, or C + AᵀB where `accumulate`. 2mnp flops. With an arithmetic other than Native, which f32 on a GPU alone
/// has, the device may round entries of A and B to it, relative to the largest of either where its exponents are few:
/// columns of about one norm keep their digits (cuda/products_by_halves.hpp; 2⁻¹⁰ |x| of an entry in TF32).
template <class T, class D>
void multiply_transposed(Context<D>& ctx, View<const T, D> A, View<const T, D> B, View<T, D> C, bool accumulate = false,
                         Arithmetic arithmetic = Arithmetic::Native);
/// C := C − A B. 2mnk flops. The arithmetic as in `multiply_transposed`.
template <class T, class D>
void subtract_product(Context<D>& ctx, View<const T, D> A, View<const T, D> B, View<T, D> C,
                      Arithmetic arithmetic = Arithmetic::Native);

/// The negative of a small orthogonal G, and the first column of Q that it applies to.
template <class T, class D>
struct WindowFactor {
    MatrixView<const T, D> minus_G;
    Index first = 0;
};
/// Q := the columns `kept` of [A B] G, G the product of all windows, each of which overlaps the one before it, or
/// follows it. Q may be A, if A is all that there is and is kept. 2mh² flops for each h×h window. The host takes some
/// rows through all windows while they are in cache.
template <class T, class D>
void multiply_windows(Context<D>& ctx, std::span<const WindowFactor<T, D>> windows, Input<T, D> A, Input<T, D> B,
                      Range kept, View<T, D> Q);

}  // namespace quoin
