#pragma once

// G := the sum of the blocks' partial Gram matrices, upper triangle, zeros below.
//
// A part is the upper triangle of an n×n matrix in units of `height`×8 (height 16 or 32), strip after strip of `height`
// rows, each strip from its diagonal to the right:
//
//        8 columns
//      ┌──┬──┬──┬──┐ height     unit (s, c), c >= s·height/8, holds rows s·height …, columns 8c …;
//      │ 0│ 1│ 2│ 3│            a unit is a column of 16×8 tiles, stored as (tile, register, lane).
//      └──┴──┼──┼──┤
//            │ 4│ 5│
//            └──┴──┘
//
// Thread (x, y) of a block sums parts y, y + 8, … of one element; the eight sums are added in order. Reads are coalesced.
// Bound by memory (L2, mostly): count · part_size · 8 bytes.

#include "cuda/kernels/dmma.cuh"

namespace quoin::cuda {

/// Doubles of a part.
__host__ __device__ constexpr Index part_size(int col_tiles, int height) {
    return Index(unit_count(col_tiles, height)) * height * 8;
}

constexpr int sum_lanes = 32, sum_groups = 8;

__global__ void __launch_bounds__(sum_lanes* sum_groups)
    sum_gram_parts_kernel(int n, int height, int count, const double* __restrict__ parts, double* G, Index ldg) {
    __shared__ double sums[sum_groups][sum_lanes];
    const int col_tiles = ceil_div(n, 8);
    const Index size = part_size(col_tiles, height), e = Index(blockIdx.x) * sum_lanes + threadIdx.x;

    double sum = 0;
    if (e < size) {
#pragma unroll 4
        for (int p = threadIdx.y; p < count; p += sum_groups) sum += parts[p * size + e];
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || e >= size) return;
    sum = 0;
    for (int y = 0; y < sum_groups; ++y) sum += sums[y][threadIdx.x];

    int c = static_cast<int>(e / (height * 8)), s = 0;
    const int inside = static_cast<int>(e % (height * 8)), tile = inside / 128, reg = inside / 32 % 4,
              lane = inside % 32;
    for (int in_strip = col_tiles; c >= in_strip; in_strip -= height / 8) {
        c -= in_strip;
        ++s;
    }
    c += s * (height / 8);
    const int i = s * height + tile * 16 + (reg / 2) * 8 + lane / 4, j = c * 8 + lane % 4 * 2 + reg % 2;
    if (i > j || j >= n) return;
    G[i + j * ldg] = sum;
    if (i < j) G[j + i * ldg] = 0;
}

inline cudaError_t sum_gram_parts(int n, int height, int count, const double* parts, double* G, Index ldg,
                                  cudaStream_t stream) {
    const Index size = part_size(ceil_div(n, 8), height);
    sum_gram_parts_kernel<<<static_cast<unsigned>(ceil_div(size, Index(sum_lanes))), dim3(sum_lanes, sum_groups), 0,
                            stream>>>(n, height, count, parts, G, ldg);
    return cudaGetLastError();
}

}  // namespace quoin::cuda
