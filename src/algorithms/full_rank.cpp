#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "algorithms/solver_steps.hpp"
#include "devices.hpp"

namespace quoin {

template <class T>
double rank_tolerance(double rcond) {
    if (rcond == -1) return 10 * Scalar<T>::u;
    if (rcond >= 0 && rcond <= 1) return rcond;
    throw InvalidArgument(fmt::format("rcond must be from 0 to 1 (or -1: 10u), and is {}", rcond));
}
template double rank_tolerance<float>(double);
template double rank_tolerance<double>(double);

template <class T, class D>
double require_full_rank(Context<D>& ctx, MatrixView<const T, D> R, Index m, Index n, double rcond, bool checked,
                         double perturbed_condition) {
    const TriangleInspection found = inspect_triangle<T>(ctx, R);
    if (std::isnan(found.condition)) {
        if (!checked) return found.condition;
        throw NumericalBreakdown(
            fmt::format(
                "the triangular factor of the {}x{} matrix holds NaN or Inf: its entries are too large for their "
                "norm",
                m, n),
            0);
    }
    if (found.zero_column >= 0) {
        throw RankDeficient(fmt::format("{} {} of the {}x{} matrix is zero: its rank is not full",
                                        m < n ? "row" : "column", found.zero_column, m, n),
                            0);
    }
    const double estimate = 1 / std::max(found.scaled_condition, perturbed_condition);
    if (estimate <= rcond) {
        throw RankDeficient(
            fmt::format("the {}x{} matrix is numerically rank-deficient: with {} of unit norm its reciprocal condition "
                        "number is about {:.1e}, and must be above {:.1e}",
                        m, n, m < n ? "rows" : "columns", estimate, rcond),
            estimate);
    }
    return found.condition;
}

#define QUOIN_INSTANTIATE(T, D) \
    template double require_full_rank<T, D>(Context<D>&, MatrixView<const T, D>, Index, Index, double, bool, double);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
