#include "cuda/runtime/launch.hpp"

#include <mutex>
#include <set>
#include <utility>

namespace quoin::cuda {

void lift_limits(const void* kernel) {
    static std::mutex mutex;
    static std::set<std::pair<int, const void*>> lifted;
    int device = 0, most = 0;
    QUOIN_CUDA_CHECK(cudaGetDevice(&device));
    const std::lock_guard lock(mutex);
    if (lifted.contains({device, kernel})) return;
    cudaFuncAttributes attributes = {};
    QUOIN_CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    check_kernel(cudaFuncGetAttributes(&attributes, kernel), kernel);
    QUOIN_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          most - static_cast<int>(attributes.sharedSizeBytes)));
    QUOIN_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    lifted.emplace(device, kernel);
}

Index resident_blocks(const void* kernel, const LaunchShape& shape) {
    lift_limits(kernel);
    int blocks = 0;
    const auto threads = static_cast<int>(shape.block.x * shape.block.y * shape.block.z);
    check_kernel(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shape.shared), kernel);
    return blocks;
}

void check_kernel(cudaError_t status, const void* kernel) {
    if (status == cudaSuccess) return;
    const char* name = nullptr;
    if (cudaFuncGetName(&name, kernel) != cudaSuccess || !name) name = "a kernel";
    check(status, name);
}

}  // namespace quoin::cuda
