#pragma once

// Partial sketches of a tall A (m×n), part_p = S_p A over the rows of block p (primitives/sketch.hpp).
//
// A block owns up to 32 columns and a run of rows. A warp owns one of the columns, and keeps its s sums in f64 in
// shared memory. It reads 32 rows at a time: lane i adds its entry to row (i + rotation) % 32 of a segment of each of
// the four parts, so that the lanes of an access fall into different banks and never meet. Each
// lane computes the place of one of 32 groups, and the other lanes get it by shuffles.
//
// Shared: 8 s bytes a column, 196 KB for 32 columns and the s of n = 192. 4mn additions in f64 whatever T is; mn
// elements read. Any ld and alignment. Each addition reads and writes 8 bytes of shared memory, which take 0.37 ms of
// the 0.6 for 1 000 000×192 on an H200.

#include <algorithm>

#include "cuda/runtime/ceil_div.cuh"
#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/state.hpp"
#include "primitives/sketch.hpp"

namespace quoin::cuda {

constexpr int sketch_tile_groups = 32, sketch_ahead = 8;
/// A place has ten bits for its segment.
constexpr Index max_sketch_segments = 1024;

/// How a sketch is cut: `cols` columns a block, a warp each, `strips` of them, and `parts` runs of `rows` rows.
struct SketchGrid {
    int cols, strips, parts;
    Index rows, bytes;  ///< bytes 0: a column's sums are more than a block's shared memory
    SketchGrid(Index m, int n, Index s, int multiprocessors, Index max_bytes) {
        const Index column_bytes = s * Index(sizeof(double));
        cols = static_cast<int>(std::clamp<Index>(max_bytes / column_bytes, 1, std::min(32, n)));
        strips = ceil_div(n, cols);
        cols = ceil_div(n, strips);
        bytes = cols * column_bytes;
        if (bytes > max_bytes) bytes = 0;
        const Index resident = bytes == 0 ? 1 : std::clamp<Index>(max_bytes / bytes, 1, 64 / cols);
        constexpr Index tile = sketch_tile_groups * sketch_group_rows;
        const Index tiles = std::max<Index>(1, ceil_div(m, tile));
        const Index max_parts = std::clamp<Index>(multiprocessors * resident / strips, 1, tiles);
        rows = ceil_div(tiles, max_parts) * tile;
        parts = static_cast<int>(std::max<Index>(1, ceil_div(m, rows)));
    }
};

/// `in_shared`: the sums are in shared memory, otherwise in the part.
template <class T, bool in_shared>
__global__ void __launch_bounds__(1024)
    sketch_kernel(Index m, int n, const T* A, Index lda, Index seed, int segments, Index rows, double* parts) {
    extern __shared__ __align__(16) unsigned char shared[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, cols = blockDim.x / 32;
    const int s = sketch_parts * sketch_group_rows * segments, column = blockIdx.x * cols + warp;
    if (column >= n) return;
    double* const part = parts + (Index(blockIdx.y) * n + column) * s;
    double* const sums = in_shared ? reinterpret_cast<double*>(shared) + warp * s : part;
    for (int i = lane; i < s; i += 32) sums[i] = 0;
    const Index begin = blockIdx.y * rows, end = min(m, begin + rows);
    const T* const a = A + column * lda;
    __syncwarp();
    for (Index tile = begin; tile < end; tile += sketch_tile_groups * sketch_group_rows) {
        const SketchGroup mine = sketch_group(tile / sketch_group_rows + lane, seed, segments);
        // two places to a word: the sign, five bits of the rotation, ten of the segment of all parts
        unsigned places[sketch_parts / 2] = {};
#pragma unroll
        for (int k = 0; k < sketch_parts; ++k) {
            const unsigned segment = k * segments + mine.segment[k];
            places[k / 2] |= (segment << 6 | mine.rotation[k] << 1 | (mine.part_signs >> k & 1)) << k % 2 * 16;
        }
#pragma unroll 1
        for (int first = 0; first < sketch_tile_groups; first += sketch_ahead) {
            T x[sketch_ahead];
#pragma unroll
            for (int g = 0; g < sketch_ahead; ++g) {
                const Index row = tile + (first + g) * sketch_group_rows + lane;
                x[g] = row < end ? a[row] : T(0);
            }
#pragma unroll
            for (int g = 0; g < sketch_ahead; ++g) {
                const unsigned row_signs = __shfl_sync(0xffffffff, mine.row_signs, first + g);
                const double entry = row_signs >> lane & 1 ? -double(x[g]) : double(x[g]);
                unsigned words[sketch_parts / 2];
#pragma unroll
                for (int k = 0; k < sketch_parts / 2; ++k) words[k] = __shfl_sync(0xffffffff, places[k], first + g);
                double* to[sketch_parts];
                double sum[sketch_parts];
#pragma unroll
                for (int k = 0; k < sketch_parts; ++k) {
                    const unsigned place = words[k / 2] >> k % 2 * 16 & 0xffff;
                    to[k] = sums + ((place >> 6) << 5) + ((lane + (place >> 1)) & 31);
                    sum[k] = *to[k] + (place & 1 ? -entry : entry);
                }
#pragma unroll
                for (int k = 0; k < sketch_parts; ++k) *to[k] = sum[k];
                // another lane may add to the same sum next
                __syncwarp();
            }
        }
    }
    for (int i = lane; i < s; i += 32) part[i] = 0.5 * sums[i];
}

/// The parts, each s×n without gaps, s = 128 `segments`. n > 0.
template <class T>
void sketch(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, Index seed, int segments, const SketchGrid& grid,
            double* parts) {
    const LaunchShape shape{dim3(grid.strips, grid.parts), dim3(32 * grid.cols), std::size_t(grid.bytes)};
    launch(ctx.stream(), grid.bytes > 0 ? sketch_kernel<T, true> : sketch_kernel<T, false>, shape, A.rows,
           static_cast<int>(A.cols), A.data, A.ld, seed, segments, grid.rows, parts);
}

}  // namespace quoin::cuda
