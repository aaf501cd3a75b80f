#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "quoin/matrix.hpp"

namespace quoin {

/// Finds the pairs of N particles in a periodic box of side L that are nearer than a cutoff <= L/2, each with the
/// difference of its positions to the nearest image. It tests all pairs, or only pairs of neighbouring cells if three
/// cells fit a side.
template <int D>
class PairSearch {
public:
    PairSearch(Index count, double side, double cutoff) : N_(count), L_(side), cutoff_(cutoff) {
        // at most one cell a particle
        const double most = std::pow(static_cast<double>(std::max<Index>(N_, 1)), 1.0 / D);
        cells_ = static_cast<Index>(std::min(L_ / cutoff_, std::max(3.0, most)));
    }

    bool has_cells() const { return cells_ >= 3; }

    /// Calls pair(i, j, r, r²) for each pair, with i before j by number or by cell. The order depends on q alone. q is
    /// d×N.
    template <class Pair>
    void for_each(const double* q, Pair&& pair) const {
        if (has_cells()) {
            by_cells(q, pair);
        } else {
            by_pairs(q, pair);
        }
    }

    template <class Pair>
    void by_pairs(const double* q, Pair&& pair) const {
        for (Index i = 0; i < N_; ++i) {
            for (Index j = i + 1; j < N_; ++j) test(q, i, j, pair);
        }
    }

    template <class Pair>
    void by_cells(const double* q, Pair&& pair) const {
        Index total = 1;
        for (int a = 0; a < D; ++a) total *= cells_;
        // particles of cell c: order[first[c], first[c + 1])
        std::vector<Index> cell(static_cast<std::size_t>(N_)), first(static_cast<std::size_t>(total + 1), 0),
            order(static_cast<std::size_t>(N_));
        for (Index i = 0; i < N_; ++i) {
            Index c = 0;
            for (int a = 0; a < D; ++a) {
                const double s = q[D * i + a] / L_;
                const double place = (s - std::floor(s)) * static_cast<double>(cells_);
                // a position that is no number has no pairs, in whatever cell
                const Index k = place > 0 ? static_cast<Index>(std::min(place, static_cast<double>(cells_ - 1))) : 0;
                c = c * cells_ + k;
            }
            cell[static_cast<std::size_t>(i)] = c;
            ++first[static_cast<std::size_t>(c + 1)];
        }
        for (std::size_t c = 1; c < first.size(); ++c) first[c] += first[c - 1];
        std::vector<Index> next(first.begin(), first.end() - 1);
        for (std::size_t i = 0; i < cell.size(); ++i)
            order[static_cast<std::size_t>(next[static_cast<std::size_t>(cell[i])]++)] = static_cast<Index>(i);

        for (Index c = 0; c < total; ++c) {
            const auto members = [&](Index of) {
                const Index begin = first[static_cast<std::size_t>(of)], end = first[static_cast<std::size_t>(of + 1)];
                return std::span<const Index>(order.data() + begin, order.data() + end);
            };
            const std::span<const Index> here = members(c);
            for (std::size_t k = 0; k < here.size(); ++k) {
                for (std::size_t l = k + 1; l < here.size(); ++l) test(q, here[k], here[l], pair);
            }
            for_half_of_neighbours(c, [&](Index neighbour) {
                for (const Index i : here) {
                    for (const Index j : members(neighbour)) test(q, i, j, pair);
                }
            });
        }
    }

private:
    template <class Pair>
    void test(const double* q, Index i, Index j, Pair& pair) const {
        double r[D], square = 0;
        for (int a = 0; a < D; ++a) {
            const double x = q[D * i + a] - q[D * j + a];
            r[a] = x - L_ * std::nearbyint(x / L_);
            square += r[a] * r[a];
        }
        if (square < cutoff_ * cutoff_) pair(i, j, r, square);
    }

    /// The (3ᵈ − 1)/2 neighbours whose offset is lexicographically positive: each pair of cells once, three a side at
    /// least.
    template <class Visit>
    void for_half_of_neighbours(Index c, Visit&& visit) const {
        Index at[D];
        for (int a = D - 1; a >= 0; --a) {
            at[a] = c % cells_;
            c /= cells_;
        }
        constexpr Index offsets = D == 2 ? 9 : 27;
        for (Index code = offsets / 2 + 1; code < offsets; ++code) {
            Index neighbour = 0, rest = code, offset[D];
            for (int a = D - 1; a >= 0; --a) {
                offset[a] = rest % 3 - 1;
                rest /= 3;
            }
            for (int a = 0; a < D; ++a) neighbour = neighbour * cells_ + (at[a] + offset[a] + cells_) % cells_;
            visit(neighbour);
        }
    }

    Index N_;
    double L_, cutoff_;
    Index cells_;
};

}  // namespace quoin
