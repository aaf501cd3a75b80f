// multiply_columns: 1 read of A, 1 write of B. Bound by memory.

#include "cuda/elements/elementwise.cuh"
#include "cuda/runtime/device.hpp"

namespace quoin {

template <class S, class T, class D>
void multiply_columns(Context<D>& ctx, View<const S, D> A, View<const double, D> factors, View<T, D> B) {
    cuda::for_each_element(ctx, A.rows, A.cols, [=] __device__(Index i, Index j) {
        B.data[i + j * B.ld] = static_cast<T>(factors.data[j] * A.data[i + j * A.ld]);
    });
}

template decltype(multiply_columns<double, float, Cuda>) multiply_columns<double, float, Cuda>;
template decltype(multiply_columns<float, double, Cuda>) multiply_columns<float, double, Cuda>;

}  // namespace quoin
