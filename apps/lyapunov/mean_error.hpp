#pragma once

#include <span>
#include <vector>

#include "quoin/apps/lyapunov.hpp"

namespace quoin {

/// The error of the sum of a series, from its expectation.
struct SumError {
    double error = 0;       ///< standard error
    double half_width = 0;  ///< of the 95% interval
    bool resolved = true;   ///< false if correlations outlast the longest batches of the series, without a bound
};

/// The error of Σ y_j of G batches y_j whose sums follow a moving average of order 1, y_j = μ + e_j − θ e_{j−1}, e_j of
/// variance s². Its variance is
///
///     V(θ) = s² (G (1 − θ)² + 2θ)
///
/// Independent batches have θ = 0. If y_j is a difference g_{j+1} − g_j of a stationary g, such as the growth along the
/// flow, θ = 1 and V stays bounded, so that the error of the mean is O(1/T). Batches longer than all correlations
/// always have this form, V(G) = σ²G + 2c. θ is not chosen but integrated over. Its weight is its likelihood, with μ
/// and s² integrated out, times a uniform density of arcsin θ. Given θ, the error has Student's distribution with G − 1
/// degrees of freedom. The interval is taken from the mixture.
class MovingAverage {
public:
    /// Tables for G >= 8 batches.
    explicit MovingAverage(Index G);
    SumError error_of_sum(std::span<const double> y) const;

private:
    Index G_;
    std::vector<double> theta_, inverse_, ones_;  // θ; of each batch 1/r and o/r, r and o below
    std::vector<double> prior_, information_;     // −½ Σ log r, Σ o²/r
};

/// Whether y (in batches) is correlated at lags beyond 1: some |ρ_l| is above 3.5 of its standard deviations, or a sum
/// ρ_2 + … + ρ_l above 2.5, l <= G/8.
bool has_long_correlations(std::span<const double> y);

/// Returns the sums of groups of k of y, counted from its end.
std::vector<double> joined(std::span<const double> y, Index k);

/// Returns the range of the sums of y's first deviations from its mean, if it is hardly wider for all batches than for
/// an eighth of them; otherwise NaN. The range is bounded if y_j = μ + g_{j+1} − g_j for a periodic or quasi-periodic
/// g, whose correlations never end. The error of Σ y_j is then at most the range of g. The range of a random walk grows
/// with the root of its length.
double bounded_range(std::span<const double> y);

/// Returns the error of Σ y_j by `MovingAverage`, from groups of batches. Groups of `least` are doubled until no lag
/// beyond 1 is correlated (`shortest` receives that length) and, if 32 groups remain, once more. At least 16 groups;
/// NaN for fewer batches. If 16 groups still correlate, `bounded_range` is the half width if there is one.
SumError error_of_sum(std::span<const double> y, Index least, Index* shortest = nullptr);

/// Returns the number d <= G/2 of batches to leave out at the start of p series (p × G, a batch is a column). d
/// minimizes the marginal standard error, the mean over the series of log(Σ_{j>=d} (y_j − ȳ)² / (G − d)²) (White 1997).
/// Returns 0 unless the minimum is smaller by 10/G than with all batches, which happens to a stationary series once in
/// e¹⁰ runs.
Index transient_batches(std::span<const double> sums, Index p);

}  // namespace quoin
