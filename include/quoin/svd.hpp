#pragma once

#include <vector>

#include "quoin/qr.hpp"
#include "quoin/scalar.hpp"

namespace quoin {

/// Thin singular value decomposition A = U diag(s) Vᵀ, k = min(m, n).
template <class T, class D = Host>
struct SVD {
    Matrix<T, D> U;          ///< m×k; empty when only values were asked for
    std::vector<Real<T>> s;  ///< k values, descending
    Matrix<T, D> Vt;         ///< k×n; empty when only values were asked for
    Report report;           ///< of the QR factorization
};

/// SVD by way of QR (Chan 1982): A = QR, R = U₁ΣVᵀ, U = Q [U₁; 0]; for m < n, Aᵀ = QR, Rᵀ = UΣW, Vᵀ = [W 0] Qᵀ.
///
/// Any m×n A, row-major or column-major, with the same bits. The SVD of R is LAPACK's gesdd (gesvd where that does not converge), sequential on the host; for A on a GPU
/// only up to 150 to 250 columns, and beyond by cuSOLVER on the device, in double and certified by its residual. Worth it where
/// max(m, n) is well above k = min(m, n). 2 max(m, n) k² flops for the values, 6 max(m, n) k² with vectors, and 3k³ or 22k³
/// for R; R alone is formed where only values are asked for. Blocks until done; on a GPU until s is known, U and Vt being
/// ready for work that is enqueued on the context.
///
/// Singular values are those of A + E with ‖E‖ = O(ku)‖A‖, ‖I − UᵀU‖_F and ‖I − VᵀV‖_F are O(ku). Signs of the singular
/// vectors are not normalised. If R would be near an end of T's range, A times a power of two is decomposed: only
/// a singular value that T cannot hold is Inf, or loses digits to underflow.
/// Throws as `qr`, and NumericalBreakdown if the SVD of R does not converge.
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

}  // namespace quoin
