#pragma once

// The pivots of a sketch in one launch, several in a round: Y P = H [S; Y₂₂] for Y (h×n), h about a panel's width.
//
// Blocks own the columns of Y as in pivoted_panel.cuh, and hold them in shared memory. The blocks are in C groups, and
// a round chooses up to C pivots:
//
//     every block sends its column of largest norm; warp g of every block receives the largest, x_g, of group g
//     greedy pivots among x_1, …, x_C, as long as they have half of the largest norm of all columns
//     a := H_c … H_1 a,   a := a − V t,   t_s = τ_s (w_s − Σ_{r<s} (v_rᵀv_s) t_r),   w = Vᵀa for all columns
//     ‖a‖² := ‖a‖² − Σ r², or anew if half of its digits are lost
//
// The first pivot of a round has the largest norm of all columns, and a later one at least half of it. Norms only fall:
// |s_kk| >= ‖Y₂₂ e_j‖/2 for every column that remains (docs/pivoting.md). All blocks choose the same, by the same sums.
// The choice depends on the number of blocks, and so on the GPU's multiprocessors.
//
// 512 threads, one block a multiprocessor. Shared memory: n/G columns of h rows, C more, and 20 or 32 bytes a column.
// 4hnb flops for b pivots. A round is bound by latency.

#include "cuda/arch/sm70_barriers.cuh"
#include "cuda/pivots/candidates.cuh"
#include "primitives/pivots.hpp"
#include "quoin/cuda.hpp"

namespace quoin::cuda {

/// Sizes of a block's work on a sketch.
template <class T>
struct SketchSize {
    static constexpr int at_once = sizeof(T) == 8 ? 4 : 8;  ///< C
    static constexpr int max_rows = 320;
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

/// The pivots of a round, and what the warps tell each other in every second step of it.
template <class T, int C>
struct PivotRound {
    int count;
    struct Pivot {
        int block, column, place;
    } pivot[C];
    T tau[C], products[C][C];  ///< products[r][s]: v_rᵀv_s for r < s
    T sums[2][pivot_warps][2 * C], tops[2][2 * C];
};

/// Adds up each of x over a warp. Lane i has the sum of number i / (32 / count).
template <int step = 16, class T, int count>
__device__ __forceinline__ T scattered_sums(const T (&x)[count], int lane) {
    if constexpr (count > 1) {
        // lanes that differ by `step` keep one half of the numbers each
        constexpr int left = count / 2;
        const bool upper = lane & step;
        T halves[left];
#pragma unroll
        for (int i = 0; i < left; ++i) {
            const T kept = upper ? x[i + left] : x[i], given = upper ? x[i] : x[i + left];
            halves[i] = kept + __shfl_xor_sync(~0u, given, step);
        }
        return scattered_sums<step / 2>(halves, lane);
    } else {
        T sum = x[0];
#pragma unroll
        for (int apart = step; apart > 0; apart /= 2) sum += __shfl_xor_sync(~0u, sum, apart);
        return sum;
    }
}

/// Row i of V.
template <class T, int C>
struct alignas(16) SketchRow {
    T at[C];
};

/// Chooses at most `most` pivots among the candidates, whose columns are in V from row k on, and replaces them with the
/// reflectors. A thread a row; lane q of every warp keeps what is known of candidate q. Warps without rows return.
template <class T, int C>
__device__ __forceinline__ void choose_pivots(PivotRound<T, C>& round, const Candidate (&candidates)[C],
                                              const int (&blocks)[C], T* V, int k, int h, int most) {
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, warps = (h - k + 31) / 32;
    SketchRow<T, C>* const row = reinterpret_cast<SketchRow<T, C>*>(V) + k + thread;
    const bool has_row = k + thread < h;
    SketchRow<T, C> x = {}, v = {};
    if (has_row) x = *row;
    const Candidate own = lane < C ? candidates[lane] : Candidate();
    int place = static_cast<int>(own.place), from_lane;
    const unsigned long long largest = best_of_warp(own, from_lane).key, base = largest >> key_fraction << key_fraction;
    // in units of the largest norm's power of two
    const auto relative = [&](unsigned long long key) {
        return key == 0 || base - (key >> key_fraction << key_fraction) >= 64ULL << key_fraction
                   ? 0.0
                   : norm_of(key - base + (static_cast<unsigned long long>(key_offset + 1023) << key_fraction));
    };
    // the square of the norm that is left as a part of the largest's, and what an entry's square takes away: the column
    // in V has a norm of 1 to 2
    const double ratio = largest == 0 ? 0.0 : relative(own.key) / relative(largest);
    const double norm = from_bits<double>((own.key << 1 & ((1ULL << 52) - 1)) | 1023ULL << 52);
    auto left = static_cast<float>(ratio * ratio);
    const auto weight = static_cast<float>(ratio * ratio / (norm * norm));
    bool remains = own.place != ~0u;
    int count = 0;
    if (warp >= warps) return;
#pragma unroll
    for (int s = 0; s < C; ++s) {
        if (s >= most) break;
        const unsigned bits = remains ? __float_as_uint(left) + 1 : 0, best_bits = __reduce_max_sync(~0u, bits);
        if (best_bits == 0 || (s > 0 && !(__uint_as_float(best_bits - 1) >= 0.25f))) break;
        const int best = __ffs(__ballot_sync(~0u, bits == best_bits)) - 1;
        T entry = 0;
#pragma unroll
        for (int q = 0; q < C; ++q) entry = q == best ? x.at[q] : entry;
        if (thread <= s) entry = 0;
        // products of x₂ with the candidates and the reflectors before
        T sums[2 * C];
#pragma unroll
        for (int q = 0; q < C; ++q) {
            sums[q] = entry * x.at[q];
            sums[C + q] = entry * v.at[q];
        }
        constexpr int lanes = 32 / (2 * C);
        const T part = scattered_sums(sums, lane);
        if (lane % lanes == 0) round.sums[s % 2][warp][lane / lanes] = part;
        if (thread == s) {
#pragma unroll
            for (int q = 0; q < C; ++q) {
                round.tops[s % 2][q] = x.at[q];
                round.tops[s % 2][C + q] = v.at[q];
            }
        }
        wait_for_warps<1>(warps);
        // lane i has number i % 2C of every (16 / C)-th warp
        constexpr int at_once = 16 / C;
        const T top = round.tops[s % 2][lane % (2 * C)];
        T sum = 0;
#pragma unroll
        for (int first = 0; first < pivot_warps; first += at_once) {
            const int w = first + lane / (2 * C);
            if (w < warps) sum += round.sums[s % 2][w][lane % (2 * C)];
        }
#pragma unroll
        for (int apart = 2 * C; apart < 32; apart *= 2) sum += __shfl_xor_sync(~0u, sum, apart);
        const T alpha = __shfl_sync(~0u, top, best), tail = __shfl_sync(~0u, sum, best), square = alpha * alpha + tail;
        const bool is_zero = tail == 0 || square < std::numeric_limits<T>::min() / unit<T>;
        const T beta = is_zero ? alpha : -copysign(square * reciprocal_root(square), alpha);
        const T tau = is_zero ? T(0) : (beta - alpha) * reciprocal(beta);
        const T scale = is_zero ? T(0) : reciprocal(alpha - beta);
        const T product = top + scale * sum, t = tau * product;
        if (warp == 0 && lane >= C && lane < C + s) round.products[lane - C][s] = product;
        left = max(0.0f, left - weight * static_cast<float>((top - t) * (top - t)));
        v.at[s] = thread == s ? T(1) : scale * entry;
#pragma unroll
        for (int q = 0; q < C; ++q) x.at[q] -= __shfl_sync(~0u, t, q) * v.at[s];
        const int from = __shfl_sync(~0u, place, best);
        place = lane == best ? k + s : place == k + s ? from : place;
        remains = remains && lane != best;
        if (thread == 0) {
            round.tau[s] = tau;
            round.pivot[s] = {blocks[best], candidates[best].column, from};
        }
        ++count;
    }
    // no reflectors for the rest
    if (has_row) *row = v;
    for (int i = thread; i < C * C; i += 32 * warps) {
        if (i % C >= count) round.products[i / C][i % C] = 0;
    }
    if (thread < C && thread >= count) round.tau[thread] = 0;
    if (thread == 0) round.count = count;
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
        choose_pivots<T, C>(round, of_groups, block_of_group, V, k, h, p.width - k);
        __syncthreads();

        const int count = round.count, part = lane % Size::parts;
        best = {};
        for (int first = Size::columns_of_warp * warp; first < mine; first += apart) {
            // two columns in every eight lanes
            const int c[2] = {first + 2 * (lane / Size::parts), first + 2 * (lane / Size::parts) + 1};
            T* const a[2] = {columns + c[0] * ld, columns + c[1] * ld};
            const bool has[2] = {c[0] < mine, c[1] < mine};
            const auto* const rows_of_v = reinterpret_cast<const SketchRow<T, C>*>(V);
            T w[2][C] = {};
#pragma unroll 2
            for (int i = k + part; i < h; i += Size::parts) {
                const SketchRow<T, C> v = rows_of_v[i];
                const T x[2] = {has[0] ? a[0][i] : T(0), has[1] ? a[1][i] : T(0)};
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
                const SketchRow<T, C> v = rows_of_v[i];
                T x[2] = {has[0] ? a[0][i] : T(0), has[1] ? a[1][i] : T(0)};
#pragma unroll
                for (int s = 0; s < C; ++s) {
#pragma unroll
                    for (int q = 0; q < 2; ++q) x[q] -= v.at[s] * w[q][s];
                }
#pragma unroll
                for (int q = 0; q < 2; ++q) {
                    if (has[q]) a[q][i] = x[q];
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
