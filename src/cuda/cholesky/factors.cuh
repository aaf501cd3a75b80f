#pragma once

#include "quoin/matrix.hpp"

namespace quoin::cuda {

constexpr int most_factors = 4;

/// Upper triangular Y₁, Y₂, … in device memory, as a kernel's argument.
struct Factors {
    const double* data[most_factors];
    Index ld[most_factors];
    int count = 0;
};

}  // namespace quoin::cuda
