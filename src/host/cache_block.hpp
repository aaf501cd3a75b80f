#pragma once

#include <algorithm>

#include "host/block_reflector.hpp"

namespace quoin::host {

/// Bytes of a row block that is worked on in cache: half of a common L2.
inline constexpr Index cache_block_bytes = Index(512) << 10;

/// Rows of such a block for n columns: whole register tiles, and columns long enough to stream.
template <class T>
Index cache_block_rows(Index n) {
    constexpr Index tile = 48;  // rows; a multiple of the register tile of every kernel set but the last vector
    const Index rows = cache_block_bytes / (n * Index(sizeof(T))) / tile * tile;
    return std::clamp<Index>(rows, tile, 4 * block_rows<T>);
}

}  // namespace quoin::host
