// Cholesky's factorization of a Gram matrix that meets its demands: up to 192 columns by cholesky/factor_gram.cuh,
// beyond by cuSOLVER's potrf between
//
//   inspect_upper_kernel  one block; warp w adds the columns w, w + 32, … of the upper triangle, and the block its
//                         threads' sums in a fixed tree. n²/2 reads; bound by latency up to n ~ 500.
//   find_pivot_kernel     one block; the first column whose pivot fails, a minimum over threads.
//   decide_kernel         one warp; compares the results of inspect_upper_kernel and find_pivot_kernel with the
//                         demands.

#include "cuda/cholesky/factor_gram.cuh"
#include "cuda/elements/elementwise.cuh"
#include "cuda/runtime/blas.hpp"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/solver.hpp"
#include "cuda/triangles/triangle_columns.cuh"

namespace quoin {
namespace {

using namespace cuda;

constexpr int block_threads = 1024;

/// x[0] := Σ x, in a fixed tree. Every thread of the block calls it.
__device__ double block_sum(double value, double* x) {
    x[threadIdx.x] = value;
    __syncthreads();
    for (int half = block_threads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) x[threadIdx.x] += x[threadIdx.x + half];
        __syncthreads();
    }
    return x[0];
}

/// Sums over a Gram matrix before it is factored.
struct Inspection {
    Index unusable = -1, failed = -1;
    double departure = 0, trace = 0;
};

__global__ void __launch_bounds__(block_threads)
    inspect_upper_kernel(MatrixView<const double, Cuda> G, double low, double high, Inspection* found) {
    __shared__ double squares[block_threads], diagonal[block_threads];
    __shared__ int first;
    if (threadIdx.x == 0) first = static_cast<int>(G.cols);
    __syncthreads();
    double sum = 0, trace = 0;
    for (Index j = threadIdx.x / 32; j < G.cols; j += block_threads / 32) {
#pragma unroll 8
        for (Index i = threadIdx.x % 32; i <= j; i += 32) {
            const double g = G.data[i + j * G.ld];
            sum += i < j ? 2 * g * g : (1 - g) * (1 - g);
            if (i < j) continue;
            trace += g;
            if (!(g > low && g < high)) atomicMin(&first, static_cast<int>(j));
        }
    }
    sum = block_sum(sum, squares);
    trace = block_sum(trace, diagonal);
    if (threadIdx.x == 0) *found = {first < G.cols ? first : -1, -1, sqrt(sum), trace};
}

/// The first j whose r_jj is not positive and finite, or where potrf stopped (info − 1); −1 if none.
__global__ void __launch_bounds__(block_threads)
    find_pivot_kernel(MatrixView<const double, Cuda> R, const int* info, Inspection* found) {
    __shared__ int first;
    const int n = static_cast<int>(R.cols), reached = *info > 0 ? *info - 1 : n;
    if (threadIdx.x == 0) first = reached;
    __syncthreads();
    for (int j = threadIdx.x; j < reached; j += block_threads) {
        const double r = R.data[j + j * R.ld];
        if (!(r > 0) || !isfinite(r)) atomicMin(&first, j);
    }
    __syncthreads();
    if (threadIdx.x == 0) found->failed = first < n ? first : -1;
}

/// Writes the certificate. `squares`: the squared norms of the columns of (RD)⁻¹, if κ is demanded.
__global__ void __launch_bounds__(32) decide_kernel(const Inspection* found, GramDemands demands, int n,
                                                    const double* squares, Certificate* certificate) {
    // κ_F(RD)² = ‖RD‖_F² ‖(RD)⁻¹‖_F² = n ‖(RD)⁻¹‖_F²
    double square = 0;
    for (int j = threadIdx.x; j < n && demands.asks_condition(); j += 32) square += squares[j];
    square = warp_sum(square);
    if (threadIdx.x > 0 || (demands.step > 0 && certificate->refused())) return;
    if (demands.step == 0) *certificate = {};
    certificate->departure = found->departure;
    certificate->factor_condition = condition_by_departure(demands, n, found->departure);
    if (found->unusable >= 0) return certificate->refuse(demands.step, Certificate::Unusable, found->unusable);
    if (!(found->trace <= demands.max_trace)) return certificate->refuse(demands.step, Certificate::Trace, -1);
    if (!(found->departure <= demands.max_departure))
        return certificate->refuse(demands.step, Certificate::Departure, -1);
    if (found->failed >= 0) return certificate->refuse(demands.step, Certificate::Pivot, found->failed);
    if (!demands.asks_condition()) return;
    certificate->condition = certificate->factor_condition = sqrt(n * square);
    if (!(certificate->condition < demands.max_condition))
        certificate->refuse(demands.step, Certificate::Condition, -1);
}

/// Factors a Gram matrix of any width by cuSOLVER and cuBLAS.
void factor_gram_wide(Context<Cuda>& ctx, MatrixView<double, Cuda> G, double low, double high,
                      const GramDemands& demands, MatrixView<double, Cuda> R, Certificate* certificate) {
    const Index n = G.cols;
    auto& state = ctx.state();
    Arena::Frame frame(ctx);
    Inspection* found = frame.take<Inspection>(1);
    launch(ctx.stream(), inspect_upper_kernel, {1, block_threads}, G, low, high, found);
    const auto S = frame.matrix<double>(n, n);
    copy<double>(ctx, G, S);
    int size = 0;
    const int width = small_size(n);
    QUOIN_CUDA_CHECK(cusolverDnDpotrf_bufferSize(state.solver(), CUBLAS_FILL_MODE_UPPER, width, S.data, width, &size));
    double* work = frame.take<double>(size);
    int* info = frame.take<int>(1);
    QUOIN_CUDA_CHECK(cusolverDnDpotrf(state.solver(), CUBLAS_FILL_MODE_UPPER, width, S.data, width, work, size, info));
    launch(ctx.stream(), find_pivot_kernel, {1, block_threads}, S, info, found);
    for_each_element(ctx, n, n, [=] __device__(Index i, Index j) {
        if (demands.step == 0 || !certificate->refused()) R.data[i + j * R.ld] = i <= j ? S.data[i + j * n] : 0.0;
    });
    double* squares = frame.take<double>(n);
    if (demands.asks_condition()) {
        const auto W = frame.matrix<double>(n, n);
        launch(ctx.stream(), unit_columns_kernel<double>, {static_cast<unsigned>(width), 32}, R, W, ColumnScales(),
               static_cast<double*>(nullptr));
        // S = W⁻¹
        set_identity<double>(ctx, 0, S);
        trsm<double>(ctx, Side::Left, Triangle::Upper, Op::None, W, S);
        launch(ctx.stream(), column_sums_kernel<true, double>, {static_cast<unsigned>(width), 32}, S, squares);
    }
    launch(ctx.stream(), decide_kernel, {1, 32}, found, demands, width, squares, certificate);
}

/// Factors a Gram matrix of any width under all demands but the one on an eigenvalue.
void factor(Context<Cuda>& ctx, MatrixView<double, Cuda> G, double low, double high, const GramDemands& demands,
            MatrixView<double, Cuda> R, Certificate* certificate) {
    if (choose_cholesky(G.cols, ctx.state().kernels) == SquareKernel::Library)
        return factor_gram_wide(ctx, G, low, high, demands, R, certificate);
    cuda::factor_gram(ctx, G, low, high, demands, R, certificate);
}

/// Refuses a certificate if the one of G − λ diag(G) is refused.
__global__ void demand_eigenvalue_kernel(const Certificate* shifted, int step, Certificate* certificate) {
    if (shifted->refused() && !certificate->refused())
        certificate->refuse(step, Certificate::Eigenvalue, shifted->column);
}

}  // namespace

template <class T, class D>
void factor_gram(Context<D>& ctx, View<Sum<T, D>, D> G, GramDemands demands, View<Sum<T, D>, D> R,
                 CertificateView<D> certificate) {
    const Index n = G.cols;
    constexpr double low = smallest_square<T>, high = largest_square<T>;
    if (n == 0) return;
    Arena::Frame frame(ctx);
    Certificate* shifted = nullptr;
    if (const double least = demands.min_eigenvalue; least > 0) {
        const auto S = frame.matrix<double>(n, n);
        for_each_element(ctx, n, n, [=] __device__(Index i, Index j) {
            if (i <= j) S.data[i + j * n] = G.data[i + j * G.ld] * (i == j ? 1 - least : 1.0);
        });
        shifted = frame.take<Certificate>(1);
        factor(ctx, S, low, high, {}, S, shifted);
    }
    factor(ctx, G, low, high, demands, R, certificate.data);
    if (shifted) {
        launch(ctx.stream(), demand_eigenvalue_kernel, {1, 1}, shifted, demands.step, certificate.data);
    }
    ctx.state().add_flops((demands.asks_condition() ? 2.0 : 1.0) / 3.0 * n * n * n);
}

QUOIN_IMPLEMENT(Cuda, factor_gram)

}  // namespace quoin
