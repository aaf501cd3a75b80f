#pragma once

// apply_leaves: the papers' kernel `apply_qt_h`, the horizontal update.
//
//     C := op(H_leaf) C for leaf 0 (gemqrt),   [C_top; C_leaf] := op(H) [C_top; C_leaf] for leaf t (tpmqrt)
//
//     grid          one block a domain and tile of 16·warps columns, tiles of one domain side by side: V comes from L2
//     ownership     wy_tile.cuh: a warp owns 16 columns; C_top stays in its registers, the leaf's rows of C pass through
//                   its own part of shared memory (cp.async), each read and written once
//     pipeline      a leaf is worked on in chunks of 32 rows, first all of VᵀC, then all of C − V W. A chunk of the next
//                   leaf replaces a chunk of this one as soon as that is done with, and meanwhile the warps bring the next
//                   leaf's V and T into a second buffer, column by column: one barrier a leaf
//     shared        2 · (8·32·(rows + 4) + 9 KB) + 16·(rows + 8) elements a warp: 84 KB + 8.5 or 17 KB a warp (128 rows)
//     edges         rows >= h and columns >= p are zeros and never stored; 16 bytes are copied and pairs of rows stored at
//                   a time where C allows
//     flops, bytes  4mnp + 2mn·(n/rows)·p flops, 2mp + mn·tiles elements
#include "copy_async.cuh"
#include "wy_tile.cuh"

namespace quoin::cuda {

/// 16 columns of a leaf in shared memory. Columns lie so that the pairs that a warp reads at once touch each bank once.
template <int rows, class T>
struct LeafStrip {
    static constexpr int ld = rows + 8, size = ld * strip_cols, chunk = 32;
    T* data;

    /// The chunk's rows of the matrix at C, of which h rows and `cols` columns exist, begin to move here.
    template <int bytes>
    __device__ void copy(const T* C, Index ldc, int first, int h, int cols) const {
        constexpr int width = bytes / int(sizeof(T)), pieces = chunk / width;
#pragma unroll
        for (int i = 0; i < pieces * strip_cols / 32; ++i) {
            const int p = threadIdx.x % 32 + 32 * i, c = p / pieces, r = first + p % pieces * width;
            copy_async<bytes>(data + r + c * ld, C + r + c * ldc, c < cols ? h - r : 0);
        }
    }
    __device__ void read(int first, T (&c)[4][4]) const {
        using Pair = typename Strip<T>::Pair;
#pragma unroll
        for (int b = 0; b < 4; ++b) {
            const T* const at = data + first + Strip<T>::row(b, 0) + Strip<T>::col(0) * ld;
            const Pair left = *reinterpret_cast<const Pair*>(at), right = *reinterpret_cast<const Pair*>(at + 8 * ld);
            c[b][0] = left.x, c[b][1] = left.y, c[b][2] = right.x, c[b][3] = right.y;
        }
    }
};

template <int rows, class T>
constexpr std::size_t apply_leaf_bytes(int warps) {
    return 2 * reflector_doubles<rows> * sizeof(double) + warps * LeafStrip<rows, T>::size * sizeof(T);
}
/// As many warps as shared memory holds, 12 at most for want of registers.
template <int rows, class T>
constexpr int apply_leaf_warps() {
    int warps = 12;
    while (apply_leaf_bytes<rows, T>(warps) > 227 * 1024) --warps;
    return warps;
}

template <class T, int rows, bool transpose>
__global__ void __launch_bounds__(apply_leaf_warps<rows, T>() * 32, 1)
    apply_leaf(TreeGeometry tree, Index tiles, const T* A, Index lda, const T* Tf, Index ldt, T* C, Index ldc,
               Index p) {
    constexpr int chunks = rows / 32, phases = 2 * chunks;
    extern __shared__ __align__(16) unsigned char memory[];
    double* const reflectors = reinterpret_cast<double*>(memory);
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const LeafStrip<rows, T> shared_c{reinterpret_cast<T*>(reflectors + 2 * reflector_doubles<rows>) +
                                      warp * LeafStrip<rows, T>::size};
    const Index d = blockIdx.x / tiles, tile = blockIdx.x % tiles, leaves = tree.leaves(d);
    const Index first_col = (tile * warps + warp) * strip_cols;
    const int cols = static_cast<int>(p - first_col < strip_cols ? p - first_col : strip_cols);  // none if negative
    const bool aligned = aligned_16(C, ldc) && tree.leaf_rows * sizeof(T) % 16 == 0;
    const auto strip = [&](Index row) { return Strip<T>(C + row + first_col * ldc, ldc, cols); };
    const auto leaf_of = [&](Index step) { return transpose ? step : leaves - 1 - step; };
    const auto reflectors_of = [&](Index t) { return LeafReflectors<T>(tree, d, t, A, lda, Tf, ldt); };
    // leaf 0 starts with C_top, which never passes through shared memory
    const auto copy_chunk = [&](Index t, int q) {
        if (t > 0 || q > 0) {
            const T* const from = C + tree.leaf_begin(d, t) + first_col * ldc;
            const int h = tree.leaf_size(d, t);
            if (aligned)
                shared_c.template copy<16>(from, ldc, 32 * q, h, cols);
            else
                shared_c.template copy<sizeof(T)>(from, ldc, 32 * q, h, cols);
        }
        commit_copies();
    };

    for (int q = 0; q < chunks; ++q) copy_chunk(leaf_of(0), q);
    T top[4][4];
    const int top_rows = min(tree.leaf_size(d, 0), tile_width);
    strip(tree.domain_begin(d)).load(top_rows, top);
    stage<rows>(reflectors_of(leaf_of(0)).V, reflectors, warp, warps);
    stage<tile_width>(reflectors_of(leaf_of(0)).Tk, reflectors + Staged<rows>::size, warp, warps);
    __syncthreads();
    for (Index step = 0; step < leaves; ++step) {
        const Index t = leaf_of(step);
        const double* const V = reflectors + step % 2 * reflector_doubles<rows>;
        double* const next_v = reflectors + (step + 1) % 2 * reflector_doubles<rows>;
        const Staged<rows> staged_v(V);
        const Staged<tile_width> staged_t(V + Staged<rows>::size);
        const bool more = step + 1 < leaves;
        const Index next = leaf_of(more ? step + 1 : step);
        const LeafReflectors<T> next_reflectors = reflectors_of(next);
        // a column of the next reflectors is under way while `work` runs
        const auto meanwhile = [&](int phase, auto&& work) {
            Column<rows, T> v;
            Column<tile_width, T> tk;
            const auto load = [&](int c) {
                if (!more || c >= tile_width) return;
                v.load(next_reflectors.V, c);
                tk.load(next_reflectors.Tk, c);
            };
            const auto store = [&](int c) {
                if (!more || c >= tile_width) return;
                v.store(next_v, c);
                tk.store(next_v + Staged<rows>::size, c);
            };
            int c = phase * warps + warp;
            load(c);
            work();
            store(c);
            for (c += phases * warps; c < tile_width; c += phases * warps) {
                load(c);
                store(c);
            }
        };
        const auto read_chunk = [&](int q, T(&c)[4][4]) {
            shared_c.read(32 * q, c);
            if (t > 0 || q > 0) return;
#pragma unroll
            for (int b = 0; b < 4; ++b) {
#pragma unroll
                for (int i = 0; i < 4; ++i) c[b][i] = top[b][i];
            }
        };

        Tile16x8 W[4];
#pragma unroll
        for (int b = 0; b < 4; ++b) W[b] = t == 0 ? Tile16x8{} : widen(top[b]);
#pragma unroll 1
        for (int q = 0; q < chunks; ++q) {
            meanwhile(q, [&] {
                wait_for_copies<chunks - 1>();
                __syncwarp();
                T c[4][4];
                read_chunk(q, c);
                inner(staged_v, 4 * q, c, W);
            });
            commit_copies();  // an empty group: `chunks` are under way again
        }
        multiply_t<transpose>(staged_t, W);
        const Strip<T> C_leaf = strip(tree.leaf_begin(d, t));
        const int h = tree.leaf_size(d, t);
        const bool pairs = C_leaf.in_pairs(h, rows);
#pragma unroll 1
        for (int q = 0; q < chunks; ++q) {
            meanwhile(chunks + q, [&] {
                T c[4][4];
                read_chunk(q, c);
                __syncwarp();
                if (more) copy_chunk(next, q);
                outer(staged_v, W, 4 * q, c);
                if (t == 0 && q == 0) {
#pragma unroll
                    for (int b = 0; b < 4; ++b) {
#pragma unroll
                        for (int i = 0; i < 4; ++i) top[b][i] = c[b][i];
                    }
                } else {
#pragma unroll
                    for (int b = 0; b < 4; ++b) C_leaf.store_block(pairs, 4 * q + b, h, c[b]);
                }
            });
        }
        if (t > 0) add_to_top(W, top);
        __syncthreads();
    }
    strip(tree.domain_begin(d)).store(top_rows, top);
}

}  // namespace quoin::cuda
