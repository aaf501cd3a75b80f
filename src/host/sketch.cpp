// S A, strip by strip: the sums of a column stay in the L1 cache while a column of A passes.

#include <algorithm>
#include <bit>
#include <span>
#include <type_traits>
#include <vector>

#include "host/device.hpp"
#include "host/parallel.hpp"

namespace quoin {
namespace {

using namespace host;

constexpr Index group_rows = sketch_group_rows;
static_assert(group_rows == 32 && sketch_parts == 4);
/// Columns of a strip, and groups that pass all of them while their places and signs are in cache.
constexpr Index strip_cols = Tuning<Host>::sketch_strip, block_groups = 64, rows_of_block = block_groups * group_rows;

/// The places and signs of the groups of a block. The sums hold every segment twice in a row, so that no rotation wraps
/// around.
template <class T>
struct Block {
    Block(Index first, Index count, Index seed, Index segments) {
        const auto sign_of = [](std::uint32_t bits, Index i) { return bits >> i & 1 ? Real<T>(-1) : Real<T>(1); };
        for (Index g = 0; g < count; ++g) {
            const SketchGroup group = sketch_group(first + g, seed, segments);
            for (Index k = 0; k < sketch_parts; ++k) {
                places[g].to[k] = (k * segments + group.segment[k]) * (2 * group_rows) + group.rotation[k];
                places[g].sign[k] = sign_of(group.part_signs, k);
            }
            for (Index i = 0; i < group_rows; ++i) row_signs[g * group_rows + i] = sign_of(group.row_signs, i);
        }
    }
    GroupPlaces<T> places[block_groups];
    Real<T> row_signs[rows_of_block];
};

/// A := A + W diag(sizes), W of signs.
template <class T>
void add_signs(Context<Host>& ctx, Index seed, std::span<const Real<T>> sizes, MatrixView<T> A) {
    using Bits = std::conditional_t<sizeof(Real<T>) == 8, std::uint64_t, std::uint32_t>;
    constexpr int sign_bit = 8 * sizeof(Bits) - 1;
    constexpr Index group_cols = 32, task_rows = 4096;
    const Index tasks = (A.rows + task_rows - 1) / task_rows, groups = (A.cols + group_cols - 1) / group_cols;
    for_tasks(team(ctx, 0, A.rows * A.cols), tasks, groups, [&](Index task, Index group) {
        const Index first = task * task_rows, rows = std::min(task_rows, A.rows - first);
        Bits signs[task_rows];
        for (Index i = 0; i < rows; ++i) signs[i] = perturbation_signs(first + i, group, seed);
        for (Index j = group * group_cols; j < std::min(A.cols, (group + 1) * group_cols); ++j) {
            if (sizes[j] == 0) continue;
            const Bits plus = std::bit_cast<Bits>(sizes[j]);
            const int shift = static_cast<int>(j % group_cols);
            T* const a = A.at(first, j);
            for (Index i = 0; i < rows; ++i) {
                a[i] += std::bit_cast<Real<T>>(plus ^ ((signs[i] >> shift) << sign_bit));
            }
        }
    });
}

}  // namespace

template <class T, class D>
void sketch(Context<D>& ctx, View<const T, D> A, Index seed, View<Sum<T, D>, D> B) {
    const Index m = A.rows, n = A.cols, s = B.rows, segments = s / sketch_rows(1), sums_of_col = 2 * s;
    if (n == 0) return;
    if (s == m) return copy<T>(ctx, A, B);
    const Index strips = (n + strip_cols - 1) / strip_cols;
    const Index blocks = std::max<Index>(1, (m + rows_of_block - 1) / rows_of_block);
    const Index blocks_of_chunk = (Tuning<Host>::sketch_chunk_rows(m, n) + rows_of_block - 1) / rows_of_block;
    const Index chunks = (blocks + blocks_of_chunk - 1) / blocks_of_chunk;
    Arena::Frame frame(ctx.state().arena);
    T* const parts = frame.take<T>(chunks * s * n);
    const Team threads = team(ctx, 0, m * n);
    ThreadBuffers<T> sums(frame, threads, strip_cols * sums_of_col);
    for_tasks(threads, chunks, strips, [&](Index c, Index strip) {
        const Range cols{strip * strip_cols, std::min(n, (strip + 1) * strip_cols)};
        T* const mine = sums.mine();
        std::fill_n(mine, cols.size() * sums_of_col, T(0));
        for (Index b = c * blocks_of_chunk; b < std::min(blocks, (c + 1) * blocks_of_chunk) && !threads.stopped();
             ++b) {
            const Index row = b * rows_of_block, whole = std::min(block_groups, (m - row) / group_rows);
            const Index left = std::min(rows_of_block, m - row) - whole * group_rows;
            const Block<T> block(b * block_groups, whole + (left > 0), seed, segments);
            for (Index j = cols.begin; j < cols.end; ++j) {
                T* const to = mine + (j - cols.begin) * sums_of_col;
                const T* const a = A.at(row, j);
                kernels<T>().add_groups(whole, a, block.row_signs, block.places, to);
                if (left == 0) continue;
                T padded[group_rows] = {};
                std::copy_n(a + whole * group_rows, left, padded);
                kernels<T>().add_groups(1, padded, block.row_signs + whole * group_rows, block.places + whole, to);
            }
        }
        // the repetitions are added, and S is halved
        for (Index j = cols.begin; j < cols.end; ++j) {
            const T* from = mine + (j - cols.begin) * sums_of_col;
            T* to = parts + (c * n + j) * s;
            for (Index r = 0; r < s; r += group_rows, from += 2 * group_rows, to += group_rows) {
                for (Index i = 0; i < group_rows; ++i) to[i] = Real<T>(0.5) * (from[i] + from[i + group_rows]);
            }
        }
    });
    sum_parts(ctx, s, n, chunks, parts, B.data, B.ld);
    ctx.state().add_flops(static_cast<double>(sketch_parts) * m * n);
}

template <class T, class D>
void set_random_signs(Context<D>&, std::uint64_t seed, View<T, D> A) {
    std::uint64_t bits = 0;
    for (Index j = 0; j < A.cols; ++j) {
        for (Index i = 0; i < A.rows; ++i, bits >>= 1) {
            if (i % 64 == 0) bits = random_signs(seed, A.rows, i / 64, j);
            A(i, j) = bits & 1 ? T(-1) : T(1);
        }
    }
}

template <class T, class D>
void perturb(Context<D>& ctx, Perturbation W, double size, View<const Sum<T, D>, D> R, Index seed, View<T, D> A) {
    std::vector<Real<T>> sizes(static_cast<std::size_t>(A.cols));
    column_norms<T>(ctx, R, sizes);
    for (Real<T>& x : sizes) x *= static_cast<Real<T>>(size);
    if (W == Perturbation::Identity) {
        for (Index j = 0; j < std::min(A.rows, A.cols); ++j) A(j, j) += sizes[j];
    } else {
        add_signs<T>(ctx, seed, sizes, A);
    }
}

template <class T, class D>
void fill_zero_columns(Context<D>& ctx, double size, Index seed, View<T, D> A, View<int, D> exponents) {
    std::vector<Real<T>> sizes(static_cast<std::size_t>(A.cols));
    for_tasks(team(ctx, 0, A.rows * A.cols), A.cols, 1, [&](Index j, Index) {
        const T* const a = A.at(0, j);
        const bool is_zero = std::all_of(a, a + A.rows, [](T x) { return x == T(0); });
        sizes[j] = static_cast<Real<T>>(is_zero ? size : 0);
        exponents(j, 0) = is_zero ? clearing_exponent : 0;
    });
    add_signs<T>(ctx, seed, sizes, A);
}

QUOIN_IMPLEMENT(Host, sketch, set_random_signs, perturb, fill_zero_columns)

}  // namespace quoin
