#include "cuda/small/cluster_per_matrix.hpp"

#include <algorithm>

#include "cuda/runtime/ceil_div.cuh"
#include "cuda/runtime/launch.hpp"
#include "cuda/small/cluster_per_matrix.cuh"
#include "cuda/tuning.hpp"

namespace quoin::cuda::rows {

namespace {

/// work(kernel) for the first kernel that holds m rows of n columns. Whether there is one.
template <class T, class Work>
bool with_rows(Index m, Index n, Work work) {
    const auto first_of = [&](auto... kernels) {
        return with_first([&](auto kernel) { return m <= kernel.rows && n <= kernel.N; }, work, kernels...);
    };
    if constexpr (std::is_same_v<T, float>) {
        return first_of(RowsKernel<T, 4, 8, 512>(), RowsKernel<T, 8, 4, 512>(), RowsKernel<T, 8, 8, 512>(),
                        RowsKernel<T, 16, 2, 512>(), RowsKernel<T, 16, 4, 512>(), RowsKernel<T, 32, 2, 256>());
    } else {
        return first_of(RowsKernel<T, 4, 8, 512>(), RowsKernel<T, 8, 4, 512>(), RowsKernel<T, 16, 2, 512>(),
                        RowsKernel<T, 32, 2, 256>());
    }
}

/// The launch of `count` clusters for m rows each, with `columns` of V in shared memory.
template <class K>
LaunchShape shape_of(Index m, Index count, int columns) {
    constexpr Index threads = std::min(256, K::most_threads);
    Index blocks = 1;
    while (blocks < most_row_blocks && blocks * threads * K::R < m) blocks *= 2;
    const Index each = ceil_div(ceil_div(m, blocks * K::R), Index(32)) * 32;
    return {static_cast<unsigned>(count * blocks), static_cast<unsigned>(each),
            static_cast<std::size_t>(each) * K::R * columns * sizeof(typename K::Scalar),
            static_cast<unsigned>(blocks)};
}

}  // namespace

template <class T>
bool holds(Index m, Index n) {
    return m <= Tuning<Cuda>::most_rows_in_cluster(n, sizeof(T)) && with_rows<T>(m, n, [](auto) {});
}

template <class T>
void factor(Context<Cuda>& ctx, const BatchSize& size, const BatchEntries<const T>& A, const BatchOutputs<T>& out,
            const FiniteCheck& check) {
    if (size.count == 0) return;
    with_rows<T>(size.m, size.n, [&]<class K>(K) {
        const auto kernel = out.kept == Factor::VR ? factor_rows<K, RowsKept::VR>
                            : out.form_q           ? factor_rows<K, RowsKept::QR>
                                                   : factor_rows<K, RowsKept::R>;
        const bool holds_v = out.kept == Factor::VR || out.form_q;
        QUOIN_CUDA_CHECK(launch(kernel, shape_of<K>(size.m, size.count, holds_v ? size.k : 0), ctx.stream(), size, A,
                                out.first, out.second, check));
    });
}

template <class T>
void apply(Context<Cuda>& ctx, const BatchSize& size, const T* X, const T* tau, bool transpose, Index p,
           const BatchEntries<const T>& from, bool identity, const BatchEntries<T>& to) {
    if (size.count == 0 || p == 0) return;
    // the columns that a cluster holds with size.m rows
    Index at_once = std::min<Index>(p, 32);
    while (!with_rows<T>(size.m, at_once, [](auto) {})) --at_once;
    with_rows<T>(size.m, at_once, [&]<class K>(K) {
        QUOIN_CUDA_CHECK(launch(apply_rows<K>, shape_of<K>(size.m, size.count * ceil_div(p, Index(K::N)), 0),
                                ctx.stream(), size, X, tau, transpose, p, from, identity, to));
    });
}

#define QUOIN_INSTANTIATE(T)                                                                                        \
    template bool holds<T>(Index, Index);                                                                           \
    template void factor<T>(Context<Cuda>&, const BatchSize&, const BatchEntries<const T>&, const BatchOutputs<T>&, \
                            const FiniteCheck&);                                                                    \
    template void apply<T>(Context<Cuda>&, const BatchSize&, const T*, const T*, bool, Index,                       \
                           const BatchEntries<const T>&, bool, const BatchEntries<T>&);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin::cuda::rows
