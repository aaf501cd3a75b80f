#pragma once

// Sizes of out-of-core Gram-Schmidt.

#include <algorithm>
#include <vector>

#include "algorithms/out_of_core/passing.hpp"
#include "algorithms/out_of_core/schedule.hpp"
#include "primitives.hpp"

namespace quoin {

/// The cuts of classical Gram-Schmidt of an m×n matrix (m >= n) that keep at most `elements` numbers in fast memory at
/// a time. All of it is arithmetic on the sizes, which the plan and the algorithm share.
struct Tiles {
    Index m = 0, n = 0;
    Index leaf = 0;       ///< columns whose Q stays in fast memory while they are used
    Index elements = 0;   ///< numbers of fast memory
    bool again = false;   ///< every leaf is orthogonalised a second time against the leaves before it
    bool halves = false;  ///< products take operands of 16 bits
    OutOfCoreSchedule schedule{};

    /// Cuts `all` into the steps of a stream, each as wide (or high) as the memory allows. The first one and the last
    /// one are half as wide, because nothing hides the move-in of the first, nor the move-out of the last. Smaller
    /// steps would pay more for operands of 16 bits, because a product converts all of its other factor.
    std::vector<Range> in_steps(Range all, Index most) const {
        const Index half = schedule.growing ? std::max<Index>(1, most / 2) : most;
        std::vector<Range> steps;
        for (Index at = all.begin; at < all.end;) {
            const Index left = all.end - at;
            const Index size = at == all.begin ? half : left <= half ? left : std::min(most, left - half);
            steps.push_back({at, std::min(all.end, at + size)});
            at = steps.back().end;
        }
        return steps;
    }

    /// Cuts the columns of a leaf into the parts that arrive one by one. The first parts are narrow, so that the
    /// factorization begins early. It has all of Q in place.
    std::vector<Range> arriving(Index leaf_columns) const {
        const Index most = std::max<Index>(1, std::min(leaf, round(leaf / 8)));
        std::vector<Range> parts;
        Index size = schedule.growing ? std::max<Index>(1, most / 8) : most;
        for (Index at = 0; at < leaf_columns; at = parts.back().end) {
            // the last one takes the rest with it
            parts.push_back({at, leaf_columns - at < size + most / 2 ? leaf_columns : at + size});
            size = std::min(most, 2 * size);
        }
        return parts;
    }

    /// Returns the column at which a node of the recursion is cut: whole leaves, half of them or one more on the left.
    Index middle(Range J) const { return J.begin + ((J.size() + leaf - 1) / leaf + 1) / 2 * leaf; }

    /// Returns the numbers of fast memory left by Q and R of a leaf.
    Index beside_leaf() const { return elements - m * leaf - leaf * leaf; }

    /// Returns the columns of A₂ that pass a leaf of s columns at a time: two places in, one out, and R₁₂ twice.
    Index passing(Index s) const { return bounded(beside_leaf() / (3 * m + 2 * s)); }

    /// Columns of R₁₂ that stay in fast memory while A₂ passes a leaf of s columns twice, and columns of A₂ that pass
    /// at a time.
    struct Tile {
        Index columns = 1, step = 1;
    };
    Tile two_passes(Index s, Index p) const {
        const Index max_step = bounded(beside_leaf() / 2 / (3 * m));
        const Index most = std::max<Index>(1, (beside_leaf() - 3 * m * max_step) / s);
        const Index columns = evenly(p, most);
        return {columns, std::min(columns, bounded((beside_leaf() - s * columns) / (3 * m)))};
    }

    /// Columns of A₂ that stay while Q₁ (m×s) passes, `step` columns at a time in three places, with R₁₂ of them three
    /// times. If products round Q₁ anyway, it is kept rounded, in half the memory, and comes in pieces. A leaf is in
    /// the three places as a whole.
    struct Passing {
        Index columns = 1, step = 1;
        bool rounded = false;
        Index piece = 0;   ///< columns of one of two pieces
        Index place = 0;   ///< numbers of one place of Q₁
        Index blocks = 0;  ///< of Q₁
        Index kept = 0;    ///< blocks that are copied from the leaf in fast memory, Q₁'s last columns
        Index stay = 0;    ///< first columns of A₂ that stay in place as the next leaf's

        /// Returns the number of columns of Q₁ that need not come for tile t. They are in their places, alternately the
        /// first and the last ones.
        Index there(Index s, Index t) const {
            const Index count = passing_there(blocks, kept, t);
            return t % 2 == 0 ? std::min(s, count * step) : s - (blocks - count) * step;
        }
    };
    Passing passing_q(Index s, Index p) const {
        const Passing rounded = halves && m >= CommonTuning::min_halved ? passing_q(s, p, true) : Passing();
        return rounded.step >= CommonTuning::min_halved ? rounded : passing_q(s, p, false);
    }
    /// Whether Q₁ passes, as in `passing_q`. A single leaf passes only if it is rounded, so that products with few
    /// columns of A₂ cost no more.
    bool passes_q(Index s, Index p) const {
        if (s > leaf) return true;
        const Passing sizes = passing_q(s, p);
        return sizes.rounded && (sizes.kept == passing_places || !schedule.joined_stages);
    }

    /// Returns the columns of Q that pass the leaf of w columns at a time, when they come a second time: two places in,
    /// S, and R three times.
    Index coming_again(Index w) const { return bounded((beside_leaf() - w * w) / (2 * m + 4 * w)); }

    /// Returns the fewest numbers of fast memory that make all of the above possible.
    static Index min_elements(Index m, Index leaf) { return m * leaf + 2 * leaf * leaf + 3 * m + 4 * leaf + 8; }

private:
    Passing passing_q(Index s, Index p, bool rounded) const {
        const auto place = [&](Index step) { return rounded ? rounded_elements(m, step) : m * step; };
        const Index piece = rounded ? std::clamp<Index>(elements / 24 / m / 8 * 8, 8, 512) : 0;
        const Index room = elements - 2 * m * piece;
        const Index third = (s + 8 * passing_places - 1) / (8 * passing_places) * 8;
        // Q₁ gets a quarter of the memory, and the rest that the tiles leave. It has six blocks at least, so that
        // little comes before all else
        const Index min_step = s <= leaf ? third : std::min(s, bounded(room / 4 * 64 / (3 * place(64))));
        const Index most = std::max<Index>(1, (room - 3 * place(min_step)) / (m + 3 * min_step));
        const Index columns = evenly(p, most);
        const Index widest = bounded((room - m * columns) / (3 * (place(64) + 63) / 64 + 3 * columns));
        const Index wide = std::min(widest, (s + 5) / 6);
        const Index step = s <= leaf ? third : evenly(s, std::max<Index>(1, rounded ? wide / 8 * 8 : wide));
        // places lie at the end of the memory, the first one last. A block can be made at once if its place begins
        // after its columns in the leaf: elements − (b + 1) place >= (leaf − b step) m. That holds for all b if it
        // holds for b = 0, since place <= step m
        const bool apart = elements - place(step) >= leaf * m;
        const Index blocks = (s + step - 1) / step;
        const bool joined = schedule.joined_stages;
        const Index kept = joined && apart ? std::min(passing_places, s <= leaf ? blocks : leaf / step) : 0;
        return {columns, step, rounded, piece, place(step), blocks, kept, joined ? std::min(columns, leaf) : 0};
    }
    /// Rounds to whole multiples of the sizes that the tensor cores and the bus take at once, if there is room for one.
    static Index round(Index count) { return count >= 512 ? count / 256 * 256 : count; }
    static Index bounded(Index count) { return std::max<Index>(1, round(count)); }
    /// Returns the width that cuts p columns into the fewest parts of at most `most`, all equally wide.
    static Index evenly(Index p, Index most) {
        const Index parts = (p + most - 1) / most, each = (p + parts - 1) / parts;
        return std::min({p, most, (each + 127) / 128 * 128});
    }
};
Tiles tiles_of(const OutOfCorePlan& plan, const OutOfCoreSchedule& schedule = {});

}  // namespace quoin
