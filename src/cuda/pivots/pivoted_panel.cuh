#pragma once

// A panel of greedy pivots in one launch: A P = H [R; A₂₂] for A (h×n).
//
//        n                      Block b of G owns the columns b, b + G, … and keeps them where they are. They get new
//     ┌─┬─┬─┬─┬─┬─┐             places instead: `place` of a column is where A P has it. Warp w of a block has columns
//     │0│1│2│0│1│2│ h           w, w + 16, … of these, four at a time, a lane every 32nd row.
//     └─┴─┴─┴─┴─┴─┘
//
// Step k, for the remaining columns, whose places are k, k + 1, …:
//
//     every block sends its column a of largest norm, and then receives the same column x of all blocks
//     v = (1, x₂ / (α − β)),   H = I − τ v vᵀ,   H x = β e₁
//     a := H a for its own columns;   ‖a‖² := ‖a‖² − r_k², or anew if half of its digits are lost
//
// All blocks compute v in the same order of sums. A block sends into two buffers by turns. It sends for step k + 2 only
// after all blocks have sent for step k + 1, and so have read what was sent for step k. Pivots keep x; the caller makes
// β and v of it.
//
// In shared memory: A itself, and x is sent, 8 bytes a message. In global memory: A, and x is read there, from L2.
// One block a multiprocessor, 512 threads. Shared memory: n/G + 1 columns of h rows, and 20 or 32 bytes a column. 4hnb
// flops for b steps. A step is bound by latency, of messages and of sums over warps: 4.5 to 5.5 µs on an H200. In
// global memory two reads and a write of A bound it.

#include "cuda/pivots/candidates.cuh"
#include "primitives/pivots.hpp"
#include "quoin/cuda.hpp"

namespace quoin::cuda {

constexpr int columns_at_once = 4;

template <class T>
struct PivotedPanel {
    PivotedColumns<T, Cuda> columns;  ///< rows and columns of A₂₂ alone
    int width;
    double tolerance;
    T *tau, *beta, *scale, *power;  ///< of each pivot: v = scale power x, whose factors are in range
    Index* from;                    ///< n: where the column at each place was
    int* taken;                     ///< number of pivots
    Message *candidates, *pivots;   ///< 2 for each block, and 2 for each block and message of a column; zeros on entry
    PivotState<T>* states;          ///< n, if A is in global memory
};

template <class T, bool in_shared>
__global__ void __launch_bounds__(pivot_threads, 1) pivoted_panel_kernel(PivotedPanel<T> p) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Candidate of_warps[pivot_warps];
    __shared__ struct {
        unsigned long long key;
        int place, block, column;
    } winner;
    const auto& A = p.columns.A;
    const int h = static_cast<int>(A.rows), n = static_cast<int>(A.cols), blocks = gridDim.x, block = blockIdx.x;
    const int most = (n + blocks - 1) / blocks, mine = (n - block + blocks - 1) / blocks;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    constexpr int per_message = Numbers<T>::count;
    // of a column: all of it, or a power of two
    const int ld = (h + per_message - 1) / per_message * per_message, messages = in_shared ? ld / per_message : 1;
    // shared memory: x, the columns, their states
    T* const received = reinterpret_cast<T*>(memory);
    PivotState<T>* const states =
        in_shared ? reinterpret_cast<PivotState<T>*>(received + Index(most + 1) * ld) : p.states + Index(block) * most;
    const auto home = [&](int c) { return Index(block) + Index(c) * blocks; };
    const auto column = [&](int c) { return in_shared ? received + Index(c + 1) * ld : A.data + home(c) * A.ld; };

    Candidate best;
    const auto consider = [&](const PivotState<T>& s, int c) {
        const Candidate candidate{key_of(static_cast<double>(s.norm), s.exponent), static_cast<unsigned>(s.place), c};
        if (candidate.is_better_than(best)) best = candidate;
    };
    for (int c = warp; c < mine; c += pivot_warps) {
        const Index j = home(c);
        const PivotState<T> s{p.columns.norms.data[j], p.columns.norms.data[j + p.columns.norms.ld],
                              static_cast<int>(j), p.columns.exponents.data ? p.columns.exponents.data[j] : 0,
                              static_cast<int>(p.columns.order.data[j])};
        if (lane == 0) states[c] = s;
        consider(s, c);
        if constexpr (in_shared) {
            for (int i = lane; i < h; i += 32) column(c)[i] = A.data[i + j * A.ld];
        }
    }

    int k = 0;
    for (; k < p.width; ++k) {
        const unsigned tag = 1 + k % (Message::tags - 1);
        Message* const candidates = p.candidates + k % 2 * blocks;
        Message* const pivots = p.pivots + k % 2 * Index(blocks) * messages;
        if (lane == 0) of_warps[warp] = best;
        __syncthreads();
        int from;
        const Candidate own = best_of_warp(lane < pivot_warps ? of_warps[lane] : Candidate(), from);
        if (threadIdx.x == 0) {
            if constexpr (!in_shared) __threadfence();
            store_message(candidates + block,
                          {own.key, own.place, static_cast<unsigned>(own.column) * Message::tags | tag});
        }
        // x times a power of two, with a norm of about 1
        const T own_power = own.place != ~0u ? inverse_power_of(states[own.column].norm) : T(0);
        const int first_message = in_shared ? k / per_message : 0;
        for (int i = first_message + threadIdx.x; i < messages && own.place != ~0u; i += pivot_threads) {
            Numbers<T> x = {{own_power}};
            if constexpr (in_shared) {
                x = reinterpret_cast<const Numbers<T>*>(column(own.column))[i];
                for (T& x_i : x.at) x_i *= own_power;
            }
            store_message(pivots + Index(block) * messages + i, {bits_of(x), 0, tag});
        }
        if (warp == 0) {
            int of_block;
            const Candidate all = best_of_blocks<5>(candidates, 0, 1, blocks, tag, of_block);
            if (lane == 0) winner = {all.key, static_cast<int>(all.place), of_block, all.column};
            if constexpr (!in_shared) __threadfence();
        }
        __syncthreads();
        const double pivot_norm = norm_of(winner.key);
        if (p.tolerance >= 0 && !(pivot_norm > p.tolerance)) break;

        // x times a power of two, so that products with it are in range
        const T* const pivot = A.data + (Index(winner.block) + Index(winner.column) * blocks) * A.ld;
        const Message* const sent = pivots + Index(winner.block) * messages;
        const T power = in_shared ? T(1) : numbers_of<T>(load_message(sent, tag).payload).at[0];
        if constexpr (in_shared) {
            for (int i = first_message + threadIdx.x; i < messages; i += pivot_threads)
                reinterpret_cast<Numbers<T>*>(received)[i] = numbers_of<T>(load_message(sent + i, tag).payload);
            __syncthreads();
        }
        const auto is_pivot = [&](int c) { return block == winner.block && c == winner.column; };
        const auto x = [&](int i) { return in_shared ? received[i] : power * __ldcg(pivot + i); };
        T tau = 0, beta = 0, scale = 0;
        for (int first = warp; first < mine; first += columns_at_once * pivot_warps) {
            T* a[columns_at_once];
            T sums[columns_at_once + 1] = {};  // x₂ᵀa₂, and x₂ᵀx₂
            bool remains[columns_at_once];
#pragma unroll
            for (int q = 0; q < columns_at_once; ++q) {
                const int c = first + q * pivot_warps;
                remains[q] = c < mine && states[c].place >= k && !is_pivot(c);
                a[q] = column(c);
            }
#pragma unroll 4
            for (int i = k + 1 + lane; i < h; i += 32) {
                const T x_i = x(i);
                sums[columns_at_once] += x_i * x_i;
#pragma unroll
                for (int q = 0; q < columns_at_once; ++q) {
                    if (remains[q]) sums[q] += x_i * a[q][i];
                }
            }
            warp_sums(sums);
            if (first == warp) {
                const T alpha = x(k), tail = sums[columns_at_once], square = alpha * alpha + tail;
                const bool is_zero = tail == 0 || square < std::numeric_limits<T>::min() / unit<T>;
                beta = is_zero ? alpha : -copysign(square * reciprocal_root(square), alpha);
                tau = is_zero ? T(0) : (beta - alpha) * reciprocal(beta);
                scale = is_zero ? T(0) : reciprocal(alpha - beta);
            }
            // a₁ := a₁ − t,   a₂ := a₂ − t v₂,   t = τ (a₁ + v₂ᵀa₂)
            T t[columns_at_once];
#pragma unroll
            for (int q = 0; q < columns_at_once; ++q) {
                if (remains[q]) t[q] = tau * (a[q][k] + scale * sums[q]);
            }
            __syncwarp();
#pragma unroll
            for (int q = 0; q < columns_at_once; ++q) {
                if (remains[q] && lane == q) a[q][k] -= t[q];
                t[q] *= scale;
            }
#pragma unroll 4
            for (int i = k + 1 + lane; i < h; i += 32) {
                const T x_i = x(i);
#pragma unroll
                for (int q = 0; q < columns_at_once; ++q) {
                    if (remains[q]) a[q][i] -= t[q] * x_i;
                }
            }
        }
        if (block == winner.block && threadIdx.x == 0) {
            p.tau[k] = tau;
            p.beta[k] = beta / own_power;
            p.scale[k] = scale;
            p.power[k] = own_power;
        }
        __syncwarp();

        // a lane a column
        best = {};
        for (int first = warp; first < mine; first += 32 * pivot_warps) {
            const int c = first + lane * pivot_warps;
            PivotState<T> s = {};
            bool is_lost = false;
            if (c < mine) {
                s = states[c];
                s.place = is_pivot(c) ? k : s.place == k ? winner.place : s.place;
                is_lost = s.place > k && !downdate(s, column(c)[k]);
            }
            for (unsigned lost = __ballot_sync(~0u, is_lost); lost != 0; lost &= lost - 1) {
                const int l = __ffs(lost) - 1;
                const T* const a = column(first + l * pivot_warps);
                double sum = 0;
                for (int i = k + 1 + lane; i < h; i += 32) sum += static_cast<double>(a[i]) * static_cast<double>(a[i]);
                sum = warp_sum(sum);
                if (lane == l) s.norm = s.computed = static_cast<T>(sqrt(sum));
            }
            if (c < mine) states[c] = s;
            if (s.place > k) consider(s, c);
        }
        best = best_of_warp(best, from);
    }

    __syncthreads();
    if (block == 0 && threadIdx.x == 0) *p.taken = k;
    for (int c = warp; c < mine; c += pivot_warps) {
        const PivotState<T> s = states[c];
        if (lane == 0) {
            p.from[s.place] = home(c);
            p.columns.order.data[s.place] = s.order;
            p.columns.norms.data[s.place] = s.norm;
            p.columns.norms.data[s.place + p.columns.norms.ld] = s.computed;
            if (p.columns.exponents.data) p.columns.exponents.data[s.place] = s.exponent;
        }
        if constexpr (in_shared) {
            for (int i = lane; i < h; i += 32) A.data[i + s.place * A.ld] = column(c)[i];
        }
    }
}

}  // namespace quoin::cuda
