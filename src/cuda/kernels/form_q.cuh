#pragma once

// set_root, form_nodes, form_leaves: the thin Q := Q_tree [I; 0] from the root down, in place of V.
//
//     root    E := I
//     node    [E_head; E_member] := H [E_head; 0], the members in reverse order; all three upper triangular
//     leaf    [E; Q_t] := H [E; 0] for t = …, 2, 1, then Q_0 = H [E; 0]
//
//     grid          one block of two warps a node or a domain; a warp owns 16 of the 32 columns
//     ownership     wy_tile.cuh; E stays in registers, V and T are staged whole before Q overwrites V
//     shared        18 KB (node), 43 KB (leaf)
//     edges         below the triangles of a node stand the leaves' V: neither read nor written
//     flops, bytes  node 2n³/3 needed, 4n³ issued; leaves 2mn² flops, V read and Q written once: bounded by memory

#include "wy_tile.cuh"

namespace quoin::cuda {

inline constexpr int form_warps = tile_width / strip_cols;

template <class T>
__global__ void set_upper_identity(T* A, Index lda, Index rows, Index cols) {
    for (Index j = blockIdx.x; j < cols; j += gridDim.x) {
        for (Index i = threadIdx.x; i <= j && i < rows; i += blockDim.x) A[i + j * lda] = i == j ? 1 : 0;
    }
}

template <class T>
__global__ void __launch_bounds__(form_warps * 32)
    form_node(TreeGeometry tree, Index stride, T* A, Index lda, const T* Tf, Index ldt) {
    __shared__ double V[Staged<tile_width>::size], Tk[Staged<tile_width>::size];
    const Staged<tile_width> staged_v(V), staged_t(Tk);
    const Node node(tree, stride, blockIdx.x);
    if (node.members == 0) return;
    const int n = static_cast<int>(tree.width), first_col = threadIdx.x / 32 * strip_cols;
    const auto strip = [&](Index d) {
        return Strip<T>(A + tree.domain_begin(d) + first_col * lda, lda, min(n - first_col, strip_cols));
    };

    T E[4][4];
    strip(node.head).load_upper(first_col, E);
    for (Index m = node.members; m >= 1; --m) {
        const Index d = node.member(m);
        __syncthreads();
        stage<tile_width>(Shape::Triangle, A + tree.domain_begin(d), lda, n, n, Tf + tree.t_of_node(d) * ldt, ldt, V,
                          Tk);
        __syncthreads();
        Block W[4];
        T member[4][4] = {};
#pragma unroll
        for (int b = 0; b < 4; ++b) {
#pragma unroll
            for (int i = 0; i < 4; ++i) W[b][i] = E[b][i];
        }
        multiply_t<false, false>(staged_t, W);
#pragma unroll
        for (int b = 0; b < 4; b += 2) outer<false>(staged_v, W, b, member[b], member[b + 1]);
#pragma unroll
        for (int b = 0; b < 4; ++b) {
#pragma unroll
            for (int i = 0; i < 4; ++i) E[b][i] = static_cast<T>(E[b][i] + W[b][i]);
        }
        strip(d).store_upper(first_col, member);
    }
    strip(node.head).store_upper(first_col, E);
}

template <class T>
__global__ void __launch_bounds__(form_warps * 32)
    form_leaf(TreeGeometry tree, T* A, Index lda, const T* Tf, Index ldt) {
    extern __shared__ __align__(16) unsigned char memory[];
    double* V = reinterpret_cast<double*>(memory);
    double* Tk = V + Staged<tile_rows<T>>::size;
    const Staged<tile_rows<T>> staged_v(V);
    const Staged<tile_width> staged_t(Tk);
    const Index d = blockIdx.x;
    const int n = static_cast<int>(tree.width), first_col = threadIdx.x / 32 * strip_cols;

    T E[4][4];
    const auto strip = [&](Index row) {
        return Strip<T>(A + row + first_col * lda, lda, min(n - first_col, strip_cols));
    };
    strip(tree.domain_begin(d)).load_upper(first_col, E);
    for (Index t = tree.leaves(d) - 1; t >= 0; --t) {
        const Index begin = tree.leaf_begin(d, t);
        const int h = tree.leaf_size(d, t);
        __syncthreads();
        stage<tile_rows<T>>(t == 0 ? Shape::Leaf : Shape::Rectangle, A + begin, lda, h, n,
                            Tf + tree.t_of_leaf(d, t) * ldt, ldt, V, Tk);
        __syncthreads();
        Block W[4] = {};
        if (t == 0) {
            inner<false>(staged_v, E, W);
        } else {
#pragma unroll
            for (int b = 0; b < 4; ++b) {
#pragma unroll
                for (int i = 0; i < 4; ++i) W[b][i] = E[b][i];
            }
        }
        multiply_t<false, false>(staged_t, W);
        const auto Q = strip(begin);
        const bool pairs = Q.in_pairs(h, tile_rows<T>);
#pragma unroll
        for (int b = 0; b < tile_rows<T> / 8; b += 2) {
            T q[2][4] = {};
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                if (b < 4 && t == 0) q[0][i] = E[b % 4][i], q[1][i] = E[b % 4 + 1][i];
            }
            outer<false>(staged_v, W, b, q[0], q[1]);
            Q.store_block(pairs, b, h, q[0]);
            Q.store_block(pairs, b + 1, h, q[1]);
        }
#pragma unroll
        for (int b = 0; b < 4; ++b) {
#pragma unroll
            for (int i = 0; i < 4; ++i) E[b][i] = static_cast<T>(E[b][i] + W[b][i]);
        }
    }
}

}  // namespace quoin::cuda
