#pragma once

// The rows that the tuning tables of all devices share, and the model of time.

#include <limits>

#include "primitives/arithmetic.hpp"
#include "quoin/matrix.hpp"
#include "quoin/scalar.hpp"

namespace quoin {

/// A count, for formulas of time and error.
constexpr double number(Index n) { return static_cast<double>(n); }

/// Time of a step, ns of one core: of a flop, of an entry that it passes whatever the flops, and of a column.
struct StepTime {
    double flop = 0, entry = 0, column = 0;
    double operator()(double flops, double entries, double columns = 0) const {
        return flop * flops + entry * entries + column * columns;
    }
};

/// The steps that the methods consist of.
struct StepTimes {
    StepTime gram;                     ///< AᵀA, mn² flops
    StepTime solve;                    ///< A R⁻¹, mn²
    StepTime square;                   ///< chol(G), its condition and R₂R₁, n³, and n² entries
    StepTime signed_lu;                ///< LU of Q's top, and T, n³, and n² entries
    StepTime leaf;                     ///< the leaves of a tree, 2mn²
    StepTime node;                     ///< [R; R] of a tree, (2/3)n³, and n² entries
    StepTime form;                     ///< Q of leaves and panels, 2mn²
    StepTime tree_update;              ///< C := QᵀC by a tree, 4mnp, and mp entries
    StepTime panel;                    ///< a panel column by column, 3mn²
    StepTime update;                   ///< C := QᵀC by a panel, 4mnp, and mp entries
    double scan = 0;                   ///< of an entry whose size is looked at
    double call = 0, certificate = 0;  ///< of the whole, and more with CholeskyQR
    double threaded_flops =
        /// from this number of flops on, two cores share the domains of a tree; the second idles if there is one domain
        8e6;
};

/// The rows that are one for every device: first choices by counting, not measured.
struct CommonTuning {
    /// Width of the blocks of R₂R₁ where Gram-Schmidt orthogonalises all columns twice: wide enough for any device's
    /// products, and a few of them save the zeros' half.
    static constexpr Index r_product_width = 2048;
    /// Rows of C that C op(Q) transposes at a time.
    static constexpr Index transposed_rows = 192;
    /// Chunks that the host cuts the rows of a tall matrix into at most, with a partial sum for each: more of them
    /// serve more cores, and take more memory. Plans count as many sums on every device.
    static constexpr Index row_chunks = 64;
    /// Whether n columns of m independent random numbers, whose κ_F² is n² + n³/(m − n) but for a share of about 2/n of
    /// the second term, are proved by it to have ‖(R D)⁻¹‖₂² at most so large (docs/algorithms.md, section 6).
    static constexpr bool norm_proves_one_pass(Index m, Index n, double max_inverse_square = 8) {
        return number(n) * number(n + 8) <= (max_inverse_square - 2) * number(m - n);
    }
    /// Rows of a panel that one launch holds in registers, on devices that have such launches, and columns of these
    /// panels where others come before them.
    static constexpr Index max_rows_in_strips(ScalarKind) { return 0; }
    static constexpr Index last_panel_width = 0;
    /// Whether the levels of trees are batches (small_batch.hpp).
    static constexpr bool has_batched_trees = false;
    /// Rows n, n + 1, … of an m×n matrix are read and written from this row on: the last row up to n at a boundary of
    /// the memory, if boundaries matter.
    static constexpr Index aligned_start(Index, Index n) { return n; }
    /// Columns of a matrix that is sketched.
    static constexpr Index max_sketch_cols = std::numeric_limits<Index>::max();
    /// Products of f32 by numbers of 16 bits, on devices that have them. From these rows and columns on they beat f32's
    /// own products, and columns are kept rounded.
    static constexpr Index min_halved = 256;
    /// Rows of a run, which the tensor cores add up by themselves: longer runs are faster, and have more cut off
    /// (cuda/products_by_halves.hpp). Corrected products; operands rounded to 16 bits, 2¹³ times as coarse.
    static constexpr Index corrected_run_rows = 384, rounded_run = 16384;
    /// Bytes of the halves of one operand that are made at a time; and of those that both products of a projection use,
    /// in each of two layouts. More columns at a time are faster, and take more workspace.
    static constexpr Index halves_bytes = Index(1) << 30, shared_halves_bytes = Index(4) << 30;
    /// Columns of a panel of a block-cyclic matrix on one process column, with 4nb² rows or more: random columns are
    /// nearly orthogonal then, and 2mn² flops are all that a matrix costs, whatever the width of its panels. pdgeqrf |
    /// pdorgqr of 400 000 × 192 f64, two ranks on two cores of an AMD EPYC 9004 that compilers share, s, for panels of
    /// 64, 96 and 192 columns: 1.08|1.03, 1.09|1.03, 0.77|0.83.
    static constexpr Index tall_cyclic_width = 192;
    /// Share of a cap on memory that products and panels out of core may take in addition to their operands.
    static constexpr double workspace_share(Arithmetic arithmetic, bool slabs) {
        return !takes_halves(arithmetic) ? 0.2 : arithmetic != Arithmetic::Corrected ? 0.5 : slabs ? 0.75 : 0.67;
    }
    /// Share of the fast memory that a leaf of Gram-Schmidt and its R may take out of core, the rest being for what
    /// passes it; less where leaves are orthogonalised `again`.
    static constexpr double leaf_share(bool again) { return again ? 0.7 : 0.85; }
    /// Parts of a tile out of core. With more parts, more copies overlap with the products, but they are smaller.
    static constexpr Index passing_parts = 8;
    /// From file to file. From this number of columns on, V and T on the disk cost less than 2mn² flops, by counts for
    /// 4 cores at 150 GFLOP/s and a disk of 1.5 GB/s each way.
    static constexpr Index stored_from_cols = 768;
    static constexpr Index narrowest_slab_panel = 8;
    static constexpr double largest_block_bytes = 128 << 20, largest_chunk_bytes = 1 << 30;
    /// Triangles n×n in memory at a time: R, the one before it and those that wait for their way to the disk; where V
    /// is stored none wait, and there are three.
    static constexpr Index most_squares = 6;
    /// Bytes of R's columns that are cut from V's columns and written at a time.
    static constexpr Index written_bytes = Index(2) << 20;
};

/// Block sizes and crossovers for one device, in src/DEVICE/tuning.hpp. Every row of a table cites its measurement.
/// tuning_of(ctx) and Tuning<D>::here() return values: they know the properties of a context's or the current device.
template <class D>
struct Tuning;

}  // namespace quoin
