#pragma once

// Numbers sent into the shared memory of another block of the cluster, and a wait until all that were announced have
// come. That is one way through the cluster's network. Plain stores and a barrier of the cluster would be two ways and
// a fence.
//
// A mailbox is a barrier in shared memory that counts the bytes of `send`. `receive` passes when their number is the
// one that `expect` gave, before or after them. Then the next round begins. No block may send into round i + 1 of a
// mailbox before the receiver has read round i. Two mailboxes used alternately suffice if no block sends round i + 1
// before it has received round i from all.
//
// The wait acquires at block scope. Cluster scope would also invalidate L1 (CCTL.IVALL), which is unnecessary, because
// only shared memory is exchanged.

#include <cstdint>

#include "cuda/arch/levels.cuh"
#include "cuda/arch/sm70_vector.cuh"

namespace quoin::cuda {

__device__ inline std::uint32_t shared_address(const void* p) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

/// Where block `peer` of the cluster has what p points to in this block.
__device__ inline std::uint32_t address_in(int peer, const void* p) {
    std::uint32_t there = 0;
    QUOIN_SM90(asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(p)), "r"(peer)));
    return there;
}

/// Waits for all blocks of the cluster. Every block's writes come before what any block does next.
__device__ __forceinline__ void wait_for_cluster() {
    QUOIN_SM90(asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                                : "memory"));
}

class Mailbox {
public:
    /// Opens the mailbox for rounds of `arrivals` calls of `expect` or `arrive`. By one thread, before a barrier of the
    /// cluster.
    __device__ void open(std::uint32_t arrivals = 1) {
        QUOIN_SM90(asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&state_)), "r"(arrivals)
                                : "memory"));
        QUOIN_SM90(asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"));
    }
    /// Announces the `bytes` of a round. By one thread.
    __device__ void expect(std::uint32_t bytes) {
        QUOIN_SM90(asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&state_)),
                                "r"(bytes)
                                : "memory"));
    }
    __device__ void arrive() {
        QUOIN_SM90(asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&state_)) : "memory"));
    }
    /// place := `bytes` at `from` in global memory, which count here. Both addresses are multiples of 16 bytes. By one
    /// thread.
    __device__ void copy(void* place, const void* from, std::uint32_t bytes) {
        QUOIN_SM90(asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                shared_address(place)),
            "l"(from), "r"(bytes), "r"(shared_address(&state_))
            : "memory"));
    }
    /// In block `peer` of the cluster: the 16 bytes at place := value, where place and mailbox are this block's names
    /// for them.
    template <class T>
    __device__ void send(int peer, T* place, const Vector<T>& value) {
        const std::uint32_t remote_place = address_in(peer, place), remote_state = address_in(peer, &state_);
        if constexpr (sizeof(T) == 8) {
            QUOIN_SM90(asm volatile(
                "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];" ::"r"(
                    remote_place),
                "l"(__double_as_longlong(value.at[0])), "l"(__double_as_longlong(value.at[1])), "r"(remote_state)
                : "memory"));
        } else {
            QUOIN_SM90(asm volatile(
                "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                    remote_place),
                "r"(__float_as_uint(value.at[0])), "r"(__float_as_uint(value.at[1])), "r"(__float_as_uint(value.at[2])),
                "r"(__float_as_uint(value.at[3])), "r"(remote_state)
                : "memory"));
        }
    }
    /// Sends one number.
    template <class T>
    __device__ void send(int peer, T* place, T value) {
        const std::uint32_t remote_place = address_in(peer, place), remote_state = address_in(peer, &state_);
        if constexpr (sizeof(T) == 8) {
            QUOIN_SM90(asm volatile(
                "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(remote_place),
                "l"(__double_as_longlong(value)), "r"(remote_state)
                : "memory"));
        } else {
            QUOIN_SM90(asm volatile(
                "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(remote_place),
                "r"(__float_as_uint(value)), "r"(remote_state)
                : "memory"));
        }
    }
    /// Waits for round `round` (0, 1, …). By every thread.
    __device__ void receive(int round) {
        std::uint32_t done = 0;
        while (!done) {
            QUOIN_SM90(
                asm volatile("{\n.reg .pred p;\n"
                             "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                             "selp.u32 %0, 1, 0, p;\n}"
                             : "=r"(done)
                             : "r"(shared_address(&state_)), "r"(round % 2)
                             : "memory"));
        }
    }

private:
    std::uint64_t state_;
};

}  // namespace quoin::cuda
