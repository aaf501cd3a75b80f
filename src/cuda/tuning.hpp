#pragma once

#include <algorithm>

#include "cuda/kernel_choice.hpp"
#include "primitives/tuning.hpp"
#include "quoin/cuda.hpp"
#include "quoin/options.hpp"

namespace quoin {

struct TuningTable;

/// Rows that cite no measurement are first choices by counting, for Hopper (H100, 132 multiprocessors).
template <>
struct Tuning<Cuda> : CommonTuning {
    cuda::Kernels kernels;  ///< what the device has

    constexpr explicit Tuning(const cuda::Kernels& kernels_of_device = {}) : kernels(kernels_of_device) {}
    static Tuning here() { return Tuning(cuda::kernels_here()); }

    /// Columns of a Householder panel: the update is a GEMM of this depth. H100, ?geqrf's format, ms.
    /// Panels that strips factor:
    ///                    f32: 256     512     1024   f64: 128     256     384     512
    ///   3000²                 4.61    4.23    4.08        6.13    4.89            4.21
    ///   4096²                 6.87    5.99    5.45        9.09    7.15            6.34
    ///   6000²                 12.8    10.5    9.81                14.5            13.1
    ///   8192²                 21.7    17.7    16.5                26.9    26.0    25.1
    ///   8192 × 4096           10.1    8.39    8.47
    ///   16 384²                       82.6    77.6
    /// ‖A − QR‖/‖A‖ of 8192² in f32: 0.9e-6, 1.0e-6, 1.4e-6: long sums lose more on the tensor cores.
    /// Panels that are reconstructed: 10 000² 54.6 (128), 54.9 (192) and 48.9 (256) in f32. If one T is extended
    /// meanwhile, every step has products with all columns; f64, ms, 256 and 512: 11 000² 81.3 and 78.6, 13 000² 129
    /// and 125, 15 000² 195 and 182; 10 000² 59.1, and 60 to 62 with 384. f64 without T, ms:
    ///            9000²   10 000²   12 000²   16 384²   24 000²   32 768²   16 384 × 4096
    ///    256     34.0    42.7      67.8      155       468       1135      17.6
    ///    512     32.0    41.0      63.2      147       431       1058      19.2
    ///    768     32.8    40.3      62.7      143       413       1019      20.6
    ///   1024     32.1    41.0      63.8      142       418       1009      21.5
    ///            1 000 000 × 256   × 512   × 1024   200 000 × 512   × 1024   30 000 × 1000
    ///    128     8.67              24.8    77.4     5.75            16.4     4.18
    ///    256     9.41              24.7    70.8     6.12            15.4     4.44
    ///    512                       28.3    76.3     6.78            17.3     4.93
    /// f32, corrected, H200, panels of 128 and of 256 columns:
    ///      n: 512            1000           1024           2000           2048           3000           4096           5000
    ///   20 000                                             5.09 / 5.74                                               17.9 / 17.2
    ///   50 000               3.37 / 4.07
    ///   65 536                              3.77 / 4.32                                               26.2 / 25.1
    ///   100 000                                                                         22.4 / 22.2
    ///   200 000                             7.14 / 8.39                   20.2 / 21.0
    ///   1 000 000  11.4 / 11.2                                            95.7 / 80.4
    static Index panel_width(Index m, Index k, ScalarKind scalar, Arithmetic arithmetic, bool extends_t = false) {
        if (m <= max_rows_in_strips(scalar) && !extends_t) {
            return arithmetic == Arithmetic::Corrected && k >= 8000 ? 1024 : 512;
        }
        const bool corrected = arithmetic == Arithmetic::Corrected, f64 = entry_for(scalar, false, true);
        if (f64 && !extends_t && k >= 15000) return 1024;
        if (k >= (corrected ? 12000 : extends_t ? 11000 : f64 ? 9000 : 24000)) return 512;
        if (corrected && !extends_t) return k > 3000 || (k >= 512 && max_top_cols(m, scalar) == 256) ? 256 : 128;
        return k <= 64 ? 64 : k < (corrected ? 800 : m >= 100000 ? 1000 : 1500) ? 128 : 256;
    }
    /// Streams for the larger matrices of a batch, and the flops of a matrix between which several streams pay. Fewer
    /// flops take less time than the host's threads need, more fill the device.
    static constexpr int lanes = 4;
    static constexpr double min_flops_side_by_side = 2e7, max_flops_side_by_side = 6e12;
    /// Their columns on the host, whose time grows with them: as Benner, Köhler and Penke have it.
    static Index host_panel_width(Index k) { return k <= 64 ? 64 : 128; }
    static constexpr bool asynchronous = true;  ///< calls may return before their work is done
    /// Whether there are products of f32 by three of f16, and whether they pay for a whole matrix or for a single
    /// update of `columns` columns by `width` reflectors.
    static constexpr bool corrected_products = true;
    /// V, tau and R, H100, ms, native and corrected:
    ///            n: 512            700            1000           1500           2000           3000           4096
    ///     6000 rows                                                                            5.23 / 4.54
    ///     8192                                                                                 6.08 / 4.53
    ///   16 384                                                                  6.00 / 4.08    10.7 / 7.48
    /// More rows, H200, in the faster of panels of 128 and of 256 columns:
    ///            n: 320            400            512            700            1000           1500
    ///   20 000                                                                  2.57 / 2.80    5.08 / 4.23
    ///   30 000                                                                  3.39 / 3.29
    ///   50 000                                                   2.67 / 2.25
    ///   65 536                                    1.92 / 1.67
    ///   200 000                                   3.76 / 3.01
    ///   400 000                    5.17 / 4.36
    ///   1 000 000    5.83 / 6.70                  13.2 / 11.2
    /// The halves of a panel of 256 columns take 1 KB a row.
    static bool corrected_pays(Index m, Index n) {
        if (m > (Index(1) << 22)) return n >= 4096;
        if (m <= max_rows_in_strips(ScalarKind::F32)) return n >= (m >= 6000 ? 2000 : 4096) && m >= 4096;
        return n >= (m >= 65536 ? 400 : m >= 40000 ? 700 : m >= 24000 ? 1000 : 1500);
    }
    /// Whether they pay for the projections of classical Gram-Schmidt.
    static bool corrected_projections_pay(Index m, Index n) { return m >= 4096 && n >= 4096; }
    /// Runs of a corrected AᵀB whose parts would take more than halves_bytes, and columns of A in a run of A B: longer
    /// ones are faster and less accurate (products_by_halves.hpp).
    static constexpr Index long_run_rows = 1536, corrected_run_cols = 2048;
    /// Rows of the shortest run of rounded operands where runs are shortened to fill the multiprocessors.
    static constexpr Index min_rounded_run = 1024;
    /// Rows of A B at a time: such a product holds all multiprocessors until it ends, and what another stream rounds
    /// waits for that.
    static constexpr Index halved_rows = 32768;
    /// From this number of columns on, a coarser product is worth the wait for the size of its factor.
    static constexpr Index min_asked = 1024;
    /// Whether they pay for products of Q, in blocks of up to `width` reflectors of m rows, with p columns. The halves
    /// of a block of V take 12 bytes an entry, 3 GiB at most. H100, QᵀC by a full T, ms, native and corrected, in
    /// blocks of
    ///                               256             512             1024            2048
    ///   8192 × 2048 on 512                      1.16 / 0.661    0.965 / 0.536   0.907 / 0.512
    ///               on 1000                     1.73 / 1.03     1.69 / 0.866    1.67 / 0.855
    ///               on 2048     3.41 / 2.42     3.08 / 1.78     3.05 / 1.55     3.16 / 1.59
    ///   10 000²     on 1000                     6.57 / 3.78     6.16 / 3.28     6.25 / 3.26
    ///   32768×4096  on 2048     25.7 / 15.4     25.7 / 10.9     23.6 / 9.00     22.4 / 8.44
    /// By S, in blocks of 512, whose products have halves of their own: 8192 × 2048 on 512 0.917 / 1.08, on 1000 1.61 /
    /// 1.51, on 2048 3.00 / 2.35; 10 000² on 1000 5.84 / 5.87.
    static bool corrected_product_pays(Index m, Index width, Index p) {
        return m >= 512 && m <= (Index(1) << 18) && width >= 256 && p >= cuda::min_corrected_cols(width);
    }
    /// Whether they pay for a block of Q, whose products also need halves of their own.
    static bool corrected_block_pays(Index rows, Index cols, Index width, Index p) {
        return std::min(rows, cols) >= 512 && width >= 512 && p >= 1000;
    }
    /// Rows of a part of a sum over rows: shorter ones cost more to write than to multiply, in longer ones the rounding
    /// errors of one dot product show. Up to few_parts parts follow each other into C; more are made by one batched
    /// GEMM and added.
    static constexpr Index min_part_rows = 256, max_part_rows = 4096, few_parts = 4;
    /// Rows of A R⁻¹ at a time, beyond tall_cols columns, where the solution is not kept.
    static constexpr Index solved_rows = Index(1) << 17;
    /// Bytes of V up to which a copy of it costs less than the two products with its unit triangle by itself.
    static constexpr Index max_copied_bytes = Index(16) << 20;
    /// Whether an update by blocks of m×k reflectors makes CᵀV, not VᵀC, and the rows of its runs. 8192² in f64, panels
    /// of 512 columns, H200, ms: 22.8 by VᵀC, 22.5 by CᵀV in runs of 4096 rows, 22.2 in one. DGEMM of 1024 columns of V
    /// is faster by VᵀC.
    static constexpr Index adjoint_run = 8192;
    static constexpr bool adjoint_pays(Index m, Index k, ScalarKind scalar) {
        const bool f64 = entry_for(scalar, false, true);
        return f64 && k <= 512 && m <= 2 * adjoint_run;
    }
    /// Columns of a triangle that is copied, with its zeros, and multiplied by GEMM. Wider ones are mostly GEMM. H100,
    /// 128×128 of either type: 9 µs, and 19 by cuBLAS's trmm.
    static constexpr Index copied_width = 1024;
    /// How a full T is made. The recurrence's GEMMs run while the next panel is factored, which leaves most of the
    /// device idle. A T of a tall matrix is joined instead, with mk² fewer flops.
    static FullTRoute full_t(Index m, Index k) { return m < 4 * k ? FullTRoute::Recurrence : FullTRoute::Joined; }
    /// Width of its blocks in products with it.
    static constexpr Index wy_block = 1024;
    /// Trees are batches, which have no T of their own here.
    static constexpr bool has_batched_trees = true;
    static constexpr Index inner_block(Index) { return 0; }
    /// Columns of a panel of CAQR, and the most columns of a tree. R | Q and R of 1 000 000 × 512, H200, ms, panels of
    /// 128 columns f32 19.9 | 34.1, f64 31.7 | 54.4; of 192 19.4 | 32.8, 32.1 | 54.4; of 256 19.2 | 32.0, 33.8 | 56.3.
    static constexpr Index tree_width = 256, max_tree_cols = 256;
    /// Returns the rows of each matrix of a level of `rows` rows: `most` if that makes at most 32 matrices, else fewer.
    /// The time of few matrices is the chain of their columns. Up to 32 columns, R | Q and R of 1 000 000 rows, H200,
    /// µs, leaves and nodes of
    ///                          32 columns: f32        f64          16: f32     f64         8: f32     f64
    ///     128 and 8192 rows    469 | 1206  847 | 1634     197 | 419   281 | 576    118 | 239  191 | 328
    ///     256     4096         356 | 946   726 | 1438     155 | 337   247 | 500     97 | 191  140 | 257
    ///     512     4096         348 | 912   755 | 1512     158 | 328   249 | 510     84 | 178  137 | 248
    ///     1024    2048         384 | 999   811 | 1710     167 | 351   274 | 552     80 | 170  135 | 247
    static constexpr Index batched_rows(Index rows, Index n, ScalarKind scalar) {
        const bool narrow = n <= 32;
        const Index most = narrow ? 4096 : max_rows_in_strips(scalar), fewer = narrow ? 2048 / bytes_of(scalar) : 1024;
        return rows <= most ? rows : rows <= 32 * most ? most : fewer;
    }
    static constexpr Index leaf_rows(Index m, Index n, ScalarKind scalar) {
        return std::max({Index(1), n, batched_rows(m, n, scalar)});
    }
    /// R factors of a node above whose leaves are `rows` rows: equal numbers in all nodes.
    static constexpr Index fan_in(Index rows, Index n, ScalarKind scalar) {
        const Index most = batched_rows(rows, n, scalar), nodes = (rows + most - 1) / most;
        return std::max<Index>(2, nodes == 1 ? (rows + n - 1) / n : rows / n / nodes);
    }
    /// Rows of 128 or 256 bytes. f64, H200, ms: A R⁻¹ of 3 000 000 × 106 takes 1.6 from a boundary and 3.6 from row 106
    /// on, which is at 80 of 128 bytes; VᵀC 0.69 and 0.91.
    static constexpr Index boundary_rows = 32;
    static constexpr Index aligned_start(Index m, Index n) {
        return m * n >= 1 << 23 ? n / boundary_rows * boundary_rows : n;
    }
    static constexpr bool wide_part_at_once(Index, Index) { return false; }
    static constexpr bool has_step_times = false;
    /// Returns the user's table for the current GPU (`quoin tune --device cuda`), read once; without one the id
    /// is 0.
    static const TuningTable& table_in_use();
    /// The n×n steps of CholeskyQR2 are one kernel each up to 192 columns, and several calls of libraries beyond. There
    /// it is faster than reflectors where one pass suffices for columns of independent random numbers
    /// (docs/algorithms.md, section 6), m >= n + n²/6 about. H200, Q and R, ms, CholeskyQR2 and blocked Householder, of
    ///                    f64: 257 columns   500           1000          f32: 257      500           1000          1500
    ///   10 000 rows      1.02 / 0.81                                    1.07 / 0.44
    ///   20 000           0.62 / 1.02   2.34 / 1.81                      0.64 / 0.92   2.31 / 1.76
    ///   60 000           0.82 / 1.72   1.77 / 3.37   9.27 / 9.59        0.83 / 1.52   1.83 / 3.32   10.3 / 6.44
    ///   200 000          1.44 / 3.92   3.40 / 9.02   11.0 / 24.9        1.44 / 3.24   3.73 / 6.80   12.2 / 15.2   46.6 / 48.8 (400 000)
    ///   1 000 000        4.96 / 16.7   13.6 / 42.2   51.8 / 124         5.55 / 12.6   14.6 / 28.3   52.5 / 67.3
    /// R alone of these 0.4 to 0.9 of the time in f64 and 0.6 to 1 in f32. Corrected products make reflectors of more
    /// columns faster in f32.
    static constexpr Index tall_cols = 192, tall_cols_f32 = 256, max_tall_cols_f32 = 1500;
    /// Whether a cluster that holds the matrix is faster than CholeskyQR2, which takes 43 to 54 µs for these. H200, µs.
    /// Q and R in f32: 16 000 × 16 50, 8000 × 24 59. In f64: 12 000 × 10 53, 16 000 × 16 73. R in f32: 4000 × 32 41. In
    /// f64: 8000 × 24 52, 4000 × 32 59. Messages in global memory, code of sm_80 there, f32 | f64, and CholeskyQR2 35:
    /// Q and R of 3737 × 7 24 | 29, 1095 × 15 39 | 47, 16 761 × 8 54 | 57.
    constexpr bool cluster_pays(Index m, Index n, ScalarKind scalar, QForm q) const {
        const bool f64 = entry_for(scalar, false, true);
        const bool by_messages = q == QForm::Explicit && !kernels.clusters;
        const Index max_cols = q == QForm::Explicit ? (f64 ? 10 : by_messages ? 12 : 20) : (f64 ? 24 : 32);
        const Index max_rows = cuda::max_rows_in_cluster(n, scalar);
        return m <= (by_messages ? std::min<Index>(8192, max_rows) : max_rows) &&
               (q == QForm::Reflectors || n <= max_cols);
    }
    /// Nearly square matrices of moderate condition too. Square ones are left to reflectors: more of them are too
    /// ill-conditioned for the certificate. So are small ones, which one launch factors. H200, time of CholeskyQR2 /
    /// time of reflectors, R | Q and R, of
    ///                  4 columns    16           40           100          192          f64: 4       16           40           100          192
    ///   100 rows       1.27 1.09    1.21 1.05    0.87 0.82                              1.27 1.04    1.18 1.02    1.08 1.06
    ///   300            1.23 1.10    1.15 1.00    0.75 0.74    0.67 0.64    0.89 0.90    1.10 1.02    1.09 0.91    1.15 1.14    0.78 0.73    1.02 0.89
    ///   1000           1.08 1.00    1.02 0.92    0.63 0.61    0.54 0.50    0.67 0.69    0.98 0.87    0.96 0.85    0.57 0.49    0.71 0.64    0.91 0.80
    ///   6000           0.93 0.83    1.04 0.89    0.55 0.59    0.50 0.44    0.68 0.67    0.89 0.78    0.81 0.65    0.41 0.37    0.32 0.29    0.72 0.61
    ///   30 000         0.46 0.30    0.39 0.29    0.44 0.31    0.37 0.27    0.34 0.28    0.44 0.32    0.42 0.29    0.43 0.30    0.35 0.25    0.33 0.25
    static constexpr bool tall(Index m, Index n, ScalarKind scalar) {
        const bool f64 = entry_for(scalar, false, true);
        if (n > tall_cols)
            return (f64 || n <= max_tall_cols_f32) && m > max_rows_in_strips(scalar) && norm_proves_one_pass(m, n);
        const Index rows_of_one_launch = !f64 ? 0 : n <= 16 ? 256 : 128;
        return 4 * m >= 5 * n && m > rows_of_one_launch;
    }
    /// Returns the method of tall matrices. CholeskyQR2 sums in f64, about 4mn² flops of Q and R: if f64 is slow,
    /// f32 goes by trees, which have as many in f32.
    constexpr Method tall_method(Index n, ScalarKind scalar) const {
        const bool f64 = entry_for(scalar, false, true);
        return f64 || kernels.fast_f64 ? Method::CholeskyQR2 : n <= max_tree_cols ? Method::TSQR : Method::CAQR;
    }
    /// A Q of any form is one of reflectors: R and QᵀC take 0.25 to 1.1 of the time of CholeskyQR2, whose Q is
    /// completed for QᵀC.
    static constexpr bool reflectors_are_any_form = true;
    /// Whether a tree is faster for them. H200, R and QᵀC of 16 columns, µs, f32 | f64, by reflectors and by TSQR:
    /// 10 000 000 × 3 833 | 1206 and 318 | 612, 1 000 000 × 8 232 | 300 and 180 | 274, 6 200 000 × 19 1678 | 2249 and
    /// 2069 | 3920.
    static constexpr bool tree_is_any_form(Index m, Index n) { return n <= 8 && m >= 1000000; }
    static constexpr Index stream_tree_cols = max_tree_cols;
    /// From this ratio of rows to columns on, a matrix that CholeskyQR2 refused is sketched.
    static constexpr Index sketch_aspect = 1;
    /// A column of 4n sums in f64 is in shared memory.
    static constexpr Index max_sketch_cols = 7168;
    /// Columns of a panel of m rows that is reconstructed at once; wider ones go by halves. Up to 128 one kernel does
    /// it without waiting.
    static Index max_top_cols(Index m, ScalarKind scalar) { return reconstruction_pays(m, 256, scalar) ? 256 : 128; }
    /// Gram-Schmidt: columns of a panel. Panels by CholeskyQR2 have the largest power of two that its kernels take
    /// whole (at most 192). Panels of modified Gram-Schmidt are wide enough for products of matrices, whose number is
    /// (n/nb)²/2.
    static Index gram_schmidt_width(Method method) { return method == Method::ModifiedGramSchmidt ? 256 : 128; }
    static constexpr GramSchmidtPanel gram_schmidt_panel = GramSchmidtPanel::CholeskyQR2;
    /// Columns that modified Gram-Schmidt takes one by one, with a launch each.
    static constexpr Index gram_schmidt_base = 32;
    /// Rows of a panel that one launch holds in strips, and columns of these panels if taller ones come before them.
    /// The last 8192 rows and columns of 16 384² in f64 take 24 ms in panels of 512 columns, and 31 in panels of 1024.
    static constexpr Index max_rows_in_strips(ScalarKind scalar) { return cuda::max_rows_in_strips(scalar); }
    static constexpr Index last_panel_width = 512;
    /// From this number of rows on, a panel is reconstructed: strips do not hold it.
    static Index reconstruct_rows(Index, ScalarKind scalar) { return max_rows_in_strips(scalar) + 1; }
    /// Multiprocessors that the strips of a panel of `width` columns take while an update of `columns` columns runs.
    /// More clusters of 8 wait longer for each other. So the panel gets the number that makes it last as long as the
    /// update, at most half of the multiprocessors. f64, H200, 8192², ms: half 23.4; of clusters × columns/width 31:
    /// 23.4, 42: 22.8, 53: 22.6, 62: 22.8. Half in f32, 8192², panels of 1024 columns: a quarter 14.1, half 12.0.
    Index beside_an_update(ScalarKind scalar, Index width, Index columns) const {
        const Index clusters = entry_for(scalar, 150, 53) * width / columns;
        return std::min<Index>(kernels.multiprocessors / 2, 8 * std::max<Index>(3, clusters));
    }
    /// Whether a tall matrix is reconstructed as one panel, which finds out by itself whether its columns need a scale.
    /// V, tau and R, H200, time of CholeskyQR2 / time of reflectors, of
    ///                f32: 10 columns   28     64     128    192        f64: 10        28     64     128    192
    ///   3000 rows         1.00          0.84   1.07   1.12   2.46           1.11      0.84   0.95   1.06   2.62
    ///   6000              0.86          0.91   1.05   1.27   2.46           1.00      0.71   0.70   0.71   2.01
    ///   9000              0.75          0.62   0.77   0.85   1.65           0.74      0.32   0.69   0.75   1.39
    ///   30 000            0.55          0.68   0.70   0.76   1.20           0.54      0.65   0.73   0.78   1.29
    ///   150 000           0.63          0.74   0.78   0.81   0.90           0.61      0.68   0.77   0.77   0.97
    /// Beyond 192 columns, f32, H200, ms: 200 000×256 1.38 / 1.30, 400 000×256 1.82 / 2.00, 600 000×256 2.23 / 2.95;
    /// 200 000×224 1.21 / 0.98, 500 000×224 1.84 / 1.83; 200 000×200 1.26 / 0.91, 500 000×200 1.81 / 1.69.
    static bool reconstruction_pays(Index m, Index n, ScalarKind scalar) {
        const bool f64 = entry_for(scalar, false, true);
        if (n > tall_cols) return !f64 && n <= tall_cols_f32 && m * (n - 190) >= 20000000;
        if (n > 128) return m >= 131072;
        return m > (f64 && n >= 24 ? 4096 : 8192);
    }
    /// Columns of a panel of pivoted QR of k of n columns. Wider ones have faster updates; all rows of a sketch, 8 more
    /// than columns, should fit the shared memory of all multiprocessors, 25 MiB on Hopper. H200, 16 384², f32, ms, by
    /// panels of 64, 128 and 256 columns: 239, 180, 163.
    Index pivoted_width(bool greedy, Index n, Index k, bool, ScalarKind scalar) const {
        const Index shared = kernels.multiprocessors * kernels.shared_bytes, hoppers = 132 * (227 << 10);
        const Index fits = (Index(25) << 20) * shared / hoppers / (std::max<Index>(1, n) * bytes_of(scalar)) - 8;
        return std::min(k, greedy ? 256 : std::clamp<Index>(fits / 64 * 64, 128, 256));
    }
    /// H200, f32, ms, greedy | randomized: 300² 1.29|1.76, 1000² 5.43|5.43, 2000² 15.6|11.7; f64: 1000² 6.40|6.01.
    static bool greedy_pays(Index k) { return k <= 256; }
    static constexpr Index pivots_first_aspect(bool r_alone) { return r_alone ? 3 : 8; }
    /// Bytes of a copy of columns that are permuted: it stays in L2.
    static constexpr Index permuted_bytes = Index(16) << 20;
    /// Columns up to which gesdd on the host is faster than gesvd, if gesvdp is not certified.
    static constexpr Index host_svd_cols_uncertified = 512;
    /// Parts of a slab of a matrix out of core on its way in and out, so that both directions of the bus are used at
    /// once.
    static constexpr Index slab_parts = 8;
    /// Pinned buffers between pageable memory and one direction of the bus, and bytes of each: enough of them keep the
    /// host's cores and the bus busy at once, and all stay pinned. The host's cores fill them in pieces of
    /// `staging_piece` elements.
    static constexpr int staging_buffers = 8;
    static constexpr Index staging_bytes = Index(32) << 20, staging_piece = Index(1) << 14;
    /// Bytes of rows that a caller's function reads or writes at a time, while the rows before them are transferred.
    static constexpr Index passed_bytes = Index(16) << 20;
    /// Bytes that libraries take of a cap on the device's memory: cuBLAS 32 MiB a handle, two of them, cuSOLVER, and
    /// kernels as they are loaded.
    static constexpr double library_bytes = 384.0 * (1 << 20);
};

const Tuning<Cuda>& tuning_of(const Context<Cuda>& ctx);

}  // namespace quoin
