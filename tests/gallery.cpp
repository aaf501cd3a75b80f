#include "gallery.hpp"

#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

namespace quoin::test {

namespace {

/// The type that a class of matrices will be rounded to, as far as the class depends on it.
struct Precision {
    int exponent;  // of the graded classes
    double u, largest, smallest_normal, smallest_denormal;
};

template <class T>
Precision precision_of() {
    using Limits = std::numeric_limits<T>;
    return {graded_exponent<T>, Limits::epsilon() / 2, Limits::max(), Limits::min(), Limits::denorm_min()};
}

Matrix<double> zeros(Index m, Index n) {
    Matrix<double> A(m, n);
    std::fill_n(A.data(), m * n, 0.0);
    return A;
}

Matrix<double> normal(Index m, Index n, std::mt19937_64& random) {
    Matrix<double> A(m, n);
    std::normal_distribution<double> gaussian;
    std::generate_n(A.data(), m * n, [&] { return gaussian(random); });
    return A;
}

Matrix<double> small_integers(Index m, Index n, std::mt19937_64& random) {
    Matrix<double> A(m, n);
    std::uniform_int_distribution<int> digit(-3, 3);
    std::generate_n(A.data(), m * n, [&] { return digit(random); });
    return A;
}

void check_lapack(lapack_int info, const char* routine) {
    if (info != 0) throw std::runtime_error(std::string(routine) + " failed");
}

/// A = U diag(s) Vᵀ with random orthonormal factors. LAPACK's generator takes a pass over the memory of A for each
/// row and column: large ones are products of blocks.
Matrix<double> singular_values(Index m, Index n, const std::vector<double>& s, std::mt19937_64& random) {
    const Index k = std::min(m, n);
    Matrix<double> A = zeros(m, n);
    if (k == 0) return A;
    if (m * n * k < 100'000'000) {
        std::uniform_int_distribution<lapack_int> seed(0, 2047);
        // The last of the four seeds must be odd.
        lapack_int seeds[4] = {seed(random), seed(random), seed(random), 2 * seed(random) + 1};
        check_lapack(LAPACKE_dlagge(LAPACK_COL_MAJOR, m, n, m - 1, n - 1, s.data(), A.data(), A.ld(), seeds), "dlagge");
        return A;
    }
    std::vector<double> tau(k);
    Matrix<double> V = normal(n, k, random), U = normal(m, k, random);
    check_lapack(LAPACKE_dgeqrf(LAPACK_COL_MAJOR, n, k, V.data(), V.ld(), tau.data()), "dgeqrf");
    check_lapack(LAPACKE_dorgqr(LAPACK_COL_MAJOR, n, k, k, V.data(), V.ld(), tau.data()), "dorgqr");
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < k; ++i) A(i, j) = s[i] * V(j, i);
    }
    check_lapack(LAPACKE_dgeqrf(LAPACK_COL_MAJOR, m, k, U.data(), U.ld(), tau.data()), "dgeqrf");
    check_lapack(LAPACKE_dormqr(LAPACK_COL_MAJOR, 'L', 'N', m, n, k, U.data(), U.ld(), tau.data(), A.data(), A.ld()),
                 "dormqr");
    return A;
}

std::vector<double> geometric(Index k, double kappa) {
    std::vector<double> s(k, 1.0);
    for (Index i = 1; i < k; ++i) s[i] = std::pow(kappa, -double(i) / double(k - 1));
    return s;
}

/// 10^e with e running from `first` (i = 0) to `last` (i = count − 1).
double grade(Index i, Index count, double first, double last) {
    return count < 2 ? 1.0 : std::pow(10.0, first + (last - first) * double(i) / double(count - 1));
}

/// A := diag(f(0), f(1), …) A.
template <class F>
Matrix<double> scale_rows(Matrix<double> A, F f) {
    for (Index i = 0; i < A.rows(); ++i) {
        const double factor = f(i);
        for (Index j = 0; j < A.cols(); ++j) A(i, j) *= factor;
    }
    return A;
}

/// A := A diag(f(0), f(1), …).
template <class F>
Matrix<double> scale_columns(Matrix<double> A, F f) {
    for (Index j = 0; j < A.cols(); ++j) {
        const double factor = f(j);
        for (Index i = 0; i < A.rows(); ++i) A(i, j) *= factor;
    }
    return A;
}

/// A with a_ij = f(i, j).
template <class F>
Matrix<double> by_entry(Index m, Index n, F f) {
    Matrix<double> A(m, n);
    for (Index j = 0; j < n; ++j)
        for (Index i = 0; i < m; ++i) A(i, j) = f(i, j);
    return A;
}

/// A with a_ij kept where keep(i, j), zero elsewhere.
template <class F>
Matrix<double> masked(Matrix<double> A, F keep) {
    for (Index j = 0; j < A.cols(); ++j)
        for (Index i = 0; i < A.rows(); ++i)
            if (!keep(i, j)) A(i, j) = 0;
    return A;
}

/// H₁H₂…H_k I, H_j = I − 2 v vᵀ/vᵀv, with v_j = [0; 1; −a; b]: equal negative entries −a down to row k, so that the
/// unit triangle of V has an inverse of exponential size, and equal positive entries b below it.
Matrix<double> growing_reflectors(Index m, Index n) {
    const Index k = std::min(m, n);
    Matrix<double> Q = by_entry(m, n, [](Index i, Index j) { return i == j ? 1.0 : 0.0; });
    std::vector<double> v(m);
    for (Index j = k - 1; j >= 0; --j) {
        const double inside = double(k - 1 - j), outside = double(m - k);
        double vv = 0;
        for (Index i = 0; i < m; ++i) {
            v[i] = i < j    ? 0
                   : i == j ? 1
                   : i < k  ? -std::sqrt(0.5 / inside)
                            : std::sqrt((j + 1 < k ? 0.4 : 0.9) / outside);
            vv += v[i] * v[i];
        }
        for (Index c = 0; c < n; ++c) {
            double vq = 0;
            for (Index i = j; i < m; ++i) vq += v[i] * Q(i, c);
            for (Index i = j; i < m; ++i) Q(i, c) -= 2 / vv * vq * v[i];
        }
    }
    return Q;
}

double kahan_entry(Index i, Index j) {
    // diag(1, s, s², …) (unit upper triangle with −c above the diagonal), s = sin 1.2, c = cos 1.2
    const double row_scale = std::pow(std::sin(1.2), double(i));
    return i > j ? 0.0 : i == j ? row_scale : -std::cos(1.2) * row_scale;
}

Matrix<double> near_collinear(Index m, Index n, double noise, std::mt19937_64& random) {
    const Matrix<double> base = normal(m, 1, random);
    Matrix<double> A = normal(m, n, random);
    for (Index j = 0; j < n; ++j)
        for (Index i = 0; i < m; ++i) A(i, j) = base(i, 0) + noise * A(i, j);
    return A;
}

Matrix<double> product(const Matrix<double>& B, const Matrix<double>& C) {
    Matrix<double> A = zeros(B.rows(), C.cols());
    for (Index j = 0; j < C.cols(); ++j)
        for (Index l = 0; l < B.cols(); ++l)
            for (Index i = 0; i < B.rows(); ++i) A(i, j) += B(i, l) * C(l, j);
    return A;
}

Matrix<double> generate(Gallery matrix_class, Index m, Index n, const Precision& type, std::mt19937_64& random) {
    const Index k = std::min(m, n);
    const double e = type.exponent;
    const auto all = [](Index) { return true; };
    const auto some_columns = [&](auto keep) {
        return masked(normal(m, n, random), [&](Index, Index j) { return keep(j); });
    };
    switch (matrix_class) {
        case Gallery::RandomNormal: return some_columns(all);
        case Gallery::RankDeficientExact: {
            const Index rank = std::max<Index>(1, k / 2);
            return product(small_integers(m, rank, random), small_integers(rank, n, random));
        }
        case Gallery::RankDeficientNumerical: {
            std::vector<double> s(k, 1.0);
            std::fill(s.begin() + k / 2, s.end(), 0.1 * type.u);
            return singular_values(m, n, s, random);
        }
        case Gallery::ZeroFirstColumn: return some_columns([](Index j) { return j != 0; });
        case Gallery::ZeroLastColumn: return some_columns([n](Index j) { return j != n - 1; });
        case Gallery::ZeroSomeColumns: return some_columns([](Index j) { return j % 3 != 1; });
        case Gallery::Zero: return zeros(m, n);
        case Gallery::DuplicateColumns: {
            const Matrix<double> distinct = normal(m, (n + 1) / 2, random);
            return by_entry(m, n, [&](Index i, Index j) { return distinct(i, j / 2); });
        }
        case Gallery::GradedColumnsDown:
            return scale_columns(normal(m, n, random), [&](Index j) { return grade(j, n, e, -e); });
        case Gallery::GradedColumnsUp:
            return scale_columns(normal(m, n, random), [&](Index j) { return grade(j, n, -e, e); });
        case Gallery::GradedRowsDown:
            return scale_rows(normal(m, n, random), [&](Index i) { return grade(i, m, e, -e); });
        case Gallery::GradedRowsUp:
            return scale_rows(normal(m, n, random), [&](Index i) { return grade(i, m, -e, e); });
        case Gallery::GradedBoth:
            return scale_rows(scale_columns(normal(m, n, random), [&](Index j) { return grade(j, n, e / 2, -e / 2); }),
                              [&](Index i) { return grade(i, m, e / 2, -e / 2); });
        case Gallery::Kahan: return by_entry(m, n, [&](Index i, Index j) { return kahan_entry(i % n, j); });
        case Gallery::Hilbert: return by_entry(m, n, [](Index i, Index j) { return 1.0 / double(i + j + 1); });
        case Gallery::Vandermonde:
            return by_entry(m, n, [m](Index i, Index j) { return std::pow(double(i + 1) / double(m), double(j)); });
        case Gallery::NearCollinear4: return near_collinear(m, n, 1e-4, random);
        case Gallery::NearCollinear12: return near_collinear(m, n, 1e-12, random);
        case Gallery::ClusteredScales:
            return scale_columns(normal(m, n, random), [](Index j) { return std::pow(10.0, -4.0 * double(j % 4)); });
        case Gallery::Banded:
            return masked(normal(m, n, random), [](Index i, Index j) { return i - j <= 2 && j - i <= 3; });
        case Gallery::RowScaled: {
            std::uniform_real_distribution<double> exponent(-6, 6);
            return scale_rows(normal(m, n, random), [&](Index) { return std::pow(10.0, exponent(random)); });
        }
        case Gallery::UpperTriangular: return masked(normal(m, n, random), [](Index i, Index j) { return i <= j; });
        case Gallery::LowerTriangular: return masked(normal(m, n, random), [](Index i, Index j) { return i >= j; });
        case Gallery::Identity: return by_entry(m, n, [](Index i, Index j) { return i == j ? 1.0 : 0.0; });
        case Gallery::PermutedIdentity: {
            std::vector<Index> row_of(m);
            for (Index i = 0; i < m; ++i) row_of[i] = i;
            std::shuffle(row_of.begin(), row_of.end(), random);
            return by_entry(m, n, [&](Index i, Index j) { return row_of[i] == j ? 1.0 : 0.0; });
        }
        case Gallery::Orthogonal: return singular_values(m, n, geometric(k, 1.0), random);
        case Gallery::OrthogonalGrowth: return growing_reflectors(m, n);
        case Gallery::NearOverflow: {
            // ‖A‖_F ≈ √(mn), a norm that R and every product with Q must be able to hold
            const double scale = type.largest / 1024 / std::sqrt(double(std::max<Index>(1, m * n)));
            return scale_columns(normal(m, n, random), [&](Index) { return scale; });
        }
        case Gallery::NearUnderflow:
            return scale_columns(normal(m, n, random), [&](Index) { return type.smallest_normal; });
        case Gallery::Denormal:
            return scale_columns(normal(m, n, random), [&](Index) { return 1000 * type.smallest_denormal; });
        case Gallery::SingleLargeEntry: {
            Matrix<double> A = normal(m, n, random);
            if (k > 0) A(m / 2, n / 2) = std::pow(10.0, e);
            return A;
        }
        case Gallery::GeometricSpectrum: return singular_values(m, n, geometric(k, 0.1 / type.u), random);
    }
    throw std::invalid_argument("unknown class of matrices");
}

template <class T>
Matrix<T> rounded(const Matrix<double>& A) {
    Matrix<T> B(A.rows(), A.cols());
    std::transform(A.data(), A.data() + A.rows() * A.cols(), B.data(), [](double x) { return static_cast<T>(x); });
    return B;
}

}  // namespace

const std::vector<Gallery>& gallery() {
    static const std::vector<Gallery> classes = [] {
        std::vector<Gallery> all;
        for (int c = 0; c <= static_cast<int>(Gallery::GeometricSpectrum); ++c) all.push_back(static_cast<Gallery>(c));
        return all;
    }();
    return classes;
}

std::string to_string(Gallery matrix_class) {
    switch (matrix_class) {
        case Gallery::RandomNormal: return "random_normal";
        case Gallery::RankDeficientExact: return "rank_deficient_exact";
        case Gallery::RankDeficientNumerical: return "rank_deficient_numerical";
        case Gallery::ZeroFirstColumn: return "zero_first_column";
        case Gallery::ZeroLastColumn: return "zero_last_column";
        case Gallery::ZeroSomeColumns: return "zero_some_columns";
        case Gallery::Zero: return "zero";
        case Gallery::DuplicateColumns: return "duplicate_columns";
        case Gallery::GradedColumnsDown: return "graded_columns_down";
        case Gallery::GradedColumnsUp: return "graded_columns_up";
        case Gallery::GradedRowsDown: return "graded_rows_down";
        case Gallery::GradedRowsUp: return "graded_rows_up";
        case Gallery::GradedBoth: return "graded_both";
        case Gallery::Kahan: return "kahan";
        case Gallery::Hilbert: return "hilbert";
        case Gallery::Vandermonde: return "vandermonde";
        case Gallery::NearCollinear4: return "near_collinear_1e4";
        case Gallery::NearCollinear12: return "near_collinear_1e12";
        case Gallery::ClusteredScales: return "clustered_scales";
        case Gallery::Banded: return "banded";
        case Gallery::RowScaled: return "row_scaled";
        case Gallery::UpperTriangular: return "upper_triangular";
        case Gallery::LowerTriangular: return "lower_triangular";
        case Gallery::Identity: return "identity";
        case Gallery::PermutedIdentity: return "permuted_identity";
        case Gallery::Orthogonal: return "orthogonal";
        case Gallery::OrthogonalGrowth: return "orthogonal_growth";
        case Gallery::NearOverflow: return "near_overflow";
        case Gallery::NearUnderflow: return "near_underflow";
        case Gallery::Denormal: return "denormal";
        case Gallery::SingleLargeEntry: return "single_large_entry";
        case Gallery::GeometricSpectrum: return "geometric_spectrum";
    }
    throw std::invalid_argument("unknown class of matrices");
}

template <class T>
Matrix<T> generate(Gallery matrix_class, Index m, Index n, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    return rounded<T>(generate(matrix_class, m, n, precision_of<T>(), random));
}

template <class T>
Matrix<T> random_normal(Index m, Index n, std::uint64_t seed) {
    return generate<T>(Gallery::RandomNormal, m, n, seed);
}

template <class T>
Matrix<T> with_singular_values(Index m, Index n, const std::vector<double>& s, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    return rounded<T>(singular_values(m, n, s, random));
}

template <class T>
Matrix<T> with_condition(Index m, Index n, double kappa, std::uint64_t seed) {
    return with_singular_values<T>(m, n, geometric(std::min(m, n), kappa), seed);
}

template <class T>
Matrix<T> with_cosine(Index m, Index n, double x, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Matrix<double> A = singular_values(m, n, std::vector<double>(n, 1.0), random);
    for (Index i = 0; i < m; ++i) A(i, n - 1) = x * A(i, 0) + std::sqrt(1 - x * x) * A(i, n - 1);
    for (Index j = 0; j < n; ++j) {
        const double norm = std::pow(10.0, 10 - 20.0 * static_cast<double>(j) / static_cast<double>(n));
        for (Index i = 0; i < m; ++i) A(i, j) *= norm;
    }
    return rounded<T>(A);
}

template Matrix<float> generate(Gallery, Index, Index, std::uint64_t);
template Matrix<double> generate(Gallery, Index, Index, std::uint64_t);
template Matrix<float> random_normal(Index, Index, std::uint64_t);
template Matrix<double> random_normal(Index, Index, std::uint64_t);
template Matrix<float> with_singular_values(Index, Index, const std::vector<double>&, std::uint64_t);
template Matrix<double> with_singular_values(Index, Index, const std::vector<double>&, std::uint64_t);
template Matrix<float> with_condition(Index, Index, double, std::uint64_t);
template Matrix<double> with_condition(Index, Index, double, std::uint64_t);
template Matrix<float> with_cosine(Index, Index, double, std::uint64_t);
template Matrix<double> with_cosine(Index, Index, double, std::uint64_t);

}  // namespace quoin::test
