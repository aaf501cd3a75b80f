// Surveys the machine's GPUs by the driver, and what the kernels may use on one.

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>

#include "cuda/runtime/error.hpp"
#include "cuda/runtime/state.hpp"

namespace quoin {
namespace {

/// Stands for every kernel of the library: compiled for the same architectures.
__global__ void probe_kernel() {}

std::string problem_of(cudaError_t status) { return status == cudaSuccess ? "" : cudaGetErrorString(status); }
std::string no_kernels_for(const Gpu& gpu) {
    return "this libquoin has no kernels for GPUs of compute capability " + std::to_string(gpu.capability_major) + "." +
           std::to_string(gpu.capability_minor) +
           ": CMAKE_CUDA_ARCHITECTURES says which it is compiled for, 8.0 at the earliest";
}

/// Describes the current device.
Gpu describe(int device) {
    Gpu gpu;
    cudaDeviceProp properties;
    cudaFuncAttributes attributes;
    cudaError_t status = cudaGetDeviceProperties(&properties, device);
    if (status == cudaSuccess) {
        gpu.name = properties.name;
        gpu.capability_major = properties.major;
        gpu.capability_minor = properties.minor;
        status = cudaMemGetInfo(&gpu.memory.free, &gpu.memory.total);
    }
    if (status == cudaSuccess) status = cudaFuncGetAttributes(&attributes, probe_kernel);
    gpu.problem = status == cudaErrorNoKernelImageForDevice ? no_kernels_for(gpu) : problem_of(status);
    cudaGetLastError();
    return gpu;
}

}  // namespace

cuda::Kernels cuda::kernels_here() {
    static std::mutex mutex;
    static std::map<int, Kernels> known;
    int device = 0, bytes = 0, f32_over_f64 = 0;
    if (cudaGetDevice(&device) != cudaSuccess) {
        cudaGetLastError();
        return {};
    }
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(device); found != known.end()) return found->second;
    cudaFuncAttributes attributes;
    const cudaError_t status = cudaFuncGetAttributes(&attributes, probe_kernel);
    if (status == cudaErrorNoKernelImageForDevice) throw DeviceFailure(describe(device).problem);
    check(status, "cudaFuncGetAttributes");
    QUOIN_CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    QUOIN_CUDA_CHECK(cudaDeviceGetAttribute(&f32_over_f64, cudaDevAttrSingleToDoublePrecisionPerfRatio, device));
    const int compiled_for = attributes.ptxVersion;  // arch/levels.cuh has the same conditions
    Kernels kernels;
    QUOIN_CUDA_CHECK(cudaDeviceGetAttribute(&kernels.multiprocessors, cudaDevAttrMultiProcessorCount, device));
    kernels.clusters = kernels.warpgroups = compiled_for == 90;
    kernels.shared_bytes = bytes;
    kernels.fast_f64 = f32_over_f64 <= 4;
    const char* const given = std::getenv("QUOIN_KERNELS");
    const std::string_view wish = given ? given : "";
    if (wish == "plain") kernels.tuned = false;
    if (wish == "rtx") {
        if (kernels.clusters) throw DeviceFailure("QUOIN_KERNELS=rtx needs kernels that were compiled for sm_80");
        kernels.shared_bytes = std::min(kernels.shared_bytes, rtx_kernels.shared_bytes);
        kernels.fast_f64 = false;
    }
    return known[device] = kernels;
}

GpuSurvey survey_gpus() {
    GpuSurvey survey;
    int version = 0, count = 0, current = 0;
    if (cudaDriverGetVersion(&version) == cudaSuccess && version > 0) {
        survey.driver = std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
    }
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess && count > 0) status = cudaGetDevice(&current);
    const bool no_driver = status == cudaErrorInsufficientDriver && survey.driver.empty();
    survey.problem = no_driver ? "there is no NVIDIA driver" : problem_of(status);
    for (int device = 0; status == cudaSuccess && device < count; ++device) {
        if (cudaSetDevice(device) == cudaSuccess) {
            survey.gpus.push_back(describe(device));
        } else {
            survey.gpus.push_back({"", 0, 0, {}, problem_of(cudaGetLastError())});
        }
    }
    if (!survey.gpus.empty()) cudaSetDevice(current);
    cudaGetLastError();
    return survey;
}

}  // namespace quoin
