#pragma once

// Heights of blocks of rows that stay in cache.

#include <algorithm>

#include "host/block_reflector.hpp"

namespace quoin::host {

/// Rows of a block of n columns that is worked on in cache: whole register tiles, and columns long enough to stream.
template <class T>
Index cache_block_rows(Index n) {
    constexpr Index tile = 48;  // rows; a multiple of the register tile of every kernel set but the last vector
    const Index rows = Tuning<Host>::cache_block_bytes / (n * Index(sizeof(T))) / tile * tile;
    return std::clamp<Index>(rows, tile, 4 * block_rows<T>);
}

}  // namespace quoin::host
