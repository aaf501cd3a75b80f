#pragma once

// Sizes of out-of-core Householder.

#include <cmath>

#include "quoin/out_of_core.hpp"

namespace quoin {

/// Columns in fast memory at a time when Householder goes by slabs. The panels, by their T, determine the result down
/// to rounding. The slabs do not.
struct Slabs {
    Index slab = 0;     ///< columns of a slab, a multiple of `panel`
    Index panel = 0;    ///< columns of a panel
    Index v_block = 0;  ///< columns of V that come by at a time, a multiple of `panel`; two such blocks are in memory
    Arithmetic arithmetic = Arithmetic::Native;
};
Slabs slabs_of(const OutOfCorePlan& plan);

/// Returns the number of elements of the first `columns` columns of V, m rows, that come by in blocks of `v_block`: Σ_b
/// (m − b) (columns of the block at b).
inline double passing_elements(double m, double columns, double v_block) {
    const double whole = std::floor(columns / v_block), rest = columns - whole * v_block;
    return v_block * whole * (m - v_block * (whole - 1) / 2) + rest * (m - whole * v_block);
}

}  // namespace quoin
