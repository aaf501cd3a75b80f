#pragma once

#include <vector>

#include "quoin/batch.hpp"
#include "quoin/qr.hpp"
#include "quoin/scalar.hpp"

namespace quoin {

/// Thin singular value decomposition A = U diag(s) Vᵀ, k = min(m, n).
template <class T, class D = Host>
struct SVD {
    Matrix<T, D> U;          ///< m×k; empty if only values were computed
    std::vector<Real<T>> s;  ///< k values, descending
    Matrix<T, D> Vt;         ///< k×n; empty if only values were computed
    Report report;           ///< of the QR factorization; `method` is Auto if there was none
};

/// Computes the SVD by way of QR (Chan 1982): A = QR, R = U₁ΣVᵀ, U = Q [U₁; 0]; for m < n, Aᵀ = QR, Rᵀ = UΣW, Vᵀ = [W
/// 0] Qᵀ. On a CPU a nearly square A, max(m, n) <= 4/3 min(m, n), takes the place of R, unless `options` name a method
/// or ask to verify.
///
/// A is any m×n matrix. A row-major A and a column-major one give the same bits. The SVD of R is computed on the host
/// by divide and conquer, or by QR iteration if that does not converge: below 128 columns by LAPACK's gesdd on one
/// thread, and beyond by all threads (Gu and Eisenstat 1995), after a reduction to bidiagonal form. For A on a GPU this
/// holds up to 150 to 250 columns; for more columns cuSOLVER computes it on the device, in double and certified by its
/// residual. 2 max(m, n) k² flops for the values, 6 max(m, n) k² with vectors, and 8k³/3 or 28k³/3 for R, k = min(m,
/// n); if A takes its place 4 max(m, n) k² − 4k³/3 and 8 max(m, n) k² + 4k³/3 in all. Only R is formed if vectors are
/// not wanted. Blocks until done. On a GPU it blocks until s is known; U and Vt are ready for work enqueued on the
/// context.
///
/// With Options::pivoting and a limit it is the SVD of Q_r R_r, where A P = Q_r R_r + E is a QR with column pivoting: r
/// columns for a tolerance, and for a `max_rank` k the k largest values of about 3k/2 + 8 columns. AᵀA =
/// P (R_rᵀR_r + EᵀE) Pᵀ bounds the values: 0 <= σ_i(A)² − s_i² <= ‖E‖². The cost is O(mnr).
///
/// Singular values are exact for A + E with ‖E‖ = O(ku)‖A‖; ‖I − UᵀU‖_F and ‖I − VᵀV‖_F are O(ku). Signs of the
/// singular vectors are not normalised. If R would be near an end of T's range, A is scaled by a power of two. So a
/// singular value is Inf or loses digits to underflow only if T cannot hold it. Throws as `qr`, and NumericalBreakdown
/// if the SVD of R does not converge.
///
///     auto f = svd(ctx, A.view(), /*vectors=*/false);  // f.s
template <class T, class D>
SVD<T, D> svd(Context<D>& ctx, InputView<T, D> A, bool vectors = true, Options options = {});
template <class T, class D>
SVD<T, D> svd(Context<D>& ctx, MatrixView<const T, D> A, bool vectors = true, Options options = {}) {
    return svd<T, D>(ctx, InputView<T, D>(A), vectors, options);
}
template <class T, class D>
SVD<T, D> svd(Context<D>& ctx, MatrixView<T, D> A, bool vectors = true, Options options = {}) {
    return svd<T, D>(ctx, InputView<T, D>(A), vectors, options);
}
template <class T, class D>
SVD<T, D> svd(Context<D>& ctx, RowMajorView<const T, D> A, bool vectors = true, Options options = {}) {
    return svd<T, D>(ctx, InputView<T, D>(A), vectors, options);
}
template <class T, class D>
SVD<T, D> svd(Context<D>& ctx, const Matrix<T, D>& A, bool vectors = true, Options options = {}) {
    return svd<T, D>(ctx, InputView<T, D>(A.view()), vectors, options);
}

/// Estimates the flops of `svd` of an m×n matrix. `Context::flops_done` over them is the progress of a call.
template <class T, class D>
double flops_of_svd(const Context<D>& ctx, Index m, Index n, bool vectors = true, Options options = {});

/// Thin singular value decompositions A_b = U_b diag(s_b) V_bᵀ of a batch, k = min(m, n).
template <class T, class D = Host>
struct BatchedSVD {
    Batch<T, D> U;   ///< m×k; no matrices if only values were computed
    Batch<T, D> s;   ///< k×1, descending
    Batch<T, D> Vt;  ///< k×n; no matrices if only values were computed
};

/// Computes the SVD of every matrix of a batch, by the batched QR and the SVD of each R (Chan 1982), for which one
/// thread of the host serves one matrix.
///
/// It has the bounds, flops and errors of `svd` for one matrix, and the errors name the first failing matrix. Only
/// matrices of one array (BatchView::uniform) are factored several at once; `svd` decomposes each matrix of a list.
/// `options` have no pivoting. The bits do not depend on the number of threads. Blocks until done.
///
///     auto f = svd(ctx, BatchView<const double>(data, 16, 8, 16, 128, count));  // f.U[0], f.s[0], f.Vt[0]
template <class T, class D>
BatchedSVD<T, D> svd(Context<D>& ctx, BatchView<const T, D> A, bool vectors = true, Options options = {});

}  // namespace quoin
