#pragma once

#include <cusolverDn.h>

#include "cuda/runtime/error.hpp"

namespace quoin::cuda {

inline void check(cusolverStatus_t status, const char* call) {
    if (status != CUSOLVER_STATUS_SUCCESS) fail(call, "cuSOLVER status " + std::to_string(static_cast<int>(status)));
}

/// cuSOLVER's parameters, destroyed with it.
class SolverParameters {
public:
    SolverParameters() { QUOIN_CUDA_CHECK(cusolverDnCreateParams(&params_)); }
    SolverParameters(const SolverParameters&) = delete;
    ~SolverParameters() { cusolverDnDestroyParams(params_); }
    operator cusolverDnParams_t() const { return params_; }

private:
    cusolverDnParams_t params_ = nullptr;
};

}  // namespace quoin::cuda
