#include <algorithm>
#include <cmath>
#include <numeric>

#include "lyapunov/column_blocks.hpp"
#include "lyapunov/estimates.hpp"
#include "lyapunov/mean_error.hpp"
#include "lyapunov/require.hpp"
#include "primitives/context.hpp"
#include "quoin/apps/lyapunov_series.hpp"
#include "quoin/batch.hpp"
#include "quoin/qr.hpp"

namespace quoin {

namespace {

/// The states of a series, d×M: column s is the sample s + (delays − 1) lag, and those before it.
struct Reconstruction {
    Matrix<double> states;
    Index theiler;
    double same;  ///< states at this distance or nearer are one

    Reconstruction(MatrixView<const double> series, const SeriesOptions& o) {
        require_at_least<Index>("delays", o.delays, 1);
        require_at_least<Index>("lag", o.lag, 1);
        require_at_least<Index>("theiler", o.theiler, 0);
        require_positive("interval", o.interval);
        const Index c = series.rows, M = series.cols - (o.delays - 1) * o.lag;
        theiler = o.theiler > 0 ? o.theiler : 2 * o.delays * o.lag;
        if (c < 1 || M < 10 * theiler + 100) {
            throw InvalidArgument(
                fmt::format("a series of {} samples is too short for {} delays of {}", series.cols, o.delays, o.lag));
        }
        require_motion(series);
        states = Matrix<double>(c * o.delays, M);
        for (Index s = 0; s < M; ++s) {
            for (Index delay = 0; delay < o.delays; ++delay) {
                for (Index i = 0; i < c; ++i) {
                    const Index at = s + (o.delays - 1 - delay) * o.lag;
                    states(delay * c + i, s) = series(i, at);
                }
            }
        }
    }

    /// Sets `same`. Throws for numbers that are none, and for a series that stands still or repeats itself.
    void require_motion(MatrixView<const double> series) {
        const Index c = series.rows, N = series.cols;
        double range = 0;
        for (Index i = 0; i < c; ++i) {
            double low = series(i, 0), high = low;
            for (Index at = 0; at < N; ++at) {
                const double value = series(i, at);
                if (!std::isfinite(value)) throw NonFiniteEntry(at, i, "the series, a sample in each row,");
                low = std::min(low, value), high = std::max(high, value);
            }
            range = std::max(range, high - low);
        }
        if (range == 0) throw InvalidArgument("the series is constant, and a Lyapunov exponent is one of motion");
        same = 1e-10 * range;
        const auto repeats = [&](Index period) {
            for (Index at = 0; at + period < N; ++at) {
                for (Index i = 0; i < c; ++i) {
                    if (std::abs(series(i, at + period) - series(i, at)) > same) return false;
                }
            }
            return true;
        };
        for (Index period = 1; period <= N / 2; ++period) {
            if (!repeats(period)) continue;
            throw InvalidArgument(fmt::format(
                "the series repeats itself every {} samples, so that states have no neighbours but themselves: the "
                "largest exponent of a cycle is 0, and the others need its perturbations",
                period));
        }
    }

    double square_of_distance(Index a, Index b) const {
        double sum = 0;
        for (Index i = 0; i < states.rows(); ++i) sum += (states(i, a) - states(i, b)) * (states(i, a) - states(i, b));
        return sum;
    }

    /// The k states of the first `count` that are nearest to state s, `theiler` away in time, and not the same: an
    /// instrument that rounds gives one state twice, and no direction leads from one to the other. Fewer than k if
    /// there are no more.
    std::vector<Index> nearest(Index s, Index count, Index k) const {
        std::vector<std::pair<double, Index>> all;
        for (Index other = 0; other < count; ++other) {
            if (std::abs(other - s) < theiler) continue;
            const double square = square_of_distance(s, other);
            if (square > same * same) all.emplace_back(square, other);
        }
        k = std::min<Index>(k, static_cast<Index>(all.size()));
        std::partial_sort(all.begin(), all.begin() + k, all.end());
        std::vector<Index> found;
        for (Index i = 0; i < k; ++i) found.push_back(all[static_cast<std::size_t>(i)].second);
        return found;
    }
};

/// Whether the k points in the rows of A (k×(d + 1)) determine an affine map of d variables: each diagonal entry of R
/// is more than 1e-8 of its column, which is as long as the column of A.
bool is_determined(Context<Host>& ctx, MatrixView<const double> A) {
    const Matrix<double> R = qr<double>(ctx, A, Options{.method = Method::BlockedHouseholder, .q = QForm::None}).r(ctx);
    for (Index j = 0; j < R.cols(); ++j) {
        const double* const r = R.view().at(0, j);
        if (!(std::abs(r[j]) > 1e-8 * std::sqrt(std::inner_product(r, r + j + 1, r, 0.)))) return false;
    }
    return true;
}

/// The slope of y over 0, 1, … by least squares.
double slope_of(std::span<const double> y) {
    const double n = static_cast<double>(y.size()), middle = (n - 1) / 2;
    double above = 0, below = 0;
    for (std::size_t k = 0; k < y.size(); ++k) {
        above += (static_cast<double>(k) - middle) * y[k];
        below += (static_cast<double>(k) - middle) * (static_cast<double>(k) - middle);
    }
    return above / below;
}

}  // namespace

SeriesDivergence series_divergence(Context<Host>& ctx, MatrixView<const double> series, const SeriesOptions& options) {
    const Reconstruction r(series, options);
    const Index M = r.states.cols(), horizon = options.horizon > 0 ? options.horizon : M / 10, count = M - horizon;
    if (horizon < 8 || count < 10 * r.theiler) {
        throw InvalidArgument(
            fmt::format("horizon must be at least 8 samples and leave most of the {} states, and is {}", M, horizon));
    }
    constexpr Index parts = 16;
    // row k of column b: sums over the states of part b of log-distances after k samples, and below them their numbers
    Matrix<double> sums(2 * horizon, parts);
    std::fill_n(sums.data(), 2 * horizon * parts, 0.);
    const double flops = 3 * static_cast<double>(count) * static_cast<double>(count * r.states.rows());
    for_each_block(ctx, flops, sums.view(), 1, [&](Index part, MatrixView<double> column) {
        for (Index s = part * count / parts; s < (part + 1) * count / parts; ++s) {
            throw_if_stopped(ctx);
            const std::vector<Index> neighbour = r.nearest(s, count, 1);
            if (neighbour.empty()) continue;
            for (Index k = 0; k < horizon; ++k) {
                const double square = r.square_of_distance(s + k, neighbour[0] + k);
                if (square > r.same * r.same) column(k, 0) += std::log(square) / 2, column(horizon + k, 0) += 1;
            }
        }
    });

    SeriesDivergence result;
    for (Index k = 0; k < horizon; ++k) {
        double sum = 0, number = 0;
        for (Index b = 0; b < parts; ++b) sum += sums(k, b), number += sums(horizon + k, b);
        result.times.push_back(static_cast<double>(k) * options.interval);
        result.logarithms.push_back(sum / number);
    }
    const auto& y = result.logarithms;
    const double plateau = std::accumulate(y.end() - horizon / 4, y.end(), 0.) / static_cast<double>(horizon / 4);
    const auto passes = [&](double share) {
        const double level = y[0] + share * (plateau - y[0]);
        return std::find_if(y.begin(), y.end(), [&](double value) { return value >= level; }) - y.begin();
    };
    result.first = passes(0.15);
    result.last = std::max<Index>(passes(0.7), std::min<Index>(result.first + 3, horizon));
    const std::size_t first = static_cast<std::size_t>(result.first),
                      length = static_cast<std::size_t>(result.last - result.first);
    result.exponent.value = slope_of(std::span(y).subspan(first, length)) / options.interval;
    std::vector<double> slopes;
    for (Index b = 0; b < parts; ++b) {
        std::vector<double> curve;
        for (Index k = result.first; k < result.last; ++k) curve.push_back(sums(k, b) / sums(horizon + k, b));
        slopes.push_back(slope_of(curve) / options.interval);
    }
    const SumError error = error_of_sum(slopes, 1);
    result.exponent.error = error.error / parts;
    result.exponent.half_width = error.half_width / parts;
    return result;
}

LyapunovSpectrum series_spectrum(Context<Host>& ctx, MatrixView<const double> series, const SeriesOptions& options) {
    const Reconstruction r(series, options);
    const Index d = r.states.rows(), evolve = options.evolve == 0 ? options.lag : options.evolve,
                p = options.exponents > 0 ? options.exponents : d;
    const Index k = options.neighbours == 0 ? 4 * (d + 1) : options.neighbours;
    require_at_least<Index>("evolve", evolve, 1);
    require_at_least<Index>("neighbours", k, d + 1);
    if (options.exponents < 0 || p > d)
        throw InvalidArgument(fmt::format("exponents must be at most the {} of a state, and is {}", d, p));
    const Index count = r.states.cols() - evolve, jacobians = count / evolve;
    if (count < 2 * r.theiler + 2 * k)
        throw InvalidArgument(fmt::format("{} states are too few for {} neighbours of each", count, k));

    // y(t + evolve) = a + J (y(t) − y_s), of the k neighbours: [1 (y − y_s)ᵀ] [aᵀ; Jᵀ] = yᵀ
    BatchSums sums(p);
    Matrix<double> Q(d, p);
    for (Index j = 0; j < p; ++j) {
        for (Index i = 0; i < d; ++i) Q(i, j) = i == j;
    }
    constexpr Index chunk = 1024;
    Index skipped = 0;
    for (Index begin = 0; begin < jacobians; begin += chunk) {
        throw_if_stopped(ctx);
        const Index problems = std::min(chunk, jacobians - begin);
        Matrix<double> A(k * (d + 1), problems), B(k * d, problems);
        const double flops = 3.0 * static_cast<double>(problems) * static_cast<double>(count * d);
        std::vector<char> determined(static_cast<std::size_t>(problems), 0);
        for_each_block(ctx, flops, A.view(), 16, [&](Index b, MatrixView<double> block) {
            Context<Host> alone(1);
            for (Index column = 0; column < block.cols; ++column) {
                const Index problem = 16 * b + column, s = (begin + problem) * evolve;
                const MatrixView<double> neighbours{block.at(0, column), k, d + 1};
                // every neighbour of k, every second of 2k, …, until they lie in no plane
                for (Index every = 1; every <= 8 && !determined[static_cast<std::size_t>(problem)]; every *= 2) {
                    const std::vector<Index> found = r.nearest(s, count, every * k);
                    if (static_cast<Index>(found.size()) < every * k) break;
                    for (Index row = 0; row < k; ++row) {
                        const Index other = found[static_cast<std::size_t>((row + 1) * every - 1)];
                        neighbours(row, 0) = 1;
                        for (Index i = 0; i < d; ++i) {
                            neighbours(row, i + 1) = r.states(i, other) - r.states(i, s);
                            B(i * k + row, problem) = r.states(i, other + evolve) - r.states(i, s + evolve);
                        }
                    }
                    determined[static_cast<std::size_t>(problem)] = is_determined(alone, neighbours);
                }
                if (determined[static_cast<std::size_t>(problem)]) continue;
                for (Index row = 0; row < k; ++row) {  // a problem to leave out, which the batch can solve
                    for (Index i = 0; i <= d; ++i) neighbours(row, i) = row == i;
                    for (Index i = 0; i < d; ++i) B(i * k + row, problem) = 0;
                }
            }
        });
        const auto solved = least_squares(ctx, BatchView<const double>(A.data(), k, d + 1, k, k * (d + 1), problems),
                                          BatchView<const double>(B.data(), k, d, k, k * d, problems));
        for (Index problem = 0; problem < problems; ++problem) {
            const MatrixView<const double> X = solved.X[problem];
            Matrix<double> Z(d, p);
            for (Index j = 0; j < p; ++j) {
                for (Index i = 0; i < d; ++i) {
                    Z(i, j) = 0;
                    for (Index l = 0; l < d; ++l) Z(i, j) += X(l + 1, i) * Q(l, j);
                }
            }
            ThinQR<double> thin =
                qr<double>(ctx, std::as_const(Z).view(), Options{.q = QForm::Explicit}).take_thin(ctx);
            std::vector<double> logarithms;
            for (Index i = 0; i < p; ++i) logarithms.push_back(std::log(std::abs(thin.R(i, i))));
            const auto finite = [](double value) { return std::isfinite(value); };
            if (!determined[static_cast<std::size_t>(problem)] ||
                !std::all_of(logarithms.begin(), logarithms.end(), finite)) {
                ++skipped;
                continue;
            }
            Q = std::move(thin.Q);
            sums.add(logarithms);
        }
    }
    LyapunovSpectrum result;
    result.dimension = d;
    result.skipped = skipped;
    estimate(sums, static_cast<double>(evolve) * options.interval, false, result);
    result.steps_between_qr = evolve;
    result.method = Method::BlockedHouseholder;
    result.state.assign(r.states.data() + d * (r.states.cols() - 1), r.states.data() + d * r.states.cols());
    return result;
}

}  // namespace quoin
