// Gram-Schmidt a few columns at a time (kernels/orthonormalize.cuh).

#include <algorithm>
#include <cmath>

#include "cuda/kernels/orthonormalize.cuh"
#include "cuda/primitives.hpp"
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
    column_squares<T><<<blocks, squares_threads, 0, ctx.stream()>>>(R, k, with_triangle, found);
    check_launch("column_squares");
    return found;
}

}  // namespace

template <class T>
void orthonormalize_columns(Context<Cuda>& ctx, MatrixView<T, Cuda> A, MatrixView<T, Cuda> R, bool complete,
                            Gate<Cuda> gate) {
    const Index m = A.rows, n = A.cols, k = R.rows - n;
    if (n == 0) return;
    Arena::Frame frame(ctx);
    // two blocks a multiprocessor, of whole rounds of their threads
    const Index share = (m + 2 * ctx.state().multiprocessors - 1) / (2 * ctx.state().multiprocessors);
    const Index h = std::max<Index>(1, (share + sweep_threads - 1) / sweep_threads) * sweep_threads;
    const auto blocks = static_cast<unsigned>((m + h - 1) / h);
    const ColumnSquares* const above = find_squares<T>(ctx, frame, R, k, false);
    double* const parts[2] = {frame.take<double>(n * blocks), frame.take<double>(n * blocks)};
    const SweepOperands<T> operands{
        m, static_cast<int>(n), A.data, A.ld, R.at(k, 0), R.ld, k, complete, above, h, gate.data};
    for (int t = 0; t <= n; ++t) {
        sweep<T><<<blocks, sweep_threads, 0, ctx.stream()>>>(operands, t, dependence<T>(k + t - 1), parts[(t + 1) % 2],
                                                             parts[t % 2]);
        check_launch("sweep");
    }
    ctx.state().add_flops(2.0 * m * n * n);
}

template <class T>
Remainders inspect_remainders(Context<Cuda>& ctx, MatrixView<const T, Cuda> R) {
    const Index n = R.cols, k = R.rows - n;
    Remainders remainders;
    if (n == 0) return remainders;
    Arena::Frame frame(ctx);
    const ColumnSquares* const found = ctx.state().read_back(find_squares<T>(ctx, frame, R, k, true), n);
    for (Index j = 0; j < n; ++j) remainders.count(found[j].kept, std::sqrt(found[j].square), dependence<T>(k + j));
    return remainders;
}

#define QUOIN_INSTANTIATE(T)                                                                                \
    template void orthonormalize_columns<T>(Context<Cuda>&, MatrixView<T, Cuda>, MatrixView<T, Cuda>, bool, \
                                            Gate<Cuda>);                                                    \
    template Remainders inspect_remainders<T>(Context<Cuda>&, MatrixView<const T, Cuda>);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
