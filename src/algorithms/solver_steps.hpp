#pragma once

// The steps that the solvers share around a QR factorization.

#include <algorithm>
#include <limits>

#include "primitives.hpp"

namespace quoin {

/// Throws NonFiniteEntry with the first NaN or Inf of A in column-major order.
template <class T, class D>
void require_finite(Context<D>& ctx, MatrixView<const T, D> A, const char* name = "the matrix") {
    Matrix<int, D> exponents(ctx, A.cols, 1);
    Matrix<Scan, D> scanned(ctx, 1, 1);
    scan<T>(ctx, A, std::numeric_limits<int>::max(), exponents.view(), scanned.view());
    const Scan found = read_scan(ctx, scanned.view());
    if (found.bad_row >= 0) throw NonFiniteEntry(found.bad_row, found.bad_col, name);
}

/// Aᵀ = QR, the entries of A checked under their own indices.
template <class T, class D>
QR<T, D> qr_of_transpose(Context<D>& ctx, MatrixView<const T, D> A, Options options) {
    if (options.check_finite) require_finite(ctx, A);
    options.check_finite = false;
    Matrix<T, D> At(A.cols, A.rows);
    transpose<T>(ctx, A, At.view());
    const Plan plan = plan_qr<T>(ctx, At.rows(), At.cols(), options);
    return qr<T, D>(ctx, std::move(At), plan);
}

/// For a step of a stream, [R; block] with m rows: reflectors alone, whatever the matrix, over a tree unless it is wide.
inline Options streaming_options(Index m, Index n, QForm q) {
    Options options;
    options.method = m >= n ? Method::TSQR : Method::BlockedHouseholder;
    options.q = q;
    options.check_finite = false;
    return options;
}

/// A copy of a small A.
template <class T>
Matrix<T, Host> copy_of(MatrixView<const T, Host> A) {
    Matrix<T, Host> B(A.rows, A.cols);
    if (A.empty()) return B;
    for (Index j = 0; j < A.cols; ++j) std::copy_n(A.at(0, j), A.rows, B.view().at(0, j));
    return B;
}

/// A := 0.
template <class T, class D>
void set_zero(Context<D>& ctx, MatrixView<T, D> A) {
    // the diagonal that starts beyond the last column
    set_identity<T>(ctx, A.cols, A);
}

/// ‖x‖₂ of a column x (any number of rows), without overflow or underflow on the way.
template <class T>
T column_norm(MatrixView<const T, Host> x);

/// Throws RankDeficient when 1/κ₁(RD) <= rcond, where the diagonal D scales the columns of R (k×k) to unit norm.
///
/// rcond < 0 stands for 10u. The m×n matrix is what the message speaks of: R is its factor, or its transpose's if m < n.
template <class T>
void require_full_rank(Context<Host>& ctx, MatrixView<const T, Host> R, Index m, Index n, double rcond);

}  // namespace quoin
