#pragma once

#include "quoin/options.hpp"

namespace quoin {

/// A count, for formulas of time and error.
inline double number(Index n) { return static_cast<double>(n); }

/// The rows that are one for every device: first choices by counting, not measured.
struct CommonTuning {
    /// Width of the blocks of R₂R₁ where Gram-Schmidt orthogonalises all columns twice: wide enough for any device's products, and
    /// a few of them save the zeros' half.
    static constexpr Index r_product_width = 2048;
    /// Rows of C that C op(Q) transposes at a time.
    static constexpr Index transposed_rows = 192;
    /// Columns of a panel of a block-cyclic matrix on one process column, with 4nb² rows or more: random columns are nearly orthogonal
    /// then, and 2mn² flops are all that a matrix costs, whatever the width of its panels. pdgeqrf | pdorgqr of 400 000 × 192 f64, two
    /// ranks on two cores of an AMD EPYC 9004 that compilers share, s, for panels of 64, 96 and 192 columns: 1.08|1.03, 1.09|1.03, 0.77|0.83.
    static constexpr Index tall_cyclic_width = 192;
    /// Share of a cap on memory that products and panels out of core may take beside what they are given.
    static constexpr double workspace_share(Arithmetic arithmetic, bool slabs) {
        const bool whole = arithmetic == Arithmetic::Native || arithmetic == Arithmetic::TF32;
        return whole ? 0.2 : arithmetic != Arithmetic::Corrected ? 0.5 : slabs ? 0.75 : 0.67;
    }
    /// From file to file. Columns from which V and T on the disk cost less than 2mn² flops, by their counts for 4 cores at
    /// 150 GFLOP/s and a disk of 1.5 GB/s each way.
    static constexpr Index stored_from_cols = 768;
    static constexpr Index narrowest_slab_panel = 8;
    static constexpr double largest_block_bytes = 128 << 20, largest_chunk_bytes = 1 << 30;
};

/// Block sizes and crossovers for one device, in src/DEVICE/tuning.hpp. Every row of a table cites its measurement.
template <class D>
struct Tuning;

}  // namespace quoin
