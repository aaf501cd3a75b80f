#include "lyapunov/estimates.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "lyapunov/mean_error.hpp"
#include "quoin/scalar.hpp"

namespace quoin {

namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// A function of the descending exponents λ, the first p of n, and its gradient. The error of its value equals the
/// error of the sums of gradientᵀ log|r_ii|.
struct Function {
    double value;
    std::vector<double> gradient;
};

Function sum_of(const std::vector<double>& lambda) {
    return {std::accumulate(lambda.begin(), lambda.end(), 0.), std::vector<double>(lambda.size(), 1.)};
}

Function kolmogorov_sinai(const std::vector<double>& lambda, Index n) {
    Function f{0, std::vector<double>(lambda.size(), 0.)};
    for (std::size_t i = 0; i < lambda.size(); ++i) {
        if (lambda[i] > 0) f.value += lambda[i], f.gradient[i] = 1;
    }
    if (lambda.back() > 0 && static_cast<Index>(lambda.size()) < n) f.value = unknown;
    return f;
}

/// Returns j + s/|λ_{j+1}|, s = Σ_{i<=j} λ_i.
Function kaplan_yorke(const std::vector<double>& lambda, Index n) {
    const std::size_t p = lambda.size();
    Function f{static_cast<Index>(p) == n ? static_cast<double>(n) : unknown, std::vector<double>(p, 0.)};
    if (std::isnan(lambda[0])) f.value = unknown;
    double sum = 0;
    for (std::size_t j = 0; j < p; ++j) {
        if (sum + lambda[j] < 0) {
            f.value = static_cast<double>(j) + sum / -lambda[j];
            std::fill_n(f.gradient.begin(), j, 1 / -lambda[j]);
            f.gradient[j] = sum / (lambda[j] * lambda[j]);
            break;
        }
        sum += lambda[j];
    }
    return f;
}

/// Returns a bound of |gradientᵀ(λ of the step − λ)|. For a method of order p, the difference to half the step is 1 −
/// 2⁻ᵖ of it, which is at least half, and is known to the half width of its mean over the pieces.
double bias_of(const Function& f, const std::vector<std::size_t>& order, const Resolution& resolution) {
    double rounding = 0;
    std::vector<double> pieces(static_cast<std::size_t>(resolution.differences.cols()), 0.);
    for (std::size_t i = 0; i < resolution.rounding.size(); ++i) {
        if (f.gradient[i] == 0) continue;
        rounding += std::abs(f.gradient[i]) * resolution.rounding[order[i]];
        for (std::size_t k = 0; k < pieces.size(); ++k) {
            pieces[k] += f.gradient[i] * resolution.differences(static_cast<Index>(order[i]), static_cast<Index>(k));
        }
    }
    if (pieces.empty()) return rounding;
    const double sum = std::accumulate(pieces.begin(), pieces.end(), 0.);
    return rounding + 2 * (std::abs(sum) + error_of_sum(pieces, 1).half_width) / static_cast<double>(pieces.size());
}

/// Widens the intervals so that they cover the exponents in descending order. The true i-th largest exponent lies
/// between the i-th largest lower end and the i-th largest upper end of all intervals. If intervals overlap, an
/// estimate may belong to another exponent.
void widen_to_ordered_ends(std::vector<Estimate>& exponents) {
    std::vector<double> lower, upper;
    for (const Estimate& exponent : exponents) {
        if (std::isnan(exponent.half_width)) return;
        lower.push_back(exponent.value - exponent.half_width);
        upper.push_back(exponent.value + exponent.half_width);
    }
    std::sort(lower.begin(), lower.end(), std::greater<>());
    std::sort(upper.begin(), upper.end(), std::greater<>());
    for (std::size_t i = 0; i < exponents.size(); ++i) {
        Estimate& exponent = exponents[i];
        exponent.half_width = std::max({exponent.half_width, exponent.value - lower[i], upper[i] - exponent.value});
    }
}

}  // namespace

void estimate(const BatchSums& batches, double tau, bool linear_growth, LyapunovSpectrum& result,
              const Resolution& resolution) {
    const Index n = result.dimension, segments = batches.segments();
    const std::size_t p = static_cast<std::size_t>(batches.p);
    const Index transient = transient_batches(batches.sums, batches.p), G = batches.batches() - transient;
    const auto batch = [&](Index b, std::size_t i) {
        return batches.sums[static_cast<std::size_t>(transient + b) * p + i];
    };
    const double batch_time = static_cast<double>(batches.length) * tau;
    result.segments = segments;
    result.time = static_cast<double>(segments) * tau;
    result.discarded = static_cast<double>(transient) * batch_time;
    const double time = result.time - result.discarded;

    std::vector<double> lambda(batches.current);
    for (Index b = 0; b < G; ++b) {
        for (std::size_t i = 0; i < p; ++i) lambda[i] += batch(b, i);
    }
    for (double& value : lambda) value = segments > 0 ? value / time : unknown;
    std::vector<std::size_t> order(p);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return lambda[i] > lambda[j]; });
    std::vector<double> descending(p);
    for (std::size_t i = 0; i < p; ++i) descending[i] = lambda[order[i]];

    // the batches of gradientᵀλ have the error of all complete batches; its mean is over `time`
    Index shortest = 1;
    const double summation = Scalar<double>::u * static_cast<double>(batches.length);  // relative, of one batch
    const auto estimate_of = [&](const Function& f, Index least, Index* groups = nullptr) {
        std::vector<double> y(static_cast<std::size_t>(G), 0.);
        double magnitude = 0;
        for (std::size_t i = 0; i < p; ++i) {
            if (f.gradient[i] == 0) continue;
            magnitude += std::abs(f.gradient[i] * descending[i]);
            for (Index b = 0; b < G; ++b) y[static_cast<std::size_t>(b)] += f.gradient[i] * batch(b, order[i]);
        }
        const SumError error = error_of_sum(y, least, groups);
        const double complete = static_cast<double>(G) * batch_time,
                     bias = bias_of(f, order, resolution) + summation * magnitude;
        // batches that all agree to the resolution have nothing that could correlate
        const auto [low, high] = std::minmax_element(y.begin(), y.end());
        const bool constant = G > 0 && *high - *low <= 2 * bias * batch_time;
        result.resolved = result.resolved && (error.resolved || constant);
        return Estimate{f.value, std::hypot(error.error / complete, bias / 2), error.half_width / complete + bias};
    };
    // slow motions of all exponents together show in their sums first: the entropy has the shortest groups that any may
    // have
    result.resolved = true;
    result.kolmogorov_sinai = estimate_of(kolmogorov_sinai(descending, n), 1, &shortest);
    result.kaplan_yorke = estimate_of(kaplan_yorke(descending, n), shortest);
    result.sum = estimate_of(sum_of(descending), 1);
    // a vector that grows linearly has grown by K after K segments, and its exponent is log(K)/(Kτ) yet
    const double linear = segments > 0 ? std::log(static_cast<double>(segments)) / time : 0;
    for (std::size_t i = 0; i < p; ++i) {
        Function f{descending[i], std::vector<double>(p, 0.)};
        f.gradient[i] = 1;
        Estimate exponent = estimate_of(f, shortest);
        result.positive += exponent.value > linear + (std::isfinite(exponent.error) ? 3 * exponent.error : 0);
        if (linear_growth && std::abs(exponent.value) <= exponent.half_width + linear) exponent.half_width += linear;
        result.exponents.push_back(exponent);
    }
    widen_to_ordered_ends(result.exponents);

    result.averages = Matrix<double>(batches.p, G);
    std::vector<double> so_far(p, 0.);
    for (Index b = 0; b < G; ++b) {
        result.times.push_back(static_cast<double>(b + 1) * batch_time);
        for (std::size_t i = 0; i < p; ++i) {
            so_far[i] += batch(b, order[i]);
            result.averages(static_cast<Index>(i), b) = so_far[i] / result.times.back();
        }
    }
}

double half_width_after(const LyapunovSpectrum& spectrum, Index i, Index b) {
    const std::vector<double>& times = spectrum.times;
    if (b + 1 == static_cast<Index>(times.size())) return spectrum.exponents[static_cast<std::size_t>(i)].half_width;
    std::vector<double> sums;  // of the batches
    double before = 0;
    for (Index c = 0; c <= b; ++c) {
        const double sum = spectrum.averages(i, c) * times[static_cast<std::size_t>(c)];
        sums.push_back(sum - std::exchange(before, sum));
    }
    return error_of_sum(sums, 1).half_width / times[static_cast<std::size_t>(b)];
}

bool has_known_sum(const LyapunovSpectrum& f) {
    if (!f.divergence || static_cast<Index>(f.exponents.size()) < f.dimension) return true;
    double allowed = 0;
    for (const Estimate& exponent : f.exponents) allowed += 1e-3 * std::abs(exponent.value) + exponent.half_width;
    return !(std::abs(f.sum.value - *f.divergence) > allowed);  // a half width that is not known allows all
}

}  // namespace quoin
