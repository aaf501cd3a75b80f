#include "cuda/small/cluster_per_matrix.hpp"

#include <algorithm>

#include "cuda/kernel_choice.hpp"
#include "cuda/runtime/ceil_div.cuh"
#include "cuda/runtime/launch.hpp"
#include "cuda/small/cluster_per_matrix.cuh"

namespace quoin::cuda::rows {

namespace {

/// Calls work(kernel) for a row of `cluster_rows`.
template <class T, class Work>
void with_kernel(int row, Work work) {
    constexpr std::span table = cluster_rows(scalar_kind<T>);
    with_row<table.size()>(row, [&](auto i) { work(RowsKernel<T, table[i].cols, table[i].rows, table[i].threads>()); });
}

/// Launches kernel(arguments…, cluster) with `count` clusters for m rows each, and `columns` of V in shared memory.
template <class K, class Kernel, class... Arguments>
void launch_clusters(Context<Cuda>& ctx, Kernel kernel, Index m, Index count, int columns,
                     const Arguments&... arguments) {
    const bool has_clusters = ctx.state().kernels.clusters;
    const Index max_blocks = has_clusters ? max_row_blocks : max_boxed_row_blocks;
    constexpr Index threads = std::min(256, K::max_threads);
    Index blocks = 1;
    while (blocks < max_blocks && blocks * threads * K::R < m) blocks *= 2;
    const Index each = ceil_div(ceil_div(m, blocks * K::R), Index(32)) * 32;
    Arena::Frame frame(ctx);
    RowsCluster cluster{static_cast<int>(blocks), nullptr};
    if (!has_clusters && blocks > 1)
        cluster.boxes = zeros<Message>(ctx, frame, count * RowsCluster::messages(cluster.blocks, K::N));
    const LaunchShape shape{static_cast<unsigned>(count * blocks), static_cast<unsigned>(each),
                            static_cast<std::size_t>(each) * K::R * columns * sizeof(typename K::Scalar),
                            has_clusters ? static_cast<unsigned>(blocks) : 0};
    launch(ctx.stream(), kernel, shape, arguments..., cluster);
}

}  // namespace

template <class T>
void factor(Context<Cuda>& ctx, int row, const BatchSize& size, const BatchEntries<const T>& A,
            const BatchOutputs<T>& out, const FiniteCheck& check) {
    if (size.count == 0) return;
    with_kernel<T>(row, [&]<class K>(K) {
        const auto kernel = out.kept == Factor::VR ? factor_rows_kernel<K, RowsKept::VR>
                            : out.form_q           ? factor_rows_kernel<K, RowsKept::QR>
                                                   : factor_rows_kernel<K, RowsKept::R>;
        const bool holds_v = out.kept == Factor::VR || out.form_q;
        launch_clusters<K>(ctx, kernel, size.m, size.count, holds_v ? size.k : 0, size, A, out.first, out.second,
                           check);
    });
}

template <class T>
void apply(Context<Cuda>& ctx, const BatchSize& size, const T* X, const T* tau, bool transpose, Index p,
           const BatchEntries<const T>& from, bool upper, const BatchEntries<T>& to) {
    if (size.count == 0 || p == 0) return;
    const int row = cluster_row(size.m, cluster_cols_at_once(size.m, p, scalar_kind<T>), scalar_kind<T>);
    with_kernel<T>(row, [&]<class K>(K) {
        launch_clusters<K>(ctx, apply_rows_kernel<K>, size.m, size.count * ceil_div(p, Index(K::N)), 0, size, X, tau,
                           transpose, p, from, upper, to);
    });
}

#define QUOIN_INSTANTIATE(T)                                                                     \
    template void factor<T>(Context<Cuda>&, int, const BatchSize&, const BatchEntries<const T>&, \
                            const BatchOutputs<T>&, const FiniteCheck&);                         \
    template void apply<T>(Context<Cuda>&, const BatchSize&, const T*, const T*, bool, Index,    \
                           const BatchEntries<const T>&, bool, const BatchEntries<T>&);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin::cuda::rows
