#pragma once

// Sizes and rates for all studies of Gram-Schmidt.

#include "studies.hpp"

namespace quoin::cli {

/// Orders of the square matrices of Brandes, Arnold, Soddemann and Reith (2012).
inline constexpr Index gram_schmidt_orders[] = {1024, 2048, 4096, 8192};

/// 2mn²/T: the paper gives the rate of every code by the flops of Gram-Schmidt.
inline double gram_schmidt_gflops(Shape shape, double seconds) {
    return 2e-9 * static_cast<double>(shape.rows) * static_cast<double>(shape.cols) * static_cast<double>(shape.cols) /
           seconds;
}

}  // namespace quoin::cli
