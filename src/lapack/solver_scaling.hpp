#pragma once

// Scaling of the matrices of LAPACK's least squares drivers, within the limits of the reference.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "algorithms/one_matrix/range_scaling.hpp"
#include "algorithms/shared/column_scaling.hpp"

namespace quoin::lapack {

/// The reference scales a matrix whose largest entry is 2^e if |e| is at least this: smlnum = tiny / eps, bignum.
template <class T>
constexpr int max_exponent = 1 - std::numeric_limits<T>::min_exponent - (std::numeric_limits<T>::digits - 1);

/// Returns ilogb of A's largest entry if it is beyond ±max_exponent, 0 if not or if A holds NaN or Inf, and nothing if
/// A = 0.
template <class T>
std::optional<int> exponent_of(Context<Host>& ctx, MatrixView<const T> A) {
    const EntryNorms norms = entry_norms<T>(ctx, A);
    if (norms.sum == 0) return {};
    return std::isnan(norms.sum) ? 0 : range_exponent<T>(norms.largest, max_exponent<T>);
}

/// A := 2^e A
template <class T>
void scale(Context<Host>& ctx, int e, MatrixView<T> A) {
    if (e != 0) ColumnScaling<T, Host>(A.cols, -e).scale(ctx, A);
}

template <class T>
void set_zero(MatrixView<T> A) {
    for (Index j = 0; j < A.cols; ++j) std::fill_n(A.at(0, j), A.rows, T(0));
}

}  // namespace quoin::lapack
