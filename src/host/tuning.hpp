#pragma once

// Sizes and crossovers of the host.

#include <algorithm>
#include <limits>

#include "primitives/tuning.hpp"
#include "quoin/options.hpp"

namespace quoin {

/// Measured on 4 cores of an AMD EPYC 9005 (Zen 5, AVX-512, 1 MiB of L2 a core) with g++ 12.2; see bench/results.
template <>
struct Tuning<Host> : CommonTuning {
    static constexpr Tuning here() { return {}; }
    /// Whether it pays to share `work` flops among `threads` threads. V, tau and R of 25 171×15 (5.7e6 a sweep), µs,
    /// shared by 2 cores of an AMD EPYC (family 26) | by one alone: f32 166 | 112, f64 265 | 213; by 16 cores of an
    /// Intel Xeon (AVX-512): 125 | 288, 149 | 600. R of 46×784 in f64 (4.2e6) on the Xeon, by trees: 140 shared, 329
    /// alone.
    static constexpr bool sharing_pays(double work, int threads) {
        const double saved = 1 - 1.0 / threads;
        return work * saved * saved >= 2e6;
    }
    /// Tasks below which a product is cut further: fewer leave cores of a large host idle.
    static constexpr Index few_tasks = 64;
    /// Least rows of a chunk, that is of a task and its partial sum: of products; of products with too few tasks, and
    /// of sweeps; of Gram-Schmidt's sweeps. Longer chunks have fewer sums to add, shorter ones serve more cores.
    static constexpr Index chunk_rows = 2048, short_chunk_rows = 512, gram_schmidt_chunk_rows = 1024;
    /// Returns the rows of the chunks that sums over `rows` rows are cut into, at least `least`.
    static constexpr Index rows_of_chunk(Index rows, Index least) {
        return (std::max(least, (rows + row_chunks - 1) / row_chunks) + 511) / 512 * 512;
    }
    /// Rows of a task of an element-wise sweep, and the side of the tiles that are transposed in cache.
    static constexpr Index sweep_rows = 16384, transpose_tile = 64;
    /// Bytes of a column that the kernels sweep at once, so that a few columns stay in the L1 cache.
    static constexpr Index block_column_bytes = 4096;
    /// Bytes of a row block that is worked on in cache: half of a common L2.
    static constexpr Index cache_block_bytes = Index(512) << 10;
    /// The Gram matrix of a row block is formed in place if the block has at most `few_streams` columns, or if the
    /// places of its columns in a page are at least `streams_apart_bytes` apart; otherwise from a copy. G of 100 000 ×
    /// n, copied | in place, ms, one core of an AMD EPYC 9004 that compilers share, fastest of 12:
    ///           32         64         128        192
    ///     f64   4.4|3.9    14|11      44|38      86|79
    ///     f32   2.2|1.6    6.9|5.6    22|19      45|40
    static constexpr Index few_streams = 16, streams_apart_bytes = 256;
    /// A block of reflectors is applied by sums of columns, from copies of V and Vᵀ, if V has at most `max_short_rows`
    /// rows and C at least `min_short_cols` columns.
    static constexpr Index max_short_rows = 128, min_short_cols = 8;
    /// Whether the same rows of columns that are `stride` bytes apart share so few sets of an L2 cache that they evict
    /// each other: a multiple of 32 KiB, up to four lines (8192 rows of f64, say, and 8200).
    static constexpr bool columns_collide(Index stride) {
        constexpr Index sets = Index(32) << 10, lines = 4 * 64;
        const Index beyond = stride % sets;
        return stride > sets - lines && (beyond < lines || beyond > sets - lines);
    }
    /// Returns the leading dimension of a copy whose columns lie a page and a line apart in every cache of up to 128
    /// KiB a way.
    static constexpr Index rows_apart(Index rows, Index bytes) {
        const Index way = (Index(128) << 10) / bytes, shift = (4096 + 64) / bytes;
        return (rows + way - 1) / way * way + shift;
    }
    /// The recursion of a panel splits off a multiple of base_width columns. It ends with up to max_by_column, one by
    /// one, or with fewer of more rows. V, tau and R, one core of an AMD EPYC (family 26), us, ending with 6 | 8
    /// columns. f32: 51×7 0.85 | 0.72, 40×40 5.9 | 5.4, 64×20 2.8 | 2.7, 100×8 1.01 | 0.96, 300×30 8.9 | 9.2, 1000×8
    /// 2.9 | 3.6. f64: 51×7 0.95 | 0.82, 40×40 6.3 | 5.9, 100×8 1.16 | 1.21, 300×30 14.4 | 15.4.
    static constexpr Index base_width = 4, max_by_column = 8;
    static constexpr Index column_by_column(Index rows) { return rows <= 64 ? max_by_column : 6; }
    /// Columns of a step of the blocked algorithms for n×n matrices: Cholesky, LU, solves and products with triangles.
    static constexpr Index square_step = 48;
    /// Bytes of a large page.
    static constexpr Index large_page = Index(2) << 20;
    /// Least size, in large pages, of memory that comes straight from the system in such pages, if the system grants
    /// them. Q and R of 100 000 3×3 matrices, 7 MB each, on one core of an AMD EPYC 9005, ms: from 4 pages on 10.2,
    /// from 2 on 5.1.
    static constexpr Index mapped_from_pages = 2;
    /// Bytes of rows that a caller's function reads or writes at a time.
    static constexpr Index passed_bytes = Index(64) << 20;
    /// Columns of a Householder panel for k = min(m, n) columns: deeper updates against a longer sequential panel.
    static Index panel_width(Index k) { return k < 192 ? 32 : k < 1500 ? 64 : k < 6000 ? 96 : 128; }
    /// Columns of a Householder panel of m rows. V, tau and R of few rows, time with panels of 32 columns over time
    /// with panels of 16, one core of an AMD EPYC 7003 that compilers share, fastest of hundreds:
    ///            40²     64²     100²    128²    128×64   47×680   110×2000
    ///     f64   1.15    1.14    1.14    1.12     1.11     1.07      1.04
    ///     f32   1.13    1.09    1.12    1.01     1.04     1.01      0.96
    static Index panel_width(Index m, Index k) { return m <= max_short_rows ? 16 : panel_width(k); }
    static Index panel_width(Index m, Index k, ScalarKind, Arithmetic, bool = false) { return panel_width(m, k); }
    static Index host_panel_width(Index k) { return panel_width(k); }
    /// Least columns of R that a window of an update makes triangular.
    static constexpr Index update_width = 16;
    /// Rows of Q that a core takes through all windows of an update. Two cores of an AMD EPYC (AVX-512), 2000×500, f64,
    /// 20 columns deleted | inserted at 0, ms: 128 rows 5.8 | 10.1, 256 5.1 | 9.5, 512 4.6 | 7.1, 1000 4.6 | 7.1.
    static constexpr Index window_rows = 512;
    /// Returns how a full T is computed. f64, by recurrence / joined, s: 4000² 0.43 / 0.52, 3000×2000 0.097 / 0.098,
    /// 6000×1200 0.12 / 0.097, 20 000×1500 0.69 / 0.52.
    static FullTRoute full_t(Index m, Index k) { return 2 * m < 3 * k ? FullTRoute::Recurrence : FullTRoute::Joined; }
    /// Width of the blocks of T in products with it.
    static constexpr Index wy_block = 192;
    /// Columns of a T inside a leaf of n columns.
    static Index inner_block(Index n) { return n <= 16 ? n : n < 128 ? 16 : 32; }
    /// Columns of a panel of CAQR, and the most columns of a tree.
    static constexpr Index tree_width = 64, max_tree_cols = std::numeric_limits<Index>::max();
    /// Rows of a leaf: 384 KiB, so that with its work space it fits into a core's L2 cache.
    static Index leaf_rows(Index, Index width, ScalarKind scalar) {
        const Index fits = (Index(384) << 10) / (width * bytes_of(scalar));
        return std::max(2 * width, std::min<Index>(fits / 16 * 16, 4096));
    }
    /// Leaves of a domain: 64 domains are enough for every core of a large host to find work, whatever the number of
    /// threads, and longer chains would save little of the tree above them while errors add up along a chain.
    static Index domain_leaves(Index leaves) { return std::min(leaves, std::clamp<Index>(leaves / 64, 2, 16)); }
    static Index fan_in(Index, Index, ScalarKind) { return 2; }
    /// Whether `step_times` returns measured times of the steps of every method. `Auto` takes the method of least time
    /// by them (`modelled_time`).
    static constexpr bool has_step_times = true;
    static const StepTimes& step_times(ScalarKind scalar);
    /// Returns the times before `quoin tune`, which fitted its table to one machine.
    static const StepTimes& built_in_step_times(ScalarKind scalar);
    /// Returns the id of the table that `step_times` returns; 0 for the built-in one.
    static std::uint32_t table_id();
    /// Reads the user's table again, for tests. No other thread may plan meanwhile.
    static void read_table_again();
    /// The methods are compared for matrices with at least this number of entries. With fewer, the comparison takes
    /// longer, up to 0.3 µs, than a better method saves. Reflectors were within 10% of the best in 19 of 20 such cases,
    /// and 16% slower in one.
    static constexpr Index min_compared = 1000;
    /// Whether the columns of a wide matrix after its first m pass all panels at the end, tile by tile, and not panel
    /// by panel. Two cores then wait for each other only once, but the next panel does not overlap with the update. R,
    /// two cores of an Intel Xeon (AVX-512), ms in f64 at the end | panel by panel: 51×1106 0.13|0.19, 81×1044
    /// 0.22|0.29, 260×2482 2.7|2.7, 694×18 061 114|121; 200×300 0.27|0.22, 1500×4000 103|95. Also with fewer columns,
    /// if four cores can share the work at the end but not the work of a step: 125×390, two cores of an AMD EPYC
    /// (family 26), 0.16|0.21.
    static bool wide_part_at_once(Index m, Index n) {
        const double of_step = 4 * number(m) * number(panel_width(m, m)) * number(n);
        const double at_end = 2 * number(m) * number(m) * number(n - m);
        return n >= 8 * m || (n >= 2 * m && !sharing_pays(of_step, 4) && sharing_pays(at_end, 4));
    }
    /// Columns of a panel of pivoted QR of k of n columns, by greedy pivots or by a sketch; one panel if a limit leaves
    /// few. Wider panels have faster updates and slower sketches. f64, 2 cores of an AMD EPYC, s, with panels of 32,
    /// 48, 64, 80 columns: 600² 0.012 0.013 0.020 0.015, 1500² 0.111 0.124 0.128 0.172, 4000² 1.54 1.41 1.50 1.76.
    static Index pivoted_width(bool greedy, Index /*n*/, Index k, bool is_limited, ScalarKind) {
        return !greedy && is_limited && k <= 128 ? k : greedy || k < 2000 ? 32 : k < 6000 ? 48 : 64;
    }
    /// Whether greedy pivots of k columns take no longer than a sketch's. f64, 2 cores of an AMD EPYC, ms, greedy |
    /// randomized: 150² 1.1|1.2, 300² 3.2|3.3, 600² 18|12.
    static bool greedy_pays(Index k) { return k <= 256; }
    /// Whether all columns of a greedy panel take each reflector at once. One core of an AMD EPYC, f64 | f32, us, at
    /// once, by panels: 32² 11, 14 | 10, 13; 96² 97, 98 | 64, 76; 128² 193, 181 | 121, 138; 192² 655, 541 | 331, 317.
    static constexpr bool reflects_at_once(Index m, Index n, std::size_t bytes) {
        return m * n * static_cast<Index>(bytes) <= 96 << 10;
    }
    /// Least rows a column if all pivots are chosen first, by a sketch, or from R if R alone is wanted. R of f64, 2
    /// cores of an AMD EPYC, ms, from R | by panels: 1000 × 250 2.6|4.3, 1500 × 500 12.3|12.7, 5000 × 2000 584|524,
    /// 8000 × 2000 659|734.
    static constexpr Index pivots_first_aspect(bool r_alone) { return r_alone ? 3 : 8; }
    static constexpr bool asynchronous = false;  ///< calls may return before their work is done
    static constexpr bool corrected_products = false;
    static bool corrected_pays(Index, Index) { return false; }
    static bool corrected_projections_pay(Index, Index) { return false; }
    static bool corrected_product_pays(Index, Index, Index) { return false; }
    static bool corrected_block_pays(Index, Index, Index, Index) { return false; }
    /// Least rows per column if `Auto` is to try CholeskyQR2 and check its certificate. Matrices of independent
    /// random numbers get the certificate of one pass from 2.4 on. For R and the thin Q, CholeskyQR2 is taken without a
    /// comparison of methods: in 787 such cases on 1 to 16 cores it was slower than the best other method once, by 1%
    /// (bench/results/regret_one_team.csv).
    static constexpr double tall_aspect = 2.5;
    static constexpr bool tall(Index m, Index n, ScalarKind) { return number(m) >= tall_aspect * number(n); }
    static constexpr bool reflectors_are_any_form = false;
    /// Least ratio of rows to columns if a matrix that CholeskyQR2 refused is to be sketched. With fewer rows a tree
    /// factors it. Thin Q and R on two cores of an Intel Xeon (AVX-512), ms, f64 and f32, after a sketch | by a tree:
    ///   400×100 0.76|0.43 0.49|0.24, 800×100 0.97|0.92 0.52|0.46, 1600×100 1.26|2.04 0.73|1.01, 2000×400 23|17
    ///   11.7|9.8, 3200×400 27|25 14.2|15.6, 6400×400 43|54 22|26, 8000×1000 406|445 196|195, 1000×30 0.154|0.166
    ///   0.087|0.109
    static constexpr Index sketch_aspect = 8;
    /// Columns of a task of a sketch.
    static constexpr Index sketch_strip = 8;
    /// Returns the rows of the chunks that a sketch of m×n is summed over: at least 16 384, and few chunks of many
    /// columns.
    static Index sketch_chunk_rows(Index m, Index n) {
        const Index strips = std::max<Index>(1, (n + sketch_strip - 1) / sketch_strip);
        const Index chunks = std::max<Index>(1, row_chunks / strips);
        return std::max<Index>(16384, (m + chunks - 1) / chunks);
    }
    /// Columns of a stream for R alone whose blocks are reduced by trees.
    static constexpr Index stream_tree_cols = 1024;
    /// Columns of a panel that is reconstructed at once.
    static constexpr Index max_top_cols(Index, ScalarKind) { return std::numeric_limits<Index>::max(); }
    /// Gram-Schmidt. Columns of a panel, GFLOP/s of one core (`OMP_NUM_THREADS=1 quoin bench paper gram-schmidt
    /// 1024x1024 2048x2048` prints the table), mgs / cgs:
    ///                  32          48          64          96         128         192
    ///   1024² f32  160 / 190   171 / 186   180 / 190   182 / 183   174 / 184   167 / 174
    ///   1024² f64   90 / 94     92 / 90     93 / 90     93 / 92     94 / 89     86 / 85
    ///   2048² f32  177 / 186   185 / 184   180 / 171   187 / 171   189 / 179   185 / 183
    ///   2048² f64   86 / 98     94 / 92     95 / 92     98 / 92     95 / 88     91 / 92
    /// Classical Gram-Schmidt has its large products above the panels; several cores prefer fewer of them.
    static Index gram_schmidt_width(Method method) { return method == Method::ModifiedGramSchmidt ? 96 : 64; }
    /// How classical Gram-Schmidt factors a panel of 64. The same, by mgs / CholeskyQR2: 1024² f32 190 / 188, f64 90 /
    /// 88, 2048² f32 171 / 173, f64 92 / 93; and CholeskyQR2 refuses some.
    static constexpr GramSchmidtPanel gram_schmidt_panel = GramSchmidtPanel::MGS;
    /// Columns that modified Gram-Schmidt takes one by one, at the bottom of a panel's recursion.
    static constexpr Index gram_schmidt_base = 8;
    /// Returns the least rows of a panel that is reconstructed from an orthonormal basis. Column by column, a panel of
    /// at most 512 KiB stays in a core's cache. V, tau and R of one panel, time of reconstruction over time column by
    /// column, 2 cores of an AMD EPYC 9005:
    ///                   2 columns   4      8      16     24     32        f32: 4      8      16     32
    ///     128 KiB         1.38     1.19   1.40   1.43   1.47   1.53           1.13   1.24   1.28   1.54
    ///     256             1.11     1.00   1.27   1.36   1.30   1.34           0.92   1.17   1.33   1.18
    ///     512             0.96     0.90   1.25   1.32   1.25   1.13           0.82   1.06   0.96   0.95
    ///    1024             0.92     0.79   1.20   1.06   1.05   0.84           0.83   1.13   0.83   0.87
    /// From 4096 rows on, as in a leaf, sums of one sign would be too long for f32 (docs/algorithms.md, section 6).
    /// Cores share a panel that is reconstructed, wide ones from 32 rows a column on: 4090×356 in f64 takes 6.3 ms
    /// instead of 6.9, and 10.1 instead of 11.1 on one core.
    static Index reconstruct_rows(Index width, ScalarKind scalar) {
        return std::max(32 * width, std::min<Index>(4096, (Index(512) << 10) / (width * bytes_of(scalar))));
    }
    /// Number of parts that a slab of a matrix out of core is split into for its copies in and out. One, because on the
    /// host nothing would overlap with the copies.
    static constexpr Index slab_parts = 1;
    /// Whether matrices of a batch are factored several at once, one in each lane of the vector registers: groups of
    /// 2.3 MiB at most in f64 with AVX-512. 80 matrices (60 of 2000×8), V, tau and R in place, OpenBLAS's geqrf in a
    /// loop over Quoin, one core of an Intel Xeon (AVX-512, 2 MiB of L2) that compilers share, fastest of 12, in lanes
    /// | one by one:
    ///          128×128    150×150    192×192    256×256    300×64     400×100    1000×32    2000×8
    ///   f32    3.8|1.4    2.6|0.8    1.9|1.2    1.5|1.3    2.1|1.0    2.0|1.9    1.5|1.1    0.7|0.4
    ///   f64    2.6|1.8    1.8|1.0    1.5|1.3    1.2|1.3    1.8|1.4    1.8|2.1    1.4|1.3    0.8|0.4
    static bool in_lanes(Index m, Index n) {
        const Index k = std::min(m, n);
        return k >= 1 && k <= 192 && m <= 2048 && m * n <= 36864;
    }
    /// Whether least squares, m >= n, is solved in lanes, too. The inverse of R is unblocked.
    static bool solved_in_lanes(Index m, Index n) { return n <= 128 && m * n <= 16384; }
    /// Least columns of a matrix that all threads reduce to bidiagonal form for its SVD. LAPACK's gesdd on one thread |
    /// by two threads of an AMD EPYC (AVX-512) that compilers share, fastest of 60, f64, ms: with vectors 96 columns
    /// 0.96|1.01, 128 1.84|1.65, 192 4.45|3.97, 256 10.5|7.9; values alone 96 0.41|0.40, 128 0.80|0.74, 256 4.6|3.9.
    static constexpr Index min_reduced_by_panels = 128;
    /// Whether the SVD of m×n, m >= n, takes less time without a QR factorization (Chan 1982). f64, two cores of an AMD
    /// EPYC (AVX-512) that compilers share, fastest of 9 or more, ms, at once | by QR: with vectors 30×30 0.099|0.110,
    /// 50×30 0.116|0.117, 100×100 1.07|1.22, 150×100 1.29|1.31, 200×100 1.99|1.49, 400×300 17.6|19.0, 500×300
    /// 20.6|21.5, 1000×1000 317|395, 1250×1000 369|451, 1500×1000 566|499; values alone 150×100 0.67|0.62, 450×300
    /// 8.4|7.8, 1000×1000 143|178, 1250×1000 199|242, 1500×1000 271|210.
    static constexpr bool svd_at_once(Index m, Index n) { return 3 * m <= 4 * n; }
    /// Bytes that libraries take out of a cap on the device's memory.
    static constexpr double library_bytes = 0;
};

constexpr Tuning<Host> tuning_of(const Context<Host>&) { return {}; }

}  // namespace quoin
