#include "cuda/observed.cuh"

#include <cmath>

#include "cuda/elementwise.cuh"
#include "cuda/primitives.hpp"

namespace quoin {

using namespace cuda;

namespace {

struct AddAndMax {
    __device__ void operator()(Triple& x, Triple y) const {
        x.a += y.a;
        x.b += y.b;
        x.c = fmax(x.c, y.c);
    }
};

}  // namespace

template <class T>
EntryNorms entry_norms(Context<Cuda>& ctx, MatrixView<const T, Cuda> M, MatrixView<const std::uint8_t, Cuda> observed) {
    Arena::Frame frame(ctx);
    EntryNorms* const norms = frame.take<EntryNorms>(1);
    over_chunks(
        ctx, M.rows, M.cols,
        [=] __device__(Index first, Index m, Index j, Triple & sums) {
#pragma unroll
            for (int piece = 0; piece < chunk_pieces; ++piece) {
                const Index i = first + piece * chunk_threads;
                if (i >= m || !seen(observed, i, j)) continue;
                const double x = fabs(static_cast<double>(M.data[i + j * M.ld]));
                AddAndMax()(sums, {x * x, x, x});
            }
        },
        AddAndMax(),
        [=] __device__(Triple sums) {
            *norms = {sums.a, sums.b, sums.c};
        });
    return *ctx.state().read_back(norms, 1);
}

template <class T>
void scaled_copy(Context<Cuda>& ctx, double factor, MatrixView<const T, Cuda> A,
                 MatrixView<const std::uint8_t, Cuda> observed, MatrixView<T, Cuda> B) {
    const T f = static_cast<T>(factor);
    for_each_element(ctx, A.rows, A.cols, [=] __device__(Index i, Index j) {
        B.data[i + j * B.ld] = seen(observed, i, j) ? f * A.data[i + j * A.ld] : T(0);
    });
}

#define QUOIN_INSTANTIATE(T)                                                        \
    template EntryNorms entry_norms<T>(Context<Cuda>&, MatrixView<const T, Cuda>,   \
                                       MatrixView<const std::uint8_t, Cuda>);       \
    template void scaled_copy<T>(Context<Cuda>&, double, MatrixView<const T, Cuda>, \
                                 MatrixView<const std::uint8_t, Cuda>, MatrixView<T, Cuda>);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
