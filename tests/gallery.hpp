#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "quoin/matrix.hpp"

namespace quoin::test {

/// Classes of matrices on which a QR factorization goes wrong when something is wrong with it.
/// "Graded" runs over 10^±300 in double and 10^±30 in float, which `graded_exponent<T>` names.
enum class Gallery {
    RandomNormal,
    RankDeficientExact,      ///< product of integer matrices of rank max(1, k/2), without a rounding
    RankDeficientNumerical,  ///< half of the singular values at 0.1·u
    ZeroFirstColumn,
    ZeroLastColumn,
    ZeroSomeColumns,  ///< every third
    Zero,
    DuplicateColumns,  ///< in pairs, bit for bit
    GradedColumnsDown,
    GradedColumnsUp,
    GradedRowsDown,
    GradedRowsUp,
    GradedBoth,  ///< rows and columns, each over half of the exponents
    Kahan,       ///< Kahan's triangle, stacked until the rows are filled
    Hilbert,
    Vandermonde,      ///< nodes (i + 1)/m
    NearCollinear4,   ///< one column, repeated with 1e-4 noise
    NearCollinear12,  ///< one column, repeated with 1e-12 noise
    ClusteredScales,  ///< column norms in clusters at 1, 1e-4, 1e-8, 1e-12
    Banded,           ///< two diagonals below, three above
    RowScaled,        ///< rows at random scales over 10^±6
    UpperTriangular,
    LowerTriangular,
    Identity,
    PermutedIdentity,
    Orthogonal,  ///< orthonormal columns (rows where m < n), Haar
    /// orthonormal columns, the inverse of whose Q₁ − S grows with n as 2ⁿ does: no signed LU is stable
    OrthogonalGrowth,
    NearOverflow,       ///< ‖A‖_F is 1/1024 of the largest number: every square overflows
    NearUnderflow,      ///< entries on both sides of the smallest normal number
    Denormal,           ///< entries of about 1000 times the smallest denormal
    SingleLargeEntry,   ///< one entry of 10^(graded exponent) in the middle of a normal matrix
    GeometricSpectrum,  ///< singular values in geometric progression, κ = 0.1/u
};

/// Every class, in the order above.
const std::vector<Gallery>& gallery();
/// "random_normal", "graded_rows_up", ...
std::string to_string(Gallery matrix_class);

template <class T>
inline constexpr int graded_exponent = std::is_same_v<T, double> ? 300 : 30;

/// An m×n member of the class, the same for the same arguments.
template <class T>
Matrix<T> generate(Gallery matrix_class, Index m, Index n, std::uint64_t seed = 1);

/// 2^e times small integers, exact from the denormals on.
template <class T>
Matrix<T> integers(Index m, Index n, int e) {
    Matrix<T> A(m, n);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i)
            A(i, j) = std::ldexp(static_cast<T>((7 * i * i + 5 * i * j + 3 * j + 1) % 17 - 8), e);
    }
    return A;
}

/// Independent standard normal entries.
template <class T>
Matrix<T> random_normal(Index m, Index n, std::uint64_t seed = 1);

/// U diag(s) Vᵀ with Haar-distributed U and V, rounded to T; s has min(m, n) values.
template <class T>
Matrix<T> with_singular_values(Index m, Index n, const std::vector<double>& s, std::uint64_t seed = 1);

/// Singular values from 1 down to 1/kappa in geometric progression.
template <class T>
Matrix<T> with_condition(Index m, Index n, double kappa, std::uint64_t seed = 1);

/// Orthogonal columns but for the cosine x of the first and the last, with norms from 1e10 down to 1e-10: of columns of
/// norm 1, AᵀA has eigenvalues 1 ± x beside ones.
template <class T>
Matrix<T> with_cosine(Index m, Index n, double x, std::uint64_t seed = 1);

}  // namespace quoin::test
