#pragma once

// The order of work if A₂ stays in fast memory, a tile of columns at a time, and all of Q₁ passes each tile, block by
// block. Each tile reverses the order of the blocks. So the last three blocks of one tile are in memory for the next
// one, and no block comes while tiles come and go. There is work meanwhile: the first two blocks meet the tile part by
// part as it arrives, and the last two as it leaves. Parts of the next tile arrive in the memory that parts of the last
// one have left, so both directions of the bus are busy between tiles, too. With blocks a b c … x y z, and parts of a
// tile 0 1 2 …,
//
//     a0 b0   a1 b1   …   c, whole tile   d   …   x   y0 z0   y1 z1   y2 z2   z0' y0'   y3 z3   z1' y1'   …   x, whole next tile   …

#include <algorithm>
#include <vector>

#include "primitives/tuning.hpp"
#include "quoin/matrix.hpp"

namespace quoin {

/// Places of blocks of Q₁, block b in place b mod 3.
inline constexpr Index passing_places = 3;
/// Returns the columns of each part of a tile.
inline Index passing_part(Index tile) { return (tile + CommonTuning::passing_parts - 1) / CommonTuning::passing_parts; }
/// Returns the columns of the t-th of `tiles` tiles in the order of work, which is the t-th of n columns from the
/// right.
inline Index passing_columns(Index n, Index tile, Index tiles, Index t) {
    return t == 0 ? n - (tiles - 1) * tile : tile;
}
/// Returns the number of blocks of Q₁ that are in their places when the t-th tile comes.
inline Index passing_there(Index blocks, Index kept, Index t) {
    return std::min(blocks, t == 0 ? kept : passing_places);
}

/// One block of Q₁ meets columns of one tile.
struct PassingStep {
    Index tile = 0;
    Index block = 0;       ///< of Q₁
    Range columns;         ///< of the tile; empty: the step only keeps the distances stated below
    bool brings = false;   ///< the block comes with it
    bool arrives = false;  ///< the columns arrive with it
    Range leaves;          ///< the ones among `columns` that leave after it
};

/// Returns the steps for n columns in tiles of `tile`, from the last tile, which may be narrower, to the first, past
/// `blocks` blocks. The first `kept` blocks are in their places beforehand. The first `stay` columns of the first tile
/// stay in place. The input of step i + 1 is enqueued before step i, and so
///
///     the memory of columns that leave with step i is refilled in step i + 2 at the earliest;
///     a block's place is refilled at least two steps after the block's last step.
inline std::vector<PassingStep> passing_steps(Index n, Index tile, Index blocks, Index kept, Index stay) {
    const Index tiles = (n + tile - 1) / tile, width = passing_part(tile);
    std::vector<PassingStep> steps;
    std::vector<Index> left(CommonTuning::passing_parts, -2);  // last step of each part
    const auto size = [&] { return static_cast<Index>(steps.size()); };
    const auto columns_of = [&](Index t) { return passing_columns(n, tile, tiles, t); };
    const auto staying = [&](Index t) { return t + 1 == tiles ? stay : 0; };
    // `there`: blocks in memory before the tile comes. `early`: blocks that meet its parts as they arrive: all blocks
    // in memory or, if further blocks come, all but one. The next block comes while the tile meets that one. `late`:
    // blocks that meet its parts as they leave
    const auto there = [&](Index t) { return passing_there(blocks, kept, t); };
    const auto early = [&](Index t) { return there(t) == blocks ? blocks : std::max<Index>(1, there(t) - 1); };
    // whether each part meets all blocks as it arrives
    const auto streams = [&](Index t) { return early(t) == blocks; };
    const auto late = [&](Index t) {
        return staying(t) < columns_of(t) ? std::clamp<Index>(blocks - early(t), 0, passing_places - 1) : 0;
    };
    // adds a step: `columns` of tile t meet its k-th block
    const auto add = [&](Index t, Index k, Range columns) {
        const Index block = t % 2 == 0 ? k : blocks - 1 - k, part = columns.begin / width;
        const bool first = k == 0, last = k + 1 == blocks;
        while (first && size() < left[part] + 2) steps.push_back({tiles - 1 - t, block, {}, false, false, {}});
        if (last) left[part] = size();
        const Range leaves{last ? std::clamp(staying(t), columns.begin, columns.end) : columns.end, columns.end};
        steps.push_back({tiles - 1 - t, block, columns, columns.begin == 0 && k >= there(t), first, leaves});
    };
    const auto parts_of = [&](Index t) { return t < tiles ? (columns_of(t) + width - 1) / width : 0; };
    const auto part_of = [&](Index t, Index p) { return Range{p * width, std::min((p + 1) * width, columns_of(t))}; };
    const auto arrive = [&](Index t, Index p) {
        for (Index k = 0; k < early(t); ++k) add(t, k, part_of(t, p));
    };
    const auto leave = [&](Index t, Index p) {
        for (Index k = blocks - late(t); k < blocks; ++k) add(t, k, part_of(t, p));
    };
    for (Index t = 0; t < tiles; ++t) {
        for (Index p = 0; (t == 0 || streams(t - 1)) && p < parts_of(t); ++p) arrive(t, p);
        for (Index k = early(t); k < blocks - late(t); ++k) add(t, k, {0, columns_of(t)});
        if (streams(t)) continue;
        // leaving parts are `ahead` parts ahead of arriving ones, so that they do not wait for them
        constexpr Index ahead = 2;
        for (Index p = 0; p < std::max(parts_of(t), parts_of(t + 1) + ahead); ++p) {
            if (p < parts_of(t)) leave(t, p);
            if (p >= ahead && p < parts_of(t + 1) + ahead) arrive(t + 1, p - ahead);
        }
    }
    return steps;
}

}  // namespace quoin
