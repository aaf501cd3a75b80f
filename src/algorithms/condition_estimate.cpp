#include <cblas.h>
#include <fmt/format.h>
#include <lapacke.h>

#include <cmath>
#include <limits>

#include "algorithms/factorization.hpp"
#include "algorithms/instantiate.hpp"
#include "algorithms/solver_steps.hpp"
#include "quoin/least_squares.hpp"

namespace quoin {
namespace {

float nrm2(int n, const float* x) { return cblas_snrm2(n, x, 1); }
double nrm2(int n, const double* x) { return cblas_dnrm2(n, x, 1); }

/// The upper triangle of R in double, so that 1/κ₁ of an f32 matrix may be far below f32's u.
template <class T>
Matrix<double> widened_triangle(MatrixView<const T, Host> R) {
    Matrix<double> S(R.cols, R.cols);
    for (Index j = 0; j < R.cols; ++j) {
        for (Index i = 0; i <= j; ++i) S(i, j) = static_cast<double>(R(i, j));
    }
    return S;
}

/// Estimate of 1/κ₁(S), 0 where S is singular; the lower triangle is not looked at. NaN where S holds NaN.
double reciprocal_condition(const Matrix<double>& S) {
    double rcond = 0;
    const auto info = LAPACKE_dtrcon(LAPACK_COL_MAJOR, '1', 'U', 'N', static_cast<lapack_int>(S.rows()), S.data(),
                                     static_cast<lapack_int>(S.ld()), &rcond);
    if (info == LAPACK_WORK_MEMORY_ERROR) throw OutOfMemory("condition_estimate: no memory for 4n numbers");
    return info == 0 ? rcond : std::numeric_limits<double>::quiet_NaN();
}

/// ‖x‖₂ of a column x of any number of rows.
template <class T>
T column_norm(MatrixView<const T, Host> x) {
    // ‖x‖ = hypot(‖x₁‖, ‖x₂‖, …): the BLAS counts in 32 bits
    const Index longest = Index(1) << 30;
    T norm = 0;
    for (Index i = 0; i < x.rows; i += longest) {
        norm = std::hypot(norm, nrm2(static_cast<int>(std::min(longest, x.rows - i)), x.at(i, 0)));
    }
    return norm;
}

}  // namespace

template <class T>
void column_norms(Context<Host>&, MatrixView<const T, Host> A, std::span<T> norms) {
    for (Index j = 0; j < A.cols; ++j) norms[j] = column_norm<T>(A.col_block({j, j + 1}));
}

template <class T>
double condition_estimate(Context<Host>&, MatrixView<const T, Host> R) {
    const Index n = R.cols;
    if (R.rows != n) {
        throw InvalidArgument(fmt::format("condition_estimate: R must be square, and is {}x{}", R.rows, n));
    }
    Matrix<double> S = widened_triangle(R);
    double largest = 0;
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i <= j; ++i) {
            if (!std::isfinite(S(i, j))) return std::numeric_limits<double>::quiet_NaN();
            largest = std::max(largest, std::abs(S(i, j)));
        }
    }
    if (largest > 0) {
        // κ(2⁻ᵉR) = κ(R), and a column sum of 2⁻ᵉR does not overflow
        const int e = std::ilogb(largest);
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i <= j; ++i) S(i, j) = std::scalbn(S(i, j), -e);
        }
    }
    const double rcond = reciprocal_condition(S);
    return rcond > 0 ? 1 / rcond : std::numeric_limits<double>::infinity();
}

template <class T>
double scaled_condition_estimate(Context<Host>&, MatrixView<const T, Host> R) {
    Matrix<double> S = widened_triangle(R);
    for (Index j = 0; j < R.cols; ++j) {
        const double norm = column_norm<double>(S.view().block({0, j + 1}, {j, j + 1}));
        if (norm == 0) return std::numeric_limits<double>::infinity();
        for (Index i = 0; i <= j; ++i) S(i, j) /= norm;
    }
    const double rcond = reciprocal_condition(S);
    return rcond == 0 ? std::numeric_limits<double>::infinity() : 1 / rcond;
}

template <class T>
double inverse_norm_estimate(Context<Host>&, MatrixView<const T, Host> LU) {
    if (LU.rows == 0) return 0;
    Matrix<double> X(LU.rows, LU.cols);
    for (Index j = 0; j < LU.cols; ++j) {
        for (Index i = 0; i < LU.rows; ++i) X(i, j) = static_cast<double>(LU(i, j));
    }
    // gecon returns 1/(‖LU‖ ‖(LU)⁻¹‖) for the norm of LU that it is told
    double reciprocal = 0;
    const auto info = LAPACKE_dgecon(LAPACK_COL_MAJOR, '1', static_cast<lapack_int>(X.rows()), X.data(),
                                     static_cast<lapack_int>(X.ld()), 1.0, &reciprocal);
    if (info == LAPACK_WORK_MEMORY_ERROR) throw OutOfMemory("inverse_norm_estimate: no memory for 4n numbers");
    return info == 0 && reciprocal > 0 ? 1 / reciprocal : std::numeric_limits<double>::infinity();
}

template <class T>
TriangleInspection inspect_triangle(Context<Host>& ctx, MatrixView<const T, Host> R) {
    TriangleInspection found;
    for (Index j = R.cols; j-- > 0;) {
        if (column_norm<T>(R.block({0, j + 1}, {j, j + 1})) == 0) found.zero_column = j;
    }
    found.condition = condition_estimate<T>(ctx, R);
    found.scaled_condition = scaled_condition_estimate<T>(ctx, R);
    return found;
}

template <class T, class D>
double require_full_rank(Context<D>& ctx, MatrixView<const T, D> R, Index m, Index n, double rcond) {
    if (rcond < 0) rcond = 10 * std::numeric_limits<T>::epsilon() / 2;
    const TriangleInspection found = inspect_triangle<T>(ctx, R);
    if (found.zero_column >= 0) {
        throw RankDeficient(fmt::format("{} {} of the {}x{} matrix is zero: its rank is not full",
                                        m < n ? "row" : "column", found.zero_column, m, n),
                            0);
    }
    const double estimate = 1 / found.scaled_condition;
    if (estimate <= rcond) {
        throw RankDeficient(
            fmt::format("the {}x{} matrix is numerically rank-deficient: with {} of unit norm its reciprocal condition "
                        "number is about {:.1e}, and must be above {:.1e}",
                        m, n, m < n ? "rows" : "columns", estimate, rcond),
            estimate);
    }
    return found.condition;
}

#define QUOIN_INSTANTIATE(T, D)                                                        \
    template void column_norms<T>(Context<D>&, MatrixView<const T, D>, std::span<T>);  \
    template double condition_estimate<T>(Context<D>&, MatrixView<const T, D>);        \
    template double scaled_condition_estimate<T>(Context<D>&, MatrixView<const T, D>); \
    template double inverse_norm_estimate<T>(Context<D>&, MatrixView<const T, D>);     \
    template TriangleInspection inspect_triangle<T>(Context<D>&, MatrixView<const T, D>);
QUOIN_FOR_EACH_HOST_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

#define QUOIN_INSTANTIATE(T, D) \
    template double require_full_rank<T, D>(Context<D>&, MatrixView<const T, D>, Index, Index, double);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
