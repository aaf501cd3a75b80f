#pragma once

// One way to launch a kernel that has dynamic shared memory or clusters, from any thread.

#include <cuda_runtime.h>

#include <type_traits>

namespace quoin::cuda {

struct LaunchShape {
    dim3 grid, block;
    std::size_t shared = 0;  ///< bytes of dynamic memory a block
    unsigned cluster = 0;    ///< blocks of a cluster; 0: the kernel has no clusters
};

/// Allows blocks of `kernel` all shared memory of the current device, and clusters of any size. Does so once for each
/// kernel and device, because the limit belongs to the kernel, and another thread's launch must not find it lowered.
cudaError_t lift_limits(const void* kernel);

/// kernel<<<shape, stream>>>(arguments…).
template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), const LaunchShape& shape, cudaStream_t stream,
                   const Arguments&... arguments) {
    if (const cudaError_t error = lift_limits(reinterpret_cast<const void*>(kernel)); error != cudaSuccess) {
        return error;
    }
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = shape.cluster;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = shape.grid;
    config.blockDim = shape.block;
    config.dynamicSmemBytes = shape.shared;
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = shape.cluster > 0 ? 1 : 0;
    cudaLaunchKernelEx(&config, kernel, arguments...);
    return cudaGetLastError();
}

/// work(x) for an x from `least` to `most` as a constant; cudaErrorInvalidValue for any other.
template <int least, int most, class Work>
cudaError_t with_constant(int x, Work work) {
    if constexpr (least <= most) {
        return x == least ? work(std::integral_constant<int, least>()) : with_constant<least + 1, most>(x, work);
    } else {
        return cudaErrorInvalidValue;
    }
}

}  // namespace quoin::cuda
