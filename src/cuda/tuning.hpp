#pragma once

#include <algorithm>

#include "algorithms/tuning.hpp"
#include "quoin/cuda.hpp"

namespace quoin {

/// For Hopper (H100, 132 multiprocessors). Rows without a measurement beside them are first choices by counting.
template <>
struct Tuning<Cuda> {
    /// Columns of a Householder panel: the update is a GEMM of this depth. H100, ?geqrf's format, ms:
    ///                    f32: 64     128     192    f64: 64     128     192
    ///   8192 × 128         0.374   0.359                0.554   0.514
    ///   8192 × 256         0.759   0.765                1.163   1.172
    ///   8192 × 512         1.60    1.67                 2.51    2.72
    ///   8192 × 1024        3.32    3.41    3.28         5.02    5.45    4.23
    ///   8192 × 4096                16.5    15.5                 22.3    18.7
    ///   8192²                      39.3    37.0                 45.8    40.7
    ///   10 000²                    65.6    58.1                 72.5    60.1
    /// Panels of 192 columns are reconstructed (reconstruct_rows), those of 64 and 128 factored column by column.
    static Index panel_width(Index k) { return k <= 128 ? 128 : k < 1024 ? 64 : 192; }
    /// How a full T is made. The recurrence's GEMMs run beside the factorization of the next panel, which leaves most of the
    /// device idle. Tall ones are rather joined: mk² flops less.
    static FullTRoute full_t(Index m, Index k) { return m < 4 * k ? FullTRoute::Recurrence : FullTRoute::Joined; }
    /// Width of its blocks in products with it.
    static constexpr Index wy_block = 1024;
    /// Columns of a T inside a leaf: one T a leaf.
    static Index inner_block(Index n) { return n; }
    static constexpr Index tree_width = 32;
    static constexpr Index most_tree_cols = 32;
    /// Rows of a leaf. H100, Q and R of 1 000 000×192, f32 / f64 ms (bench/results/h100_tree_tuning.csv): 128 rows 9.58 /
    /// 15.2, 256 rows 11.1 / 19.0. Tiles of 256 rows leave shared memory for fewer warps of the update.
    static Index leaf_rows(Index, Index) { return 128; }
    /// At most 792 domains, six for each multiprocessor. Leaves a domain: 8 9.00 / 14.9, 10 8.96 / 14.6, 15 8.98 / 14.2;
    /// factor_leaf on f32 prefers more domains (1.75 ms with 8, 2.20 with 15), the nodes and f64 fewer.
    static Index domain_leaves(Index leaves) { return (leaves + 791) / 792; }
    /// Three levels over up to 1000 domains; a level costs the latency of 32 reflectors, whatever its fan-in.
    static constexpr Index fan_in = 10;
    /// Its passes run at the rate of GEMM, a tree's leaves do not.
    static constexpr bool r_only_by_tree = false;
    /// Whether X = A R⁻¹ multiplies by the inverses of diagonal blocks, and not by substitution alone.
    static constexpr bool solves_by_block_inverses = true;
    static constexpr Index tall_aspect = 4;
    static constexpr Index tall_cols = 1024;
    /// Rows from which on a panel is reconstructed. The steps between the Gram matrices cost the host some 0.3 ms, which
    /// wide panels repay; narrow ones where their kernel's registers do not hold them.
    static Index reconstruct_rows(Index width) { return width > 128 ? 2048 : 16384; }
    /// Columns of a tall matrix that are reconstructed as one panel.
    static Index reconstruct_cols(Index m) { return m >= 65536 ? 192 : 0; }
    /// R's SVD on the host up to so many columns, on the device beyond. H100 with 16 cores of its host, f32 / f64 ms, copies
    /// included:
    ///   columns                    32            64           100           192           512          1000
    ///   host gesdd          0.20 / 0.23   0.68 / 0.53   1.05 / 1.53   4.91 / 7.28   49.4 / 97.2    261 / 592
    ///     values alone      0.09 / 0.10   0.32 / 0.24   0.49 / 0.67   2.12 / 3.19   24.4 / 45.9    161 / 348
    ///   cuSOLVER gesvdp     0.67 / 0.80   2.08 / 2.12   3.18 / 3.51   3.68 / 3.87   11.5 / 11.8   27.7 / 31.3
    ///     gesvdj            0.47 / 0.64   0.88 / 1.33   2.04 / 3.03   3.93 / 6.26   16.4 / 25.9   48.5 / 79.6
    ///     gesvd             1.48 / 1.81   3.20 / 3.66   7.43 / 9.02   18.3 / 19.9   65.4 / 75.4    159 / 168
    /// gesvdp in f64 with its certificate takes 3.6 ms for 160 columns, 4.3 for 192 and 5.7 for 256; gesdd for 160 columns
    /// 2.4 / 3.6, and its values alone for 192 in another run 1.7 / 2.6.
    static constexpr Index host_svd_cols(Index element_bytes, bool vectors) {
        return !vectors ? 256 : element_bytes == 4 ? 184 : 152;
    }
    /// The same where gesvdp is not certified and the choice is between gesdd on the host and gesvd.
    static constexpr Index host_svd_cols_uncertified = 512;
};

}  // namespace quoin
