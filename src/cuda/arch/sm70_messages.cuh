#pragma once

// Messages between the blocks of a grid: 16 bytes that are stored and loaded as one, with a tag that says what they
// belong to. Neither fences nor barriers are needed for what is in the message.

namespace quoin::cuda {

struct alignas(16) Message {
    static constexpr unsigned tags = 256;

    unsigned long long payload;
    unsigned number, label;  ///< label % tags is the tag
};

__device__ __forceinline__ void store_message(Message* p, const Message& m) {
    asm volatile("{\n.reg .b128 q;\nmov.b128 q, {%1, %2};\nst.relaxed.gpu.global.b128 [%0], q;\n}" ::"l"(p),
                 "l"(m.payload), "l"(static_cast<unsigned long long>(m.label) << 32 | m.number)
                 : "memory");
}

/// Returns *p as soon as it has the tag.
__device__ __forceinline__ Message load_message(const Message* p, unsigned tag) {
    unsigned long long low, high;
    do {
        asm volatile("{\n.reg .b128 q;\nld.relaxed.gpu.global.b128 q, [%2];\nmov.b128 {%0, %1}, q;\n}"
                     : "=l"(low), "=l"(high)
                     : "l"(p)
                     : "memory");
    } while ((high >> 32) % Message::tags != tag);
    return {low, static_cast<unsigned>(high), static_cast<unsigned>(high >> 32)};
}

}  // namespace quoin::cuda
