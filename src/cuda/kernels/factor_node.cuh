#pragma once

// factor_nodes: the papers' kernel `factor_tree`, one level of the tree.
//
//     [R_head; R_member] = H [R; 0], member by member (tpqrt of triangles); V overwrites the member's triangle
//
//     grid          one warp a node
//     ownership     reflect_tile.cuh with one warp: lane = column, 32 rows in registers; the member's zeros below the
//                   diagonal stay zeros, so V is a triangle again
//     shared        R twice, T, one tile: 17 KB (f32), 34 KB (f64); no block barrier
//     edges         what lies below the triangles is another leaf's V: neither read nor written; columns >= n are zeros
//     flops         2n³/3 needed, 4n³ issued a member; bounded by the latency of n dependent steps

#include "reflect_tile.cuh"

namespace quoin::cuda {

template <class T>
__global__ void __launch_bounds__(32) factor_node(TreeGeometry tree, Index stride, T* A, Index lda, T* Tf, Index ldt) {
    __shared__ ReflectShared<T, 1> s;
    const Node node(tree, stride, blockIdx.x);
    if (node.members == 0) return;
    const int lane = threadIdx.x, n = static_cast<int>(tree.width);
    T* head = A + tree.domain_begin(node.head);
    for (int i = lane; i < 32 * 33; i += 32) s.Tk[0][i] = 0;
    T a[32];
    load_tile(s, head, lda, n, n, true, a);
#pragma unroll
    for (int r = 0; r < 32; ++r) s.R[0][r][lane] = a[r];
    __syncwarp();
    int from = 0;
    for (Index m = 1; m <= node.members; ++m) {
        const Index d = node.member(m);
        T* member = A + tree.domain_begin(d);
        load_tile(s, member, lda, n, n, true, a);
        __syncwarp();
        reflect_tile<T, 1, true>(s, from, n, n, true, member, lda, a);
        from = 1 - from;
        join_t(s);
        store_square<T, 1>(s.Tk, n, false, Tf + tree.t_of_node(d) * ldt, ldt);
        __syncwarp();
    }
    store_square<T, 1>(s.R[from], n, true, head, lda);
}

}  // namespace quoin::cuda
