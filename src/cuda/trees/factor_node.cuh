#pragma once

// factor_nodes: the papers' kernel `factor_tree`, one level of the tree.
//
//     [R_head; R_1; R_2; …] = H [R; 0], as many members at once as `warps` warps hold, with one T; V overwrites the
//                                          members' tiles
//
//     grid          one block a node, one warp a tile of 32 rows (geometry.cuh); members beyond the warps are absorbed
//                   in turns
//     ownership     reflect_tile.cuh: a tile in registers; a triangle's zeros below its diagonal stay zeros, so V is
//                   made of rectangles and triangles again
//     shared        R, T, x: 18 KB (f32) or 35 KB (f64) with 9 warps
//     edges         entries below the triangles are another leaf's V: neither read nor written; columns >= n are zeros;
//                   a warp without a tile holds zeros
//     flops         2n³/3 needed, 4n³ issued a triangle; bounded by the latency of n dependent steps a turn

#include "cuda/trees/reflect_tile.cuh"

namespace quoin::cuda {

template <class T, int warps, bool rectangles>
__global__ void __launch_bounds__(warps * 32)
    factor_node_kernel(TreeGeometry tree, Index stride, T* A, Index lda, T* Tf, Index ldt) {
    extern __shared__ __align__(16) unsigned char memory[];
    auto& s = *reinterpret_cast<ReflectShared<T, warps, 32>*>(memory);
    const Node node(tree, stride, blockIdx.x);
    if (node.members == 0) return;
    const NodeTurns<warps, rectangles> turns(tree);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n = static_cast<int>(tree.width);
    T* const head = A + tree.domain_begin(node.head);
    for (int i = threadIdx.x; i < 32 * 33; i += warps * 32) s.Tk[0][i] = 0;
    for (int c = warp; c < 32; c += warps) s.R[lane][c] = lane <= c && c < n ? head[lane + c * lda] : T(0);
    for (Index first = 1; first <= node.members; first += turns.each) {
        T* const tile = A + turns.row(tree, turns.domain(node, first));
        const int h = turns.mine(node, first) ? turns.height(tree) : 0;
        T a[4][8];
        load_tile(tile, lda, h, n, turns.triangle, a);
        barrier<warps>();
        reflect_tile<true>(s, h, n, turns.triangle, tile, lda, a);
        join_t(s);
        store_square<T, warps>(s.Tk, n, false, Tf + tree.t_of_node(node.member(first)) * ldt, ldt);
        barrier<warps>();
    }
    store_square<T, warps>(s.R, n, true, head, lda);
}

}  // namespace quoin::cuda
