#pragma once

// apply_nodes: the papers' kernel `apply_qt_tree`, one level of the tree.
//
//     [C_head; C_member] := op(H) [C_head; C_member], member by member (tpmqrt of triangles)
//
//     grid          one block a node and tile of 16·warps columns
//     ownership     wy_tile.cuh: a warp owns 16 columns; C_head stays in registers over the members, C_member passes
//     shared        18 KB; V and T of one member, staged between two barriers
//     edges         the first n rows of a domain alone are touched; V counts above its diagonal only
//     flops, bytes  2n²p needed, 4n²p + 2n²p issued a member for 2np elements read and written: bounded by memory
//                   latency, n rows of each column a domain apart

#include "wy_tile.cuh"

namespace quoin::cuda {

inline constexpr int apply_node_warps = 4;

template <class T, bool transpose>
__global__ void __launch_bounds__(apply_node_warps * 32)
    apply_node(TreeGeometry tree, Index stride, Index tiles, const T* A, Index lda, const T* Tf, Index ldt, T* C,
               Index ldc, Index p) {
    __shared__ double V[Staged<tile_width>::size], Tk[Staged<tile_width>::size];
    const Staged<tile_width> staged_v(V), staged_t(Tk);
    const Node node(tree, stride, blockIdx.x / tiles);
    if (node.members == 0) return;
    const Index tile = blockIdx.x % tiles;
    const Index first_col = (tile * (blockDim.x / 32) + threadIdx.x / 32) * strip_cols;
    const int n = static_cast<int>(tree.width);
    const int cols = static_cast<int>(p - first_col < strip_cols ? p - first_col : strip_cols);  // none if negative
    const auto strip = [&](Index d) { return Strip<T>(C + tree.domain_begin(d) + first_col * ldc, ldc, cols); };

    T head[4][4];
    strip(node.head).load(0, n, head);
    for (Index step = 1; step <= node.members; ++step) {
        const Index d = node.member(transpose ? step : node.members + 1 - step);
        T c[4][4];
        Block W[4];
        strip(d).load(0, n, c);
        __syncthreads();
        stage<tile_width>(Shape::Triangle, A + tree.domain_begin(d), lda, n, n, Tf + tree.t_of_node(d) * ldt, ldt, V,
                          Tk);
        __syncthreads();
#pragma unroll
        for (int b = 0; b < 4; ++b) {
#pragma unroll
            for (int i = 0; i < 4; ++i) W[b][i] = head[b][i];
        }
        inner<false>(staged_v, c, W);
        multiply_t<false, transpose>(staged_t, W);
#pragma unroll
        for (int b = 0; b < 4; b += 2) outer<false>(staged_v, W, b, c[b], c[b + 1]);
#pragma unroll
        for (int b = 0; b < 4; ++b) {
#pragma unroll
            for (int i = 0; i < 4; ++i) head[b][i] = static_cast<T>(head[b][i] + W[b][i]);
        }
        strip(d).store(0, n, c);
    }
    strip(node.head).store(0, n, head);
}

}  // namespace quoin::cuda
