// Column pivoting: greedy panels (pivoted_panel.cuh), permutations of columns.

#include "primitives/pivots.hpp"

#include <algorithm>

#include "cuda/elements/elementwise.cuh"
#include "cuda/pivots/pivoted_panel.cuh"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/launch.hpp"
#include "cuda/tuning.hpp"

namespace quoin {
namespace {

using namespace cuda;

/// Blocks that share n columns: each has at least one for every warp.
unsigned blocks_for(Context<Cuda>& ctx, Index n) {
    return static_cast<unsigned>(
        std::clamp<Index>((n + pivot_warps - 1) / pivot_warps, 1, ctx.state().multiprocessors));
}

template <class T>
T* zeros(Context<Cuda>& ctx, Arena::Frame& frame, Index count) {
    T* const p = frame.take<T>(count);
    QUOIN_CUDA_CHECK(cudaMemsetAsync(p, 0, static_cast<std::size_t>(count) * sizeof(T), ctx.stream()));
    return p;
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
    const std::size_t bytes = static_cast<std::size_t>(most + 1) * static_cast<std::size_t>(h) * sizeof(T) +
                              static_cast<std::size_t>(most) * sizeof(PivotState<T>);
    const bool in_shared = bytes + 1024 <= ctx.state().shared_bytes;
    PivotedPanel<T> panel{columns,
                          static_cast<int>(width),
                          tolerance,
                          tau.data,
                          frame.take<T>(width),
                          frame.take<T>(width),
                          frame.take<Index>(n),
                          frame.take<int>(1),
                          zeros<Message>(ctx, frame, 2 * blocks),
                          in_shared ? zeros<Message>(ctx, frame, 2 * blocks * h) : nullptr,
                          in_shared ? nullptr : frame.take<PivotState<T>>(blocks * most)};
    launch(ctx.stream(), in_shared ? pivoted_panel_kernel<T, true> : pivoted_panel_kernel<T, false>,
           {blocks, pivot_threads, in_shared ? bytes : 0, 0, true}, panel);
    permute_columns<T, Cuda>(ctx, {panel.from, n, 1}, all.block({0, in_shared ? first : m}, right), 2 * width);
    // v = (1, x₂ / (α − β)),   r = β
    for_each_element(ctx, h, width, [=] __device__(Index i, Index j) {
        if (j >= *panel.taken || i < j) return;
        T& a = A.data[i + j * A.ld];
        a = i == j ? panel.beta[j] : a * panel.scale[j];
    });
    ctx.state().add_flops(4.0 * static_cast<double>(h) * static_cast<double>(n) * static_cast<double>(width));
    return tolerance < 0 ? width : *ctx.state().read_back(panel.taken, 1);
}

/// By a copy of the columns that move, as many rows at a time as stay in L2.
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

QUOIN_IMPLEMENT(Cuda, factor_pivoted, permute_columns)
template decltype(permute_columns<int, Cuda>) permute_columns<int, Cuda>;
template decltype(permute_columns<Index, Cuda>) permute_columns<Index, Cuda>;

}  // namespace quoin
