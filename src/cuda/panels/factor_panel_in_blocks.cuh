#pragma once

// A (m×n, m >= n) = H R (geqrt): V below the diagonal, R on and above it, T n×n with zeros below. n <= 8·C.
//
// One cluster of up to 16 blocks of 8 warps holds the panel in registers; block b owns the rows [b·h, (b + 1)·h):
//
//      block 0  ┌ R \ ┐   warp w owns the columns w, w + 8, … , C in all; of each its lanes hold the first 32·R rows of the
//               │ V   │   block in registers (column_vectors.cuh)
//      block 1  ├─────┤   rows beyond stay where they lie (`streams`): products read them column by column, updates row by
//               │ V   │   row
//      block 2  └─────┘
//
// For a column j the block's warps find x = A(j + 1:, j) in shared memory, and each sends xᵀA(:, c) of its rows and
// columns to every block of the cluster, block 0 row j with it. All add the parts in one order and so compute the same
// reflector:
//
//      β = −sgn(α)‖[α; x]‖,  τ = 1 + |α|/‖[α; x]‖,  v = x/(α − β),  A(:, c) −= τ v ([1; v]ᵀA(:, c)) for c > j
//
// Products with the columns c < j are VᵀV, and T follows from them. x is rescaled if its sum of squares would over- or
// underflow. x = 0 gives H = I.
//
// The x of column j + 2 overwrites the x of column j, which every warp has read when it arrives at the barrier of
// column j + 1. Parts and row j use two mailboxes alternately (sm90_cluster.cuh). compute-sanitizer's racecheck does
// not follow the bytes that an mbarrier counts, and warns of them.
//
// Shared: 2·32·R elements of x, 2·(16·32 + 32) of parts, 32² of VᵀV and T. Registers: (C + 1)·R elements a thread. 4mn²
// flops, mn² of them for T. Bound by latency: a barrier of the block, the way through the cluster (half a microsecond),
// a square root and a division, one after the other; the loop is kept short, since instructions come late too.

#include <cooperative_groups.h>

#include <limits>

#include "cuda/arch/sm90_cluster.cuh"
#include "cuda/elements/column_vectors.cuh"
#include "cuda/panels/t_recurrence.cuh"

namespace quoin::cuda {

inline constexpr int panel_warps = 8, panel_threads = panel_warps * 32;

/// sums[s] := the sum over the warp of values[s], in one order for every s, in every lane.
template <class T, int C>
__device__ inline void warp_sums(T (&values)[C]) {
    static_assert(C == 2 || C == 4);
    const int lane = threadIdx.x % 32;
    T mine[C / 2];
    const bool late = lane >= 16;
#pragma unroll
    for (int s = 0; s < C / 2; ++s) {
        const T keep = late ? values[C / 2 + s] : values[s], give = late ? values[s] : values[C / 2 + s];
        mine[s] = keep + __shfl_xor_sync(~0u, give, 16);
    }
    T sum;
    if constexpr (C == 4) {
        const bool odd = lane & 8;
        sum = (odd ? mine[1] : mine[0]) + __shfl_xor_sync(~0u, odd ? mine[0] : mine[1], 8);
    } else {
        sum = mine[0] + __shfl_xor_sync(~0u, mine[0], 8);
    }
#pragma unroll
    for (int step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
#pragma unroll
    for (int s = 0; s < C; ++s) values[s] = __shfl_sync(~0u, sum, s * (32 / C));
}

template <class T>
struct PanelBlock {
    Index m;
    int n;
    T* A;
    Index lda;
    T* Tf;
    Index ldt;
    Index h;  // rows a block of the cluster, 32·R or more
};

template <class T, int R, int C, bool streams>
__global__ void __launch_bounds__(panel_threads, 1) factor_panel_block_kernel(PanelBlock<T> p) {
    const auto cluster = cooperative_groups::this_cluster();
    constexpr int v_size = vector_size<T>, held = 32 * R, group = 32 / C, width = panel_warps * C;
    constexpr int slots = C > v_size ? C : v_size;  // of a warp in a message
    const int rank = static_cast<int>(cluster.block_rank()), blocks = static_cast<int>(cluster.num_blocks());
    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, n = p.n;
    const Index first = rank * p.h, rows = max(Index(0), min(p.h, p.m - first)), lda = p.lda;
    T* const A = p.A;

    __shared__ __align__(16) T xs[2][held];  // of even and of odd columns
    __shared__ __align__(16) T parts[2][panel_blocks][panel_warps][slots], tops[2][panel_warps][slots];
    __shared__ Mailbox mailboxes[2];
    __shared__ T products[t_width][t_width + 1], Tk[t_width][t_width + 1], taus[t_width], w[width];
    const std::uint32_t bytes = (blocks + 1) * panel_warps * slots * sizeof(T);
    int round = 0, set = 0;

    // load
    T a[C][R];
    const bool aligned = lda % v_size == 0 && reinterpret_cast<std::size_t>(A) % 16 == 0 && first % v_size == 0;
#pragma unroll
    for (int s = 0; s < C; ++s) {
        const int c = warp + s * panel_warps;
        const Index size = c < n ? min(rows, Index(held)) : 0;
        load_column<T, R>(A + first + c * lda, size, aligned, a[s]);
    }
    for (int at = tid; at < t_width * t_width; at += panel_threads) products[at / t_width][at % t_width] = 0;
    if (tid < 2) mailboxes[tid].open();
    cluster.sync();

    // the lane speaks for this column of its warp, and adds the parts of the blocks peer, peer + group, …
    const int slot = lane / group, col = warp + slot * panel_warps, peer = lane % group;
    // C numbers of this warp to every block, and block 0's row j
    const auto exchange = [&](const T(&part)[C], const T(&top)[C]) {
        set = round % 2;
        if (tid == 0) mailboxes[set].expect(bytes);
        constexpr int messages = slots / v_size;  // to a block
        const int to = lane / messages, from = lane % messages * v_size;
        if (to < blocks) {
            Vector<T> part_v, top_v;
#pragma unroll
            for (int e = 0; e < v_size; ++e) {
                part_v.at[e] = part[e % C], top_v.at[e] = top[e % C];
                if (messages == 2 && from > 0)
                    part_v.at[e] = part[(v_size + e) % C], top_v.at[e] = top[(v_size + e) % C];
            }
            mailboxes[set].send(to, &parts[set][rank][warp][from], part_v);
            if (rank == 0) mailboxes[set].send(to, &tops[set][warp][from], top_v);
        }
        mailboxes[set].receive(round / 2);
        ++round;
    };
    const auto above = [&](int j, int r) { return rank == 0 && r < v_size && lane * v_size + r <= j; };

    constexpr T u = std::numeric_limits<T>::epsilon() / 2;
    constexpr T low = std::numeric_limits<T>::min() / (u * u), high = std::numeric_limits<T>::max() * (u * u);
#pragma unroll 1
    for (int j = 0; j < n; ++j) {
        T x[R], alpha, with_x, top_col, with_col;
        int e = 0;
#pragma unroll 1
        for (bool rescaled = false;; rescaled = true) {
            // x := A(j + 1:, j) from its owner, zeros in the rows 0 … j
            if (warp == j % panel_warps) {
#pragma unroll
                for (int r = 0; r < R; ++r) {
                    x[r] = a[0][r];
#pragma unroll
                    for (int s = 1; s < C; ++s) x[r] = s == j / panel_warps ? a[s][r] : x[r];
                    if (above(j, r)) x[r] = 0;
                }
                store_vectors<T, R>(xs[j % 2], x);
            }
            __syncthreads();
            load_vectors<T, R>(xs[j % 2], x);
            // xᵀA
            T sum[C] = {}, top[C] = {};
#pragma unroll
            for (int r = 0; r < R; ++r) {
#pragma unroll
                for (int s = 0; s < C; ++s) sum[s] += x[r] * a[s][r];
            }
            if constexpr (streams) {
#pragma unroll 1
                for (Index i = held + lane; i < rows; i += 32) {
                    const T x_i = A[first + i + j * lda];
#pragma unroll
                    for (int s = 0; s < C; ++s) {
                        const int c = warp + s * panel_warps;
                        if (c < n) sum[s] += x_i * A[first + i + c * lda];
                    }
                }
            }
            warp_sums(sum);
            if (rank == 0) {
#pragma unroll
                for (int s = 0; s < C; ++s) {
                    T found = a[s][0];
#pragma unroll
                    for (int r = 1; r < v_size; ++r) found = r == j % v_size ? a[s][r] : found;
                    top[s] = __shfl_sync(~0u, found, j / v_size);
                }
            }
            exchange(sum, top);
            alpha = tops[set][j % panel_warps][j / panel_warps];
            top_col = tops[set][warp][slot];
            // of all blocks, in one order
            with_col = with_x = 0;
#pragma unroll
            for (int b = peer; b < panel_blocks; b += group) {
                with_col += b < blocks ? parts[set][b][warp][slot] : T(0);
                with_x += b < blocks ? parts[set][b][j % panel_warps][j / panel_warps] : T(0);
            }
#pragma unroll
            for (int step = group / 2; step > 0; step /= 2) {
                with_col += __shfl_xor_sync(~0u, with_col, step);
                with_x += __shfl_xor_sync(~0u, with_x, step);
            }
            const T squares = alpha * alpha + with_x;
            if (rescaled || (squares > low && squares < high)) break;
            // x := 2^-e x with |[α; x]| about 1
            T largest[C] = {};
#pragma unroll
            for (int r = 0; r < R; ++r) largest[0] = fmax(largest[0], fabs(x[r]));
            if constexpr (streams) {
                for (Index i = held + lane; i < rows; i += 32)
                    largest[0] = fmax(largest[0], fabs(A[first + i + j * lda]));
            }
            for (int step = 16; step > 0; step /= 2)
                largest[0] = fmax(largest[0], __shfl_xor_sync(~0u, largest[0], step));
            exchange(largest, largest);
            T most = fabs(alpha);
            for (int b = 0; b < blocks; ++b) most = fmax(most, parts[set][b][0][0]);
            if (!(most > 0 && isfinite(most))) break;
            e = ilogb(most);
            // in two factors that neither over- nor underflow
            const T f = scalbn(T(1), -e / 2), g = scalbn(T(1), -e - -e / 2);
            if (warp == j % panel_warps) {
#pragma unroll
                for (int s = 0; s < C; ++s) {
#pragma unroll
                    for (int r = 0; r < R; ++r) {
                        a[s][r] = s == j / panel_warps && !above(j, r) ? a[s][r] * f * g : a[s][r];
                    }
                }
                if constexpr (streams) {
                    for (Index i = held + lane; i < rows; i += 32) A[first + i + j * lda] *= f * g;
                }
            }
            __syncthreads();
        }
        if (e != 0) alpha = scalbn(alpha, -e);
        T beta = alpha, tau = 0, scale = 0;
        if (with_x != 0) {
            const T squares = alpha * alpha + with_x, inverse = rsqrt(squares), norm = squares * inverse;
            beta = -copysign(norm, alpha);
            tau = 1 + fabs(alpha) * inverse;
            scale = 1 / (alpha - beta);
        }
        // wᵀ = τ [1; v]ᵀA(:, j + 1:);  VᵀV(0:j, j)
        const T product = top_col + scale * with_col, w_col = tau * product;
        if (rank == 0 && peer == 0) {
            if (col < j) products[j][col] = product;
            if (col == j) taus[j] = tau;
        }
        if (streams && peer == 0) w[col] = w_col;
        const T row_j = col == j ? (e == 0 ? beta : scalbn(beta, e)) : top_col - w_col;
        // A(:, j) = [β; v],  A(:, c) −= [1; v] w_c
#pragma unroll
        for (int r = 0; r < R; ++r) x[r] *= scale;
        const bool has_row_j = rank == 0 && lane == j / v_size;
#pragma unroll
        for (int s = 0; s < C; ++s) {
            const int c = warp + s * panel_warps;
            const T w_c = __shfl_sync(~0u, w_col, s * group), row_j_c = __shfl_sync(~0u, row_j, s * group);
            if (c > j) {
#pragma unroll
                for (int r = 0; r < R; ++r) a[s][r] -= x[r] * w_c;
            } else if (c == j) {
#pragma unroll
                for (int r = 0; r < R; ++r) a[s][r] = above(j, r) ? a[s][r] : x[r];
            }
#pragma unroll
            for (int r = 0; r < v_size; ++r) a[s][r] = c >= j && has_row_j && r == j % v_size ? row_j_c : a[s][r];
        }
        if constexpr (streams) {
            __syncthreads();
#pragma unroll 1
            for (Index i = held + tid; i < rows; i += panel_threads) {
                T* const row = A + first + i;
                const T v = row[j * lda] * scale;
                row[j * lda] = v;
                for (int c = j + 1; c < n; ++c) row[c * lda] -= v * w[c];
            }
        }
    }

    // store
#pragma unroll
    for (int s = 0; s < C; ++s) {
        const int c = warp + s * panel_warps;
        if (c < n) store_column<T, R>(A + first + c * lda, min(rows, Index(held)), aligned, a[s]);
    }
    __syncthreads();
    if (rank == 0 && warp == 0) t_recurrence(n, products, taus, Tk, p.Tf, p.ldt);
    // nobody leaves while its shared memory may still be written
    cluster.sync();
}

}  // namespace quoin::cuda
