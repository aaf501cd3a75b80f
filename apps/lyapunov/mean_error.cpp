#include "lyapunov/mean_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>

namespace quoin {

namespace {

constexpr Index grid = 96;           // values of θ
constexpr Index fewest_groups = 16;  // that an error is taken from
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// P(|t| > x), Student's with ν degrees of freedom (Wallace 1959).
double student_tail(double x, double nu) {
    const double z = (8 * nu + 1) / (8 * nu + 3) * std::sqrt(nu * std::log1p(x * x / nu));
    return std::erfc(z / std::numbers::sqrt2);
}

/// Valid until the next call of the thread.
const MovingAverage& moving_average(Index G) {
    thread_local std::map<Index, MovingAverage> tables;  // of 200 kB each
    if (tables.size() > 8) tables.clear();
    return tables.try_emplace(G, G).first->second;
}

}  // namespace

MovingAverage::MovingAverage(Index G)
    : G_(G),
      theta_(grid),
      inverse_(static_cast<std::size_t>(G * grid)),
      ones_(inverse_.size()),
      prior_(grid),
      information_(grid) {
    // e_t = y_t − μ − c_t, c_{t+1} = −θ e_t / r_t, r_1 = 1 + θ², r_{t+1} = 1 + θ² − θ²/r_t; o is e of the series 1, 1,
    // …
    constexpr double first = -1.35, last = std::numbers::pi / 2;
    for (Index i = 0; i < grid; ++i) {
        const std::size_t k = static_cast<std::size_t>(i);
        const double theta = theta_[k] = std::sin(first + (last - first) * static_cast<double>(i) / (grid - 1));
        double r = 1 + theta * theta, c = 0;
        for (Index t = 0; t < G; ++t) {
            const std::size_t at = static_cast<std::size_t>(t * grid) + k;
            const double o = 1 - c;
            inverse_[at] = 1 / r;
            ones_[at] = o / r;
            prior_[k] -= std::log(r) / 2;
            information_[k] += o * o / r;
            c = -theta * o / r;
            r = 1 + theta * theta - theta * theta / r;
        }
    }
}

SumError MovingAverage::error_of_sum(std::span<const double> y) const {
    const double G = static_cast<double>(G_), mean = std::accumulate(y.begin(), y.end(), 0.) / G;
    double c[grid] = {}, squares[grid] = {}, slopes[grid] = {};
    for (Index t = 0; t < G_; ++t) {
        const double *const inverse = &inverse_[static_cast<std::size_t>(t * grid)],
                            *const ones = &ones_[static_cast<std::size_t>(t * grid)];
        const double value = y[static_cast<std::size_t>(t)] - mean;
        for (Index i = 0; i < grid; ++i) {
            const double e = value - c[i], scaled = e * inverse[i];
            squares[i] += e * scaled;
            slopes[i] += e * ones[i];
            c[i] = -theta_[static_cast<std::size_t>(i)] * scaled;
        }
    }
    // the density of θ, μ and s² integrated out, and the variance of Σ y_j given θ
    double weight[grid], deviation[grid], largest = -std::numeric_limits<double>::infinity();
    for (Index i = 0; i < grid; ++i) {
        const std::size_t k = static_cast<std::size_t>(i);
        const double rss = squares[i] - slopes[i] * slopes[i] / information_[k], theta = theta_[k];
        if (std::isnan(rss)) return {unknown, unknown, false};
        if (!(rss > 0)) return {0, 0, true};
        deviation[i] = std::sqrt(rss / (G - 1) * (G * (1 - theta) * (1 - theta) + 2 * theta));
        weight[i] = prior_[k] - (G - 1) / 2 * std::log(rss) - std::log(information_[k]) / 2;
        largest = std::max(largest, weight[i]);
    }
    double total = 0, mean_log = 0, widest = 0;
    for (Index i = 0; i < grid; ++i) {
        weight[i] = std::exp(weight[i] - largest);
        total += weight[i];
        mean_log += weight[i] * std::log(deviation[i]);
        if (weight[i] > 1e-9) widest = std::max(widest, deviation[i]);
    }
    // P(|error| > x) = 5%, by bisection
    double low = 0, high = 20 * widest;
    for (int step = 0; step < 40; ++step) {
        const double x = (low + high) / 2;
        double tail = 0;
        for (Index i = 0; i < grid; ++i) {
            if (weight[i] > 1e-9) tail += weight[i] * student_tail(x / deviation[i], G - 1);
        }
        (tail > 0.05 * total ? low : high) = x;
    }
    return {std::exp(mean_log / total), high, true};
}

bool has_long_correlations(std::span<const double> y) {
    const std::size_t G = y.size(), lags = G / 8;
    const double mean = std::accumulate(y.begin(), y.end(), 0.) / static_cast<double>(G);
    const auto correlation = [&](std::size_t lag) {
        double sum = 0;
        for (std::size_t j = lag; j < G; ++j) sum += (y[j] - mean) * (y[j - lag] - mean);
        return sum;
    };
    const double variance = correlation(0);
    if (!(variance > 0)) return false;
    const double first = correlation(1) / variance;
    const double sigma = std::sqrt((1 + 2 * first * first) / static_cast<double>(G));  // of ρ_l, l > 1 (Bartlett 1946)
    double sum = 0;
    for (std::size_t lag = 2; lag <= lags; ++lag) {
        const double rho = correlation(lag) / variance;
        sum += rho;
        if (std::abs(rho) > 3.5 * sigma) return true;
        const std::size_t terms = lag - 1;
        const bool is_power = (terms & (terms - 1)) == 0;
        if (is_power && sum > 2.5 * sigma * std::sqrt(static_cast<double>(terms))) return true;
    }
    return false;
}

std::vector<double> joined(std::span<const double> y, Index k) {
    const std::size_t width = static_cast<std::size_t>(k), groups = y.size() / width, rest = y.size() - groups * width;
    std::vector<double> sums(groups, 0.);
    for (std::size_t j = 0; j < groups * width; ++j) sums[j / width] += y[rest + j];
    return sums;
}

double bounded_range(std::span<const double> y) {
    const std::size_t G = y.size();
    const double mean = std::accumulate(y.begin(), y.end(), 0.) / static_cast<double>(G);
    double sum = 0, low = 0, high = 0, widest = 0;  // of all, and of the widest eighth
    for (std::size_t eighth = 0; eighth < 8; ++eighth) {
        double first = sum, last = sum;
        for (std::size_t j = eighth * G / 8; j < (eighth + 1) * G / 8; ++j) {
            sum += y[j] - mean;
            first = std::min(first, sum);
            last = std::max(last, sum);
        }
        widest = std::max(widest, last - first);
        low = std::min(low, first);
        high = std::max(high, last);
    }
    return high - low <= 1.25 * widest ? high - low : unknown;
}

SumError error_of_sum(std::span<const double> y, Index least, Index* shortest) {
    const Index G = static_cast<Index>(y.size());
    if (G < fewest_groups) return {unknown, unknown, false};
    Index k = least;
    bool seen = has_long_correlations(joined(y, k));
    while (seen && G / (2 * k) >= fewest_groups) seen = has_long_correlations(joined(y, k *= 2));
    if (shortest) *shortest = k;
    if (!seen && G / (2 * k) >= 2 * fewest_groups) k *= 2;
    const std::vector<double> groups = joined(y, k);
    const Index count = static_cast<Index>(groups.size());
    SumError result = moving_average(count).error_of_sum(groups);
    // the batches before the first group
    const double scale = std::sqrt(static_cast<double>(G) / static_cast<double>(count * k));
    result.error *= scale;
    result.half_width *= scale;
    result.resolved = !seen;
    if (const double range = seen ? bounded_range(y) : unknown; !std::isnan(range)) {
        result.error = std::max(result.error, range / 2);
        result.half_width = std::max(result.half_width, range);
        result.resolved = true;
    }
    return result;
}

Index transient_batches(std::span<const double> sums, Index p) {
    const Index G = static_cast<Index>(sums.size()) / p;
    if (G < 2 * fewest_groups) return 0;
    std::vector<double> gain(static_cast<std::size_t>(G / 2 + 1), 0.);
    Index series = 0;
    for (Index i = 0; i < p; ++i) {
        const auto at = [&](Index j) { return sums[static_cast<std::size_t>(j * p + i)]; };
        double mean = 0, squares = 0, magnitude = 0;  // of y_d … y_{G−1} (Welford 1962)
        std::vector<double> logs(gain.size());
        bool constant = false;
        for (Index d = G - 1; d >= 0; --d) {
            const double n = static_cast<double>(G - d), difference = at(d) - mean;
            mean += difference / n;
            squares += difference * (at(d) - mean);
            magnitude = std::max(magnitude, std::abs(at(d)));
            if (d > G / 2) continue;
            constant = constant || !(squares > 1e-24 * n * magnitude * magnitude);
            logs[static_cast<std::size_t>(d)] = std::log(squares / (n * n));
        }
        if (constant) continue;
        ++series;
        for (std::size_t d = 0; d < gain.size(); ++d) gain[d] += logs[0] - logs[d];
    }
    const auto best = std::max_element(gain.begin(), gain.end());
    return *best > 10. / static_cast<double>(G) * static_cast<double>(series) ? best - gain.begin() : 0;
}

}  // namespace quoin
