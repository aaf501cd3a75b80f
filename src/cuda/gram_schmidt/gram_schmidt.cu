// Gram-Schmidt a few columns at a time (gram_schmidt/orthonormalize.cuh).

#include <algorithm>
#include <cmath>

#include "cuda/gram_schmidt/orthonormalize.cuh"
#include "cuda/runtime/ceil_div.cuh"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/launch.hpp"
#include "cuda/tuning.hpp"

namespace quoin {
namespace {

using namespace cuda;

static_assert(Tuning<Cuda>::gram_schmidt_base <= sweep_cols);

template <class T>
ColumnSquares* find_squares(Context<Cuda>& ctx, Arena::Frame& frame, MatrixView<const T, Cuda> R, Index k,
                            bool with_triangle) {
    auto* const found = frame.take<ColumnSquares>(R.cols);
    const auto blocks = static_cast<unsigned>(std::min<Index>(R.cols, 1 << 20));
    launch(ctx.stream(), column_squares_kernel<T>, {blocks, squares_threads}, R, k, with_triangle, found);
    return found;
}

}  // namespace

template <class T, class D>
void orthonormalize_columns(Context<D>& ctx, View<T, D> A, View<T, D> R, bool complete,
                            CertificateView<D> certificate) {
    const Index m = A.rows, n = A.cols, k = R.rows - n;
    if (n == 0) return;
    Arena::Frame frame(ctx);
    // two blocks a multiprocessor, of whole rounds of their threads
    const Index share = (m + 2 * ctx.state().kernels.multiprocessors - 1) / (2 * ctx.state().kernels.multiprocessors);
    const Index h = std::max<Index>(1, (share + sweep_threads - 1) / sweep_threads) * sweep_threads;
    const auto blocks = static_cast<unsigned>((m + h - 1) / h);
    const ColumnSquares* const above = find_squares<T>(ctx, frame, R, k, false);
    const SweepOperands<T> operands{m, static_cast<int>(n), A.data, A.ld, R.at(k, 0), R.ld, k, complete, above,
                                    h, certificate.data};
    ctx.state().add_flops(2.0 * m * n * n);
    if (m <= Index{max_joined_blocks} * sweep_threads) {
        const auto joined = static_cast<unsigned>(std::max<Index>(1, ceil_div(m, Index{sweep_threads})));
        Message* const boxes = zeros<Message>(ctx, frame, 2 * sweep_cols * joined);
        Tolerances tolerances;
        for (Index j = 0; j < n; ++j) tolerances.at[j] = dependence<T>(k + j);
        return launch(ctx.stream(), all_sweeps_kernel<T>, {joined, sweep_threads, 0, 0, true}, operands, tolerances,
                      boxes);
    }
    double* const parts[2] = {frame.take<double>(n * blocks), frame.take<double>(n * blocks)};
    for (int t = 0; t <= n; ++t) {
        launch(ctx.stream(), sweep_kernel<T>, {blocks, sweep_threads}, operands, t, dependence<T>(k + t - 1),
               parts[(t + 1) % 2], parts[t % 2]);
    }
}

template <class T, class D>
Remainders inspect_remainders(Context<D>& ctx, View<const T, D> R) {
    const Index n = R.cols, k = R.rows - n;
    Remainders remainders;
    if (n == 0) return remainders;
    Arena::Frame frame(ctx);
    const ColumnSquares* const found = ctx.state().read_back(find_squares<T>(ctx, frame, R, k, true), n);
    for (Index j = 0; j < n; ++j) remainders.count(found[j].kept, std::sqrt(found[j].square), dependence<T>(k + j));
    return remainders;
}

QUOIN_IMPLEMENT(Cuda, orthonormalize_columns, inspect_remainders)

}  // namespace quoin
