#pragma once

// Messages between the blocks of a grid: 16 bytes that are stored and loaded as one, with a tag that says what they
// belong to. Neither fences nor barriers are needed for what is in the message.

#include "quoin/matrix.hpp"

namespace quoin::cuda {

struct alignas(16) Message {
    static constexpr unsigned tags = 256;

    unsigned long long payload;
    unsigned number, label;  ///< label % tags is the tag
};

/// A number as a payload.
__device__ __forceinline__ unsigned long long bits_of(double x) { return __double_as_longlong(x); }
__device__ __forceinline__ unsigned long long bits_of(float x) { return __float_as_uint(x); }
template <class T>
__device__ __forceinline__ T from_bits(unsigned long long payload) {
    if constexpr (sizeof(T) == 8) {
        return __longlong_as_double(static_cast<long long>(payload));
    } else {
        return __uint_as_float(static_cast<unsigned>(payload));
    }
}

__device__ __forceinline__ void store_message(Message* p, const Message& m) {
    asm volatile("{\n.reg .b128 q;\nmov.b128 q, {%1, %2};\nst.relaxed.gpu.global.b128 [%0], q;\n}" ::"l"(p),
                 "l"(m.payload), "l"(static_cast<unsigned long long>(m.label) << 32 | m.number)
                 : "memory");
}

/// Returns what stands at p.
__device__ __forceinline__ Message look_at_message(const Message* p) {
    unsigned long long low, high;
    asm volatile("{\n.reg .b128 q;\nld.relaxed.gpu.global.b128 q, [%2];\nmov.b128 {%0, %1}, q;\n}"
                 : "=l"(low), "=l"(high)
                 : "l"(p)
                 : "memory");
    return {low, static_cast<unsigned>(high), static_cast<unsigned>(high >> 32)};
}
/// Returns *p as soon as it has the tag.
__device__ __forceinline__ Message load_message(const Message* p, unsigned tag) {
    for (;;) {
        const Message m = look_at_message(p);
        if (m.label % Message::tags == tag) return m;
    }
}
/// Fills `messages` with those at first, first + apart, … as soon as all of them have the label.
template <int count>
__device__ __forceinline__ void load_messages(Message (&messages)[count], const Message* first, Index apart,
                                              unsigned label) {
    for (bool complete = false; !complete;) {
        complete = true;
#pragma unroll
        for (int i = 0; i < count; ++i) messages[i] = look_at_message(first + i * apart);
#pragma unroll
        for (int i = 0; i < count; ++i) complete = complete && messages[i].label == label;
    }
}

}  // namespace quoin::cuda
