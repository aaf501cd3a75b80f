#pragma once

#include <algorithm>

#include "quoin/matrix.hpp"

namespace quoin::cli {

// The standard counts (Golub and Van Loan), with p = max(m, n) and k = min(m, n). Rates are given in these for every
// method, so that they compare, whatever a method really performs.

/// Householder QR, R and reflectors: 2pk² − 2k³/3.
inline double factor_flops(Index m, Index n) {
    const double p = static_cast<double>(std::max(m, n)), k = static_cast<double>(std::min(m, n));
    return 2 * p * k * k - 2 * k * k * k / 3;
}

/// Householder QR and the m×k thin Q, which takes 2mk² − 2k³/3 more.
inline double thin_qr_flops(Index m, Index n) { return factor_flops(m, n) + factor_flops(m, std::min(m, n)); }

/// Least squares with `rhs` right-hand sides: QR, Qᵀb and a triangular solve.
inline double least_squares_flops(Index m, Index n, Index rhs) {
    const double p = static_cast<double>(std::max(m, n)), k = static_cast<double>(std::min(m, n));
    return factor_flops(m, n) + static_cast<double>(rhs) * (4 * p * k - k * k);
}

/// Thin SVD through R: 6pk² + 20k³ with vectors, 2pk² + 2k³ without.
inline double svd_flops(Index m, Index n, bool vectors) {
    const double p = static_cast<double>(std::max(m, n)), k = static_cast<double>(std::min(m, n));
    return vectors ? 6 * p * k * k + 20 * k * k * k : 2 * p * k * k + 2 * k * k * k;
}

}  // namespace quoin::cli
