#pragma once

// The factorization, Q and its products in LAPACK's format, in memory that the caller of a Fortran routine owns.

#include <algorithm>
#include <cmath>
#include <limits>

#include "algorithms/shared/copies.hpp"
#include "quoin/qr.hpp"

namespace quoin::lapack {

/// Returns the plan of `factor_in_place` for an m×n matrix: its panel_width, at most min(m, n), and its
/// workspace_bytes in addition to A. Panels have nb columns; 0: Quoin chooses.
template <class T>
Plan plan_in_place(Index m, Index n, Index nb = 0);

/// Factors A (m×n) = Q R in the format of ?geqrf: V strictly below the diagonal, R on and above it, tau of length
/// min(m, n), by a plan for A.
///
/// A tall A is factored by CholeskyQR2 with Householder reconstruction if its Gram matrix certifies it, else by a tree
/// with reconstruction. Other shapes are factored by blocked Householder. NaN and Inf propagate. Returns the name of
/// the method. 2mn² − 2n³/3 flops by panels, 5mn² by CholeskyQR2; workspace of a panel of T factors.
template <class T>
const char* factor_in_place(Context<Host>& ctx, const Plan& plan, MatrixView<T> A, T* tau);

/// Returns the bytes of workspace of `form_q_in_place` and `apply_in_place` in addition to C (`cols` columns), for k
/// reflectors of `rows` rows.
template <class T>
double reflector_workspace(Index rows, Index cols, Index k);

/// A := the first n columns of Q. On entry the first k columns of A (m×n, m >= n >= k) hold V. 4mnk − 2(m + n)k² flops,
/// and the flops for T.
template <class T>
void form_q_in_place(Context<Host>& ctx, Index k, MatrixView<T> A, const T* tau);

/// C := op(Q) C or C := C op(Q), Q the product of the V.cols reflectors V. 4k|C| flops, and the flops for T.
template <class T>
void apply_in_place(Context<Host>& ctx, Side side, Op op, MatrixView<const T> V, const T* tau, MatrixView<T> C);

/// Factor and apply with T stored as in ?geqrt. Tf is nb × min(m, n), with the upper triangular factor of each nb
/// columns of V in the same columns, nb the plan's panel_width. Entries below the triangles are not read.
template <class T>
const char* factor_in_place(Context<Host>& ctx, const Plan& plan, MatrixView<T> A, MatrixView<T> Tf);
template <class T>
const char* factor_in_place(Context<Host>& ctx, Index nb, MatrixView<T> A, MatrixView<T> Tf);
template <class T>
void apply_in_place(Context<Host>& ctx, Side side, Op op, Index nb, MatrixView<const T> V, MatrixView<const T> Tf,
                    MatrixView<T> C);
/// A (m×n, m >= n), which holds V of n reflectors, := the first n columns of Q.
template <class T>
void form_q_in_place(Context<Host>& ctx, Index nb, MatrixView<T> A, MatrixView<const T> Tf);

/// A := (work(Aᵀ))ᵀ. `work` changes a copy of Aᵀ in place. For LQ, since A = L Q is Aᵀ = Qᵀ Lᵀ.
template <class T, class Work>
void through_transpose(Context<Host>& ctx, MatrixView<T> A, Work work) {
    Matrix<T> At = transposed<T, Host>(ctx, A);
    work(At.view());
    transpose<T>(ctx, At.view(), A);
}

/// Whether an entry of A is so large that norms and products of A's columns could overflow. Quoin scales such a matrix;
/// the next LAPACK returns Inf for a column whose norm is above Ω/2. Looks at the first `below`(j) rows of
/// column j.
template <class T, class Below>
bool near_overflow(MatrixView<const T> A, Below below) {
    // beyond the product of any m and n
    constexpr T limit = std::numeric_limits<T>::max() * T(0x1p-64);
    for (Index j = 0; j < A.cols; ++j) {
        const T* const a = A.at(0, j);
        const Index rows = below(j);
        T largest = 0;
#pragma omp simd reduction(max : largest)
        for (Index i = 0; i < rows; ++i) largest = std::max(largest, std::abs(a[i]));
        if (largest > limit) return true;
    }
    return false;
}
template <class T>
bool near_overflow(MatrixView<const T> A) {
    return near_overflow<T>(A, [&](Index) { return A.rows; });
}

}  // namespace quoin::lapack
