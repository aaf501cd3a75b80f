#pragma once

// Products of tall matrices.

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

}  // namespace quoin
