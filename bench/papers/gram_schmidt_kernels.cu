#include "papers/gram_schmidt_kernels.hpp"

#include <algorithm>

#include "cuda/elements/elementwise.cuh"
#include "cuda/runtime/blas.hpp"
#include "cuda/runtime/launch.hpp"

namespace quoin::bench {

namespace {

template <class T>
__device__ T* shared_memory() {
    extern __shared__ double memory[];
    return reinterpret_cast<T*>(memory);
}

/// shared: ny·nx sums, and nx entries of q_i.
template <class T, bool shared>
__global__ void __launch_bounds__(1024)
    dot_products_kernel(MatrixView<const T, Cuda> Q, MatrixView<T, Cuda> R, Index i) {
    T* const RS = shared_memory<T>() + threadIdx.y * blockDim.x;
    T* const qi = shared_memory<T>() + blockDim.x * blockDim.y;
    const int tx = threadIdx.x, nx = blockDim.x;
    const Index j = i + Index(blockIdx.x) * blockDim.y + threadIdx.y;
    T sum = 0;
    for (Index k0 = 0; k0 < Q.rows; k0 += nx) {
        const Index k = k0 + tx;
        if (shared) {
            if (threadIdx.y == 0 && k < Q.rows) qi[tx] = Q.data[k + i * Q.ld];
            __syncthreads();
        }
        if (k < Q.rows && j < Q.cols) sum += (shared ? qi[tx] : Q.data[k + i * Q.ld]) * Q.data[k + j * Q.ld];
        if (shared) __syncthreads();
    }
    RS[tx] = sum;
    for (int half = nx / 2; half > 0; half /= 2) {
        __syncthreads();
        if (tx < half) RS[tx] += RS[tx + half];
    }
    if (tx == 0 && j < Q.cols) R.data[i + j * R.ld] = j == i ? sqrt(RS[0]) : RS[0];
}

/// shared: ny entries of R's row, and nx of q_i.
template <class T, bool shared>
__global__ void __launch_bounds__(1024)
    orthogonalize_kernel(MatrixView<T, Cuda> Q, MatrixView<const T, Cuda> R, Index i) {
    T *const ri = shared_memory<T>(), *const qi = ri + blockDim.y;
    const int tx = threadIdx.x, ty = threadIdx.y, nx = blockDim.x;
    const Index j = i + 1 + Index(blockIdx.x) * blockDim.y + ty;
    if (shared && tx == 0 && j < Q.cols) ri[ty] = R.data[i + j * R.ld];
    for (Index k0 = 0; k0 < Q.rows; k0 += nx) {
        const Index k = k0 + tx;
        if (shared) {
            if (ty == 0 && k < Q.rows) qi[tx] = Q.data[k + i * Q.ld];
            __syncthreads();
        }
        if (k < Q.rows && j < Q.cols) {
            Q.data[k + j * Q.ld] -= (shared ? qi[tx] : Q.data[k + i * Q.ld]) * (shared ? ri[ty] : R.data[i + j * R.ld]);
        }
        if (shared) __syncthreads();
    }
}

/// r := √r, inverse := 1/r.
template <class T>
void take_root(Context<Cuda>& ctx, T* r, T* inverse) {
    cuda::for_each_element(ctx, 1, 1, [=] __device__(Index, Index) {
        *r = sqrt(*r);
        *inverse = 1 / *r;
    });
}

unsigned blocks_of(Index columns, BlockShape shape) {
    return static_cast<unsigned>((columns + shape.ny - 1) / shape.ny);
}

}  // namespace

template <class T>
void dot_products(Context<Cuda>& ctx, MatrixView<const T, Cuda> Q, MatrixView<T, Cuda> R, Index i, BlockShape shape,
                  Access access) {
    const auto kernel = access == Access::Shared ? dot_products_kernel<T, true> : dot_products_kernel<T, false>;
    const dim3 threads(static_cast<unsigned>(shape.nx), static_cast<unsigned>(shape.ny));
    const std::size_t bytes = sizeof(T) * static_cast<std::size_t>(shape.nx * (shape.ny + 1));
    cuda::launch(ctx.stream(), kernel, {blocks_of(Q.cols - i, shape), threads, bytes}, Q, R, i);
}

template <class T>
void orthogonalize(Context<Cuda>& ctx, MatrixView<T, Cuda> Q, MatrixView<const T, Cuda> R, Index i, BlockShape shape,
                   Access access) {
    if (i + 1 == Q.cols) return;
    const auto kernel = access == Access::Shared ? orthogonalize_kernel<T, true> : orthogonalize_kernel<T, false>;
    const dim3 threads(static_cast<unsigned>(shape.nx), static_cast<unsigned>(shape.ny));
    const std::size_t bytes = sizeof(T) * static_cast<std::size_t>(shape.nx + shape.ny);
    cuda::launch(ctx.stream(), kernel, {blocks_of(Q.cols - i - 1, shape), threads, bytes}, Q, R, i);
}

template <class T>
void mgs_native(Context<Cuda>& ctx, MatrixView<T, Cuda> Q, MatrixView<T, Cuda> R, BlockShape dots, Access dots_access,
                BlockShape updates, Access updates_access) {
    for (Index i = 0; i < Q.cols; ++i) {
        dot_products<T>(ctx, Q, R, i, dots, dots_access);
        // q_i := q_i / r_ii,   r_ij := r_ij / r_ii
        const Index left = Q.cols - i - 1;
        cuda::for_each_element(ctx, std::max(Q.rows, left), 2, [=] __device__(Index k, Index what) {
            const T r = R.data[i + i * R.ld];
            if (what == 0 && k < Q.rows) Q.data[k + i * Q.ld] /= r;
            if (what == 1 && k < left) R.data[i + (i + 1 + k) * R.ld] /= r;
        });
        orthogonalize<T>(ctx, Q, R, i, updates, updates_access);
    }
}

template <class T>
void mgs_cublas(Context<Cuda>& ctx, MatrixView<T, Cuda> Q, MatrixView<T, Cuda> R) {
    const Index m = Q.rows, n = Q.cols;
    const cublasHandle_t blas = ctx.state().blas();
    Matrix<T, Cuda> numbers(ctx, 4, 1);
    T *const one = numbers.data(), *const zero = one + 1, *const minus_one = one + 2, *const inverse = one + 3;
    cuda::for_each_element(ctx, 3, 1, [=] __device__(Index k, Index) {
        one[k] = k == 0 ? T(1) : k == 1 ? T(0) : T(-1);
    });
    cuda::check(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE), "cublasSetPointerMode");
    for (Index i = 0; i < n; ++i) {
        T *const q = Q.at(0, i), *const r = R.at(i, i);
        const auto call = [&](auto gemv, auto scal, auto ger) {
            cuda::check(gemv(blas, CUBLAS_OP_T, m, n - i, one, q, Q.ld, q, Index(1), zero, r, R.ld), "gemv");
            take_root(ctx, r, inverse);
            cuda::check(scal(blas, m, inverse, q, Index(1)), "scal");
            if (i + 1 == n) return;
            cuda::check(scal(blas, n - i - 1, inverse, r + R.ld, R.ld), "scal");
            cuda::check(ger(blas, m, n - i - 1, minus_one, q, Index(1), r + R.ld, R.ld, Q.at(0, i + 1), Q.ld), "ger");
        };
        if constexpr (sizeof(T) == 8) {
            call(cublasDgemv_64, cublasDscal_64, cublasDger_64);
        } else {
            call(cublasSgemv_64, cublasSscal_64, cublasSger_64);
        }
    }
    cuda::check(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_HOST), "cublasSetPointerMode");
}

#define QUOIN_INSTANTIATE(T)                                                                                          \
    template void dot_products<T>(Context<Cuda>&, MatrixView<const T, Cuda>, MatrixView<T, Cuda>, Index, BlockShape,  \
                                  Access);                                                                            \
    template void orthogonalize<T>(Context<Cuda>&, MatrixView<T, Cuda>, MatrixView<const T, Cuda>, Index, BlockShape, \
                                   Access);                                                                           \
    template void mgs_native<T>(Context<Cuda>&, MatrixView<T, Cuda>, MatrixView<T, Cuda>, BlockShape, Access,         \
                                BlockShape, Access);                                                                  \
    template void mgs_cublas<T>(Context<Cuda>&, MatrixView<T, Cuda>, MatrixView<T, Cuda>);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin::bench
