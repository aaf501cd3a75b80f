#include "cuda/cholesky/sketch.cuh"

#include "cuda/elements/elementwise.cuh"
#include "cuda/elements/warp_sums.cuh"
#include "cuda/products/sum_parts.hpp"
#include "cuda/runtime/blas.hpp"
#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/state.hpp"
#include "cuda/tuning.hpp"

namespace quoin {

using namespace cuda;

static_assert(sketch_parts * sketch_segments(Tuning<Cuda>::max_sketch_cols) <= max_sketch_segments);

namespace {

/// size ‖r_j‖, a warp a column.
__global__ void __launch_bounds__(32)
    perturbation_sizes_kernel(MatrixView<const double, Cuda> R, double size, double* sizes) {
    const Index j = blockIdx.x;
    double squares = 0;
    for (Index i = threadIdx.x; i <= j; i += 32) {
        const double r = R.data[i + j * R.ld];
        squares = fma(r, r, squares);
    }
    squares = warp_sum(squares);
    if (threadIdx.x == 0) sizes[j] = size * sqrt(squares);
}

/// exponents(j) := 0 where column j is not zero.
template <class T>
__global__ void __launch_bounds__(256) find_nonzero_columns_kernel(MatrixView<const T, Cuda> A, int* exponents) {
    for (Index j = blockIdx.y; j < A.cols; j += gridDim.y) {
        bool is_zero = true;
        for (Index i = blockIdx.x * Index(blockDim.x) + threadIdx.x; i < A.rows; i += Index(gridDim.x) * blockDim.x)
            is_zero = is_zero && A.data[i + j * A.ld] == 0;
        if (!__syncthreads_and(is_zero) && threadIdx.x == 0) exponents[j] = 0;
    }
}

/// A := A + W diag(sizes), W of signs.
template <class T>
void add_signs(Context<Cuda>& ctx, Index seed, const double* sizes, MatrixView<T, Cuda> A) {
    for_each_element(ctx, A.rows, A.cols, [=] __device__(Index i, Index j) {
        if (sizes[j] == 0) return;
        const bool minus = perturbation_signs(i, j / 32, seed) >> (j % 32) & 1;
        A.data[i + j * A.ld] += static_cast<T>(minus ? -sizes[j] : sizes[j]);
    });
}

}  // namespace

template <class T, class D>
void sketch(Context<D>& ctx, View<const T, D> A, Index seed, View<Sum<T, D>, D> B) {
    const int n = static_cast<int>(A.cols);
    if (n == 0) return;
    if (B.rows == A.rows) {
        return for_each_element(ctx, B.rows, B.cols,
                                [=] __device__(Index i, Index j) { B.data[i + j * B.ld] = A.data[i + j * A.ld]; });
    }
    const int segments = static_cast<int>(B.rows / sketch_rows(1));
    const Kernels& kernels = ctx.state().kernels;
    const SketchGrid grid(A.rows, n, B.rows, kernels.multiprocessors, kernels.shared_bytes - 3072);
    Arena::Frame frame(ctx);
    double* const parts = frame.take<double>(grid.parts * B.rows * B.cols);
    cuda::sketch<T>(ctx, A, seed, segments, grid, parts);
    sum_parts<double, double>(ctx, grid.parts, parts, false, false, B);
    ctx.state().add_flops(static_cast<double>(sketch_parts) * A.rows * n);
}

template <class T, class D>
void set_random_signs(Context<D>& ctx, std::uint64_t seed, View<T, D> A) {
    for_each_element(ctx, A.rows, A.cols, [=] __device__(Index i, Index j) {
        A.data[i + j * A.ld] = random_signs(seed, A.rows, i / 64, j) >> (i % 64) & 1 ? T(-1) : T(1);
    });
}

template <class T, class D>
void perturb(Context<D>& ctx, Perturbation W, double size, View<const Sum<T, D>, D> R, Index seed, View<T, D> A) {
    if (A.cols == 0) return;
    Arena::Frame frame(ctx);
    double* const sizes = frame.take<double>(A.cols);
    launch(ctx.stream(), perturbation_sizes_kernel, {static_cast<unsigned>(small_size(A.cols)), 32}, R, size, sizes);
    if (W == Perturbation::Identity) {
        return for_each_element(ctx, std::min(A.rows, A.cols), 1,
                                [=] __device__(Index j, Index) { A.data[j + j * A.ld] += static_cast<T>(sizes[j]); });
    }
    add_signs<T>(ctx, seed, sizes, A);
}

template <class T, class D>
void fill_zero_columns(Context<D>& ctx, double size, Index seed, View<T, D> A, View<int, D> exponents) {
    if (A.empty()) return;
    for_each_element(ctx, A.cols, 1, [=] __device__(Index j, Index) { exponents.data[j] = clearing_exponent; });
    const dim3 grid(static_cast<unsigned>(std::min<Index>((A.rows + 4095) / 4096, 1024)),
                    static_cast<unsigned>(std::min<Index>(A.cols, 65535)));
    launch(ctx.stream(), find_nonzero_columns_kernel<T>, {grid, 256}, A, exponents.data);
    Arena::Frame frame(ctx);
    double* const sizes = frame.take<double>(A.cols);
    for_each_element(ctx, A.cols, 1,
                     [=] __device__(Index j, Index) { sizes[j] = exponents.data[j] == 0 ? 0.0 : size; });
    add_signs<T>(ctx, seed, sizes, A);
}

QUOIN_IMPLEMENT(Cuda, sketch, set_random_signs, perturb, fill_zero_columns)

}  // namespace quoin
