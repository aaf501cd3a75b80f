#pragma once

// set_root, form_nodes, form_leaves: the thin Q := Q_tree [I; 0] from the root down, in place of V.
//
//     root    E := I
//     node    [E; E_1; E_2; …] := H [E; 0] for each of factor_node_kernel's turns, in reverse order; all upper
//             triangular
//     leaf    [E; Q_t] := H [E; 0] for t = …, 2, 1, then Q_0 = H [E; 0]; apply_leaf.cuh does it together with few columns of C
//
//     grid          one block a node, one warp a tile of factor_node_kernel's turns; one block a domain, whose 4 warps
//                   are two strips of 16 columns by two groups of rows
//     ownership     wy_tile.cuh; every warp holds E of its strip and computes T E for itself; V and T are staged, a node's
//                   V by its own warp, before Q overwrites V
//     shared        node: 9 KB a warp and 9 KB; leaf: 8·32·(rows + 4) + 9 KB, 42 KB with 128 rows
//     edges         below the triangles of a node stand the leaves' V: neither read nor written
//     flops, bytes  node 2n³/3 needed, 4n³ issued a triangle; leaves 2mn² flops, V read and Q written once: bounded by
//                   memory

#include "cuda/trees/wy_tile.cuh"

namespace quoin::cuda {

__host__ __device__ constexpr std::size_t form_node_bytes(int warps) {
    return (warps + 1) * Staged<tile_width>::size * sizeof(double);
}

template <class T, int warps, bool rectangles>
__global__ void __launch_bounds__(warps * 32, 1)
    form_node_kernel(TreeGeometry tree, Index stride, T* A, Index lda, const T* Tf, Index ldt) {
    extern __shared__ __align__(16) unsigned char memory[];
    double* const Tk = reinterpret_cast<double*>(memory);
    const int warp = threadIdx.x / 32, n = static_cast<int>(tree.width);
    double* const V = Tk + (1 + warp) * Staged<tile_width>::size;
    const Staged<tile_width> staged_v(V), staged_t(Tk);
    const Node node(tree, stride, blockIdx.x);
    if (node.members == 0) return;
    const NodeTurns<warps, rectangles> turns(tree);
    constexpr int strips = tile_width / strip_cols;
    const auto strip = [&](Index row, int s) {
        return Strip<T>(A + row + s * strip_cols * lda, lda, min(n - s * strip_cols, strip_cols));
    };
    const Index head_row = tree.domain_begin(node.head);

    T E[strips][4][4];
#pragma unroll
    for (int s = 0; s < strips; ++s) strip(head_row, s).load_upper(s * strip_cols, E[s]);
    for (Index turn = turns.count(node) - 1; turn >= 0; --turn) {
        const Index first = 1 + turn * turns.each;
        const Index row = turns.row(tree, turns.domain(node, first));
        const int h = turns.mine(node, first) ? turns.height(tree) : 0;
        __syncthreads();
        stage<tile_width>(Source<T>{Shape::Triangle, A + row, lda, h, n, turns.below()}, V, 0, 1);
        stage<tile_width>(Source<T>{Shape::Rectangle, Tf + tree.t_of_node(node.member(first)) * ldt, ldt, n, n}, Tk,
                          warp, warps);
        __syncthreads();
#pragma unroll
        for (int s = 0; s < strips; ++s) {
            Tile16x8 W[4];
            T member[4][4] = {};
#pragma unroll
            for (int b = 0; b < 4; ++b) W[b] = widen(E[s][b]);
            multiply_t<false>(staged_t, W);
            subtract_from_top(W, E[s]);
            turn_left(W, n);
            outer(staged_v, W, 0, member);
            if (h > 0) strip(row, s).store_upper(s * strip_cols + turns.below(), member);
        }
    }
    if (warp > 0) return;
#pragma unroll
    for (int s = 0; s < strips; ++s) strip(head_row, s).store_upper(s * strip_cols, E[s]);
}

inline constexpr int form_groups = 2, form_warps = form_groups * (tile_width / strip_cols);

template <class T, int rows>
__global__ void __launch_bounds__(form_warps * 32, (rows <= 128 ? 3 : 2) + (std::is_same_v<T, float>))
    form_leaf_kernel(TreeGeometry tree, T* A, Index lda, const T* Tf, Index ldt) {
    extern __shared__ __align__(16) unsigned char memory[];
    double* const V = reinterpret_cast<double*>(memory);
    double* const Tk = V + Staged<rows>::size;
    const Index d = blockIdx.x;
    const int n = static_cast<int>(tree.width), warp = threadIdx.x / 32;
    const int first_col = warp % 2 * strip_cols, first_row = warp / 2 * (rows / form_groups);
    const auto strip = [&](Index row) {
        return Strip<T>(A + row + first_col * lda, lda, min(n - first_col, strip_cols));
    };

    T E[4][4];
    strip(tree.domain_begin(d)).load_upper(first_col, E);
    for (Index t = tree.leaves(d) - 1; t >= 0; --t) {
        const LeafReflectors<T> H(tree, d, t, A, lda, Tf, ldt);
        __syncthreads();
        stage<rows>(H.V, V, warp, form_warps);
        stage<tile_width>(H.Tk, Tk, warp, form_warps);
        __syncthreads();
        form_rows<rows>(V, Tk, t, n, strip(tree.leaf_begin(d, t)), tree.leaf_size(d, t), first_row,
                        first_row + rows / form_groups, E);
    }
}

}  // namespace quoin::cuda
