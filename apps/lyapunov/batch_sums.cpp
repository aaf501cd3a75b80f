#include "lyapunov/batch_sums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace quoin {

namespace {

constexpr Index most_batches = 256;
constexpr Index most_groups = 32;  // batch means whose scatter is the error: known to 13%
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

double sum_of(const std::vector<double>& lambda) { return std::accumulate(lambda.begin(), lambda.end(), 0.); }

/// Of descending exponents, the first p of n.
double kolmogorov_sinai(const std::vector<double>& lambda, Index n) {
    if (lambda.back() > 0 && static_cast<Index>(lambda.size()) < n) return unknown;
    double sum = 0;
    for (const double value : lambda) sum += std::max(value, 0.);
    return sum;
}

double kaplan_yorke(const std::vector<double>& lambda, Index n) {
    double sum = 0;
    for (std::size_t j = 0; j < lambda.size(); ++j) {
        if (sum + lambda[j] < 0) return static_cast<double>(j) + sum / -lambda[j];
        sum += lambda[j];
    }
    return static_cast<Index>(lambda.size()) == n ? static_cast<double>(n) : unknown;
}

}  // namespace

void BatchSums::add(std::span<const double> logarithms) {
    for (std::size_t i = 0; i < current.size(); ++i) current[i] += logarithms[i];
    if (++filled < length) return;
    sums.insert(sums.end(), current.begin(), current.end());
    std::fill(current.begin(), current.end(), 0.);
    filled = 0;
    if (batches() < most_batches) return;
    const std::size_t width = static_cast<std::size_t>(p);
    for (std::size_t b = 0; b < most_batches / 2; ++b) {
        for (std::size_t i = 0; i < width; ++i)
            sums[b * width + i] = sums[2 * b * width + i] + sums[(2 * b + 1) * width + i];
    }
    sums.resize(sums.size() / 2);
    length *= 2;
}

std::vector<double> BatchSums::total() const {
    std::vector<double> total(current);
    for (std::size_t k = 0; k < sums.size(); ++k) total[k % static_cast<std::size_t>(p)] += sums[k];
    return total;
}

void estimate(const BatchSums& batches, double tau, LyapunovSpectrum& result) {
    const Index n = result.dimension, segments = batches.segments();
    const std::size_t p = static_cast<std::size_t>(batches.p);
    const std::vector<double> total = batches.total();
    std::vector<double> lambda(p);
    for (std::size_t i = 0; i < p; ++i)
        lambda[i] = segments > 0 ? total[i] / (static_cast<double>(segments) * tau) : unknown;
    std::vector<std::size_t> order(p);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return lambda[i] > lambda[j]; });
    for (std::size_t i = 0; i < p; ++i) result.exponents.push_back({lambda[order[i]], unknown});

    // what is estimated, as functions of descending exponents
    const auto functions = [&](const std::vector<double>& descending) {
        std::vector<double> values(descending);
        values.insert(values.end(), {sum_of(descending), kolmogorov_sinai(descending, n), kaplan_yorke(descending, n)});
        return values;
    };
    std::vector<double> descending(p);
    for (std::size_t i = 0; i < p; ++i) descending[i] = lambda[order[i]];
    const std::vector<double> values = functions(descending);

    // The jackknife: of values θ_(j) that leave one of G groups out, (G − 1)/G Σ (θ_(j) − θ̄)²; of the exponents themselves
    // it is the variance of the mean of the batch means.
    const Index G = std::min(batches.batches(), most_groups), members = G > 0 ? batches.batches() / G : 0;
    std::vector<double> errors(values.size(), unknown);
    if (G >= 2 && segments > 0) {
        std::vector<std::vector<double>> groups(static_cast<std::size_t>(G), std::vector<double>(p, 0.));
        std::vector<double> all(p, 0.);
        for (Index b = 0; b < G * members; ++b) {
            for (std::size_t i = 0; i < p; ++i) {
                const double rate = batches.sums[static_cast<std::size_t>(b) * p + order[i]] /
                                    (static_cast<double>(members * batches.length) * tau);
                groups[static_cast<std::size_t>(b / members)][i] += rate;
                all[i] += rate;
            }
        }
        std::vector<std::vector<double>> without;
        for (const auto& group : groups) {
            std::vector<double> left(p);
            for (std::size_t i = 0; i < p; ++i) left[i] = (all[i] - group[i]) / static_cast<double>(G - 1);
            without.push_back(functions(left));
        }
        for (std::size_t k = 0; k < values.size(); ++k) {
            double mean = 0, squares = 0;
            for (const auto& theta : without) mean += theta[k] / static_cast<double>(G);
            for (const auto& theta : without) squares += (theta[k] - mean) * (theta[k] - mean);
            errors[k] = std::sqrt(squares * static_cast<double>(G - 1) / static_cast<double>(G));
        }
    }
    // a vector that grows linearly has grown by K after K segments, and its exponent is log(K)/(Kτ) yet
    const double linear =
        segments > 0 ? std::log(static_cast<double>(segments)) / (static_cast<double>(segments) * tau) : 0;
    for (std::size_t i = 0; i < p; ++i) {
        result.exponents[i].error = errors[i];
        const double bound = linear + (std::isfinite(errors[i]) ? 3 * errors[i] : 0);
        result.positive += result.exponents[i].value > bound;
    }
    result.sum = {values[p], errors[p]};
    result.kolmogorov_sinai = {values[p + 1], errors[p + 1]};
    result.kaplan_yorke = {values[p + 2], errors[p + 2]};

    result.averages = Matrix<double>(batches.p, batches.batches());
    std::vector<double> so_far(p, 0.);
    for (Index b = 0; b < batches.batches(); ++b) {
        const double time = static_cast<double>((b + 1) * batches.length) * tau;
        result.times.push_back(time);
        for (std::size_t i = 0; i < p; ++i) {
            so_far[i] += batches.sums[static_cast<std::size_t>(b) * p + order[i]];
            result.averages(static_cast<Index>(i), b) = so_far[i] / time;
        }
    }
    result.segments = segments;
    result.time = static_cast<double>(segments) * tau;
}

}  // namespace quoin
