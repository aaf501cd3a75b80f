#pragma once

#include <algorithm>
#include <vector>

#include "quoin/out_of_core.hpp"

namespace quoin {

/// How classical Gram-Schmidt of an m×n matrix (m >= n) is cut, so that what is in fast memory at a time has at most `elements`
/// numbers. All of it is arithmetic on the sizes: the plan counts with it what the algorithm does.
struct Tiles {
    Index m = 0, n = 0;
    Index leaf = 0;      ///< columns whose Q stays in fast memory while they are used
    Index elements = 0;  ///< numbers of fast memory
    bool again = false;  ///< every leaf is orthogonalised against those before it a second time

    /// One step of a stream is the widest (or highest) that the memory has room for; the first and the last ones are smaller, for
    /// nothing hides the move-in of those, nor the move-out of these.
    static std::vector<Range> tapered(Range all, Index most) {
        std::vector<Range> steps;
        const Index least = std::max<Index>(1, most / 8);
        Index size = least;
        for (Index at = all.begin; at < all.end;) {
            const Index half = round((all.end - at + 1) / 2), end = std::min(all.end, at + std::min(size, std::max(least, half)));
            steps.push_back({at, end});
            at = end;
            size = std::min(most, 2 * size);
        }
        return steps;
    }

    /// The columns where a node of the recursion is cut: whole leaves, half of them or one more on the left.
    Index middle(Range J) const { return J.begin + ((J.size() + leaf - 1) / leaf + 1) / 2 * leaf; }

    /// Columns of a leaf that arrive while those before are orthonormalised.
    Index arriving() const { return std::max<Index>(1, std::min(leaf, round(leaf / 8))); }

    /// What is left beside Q and R of a leaf.
    Index beside_leaf() const { return elements - m * leaf - leaf * leaf; }

    /// Columns of A₂ that pass a leaf of s columns at a time: two places in, one out, and R₁₂ twice.
    Index passing(Index s) const { return bounded(beside_leaf() / (3 * m + 2 * s)); }

    /// Columns of R₁₂ that stay in fast memory while A₂ passes a leaf of s columns twice, and those that pass at a time.
    struct Tile {
        Index columns = 1, step = 1;
    };
    Tile two_passes(Index s, Index p) const {
        const Index most_step = bounded(beside_leaf() / 2 / (3 * m));
        const Index most = std::max<Index>(1, (beside_leaf() - 3 * m * most_step) / s);
        const Index columns = evenly(p, most);
        return {columns, std::min(columns, bounded((beside_leaf() - s * columns) / (3 * m)))};
    }

    /// The same where A₂ stays, as many columns of it as there is room for, and Q₁ (m×s) passes, `step` columns at a time in three
    /// places, with R₁₂ of them three times.
    Tile passing_q(Index s, Index p) const {
        const Index step = std::min(s, bounded(elements / 12 / m));
        const Index most = std::max<Index>(1, (elements - 3 * m * step) / (m + 3 * step));
        return {evenly(p, most), step};
    }

    /// Columns of Q that come by the leaf of w columns a second time: two places in, S, and R three times.
    Index coming_again(Index w) const { return bounded((beside_leaf() - w * w) / (2 * m + 4 * w)); }

    /// Fewest numbers of fast memory with which all of the above is possible.
    static Index least_elements(Index m, Index leaf) { return m * leaf + 2 * leaf * leaf + 3 * m + 4 * leaf + 8; }

private:
    /// Whole multiples of what the tensor cores and the bus take at once, where there is room for one.
    static Index round(Index count) { return count >= 512 ? count / 256 * 256 : count; }
    static Index bounded(Index count) { return std::max<Index>(1, round(count)); }
    /// p columns in as few parts of at most `most` as possible, of one size.
    static Index evenly(Index p, Index most) {
        const Index parts = (p + most - 1) / most, each = (p + parts - 1) / parts;
        return std::min({p, most, (each + 127) / 128 * 128});
    }
};
Tiles tiles_of(const OutOfCorePlan& plan);

}  // namespace quoin
