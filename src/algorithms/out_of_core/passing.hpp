#pragma once

// The order of work where A₂ stays in fast memory, a tile of columns at a time, and all of Q₁ passes each tile, block by block. The
// first block meets the tile part by part as it arrives, and the last one as it leaves; so parts of the next tile arrive where
// those of the last one have left, and both directions of the bus are at work between tiles as well:
//
//     first block, parts 0 1 2 …   blocks between, whole tile   last block, parts 0 1 2, first block of the next tile, part 0,
//     last block, part 3, first block of the next tile, part 1, …

#include <algorithm>
#include <vector>

#include "quoin/matrix.hpp"

namespace quoin {

/// One block of Q₁ meets columns of one tile.
struct PassingStep {
    Index tile = 0;
    Index block = 0;       ///< of Q₁
    Range columns;         ///< of the tile; none: a step for the pipeline's sake
    bool arrives = false;  ///< the columns come with it,
    bool leaves = false;   ///< or go
    Index q = 0;           ///< the block's running number: all blocks for the first tile, all for the second one, …
    Range brings;          ///< of these numbers, those that come with it
};

/// Places that blocks of Q₁ take by turns, number q in place q mod 3.
inline constexpr Index passing_places = 3;
/// Parts of a tile, and the columns of each.
inline constexpr Index passing_parts = 8;
inline Index passing_part(Index tile) { return (tile + passing_parts - 1) / passing_parts; }

/// The steps for n columns in tiles of `tile` past `blocks` blocks, of which `kept` are in their places before the first one. What
/// comes with step i + 1 is asked for before step i is, and so
///
///     what leaves with step i leaves its place to what arrives with step i + 2 and later;
///     a place is brought a new block two steps or more behind the last step of the one before in it.
inline std::vector<PassingStep> passing_steps(Index n, Index tile, Index blocks, Index kept) {
    const Index tiles = (n + tile - 1) / tile, width = passing_part(tile);
    std::vector<PassingStep> steps;
    std::vector<Index> left(passing_parts, -2);  // where a part left
    const auto size = [&] { return static_cast<Index>(steps.size()); };
    const auto add = [&](Index t, Index b, Range columns) {
        const bool first = b == 0, last = b + 1 == blocks;
        const Index part = columns.begin / width;
        while (first && size() < left[part] + 2) steps.push_back({t, b, {0, 0}, false, false, t * blocks + b, {}});
        if (last) left[part] = size();
        steps.push_back({t, b, columns, first, last, t * blocks + b, {}});
    };
    const auto parts_of = [&](Index t) { return (std::min(tile, n - t * tile) + width - 1) / width; };
    const auto part_of = [&](Index t, Index p) {
        return Range{p * width, std::min({(p + 1) * width, tile, n - t * tile})};
    };
    for (Index t = 0; t < tiles; ++t) {
        for (Index p = 0; (t == 0 || blocks == 1) && p < parts_of(t); ++p) add(t, 0, part_of(t, p));
        for (Index b = 1; b + 1 < blocks; ++b) add(t, b, {0, std::min(tile, n - t * tile)});
        if (blocks == 1) continue;
        const Index arriving = t + 1 < tiles ? parts_of(t + 1) : 0;
        // what leaves is two parts ahead: it does not wait for what arrives
        for (Index p = 0; p < std::max(parts_of(t), arriving + 2); ++p) {
            if (p < parts_of(t)) add(t, blocks - 1, part_of(t, p));
            if (p >= 2 && p < arriving + 2) add(t + 1, 0, part_of(t + 1, p - 2));
        }
    }
    // a block comes with its first step; but the first two of a next tile with that of the last block, ahead of the parts that wait
    // for others to leave
    const Index count = tiles * blocks;
    std::vector<Index> first_use(count, size()), last_use(count, -1);
    for (Index i = 0; i < size(); ++i) {
        const PassingStep& step = steps[i];
        if (step.columns.size() == 0) continue;
        first_use[step.q] = std::min(first_use[step.q], i);
        last_use[step.q] = i;
    }
    Index at = 0;
    for (Index q = kept; q < count; ++q) {
        Index wanted = first_use[q];
        if (q % blocks < 2 && q >= blocks) wanted = std::min(wanted, first_use[q / blocks * blocks - 1]);
        if (q >= passing_places) wanted = std::max(wanted, last_use[q - passing_places] + 2);
        at = std::max(at, wanted);
        Range& brings = steps[at].brings;
        brings = {brings.size() == 0 ? q : brings.begin, q + 1};
    }
    return steps;
}

}  // namespace quoin
