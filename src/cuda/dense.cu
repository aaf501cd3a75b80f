// Small dense steps on n×n matrices: cuSOLVER's potrf, cuBLAS's trsm and trmm, and kernels of their own.
//
//   up to 192 columns   kernels/factor_gram.cuh and kernels/multiply_upper.cuh, up to 128 kernels/reconstruct_top.cuh;
//                       beyond, what follows.
//   inspect_upper   one block; thread t adds the entries t, t + 1024, … of the upper triangle, and the block its threads'
//                   sums in a fixed tree. n² reads; bound by latency up to n ~ 500.
//   find_pivot      one block; the first column whose pivot fails, a minimum over threads.
//   decide          one thread; what inspect_upper and find_pivot found, against the demands.
//   drop_if_unit    one block a column, which it reads until an entry is not 0; reads one number where tau is not about 2.
//   unit_columns, column_sums   one warp a column, its sum in a fixed tree; n² reads, bound by latency.
//   lu_diagonal     one block of 32×32 threads, one an element, for a 32×32 diagonal block in shared memory (two barriers
//                   a column): bound by latency, about 3 µs.
//   lu_border       one thread a row of L₂₁ (blockIdx.y = 0) or a column of U₁₂ (1), its 32 entries in registers, the
//                   diagonal block in shared memory; 32² flops a thread.

#include <cmath>
#include <limits>

#include "cuda/blas.hpp"
#include "cuda/device.hpp"
#include "cuda/elementwise.cuh"
#include "cuda/kernels/factor_gram.cuh"
#include "cuda/kernels/multiply_upper.cuh"
#include "cuda/kernels/reconstruct_top.cuh"
#include "cuda/kernels/warp_sums.cuh"
#include "cuda/solver.hpp"
#include "cuda/tuning.hpp"
#include "primitives/generic/reconstruct_top.hpp"

namespace quoin {
namespace {

using namespace cuda;

constexpr int block_threads = 1024;

/// X := op(A) X, or X op(A): copies of both, and one GEMM.
template <class T>
void multiply_copied(Context<Cuda>& ctx, Side side, Triangle triangle, Op op, MatrixView<const T, Cuda> A,
                     MatrixView<T, Cuda> X) {
    const Index n = A.rows;
    Arena::Frame frame(ctx);
    const auto B = frame.matrix<T>(n, n), Y = frame.matrix<T>(X.rows, X.cols);
    for_each_element(ctx, std::max(n, X.rows), n + X.cols, [=] __device__(Index i, Index j) {
        if (j >= n) {
            if (i < X.rows) Y.data[i + (j - n) * Y.ld] = X.data[i + (j - n) * X.ld];
        } else if (i < n) {
            const bool stored = triangle == Triangle::Upper ? i <= j : triangle == Triangle::Lower ? i >= j : i > j;
            B.data[i + j * n] = stored ? A.data[i + j * A.ld] : T(i == j && triangle == Triangle::UnitLower);
        }
    });
    if (side == Side::Left) {
        gemm<T>(ctx, op, Op::None, 1, B, Y, 0, X);
    } else {
        gemm<T>(ctx, Op::None, op, 1, Y, B, 0, X);
    }
}

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

/// What a Gram matrix says before it is factored.
struct Inspection {
    Index unusable = -1, failed = -1;
    double departure = 0, trace = 0;
};

__global__ void __launch_bounds__(block_threads)
    inspect_upper(MatrixView<const double, Cuda> G, double low, double high, Inspection* found) {
    __shared__ double squares[block_threads], diagonal[block_threads];
    __shared__ int first;
    if (threadIdx.x == 0) first = static_cast<int>(G.cols);
    __syncthreads();
    double sum = 0, trace = 0;
    for (Index at = threadIdx.x; at < G.rows * G.cols; at += block_threads) {
        const Index i = at % G.rows, j = at / G.rows;
        const double g = G.data[i + j * G.ld];
        if (i < j) sum += 2 * g * g;
        if (i == j) {
            sum += (1 - g) * (1 - g);
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
    find_pivot(MatrixView<const double, Cuda> R, const int* info, Inspection* found) {
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

/// The certificate on what was found; sums: of the columns of |RD| and then of |(RD)⁻¹|'s squares, where κ is asked for.
__global__ void decide(const Inspection* found, GramDemands demands, int n, const double* squares,
                       Certificate* certificate) {
    if (demands.step > 0 && certificate->refused()) return;
    if (demands.step == 0) *certificate = {};
    certificate->departure = found->departure;
    if (found->unusable >= 0) return certificate->refuse(demands.step, Certificate::Unusable, found->unusable);
    if (!(found->trace <= demands.most_trace)) return certificate->refuse(demands.step, Certificate::Trace, -1);
    if (!(found->departure <= demands.most_departure))
        return certificate->refuse(demands.step, Certificate::Departure, -1);
    if (found->failed >= 0) return certificate->refuse(demands.step, Certificate::Pivot, found->failed);
    if (!demands.asks_condition()) return;
    // κ_F(RD)² = ‖RD‖_F² ‖(RD)⁻¹‖_F² = n ‖(RD)⁻¹‖_F²
    double square = 0;
    for (int j = 0; j < n; ++j) square += squares[j];
    certificate->condition = sqrt(n * square);
    if (!(certificate->condition < demands.most_condition))
        certificate->refuse(demands.step, Certificate::Condition, -1);
}

/// W := R D of an upper triangular R, where D scales its columns to unit norm; zeros below. One warp a column.
__global__ void __launch_bounds__(32) unit_columns(MatrixView<const double, Cuda> R, MatrixView<double, Cuda> W) {
    const Index j = blockIdx.x;
    double top = 0, square = 0;
    for (Index i = threadIdx.x; i <= j; i += 32) top = fmax(top, fabs(R.data[i + j * R.ld]));
    top = warp_max(top);
    // ‖r‖ = top ‖r / top‖
    for (Index i = threadIdx.x; i <= j; i += 32) {
        const double r = R.data[i + j * R.ld] / top;
        square += r * r;
    }
    square = warp_sum(square);
    const double norm = sqrt(square);
    for (Index i = threadIdx.x; i < R.rows; i += 32) {
        W.data[i + j * W.ld] = i <= j ? R.data[i + j * R.ld] / top / norm : 0.0;
    }
}

/// sums[j] := Σ_i |a_ij|, or Σ_i a_ij² where `squared`. One warp a column.
template <bool squared, class T>
__global__ void __launch_bounds__(32) column_sums(MatrixView<const T, Cuda> A, double* sums) {
    const Index j = blockIdx.x;
    double sum = 0;
    for (Index i = threadIdx.x; i < A.rows; i += 32) {
        const double a = static_cast<double>(A.data[i + j * A.ld]);
        sum += squared ? a * a : fabs(a);
    }
    sum = warp_sum(sum);
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

template <>
void request_certificate(Context<Cuda>& ctx, CertificateView<Cuda> certificate) {
    ctx.state().send(certificate.data, 1);
}
template <>
Certificate receive_certificate(Context<Cuda>& ctx, CertificateView<Cuda>) {
    return *ctx.state().receive<Certificate>();
}

template <>
Certificate read_certificate(Context<Cuda>& ctx, CertificateView<Cuda> certificate) {
    request_certificate(ctx, certificate);
    return receive_certificate(ctx, certificate);
}

template <class T, class D>
void pack_certificate(Context<D>& ctx, CertificateView<D> certificate, View<T, D> numbers) {
    for_each_element(
        ctx, 1, 1, [from = certificate.data, to = numbers.data] __device__(Index, Index) { write_numbers(*from, to); });
}
template <class T, class D>
void unpack_certificate(Context<D>& ctx, View<const T, D> numbers, CertificateView<D> certificate) {
    for_each_element(
        ctx, 1, 1, [from = numbers.data, to = certificate.data] __device__(Index, Index) { *to = read_numbers(from); });
}
template <>
void write_certificate(Context<Cuda>& ctx, CertificateView<Cuda> certificate, Certificate state) {
    for_each_element(ctx, 1, 1, [=] __device__(Index, Index) { *certificate.data = state; });
}

namespace {

/// The reflector of column j = blockIdx.x, if its v is e_j.
template <class T>
__global__ void __launch_bounds__(block_threads)
    drop_if_unit(MatrixView<T, Cuda> A, MatrixView<T, Cuda> R, MatrixView<T, Cuda> Tf, MatrixView<T, Cuda> signs,
                 const Certificate* certificate) {
    const Index m = A.rows, n = A.cols, j = blockIdx.x;
    // tau = 2/vᵀv
    if (certificate->refused() || !(Tf.data[j + j * Tf.ld] > T(1.5))) return;
    for (Index begin = j + 1; begin < m; begin += block_threads) {
        const Index i = begin + threadIdx.x;
        if (!__syncthreads_and(i >= m || A.data[i + j * A.ld] == 0)) return;
    }
    if (threadIdx.x == 0) signs.data[j] = -signs.data[j];
    for (Index l = threadIdx.x; l < n; l += block_threads) {
        if (l >= j) A.data[j + l * A.ld] = R.data[j + l * R.ld] = -R.data[j + l * R.ld];
        Tf.data[j + l * Tf.ld] = Tf.data[l + j * Tf.ld] = 0;
    }
}

/// Of any width, by cuSOLVER and cuBLAS.
void factor_gram_wide(Context<Cuda>& ctx, MatrixView<double, Cuda> G, double low, double high,
                      const GramDemands& demands, MatrixView<double, Cuda> R, Certificate* certificate) {
    const Index n = G.cols;
    auto& state = ctx.state();
    Arena::Frame frame(ctx);
    Inspection* found = frame.take<Inspection>(1);
    inspect_upper<<<1, block_threads, 0, ctx.stream()>>>(G, low, high, found);
    check_launch("inspect_upper");
    const auto S = frame.matrix<double>(n, n);
    copy<double>(ctx, G, S);
    for_each_element(ctx, n, 1, [=] __device__(Index j, Index) { S.data[j + j * S.ld] *= 1 + demands.shift; });
    int size = 0;
    const int width = small_size(n);
    QUOIN_CUDA_CHECK(cusolverDnDpotrf_bufferSize(state.solver(), CUBLAS_FILL_MODE_UPPER, width, S.data, width, &size));
    double* work = frame.take<double>(size);
    int* info = frame.take<int>(1);
    QUOIN_CUDA_CHECK(cusolverDnDpotrf(state.solver(), CUBLAS_FILL_MODE_UPPER, width, S.data, width, work, size, info));
    find_pivot<<<1, block_threads, 0, ctx.stream()>>>(S, info, found);
    check_launch("find_pivot");
    for_each_element(ctx, n, n, [=] __device__(Index i, Index j) {
        if (demands.step == 0 || !certificate->refused()) R.data[i + j * R.ld] = i <= j ? S.data[i + j * n] : 0.0;
    });
    double* squares = frame.take<double>(n);
    if (demands.asks_condition()) {
        const auto W = frame.matrix<double>(n, n);
        unit_columns<<<static_cast<unsigned>(width), 32, 0, ctx.stream()>>>(R, W);
        check_launch("unit_columns");
        // S = W⁻¹
        set_identity<double>(ctx, 0, S);
        trsm<double>(ctx, Side::Left, Triangle::Upper, Op::None, W, S);
        column_sums<true>
            <<<static_cast<unsigned>(width), 32, 0, ctx.stream()>>>(MatrixView<const double, Cuda>(S), squares);
        check_launch("column_sums");
    }
    decide<<<1, 1, 0, ctx.stream()>>>(found, demands, width, squares, certificate);
    check_launch("decide");
}

}  // namespace

template <class T, class D>
void factor_gram(Context<D>& ctx, View<Sum<T, D>, D> G, GramDemands demands, View<Sum<T, D>, D> R,
                 CertificateView<D> certificate) {
    const Index n = G.cols;
    constexpr double low = smallest_square<T>, high = largest_square<T>;
    if (n == 0) return;
    if (n <= factor_max_cols) {
        QUOIN_CUDA_CHECK(cuda::factor_gram(static_cast<int>(n), G.data, G.ld, low, high, demands, R.data, R.ld,
                                           certificate.data, ctx.stream()));
    } else {
        factor_gram_wide(ctx, G, low, high, demands, R, certificate.data);
    }
    ctx.state().add_flops((demands.asks_condition() ? 2.0 : 1.0) / 3.0 * n * n * n);
}

template <class T, class D>
double inverse_norm_estimate(Context<D>& ctx, View<const T, D> LU) {
    const Index n = LU.cols;
    if (n == 0) return 0;
    Arena::Frame frame(ctx);
    const auto S = frame.matrix<T>(n, n);
    double* sums = frame.take<double>(n);
    // S = U⁻¹ L⁻¹
    set_identity<T>(ctx, 0, S);
    trsm<T>(ctx, Side::Left, Triangle::UnitLower, Op::None, LU, S);
    trsm<T>(ctx, Side::Left, Triangle::Upper, Op::None, LU, S);
    column_sums<false, T><<<static_cast<unsigned>(small_size(n)), 32, 0, ctx.stream()>>>(S, sums);
    check_launch("column_sums");
    return largest(ctx.state().read_back(sums, n), n);
}

template <class T, class P, class D>
void multiply_upper(Context<D>& ctx, View<const T, D> S, View<const T, D> R, View<P, D> to,
                    CertificateView<D> certificate) {
    const Index n = R.rows;
    if (n == 0) return;
    if (n <= product_rows) {
        QUOIN_CUDA_CHECK(cuda::multiply_upper(static_cast<int>(n), S.data, S.ld, R.data, R.ld, to.data, to.ld,
                                              certificate.data, ctx.stream()));
    } else {
        // cuBLAS writes whatever the certificate says
        if (certificate.data && read_certificate(ctx, certificate).refused()) return;
        Arena::Frame frame(ctx);
        const auto X = frame.matrix<T>(n, n);
        copy_triangle<T>(ctx, R, X);
        if (S.data) trmm<T>(ctx, Side::Left, Triangle::Upper, Op::None, 1, S, X);
        for_each_element(ctx, n, n, [=] __device__(Index i, Index j) {
            to.data[i + j * to.ld] = static_cast<P>(X.data[i + j * n]);
        });
    }
    ctx.state().add_flops(1.0 / 3.0 * n * n * n);
}

template <class T, class D>
void signed_lu(Context<D>& ctx, View<T, D> Q, View<T, D> signs) {
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

template <class T, class D>
void drop_unit_reflectors(Context<D>& ctx, View<T, D> A, View<T, D> R, View<T, D> Tf, View<T, D> signs,
                          CertificateView<D> certificate) {
    if (A.cols == 0) return;
    drop_if_unit<T><<<static_cast<unsigned>(small_size(A.cols)), block_threads, 0, ctx.stream()>>>(A, R, Tf, signs,
                                                                                                   certificate.data);
    check_launch("drop_if_unit");
}

template <class T, class D>
void reconstruct_top(Context<D>& ctx, View<const T, D> A, View<const Sum<T, D>, D> Y, double limit, View<T, D> R,
                     View<T, D> V, View<T, D> Tf, View<Sum<T, D>, D> U, View<T, D> signs,
                     CertificateView<D> certificate) {
    const Index n = A.cols;
    if (n == 0) return;
    if (n > Tuning<Cuda>::most_top_cols)
        return reconstruct_top_in_steps<T>(ctx, A, Y, limit, R, V, Tf, U, signs, certificate);
    Arena::Frame frame(ctx);
    const auto L = frame.matrix<T>(n, n);
    QUOIN_CUDA_CHECK(
        cuda::reconstruct_top<T>({static_cast<int>(n), A.data, A.ld, Y.data, Y.ld, R.data, R.ld, V.data, V.ld, Tf.data,
                                  Tf.ld, U.data, U.ld, L.data, L.ld, signs.data, limit, certificate.data},
                                 ctx.stream()));
    ctx.state().add_flops((Y.data ? 10.0 : 7.0) / 3.0 * n * n * n);
}

template <class T, class D>
void solve_triangle(Context<D>& ctx, Triangle triangle, Op op, View<const T, D> A, View<T, D> X) {
    trsm<T>(ctx, Side::Left, triangle, op, A, X);
    ctx.state().add_flops(1.0 * A.rows * A.rows * X.cols);
}

template <class T, class D>
void multiply_triangle(Context<D>& ctx, Side side, Triangle triangle, Op op, View<const T, D> A, View<T, D> X) {
    const Index n = A.rows, half = n / 2;
    if (X.empty()) return;
    if (n <= Tuning<Cuda>::copied_width) {
        multiply_copied<T>(ctx, side, triangle, op, A, X);
        ctx.state().add_flops(1.0 * n * X.rows * X.cols);
        return;
    }
    const Range head{0, half}, tail{half, n};
    const bool left = side == Side::Left, stored_upper = triangle == Triangle::Upper;
    const auto part = [&](Range r) { return left ? X.row_block(r) : X.col_block(r); };
    // the part of X that takes something of the other one comes first: X₁ where op(A) X has an upper triangle, or
    // X op(A) a lower one
    const bool first = left == (stored_upper == (op == Op::None));
    const Range to = first ? head : tail, from = first ? tail : head;
    const auto corner = stored_upper ? A.block(head, tail) : A.block(tail, head);
    multiply_triangle<T>(ctx, side, triangle, op, A.block(to, to), part(to));
    if (left) {
        gemm<T>(ctx, op, Op::None, 1, corner, part(from), 1, part(to));
    } else {
        gemm<T>(ctx, Op::None, op, 1, part(from), corner, 1, part(to));
    }
    ctx.state().add_flops(2.0 * half * (n - half) * (left ? X.cols : X.rows));
    multiply_triangle<T>(ctx, side, triangle, op, A.block(from, from), part(from));
}

QUOIN_IMPLEMENT(Cuda, pack_certificate, unpack_certificate, factor_gram, inverse_norm_estimate, signed_lu,
                drop_unit_reflectors, reconstruct_top, solve_triangle, multiply_triangle)
template decltype(multiply_upper<float, float, Cuda>) multiply_upper<float, float, Cuda>;
template decltype(multiply_upper<double, double, Cuda>) multiply_upper<double, double, Cuda>;
template decltype(multiply_upper<double, float, Cuda>) multiply_upper<double, float, Cuda>;
template decltype(multiply_upper<float, double, Cuda>) multiply_upper<float, double, Cuda>;

}  // namespace quoin
