#pragma once

#include <algorithm>

#include "quoin/matrix.hpp"

namespace quoin::io {

/// Rows and columns of the tiles in which storage order is changed: two tiles of doubles fit in the smallest L1 cache.
inline constexpr Index tile_size = 32;

/// dst[j·ldd + i] = src[i·lds + j] for 0 <= i < m, 0 <= j < n: row-major into column-major, and the reverse with the
/// roles of m and n exchanged.
template <class T>
void transpose(Index m, Index n, const T* src, Index lds, T* dst, Index ldd) {
    for (Index i0 = 0; i0 < m; i0 += tile_size) {
        const Index i1 = std::min(m, i0 + tile_size);
        for (Index j0 = 0; j0 < n; j0 += tile_size) {
            const Index j1 = std::min(n, j0 + tile_size);
            for (Index j = j0; j < j1; ++j)
                for (Index i = i0; i < i1; ++i) dst[j * ldd + i] = src[i * lds + j];
        }
    }
}

}  // namespace quoin::io
