// Online robust PCA: projection on a subspace that follows the columns (Feng, Xu and Yan 2013; Rodríguez and Wohlberg 2016).

#include "quoin/online_robust_pca.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "host/observed.hpp"
#include "quoin/svd.hpp"

namespace quoin {
namespace {

using namespace host;

/// Quantiles of |normal| noise: the median, and 90% of differences of two.
constexpr double median_of_size = 0.6744897502, most_of_change = 1.6448536270 * std::numbers::sqrt2;
/// τ in units of the noise.
constexpr double outlier = 3;
/// Least noise, as a share of the threshold: two thirds of a grey level.
constexpr double least_noise = 16;
/// Steps of the projection. Each leaves of an error of l the share of it that lies under S.
constexpr int projection_steps = 2;
/// Largest m Σ u⁴ of a vector of a background: 1 where all entries are ±1/√m, 3 of normal ones.
constexpr double most_kurtosis = 12;
/// Share of a column's entries whose difference from l is no longer what moves.
constexpr double another_scene = 0.25;
/// Fewest columns that a batch pursuit is worth.
constexpr Index least_start = 4;
/// Share of what the median leaves that noise and what moves do not have in one direction.
constexpr double most_direction = 0.5;
/// Columns after which U is made orthonormal anew.
constexpr Index renewal = 256;
/// By how much a quantile follows a column, at first and once it is known.
constexpr double first_gain = 0.25, last_gain = 0.05;

/// The standard deviation by either quantile.
float noise_of(float size, float change) {
    return std::max(size / static_cast<float>(median_of_size), change / static_cast<float>(most_of_change));
}

/// Sorts each row of a block of h rows and n columns, by Batcher's odd-even merge sort of its columns.
template <class T>
void sort_rows(Index h, Index n, T* block) {
    for (Index p = 1; p < n; p *= 2) {
        for (Index k = p; k >= 1; k /= 2) {
            for (Index j = k % p; j + k < n; j += 2 * k) {
                for (Index c = j; c < std::min(j + k, n - k); ++c) {
                    if (c / (2 * p) != (c + k) / (2 * p)) continue;
                    T *const low = block + c * h, *const high = block + (c + k) * h;
                    for (Index i = 0; i < h; ++i) {
                        const T a = low[i], b = high[i];
                        low[i] = std::min(a, b);
                        high[i] = std::max(a, b);
                    }
                }
            }
        }
    }
}

RowChunks chunks_of(Index rows) { return RowChunks(rows, 4096); }

}  // namespace

template <class T>
OnlineRobustPca<T>::OnlineRobustPca(Index rows, OnlineRobustPcaOptions options) : rows_(rows), options_(options) {
    if (rows < 1) throw InvalidArgument(fmt::format("columns must have rows, and have {}", rows));
    if (options.max_rank < 1) throw InvalidArgument("max_rank must be at least 1");
    if (!(options.forget >= 0 && options.forget < 1)) {
        throw InvalidArgument(fmt::format("forget must be at least 0 and below 1, and is {}", options.forget));
    }
    if (!(options.threshold > 0) || !std::isfinite(options.threshold)) {
        throw InvalidArgument(fmt::format("threshold must be positive, and is {}", options.threshold));
    }
    if (options.start < 1) throw InvalidArgument("start must be at least 1");
    const std::size_t n = static_cast<std::size_t>(rows);
    U_ = Matrix<T>(rows, options.max_rank + 1);
    first_ = Matrix<T>(rows, options.start);
    e_.resize(n);
    last_.resize(n);
    size_.resize(n);
    change_.resize(n);
    noise_.resize(n);
    age_.resize(n);
}

template <class T>
void OnlineRobustPca<T>::next(Context<Host>& ctx, std::span<const T> m, std::span<T> l, std::span<T> s) {
    const std::size_t n = static_cast<std::size_t>(rows_);
    if (m.size() != n || l.size() != n || s.size() != n) {
        throw InvalidArgument(fmt::format("columns have {} entries, and m, l and s have {}, {} and {}", rows_, m.size(),
                                          l.size(), s.size()));
    }
    if (const auto bad = std::find_if_not(m.begin(), m.end(), [](T x) { return std::isfinite(x); }); bad != m.end()) {
        throw NonFiniteEntry(bad - m.begin(), 0, "the column");
    }
    const Index t = ++columns_;
    if (t <= options_.start) {
        std::copy(m.begin(), m.end(), first_.view().at(0, t - 1));
        if (t == options_.start || (t >= least_start && (t & (t - 1)) == 0)) begin(ctx);
        if (t == 1) follow(m);
    }
    project(ctx, m, l);
    const Classes found = classify(ctx, m, l, s);
    // where that much of a column differs, the scene or its light has changed
    if (found.sparse > another_scene * static_cast<double>(rows_)) {
        for (std::size_t i = 0; i < n; ++i) e_[i] = m[i] - l[i];
    }
    if (t > 1) update(ctx, std::sqrt(found.noise));
    if (t >= options_.start) first_ = {};
    if (t % renewal == 0) orthonormalize(ctx);
}

/// Of the columns so far their median, and what is left: if that has a direction of its own, their L instead.
template <class T>
void OnlineRobustPca<T>::begin(Context<Host>& ctx) {
    if (begin_with_median(ctx) > most_direction && columns_ == options_.start) begin_with_pursuit(ctx);
}

/// U = the median of each row, normalised, and the quantiles of r = m − median. Returns how much of R, the r in units of their
/// noise and clipped to ±3, lies in one direction: ‖R‖₂²/‖R‖_F², of at most 2¹² rows.
template <class T>
double OnlineRobustPca<T>::begin_with_median(Context<Host>& ctx) {
    constexpr Index height = 128, most_rows = 1 << 12;
    const MatrixView<const T> M = first_.view().col_block({0, columns_});
    const Index n = M.cols, step = std::max<Index>(1, rows_ / most_rows);
    const auto quantile = [&](double q, Index count) {
        return std::lround(q * static_cast<double>(count - 1)) * height;
    };
    const float least = static_cast<float>(options_.threshold / least_noise);
    const auto parts = over_chunks<std::vector<double>>(ctx, chunks_of(rows_), 40.0 * rows_ * n, [&](Range rows) {
        std::vector<T> r(static_cast<std::size_t>(height * n)), sorted(r.size());
        std::vector<double> part(static_cast<std::size_t>(n * n + 1));  // RᵀR; the median's square
        for (Index first = rows.begin; first < rows.end; first += height) {
            const Index h = std::min(height, rows.end - first);
            for (Index j = 0; j < n; ++j) std::copy_n(M.at(first, j), h, r.data() + j * height);
            sorted = r;
            sort_rows(height, n, sorted.data());
            T* const median = U_.view().at(first, 0);
            std::copy_n(sorted.data() + n / 2 * height, h, median);
            for (Index j = 0; j < n; ++j) {
                for (Index i = 0; i < h; ++i) r[j * height + i] -= median[i];
            }
            for (std::size_t k = 0; k < r.size(); ++k) sorted[k] = std::abs(r[k]);
            sort_rows(height, n, sorted.data());
            std::copy_n(sorted.data() + quantile(0.5, n), h, size_.data() + first);
            for (Index k = 0; k < (n - 1) * height; ++k) sorted[k] = std::abs(r[k + height] - r[k]);
            sort_rows(height, n - 1, sorted.data());
            if (n > 1) std::copy_n(sorted.data() + quantile(0.9, n - 1), h, change_.data() + first);
            std::copy_n(r.data() + (n - 1) * height, h, last_.data() + first);
            for (Index i = 0; i < h; ++i) {
                noise_[first + i] = noise_of(size_[first + i], change_[first + i]);
                part.back() += static_cast<double>(median[i]) * static_cast<double>(median[i]);
                if ((first + i) % step != 0) continue;
                const T scale = static_cast<T>(1 / std::max(noise_[first + i], least)), most = static_cast<T>(outlier);
                for (Index j = 0; j < n; ++j) r[j * height + i] = std::clamp(scale * r[j * height + i], -most, most);
                for (Index k = 0; k < n; ++k) {
                    for (Index j = 0; j <= k; ++j)
                        part[j + k * n] += static_cast<double>(r[j * height + i] * r[k * height + i]);
                }
            }
        }
        return part;
    });
    Matrix<double> G(n, n);
    std::fill_n(G.data(), n * n, 0.0);
    double squares = 0, trace = 0;
    for (const std::vector<double>& part : parts) {
        squares += part.back();
        for (Index k = 0; k < n; ++k) {
            for (Index j = 0; j <= k; ++j) G(j, k) += part[j + k * n];
        }
    }
    for (Index k = 0; k < n; ++k) {
        trace += G(k, k);
        for (Index j = 0; j < k; ++j) G(k, j) = G(j, k);
    }
    const double norm = std::sqrt(squares);
    sigma_.clear();
    if (norm > 0) sigma_.push_back(norm * std::sqrt(static_cast<double>(n)));
    const T inverse = static_cast<T>(norm > 0 ? 1 / norm : 0);
    for (Index i = 0; i < rows_; ++i) U_(i, 0) *= inverse;
    return trace > 0 ? svd<double>(ctx, G.view(), false).s[0] / trace : 0;
}

/// U and σ of the L of all columns so far.
template <class T>
void OnlineRobustPca<T>::begin_with_pursuit(Context<Host>& ctx) {
    const MatrixView<const T> M = first_.view().col_block({0, columns_});
    RobustPcaOptions<T> options;
    options.tolerance = 1e-4;
    const RobustPca<T> f = robust_pca<T>(ctx, M, options);
    const SVD<T> svd_of = svd<T>(ctx, f.L.view());
    // Vectors on few of the rows are what moves: that of a background is spread out.
    const Index n = M.cols;
    Matrix<T> Vt(options_.max_rank, n);
    sigma_.clear();
    for (Index k = 0; k < n && rank() < options_.max_rank && svd_of.s[static_cast<std::size_t>(k)] > T(0); ++k) {
        const T* const u = svd_of.U.view().at(0, k);
        const double fourth = std::accumulate(
            u, u + rows_, 0.0, [](double sum, T x) { return sum + std::pow(static_cast<double>(x), 4); });
        if (static_cast<double>(rows_) * fourth > most_kurtosis) continue;
        std::copy_n(u, rows_, U_.view().at(0, rank()));
        for (Index j = 0; j < n; ++j) Vt(rank(), j) = svd_of.Vt(k, j);
        sigma_.push_back(static_cast<double>(svd_of.s[static_cast<std::size_t>(k)]));
    }

    // the quantiles of r = m − U σ Vᵀ
    const Index r = rank();
    over_chunks<int>(ctx, chunks_of(rows_), 2.0 * rows_ * n * (r + 10), [&](Range rows) {
        std::vector<T> residual(static_cast<std::size_t>(n));
        std::vector<float> values;
        for (Index i = rows.begin; i < rows.end; ++i) {
            for (Index j = 0; j < n; ++j) {
                T low = 0;
                for (Index k = 0; k < r; ++k)
                    low += U_(i, k) * static_cast<T>(sigma_[static_cast<std::size_t>(k)]) * Vt(k, j);
                residual[static_cast<std::size_t>(j)] = M(i, j) - low;
            }
            const auto quantile = [&](double q) {
                const auto at = values.begin() + std::lround(q * static_cast<double>(values.size() - 1));
                std::nth_element(values.begin(), at, values.end());
                return *at;
            };
            values.clear();
            for (const T value : residual) values.push_back(static_cast<float>(std::abs(value)));
            size_[i] = quantile(0.5);
            values.clear();
            for (std::size_t j = 1; j < residual.size(); ++j)
                values.push_back(static_cast<float>(std::abs(residual[j] - residual[j - 1])));
            change_[i] = quantile(0.9);
            noise_[i] = noise_of(size_[i], change_[i]);
            last_[i] = residual[static_cast<std::size_t>(n - 1)];
        }
        return 0;
    });
}

/// U and σ of one column, whose noise is not known.
template <class T>
void OnlineRobustPca<T>::follow(std::span<const T> m) {
    double squares = 0;
    for (const T x : m) squares += static_cast<double>(x) * static_cast<double>(x);
    const double norm = std::sqrt(squares);
    sigma_.clear();
    if (norm > 0) sigma_.push_back(norm);
    for (Index i = 0; i < rows_ && norm > 0; ++i)
        U_(i, 0) = static_cast<T>(static_cast<double>(m[static_cast<std::size_t>(i)]) / norm);
    const auto guess = static_cast<float>(options_.threshold / 4);
    std::fill(size_.begin(), size_.end(), guess);
    std::fill(change_.begin(), change_.end(), guess);
}

/// Uᵀx.
template <class T>
std::vector<double> OnlineRobustPca<T>::products(Context<Host>& ctx, std::span<const T> x) const {
    const Index r = rank();
    const auto parts = over_chunks<std::vector<double>>(ctx, chunks_of(rows_), 2.0 * rows_ * r, [&](Range rows) {
        std::vector<double> part(static_cast<std::size_t>(r));
        for (Index k = 0; k < r; ++k) {
            const T *u = U_.view().at(rows.begin, k), *v = x.data() + rows.begin;
            T sum = 0;
            for (Index i = 0; i < rows.size(); ++i) sum += u[i] * v[i];
            part[static_cast<std::size_t>(k)] = static_cast<double>(sum);
        }
        return part;
    });
    std::vector<double> sums(static_cast<std::size_t>(r));
    for (const auto& part : parts)
        for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += part[k];
    return sums;
}

/// c = Uᵀ(m − s), alternately with s = shrink(m − U c, τ) and at last s = m − U c where that is above τ, which leaves no bias; l =
/// U c.
template <class T>
void OnlineRobustPca<T>::project(Context<Host>& ctx, std::span<const T> m, std::span<T> l) {
    const Index r = rank();
    c_ = products(ctx, m);
    for (int step = 0;; ++step) {
        std::vector<T> c(c_.begin(), c_.end());
        const auto parts = over_chunks<std::vector<double>>(ctx, chunks_of(rows_), 4.0 * rows_ * r, [&](Range rows) {
            const Index h = rows.size();
            T* const low = l.data() + rows.begin;
            std::fill_n(low, h, T(0));
            for (Index k = 0; k < r; ++k) {
                const T* const u = U_.view().at(rows.begin, k);
                const T weight = c[static_cast<std::size_t>(k)];
                for (Index i = 0; i < h; ++i) low[i] += weight * u[i];
            }
            // c + Uᵀ(r − shrink(r, τ)), r = m − U c: r less its shrinkage is r clipped to ±τ
            std::vector<double> part(static_cast<std::size_t>(r));
            if (step == projection_steps) return part;
            T* const clipped = e_.data() + rows.begin;
            for (Index i = 0; i < h; ++i) {
                const Index at = rows.begin + i;
                const T tau = static_cast<T>(std::max(options_.threshold, outlier * static_cast<double>(noise_[at])));
                const T r = m[at] - low[i];
                clipped[i] = step + 1 < projection_steps ? std::clamp(r, -tau, tau) : std::abs(r) > tau ? T(0) : r;
            }
            for (Index k = 0; k < r; ++k) {
                const T* const u = U_.view().at(rows.begin, k);
                T sum = 0;
                for (Index i = 0; i < h; ++i) sum += u[i] * clipped[i];
                part[static_cast<std::size_t>(k)] = static_cast<double>(sum);
            }
            return part;
        });
        if (step == projection_steps) return;
        for (const auto& part : parts)
            for (std::size_t k = 0; k < c_.size(); ++k) c_[k] += part[k];
    }
}

/// s = r where |r| > τ, r = m − l; e = r − s, and r where the difference has stood long enough. The noise follows r.
template <class T>
auto OnlineRobustPca<T>::classify(Context<Host>& ctx, std::span<const T> m, std::span<const T> l, std::span<T> s)
    -> Classes {
    const double gain = std::max(last_gain, first_gain / std::sqrt(static_cast<double>(columns_)));
    // a quantile q of |x| rises by the factor e^(gain·q) where |x| is above it, and falls by e^(−gain(1 − q)) elsewhere
    struct Factors {
        float up, down;
    };
    const auto factors = [&](double q) {
        return Factors{static_cast<float>(std::exp(gain * q)), static_cast<float>(std::exp(-gain * (1 - q)))};
    };
    const Factors of_size = factors(0.5), of_change = factors(0.9);
    const auto least = static_cast<float>(options_.threshold / least_noise);
    const auto patience = options_.forget > 0 ? static_cast<std::int32_t>(std::min(1 / options_.forget, 1e9)) : 0;
    const auto parts = over_chunks<Classes>(ctx, chunks_of(rows_), 30.0 * rows_, [&](Range rows) {
        Classes part;
        for (Index i = rows.begin; i < rows.end; ++i) {
            const T r = m[i] - l[i];
            const auto size = static_cast<float>(std::abs(r)), change = static_cast<float>(std::abs(r - last_[i]));
            const auto tau = static_cast<float>(std::max(options_.threshold, outlier * static_cast<double>(noise_[i])));
            const bool sparse = size > tau;
            s[i] = sparse ? r : T(0);
            part.sparse += sparse;
            age_[i] = sparse && change <= tau ? age_[i] + 1 : 0;
            e_[i] = sparse && (patience == 0 || age_[i] < patience) ? T(0) : r;
            last_[i] = r;
            // what differs and stays as it is is no noise
            if (age_[i] == 0) size_[i] = std::max(least, size_[i] * (size > size_[i] ? of_size.up : of_size.down));
            change_[i] = std::max(least, change_[i] * (change > change_[i] ? of_change.up : of_change.down));
            noise_[i] = noise_of(size_[i], change_[i]);
            part.noise += static_cast<double>(noise_[i]) * static_cast<double>(noise_[i]);
        }
        return part;
    });
    Classes sums;
    for (const Classes& part : parts) sums.sparse += part.sparse, sums.noise += part.noise;
    return sums;
}

/// `noise`: ‖z‖ of a column.
template <class T>
void OnlineRobustPca<T>::update(Context<Host>& ctx, double noise) {
    // [U p] [diag(βσ) c + h; 0 ρ] = [U diag(βσ)  l + e],  e = U h + ρ p
    const Index r = rank();
    const double beta = std::sqrt(1 - options_.forget);
    std::vector<double> c = c_;
    double squares = 0;
    for (int pass = 0; pass < 2; ++pass) {
        const std::vector<double> h = products(ctx, e_);
        for (std::size_t k = 0; k < c.size(); ++k) c[k] += h[k];
        const auto parts = over_chunks<double>(ctx, chunks_of(rows_), 2.0 * rows_ * r, [&](Range rows) {
            for (Index k = 0; k < r; ++k) {
                const T* const u = U_.view().at(rows.begin, k);
                const T weight = static_cast<T>(h[static_cast<std::size_t>(k)]);
                for (Index i = 0; i < rows.size(); ++i) e_[static_cast<std::size_t>(rows.begin + i)] -= weight * u[i];
            }
            T sum = 0;
            for (Index i = rows.begin; i < rows.end; ++i) sum += e_[i] * e_[i];
            return static_cast<double>(sum);
        });
        squares = 0;
        for (const double part : parts) squares += part;
    }
    const double rho = std::sqrt(squares);
    Matrix<double> R(r + 1, r + 1);
    std::fill_n(R.data(), (r + 1) * (r + 1), 0.0);
    for (Index k = 0; k < r; ++k) {
        R(k, k) = beta * sigma_[static_cast<std::size_t>(k)];
        R(k, r) = c[static_cast<std::size_t>(k)];
    }
    R(r, r) = rho;
    const SVD<double> f = svd<double>(ctx, R.view());
    // the largest singular value of noise in as many columns as are remembered, and room
    const double remembered = options_.forget > 0 ? std::min(1 / options_.forget, double(columns_)) : double(columns_);
    const double explained = 1.5 * noise * (1 + std::sqrt(remembered / static_cast<double>(rows_)));
    Index kept = 1;
    while (kept < std::min(r + 1, options_.max_rank) && f.s[static_cast<std::size_t>(kept)] > explained) ++kept;
    // U := [U p] W
    Matrix<T> W(r + 1, kept);
    for (Index k = 0; k < kept; ++k) {
        for (Index j = 0; j < r; ++j) W(j, k) = static_cast<T>(f.U(j, k));
        W(r, k) = static_cast<T>(rho > 0 ? f.U(r, k) / rho : 0);
    }
    over_chunks<int>(ctx, chunks_of(rows_), 2.0 * rows_ * (r + 1) * kept, [&](Range rows) {
        constexpr Index height = 256;
        Matrix<T> block(height, kept);
        for (Index first = rows.begin; first < rows.end; first += height) {
            const Index h = std::min(height, rows.end - first);
            for (Index k = 0; k < kept; ++k) {
                T* const to = block.view().at(0, k);
                for (Index i = 0; i < h; ++i) to[i] = W(r, k) * e_[static_cast<std::size_t>(first + i)];
                for (Index j = 0; j < r; ++j) {
                    const T* const u = U_.view().at(first, j);
                    const T weight = W(j, k);
                    for (Index i = 0; i < h; ++i) to[i] += weight * u[i];
                }
            }
            for (Index k = 0; k < kept; ++k) std::copy_n(block.view().at(0, k), h, U_.view().at(first, k));
        }
        return 0;
    });
    sigma_.assign(f.s.begin(), f.s.begin() + kept);
}

/// U = Q R, R diag(σ) = U' diag(σ) V'ᵀ, U := Q U'.
template <class T>
void OnlineRobustPca<T>::orthonormalize(Context<Host>& ctx) {
    const Index r = rank();
    Matrix<T> A(rows_, r);
    for (Index k = 0; k < r; ++k) {
        for (Index i = 0; i < rows_; ++i) A(i, k) = static_cast<T>(sigma_[static_cast<std::size_t>(k)]) * U_(i, k);
    }
    const SVD<T> f = svd<T>(ctx, A.view());
    copy<T>(ctx, f.U.view(), U_.view().col_block({0, r}));
    sigma_.assign(f.s.begin(), f.s.end());
}

template class OnlineRobustPca<float>;
template class OnlineRobustPca<double>;

}  // namespace quoin
