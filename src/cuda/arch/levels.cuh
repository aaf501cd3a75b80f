#pragma once

// Says what the GPU has that code is compiled for. Lines of PTX that it lacks become a trap. The host launches no
// kernel that reaches one: runtime/kernels.hpp has the same levels.

namespace quoin::cuda {

/// Whether blocks of a cluster reach each other's shared memory: Hopper alone. On other GPUs, also on those that could,
/// clusters exchange messages in global memory (strips/layout.cuh, small/cluster_per_matrix.cuh).
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 900 || __CUDA_ARCH__ >= 1000)
#define QUOIN_SM90(...) __trap()
inline constexpr bool compiled_for_clusters = false;
#else
#define QUOIN_SM90(...) __VA_ARGS__
inline constexpr bool compiled_for_clusters = true;
#endif

/// Whether four warps make a product at once: sm_90a alone.
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define QUOIN_SM90A(...) __trap()
#else
#define QUOIN_SM90A(...) __VA_ARGS__
#endif

}  // namespace quoin::cuda
