#pragma once

#include <vector>

#include "quoin/qr.hpp"

namespace quoin {

/// A ≈ A(:, columns) X: every column of A as a combination of some of them.
template <class T, class D = Host>
struct Interpolative {
    std::vector<Index> columns;  ///< r of them, zero-based
    Matrix<T, D> X;              ///< r×n; X(:, columns) is the identity
    Report report;               ///< of the QR with column pivoting
};

/// Computes an interpolative decomposition from R of a QR with column pivoting: A P ≈ Q [R₁₁ R₁₂], X = [I R₁₁⁻¹R₁₂] Pᵀ.
///
/// `pivoting` has the rank r or the tolerance. Without either, and at most, r is the numerical rank, `Report::rank` of
/// `qr`. Entries of X are at most `strong_bound` with Pivots::Strong, and hardly ever large with others. The norm of a
/// column of A − A(:, columns) X is what the pivoted QR leaves of it, up to rounding; `docs/pivoting.md` has the
/// bounds. Costs as much as `qr` with these limits, and r²n flops. A is only read. A row-major A and a column-major one
/// give the same bits. Throws as `qr`, and NumericalBreakdown if R overflows.
///
///     auto [columns, X, report] = interpolative<double>(ctx, A.view(), {.relative_tolerance = 1e-6});
template <class T, class D>
Interpolative<T, D> interpolative(Context<D>& ctx, Input<T, D> A, Pivoting pivoting, bool check_finite = true);

/// A ≈ C U R: columns of A, rows of A, and a small matrix between them.
template <class T, class D = Host>
struct CUR {
    std::vector<Index> columns, rows;  ///< r of each: C = A(:, columns) and R = A(rows, :)
    Matrix<T, D> U;                    ///< r×r
    Report report;                     ///< of the QR that chose the columns
};

/// Computes a CUR decomposition by two interpolative ones (Voronin and Martinsson 2017): A ≈ C X, Cᵀ gives the rows,
/// and U = X R⁺ by least squares.
///
/// Limits and costs as for `interpolative`, and 4mr² + 4nr² flops. ‖A − C U R‖ <= (1 + ‖Y‖) ‖A − C X‖ up to rounding
/// errors of u ‖C‖ ‖U‖ ‖R‖, where C = Y C(rows, :). Throws as `interpolative`.
template <class T, class D>
CUR<T, D> cur(Context<D>& ctx, Input<T, D> A, Pivoting pivoting, bool check_finite = true);

}  // namespace quoin
