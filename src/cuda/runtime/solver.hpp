#pragma once

#include <cusolverDn.h>

#include "cuda/runtime/error.hpp"

namespace quoin::cuda {

inline void check(cusolverStatus_t status, const char* call) {
    if (status != CUSOLVER_STATUS_SUCCESS) fail(call, "cuSOLVER status " + std::to_string(static_cast<int>(status)));
}

}  // namespace quoin::cuda
