#pragma once

// apply_leaves: the papers' kernel `apply_qt_h`, the horizontal update; and form_leaves of the same panel meanwhile.
//
//     C := op(H_leaf) C for leaf 0 (gemqrt),   [C_top; C_leaf] := op(H) [C_top; C_leaf] for leaf t (tpmqrt)
//     where `forms`, besides:  [E; Q_t] := H [E; 0] for t = …, 1, Q_0 = H [E; 0] in place of V (form_q.cuh)
//
//     grid          one block a domain and tile of 16·warps columns, tiles of one domain side by side: V comes from L2
//     ownership     wy_tile.cuh: a warp owns 16 columns; C_top stays in its registers, the leaf's rows of C pass through
//                   its own part of shared memory (cp.async), each read and written once
//     pipeline      a leaf is worked on in chunks of 16 rows, first all of VᵀC, then all of C − V W. A chunk of the next
//                   leaf replaces a chunk of this one as soon as that is done with, and meanwhile two further warps
//                   stage the next leaf's V and T in a second buffer: one barrier a leaf
//     forms         one tile of at most 8 warps, and two more that own the panel's columns: a leaf's V is staged when Q_t
//                   takes its place, so that it is read once and not again by form_leaf_kernel
//     shared        2 · (8·32·(rows + 4) + 9 KB) + 16·(rows + 8) elements a warp: 84 KB + 8.5 or 17 KB a warp (128 rows)
//     edges         rows >= h and columns >= p are zeros and never stored; 16 bytes are copied and pairs of rows stored at
//                   a time where C allows
//     flops, bytes  4mnp + 2mn·(n/rows)·p flops, 2mp + mn·tiles elements. The five updates of 1 000 000×192 on an H100:
//                   f32 2.5 ms (25 TFLOP/s, 1.8 TB/s), f64 4.2 ms (14 TFLOP/s, 2.1 TB/s). Bounded by latency: with 160
//                   columns of f32 tensor cores and memory are busy half the time each, with 64 and 32 columns few
//                   warps are left to hide a chunk's chain of load, convert, multiply, convert, store

#include "cuda/arch/sm80_copy_async.cuh"
#include "cuda/trees/wy_tile.cuh"

namespace quoin::cuda {

inline constexpr int chunk_rows = 16, chunk_blocks = chunk_rows / 8;

/// 16 columns of a leaf in shared memory. Columns lie so that the pairs that a warp reads at once touch each bank once.
template <int rows, class T>
struct LeafStrip {
    static constexpr int ld = rows + 8, size = ld * strip_cols;
    T* data;

    /// Starts to copy the chunk's rows of the matrix at C here. h rows and `cols` columns exist.
    template <int bytes>
    __device__ void copy(const T* C, Index ldc, int first, int h, int cols) const {
        constexpr int width = bytes / int(sizeof(T)), pieces = chunk_rows / width, step = 32 / pieces;
        const int lane = threadIdx.x % 32, c = lane / pieces, r = first + lane % pieces * width;
        const T* from = C + r + c * ldc;
        T* const to = data + r + c * ld;
#pragma unroll
        for (int i = 0; i < strip_cols / step; ++i) {
            copy_async<bytes>(to + i * step * ld, from, c + i * step < cols ? h - r : 0);
            from += step * ldc;
        }
    }
    __device__ void read(int first, T (&c)[chunk_blocks][4]) const {
        using Pair = typename Strip<T>::Pair;
#pragma unroll
        for (int b = 0; b < chunk_blocks; ++b) {
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
/// Warps that stage; others multiply.
inline constexpr int stage_warps = 2;
/// As many warps that multiply as shared memory holds, 10 at most for want of registers.
template <int rows, class T>
constexpr int apply_leaf_warps() {
    int warps = 10;
    while (apply_leaf_bytes<rows, T>(warps) > 227 * 1024) --warps;
    return warps;
}

/// Warps that form the panel's columns, and the maximum number of warps that multiply at the same time.
inline constexpr int form_strips = tile_width / strip_cols;
template <int rows, class T>
constexpr int apply_and_form_warps() {
    return apply_leaf_warps<rows, T>() - form_strips;
}

template <class T, int rows, bool transpose, bool forms>
__global__ void __launch_bounds__((apply_leaf_warps<rows, T>() + stage_warps) * 32, 1)
    apply_leaf_kernel(TreeGeometry tree, Index tiles, T* A, Index lda, const T* Tf, Index ldt, T* C, Index ldc,
                      Index p) {
    static_assert(!forms || !transpose);
    constexpr int chunks = rows / chunk_rows, top_chunks = tile_width / chunk_rows;
    extern __shared__ __align__(16) unsigned char memory[];
    double* const reflectors = reinterpret_cast<double*>(memory);
    constexpr int formers = forms ? form_strips : 0;
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32 - stage_warps - formers;
    const LeafStrip<rows, T> shared_c{reinterpret_cast<T*>(reflectors + 2 * reflector_doubles<rows>) +
                                      warp * LeafStrip<rows, T>::size};
    const Index d = blockIdx.x / tiles, leaves = tree.leaves(d);
    const auto leaf_of = [&](Index step) { return transpose ? step : leaves - 1 - step; };
    const auto stage_leaf = [&](Index step, int warp, int warps) {
        const LeafReflectors<T> H(tree, d, leaf_of(step), A, lda, Tf, ldt);
        double* const to = reflectors + step % 2 * reflector_doubles<rows>;
        stage<rows>(H.V, to, warp, warps);
        stage<tile_width>(H.Tk, to + Staged<rows>::size, warp, warps);
    };

    const Index first_col = (blockIdx.x % tiles * warps + warp) * strip_cols;
    const int cols = static_cast<int>(p - first_col < strip_cols ? p - first_col : strip_cols);  // none if negative
    const bool aligned = aligned_16(C, ldc) && tree.leaf_rows * sizeof(T) % 16 == 0;
    const auto strip = [&](Index row) { return Strip<T>(C + row + first_col * ldc, ldc, cols); };
    // leaf 0 starts with C_top, which never passes through shared memory
    const auto copy_chunk = [&](Index t, int q) {
        if (t > 0 || q >= top_chunks) {
            const T* const from = C + tree.leaf_begin(d, t) + first_col * ldc;
            const int h = tree.leaf_size(d, t);
            if (aligned)
                shared_c.template copy<16>(from, ldc, q * chunk_rows, h, cols);
            else
                shared_c.template copy<sizeof(T)>(from, ldc, q * chunk_rows, h, cols);
        }
        commit_copies();
    };

    T top[4][4];
    const int top_rows = min(tree.leaf_size(d, 0), tile_width);
    if (warp < warps) {
        for (int q = 0; q < chunks; ++q) copy_chunk(leaf_of(0), q);
        strip(tree.domain_begin(d)).load(top_rows, top);
    }
    // E of the panel's columns
    const int own_col = (warp - warps) * strip_cols, n = static_cast<int>(tree.width);
    const auto own_strip = [&](Index row) {
        return Strip<T>(A + row + own_col * lda, lda, min(n - own_col, strip_cols));
    };
    const bool own = forms && warp >= warps && warp < warps + formers;
    if (own) own_strip(tree.domain_begin(d)).load_upper(own_col, top);
    stage_leaf(0, warp, warps + formers + stage_warps);
    __syncthreads();

    const auto multiply = [&](Index step) {
        const Index t = leaf_of(step);
        const double* const V = reflectors + step % 2 * reflector_doubles<rows>;
        const auto read_chunk = [&](int q, T(&c)[chunk_blocks][4]) {
            if (t > 0 || q >= top_chunks) return shared_c.read(q * chunk_rows, c);
#pragma unroll
            for (int b = 0; b < 4; ++b) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    if (q == b / chunk_blocks) c[b % chunk_blocks][i] = top[b][i];
                }
            }
        };
        Tile16x8 W[4];
#pragma unroll
        for (int b = 0; b < 4; ++b) W[b] = t == 0 ? Tile16x8{} : widen(top[b]);
        // every chunk is read while the one before it is multiplied
        T c[chunk_blocks][4], next_c[chunk_blocks][4];
        const auto advance = [&] {
#pragma unroll
            for (int b = 0; b < chunk_blocks; ++b) {
#pragma unroll
                for (int i = 0; i < 4; ++i) c[b][i] = next_c[b][i];
            }
        };
        wait_for_copies<chunks - 1>();
        __syncwarp();
        read_chunk(0, c);
#pragma unroll 1
        for (int q = 0; q < chunks; ++q) {
            wait_for_copies<chunks - 2>();
            __syncwarp();
            read_chunk(q + 1 < chunks ? q + 1 : 0, next_c);
            inner(Staged<rows>(V + q * chunk_rows), 0, c, W);
            commit_copies();  // an empty group: as many are under way again
            advance();
        }
        multiply_t<transpose>(Staged<tile_width>(V + Staged<rows>::size), W);
        if (t > 0) subtract_from_top(W, top);
        turn_left(W, static_cast<int>(tree.width));
        const int h = tree.leaf_size(d, t);
        const bool pairs = strip(tree.leaf_begin(d, t)).in_pairs(h, rows);
#pragma unroll 1
        for (int q = 0; q < chunks; ++q) {
            __syncwarp();  // all lanes have read the chunk that is replaced
            if (step + 1 < leaves) copy_chunk(leaf_of(step + 1), q);
            if (q + 1 < chunks) read_chunk(q + 1, next_c);
            outer(Staged<rows>(V + q * chunk_rows), W, 0, c);
            if (t > 0 || q >= top_chunks) {
                const Strip<T> C_chunk = strip(tree.leaf_begin(d, t) + q * chunk_rows);
#pragma unroll
                for (int b = 0; b < chunk_blocks; ++b) C_chunk.store_block(pairs, b, h - q * chunk_rows, c[b]);
            } else {
#pragma unroll
                for (int b = 0; b < 4; ++b) {
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        if (q == b / chunk_blocks) top[b][i] = c[b % chunk_blocks][i];
                    }
                }
            }
            advance();
        }
    };
    for (Index step = 0; step < leaves; ++step) {
        if (warp < warps) {
            multiply(step);
        } else if (own) {
            const Index t = leaf_of(step);
            const double* const V = reflectors + step % 2 * reflector_doubles<rows>;
            form_rows<rows>(V, V + Staged<rows>::size, t, n, own_strip(tree.leaf_begin(d, t)), tree.leaf_size(d, t), 0,
                            rows, top);
        } else if (step + 1 < leaves) {
            stage_leaf(step + 1, warp - warps - formers, stage_warps);
        }
        __syncthreads();
    }
    if (warp < warps) strip(tree.domain_begin(d)).store(top_rows, top);
}

}  // namespace quoin::cuda
