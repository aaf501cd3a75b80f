// Reflectors from an orthonormal basis: up to 128 columns by cholesky/reconstruct_top.cuh, beyond in steps. These steps
// are here.
//
//   lu_diagonal_kernel   one block of 32×32 threads, one an element, for a 32×32 diagonal block in shared memory (two
//                        barriers a column): bound by latency, about 3 µs.
//   lu_border_kernel     one thread a row of L₂₁ (blockIdx.y = 0) or a column of U₁₂ (1), its 32 entries in registers,
//                        the diagonal block in shared memory; 32² flops a thread.
//   drop_if_unit_kernel  one block a column, which it reads until an entry is not 0; reads one number where tau is not
//                        about 2.

#include "cuda/cholesky/reconstruct_top.cuh"
#include "cuda/runtime/blas.hpp"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/launch.hpp"
#include "primitives/generic/reconstruct_top.hpp"

namespace quoin {
namespace {

using namespace cuda;

constexpr int lu_width = 32, border_threads = 64, unit_threads = 1024;

/// Q (k×k, k <= 32) − diag(signs) = L U in place.
template <class T>
__global__ void __launch_bounds__(lu_width* lu_width) lu_diagonal_kernel(int k, T* Q, Index ldq, T* signs) {
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

/// With the diagonal block LU at the top left of Q (whole, 32×32): L₂₁ := Q₂₁ U⁻¹ and U₁₂ := L⁻¹ Q₁₂ for `rest` rows
/// and columns.
template <class T>
__global__ void __launch_bounds__(border_threads) lu_border_kernel(Index rest, T* Q, Index ldq) {
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

/// The reflector of column j = blockIdx.x, if its v is e_j.
template <class T>
__global__ void __launch_bounds__(unit_threads)
    drop_if_unit_kernel(MatrixView<T, Cuda> A, MatrixView<T, Cuda> R, MatrixView<T, Cuda> Tf, MatrixView<T, Cuda> signs,
                        const Certificate* certificate) {
    const Index m = A.rows, n = A.cols, j = blockIdx.x;
    // tau = 2/vᵀv
    if (certificate->refused() || !(Tf.data[j + j * Tf.ld] > T(1.5))) return;
    for (Index begin = j + 1; begin < m; begin += unit_threads) {
        const Index i = begin + threadIdx.x;
        if (!__syncthreads_and(i >= m || A.data[i + j * A.ld] == 0)) return;
    }
    if (threadIdx.x == 0) signs.data[j] = -signs.data[j];
    for (Index l = threadIdx.x; l < n; l += unit_threads) {
        if (l >= j) A.data[j + l * A.ld] = R.data[j + l * R.ld] = -R.data[j + l * R.ld];
        Tf.data[j + l * Tf.ld] = Tf.data[l + j * Tf.ld] = 0;
    }
}

}  // namespace

template <class T, class D>
void signed_lu(Context<D>& ctx, View<T, D> Q, View<T, D> signs) {
    const Index n = Q.rows;
    for (Index c = 0; c < n; c += lu_width) {
        const Index k = std::min<Index>(lu_width, n - c), rest = n - c - k;
        launch(ctx.stream(), lu_diagonal_kernel<T>, {1, lu_width * lu_width}, static_cast<int>(k), Q.at(c, c), Q.ld,
               signs.at(c, 0));
        if (rest == 0) break;
        const dim3 grid(static_cast<unsigned>((rest + border_threads - 1) / border_threads), 2);
        launch(ctx.stream(), lu_border_kernel<T>, {grid, border_threads}, rest, Q.at(c, c), Q.ld);
        // Q₂₂ −= L₂₁ U₁₂
        const Range next = {c + k, n}, here = {c, c + k};
        gemm<T>(ctx, Op::None, Op::None, -1, Q.block(next, here), Q.block(here, next), 1, Q.block(next, next));
    }
    ctx.state().add_flops(2.0 / 3.0 * n * n * n);
}

template <class T, class D>
void drop_unit_reflectors(Context<D>& ctx, View<T, D> A, View<T, D> R, View<T, D> Tf, View<T, D> signs,
                          CertificateView<D> certificate) {
    if (A.cols == 0) return;
    launch(ctx.stream(), drop_if_unit_kernel<T>, {static_cast<unsigned>(small_size(A.cols)), unit_threads}, A, R, Tf,
           signs, certificate.data);
}

template <class T, class D>
void reconstruct_top(Context<D>& ctx, View<const T, D> A, View<const Sum<T, D>, D> Y, double limit, View<T, D> R,
                     View<T, D> V, View<T, D> Tf, View<Sum<T, D>, D> U, View<T, D> signs,
                     CertificateView<D> certificate) {
    const Index n = A.cols;
    if (n == 0) return;
    if (choose_reconstruction(n, ctx.state().kernels) == SquareKernel::Library)
        return reconstruct_top_in_steps<T>(ctx, A, Y, limit, R, V, Tf, U, signs, certificate);
    Arena::Frame frame(ctx);
    const auto L = frame.matrix<T>(n, n);
    cuda::reconstruct_top<T>(ctx, {static_cast<int>(n), A.data, A.ld, Y.data, Y.ld, R.data, R.ld, V.data, V.ld, Tf.data,
                                   Tf.ld, U.data, U.ld, L.data, L.ld, signs.data, limit, certificate.data});
    ctx.state().add_flops((Y.data ? 10.0 : 7.0) / 3.0 * n * n * n);
}

QUOIN_IMPLEMENT(Cuda, signed_lu, drop_unit_reflectors, reconstruct_top)

}  // namespace quoin
