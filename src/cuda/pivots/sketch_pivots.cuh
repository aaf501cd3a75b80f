#pragma once

// The pivots of a sketch in one launch, several in a round: Y P = H [S; Y₂₂] for Y (h×n) with h of about a panel's width.
//
// Blocks own the columns of Y as in pivoted_panel.cuh, and hold them in shared memory. The blocks are in C groups, and
// a round chooses up to C pivots:
//
//     every block sends its column of largest norm; warp g of every block receives the largest, x_g, of group g
//     greedy pivots among x_1, …, x_C, as long as they have half of the largest norm of all columns
//     a := H_c … H_1 a,   a := a − V t,   t_s = τ_s (w_s − Σ_{r<s} (v_rᵀv_s) t_r),   w = Vᵀa for all columns
//     ‖a‖² := ‖a‖² − Σ r², or anew if half of its digits are lost
//
// The first pivot of a round is the largest of all columns. Norms only fall, so the others have at least half of the
// norm of every column that remains: |s_kk| >= ‖Y₂₂ e_j‖/2 (docs/pivoting.md). All blocks choose the same, by the same
// sums. The choice depends on the number of blocks, and so on the GPU's multiprocessors.
//
// 512 threads, one block a multiprocessor. Shared memory: n/G columns of h rows, C more, and 20 or 32 bytes a column.
// 4hnb flops for b pivots. A round is bound by latency.

#include "cuda/pivots/candidates.cuh"
#include "primitives/pivots.hpp"
#include "quoin/cuda.hpp"

namespace quoin::cuda {

/// Sizes of a block's work on a sketch.
template <class T>
struct SketchSize {
    static constexpr int at_once = sizeof(T) == 8 ? 4 : 8;  ///< C
    static constexpr int max_rows = 160;
    static constexpr int parts = 8, columns_of_warp = 8;  // lanes that share two columns; columns of a warp at a time
    int rows, columns;                                    ///< of Y, and the most that a block has

    /// The rows of a column in shared memory: lanes of a warp read from different banks.
    __host__ __device__ int ld() const { return (rows + 11) / 16 * 16 + 4; }
    std::size_t bytes() const {
        return sizeof(T) * (Index{at_once} * rows + Index(columns) * ld()) + columns * sizeof(PivotState<T>);
    }
};

template <class T>
struct SketchPivots {
    PivotedColumns<T, Cuda> columns;  ///< Y
    int width;
    Index* from;                   ///< n: where the column at each place was
    Message *candidates, *pivots;  ///< 2 for each block, and 2 for each block and message of a column; zeros on entry
};

/// The pivots of a round.
template <class T, int C>
struct PivotRound {
    int count;
    struct Pivot {
        int block, column, place;
    } pivot[C];
    T tau[C], products[C][C];  ///< products[r][s]: v_rᵀv_s for r < s
};

/// Adds up each of x over a warp. Lane i has the sum of number i / (32 / count).
template <class T, int count>
__device__ __forceinline__ T scattered_sums(T (&x)[count], int lane) {
    int step = 16;
#pragma unroll
    for (int left = count / 2; left > 0; left /= 2, step /= 2) {
#pragma unroll
        for (int i = 0; i < left; ++i) {
            const T kept = lane & step ? x[i + left] : x[i], given = lane & step ? x[i] : x[i + left];
            x[i] = kept + __shfl_xor_sync(~0u, given, step);
        }
    }
    for (; step > 0; step /= 2) x[0] += __shfl_xor_sync(~0u, x[0], step);
    return x[0];
}

/// Chooses the pivots among the candidates whose columns are in V (h×C by rows), from row k on, and replaces them with
/// the reflectors. One warp.
template <class T, int C>
__device__ __forceinline__ void choose_pivots(PivotRound<T, C>& round, const Candidate (&candidates)[C],
                                              const int (&blocks)[C], T* V, int k, int h, int most, int lane) {
    constexpr int rows = SketchSize<T>::max_rows / 32;
    T x[C][rows];
    int place[C];
    T size[C], left[C];  // the square of the norm as a part of the largest's, and how much of it is left
    const unsigned long long largest = [&] {
        unsigned long long key = 0;
        for (int q = 0; q < C; ++q) key = max(key, candidates[q].key);
        return key;
    }();
    const unsigned long long base = largest >> key_fraction << key_fraction;
#pragma unroll
    for (int q = 0; q < C; ++q) {
#pragma unroll
        for (int r = 0; r < rows; ++r) {
            const int i = k + lane + 32 * r;
            x[q][r] = i < h ? V[i * C + q] : T(0);
        }
        const Candidate& c = candidates[q];
        place[q] = static_cast<int>(c.place);
        left[q] = 1;
        // norms in units of the largest one's power of two
        const auto relative = [&](unsigned long long key) {
            return base - (key >> key_fraction << key_fraction) >= 64ULL << key_fraction
                       ? 0.0
                       : norm_of(key - base + (static_cast<unsigned long long>(key_offset + 1023) << key_fraction));
        };
        const double ratio = largest == 0 ? 0.0 : relative(c.key) / relative(largest);
        size[q] = static_cast<T>(ratio * ratio);
    }
    unsigned taken = 0;
    int s = 0;
    for (; s < most; ++s) {
        int best = -1;
        T most_left = -1;
#pragma unroll
        for (int q = 0; q < C; ++q) {
            const T now = size[q] * left[q];
            const bool is_better =
                now > most_left || (now == most_left && candidates[q].place < candidates[max(best, 0)].place);
            if (!(taken >> q & 1) && candidates[q].place != ~0u && is_better) best = q, most_left = now;
        }
        if (best < 0 || (s > 0 && !(most_left >= T(0.25)))) break;
        taken |= 1u << best;
        T v[rows] = {};
#pragma unroll
        for (int q = 0; q < C; ++q) {
#pragma unroll
            for (int r = 0; r < rows; ++r) v[r] = q == best ? x[q][r] : v[r];
        }
        const T alpha = __shfl_sync(~0u, v[0], s);
        if (lane <= s) v[0] = 0;
        // products of x₂ with the candidates and the reflectors before
        T sums[2 * C] = {};
#pragma unroll
        for (int r = 0; r < rows; ++r) {
            const int i = k + lane + 32 * r;
#pragma unroll
            for (int q = 0; q < C; ++q) {
                sums[q] += v[r] * x[q][r];
                if (q < s && i < h) sums[C + q] += v[r] * V[i * C + q];
            }
        }
        const T sum = scattered_sums(sums, lane);
        constexpr int lanes = 32 / (2 * C);
        const T tail = __shfl_sync(~0u, sum, best * lanes), square = alpha * alpha + tail;
        const bool is_zero = tail == 0 || square < std::numeric_limits<T>::min() / unit<T>;
        const T beta = is_zero ? alpha : -copysign(square * reciprocal_root(square), alpha);
        const T tau = is_zero ? T(0) : (beta - alpha) * reciprocal(beta);
        const T scale = is_zero ? T(0) : reciprocal(alpha - beta);
#pragma unroll
        for (int q = 0; q < C; ++q) {
            const T top = __shfl_sync(~0u, x[q][0], s);
            const T t = tau * (top + scale * __shfl_sync(~0u, sum, q * lanes));
            if (lane == s) x[q][0] -= t;
#pragma unroll
            for (int r = 0; r < rows; ++r) x[q][r] -= scale * t * v[r];
            // the column has a norm of 1 to 2
            const auto norm = static_cast<T>(from_bits<double>((candidates[q].key << 1 & ((1ULL << 52) - 1)) | 1023ULL << 52));
            left[q] = max(T(0), left[q] - (top - t) * (top - t) / (norm * norm));
            const T product = __shfl_sync(~0u, sum, (C + q) * lanes);
            if (q < s && lane == 0) round.products[q][s] = V[(k + s) * C + q] + scale * product;
        }
        __syncwarp();
#pragma unroll
        for (int r = 0; r < rows; ++r) {
            const int i = k + lane + 32 * r;
            if (i < h) V[i * C + s] = i == k + s ? T(1) : scale * v[r];
        }
        const int from = [&] {
            int p = 0;
#pragma unroll
            for (int q = 0; q < C; ++q) p = q == best ? place[q] : p;
            return p;
        }();
#pragma unroll
        for (int q = 0; q < C; ++q) place[q] = q == best ? k + s : place[q] == k + s ? from : place[q];
        if (lane == 0) {
            round.tau[s] = tau;
            round.pivot[s] = {blocks[best], candidates[best].column, from};
        }
        __syncwarp();
    }
    if (lane == 0) round.count = s;
    // no reflectors for the rest
    for (; s < C; ++s) {
        for (int i = k + lane; i < h; i += 32) V[i * C + s] = 0;
        if (lane == 0) round.tau[s] = 0;
        if (lane < s) round.products[lane][s] = 0;
    }
}

template <class T>
__global__ void __launch_bounds__(pivot_threads, 1) sketch_pivots_kernel(SketchPivots<T> p) {
    using Size = SketchSize<T>;
    constexpr int C = Size::at_once, per_message = Numbers<T>::count;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Candidate of_warps[pivot_warps], of_groups[C];
    __shared__ int block_of_group[C];
    __shared__ PivotRound<T, C> round;
    const auto& A = p.columns.A;
    const int h = static_cast<int>(A.rows), n = static_cast<int>(A.cols), blocks = gridDim.x, block = blockIdx.x;
    const int mine = (n - block + blocks - 1) / blocks;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const Size size{h, (n + blocks - 1) / blocks};
    const int ld = size.ld(), messages = (h + per_message - 1) / per_message;
    T* const V = reinterpret_cast<T*>(memory);
    T* const columns = V + C * h;
    PivotState<T>* const states = reinterpret_cast<PivotState<T>*>(columns + Index(size.columns) * ld);
    const auto home = [&](int c) { return Index(block) + Index(c) * blocks; };

    // a lane a column, in eights
    Candidate best;
    const auto consider = [&](const PivotState<T>& s, int c) {
        const Candidate candidate{key_of(static_cast<double>(s.norm), s.exponent), static_cast<unsigned>(s.place), c};
        if (candidate.is_better_than(best)) best = candidate;
    };
    constexpr int apart = Size::columns_of_warp * pivot_warps;
    for (int first = Size::columns_of_warp * warp; first < mine; first += apart) {
        const int c = first + lane;
        if (lane < Size::columns_of_warp && c < mine) {
            const Index j = home(c);
            const T norm = p.columns.norms.data[j];
            states[c] = {norm, norm, static_cast<int>(j), p.columns.exponents.data ? p.columns.exponents.data[j] : 0,
                         static_cast<int>(p.columns.order.data[j])};
            consider(states[c], c);
        }
        for (int d = first; d < min(mine, first + Size::columns_of_warp); ++d) {
            for (int i = lane; i < h; i += 32) columns[d * ld + i] = A.data[i + home(d) * A.ld];
        }
    }
    int from;
    best = best_of_warp(best, from);

    for (int k = 0, turn = 0; k < p.width; ++turn) {
        const unsigned tag = 1 + turn % (Message::tags - 1);
        Message* const candidates = p.candidates + turn % 2 * blocks;
        Message* const pivots = p.pivots + turn % 2 * Index(blocks) * messages;
        if (lane == 0) of_warps[warp] = best;
        __syncthreads();
        const Candidate own = best_of_warp(lane < pivot_warps ? of_warps[lane] : Candidate(), from);
        if (threadIdx.x == 0) {
            store_message(candidates + block,
                          {own.key, own.place, static_cast<unsigned>(own.column) * Message::tags | tag});
        }
        if (own.place != ~0u) {
            // x times a power of two, with a norm of about 1
            const T power = inverse_power_of(states[own.column].norm);
            for (int i = k / per_message + threadIdx.x; i < messages; i += pivot_threads) {
                Numbers<T> x;
                for (int e = 0; e < per_message; ++e) {
                    const int row = i * per_message + e;
                    x.at[e] = row < h ? power * columns[own.column * ld + row] : T(0);
                }
                store_message(pivots + Index(block) * messages + i, {bits_of(x), 0, tag});
            }
        }
        if (warp < C) {
            int of_block;
            const Candidate of_group = best_of_blocks<2>(candidates, warp, C, blocks, tag, of_block);
            if (lane == 0) of_groups[warp] = of_group, block_of_group[warp] = of_block;
            constexpr int of_lane = (Size::max_rows / per_message + 31) / 32;
            const Message* const sent = pivots + Index(of_block) * messages;
            const int begin = k / per_message + lane;
            Message received[of_lane] = {};
            for (bool complete = of_group.place == ~0u; !complete;) {
                complete = true;
#pragma unroll
                for (int j = 0; j < of_lane; ++j) {
                    if (begin + 32 * j < messages) received[j] = look_at_message(sent + begin + 32 * j);
                }
#pragma unroll
                for (int j = 0; j < of_lane; ++j)
                    complete = complete && (begin + 32 * j >= messages || received[j].label == tag);
            }
#pragma unroll
            for (int j = 0; j < of_lane; ++j) {
                const Numbers<T> x = numbers_of<T>(received[j].payload);
                for (int e = 0; e < per_message; ++e) {
                    const int row = (begin + 32 * j) * per_message + e;
                    if (row < h) V[row * C + warp] = x.at[e];
                }
            }
        }
        __syncthreads();
        if (warp == 0) choose_pivots<T, C>(round, of_groups, block_of_group, V, k, h, min(C, p.width - k), lane);
        __syncthreads();

        const int count = round.count, part = lane % Size::parts;
        best = {};
        for (int first = Size::columns_of_warp * warp; first < mine; first += apart) {
            // two columns in every eight lanes
            const int c[2] = {first + 2 * (lane / Size::parts), first + 2 * (lane / Size::parts) + 1};
            T* const a[2] = {columns + min(c[0], mine - 1) * ld, columns + min(c[1], mine - 1) * ld};
            struct alignas(16) Row {
                T at[C];
            };
            const Row* const rows_of_v = reinterpret_cast<const Row*>(V);
            T w[2][C] = {};
#pragma unroll 2
            for (int i = k + part; i < h; i += Size::parts) {
                const Row v = rows_of_v[i];
                const T x[2] = {a[0][i], a[1][i]};
#pragma unroll
                for (int s = 0; s < C; ++s) {
#pragma unroll
                    for (int q = 0; q < 2; ++q) w[q][s] += v.at[s] * x[q];
                }
            }
#pragma unroll
            for (int q = 0; q < 2; ++q) {
#pragma unroll
                for (int s = 0; s < C; ++s) {
#pragma unroll
                    for (int step = Size::parts / 2; step > 0; step /= 2)
                        w[q][s] += __shfl_xor_sync(~0u, w[q][s], step);
#pragma unroll
                    for (int r = 0; r < s; ++r) w[q][s] -= round.products[r][s] * w[q][r];
                    w[q][s] *= round.tau[s];
                }
            }
#pragma unroll 2
            for (int i = k + part; i < h; i += Size::parts) {
                const Row v = rows_of_v[i];
                T x[2] = {a[0][i], a[1][i]};
#pragma unroll
                for (int s = 0; s < C; ++s) {
#pragma unroll
                    for (int q = 0; q < 2; ++q) x[q] -= v.at[s] * w[q][s];
                }
#pragma unroll
                for (int q = 0; q < 2; ++q) {
                    if (c[q] < mine) a[q][i] = x[q];
                }
            }
            __syncwarp();
            // a lane a column
            const int own_column = first + lane;
            const bool has_column = lane < Size::columns_of_warp && own_column < mine;
            PivotState<T> state = {};
            bool is_lost = false;
            if (has_column) {
                state = states[own_column];
                for (int s = 0; s < count; ++s) {
                    const auto& pivot = round.pivot[s];
                    if (block == pivot.block && own_column == pivot.column)
                        state.place = k + s;
                    else if (state.place == k + s)
                        state.place = pivot.place;
                }
                for (int s = 0; s < count && state.place >= k + count && !is_lost; ++s)
                    is_lost = !downdate(state, columns[own_column * ld + k + s]);
            }
            for (unsigned lost = __ballot_sync(~0u, is_lost); lost != 0; lost &= lost - 1) {
                const int l = __ffs(lost) - 1;
                double sum = 0;
                for (int i = k + count + lane; i < h; i += 32) {
                    const auto x = static_cast<double>(columns[(first + l) * ld + i]);
                    sum += x * x;
                }
                sum = warp_sum(sum);
                if (lane == l) state.norm = state.computed = static_cast<T>(sqrt(sum));
            }
            if (has_column) {
                states[own_column] = state;
                if (state.place >= k + count) consider(state, own_column);
            }
        }
        best = best_of_warp(best, from);
        k += count;
    }

    __syncthreads();
    for (int c = warp; c < mine; c += pivot_warps) {
        const PivotState<T> s = states[c];
        if (lane == 0) {
            p.from[s.place] = home(c);
            p.columns.order.data[s.place] = s.order;
            if (p.columns.exponents.data) p.columns.exponents.data[s.place] = s.exponent;
        }
        for (int i = lane; i < h; i += 32) A.data[i + s.place * A.ld] = columns[c * ld + i];
    }
}

}  // namespace quoin::cuda
