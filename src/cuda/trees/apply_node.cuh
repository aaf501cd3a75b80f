#pragma once

// apply_nodes: the papers' kernel `apply_qt_tree`, one level of the tree.
//
//     W = C_head + Σ V_sᵀ C_s,  W := op(T) W,  C_head −= W,  C_s −= V_s W
//
//     grid          one block a node and 16 columns, one warp a tile of factor_node_kernel's turns
//     ownership     wy_tile.cuh: a warp holds C_s, stages V_s for itself, and gives its part of W to the others; the parts
//                   are added in the order of the members
//     shared        V 9 KB and part of W 4 KB a warp, T 9 KB, W 4 KB: 130 KB with 9 warps
//     edges         of a head the rows of the sub-panel's triangle alone are touched, of a member those and the ones
//                   above; a triangle of V counts above its diagonal only
//     flops, bytes  2n²p needed, 4n²p and 2n²p for T issued a triangle, for 2np + n²/2 elements: bounded by memory
//                   latency, n rows of each column a domain apart

#include "cuda/trees/wy_tile.cuh"

namespace quoin::cuda {

/// Doubles of a 32×16 W, in the order of the lanes' registers.
inline constexpr int w_doubles = tile_width * strip_cols;

__host__ __device__ constexpr std::size_t apply_node_bytes(int warps) {
    return ((warps + 1) * (Staged<tile_width>::size + w_doubles)) * sizeof(double);
}

/// Where W(b).v[2 half], v[2 half + 1] of this lane stand.
__device__ inline double2& w_pair(double* W, int b, int half) {
    return reinterpret_cast<double2*>(W)[(2 * b + half) * 32 + threadIdx.x % 32];
}

template <class T, int warps, bool rectangles, bool transpose>
__global__ void __launch_bounds__(warps * 32)
    apply_node_kernel(TreeGeometry tree, Index stride, Index strips, const T* A, Index lda, const T* Tf, Index ldt,
                      T* C, Index ldc, Index p) {
    extern __shared__ __align__(16) unsigned char memory[];
    double* const Tk = reinterpret_cast<double*>(memory);
    double* const sum = Tk + Staged<tile_width>::size;
    double* const parts = sum + w_doubles;
    const int warp = threadIdx.x / 32, n = static_cast<int>(tree.width);
    double* const V = parts + warps * w_doubles + warp * Staged<tile_width>::size;
    const Staged<tile_width> staged_v(V), staged_t(Tk);
    const Node node(tree, stride, blockIdx.x / strips);
    if (node.members == 0) return;
    const NodeTurns<warps, rectangles> turns(tree);
    const Index first_col = blockIdx.x % strips * strip_cols;
    const int cols = static_cast<int>(p - first_col < strip_cols ? p - first_col : strip_cols);
    const auto strip = [&](Index row) { return Strip<T>(C + row + first_col * ldc, ldc, cols); };
    const Index head_row = tree.domain_begin(node.head), count = turns.count(node);

    T head[4][4];
    if (warp == 0) strip(head_row).load(n, head);
    for (Index turn = 0; turn < count; ++turn) {
        const Index first = 1 + (transpose ? turn : count - 1 - turn) * turns.each;
        const Index row = turns.row(tree, turns.domain(node, first));
        const int h = turns.mine(node, first) ? turns.height(tree) : 0;
        T c[4][4];
        strip(row).load(h, c);
        stage<tile_width>(Source<T>{Shape::Triangle, A + row, lda, h, n, turns.below()}, V, 0, 1);
        stage<tile_width>(Source<T>{Shape::Rectangle, Tf + tree.t_of_node(node.member(first)) * ldt, ldt, n, n}, Tk,
                          warp, warps);
        __syncwarp();
        Tile16x8 W[4] = {};
        if (warp == 0) {
#pragma unroll
            for (int b = 0; b < 4; ++b) W[b] = widen(head[b]);
        }
        inner(staged_v, 0, c, W);
#pragma unroll
        for (int b = 0; b < 4; ++b) {
            w_pair(parts + warp * w_doubles, b, 0) = {W[b].v[0], W[b].v[1]};
            w_pair(parts + warp * w_doubles, b, 1) = {W[b].v[2], W[b].v[3]};
        }
        __syncthreads();
        for (int e = threadIdx.x; e < w_doubles; e += warps * 32) {
            double w = parts[e];
#pragma unroll
            for (int s = 1; s < warps; ++s) w += parts[s * w_doubles + e];
            sum[e] = w;
        }
        __syncthreads();
#pragma unroll
        for (int b = 0; b < 4; ++b) {
            const double2 left = w_pair(sum, b, 0), right = w_pair(sum, b, 1);
            W[b] = {{left.x, left.y, right.x, right.y}};
        }
        multiply_t<transpose>(staged_t, W);
        if (warp == 0) subtract_from_top(W, head);
        turn_left(W, n);
        outer(staged_v, W, 0, c);
        strip(row).store(h, c);
        __syncthreads();
    }
    if (warp == 0) strip(head_row).store(n, head);
}

}  // namespace quoin::cuda
