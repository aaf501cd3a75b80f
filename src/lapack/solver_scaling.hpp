#pragma once

// Scaling of the matrices of LAPACK's least squares drivers, within the limits of the reference.

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

/// 2⁻ᵃ A and 2⁻ᵇ B, whose solution is 2^(a−b) X.
struct ScaledProblem {
    int a, b;
    template <class T>
    void unscale(Context<Host>& ctx, MatrixView<T> X) const {
        scale(ctx, b - a, X);
    }
};

/// Scales A and the right-hand sides B, each by itself. Returns nothing if A = 0, and leaves both as they are.
template <class T>
std::optional<ScaledProblem> scale_problem(Context<Host>& ctx, MatrixView<T> A, MatrixView<T> B) {
    const std::optional<int> a = exponent_of<T>(ctx, A);
    if (!a) return {};
    const int b = exponent_of<T>(ctx, B).value_or(0);
    scale(ctx, -*a, A);
    scale(ctx, -b, B);
    return ScaledProblem{*a, b};
}

}  // namespace quoin::lapack
