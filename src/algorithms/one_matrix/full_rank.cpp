// Condition of a triangular factor, and the message that names its dependent columns.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "algorithms/one_matrix/full_rank.hpp"
#include "algorithms/shared/copies.hpp"
#include "devices.hpp"

namespace quoin {

void require_options(const LeastSquaresOptions& solver, bool offers_mixed_precision) {
    if (solver.rcond != -1 && !(solver.rcond >= 0 && solver.rcond <= 1))
        throw InvalidArgument(fmt::format("rcond must be from 0 to 1 (or -1: 10u), and is {}", solver.rcond));
    if (solver.mixed_precision && !offers_mixed_precision)
        throw InvalidArgument("mixed_precision is of one matrix in memory that is not factored yet: leave it out");
}

namespace {

/// Returns the columns that take part in the dependence of the columns of R, which are scaled to unit norm: the columns
/// with a weight of at least 1% of the largest in the x that minimises ‖R D x‖/‖x‖. Two steps of inverse iteration, in
/// double, from a vector that no column is likely to be orthogonal to.
template <class T>
std::vector<Index> dependent_columns(const Matrix<T>& R) {
    constexpr double min_weight = 0.01, min_pivot = 1e-30;
    const Index n = R.cols();
    Matrix<double> U(n, n);
    for (Index j = 0; j < n; ++j) {
        double largest = 0, squares = 0;
        for (Index i = 0; i <= j; ++i) largest = std::max(largest, std::abs(static_cast<double>(R(i, j))));
        for (Index i = 0; i <= j; ++i) squares += std::pow(static_cast<double>(R(i, j)) / largest, 2);
        for (Index i = 0; i <= j; ++i) U(i, j) = static_cast<double>(R(i, j)) / largest / std::sqrt(squares);
        if (std::abs(U(j, j)) < min_pivot) U(j, j) = min_pivot;
    }
    std::vector<double> x(n);
    for (Index j = 0; j < n; ++j) x[j] = 1 + std::sin(static_cast<double>(j));
    const auto divide = [&](Index j) {
        x[j] /= U(j, j);
        // many small pivots would overflow one after the other
        if (const double size = std::abs(x[j]); size > 1e100)
            for (double& value : x) value /= size;
    };
    for (int step = 0; step < 2; ++step) {
        // x := U⁻¹ U⁻ᵀ x
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < j; ++i) x[j] -= U(i, j) * x[i];
            divide(j);
        }
        for (Index j = n; j-- > 0;) {
            divide(j);
            for (Index i = 0; i < j; ++i) x[i] -= U(i, j) * x[j];
        }
    }
    double largest = 0;
    for (const double value : x) largest = std::max(largest, std::abs(value));
    std::vector<Index> columns;
    for (Index j = 0; j < n; ++j) {
        if (std::abs(x[j]) >= min_weight * largest) columns.push_back(j);
    }
    return columns;
}

/// Returns "0, 3 and 4", or the first eight columns and the number of the other ones.
std::string listed(const std::vector<Index>& columns) {
    constexpr std::size_t most = 8;
    const std::size_t shown = std::min(columns.size(), most), more = columns.size() - shown;
    const auto last = columns.begin() + static_cast<std::ptrdiff_t>(more > 0 ? shown : shown - 1);
    const std::string text = fmt::format("{}", fmt::join(columns.begin(), last, ", "));
    if (more > 0) return fmt::format("{} and {} others", text, more);
    return columns.size() == 1 ? fmt::format("{}", columns[0]) : fmt::format("{} and {}", text, columns.back());
}

/// Throws RankDeficient. `zero_column` of R is zero, or −1; `estimate` is at or below `tolerance`.
template <class T, class D>
[[noreturn]] void refuse_deficient(Context<D>& ctx, MatrixView<const T, D> R, Index m, Index n, Index zero_column,
                                   double estimate, double tolerance, std::span<const Index> order) {
    if (zero_column >= 0) {
        throw RankDeficient(
            fmt::format("{} {} of the {}x{} matrix is zero: its rank is not full", m < n ? "row" : "column",
                        order.empty() ? zero_column : order[zero_column], m, n),
            0);
    }
    std::vector<Index> columns = dependent_columns(host_copy_of<T, D>(ctx, R));
    if (!order.empty()) {
        for (Index& j : columns) j = order[j];
        std::sort(columns.begin(), columns.end());
    }
    throw RankDeficient(
        fmt::format("{} {} of the {}x{} matrix are {}linearly dependent (reciprocal condition number {:.1e} <= rcond "
                    "{:.1e}): drop one of them, or accept the solution of least norm",
                    m < n ? "rows" : "columns", listed(columns), m, n,
                    estimate <= default_tolerance<T> ? "" : "nearly ", estimate, tolerance),
        estimate);
}

}  // namespace

template <class T, class D>
RankTest test_rank(Context<D>& ctx, MatrixView<const T, D> R, Index m, Index n, const LeastSquaresOptions& solver,
                   LeastSquares<T, D>& solution, bool checked, double perturbed_condition,
                   std::span<const Index> order) {
    const Index k = R.cols;
    const TriangleInspection found = inspect_triangle<T>(ctx, R);
    solution.condition = found.condition;
    if (std::isnan(found.condition)) {
        if (!checked) return {};
        throw NumericalBreakdown(
            fmt::format(
                "the triangular factor of the {}x{} matrix holds NaN or Inf: its entries are too large for their "
                "norm",
                m, n),
            0);
    }
    RankTest test{.rank = k, .tolerance = solver.rcond == -1 ? default_tolerance<T> : solver.rcond};
    std::vector<Real<T>> s(static_cast<std::size_t>(k));
    const bool is_singular = std::isinf(found.scaled_condition);
    // small singular values may underflow
    const bool is_regular = solver.rcond == 0 && !is_singular;
    const bool by_values = solver.rcond != -1 && !is_regular && !has_full_rank(found.condition, k, solver.rcond);
    if (by_values || solver.singular_values) small_svd<T>(ctx, copy_of<T, D>(ctx, R).view(), s, {}, {});
    double estimate = 1 / std::max(found.scaled_condition, perturbed_condition);
    if (by_values && k > 0) {
        const double largest = static_cast<double>(s[0]);
        const Index above = std::count_if(s.begin(), s.end(), [&](Real<T> x) { return x > solver.rcond * largest; });
        test.rank = std::min(above, is_singular ? k - 1 : k);
        test.is_full = test.rank == k;
        estimate = largest > 0 ? static_cast<double>(s[k - 1]) / largest : 0;
    } else if (solver.rcond == -1 && k > 0 && !(estimate > default_tolerance<T>)) {
        test.is_full = false;
        test.rank = -1;
        // a perturbed matrix has errors of 8√k u in each of k columns
        test.tolerance = rounding_of_r<T>(perturbed_condition < 0 ? k : 8 * k);
    }
    if (!test.is_full && solver.refuse_deficient) {
        const double compared = solver.rcond == -1 ? default_tolerance<T> : solver.rcond;
        refuse_deficient<T, D>(ctx, R, m, n, found.zero_column, estimate, compared, order);
    }
    solution.rank = test.rank;
    solution.tolerance = test.tolerance;
    if (solver.singular_values) solution.singular_values = std::move(s);
    return test;
}

#define QUOIN_INSTANTIATE(T, D) template decltype(test_rank<T, D>) test_rank<T, D>;
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
