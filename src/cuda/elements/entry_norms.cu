// entry_norms, by chunks.cuh: 1 read of M. Bound by memory.

#include <cmath>

#include "cuda/elements/chunks.cuh"
#include "cuda/elements/elementwise.cuh"
#include "cuda/runtime/device.hpp"

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

template <class T, class D>
EntryNorms entry_norms(Context<D>& ctx, View<const T, D> M) {
    Arena::Frame frame(ctx);
    EntryNorms* const norms = frame.take<EntryNorms>(1);
    over_chunks(
        ctx, M.rows, M.cols,
        [=] __device__(Index first, Index m, Index j, Triple & sums) {
#pragma unroll
            for (int piece = 0; piece < chunk_pieces; ++piece) {
                const Index i = first + piece * chunk_threads;
                if (i >= m) continue;
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

template <class T, class D>
void scaled_copy(Context<D>& ctx, double factor, View<const T, D> A, View<T, D> B) {
    const T f = static_cast<T>(factor);
    for_each_element(ctx, A.rows, A.cols,
                     [=] __device__(Index i, Index j) { B.data[i + j * B.ld] = f * A.data[i + j * A.ld]; });
}

QUOIN_IMPLEMENT(Cuda, entry_norms, scaled_copy)

}  // namespace quoin
