#pragma once

// Columns as candidates for a pivot: their norms, downdated, and how blocks send each other the best.

#include <limits>

#include "cuda/arch/sm70_approximate.cuh"
#include "cuda/arch/sm70_messages.cuh"
#include "cuda/elements/warp_sums.cuh"

namespace quoin::cuda {

constexpr int pivot_threads = 512, pivot_warps = pivot_threads / 32;

/// A column of a block. Its norm was `computed` before the reflectors that `norm` knows of.
template <class T>
struct PivotState {
    T norm, computed;
    int place, exponent, order;
};

template <class T>
constexpr T unit = std::numeric_limits<T>::epsilon() / 2;

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
    bool is_best = high == __reduce_max_sync(~0u, high);
    unsigned best = __ballot_sync(~0u, is_best);
    if (best & (best - 1)) {
        // equal in the leading bits: one lane remains
        const unsigned next = __reduce_max_sync(~0u, is_best ? low : 0);
        is_best = is_best && low == next;
        const unsigned place = __reduce_min_sync(~0u, is_best ? mine.place : ~0u);
        is_best = is_best && mine.place == place;
        best = __ballot_sync(~0u, is_best);
    }
    lane = __ffs(best) - 1;
    return {static_cast<unsigned long long>(__shfl_sync(~0u, high, lane)) << 32 | __shfl_sync(~0u, low, lane),
            __shfl_sync(~0u, mine.place, lane), __shfl_sync(~0u, mine.column, lane)};
}
/// Returns the best of the candidates of blocks `first`, `first` + `apart`, …, and its block, as soon as all have been
/// sent with the tag. A lane looks at `at_once` of them in one turn. Every lane of a warp calls it.
template <int at_once>
__device__ __forceinline__ Candidate best_of_blocks(const Message* candidates, int first, int apart, int blocks,
                                                    unsigned tag, int& block) {
    Candidate best;
    block = 0;
    for (int b = first + apart * (threadIdx.x % 32); b < blocks; b += 32 * apart * at_once) {
        Message sent[at_once];
        const auto from = [&](int i) { return b + 32 * apart * i < blocks ? b + 32 * apart * i : b; };
        for (bool complete = false; !complete;) {
            complete = true;
#pragma unroll
            for (int i = 0; i < at_once; ++i) sent[i] = look_at_message(candidates + from(i));
#pragma unroll
            for (int i = 0; i < at_once; ++i) complete = complete && sent[i].label % Message::tags == tag;
        }
#pragma unroll
        for (int i = 0; i < at_once; ++i) {
            const Candidate theirs{sent[i].payload, sent[i].number, static_cast<int>(sent[i].label / Message::tags)};
            if (theirs.is_better_than(best)) best = theirs, block = from(i);
        }
    }
    int lane;
    best = best_of_warp(best, lane);
    block = __shfl_sync(~0u, block, lane);
    return best;
}
/// Adds up each of x over a warp.
template <class T, int count>
__device__ __forceinline__ void warp_sums(T (&x)[count]) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
#pragma unroll
        for (int q = 0; q < count; ++q) x[q] += __shfl_xor_sync(~0u, x[q], step);
    }
}

/// The numbers in a message.
template <class T>
struct alignas(8) Numbers {
    static constexpr int count = 8 / sizeof(T);
    T at[count];
};
__device__ __forceinline__ unsigned long long bits_of(const Numbers<double>& x) { return bits_of(x.at[0]); }
__device__ __forceinline__ unsigned long long bits_of(const Numbers<float>& x) {
    return bits_of(x.at[1]) << 32 | bits_of(x.at[0]);
}
template <class T>
__device__ __forceinline__ Numbers<T> numbers_of(unsigned long long bits) {
    if constexpr (sizeof(T) == 8)
        return {{from_bits<T>(bits)}};
    else
        return {{from_bits<T>(bits), from_bits<T>(bits >> 32)}};
}
/// Returns 2^-e for a normal x = 2^e y, 1 <= y < 2.
__device__ __forceinline__ double inverse_power_of(double x) {
    return __longlong_as_double(0x7fe0000000000000 - (__double_as_longlong(x) & 0x7ff0000000000000));
}
__device__ __forceinline__ float inverse_power_of(float x) {
    return __uint_as_float(0x7f000000u - (__float_as_uint(x) & 0x7f800000u));
}

/// ‖a‖² := ‖a‖² − r². Returns false if that loses half of the digits, and the norm must be computed anew.
template <class T>
__device__ __forceinline__ bool downdate(PivotState<T>& s, T r) {
    constexpr T half_of_the_digits = sizeof(T) == 8 ? T(1.0536712127723509e-8) : T(2.44140625e-4);
    if (s.norm < std::numeric_limits<T>::min()) return true;
    const T ratio = fabs(r) * reciprocal(s.norm), left = max(T(0), (1 + ratio) * (1 - ratio));
    const T kept = s.norm * reciprocal(s.computed);
    if (!(left * kept * kept > half_of_the_digits)) return false;
    s.norm *= left * reciprocal_root(left);
    return true;
}

}  // namespace quoin::cuda
