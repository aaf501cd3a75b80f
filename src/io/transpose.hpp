#pragma once

// Changes of the storage order, tile by tile.

#include <algorithm>
#include <span>

#include "quoin/matrix.hpp"

namespace quoin::io {

/// Rows and columns of a tile when the storage order is changed: two tiles of doubles fit in the smallest L1 cache.
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

/// Calls `write(element, data, count)` for rows [first, first + block.rows) of a matrix of `cols` columns in C order,
/// piece by piece through `buffer`.
template <class T, class Write>
void in_c_order(Index cols, Index first, MatrixView<const T> block, std::span<T> buffer, Write&& write) {
    if (block.empty()) return;
    // The buffer holds ni whole rows, or a part of one row that is longer than it.
    const Index elements = static_cast<Index>(buffer.size()), nj = std::min(cols, elements), ni = elements / nj;
    for (Index i = 0; i < block.rows; i += ni) {
        const Range r{i, std::min(i + ni, block.rows)};
        for (Index j = 0; j < block.cols; j += nj) {
            const Range c{j, std::min(j + nj, block.cols)};
            transpose(c.size(), r.size(), block.at(r.begin, c.begin), block.ld, buffer.data(), c.size());
            write((first + i) * cols + j, buffer.data(), r.size() * c.size());
        }
    }
}

}  // namespace quoin::io
