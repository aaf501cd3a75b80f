#include "cuda/runtime/launch.hpp"

#include <mutex>
#include <set>
#include <utility>

namespace quoin::cuda {

cudaError_t lift_limits(const void* kernel) {
    static std::mutex mutex;
    static std::set<std::pair<int, const void*>> lifted;
    int device = 0, most = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess) return error;
    const std::lock_guard lock(mutex);
    if (lifted.contains({device, kernel})) return cudaSuccess;
    cudaFuncAttributes attributes = {};
    error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, kernel);
    if (error == cudaSuccess) {
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     most - static_cast<int>(attributes.sharedSizeBytes));
    }
    if (error == cudaSuccess) error = cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error == cudaSuccess) lifted.emplace(device, kernel);
    return error;
}

}  // namespace quoin::cuda
