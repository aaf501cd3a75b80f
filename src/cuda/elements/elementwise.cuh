#pragma once

// One thread an element (i, j) of an m×n matrix, threads along columns, so that a warp touches consecutive rows. Grids
// beyond CUDA's limits stride. Bound by memory.

#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/state.hpp"

namespace quoin::cuda {

inline constexpr int element_threads = 256;

template <class F>
__global__ void __launch_bounds__(element_threads) elementwise_kernel(Index m, Index n, F f) {
    for (Index j = blockIdx.y; j < n; j += gridDim.y) {
        for (Index i = Index(blockIdx.x) * element_threads + threadIdx.x; i < m;
             i += Index(gridDim.x) * element_threads) {
            f(i, j);
        }
    }
}

/// f(i, j) for every element of an m×n matrix.
template <class F>
void for_each_element(Context<Cuda>& ctx, Index m, Index n, F f) {
    if (m == 0 || n == 0) return;
    const dim3 grid(static_cast<unsigned>(std::min<Index>((m + element_threads - 1) / element_threads, 1 << 20)),
                    static_cast<unsigned>(std::min<Index>(n, 65535)));
    launch(ctx.stream(), elementwise_kernel<F>, {grid, element_threads}, m, n, f);
}

}  // namespace quoin::cuda
