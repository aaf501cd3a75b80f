#pragma once

#include "quoin/matrix.hpp"

namespace quoin::lapack {

/// Columns of a panel of k given reflectors of m rows: all of them where they are tall, so that V is read once for T and
/// once for Q.
inline Index panel_width(Index m, Index k) {
    if (m >= 16 * k && k <= 512) return std::max<Index>(1, k);
    return k < 192 ? 32 : 64;
}

/// Whether A is one panel, where the plan takes CholeskyQR2 for its shape.
inline bool factor_as_one_panel(Index m, Index n) { return m >= 16 * n; }

/// Whether Quoin is the faster one: below, the system's LAPACK serves.
inline bool factor_pays(Index m, Index n) { return std::min(m, n) >= 16 && 1.0 * m * n * std::min(m, n) >= 2e6; }
inline bool form_pays(Index m, Index n, Index k) { return k >= 16 && 1.0 * m * n * k >= 2e6; }
inline bool apply_pays(Index rows, Index cols, Index k) { return k >= 16 && cols >= 8 && 1.0 * rows * cols * k >= 2e6; }

}  // namespace quoin::lapack
