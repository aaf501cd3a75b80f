#pragma once

// The strips of a batch, and where their factors are (batch_strips.cuh).

#include "quoin/matrix.hpp"

namespace quoin::cuda::strips {

/// Of a batch of m×n matrices, k = min(m, n): 8-row tiles of a matrix, strips of it, and those of them that have reflectors.
struct StripSize {
    Index count;
    int m, n, k, tiles, strips, panels, width;

    Index image_entries() const { return count * strips * tiles * 8 * width; }
    Index square_entries() const { return count * panels * 2 * width * width; }
};

/// Images of all strips, matrix after matrix; of each that has reflectors R's diagonal block and T; tau, k a matrix.
/// From its diagonal block on an image has V with its ones and zeros, in tiles as ReflectorTile has them; above that R.
template <class T>
struct StripFactors {
    T *images, *squares, *tau;
};

}  // namespace quoin::cuda::strips
