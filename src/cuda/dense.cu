// Small dense steps on n×n matrices: cuSOLVER's potrf, cuBLAS's trsm and trmm, and kernels of their own.
//
//   inspect_upper   one block; thread t adds the entries t, t + 1024, … of the upper triangle, and the block its threads'
//                   sums in a fixed tree. n² reads; bound by latency up to n ~ 500.
//   find_pivot      one block; the first column whose pivot fails, a minimum over threads.
//   unit_columns, column_sums   one warp a column, its sum in a fixed tree; n² reads, bound by latency.
//   lu_diagonal     one block of 32×32 threads, one an element, for a 32×32 diagonal block in shared memory (two barriers
//                   a column): bound by latency, about 3 µs.
//   lu_border       one thread a row of L₂₁ (blockIdx.y = 0) or a column of U₁₂ (1), its 32 entries in registers, the
//                   diagonal block in shared memory; 32² flops a thread.

#include <cmath>
#include <limits>

#include "cuda/blas.hpp"
#include "cuda/elementwise.cuh"
#include "cuda/primitives.hpp"

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

template <class T>
struct Limits {
    static constexpr T u = std::numeric_limits<T>::epsilon() / 2;
    static constexpr T low = std::numeric_limits<T>::min() / (u * u), high = std::numeric_limits<T>::max() * u;
};

template <class T>
__global__ void __launch_bounds__(block_threads) inspect_upper(MatrixView<const T, Cuda> G, GramInspection* found) {
    __shared__ double squares[block_threads], diagonal[block_threads];
    __shared__ int first;
    if (threadIdx.x == 0) first = static_cast<int>(G.cols);
    __syncthreads();
    constexpr T low = Limits<T>::low, high = Limits<T>::high;
    double sum = 0, trace = 0;
    for (Index at = threadIdx.x; at < G.rows * G.cols; at += block_threads) {
        const Index i = at % G.rows, j = at / G.rows;
        const T g = G.data[i + j * G.ld];
        if (i < j) sum += 2.0 * g * g;
        if (i == j) {
            sum += (1.0 - g) * (1.0 - g);
            trace += g;
            if (!(g > low && g < high)) atomicMin(&first, static_cast<int>(j));
        }
    }
    sum = block_sum(sum, squares);
    trace = block_sum(trace, diagonal);
    if (threadIdx.x == 0) *found = {first < G.cols ? first : -1, sqrt(sum), trace};
}

/// column := the first j with r_jj² not above tolerance·g_jj, or where potrf stopped (info − 1); −1 if none.
template <class T>
__global__ void __launch_bounds__(block_threads)
    find_pivot(MatrixView<const T, Cuda> R, const T* original, T tolerance, const int* info, Index* column) {
    __shared__ int first;
    const int n = static_cast<int>(R.cols), reached = *info > 0 ? *info - 1 : n;
    if (threadIdx.x == 0) first = reached;
    __syncthreads();
    for (int j = threadIdx.x; j < reached; j += block_threads) {
        const T r = R.data[j + j * R.ld];
        if (!(r * r > tolerance * original[j]) || !isfinite(r)) atomicMin(&first, j);
    }
    __syncthreads();
    if (threadIdx.x == 0) *column = first < n ? first : -1;
}

/// W := R D of an upper triangular R, where D scales its columns to unit norm; zeros below. One warp a column.
template <class T>
__global__ void __launch_bounds__(32) unit_columns(MatrixView<const T, Cuda> R, MatrixView<double, Cuda> W) {
    const Index j = blockIdx.x;
    double top = 0, square = 0;
    for (Index i = threadIdx.x; i <= j; i += 32) top = fmax(top, fabs(static_cast<double>(R.data[i + j * R.ld])));
    for (int step = 16; step > 0; step /= 2) top = fmax(top, __shfl_xor_sync(~0u, top, step));
    // ‖r‖ = top ‖r / top‖
    for (Index i = threadIdx.x; i <= j; i += 32) {
        const double r = static_cast<double>(R.data[i + j * R.ld]) / top;
        square += r * r;
    }
    for (int step = 16; step > 0; step /= 2) square += __shfl_xor_sync(~0u, square, step);
    const double norm = sqrt(square);
    for (Index i = threadIdx.x; i < R.rows; i += 32) {
        W.data[i + j * W.ld] = i <= j ? static_cast<double>(R.data[i + j * R.ld]) / top / norm : 0.0;
    }
}

/// sums[j] := Σ_i |A_ij|. One warp a column.
template <class T>
__global__ void __launch_bounds__(32) column_sums(MatrixView<const T, Cuda> A, double* sums) {
    const Index j = blockIdx.x;
    double sum = 0;
    for (Index i = threadIdx.x; i < A.rows; i += 32) sum += fabs(static_cast<double>(A.data[i + j * A.ld]));
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x == 0) sums[j] = sum;
}

constexpr int lu_width = 32, border_threads = 64;

/// Q (k×k, k <= 32) − diag(signs) = L U in place.
template <class T>
__global__ void __launch_bounds__(lu_width* lu_width) lu_diagonal(int k, T* Q, Index ldq, T* signs) {
    __shared__ T A[lu_width][lu_width + 1];
    const int i = threadIdx.x % lu_width, j = threadIdx.x / lu_width;
    const bool inside = i < k && j < k;
    if (inside) A[j][i] = Q[i + j * ldq];
    __syncthreads();
    for (int c = 0; c < k; ++c) {
        const T q = A[c][c], sign = q >= 0 ? T(-1) : T(1), pivot = q - sign;
        __syncthreads();
        if (i == c && j == c) {
            A[c][c] = pivot;
            signs[c] = sign;
        }
        if (inside && i > c && j == c) A[c][i] /= pivot;
        __syncthreads();
        if (inside && i > c && j > c) A[j][i] -= A[c][i] * A[j][c];
        __syncthreads();
    }
    if (inside) Q[i + j * ldq] = A[j][i];
}

/// With the diagonal block LU at the top left of Q (whole, 32×32): L₂₁ := Q₂₁ U⁻¹ and U₁₂ := L⁻¹ Q₁₂ for `rest` rows and
/// columns.
template <class T>
__global__ void __launch_bounds__(border_threads) lu_border(Index rest, T* Q, Index ldq) {
    __shared__ T A[lu_width][lu_width + 1];
    for (int at = threadIdx.x; at < lu_width * lu_width; at += border_threads) {
        A[at / lu_width][at % lu_width] = Q[at % lu_width + (at / lu_width) * ldq];
    }
    __syncthreads();
    const Index line = Index(blockIdx.x) * border_threads + threadIdx.x;
    if (line >= rest) return;
    const bool row = blockIdx.y == 0;
    T* q = row ? Q + lu_width + line : Q + (lu_width + line) * ldq;
    const Index step = row ? ldq : 1;
    T x[lu_width];
#pragma unroll
    for (int j = 0; j < lu_width; ++j) x[j] = q[j * step];
    if (row) {
        // x_j = (q_j − Σ_i x_i U_ij) / U_jj
#pragma unroll
        for (int j = 0; j < lu_width; ++j) {
#pragma unroll
            for (int i = 0; i < j; ++i) x[j] -= x[i] * A[j][i];
            x[j] /= A[j][j];
        }
    } else {
        // x_j = q_j − Σ_i L_ji x_i
#pragma unroll
        for (int j = 0; j < lu_width; ++j) {
#pragma unroll
            for (int i = 0; i < j; ++i) x[j] -= A[i][j] * x[i];
        }
    }
#pragma unroll
    for (int j = 0; j < lu_width; ++j) q[j * step] = x[j];
}

cusolverStatus_t potrf_size(cusolverDnHandle_t h, int n, double* A, int lda, int* size) {
    return cusolverDnDpotrf_bufferSize(h, CUBLAS_FILL_MODE_UPPER, n, A, lda, size);
}
cusolverStatus_t potrf_size(cusolverDnHandle_t h, int n, float* A, int lda, int* size) {
    return cusolverDnSpotrf_bufferSize(h, CUBLAS_FILL_MODE_UPPER, n, A, lda, size);
}
cusolverStatus_t potrf(cusolverDnHandle_t h, int n, double* A, int lda, double* work, int size, int* info) {
    return cusolverDnDpotrf(h, CUBLAS_FILL_MODE_UPPER, n, A, lda, work, size, info);
}
cusolverStatus_t potrf(cusolverDnHandle_t h, int n, float* A, int lda, float* work, int size, int* info) {
    return cusolverDnSpotrf(h, CUBLAS_FILL_MODE_UPPER, n, A, lda, work, size, info);
}

/// n of an n×n matrix whose bytes fit into any GPU: cuSOLVER and the kernels above count it in 32 bits.
int small_size(Index n) {
    if (n > (Index(1) << 20)) {
        throw InvalidArgument("a Gram matrix of " + std::to_string(n) + " columns is larger than any GPU's memory");
    }
    return static_cast<int>(n);
}

/// max x_j; a NaN stays.
double largest(const double* x, Index n) {
    double top = 0;
    for (Index j = 0; j < n; ++j) {
        if (!(x[j] <= top) && !std::isnan(top)) top = x[j];
    }
    return top;
}

}  // namespace

template <class T>
Index cholesky(Context<Cuda>& ctx, MatrixView<T, Cuda> G, T tolerance) {
    const Index n = G.cols;
    if (n == 0) return -1;
    auto& state = ctx.state();
    Arena::Frame frame(ctx);
    const auto original = frame.matrix<T>(n, 1);
    copy_diagonal<T>(ctx, G, original);
    // potrf counts leading dimensions in 32 bits
    const bool direct = G.ld <= std::numeric_limits<int>::max();
    const auto R = direct ? G : frame.matrix<T>(n, n);
    if (!direct) copy<T>(ctx, G, R);
    int size = 0;
    QUOIN_CUDA_CHECK(potrf_size(state.solver(), small_size(n), R.data, static_cast<int>(R.ld), &size));
    T* work = frame.take<T>(size);
    int* info = frame.take<int>(1);
    Index* column = frame.take<Index>(1);
    QUOIN_CUDA_CHECK(potrf(state.solver(), small_size(n), R.data, static_cast<int>(R.ld), work, size, info));
    find_pivot<T><<<1, block_threads, 0, ctx.stream()>>>(R, original.data, tolerance, info, column);
    check_launch("find_pivot");
    copy_triangle<T>(ctx, R, G);
    state.add_flops(1.0 / 3.0 * n * n * n);
    return *state.read_back(column, 1);
}

template <class T>
GramInspection inspect_gram(Context<Cuda>& ctx, MatrixView<const T, Cuda> G) {
    small_size(G.cols);
    Arena::Frame frame(ctx);
    GramInspection* found = frame.take<GramInspection>(1);
    inspect_upper<T><<<1, block_threads, 0, ctx.stream()>>>(G, found);
    check_launch("inspect_upper");
    return *ctx.state().read_back(found, 1);
}

template <class T>
void scale_diagonal(Context<Cuda>& ctx, T factor, MatrixView<T, Cuda> G) {
    for_each_element(ctx, G.cols, 1, [=] __device__(Index i, Index) { G.data[i + i * G.ld] *= factor; });
}

template <class T>
double scaled_condition_estimate(Context<Cuda>& ctx, MatrixView<const T, Cuda> R) {
    const Index n = R.cols;
    if (n == 0) return 1;
    Arena::Frame frame(ctx);
    const auto W = frame.matrix<double>(n, n), S = frame.matrix<double>(n, n);
    const auto grid = static_cast<unsigned>(small_size(n));
    double* sums = frame.take<double>(2 * n);
    unit_columns<T><<<grid, 32, 0, ctx.stream()>>>(R, W);
    check_launch("unit_columns");
    // S = W⁻¹
    set_identity<double>(ctx, 0, S);
    trsm<double>(ctx, Side::Left, Triangle::Upper, Op::None, W, S);
    column_sums<double><<<grid, 32, 0, ctx.stream()>>>(W, sums);
    check_launch("column_sums");
    column_sums<double><<<grid, 32, 0, ctx.stream()>>>(S, sums + n);
    check_launch("column_sums");
    const double* found = ctx.state().read_back(sums, 2 * n);
    return largest(found, n) * largest(found + n, n);
}

template <class T>
double inverse_norm_estimate(Context<Cuda>& ctx, MatrixView<const T, Cuda> LU) {
    const Index n = LU.cols;
    if (n == 0) return 0;
    Arena::Frame frame(ctx);
    const auto S = frame.matrix<T>(n, n);
    double* sums = frame.take<double>(n);
    // S = U⁻¹ L⁻¹
    set_identity<T>(ctx, 0, S);
    trsm<T>(ctx, Side::Left, Triangle::UnitLower, Op::None, LU, S);
    trsm<T>(ctx, Side::Left, Triangle::Upper, Op::None, LU, S);
    column_sums<T><<<static_cast<unsigned>(small_size(n)), 32, 0, ctx.stream()>>>(S, sums);
    check_launch("column_sums");
    return largest(ctx.state().read_back(sums, n), n);
}

template <class T>
void multiply_upper(Context<Cuda>& ctx, MatrixView<const T, Cuda> S, MatrixView<T, Cuda> R) {
    const Index n = R.rows;
    trmm_upper<T>(ctx, Side::Left, 1, S, R);
    ctx.state().add_flops(1.0 / 3.0 * n * n * n);
}

template <class T>
void signed_lu(Context<Cuda>& ctx, MatrixView<T, Cuda> Q, MatrixView<T, Cuda> signs) {
    const Index n = Q.rows;
    for (Index c = 0; c < n; c += lu_width) {
        const Index k = std::min<Index>(lu_width, n - c), rest = n - c - k;
        lu_diagonal<T>
            <<<1, lu_width * lu_width, 0, ctx.stream()>>>(static_cast<int>(k), Q.at(c, c), Q.ld, signs.at(c, 0));
        check_launch("lu_diagonal");
        if (rest == 0) break;
        const dim3 grid(static_cast<unsigned>((rest + border_threads - 1) / border_threads), 2);
        lu_border<T><<<grid, border_threads, 0, ctx.stream()>>>(rest, Q.at(c, c), Q.ld);
        check_launch("lu_border");
        // Q₂₂ −= L₂₁ U₁₂
        const Range next = {c + k, n}, here = {c, c + k};
        gemm<T>(ctx, Op::None, Op::None, -1, Q.block(next, here), Q.block(here, next), 1, Q.block(next, next));
    }
    ctx.state().add_flops(2.0 / 3.0 * n * n * n);
}

template <class T>
void solve_triangle(Context<Cuda>& ctx, Triangle triangle, Op op, MatrixView<const T, Cuda> A, MatrixView<T, Cuda> X) {
    trsm<T>(ctx, Side::Left, triangle, op, A, X);
    ctx.state().add_flops(1.0 * A.rows * A.rows * X.cols);
}

#define QUOIN_INSTANTIATE(T)                                                                         \
    template Index cholesky<T>(Context<Cuda>&, MatrixView<T, Cuda>, T);                              \
    template GramInspection inspect_gram<T>(Context<Cuda>&, MatrixView<const T, Cuda>);              \
    template void scale_diagonal<T>(Context<Cuda>&, T, MatrixView<T, Cuda>);                         \
    template double scaled_condition_estimate<T>(Context<Cuda>&, MatrixView<const T, Cuda>);         \
    template double inverse_norm_estimate<T>(Context<Cuda>&, MatrixView<const T, Cuda>);             \
    template void multiply_upper<T>(Context<Cuda>&, MatrixView<const T, Cuda>, MatrixView<T, Cuda>); \
    template void signed_lu<T>(Context<Cuda>&, MatrixView<T, Cuda>, MatrixView<T, Cuda>);            \
    template void solve_triangle<T>(Context<Cuda>&, Triangle, Op, MatrixView<const T, Cuda>, MatrixView<T, Cuda>);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
