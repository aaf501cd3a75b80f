// Column pivoting: greedy panels (pivoted_panel.cuh), pivots of a sketch (sketch_pivots.cuh) and of a Gram matrix
// (pivot_gram.cuh), permutations of columns.

#include "primitives/pivots.hpp"

#include <algorithm>

#include "cuda/elements/elementwise.cuh"
#include "cuda/pivots/pivot_gram.cuh"
#include "cuda/pivots/pivoted_panel.cuh"
#include "cuda/pivots/sketch_pivots.cuh"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/launch.hpp"
#include "cuda/tuning.hpp"

namespace quoin {
namespace {

using namespace cuda;

/// Blocks that share n columns: each has at least one for every warp.
unsigned blocks_for(Context<Cuda>& ctx, Index n) {
    return static_cast<unsigned>(
        std::clamp<Index>((n + pivot_warps - 1) / pivot_warps, 1, ctx.state().kernels.multiprocessors));
}

constexpr int move_threads = 256, moved_rows = 32;

/// A(:, to[s]) := A(:, from[s]) for s < *count. A block takes 32 rows of all these columns into shared memory, a lane a
/// row, and writes them to their places. 1 read and 1 write. Bound by memory.
template <class T>
__global__ void __launch_bounds__(move_threads)
    move_columns_kernel(MatrixView<T, Cuda> A, const int* count, const Index* to, const Index* from) {
    extern __shared__ __align__(16) unsigned char memory[];
    T* const rows = reinterpret_cast<T*>(memory);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, columns = *count;
    for (Index i = Index(blockIdx.x) * moved_rows + lane; i - lane < A.rows; i += Index(gridDim.x) * moved_rows) {
#pragma unroll 8
        for (int s = warp; s < columns; s += move_threads / 32) {
            if (i < A.rows) rows[s * moved_rows + lane] = A.data[i + from[s] * A.ld];
        }
        __syncthreads();
#pragma unroll 4
        for (int s = warp; s < columns; s += move_threads / 32) {
            if (i < A.rows) A.data[i + to[s] * A.ld] = rows[s * moved_rows + lane];
        }
        __syncthreads();
    }
}

}  // namespace

template <class T, class D>
Index factor_pivoted(Context<D>& ctx, PivotedColumns<T, D> columns, Index first, double tolerance, View<T, D> tau,
                     View<T, D>) {
    const auto all = columns.A;
    const Index m = all.rows, width = tau.rows;
    const Range right{first, all.cols};
    columns.A = all.block({first, m}, right);
    columns.order = columns.order.row_block(right);
    columns.norms = columns.norms.row_block(right);
    if (columns.exponents.data) columns.exponents = columns.exponents.row_block(right);
    const auto A = columns.A;
    const Index h = A.rows, n = A.cols;
    if (width == 0) return 0;

    Arena::Frame frame(ctx);
    const unsigned blocks = blocks_for(ctx, n);
    const Index most = (n + blocks - 1) / blocks;
    constexpr Index per_message = Numbers<T>::count;
    const Index messages = (h + per_message - 1) / per_message;
    const auto bytes = static_cast<std::size_t>((most + 1) * messages * Index{sizeof(Numbers<T>)} +
                                                most * Index{sizeof(PivotState<T>)});
    const bool in_shared = static_cast<Index>(bytes) + 1024 <= ctx.state().kernels.shared_bytes;
    PivotedPanel<T> panel{columns,
                          static_cast<int>(width),
                          tolerance,
                          tau.data,
                          frame.take<T>(width),
                          frame.take<T>(width),
                          frame.take<T>(width),
                          frame.take<Index>(n),
                          frame.take<int>(1),
                          zeros<Message>(ctx, frame, 2 * blocks),
                          zeros<Message>(ctx, frame, 2 * blocks * (in_shared ? messages : 1)),
                          in_shared ? nullptr : frame.take<PivotState<T>>(blocks * most)};
    launch(ctx.stream(), in_shared ? pivoted_panel_kernel<T, true> : pivoted_panel_kernel<T, false>,
           {blocks, pivot_threads, in_shared ? bytes : 0, 0, true}, panel);
    permute_columns<T, Cuda>(ctx, {panel.from, n, 1}, all.block({0, in_shared ? first : m}, right), 2 * width);
    // r = β,   v₂ = x₂ / (α − β)
    for_each_element(ctx, h, width, [=] __device__(Index i, Index j) {
        if (j >= *panel.taken || i < j) return;
        T& a = A.data[i + j * A.ld];
        a = i == j ? panel.beta[j] : panel.scale[j] * (panel.power[j] * a);
    });
    ctx.state().add_flops(4.0 * static_cast<double>(h) * static_cast<double>(n) * static_cast<double>(width));
    return tolerance < 0 ? width : *ctx.state().read_back(panel.taken, 1);
}

template <class T, class D>
void pivot_sketch(Context<D>& ctx, PivotedColumns<T, D> Y, Index width) {
    const Index h = Y.A.rows, n = Y.A.cols;
    if (width == 0) return;
    Arena::Frame frame(ctx);
    const unsigned blocks = blocks_for(ctx, n);
    const SketchSize<T> size{static_cast<int>(h), static_cast<int>((n + blocks - 1) / blocks)};
    if (h > size.max_rows || static_cast<Index>(size.bytes()) + 4096 > ctx.state().kernels.shared_bytes) {
        factor_pivoted<T, D>(ctx, Y, 0, -1, frame.matrix<T>(width, 1), {});
        return;
    }
    constexpr Index per_message = Numbers<T>::count;
    const SketchPivots<T> pivots{Y, static_cast<int>(width), frame.take<Index>(n),
                                 zeros<Message>(ctx, frame, 2 * blocks),
                                 zeros<Message>(ctx, frame, 2 * blocks * ((h + per_message - 1) / per_message))};
    launch(ctx.stream(), sketch_pivots_kernel<T>, {blocks, pivot_threads, size.bytes(), 0, true}, pivots);
    ctx.state().add_flops(4.0 * static_cast<double>(h) * static_cast<double>(n) * static_cast<double>(width));
}

template <>
Index max_pivoted_gram(Context<Cuda>& ctx) {
    Index n = pivot_gram_cols;
    while (pivot_gram_bytes(n) > ctx.state().kernels.shared_bytes) --n;
    return n;
}

template <class T, class D>
void pivot_gram(Context<D>& ctx, View<Sum<T, D>, D> G, View<Index, D> order) {
    const auto n = static_cast<int>(G.cols);
    const std::size_t bytes = sizeof(double) * packed_column(n, n);
    launch(ctx.stream(), pivot_gram_kernel, {1, pivot_gram_threads, bytes}, n, G.data, G.ld, order.data);
    ctx.state().add_flops(1.0 / 3.0 * n * n * n);
}

template <class T, class D>
void permute_columns(Context<D>& ctx, View<const Index, D> order, View<T, D> A, Index most) {
    const Index m = A.rows, n = A.cols, moving = std::min(most, n);
    if (A.empty()) return;
    Arena::Frame frame(ctx);
    Index *const to = frame.take<Index>(moving), *const from = frame.take<Index>(moving);
    int* const count = zeros<int>(ctx, frame, 1);
    // in any order
    for_each_element(ctx, n, 1, [=] __device__(Index j, Index) {
        if (order.data[j] == j) return;
        const int s = atomicAdd(count, 1);
        to[s] = j;
        from[s] = order.data[j];
    });
    const auto bytes = static_cast<std::size_t>(moving) * moved_rows * sizeof(T);
    if (static_cast<Index>(bytes) <= ctx.state().kernels.shared_bytes && m > 1) {
        const auto blocks = static_cast<unsigned>(std::min<Index>((m + moved_rows - 1) / moved_rows, 1 << 20));
        return launch(ctx.stream(), move_columns_kernel<T>, {blocks, move_threads, bytes}, A, count, to, from);
    }
    // as many rows at a time as stay in L2
    const Index rows = std::clamp<Index>(Tuning<Cuda>::permuted_bytes / (moving * Index{sizeof(T)}), 32, m + 32);
    T* const copied = frame.take<T>(std::min(m, rows) * moving);
    for (Index first = 0; first < m; first += rows) {
        const Index h = std::min(rows, m - first);
        for_each_element(ctx, h, moving, [=] __device__(Index i, Index s) {
            if (s < *count) copied[i + s * h] = A.data[first + i + from[s] * A.ld];
        });
        for_each_element(ctx, h, moving, [=] __device__(Index i, Index s) {
            if (s < *count) A.data[first + i + to[s] * A.ld] = copied[i + s * h];
        });
    }
}

QUOIN_IMPLEMENT(Cuda, factor_pivoted, pivot_sketch, pivot_gram, permute_columns)
template decltype(permute_columns<int, Cuda>) permute_columns<int, Cuda>;
template decltype(permute_columns<Index, Cuda>) permute_columns<Index, Cuda>;

}  // namespace quoin
