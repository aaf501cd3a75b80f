#pragma once

// factor_leaves, reduce_leaves: the papers' kernel `factor`, with a flat tree inside each domain.
//
//     leaf 0 = H [R; 0]  (geqrt),   [R; leaf t] = H [R; 0]  (tpqrt)  for t = 1, 2, …
//
//     grid          one block of `warps` warps a domain; it walks the domain's leaves, R stays in shared memory
//     ownership     reflect_tile.cuh: a warp's 64 (f32) or 32 (f64) rows in registers; n <= 32
//     shared        R, T, x: 15 KB (f32), 30 KB (f64) with 128 rows
//     loads         64 bytes of 8 columns a warp instruction, 16 a lane where A allows, else one element each
//     stores        v_j at step j, one column a warp instruction; R and T at the end
//     edges         rows >= h and columns >= n are zeros and never stored
//     flops, bytes  3mn² flops, A read once and, if kept, written once. Six panels of 1 000 000×32 on an H100: f32 1.8
//                   ms, f64 3.7 ms, bounded by issue slots (f32: 2.3 of 4 instructions a cycle) and the latency of the
//                   steps

#include "cuda/trees/reflect_tile.cuh"

namespace quoin::cuda {

/// Rows a warp: what its registers hold.
template <class T>
inline constexpr int leaf_height = std::is_same_v<T, float> ? 64 : 32;

/// V, T and R in place of A where `keep`; otherwise A is only read and `stack` receives R_0, R_1, …, zeros below.
template <class T, int warps, bool keep>
__global__ void __launch_bounds__(warps * 32, 16 / warps)
    factor_leaf_kernel(TreeGeometry tree, T* A, Index lda, T* Tf, Index ldt, T* stack, Index lds) {
    extern __shared__ __align__(16) unsigned char memory[];
    auto& s = *reinterpret_cast<ReflectShared<T, warps, leaf_height<T>>*>(memory);
    const Index d = blockIdx.x, leaves = tree.leaves(d);
    const int n = static_cast<int>(tree.width);
    for (int i = threadIdx.x; i < 32 * 33; i += warps * 32) s.Tk[0][i] = 0;
    for (Index t = 0; t < leaves; ++t) {
        const int row = threadIdx.x / 32 * leaf_height<T>, h = tree.leaf_size(d, t) - row;  // the warp's
        T* leaf = A + tree.leaf_begin(d, t) + row;
        T a[4][leaf_height<T> / 4];
        load_tile(leaf, lda, h, n, false, a);
        barrier<warps>();
        T* V = keep ? leaf : nullptr;
        if (t == 0) {
            reflect_tile<false>(s, h, n, false, V, lda, a);
        } else {
            reflect_tile<true>(s, h, n, false, V, lda, a);
        }
        if constexpr (keep) {
            join_t(s);
            store_square<T, warps>(s.Tk, n, false, Tf + tree.t_of_leaf(d, t) * ldt, ldt);
        }
        barrier<warps>();
    }
    if constexpr (keep) {
        store_square<T, warps>(s.R, n, true, A + tree.domain_begin(d), lda);
    } else {
        store_square<T, warps>(s.R, n, false, stack + d * n, lds);
    }
}

}  // namespace quoin::cuda
