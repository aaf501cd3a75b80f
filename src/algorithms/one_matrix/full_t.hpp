#pragma once

// Q = I − V T Vᵀ with one T for all columns.

#include "algorithms/one_matrix/reflector_forest.hpp"

namespace quoin {

/// Q = I − V T Vᵀ = I − V Sᵀ as a whole. V has R above its diagonal. S has T above its diagonal. T has S's strictly
/// lower triangle below its diagonal; without S, which then has no data, T has zeros there.
template <class T, class D>
struct FullWY {
    MatrixView<const T, D> V;   // m×k
    MatrixView<const T, D> Tf;  // k×k
    MatrixView<const T, D> S;   // m×k
};

/// T₁₂ := −T₁ V₁ᵀV₂ T₂ for neighbouring column ranges of V. Tf has T₁ and T₂ on its diagonal. 2mk₁k₂ flops and more for
/// T.
template <class T, class D>
void join_two(Context<D>& ctx, MatrixView<const T, D> V, Range left, Range right, MatrixView<T, D> Tf);

/// Tf (k×k) := the full T of panels in LAPACK's format, from the panels' T, with zeros below its diagonal.
template <class T, class D>
void join_t(Context<D>& ctx, ForestView<const T, D> forest, MatrixView<T, D> Tf);

/// C := op(Q) C. C has m rows. With Corrected arithmetic, here and below, the columns of C have norms up to 2.
template <class T, class D>
void apply_full_wy(Context<D>& ctx, const FullWY<T, D>& wy, Op op, MatrixView<T, D> C, Arithmetic arithmetic);

/// B := op(Q(r, c)) C.
template <class T, class D>
void apply_full_wy_block(Context<D>& ctx, const FullWY<T, D>& wy, Op op, Range r, Range c, MatrixView<const T, D> C,
                         MatrixView<T, D> B, Arithmetic arithmetic);

/// B := Q(r, c).
template <class T, class D>
void form_full_wy_block(Context<D>& ctx, const FullWY<T, D>& wy, Range r, Range c, MatrixView<T, D> B,
                        Arithmetic arithmetic);

}  // namespace quoin
