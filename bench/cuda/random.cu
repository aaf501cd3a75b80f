#include "random.hpp"

#include "cuda/error.hpp"
#include "noise.cuh"

namespace quoin::bench {

template <class T>
void fill_normal(Context<Cuda>& ctx, Matrix<T, Cuda>& A) {
    fill_with_noise(A.rows() * A.cols(), A.data(), ctx.stream());
    cuda::check_launch("fill_with_noise");
}

template void fill_normal(Context<Cuda>&, Matrix<float, Cuda>&);
template void fill_normal(Context<Cuda>&, Matrix<double, Cuda>&);

}  // namespace quoin::bench
