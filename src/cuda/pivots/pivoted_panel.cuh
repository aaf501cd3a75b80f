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
// In shared memory: A itself, one message a row of x. In global memory: A and x are read from there, x from L2.
// One block a multiprocessor, 512 threads. Shared memory: h + 1 columns and n/G columns of h rows, 20 or 32 bytes a
// column. 4hnb flops for b steps. A step is bound by the latency of its messages, 1.5 to 3 µs, or, in global memory, by
// two reads and a write of A.

#include "cuda/arch/sm70_approximate.cuh"
#include "cuda/arch/sm70_messages.cuh"
#include "cuda/elements/warp_sums.cuh"
#include "primitives/pivots.hpp"
#include "quoin/cuda.hpp"

namespace quoin::cuda {

constexpr int pivot_threads = 512, pivot_warps = pivot_threads / 32, columns_at_once = 4;

/// A column of a block. Its norm was `computed` before the reflectors that `norm` knows of.
template <class T>
struct PivotState {
    T norm, computed;
    int place, exponent, order;
};

template <class T>
struct PivotedPanel {
    PivotedColumns<T, Cuda> columns;  ///< rows and columns of A₂₂ alone
    int width;
    double tolerance;
    T *tau, *beta, *scale;         ///< of each pivot; scale = 1 / (α − β)
    Index* from;                   ///< n: where the column at each place was
    int* taken;                    ///< number of pivots
    Message *candidates, *pivots;  ///< 2 for each block, 2h for each block; zeros on entry
    PivotState<T>* states;         ///< n, if A is in global memory
};

/// Columns of a smaller square norm are zero: u times an entry of any column is larger.
template <class T>
constexpr double least_square = sizeof(T) == 8 ? 0x1p-1022 : 0x1p-252;

/// A column of a block as a candidate for the next pivot.
struct Candidate {
    unsigned long long key = 0;  ///< its norm
    unsigned place = ~0u;
    int column = 0;
    __device__ bool is_better_than(const Candidate& other) const {
        return key > other.key || (key == other.key && place < other.place);
    }
};

// A key orders the norms 2^e x by 13 bits of an exponent and the 51 leading bits of the fraction; 0 for a zero and NaN.
constexpr int key_fraction = 51, key_offset = 1200;
__device__ __forceinline__ unsigned long long key_of(double x, int e) {
    if (!(x > 0)) return 0;
    return (static_cast<unsigned long long>(__double_as_longlong(x)) >> 1) +
           (static_cast<unsigned long long>(e + key_offset) << key_fraction);
}
__device__ __forceinline__ double norm_of(unsigned long long key) {
    if (key == 0) return 0;
    const int exponent = static_cast<int>(key >> key_fraction) - key_offset - 1023;
    const auto fraction = static_cast<long long>(key << 1 & ((1ULL << 52) - 1));
    return scalbn(__longlong_as_double(fraction | 1023LL << 52), exponent);
}

/// Returns the best candidate of a warp's lanes, and the lane that has it. Every lane calls it.
__device__ __forceinline__ Candidate best_of_warp(const Candidate& mine, int& lane) {
    const auto high = static_cast<unsigned>(mine.key >> 32), low = static_cast<unsigned>(mine.key);
    const unsigned top = __reduce_max_sync(~0u, high);
    const unsigned next = __reduce_max_sync(~0u, high == top ? low : 0);
    const bool is_largest = high == top && low == next;
    const unsigned place = __reduce_min_sync(~0u, is_largest ? mine.place : ~0u);
    lane = __ffs(__ballot_sync(~0u, is_largest && mine.place == place)) - 1;
    return {static_cast<unsigned long long>(top) << 32 | next, place, __shfl_sync(~0u, mine.column, lane)};
}

template <class T>
__device__ __forceinline__ unsigned long long bits_of(T x) {
    if constexpr (sizeof(T) == 8) return __double_as_longlong(x);
    return __float_as_uint(x);
}
template <class T>
__device__ __forceinline__ T number_of(unsigned long long bits) {
    if constexpr (sizeof(T) == 8) return __longlong_as_double(bits);
    return __uint_as_float(static_cast<unsigned>(bits));
}

/// ‖a‖² := ‖a‖² − r². Returns false if that loses half of the digits, and the norm must be computed anew.
template <class T>
__device__ __forceinline__ bool downdate(PivotState<T>& s, T r) {
    constexpr T half_of_the_digits = sizeof(T) == 8 ? T(1.0536712127723509e-8) : T(2.44140625e-4);
    if (s.norm == 0) return true;
    const T ratio = fabs(r) / s.norm, left = max(T(0), (1 + ratio) * (1 - ratio)), kept = s.norm / s.computed;
    if (!(left * kept * kept > half_of_the_digits)) return false;
    s.norm *= sqrt(left);
    return true;
}

template <class T, bool in_shared>
__global__ void __launch_bounds__(pivot_threads, 1) pivoted_panel_kernel(PivotedPanel<T> p) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Candidate of_warps[pivot_warps];
    __shared__ double tails[pivot_warps];
    __shared__ struct {
        unsigned long long key;
        int place, block, column;
    } winner;
    const auto& A = p.columns.A;
    const int h = static_cast<int>(A.rows), n = static_cast<int>(A.cols), blocks = gridDim.x, block = blockIdx.x;
    const int most = (n + blocks - 1) / blocks, mine = (n - block + blocks - 1) / blocks;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    // shared memory: x, the columns, their states
    T* const received = reinterpret_cast<T*>(memory);
    PivotState<T>* const states =
        in_shared ? reinterpret_cast<PivotState<T>*>(received + Index(most + 1) * h) : p.states + Index(block) * most;
    const auto home = [&](int c) { return Index(block) + Index(c) * blocks; };
    const auto column = [&](int c) { return in_shared ? received + Index(c + 1) * h : A.data + home(c) * A.ld; };

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
        Message* const pivots = p.pivots + k % 2 * Index(blocks) * h;
        if (lane == 0) of_warps[warp] = best;
        __syncthreads();
        int from;
        const Candidate own = best_of_warp(lane < pivot_warps ? of_warps[lane] : Candidate(), from);
        if (threadIdx.x == 0) {
            if constexpr (!in_shared) __threadfence();
            store_message(candidates + block,
                          {own.key, own.place, static_cast<unsigned>(own.column) * Message::tags | tag});
        }
        if constexpr (in_shared) {
            if (own.place != ~0u) {
                for (int i = k + threadIdx.x; i < h; i += pivot_threads)
                    store_message(pivots + Index(block) * h + i, {bits_of(column(own.column)[i]), 0, tag});
            }
        }
        if (warp == 0) {
            Candidate of_lane;
            int of_block = 0;
            for (int b = lane; b < blocks; b += 32) {
                const Message m = load_message(candidates + b, tag);
                const Candidate theirs{m.payload, m.number, static_cast<int>(m.label / Message::tags)};
                if (theirs.is_better_than(of_lane)) of_lane = theirs, of_block = b;
            }
            const Candidate all = best_of_warp(of_lane, from);
            of_block = __shfl_sync(~0u, of_block, from);
            if (lane == 0) winner = {all.key, static_cast<int>(all.place), of_block, all.column};
            if constexpr (!in_shared) __threadfence();
        }
        __syncthreads();
        if (!(norm_of(winner.key) > p.tolerance) && !(p.tolerance < 0)) break;

        // x, and the square of its norm below its first entry
        const T* const pivot = A.data + (Index(winner.block) + Index(winner.column) * blocks) * A.ld;
        double tail = 0;
        for (int i = k + threadIdx.x; i < h; i += pivot_threads) {
            T x;
            if constexpr (in_shared) {
                x = number_of<T>(load_message(pivots + Index(winner.block) * h + i, tag).payload);
                received[i] = x;
            } else {
                x = __ldcg(pivot + i);
            }
            if (i > k) tail += static_cast<double>(x) * static_cast<double>(x);
        }
        tail = warp_sum(tail);
        if (lane == 0) tails[warp] = tail;
        __syncthreads();
        tail = warp_sum(lane < pivot_warps ? tails[lane] : 0.0);
        const auto is_pivot = [&](int c) { return block == winner.block && c == winner.column; };
        const auto x = [&](int i) { return in_shared ? received[i] : __ldcg(pivot + i); };
        const double alpha = static_cast<double>(x(k)), square = alpha * alpha + tail;
        const bool is_zero = tail == 0 || square < least_square<T>;
        const double beta = is_zero ? alpha : -copysign(square * reciprocal_root(square), alpha);
        const T tau = is_zero ? T(0) : static_cast<T>((beta - alpha) * reciprocal(beta));
        const T scale = is_zero ? T(0) : static_cast<T>(reciprocal(alpha - beta));
        if (block == 0 && threadIdx.x == 0) {
            p.tau[k] = tau;
            p.beta[k] = static_cast<T>(beta);
            p.scale[k] = scale;
        }

        for (int first = warp; first < mine; first += columns_at_once * pivot_warps) {
            T* a[columns_at_once];
            T products[columns_at_once] = {};
            bool remains[columns_at_once];
#pragma unroll
            for (int q = 0; q < columns_at_once; ++q) {
                const int c = first + q * pivot_warps;
                remains[q] = c < mine && states[c].place >= k && !is_pivot(c);
                a[q] = column(c);
            }
            // a₁ := r = a₁ − τ (a₁ + v₂ᵀa₂)
#pragma unroll 4
            for (int i = k + 1 + lane; i < h; i += 32) {
                const T v = x(i) * scale;
#pragma unroll
                for (int q = 0; q < columns_at_once; ++q) {
                    if (remains[q]) products[q] += v * a[q][i];
                }
            }
#pragma unroll
            for (int q = 0; q < columns_at_once; ++q) {
                products[q] = warp_sum(products[q]);
                if (remains[q]) products[q] = tau * (a[q][k] + products[q]);
            }
            __syncwarp();
#pragma unroll
            for (int q = 0; q < columns_at_once; ++q) {
                if (remains[q] && lane == q) a[q][k] -= products[q];
            }
            // a₂ := a₂ − τ (a₁ + v₂ᵀa₂) v₂
#pragma unroll 4
            for (int i = k + 1 + lane; i < h; i += 32) {
                const T v = x(i) * scale;
#pragma unroll
                for (int q = 0; q < columns_at_once; ++q) {
                    if (remains[q]) a[q][i] -= products[q] * v;
                }
            }
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
