// Surveys the machine's GPUs by the driver.

#include "cuda/runtime/error.hpp"

namespace quoin {
namespace {

/// Stands for every kernel of the library: compiled for the same architectures.
__global__ void probe_kernel() {}

std::string problem_of(cudaError_t status) { return status == cudaSuccess ? "" : cudaGetErrorString(status); }

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
    gpu.problem = problem_of(status);
    cudaGetLastError();
    return gpu;
}

}  // namespace

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
