#pragma once

// The computations of online robust PCA for one row, on either device.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "quoin/matrix.hpp"

namespace quoin {

/// Quantiles of |normal| noise: the median, and 90% of differences of two.
inline constexpr double median_of_size = 0.6744897502, most_of_change = 1.6448536270 * std::numbers::sqrt2;
/// τ in units of the noise.
inline constexpr double outlier = 3;

/// Returns the standard deviation, the larger of the estimates by the two quantiles.
constexpr float noise_of(float size, float change) {
    return std::max(size / static_cast<float>(median_of_size), change / static_cast<float>(most_of_change));
}

/// State of one row.
template <class T>
struct RowRecord {
    T last;                     // m − l of the last column
    float size, change, noise;  // median of |r|, 90% quantile of |r − r'|, and the noise by both
    std::int32_t age;           // number of columns over which the difference from l has stayed the same
    std::int32_t votes;         // number of early columns near l minus the number of others
};

/// Kinds of an entry of a column: background, sparse, or a new background that replaces the old one.
enum class Entry { Low, Sparse, Replaced };

/// Rules for the entries of one column.
struct EntryRules {
    double threshold;                                  // the least τ
    float min_noise;                                   // also the least quantiles
    float size_up, size_down, change_up, change_down;  // factors that move the quantiles
    std::int32_t patience;   // columns after which a lasting difference belongs to the background; 0: never
    std::int32_t undecided;  // a background with at most this number of votes may be replaced

    constexpr double tau(float noise) const { return std::max(threshold, outlier * static_cast<double>(noise)); }
    /// Returns r clipped to ±τ, or with `leaves_out` 0 if |r| > τ.
    template <class T>
    constexpr T clipped(T r, float noise, bool leaves_out) const {
        const T t = static_cast<T>(tau(noise));
        return !leaves_out ? std::clamp(r, -t, t) : std::abs(r) > t ? T(0) : r;
    }
    /// Returns how many of the first n − 1 columns are near l minus how many are not. `r(j)` is the residual of column
    /// j.
    template <class T, class Residual>
    constexpr std::int32_t votes(Index n, float noise, Residual r) const {
        const T most = static_cast<T>(tau(noise));
        std::int32_t votes = 0;
        for (Index j = 0; j + 1 < n; ++j) votes += std::abs(r(j)) > most ? -1 : 1;
        return votes;
    }
    /// Sets s = r if |r| > τ, otherwise 0. Sets e = r − s, or e = r if the difference has lasted long enough. The noise
    /// follows r. Every column votes for the background if it is near and against it if not. A background with fewer
    /// than half of the votes was something that moved. The next difference that lasts replaces it and no longer counts
    /// as a difference (Boyer and Moore's majority vote).
    template <class T>
    constexpr Entry separate(T r, RowRecord<T>& row, T& s, T& e, bool may_replace) const {
        const auto size = static_cast<float>(std::abs(r)), change = static_cast<float>(std::abs(r - row.last));
        const auto most = static_cast<float>(tau(row.noise));
        const bool sparse = size > most;
        row.age = sparse && change <= most ? row.age + 1 : 0;
        if (row.votes <= undecided) {
            row.votes += sparse ? -1 : 1;
            if (row.votes < 0 && row.age > 0 && may_replace) {
                s = e = row.last = T(0);
                row.age = 0;
                row.votes = 1;
                return Entry::Replaced;
            }
        }
        s = sparse ? r : T(0);
        e = sparse && (patience == 0 || row.age < patience) ? T(0) : r;
        row.last = r;
        // a difference that does not change is not noise
        if (row.age == 0) row.size = std::max(min_noise, row.size * (size > row.size ? size_up : size_down));
        row.change = std::max(min_noise, row.change * (change > row.change ? change_up : change_down));
        row.noise = noise_of(row.size, row.change);
        return sparse ? Entry::Sparse : Entry::Low;
    }
};

/// The change r cᵀ/‖c‖² of a row u of U, the least that increases uᵀc by r. It acts as if all columns so far had had
/// the new entry.
template <class T>
class RowChange {
public:
    template <class D>
    explicit constexpr RowChange(MatrixView<const double, D> c) : c_(c.data) {
        for (Index k = 0; k < c.rows; ++k) squares_ += c_[k] * c_[k];
    }
    constexpr bool possible() const { return squares_ > 0; }
    template <class D>
    constexpr void apply(MatrixView<T, D> U, Index i, T r) const {
        for (Index k = 0; k < U.cols; ++k) U.data[i + k * U.ld] += r * static_cast<T>(c_[k] / squares_);
    }

private:
    const double* c_;
    double squares_ = 0;
};

/// Calls exchange(low, high) for the pairs of Batcher's odd-even merge sort of n numbers, in order.
template <class Exchange>
constexpr void sorting_network(Index n, Exchange exchange) {
    for (Index p = 1; p < n; p *= 2) {
        for (Index k = p; k >= 1; k /= 2) {
            for (Index j = k % p; j + k < n; j += 2 * k) {
                for (Index c = j; c < std::min(j + k, n - k); ++c) {
                    // both in one run of 2p
                    if ((c ^ (c + k)) < 2 * p) exchange(c, c + k);
                }
            }
        }
    }
}
/// Returns the index of the quantile q of `count` sorted numbers.
inline Index quantile_at(double q, Index count) {
    return static_cast<Index>(std::ceil(q * static_cast<double>(count - 1) - 0.5));
}

/// Returns the value of a byte, in [0, 1], and below the byte of a value's absolute value.
template <class T>
constexpr T value_of_byte(std::uint8_t byte) {
    return static_cast<T>(byte) / T(255);
}
template <class T>
constexpr std::uint8_t byte_of_value(T value) {
    return static_cast<std::uint8_t>(255 * std::clamp(std::abs(static_cast<double>(value)), 0.0, 1.0) + 0.5);
}

}  // namespace quoin
