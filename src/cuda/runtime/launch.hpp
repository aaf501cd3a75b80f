#pragma once

// The one way to launch a kernel.

#include <cuda_runtime.h>

#include "cuda/runtime/error.hpp"
#include "quoin/matrix.hpp"

namespace quoin::cuda {

struct LaunchShape {
    dim3 grid, block;
    std::size_t shared = 0;  ///< bytes of dynamic memory a block
    unsigned cluster = 0;    ///< blocks of a cluster; 0: the kernel has no clusters
    bool at_once = false;    ///< whether all blocks must run at the same time
};

/// Allows blocks of `kernel` all shared memory of the current device, and clusters of any size. Does so once for each
/// kernel and device, because the limit belongs to the kernel, and another thread's launch must not find it lowered.
void lift_limits(const void* kernel);
/// Returns how many blocks of `kernel`, of a launch of this shape, share a multiprocessor.
Index resident_blocks(const void* kernel, const LaunchShape& shape);
/// Throws DeviceFailure with the kernel's name unless `status` is success.
void check_kernel(cudaError_t status, const void* kernel);

template <class... Parameters>
Index resident_blocks(void (*kernel)(Parameters...), const LaunchShape& shape) {
    return resident_blocks(reinterpret_cast<const void*>(kernel), shape);
}

/// Launches kernel(arguments…), from any thread. Throws DeviceFailure if that fails.
template <class... Parameters, class... Arguments>
void launch(cudaStream_t stream, void (*kernel)(Parameters...), const LaunchShape& shape,
            const Arguments&... arguments) {
    const auto entry = reinterpret_cast<const void*>(kernel);
    if (shape.shared > 0 || shape.cluster > 0) lift_limits(entry);
    cudaLaunchAttribute attributes[2] = {};
    unsigned count = 0;
    if (shape.cluster > 0) {
        attributes[count].id = cudaLaunchAttributeClusterDimension;
        attributes[count++].val.clusterDim = {shape.cluster, 1, 1};
    }
    if (shape.at_once) {
        attributes[count].id = cudaLaunchAttributeCooperative;
        attributes[count++].val.cooperative = 1;
    }
    cudaLaunchConfig_t config = {};
    config.gridDim = shape.grid;
    config.blockDim = shape.block;
    config.dynamicSmemBytes = shape.shared;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = count;
    cudaLaunchKernelEx(&config, kernel, arguments...);
    check_kernel(cudaGetLastError(), entry);
}

}  // namespace quoin::cuda
