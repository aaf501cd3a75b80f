#pragma once

#include "cuda/kernel_choice.hpp"

namespace quoin::cuda {

/// Upper triangular Y₁, Y₂, … in device memory, as a kernel's argument.
struct Factors {
    const double* data[max_factors];
    Index ld[max_factors];
    int count = 0;
};

}  // namespace quoin::cuda
