#pragma once

// Which kernel serves which shape on a GPU. Each operation has one function here, whose result its caller switches on.
// A kernel that is compiled for several sizes has a table of them here; the first row that holds the operand serves it.
// The tables are for f32 and f64. Functions that depend on the scalar throw InvalidArgument for complex numbers.
// Plain C++ without device code: tests/kernel_choice_test.cpp runs it on any machine, and compares README.md with it.
// tuning.hpp has the block sizes of the methods, and when a method pays.

#include <algorithm>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>

#include "cuda/runtime/kernels.hpp"
#include "primitives/small_batch.hpp"
#include "primitives/tuning.hpp"

namespace quoin::cuda {

/// Returns the first row of a table that `holds`, or −1.
template <class Table, class Holds>
constexpr int first_row(const Table& table, Holds holds) {
    for (int row = 0; row < static_cast<int>(std::size(table)); ++row) {
        if (holds(table[row])) return row;
    }
    return -1;
}
/// Calls work(row), the row of a table of `rows` rows as a constant. Does nothing for another row.
template <int rows, class Work>
void with_row(int row, Work work) {
    const auto try_all = [&]<int... i>(std::integer_sequence<int, i...>) {
        static_cast<void>(((row == i && (work(std::integral_constant<int, i>()), true)) || ...));
    };
    try_all(std::make_integer_sequence<int, rows>());
}

/// Calls work(x) for an x from `least` to `most` as a constant.
template <int least, int most, class Work>
void with_constant(int x, Work work) {
    with_row<most - least + 1>(x - least, [&](auto i) { work(std::integral_constant<int, least + i>()); });
}

// Batches: many matrices of one shape in one launch.

enum class BatchKernel {
    None,
    ThreadPerMatrix,   ///< small/thread_per_matrix.cuh
    ThreadPerColumn,   ///< small/thread_per_column.cuh
    ClusterPerMatrix,  ///< small/cluster_per_matrix.cuh
    Strips,            ///< strips/strips.cuh
    Plain              ///< plain/householder.cpp, one matrix after the other
};
struct BatchChoice {
    BatchKernel kernel = BatchKernel::None;
    int row = -1;  ///< of the kernel's table
};

/// Rows and columns of a matrix that one thread holds.
inline constexpr int thread_side = 4;

/// Up to `lanes` columns of up to `rows` rows, in as many lanes of a warp.
struct ColumnLanes {
    int rows, lanes;
};
inline constexpr ColumnLanes column_lanes[] = {{16, 8}, {16, 16}, {64, 8}, {32, 32}, {64, 32}};

/// Blocks of a cluster, and of one that exchanges messages in global memory: with 256 threads each, a matrix fits 99 KB
/// of shared memory a block.
inline constexpr int max_row_blocks = 16, max_boxed_row_blocks = 32;
/// A cluster of blocks of up to `threads` threads, each with `rows` rows of `cols` columns. Taller matrices than
/// `factored_rows` are faster in strips.
struct ClusterRows {
    int cols, rows, threads;
    Index factored_rows;
    constexpr Index max_rows() const { return Index(max_row_blocks) * threads * rows; }
};
inline constexpr ClusterRows cluster_rows_f32[] = {{4, 8, 512, 65536},  {8, 4, 512, 32768},  {8, 8, 512, 65536},
                                                   {16, 2, 512, 16384}, {16, 4, 512, 32768}, {32, 2, 256, 8192}};
inline constexpr ClusterRows cluster_rows_f64[] = {
    {4, 8, 512, 65536}, {8, 4, 512, 32768}, {16, 2, 512, 16384}, {32, 2, 256, 2048}};
constexpr std::span<const ClusterRows> cluster_rows(ScalarKind scalar) {
    return entry_for<std::span<const ClusterRows>>(scalar, cluster_rows_f32, cluster_rows_f64);
}
/// Returns the row for a cluster that holds m×n in registers, or −1.
constexpr int cluster_row(Index m, Index n, ScalarKind scalar) {
    return first_row(cluster_rows(scalar),
                     [&](const ClusterRows& row) { return m <= row.max_rows() && n <= row.cols; });
}
/// Returns the most rows of a matrix of n columns that a cluster factors; 0: none.
constexpr Index max_rows_in_cluster(Index n, ScalarKind scalar) {
    Index rows = 0;
    for (const ClusterRows& row : cluster_rows(scalar)) {
        if (n <= row.cols) rows = std::max(rows, row.factored_rows);
    }
    return rows;
}

/// A strip of a matrix, `panels` panels of `width` columns: `cluster` blocks of `warps` warps hold `tiles` tiles of 8
/// rows a warp. `blocks` blocks share a multiprocessor.
struct StripShape {
    int width, tiles, warps, blocks, cluster, panels;
    constexpr Index rows() const { return Index(8) * tiles * warps * cluster; }
    constexpr Index columns() const { return Index(width) * panels; }
    constexpr Index clusters_on(Index multiprocessors) const {
        return std::max<Index>(1, blocks * multiprocessors / cluster);
    }
    bool operator==(const StripShape&) const = default;
};
/// The strips for few pieces of `width` columns, for many, and for GPUs whose blocks have too little shared memory. All
/// have equal rows, and the first two have equal bits.
struct StripShapes {
    StripShape few, many, lean = few;
};
/// Returns strips of `panels` panels for many pieces.
constexpr StripShapes strips_of(int width, int tiles, int warps, int blocks, int cluster = 1, int panels = 1) {
    return {{width, tiles, warps, blocks, cluster, 1}, {width, tiles, warps, blocks, cluster, panels}};
}
/// Returns strips of 16 columns in a cluster of 8 blocks, and in twice as many with half the tiles.
constexpr StripShapes tallest_strips(int tiles, int warps) {
    const StripShape all{16, tiles, warps, 1, 8, 1};
    return {all, all, {16, tiles / 2, warps, 1, 16, 1}};
}
/// Returns blocks of 8 warps for few pieces, which take the shortest time, and half as many blocks of 16 warps with
/// half the registers each for many.
constexpr StripShapes more_warps_for_many(int cluster) {
    return {{16, 8, 8, 1, cluster, 1}, {16, 8, 16, 1, cluster / 2, 1}};
}
// One matrix, some and many of n×n, H100, ms by this kernel and by (width, tiles, warps, blocks, cluster) with less or
// more of each:
//   f32    176²    1, 40     0.083, 0.090         (16, 2, 16, 1) 0.092, 0.098
//          352²    1, 40     0.19, 0.205          (16, 3, 16, 1) 0.181, 0.224
//          512²    1, 640    0.287, 3.41          (32, 8, 8, 2) 0.41, 3.58     (16, 4, 16, 1) 0.266, 4.35
//          1024²   1, 60     0.658, 2.39          (16, 16, 8, 2) 0.722, 2.48   (16, 8, 8, 2, 2) 0.63, 2.51
//          2048²   1, 8      1.43, 2.98           (16, 16, 16, 1) 2.05, 2.99   (16, 8, 16, 1, 2) 1.43, 2.93
//          4096²   1, 2      4.04, 6.17           (16, 16, 8, 2, 4) 5.2, 6.7   (16, 16, 16, 1, 2) 5.6, 7.2
//          8192 × 256        0.211                (16, 16, 8, 2, 8) 0.30
//   f64    1024²             0.776                (16, 8, 16, 1) 1.17          (16, 4, 16, 1, 2) 0.86
//          2048²             1.61                 (16, 4, 16, 1, 4) 1.77       (16, 4, 8, 2, 8) 2.0
//          4096²             8.26                 (16, 4, 16, 1, 8) 8.9
//          8192 × 256        0.374                (16, 8, 16, 1, 8) 0.44
// Since then an update has fewer instructions: 640 × 512² 3.06, 60 × 1024² 2.11, 8 × 2048² 2.76, 2 × 4096² 5.65 in f32,
// on an H100.
inline constexpr StripShapes strips_f32[] = {
    strips_of(32, 1, 8, 2),        strips_of(16, 2, 8, 2),       strips_of(16, 3, 8, 2),
    strips_of(16, 4, 8, 2),        strips_of(16, 6, 8, 2),       strips_of(16, 8, 8, 2, 1, 2),
    strips_of(16, 8, 16, 1, 1, 2), strips_of(16, 8, 8, 2, 4, 2), strips_of(16, 8, 16, 1, 4, 2),
    strips_of(16, 8, 16, 1, 8),    tallest_strips(16, 16)};
inline constexpr StripShapes strips_f64[] = {
    strips_of(32, 1, 8, 2), strips_of(16, 2, 8, 2), strips_of(16, 4, 8, 2), {{16, 8, 8, 1, 1, 1}, {16, 8, 8, 2, 1, 1}},
    more_warps_for_many(2), more_warps_for_many(4), more_warps_for_many(8), tallest_strips(16, 8)};
constexpr std::span<const StripShapes> strip_shapes(ScalarKind scalar) {
    return entry_for<std::span<const StripShapes>>(scalar, strips_f32, strips_f64);
}
/// Returns a bound of a block's shared memory, without what clusters receive there.
constexpr Index strip_bytes(const StripShape& shape, ScalarKind scalar) {
    const Index width = shape.width, warps = shape.warps, square = width * width;
    return bytes_of(scalar) * (8 * shape.tiles * warps * width + (warps * shape.panels + 1) * square +
                               width * shape.columns() + 2 * width * (warps + 4) + 16 * width) +
           1024;
}
constexpr bool fits(const StripShape& shape, ScalarKind scalar, const Kernels& kernels) {
    return strip_bytes(shape, scalar) <= kernels.shared_bytes;
}
/// Returns the row for strips of m rows, or −1.
constexpr int strip_row(Index m, ScalarKind scalar, const Kernels& kernels) {
    return first_row(strip_shapes(scalar), [&](const StripShapes& row) {
        return m <= row.few.rows() && (fits(row.few, scalar, kernels) || fits(row.lean, scalar, kernels));
    });
}
/// Returns the most rows of a matrix that one launch holds in strips.
constexpr Index max_rows_in_strips(ScalarKind scalar) { return strip_shapes(scalar).back().few.rows(); }
/// Whether matrices with a total of `pieces` pieces take the strips for many. In f32 more panels a strip read V fewer
/// times, and fewer have more multiprocessors busy. 8 pieces a cluster, H100: 2 × 4096², 8 × 2048² and 60 × 1024² in
/// f32 take 0.9, 0.9 and 0.8 of the time by two panels, one 4096² 1.02, one 2048² 1.25. In f64, H200: 977 × (1024 ×
/// 192) take 3.9 ms by 16 warps and 5.9 by twice 8, one 0.21 and 0.15.
constexpr bool takes_strips_for_many(const StripShapes& shapes, Index multiprocessors, Index pieces) {
    return pieces >= 8 * shapes.few.clusters_on(multiprocessors);
}

/// Columns of the widest matrix that strips factor faster in one launch than panel by panel. Wider ones are faster so
/// up to `max_entries_alone` entries. ms, H100:
///                   f32: 2048²  4096²  5000²  8192×2048  8192×4096  16384×4096   f64: 1024²  2048²  3000²  4096²  8192×2048
///   one launch           1.54   4.16   11.2   2.40       7.83       15.8              0.91   1.80   5.11   8.46   4.82
///   panels               2.27   5.45   7.47   4.32       8.39       16.0              1.17   2.52   4.21   6.34   5.22
constexpr Index max_cols_alone(ScalarKind scalar) { return entry_for(scalar, 4096, 2048); }
inline constexpr Index max_entries_alone = Index(1) << 24;

/// Columns of a level of a tree that clusters factor. Wider levels go to strips, which take fewer barriers a matrix.
/// 1 000 000 × 32, H200, by clusters and by strips, µs: Q and R in f32 996 and 583, in f64 1598 and 1044.
inline constexpr Index max_level_cols_in_cluster = 16;
/// Returns the kernel that factors m×n matrices of a batch, and applies their Q.
constexpr BatchChoice choose_batch(Index m, Index n, ScalarKind scalar, BatchOf of, const Kernels& kernels) {
    const Index max_cols = max_cols_alone(scalar);
    if (m <= 0 || n <= 0) return {};
    if (!kernels.tuned) return {BatchKernel::Plain, 0};
    if (m <= thread_side && n <= thread_side) return {BatchKernel::ThreadPerMatrix, 0};
    if (const int row = first_row(column_lanes, [&](auto lanes) { return m <= lanes.rows && n <= lanes.lanes; });
        row >= 0)
        return {BatchKernel::ThreadPerColumn, row};
    const bool in_clusters = of == BatchOf::Matrices || n <= max_level_cols_in_cluster;
    if (in_clusters && m <= max_rows_in_cluster(n, scalar))
        return {BatchKernel::ClusterPerMatrix, cluster_row(m, n, scalar)};
    const int row = strip_row(m, scalar, kernels);
    if (row < 0 || std::min(m, n) > max_cols || n >= Index(1) << 30) return {};
    return {BatchKernel::Strips, row};
}
/// Whether one launch factors m×n matrices in this arithmetic, on any GPU. Strips have the full precision alone.
constexpr bool is_batch(Index m, Index n, ScalarKind scalar, Arithmetic arithmetic) {
    const BatchKernel kernel = choose_batch(m, n, scalar, BatchOf::Matrices, {}).kernel;
    const Arithmetic full = entry_for(scalar, Arithmetic::Corrected, Arithmetic::Native);
    return kernel != BatchKernel::None &&
           (kernel != BatchKernel::Strips || arithmetic == Arithmetic::Auto || arithmetic == full);
}
/// Whether the kernels of a batch are also the fastest for one m×n matrix, and for its Q times p columns.
constexpr bool is_batch_of_one(Index m, Index n, ScalarKind scalar, Arithmetic arithmetic) {
    return is_batch(m, n, scalar, arithmetic) && (n <= max_cols_alone(scalar) || m * n <= max_entries_alone);
}
constexpr bool applies_batch_of_one(Index m, Index p) { return m * p <= max_entries_alone; }
/// Returns the columns of C that a cluster holds with m rows at a time.
constexpr Index cluster_cols_at_once(Index m, Index p, ScalarKind scalar) {
    Index cols = std::min<Index>(p, 32);
    while (cluster_row(m, cols, scalar) < 0) --cols;
    return cols;
}

/// Rows of an n×n R in a lane of the warps that solve with it (small/solve.cuh).
inline constexpr int batch_solve_rows[] = {1, 2, 4, 8};
/// Returns the row for n columns, or −1.
constexpr int batch_solve_row(Index n) {
    return first_row(batch_solve_rows, [&](int rows) { return n <= 32 * rows; });
}

// Panels of one matrix.

enum class PanelKernel {
    Strips,  ///< strips/strips.cuh
    Plain    ///< plain/householder.cpp, for panels that are not reconstructed either (tuning.hpp)
};
constexpr PanelKernel choose_panel(Index m, ScalarKind scalar, const Kernels& kernels) {
    return kernels.tuned && m <= max_rows_in_strips(scalar) ? PanelKernel::Strips : PanelKernel::Plain;
}

/// Columns of a block of reflectors that one T serves in the kernels.
inline constexpr int t_width = 32;

/// Least columns of C if corrected products by `width` reflectors, with operands of m rows, are to pay.
constexpr Index min_corrected_cols(Index width) { return width >= 512 ? 512 : 1024; }
constexpr Index min_updated_cols(Index m, Index width) {
    return m > max_rows_in_strips(ScalarKind::F32) ? 256 : min_corrected_cols(width);
}
/// Least columns of V if VᵀV of the rows below the triangle is to be a corrected product.
inline constexpr Index min_corrected_gram = 256;
/// Rows of a block, if products with triangles of T and V go by blocks, and least columns of C for it. f64,
/// H200, 16 384², panels of 1024 columns, ms: squares 137, blocks of 512 134.9, 256 133.9, 128 133.2.
inline constexpr Index triangle_block = 128, min_cols_by_blocks = 2048;

enum class UpdateKernel {
    Corrected,    ///< products/products_by_halves.cu: three products of f16 for one of f32, by wgmma
    Halves,       ///< the same over cuBLAS
    Gemm,         ///< cuBLAS, with a copy of V that has its unit triangle
    GemmByBlocks  ///< cuBLAS, the triangles of T and V by blocks
};
/// Returns how H of k reflectors of m rows is applied to p columns.
constexpr UpdateKernel choose_update(Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic,
                                     const Kernels& kernels) {
    const bool f32 = entry_for(scalar, true, false);
    const bool corrected = kernels.tuned && f32 && arithmetic == Arithmetic::Corrected && p >= min_updated_cols(m, k);
    if (corrected && kernels.warpgroups && k % 8 == 0) return UpdateKernel::Corrected;
    if (corrected && !kernels.warpgroups && k >= CommonTuning::min_halved) return UpdateKernel::Halves;
    return k > triangle_block && p >= min_cols_by_blocks ? UpdateKernel::GemmByBlocks : UpdateKernel::Gemm;
}

// CholeskyQR of a tall m×n A.

/// Most columns of a row that one thread holds, of a pass that fuses solve and product, and of the kernels that solve.
inline constexpr int few_cols = 8, narrow_cols = 64, tall_max_cols = 192;
/// Most columns of the kernels for Gram matrices.
constexpr int gram_max_cols_of(ScalarKind scalar) { return entry_for(scalar, 256, tall_max_cols); }
template <class T>
inline constexpr int gram_max_cols = gram_max_cols_of(scalar_kind<T>);
/// Factors that one call of the kernels takes.
inline constexpr int max_factors = 4;

/// Shared memory of cholesky/narrow.cuh, of products/gram.cuh for `cols` columns of both operands, and of
/// cholesky/solve_right.cuh, for n columns.
constexpr Index narrow_bytes(Index n, int factors, ScalarKind scalar) {
    const Index tiles = (n + 7) / 8;
    return 256 * tiles * (tiles + 3) * factors + 64 * tiles * (128 + 4 * bytes_of(scalar));
}
constexpr Index gram_bytes(Index cols, ScalarKind scalar) { return 108 * ((cols + 31) / 32 * 32) * bytes_of(scalar); }
constexpr Index solve_right_bytes(Index n) {
    const Index tiles = (n + 15) / 16 * 2;
    return 256 * tiles * (tiles + 3);
}

/// Whether one pass makes X = A R⁻¹ and XᵀX, for a number of factors of R.
constexpr bool is_fused_pass(Index n, int factors, ScalarKind scalar, const Kernels& kernels) {
    return n <= few_cols || (n <= narrow_cols && narrow_bytes(n, factors, scalar) <= kernels.shared_bytes);
}
/// Returns the most columns of an A whose Gram matrix, and whose A R⁻¹, one kernel makes.
constexpr Index max_gram_cols(ScalarKind scalar, const Kernels& kernels) {
    Index n = gram_max_cols_of(scalar);
    while (gram_bytes(n, scalar) > kernels.shared_bytes) n -= 32;
    return n;
}
constexpr Index max_solve_cols(ScalarKind scalar, const Kernels& kernels) {
    Index n = std::min<Index>(tall_max_cols, max_gram_cols(scalar, kernels));
    while (solve_right_bytes(n) > kernels.shared_bytes) n -= 16;
    return n;
}

enum class GramKernel {
    ThreadPerRow,  ///< cholesky/few_columns.cuh, fused with the solve
    WarpTiles,     ///< cholesky/narrow.cuh, fused with the solve
    Slabs,         ///< products/gram.cuh
    Blocks         ///< blocks of columns: those on the diagonal by Slabs, the others by cuBLAS
};
/// Returns the kernel of AᵀA, or of XᵀX for X = A R⁻¹ with a number of factors of R.
constexpr GramKernel choose_gram(Index n, int factors, ScalarKind scalar, const Kernels& kernels) {
    const Index slab_cols = max_gram_cols(scalar, kernels);
    return n <= few_cols                                ? GramKernel::ThreadPerRow
           : is_fused_pass(n, factors, scalar, kernels) ? GramKernel::WarpTiles
           : n <= slab_cols                             ? GramKernel::Slabs
                                                        : GramKernel::Blocks;
}
enum class SolveKernel {
    ThreadPerRow,
    WarpTiles,
    Columns,           ///< cholesky/solve_right.cuh
    Corrected,         ///< cholesky/solve_corrected.cuh, or Columns if the certificate refuses its condition
    Blocks,            ///< blocks of columns, by Columns and cuBLAS
    CorrectedOrBlocks  ///< cholesky/solve_corrected.cuh, or Blocks if the certificate refuses its condition
};
/// Returns the kernel of A Y₁⁻¹ Y₂⁻¹ … for that number of factors. Only a `certified` solve may be corrected. H200, Q
/// and R, µs, in f64 and corrected: 70 000×80 95 and 113, 110 000×80 124 and 144, 131 072×80 150 and 146; 70 000×128
/// 164 and 153, 80 000×128 188 and 169; 45 000×192 250 and 232, 70 000×192 287 and 250.
constexpr SolveKernel choose_solve(Index m, Index n, int factors, bool certified, ScalarKind scalar,
                                   const Kernels& kernels) {
    const bool f32 = entry_for(scalar, true, false), corrected = f32 && certified && factors == 1 && kernels.warpgroups;
    if (n <= max_solve_cols(scalar, kernels) && factors <= max_factors) {
        return n <= few_cols                                ? SolveKernel::ThreadPerRow
               : is_fused_pass(n, factors, scalar, kernels) ? SolveKernel::WarpTiles
               : corrected && m * (n - 32) >= 5'800'000     ? SolveKernel::Corrected
                                                            : SolveKernel::Columns;
    }
    return corrected && n <= gram_max_cols_of(scalar) ? SolveKernel::CorrectedOrBlocks : SolveKernel::Blocks;
}

enum class SquareKernel {
    OneBlock,  ///< cholesky/factor_gram.cuh, cholesky/reconstruct_top.cuh
    Library    ///< cuSOLVER's potrf, or steps of 32 columns over cuBLAS
};
inline constexpr int factor_max_cols = 192, top_max_cols = 128;
/// Returns how an n×n Gram matrix is factored, and how the top of an orthonormal basis becomes V and T.
constexpr SquareKernel choose_cholesky(Index n, const Kernels& kernels) {
    return kernels.tuned && n <= factor_max_cols ? SquareKernel::OneBlock : SquareKernel::Library;
}
constexpr SquareKernel choose_reconstruction(Index n, const Kernels& kernels) {
    const Index tiles = (n + 15) / 16 * 2, bytes = 512 * tiles * (tiles + 2) + 2048;
    return kernels.tuned && n <= top_max_cols && bytes <= kernels.shared_bytes ? SquareKernel::OneBlock
                                                                               : SquareKernel::Library;
}

// Singular values.

enum class SvdKernel {
    Host,  ///< LAPACK's gesdd on the host
    Polar  ///< cuSOLVER's gesvdp with a certificate
};
/// Columns of the widest R whose SVD the host computes. H100 with 16 cores of its host, f32 / f64 ms, copies included:
///   columns                    32            64           100           192           512          1000
///   host gesdd          0.20 / 0.23   0.68 / 0.53   1.05 / 1.53   4.91 / 7.28   49.4 / 97.2    261 / 592
///     values alone      0.09 / 0.10   0.32 / 0.24   0.49 / 0.67   2.12 / 3.19   24.4 / 45.9    161 / 348
///   cuSOLVER gesvdp     0.67 / 0.80   2.08 / 2.12   3.18 / 3.51   3.68 / 3.87   11.5 / 11.8   27.7 / 31.3
///     gesvdj            0.47 / 0.64   0.88 / 1.33   2.04 / 3.03   3.93 / 6.26   16.4 / 25.9   48.5 / 79.6
///     gesvd             1.48 / 1.81   3.20 / 3.66   7.43 / 9.02   18.3 / 19.9   65.4 / 75.4    159 / 168
/// gesvdp in f64 with its certificate takes 3.6 ms for 160 columns, 4.3 for 192 and 5.7 for 256; gesdd for 160
/// columns 2.4 / 3.6, and its values alone for 192 in another run 1.7 / 2.6.
constexpr Index max_host_svd_cols(ScalarKind scalar, bool vectors) {
    return vectors ? entry_for(scalar, 184, 152) : entry_for(scalar, 256, 256);
}
constexpr SvdKernel choose_svd(Index n, ScalarKind scalar, bool vectors) {
    return n <= max_host_svd_cols(scalar, vectors) ? SvdKernel::Host : SvdKernel::Polar;
}

// Products of a tall A (m×k) with few columns: AᵀB and C − A B, p columns.

enum class ProductKernel {
    Halves,      ///< products/products_by_halves.cu: operands of 16 bits
    FewColumns,  ///< products/gram.cuh, products/subtract_product.cuh: f32 on the f64 tensor cores
    Library      ///< cuBLAS
};
/// Products of f32 with a tall matrix and few columns are made by the f64 tensor cores: sgemm rounds k and p up to its
/// tiles. 1 000 000 rows, ms by sgemm and by them:
///      k   AᵀB, p: 8            32            64            100           C − A B, p: 32  64             80             100
///     64   0.202 / 0.242   0.313 / 0.248   0.358 / 0.338   0.424 / 0.460   0.195 / 0.257   0.384 / 0.383   0.571 / 0.450   0.596 / 0.595
///    128   0.370 / 0.257   0.529 / 0.353   0.542 / 0.471   0.723 / 0.668   0.339 / 0.447   0.498 / 0.570   0.911 / 0.658   0.921 / 0.808
///    192   0.518 / 0.310   0.910 / 0.395   1.07 / 0.584    1.80 / 0.949    0.491 / 0.641   0.669 / 0.774   1.29 / 0.856    1.26 / 1.04
///    256   0.766 / 0.381   1.16 / 0.516    1.37 / 0.849    1.41 / 1.41     0.636 / 0.840   0.869 / 0.971   1.57 / 1.06     1.59 / 1.32
/// From 16 384 rows on AᵀB is as far ahead, C − A B from 65 536 on.
constexpr ProductKernel choose_product(bool few, Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic,
                                       const Kernels& kernels) {
    const bool f64 = entry_for(scalar, false, true);
    if (f64 || !kernels.tuned) return ProductKernel::Library;
    if (takes_halves(arithmetic) && std::min({m, k, p}) >= CommonTuning::min_halved) return ProductKernel::Halves;
    return few && k >= 64 && k <= 256 && p <= 104 && arithmetic != study::TF32 ? ProductKernel::FewColumns
                                                                               : ProductKernel::Library;
}
constexpr ProductKernel choose_inner_product(Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic,
                                             const Kernels& kernels) {
    const bool fits = gram_bytes((k + 31) / 32 * 32 + p, scalar) <= kernels.shared_bytes;
    return choose_product(fits && m >= 16384 && k * p > 1024, m, k, p, scalar, arithmetic, kernels);
}
constexpr ProductKernel choose_subtracted_product(Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic,
                                                  const Kernels& kernels) {
    const bool fits = 512 * ((k + 7) / 8) * ((p + 7) / 8) <= kernels.shared_bytes;
    return choose_product(fits && m >= 65536 && p > 64, m, k, p, scalar, arithmetic, kernels);
}

}  // namespace quoin::cuda
