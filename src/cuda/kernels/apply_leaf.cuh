#pragma once

// apply_leaves: the papers' kernel `apply_qt_h`, the horizontal update.
//
//     C := op(H_leaf) C for leaf 0 (gemqrt),   [C_top; C_leaf] := op(H) [C_top; C_leaf] for leaf t (tpmqrt)
//
//     grid          one block a domain and tile of 16·warps columns, tiles of one domain side by side: V comes from L2
//     ownership     wy_tile.cuh: a warp owns 16 columns; C_top and one leaf of C stay in registers, each is read and
//                   written once; the warps share V and T, staged a leaf at a time between two barriers
//     shared        43 KB; registers 64 (f32) or 128 (f64) for the leaf of C
//     edges         rows >= h and columns >= p are zeros and never stored; pairs of rows move together where C allows
//     flops, bytes  4mnp + 2mn·(n/h)·p flops, 2mp + mn·tiles elements. On an H100, 1 000 000×32 on 160 columns: f32
//                   0.99 ms (21 TFLOP/s, 1.3 TB/s), f64 1.47 ms (14 TFLOP/s, 1.7 TB/s); bounded by latency: 8 warps a
//                   multiprocessor (registers) load, stage and multiply one after the other

#include "wy_tile.cuh"

namespace quoin::cuda {

template <class T>
inline constexpr int apply_leaf_warps = 4;

template <class T, bool transpose>
__global__ void __launch_bounds__(apply_leaf_warps<T> * 32, 2)
    apply_leaf(TreeGeometry tree, Index tiles, const T* A, Index lda, const T* Tf, Index ldt, T* C, Index ldc,
               Index p) {
    constexpr bool wide = sizeof(T) == 4;
    extern __shared__ __align__(16) unsigned char memory[];
    double* V = reinterpret_cast<double*>(memory);
    double* Tk = V + Staged<tile_rows<T>>::size;
    const Staged<tile_rows<T>> staged_v(V);
    const Staged<tile_width> staged_t(Tk);
    const Index d = blockIdx.x / tiles, tile = blockIdx.x % tiles, leaves = tree.leaves(d);
    const Index first_col = (tile * (blockDim.x / 32) + threadIdx.x / 32) * strip_cols;
    const int n = static_cast<int>(tree.width);
    const int cols = static_cast<int>(p - first_col < strip_cols ? p - first_col : strip_cols);  // none if negative
    const auto strip = [&](Index row) { return Strip<T>(C + row + first_col * ldc, ldc, cols); };
    const int top_rows = min(tree.leaf_size(d, 0), tile_width);

    T top[4][4];
    strip(tree.domain_begin(d)).load(0, top_rows, top);
    for (Index step = 0; step < leaves; ++step) {
        const Index t = transpose ? step : leaves - 1 - step, begin = tree.leaf_begin(d, t);
        const int h = tree.leaf_size(d, t);
        const int first = t == 0 ? 4 : 0;  // leaf 0 starts with C_top
        T c[tile_rows<T> / 8][4];
        Block W[4];
        strip(begin).load(first, h, c);
        __syncthreads();
        stage<tile_rows<T>>(t == 0 ? Shape::Leaf : Shape::Rectangle, A + begin, lda, h, n,
                            Tf + tree.t_of_leaf(d, t) * ldt, ldt, V, Tk);
        __syncthreads();
#pragma unroll
        for (int b = 0; b < 4; ++b) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                if (t == 0) c[b][i] = top[b][i];
                W[b][i] = t == 0 ? 0.0 : static_cast<double>(top[b][i]);
            }
        }
        inner<wide>(staged_v, c, W);
        multiply_t<wide, transpose>(staged_t, W);
#pragma unroll
        for (int b = 0; b < tile_rows<T> / 8; b += 2) outer<wide>(staged_v, W, b, c[b], c[b + 1]);
#pragma unroll
        for (int b = 0; b < 4; ++b) {
#pragma unroll
            for (int i = 0; i < 4; ++i) top[b][i] = t == 0 ? c[b][i] : static_cast<T>(top[b][i] + W[b][i]);
        }
        strip(begin).store(first, h, c);
    }
    strip(tree.domain_begin(d)).store(0, top_rows, top);
}

}  // namespace quoin::cuda
