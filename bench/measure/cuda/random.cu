#include "measure/cuda/random.hpp"

#include "cuda/runtime/error.hpp"
#include "measure/cuda/noise.cuh"

namespace quoin::bench {

template <class T>
ColumnSource<T> normal_columns(Context<Cuda>& ctx) {
    return [&ctx](Range cols, MatrixView<T, Cuda> block) {
        fill_with_noise(cols.begin * block.rows, block, ctx.stream());
        QUOIN_CUDA_CHECK(cudaGetLastError());
    };
}

template <class T>
void fill_normal(Context<Cuda>& ctx, Matrix<T, Cuda>& A) {
    normal_columns<T>(ctx)({0, A.cols()}, A.view());
}

template ColumnSource<float> normal_columns(Context<Cuda>&);
template ColumnSource<double> normal_columns(Context<Cuda>&);
template void fill_normal(Context<Cuda>&, Matrix<float, Cuda>&);
template void fill_normal(Context<Cuda>&, Matrix<double, Cuda>&);

}  // namespace quoin::bench
