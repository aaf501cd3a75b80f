#pragma once

// The iteration of every pursuit, over steps that know where M, L, S and Y are:
//
//     spectrum_of_M(needs)         Σ of M
//     start(scale, μ)              Y := scale M, L := S := 0;  S := shrink(M − L + Y/μ, λ/μ), X := M − S + Y/μ
//     spectrum(needs)              Σ of X, and V, which the steps keep
//     correct(weights, μ, μ')      L := X V diag(weights) Vᵀ, Y += μ(M − L − S) unless stable; sums of S, the change of
//                                  S, Z and Y
//     go_on(μ')                    S and X of the next iteration

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "devices.hpp"
#include "primitives.hpp"
#include "quoin/apps/robust_pca.hpp"
#include "robust_pca/pursuit.hpp"
#include "robust_pca/tuning.hpp"

namespace quoin {

template <class T, class D>
void check_options(MatrixView<const T, D> M, const RobustPcaOptions<T, D>& options) {
    const auto positive = [](const char* name, double value, bool zero_is_default) {
        if (std::isfinite(value) && (value > 0 || (zero_is_default && value == 0))) return;
        throw InvalidArgument(fmt::format("{} must be positive{}, and is {}", name,
                                          zero_is_default ? " (or 0: Quoin chooses)" : "", value));
    };
    positive("lambda", options.lambda, true);
    positive("mu", options.mu, true);
    positive("noise", options.noise, true);
    if (options.pursuit == Pursuit::Stable) {
        if (options.noise == 0 && options.mu == 0) throw InvalidArgument("a stable pursuit needs noise, or mu");
        if (options.Y.data) throw InvalidArgument("a stable pursuit has no Y to start from");
    }
    positive("tolerance", options.tolerance, false);
    if (!(options.rho > 1) || !std::isfinite(options.rho)) {
        throw InvalidArgument(fmt::format("rho must be above 1, and is {}", options.rho));
    }
    if (options.max_iterations < 1 || options.max_rank < 0) {
        throw InvalidArgument("max_iterations must be positive and max_rank must not be negative");
    }
    const auto fits = [&](const char* name, const auto& view) {
        if (!view.data || (view.rows == M.rows && view.cols == M.cols)) return;
        throw InvalidArgument(
            fmt::format("{} must be {} x {} as M is, and is {} x {}", name, M.rows, M.cols, view.rows, view.cols));
    };
    fits("observed", options.observed);
    fits("L", options.L);
    fits("Y", options.Y);
}

// Windows of columns, as `RobustPcaWindows` and `RobustPcaOfFrames` have them.

inline void check_window_sizes(Index rows, Index carried) {
    if (rows >= 0 && carried >= 0) return;
    throw InvalidArgument(
        fmt::format("windows of {} rows that carry {} columns: both must be 0 or more", rows, carried));
}
inline void check_window_columns(Index count) {
    if (count < 1) throw InvalidArgument(fmt::format("a window must have columns, and {} are asked for", count));
}
/// `has_columns`: whether the window's columns were given.
template <class T, class D>
void check_window(bool has_columns, const RobustPcaOptions<T, D>& options) {
    if (!has_columns) throw InvalidArgument("give the window its columns before it is solved");
    if (options.L.data || options.Y.data || options.observed.data) {
        throw InvalidArgument(
            "windows take no L, no Y and no mask of entries: each starts from the background of the one before");
    }
}
/// Returns which of a window's n columns the next window carries as column i of `kept`.
inline Index carried_column(Index i, Index n, Index kept) { return (2 * i + 1) * n / (2 * kept); }

/// Returns λ of the options, or else the λ of Candès, Li, Ma and Wright (2011).
template <class T, class D>
double lambda_of(const RobustPcaOptions<T, D>& options, Index m, Index n) {
    return options.lambda > 0 ? options.lambda : 1 / std::sqrt(static_cast<double>(std::max(m, n)));
}

/// Returns the route that D takes for a given one.
template <class D>
ThresholdRoute route_in_use(ThresholdRoute given) {
    return given == ThresholdRoute::Auto ? PursuitTuning<D>::threshold_route : given;
}

/// Returns R of X by trees of Householder factorizations, which are backward stable for every X.
template <class T, class D>
Matrix<T, D> triangle_by_trees(Context<D>& ctx, MatrixView<const T, D> X) {
    Options options;
    options.method = X.cols <= Tuning<D>::max_tree_cols ? Method::TSQR : Method::CAQR;
    options.q = QForm::None;
    options.check_finite = false;
    return qr<T, D>(ctx, X, options).r(ctx);
}

struct PursuitOutcome {
    RobustPcaStep last;
    PursuitEnd end = PursuitEnd::IterationLimit;
};

/// Iterates to the end of a pursuit. The norms of M must be neither 0 nor infinite.
template <class T, class D, class Steps>
PursuitOutcome iterate(Steps& steps, const EntryNorms& norms, const RobustPcaOptions<T, D>& options) {
    /// Largest μ over its first value.
    constexpr double max_growth = 1e7;
    /// Number of iterations without a new least error after which the accuracy of T is taken to be exhausted.
    constexpr Index patience = 25;
    /// Largest distance of L from the minimum of its step, over the error of the step before.
    constexpr double inexactness = 1e-3;

    const auto start = std::chrono::steady_clock::now();
    const auto seconds = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    const Index m = steps.rows(), n = steps.cols();
    const bool stable = options.pursuit == Pursuit::Stable, grows = options.pursuit != Pursuit::AlternatingDirections;
    const double lambda = lambda_of(options, m, n);
    // ‖M‖₂ >= ‖M‖_F/√n
    const SpectrumNeeds largest{.threshold = std::sqrt(norms.squares / static_cast<double>(n))};
    const double norm2 = static_cast<double>(steps.spectrum_of_M(largest)[0]);
    const double stable_mu =
        options.mu > 0 ? options.mu : 1 / (options.noise * std::sqrt(2 * static_cast<double>(std::max(m, n))));
    double mu = stable           ? std::min(1.25 / norm2, stable_mu)
                : options.mu > 0 ? options.mu
                : grows          ? 1.25 / norm2
                                 : static_cast<double>(m) * static_cast<double>(n) / (4 * norms.sum);
    const double max_mu = stable ? stable_mu : max_growth * mu;
    // Y = M / max(‖M‖₂, ‖M‖_max / λ)
    steps.start(grows && !stable ? 1 / std::max(norm2, norms.largest / lambda) : 0, mu);

    PursuitOutcome f;
    double least = std::numeric_limits<double>::infinity();
    Index since_least = 0;
    for (Index iteration = 1;; ++iteration) {
        steps.check();
        // L = X V (Σ − 1/μ)₊ Σ⁻¹ Vᵀ
        const std::vector<T>& s = steps.spectrum({1 / mu, inexactness * std::min(1.0, f.last.error)});
        const Index most = options.max_rank > 0 ? std::min(options.max_rank, n) : n;
        Index rank = 0;
        double nuclear = 0;
        std::vector<T> weights;
        while (rank<most&& static_cast<double>(s[static_cast<std::size_t>(rank)])> 1 / mu) {
            const double sigma = static_cast<double>(s[static_cast<std::size_t>(rank++)]);
            nuclear += sigma - 1 / mu;
            weights.push_back(static_cast<T>((sigma - 1 / mu) / sigma));
        }
        const double next_mu = grows ? std::min(options.rho * mu, max_mu) : mu;
        const PursuitSums found = steps.correct(weights, mu, next_mu);
        const double residual = std::sqrt(found.residual / norms.squares),
                     dual_residual = stable ? 0 : mu * std::sqrt(found.change / found.multipliers);
        const double change = std::sqrt(found.change / norms.squares);
        f.last = {iteration, residual, dual_residual,
                  // growing μ forces L and S to their limits; constant μ is at the optimum only where neither is left
                  stable  ? change
                  : grows ? residual
                          : std::max(residual, dual_residual),
                  nuclear + lambda * found.sparse + (stable ? mu / 2 * found.residual : 0), rank,
                  static_cast<Index>(found.nonzeros), mu, seconds()};
        const bool at_last_mu = !stable || mu == max_mu;
        const bool goes_on = !options.on_step || options.on_step(f.last);
        if (at_last_mu && f.last.error <= options.tolerance) {
            f.end = PursuitEnd::Converged;
            return f;
        }
        since_least = f.last.error < least || !at_last_mu ? 0 : since_least + 1;
        if (at_last_mu) least = std::min(least, f.last.error);
        if (!std::isfinite(f.last.error) || since_least >= patience) {
            f.end = PursuitEnd::Stalled;
            return f;
        }
        if (!goes_on) {
            f.end = PursuitEnd::Stopped;
            return f;
        }
        if (iteration == options.max_iterations) return f;
        mu = next_mu;
        steps.go_on(mu);
    }
}

}  // namespace quoin
