#pragma once

// G := the sum of the blocks' partial Gram matrices, upper triangle, zeros below; C := the sum of their parts of AᵀB (+
// C).
//
// A part is the upper triangle of an n×n matrix in units of `height`×8 (height 16 or 32), strip after strip of `height`
// rows, each strip from its diagonal to the right, or of AᵀB the whole strips, of height 32:
//
//        8 columns
//      ┌──┬──┬──┬──┐ height     unit (s, c), c >= s·height/8, holds rows s·height …, columns 8c …;
//      │ 0│ 1│ 2│ 3│            a unit is a column of 16×8 tiles, stored as (tile, register, lane).
//      └──┴──┼──┼──┤
//            │ 4│ 5│
//            └──┴──┘
//
// Thread (x, y) of a block sums parts y, y + 8, … of one element; the eight sums are added in order. Reads are
// coalesced. Bound by memory (L2, mostly): count · part_size · 8 bytes.

#include "cuda/arch/sm80_dmma.cuh"
#include "cuda/runtime/ceil_div.cuh"
#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/state.hpp"

namespace quoin::cuda {

/// Doubles of a part.
__host__ __device__ constexpr Index part_size(int col_tiles, int height) {
    return Index(unit_count(col_tiles, height)) * height * 8;
}

/// Height of the units of the fused passes, few_columns.cuh and narrow.cuh.
constexpr int fused_height = 16;
constexpr int sum_lanes = 32, sum_groups = 8;

/// Σ of element e, thread x's, over the parts; known to the threads (x, 0). Every thread of the block takes part.
__device__ __forceinline__ double sum_of_element(Index e, Index size, int count, const double* __restrict__ parts) {
    __shared__ double sums[sum_groups][sum_lanes];
    double sum = 0;
    if (e < size) {
#pragma unroll 4
        for (int p = threadIdx.y; p < count; p += sum_groups) sum += parts[p * size + e];
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    for (int y = 0; y < sum_groups; ++y) sum += sums[y][threadIdx.x];
    return sum;
}

/// Where element `inside` of a unit stands in it.
struct PlaceInUnit {
    int row, col;
    __device__ explicit PlaceInUnit(int inside) {
        const int tile = inside / 128, reg = inside / 32 % 4, lane = inside % 32;
        row = tile * 16 + reg / 2 * 8 + lane / 4;
        col = lane % 4 * 2 + reg % 2;
    }
};

template <class T>
__global__ void __launch_bounds__(sum_lanes* sum_groups)
    sum_gram_parts_kernel(int n, int height, int count, const double* __restrict__ parts, T* G, Index ldg) {
    const int col_tiles = ceil_div(n, 8);
    const Index size = part_size(col_tiles, height), e = Index(blockIdx.x) * sum_lanes + threadIdx.x;
    const double sum = sum_of_element(e, size, count, parts);
    if (threadIdx.y != 0 || e >= size) return;

    int c = static_cast<int>(e / (height * 8)), s = 0;
    for (int in_strip = col_tiles; c >= in_strip; in_strip -= height / 8) {
        c -= in_strip;
        ++s;
    }
    c += s * (height / 8);
    const PlaceInUnit place(static_cast<int>(e % (height * 8)));
    const int i = s * height + place.row, j = c * 8 + place.col;
    if (i > j || j >= n) return;
    G[i + j * ldg] = sum;
    if (i < j) G[j + i * ldg] = 0;
}

/// C (n×p) := Σ (+ C where `accumulate`) of the parts of AᵀB, `width` columns of it a group, blockIdx.y.
template <class T>
__global__ void __launch_bounds__(sum_lanes* sum_groups)
    sum_product_parts_kernel(int n, int p, int width, int count, const double* __restrict__ parts, bool accumulate,
                             T* C, Index ldc) {
    constexpr int height = 32;
    const Index size = Index(ceil_div(n, height)) * height * width, e = Index(blockIdx.x) * sum_lanes + threadIdx.x;
    const double sum = sum_of_element(e, size, count, parts + blockIdx.y * count * size);
    if (threadIdx.y != 0 || e >= size) return;
    const int unit = static_cast<int>(e / (height * 8)), tiles = width / 8;
    const PlaceInUnit place(static_cast<int>(e % (height * 8)));
    const int i = unit / tiles * height + place.row,
              j = static_cast<int>(blockIdx.y) * width + unit % tiles * 8 + place.col;
    if (i >= n || j >= p) return;
    T& c_ij = C[i + j * ldc];
    c_ij = static_cast<T>(accumulate ? static_cast<double>(c_ij) + sum : sum);
}

inline void sum_gram_parts(Context<Cuda>& ctx, int height, int count, const double* parts, MatrixView<double, Cuda> G) {
    const int n = static_cast<int>(G.cols);
    const auto blocks = static_cast<unsigned>(ceil_div(part_size(ceil_div(n, 8), height), Index(sum_lanes)));
    launch(ctx.stream(), sum_gram_parts_kernel<double>, {blocks, dim3(sum_lanes, sum_groups)}, n, height, count, parts,
           G.data, G.ld);
}

inline void sum_product_parts(Context<Cuda>& ctx, int width, int groups, int count, const double* parts,
                              bool accumulate, MatrixView<float, Cuda> C) {
    const int n = static_cast<int>(C.rows), p = static_cast<int>(C.cols);
    const auto blocks = static_cast<unsigned>(ceil_div(Index(ceil_div(n, 32)) * 32 * width, Index(sum_lanes)));
    launch(ctx.stream(), sum_product_parts_kernel<float>, {dim3(blocks, groups), dim3(sum_lanes, sum_groups)}, n, p,
           width, count, parts, accumulate, C.data, C.ld);
}

}  // namespace quoin::cuda
