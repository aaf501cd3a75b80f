#pragma once

// Passes over m×n matrices, and their sums: a block takes chunks of 1024 rows of a column in turn, thread x the rows x,
// x + 256, …; its threads' sums are added in a fixed tree, and `sum_blocks_kernel` adds the blocks' in order, all in
// double. Bound by memory.

#include <algorithm>

#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/state.hpp"

namespace quoin::cuda {

inline constexpr int chunk_threads = 256, chunk_pieces = 4, chunk_rows = chunk_threads * chunk_pieces;

/// Numbers that are added up, or their maximum taken, over a matrix.
struct Triple {
    double a = 0, b = 0, c = 0;
};
struct Add {
    __device__ void operator()(Triple& x, Triple y) const {
        x.a += y.a;
        x.b += y.b;
        x.c += y.c;
    }
};
/// The triples of the block's threads, in a fixed tree, in thread 0.
template <int threads, class Join>
__device__ Triple join_block(Triple value, Join join) {
    __shared__ double shared[3][threads / 32];
    const int warp = threadIdx.x / 32;
    for (int step = 16; step > 0; step /= 2) {
        Triple other;
        other.a = __shfl_xor_sync(~0u, value.a, step);
        other.b = __shfl_xor_sync(~0u, value.b, step);
        other.c = __shfl_xor_sync(~0u, value.c, step);
        join(value, other);
    }
    if (threadIdx.x % 32 == 0) {
        shared[0][warp] = value.a;
        shared[1][warp] = value.b;
        shared[2][warp] = value.c;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < threads / 32; ++w) join(value, Triple{shared[0][w], shared[1][w], shared[2][w]});
    }
    return value;
}

/// parts[block] := what `f(i, j, sums)` adds up over the block's chunks; f works on `chunk_pieces` rows of a column at
/// a time, which `i` holds, −1 beyond the last.
template <class F, class Join>
__global__ void __launch_bounds__(chunk_threads)
    chunk_kernel(Index m, Index n, Index chunks, F f, Join join, Triple* parts) {
    Triple sums;
    for (Index at = blockIdx.x; at < chunks * n; at += gridDim.x) {
        const Index first = at % chunks * chunk_rows + threadIdx.x, j = at / chunks;
        f(first, m, j, sums);
    }
    sums = join_block<chunk_threads>(sums, join);
    if (threadIdx.x == 0) parts[blockIdx.x] = sums;
}

/// out(Σ parts), in the order of the blocks.
template <class Join, class Out>
__global__ void __launch_bounds__(chunk_threads) sum_blocks_kernel(int count, const Triple* parts, Join join, Out out) {
    Triple sums;
    for (int b = threadIdx.x; b < count; b += chunk_threads) join(sums, parts[b]);
    sums = join_block<chunk_threads>(sums, join);
    if (threadIdx.x == 0) out(sums);
}

/// Calls `f(first, m, j, sums)` for every column's chunks, and `out` with the sums.
template <class F, class Join, class Out>
void over_chunks(Context<Cuda>& ctx, Index m, Index n, F f, Join join, Out out) {
    const Index chunks = (m + chunk_rows - 1) / chunk_rows;
    const int blocks = static_cast<int>(
        std::min<Index>(chunks * n, Index(ctx.state().kernels.multiprocessors) * (2048 / chunk_threads)));
    Arena::Frame frame(ctx);
    Triple* const parts = frame.take<Triple>(std::max(1, blocks));
    if (blocks > 0) {
        launch(ctx.stream(), chunk_kernel<F, Join>, {static_cast<unsigned>(blocks), chunk_threads}, m, n, chunks, f,
               join, parts);
    }
    launch(ctx.stream(), sum_blocks_kernel<Join, Out>, {1, chunk_threads}, blocks, parts, join, out);
}

}  // namespace quoin::cuda
