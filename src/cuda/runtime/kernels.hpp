#pragma once

#include "quoin/matrix.hpp"

namespace quoin::cuda {

/// Says what the device has, and what the kernels that a context launches may use of it. The default is Hopper's.
struct Kernels {
    /// Whether there are more than cuBLAS, cuSOLVER and kernels of any GPU since sm_70 (plain/).
    bool tuned = true;
    /// Whether blocks reach each other's shared memory. If not, clusters exchange messages in global memory.
    bool clusters = true;
    bool warpgroups = true;          ///< whether four warps make products at once; if not, cuBLAS does
    Index shared_bytes = 227 << 10;  ///< shared memory of a block
    bool fast_f64 = true;            ///< whether f64 has at least a quarter of f32's rate; the RTX and L series: 1/64
    int multiprocessors = 132;
    bool operator==(const Kernels&) const = default;
};
inline constexpr Kernels plain_kernels = {false};
/// GPUs since sm_80: A100, and with less shared memory all of the RTX and L series (sm_86, sm_89, sm_120).
inline constexpr Kernels ampere_kernels = {true, false, false, 163 << 10, true, 108},
                         rtx_kernels = {true, false, false, 99 << 10, false};
/// Returns what the current device has and this library was compiled for; Hopper's without a GPU. QUOIN_KERNELS in the
/// environment takes some of it away: `plain` leaves the plain kernels, and `rtx`, of kernels that were compiled for
/// sm_80, what an RTX has.
/// Throws DeviceFailure if the library has no kernels for the device.
Kernels kernels_here();

}  // namespace quoin::cuda
