#pragma once

// The strips of a batch, and where their factors are (strips.cuh).

#include "quoin/matrix.hpp"

namespace quoin::cuda::strips {

/// The size of a batch of m×n matrices, k = min(m, n). A matrix has `tiles` tiles of 8 rows and `pieces` pieces of
/// `width` columns. The first `panels` pieces have reflectors.
struct StripSize {
    Index count;
    int m, n, k, tiles, pieces, panels, width;

    Index image_entries() const { return count * pieces * tiles * 8 * width; }
    Index square_entries() const { return count * panels * 2 * width * width; }
};

/// Images of all pieces, matrix after matrix; of each that has reflectors R's diagonal block and T; tau, k a matrix.
/// From its diagonal block on an image has V with its ones and zeros, in tiles as ReflectorTile has them; above that R.
template <class T>
struct StripFactors {
    T *images, *squares, *tau;
};

}  // namespace quoin::cuda::strips
