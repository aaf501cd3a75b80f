#pragma once

// Every call of CUDA and its libraries goes through QUOIN_CUDA_CHECK, with blas.hpp or solver.hpp for cuBLAS and
// cuSOLVER; every launch goes through launch.hpp.

#include <cuda_runtime_api.h>

#include <string>

#include "quoin/cuda.hpp"

namespace quoin::cuda {

[[noreturn]] inline void fail(const char* call, const std::string& why) {
    throw DeviceFailure(std::string(call) + ": " + why);
}
inline void check(cudaError_t status, const char* call) {
    if (status != cudaSuccess) fail(call, cudaGetErrorString(status));
}

/// n of an n×n matrix whose bytes fit into any GPU: grids and cuSOLVER count it in 32 bits.
inline int small_size(Index n) {
    if (n > (Index(1) << 20)) {
        throw InvalidArgument("a triangle of " + std::to_string(n) + " columns is larger than any GPU's memory");
    }
    return static_cast<int>(n);
}

}  // namespace quoin::cuda

#define QUOIN_CUDA_CHECK(call) ::quoin::cuda::check(call, #call)
