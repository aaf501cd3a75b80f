// What the solvers need beside a factorization: n×n steps around the triangle R, and numbers for the host.
//
//   column_tops     one warp a column: its largest entry. 1 read of n² elements, n²/2 of a triangle.
//   unit_columns    one warp a column of R: its norm in a fixed tree, then the column over its norm. 2 reads of n²/2
//                   elements from cache, 1 write of n² in double.
//   triangle_sums   one warp a column of W = R D and of W⁻¹: their absolute sums, with and without the scaling D undone,
//                   each in a fixed tree. 2n² reads.
//   The rest is one thread an element (elementwise.cuh), cuBLAS's nrm2 and trsm, and the SVDs of small_svd.
//
// All are bound by latency up to n ~ 500: about 5 µs a launch.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cuda/blas.hpp"
#include "cuda/device.hpp"
#include "cuda/elementwise.cuh"
#include "cuda/kernels/warp_sums.cuh"
#include "cuda/solver.hpp"
#include "cuda/tuning.hpp"

namespace quoin {

// svd_on_host calls the host's small_svd, not the one that this file defines
extern template decltype(small_svd<float, Host>) small_svd<float, Host>;
extern template decltype(small_svd<double, Host>) small_svd<double, Host>;

namespace {

using namespace cuda;

constexpr int warp = 32;

/// Column norms as tops·lengths, the largest entry and the norm over it: neither can overflow.
struct ColumnScales {
    double* tops;
    double* lengths;
};

/// tops[j] := max_i |a_ij|, i <= j alone where `upper`; NaN where an entry is not finite.
template <class T>
__global__ void __launch_bounds__(warp) column_tops(MatrixView<const T, Cuda> A, bool upper, double* tops) {
    const Index j = blockIdx.x, end = upper ? j + 1 : A.rows;
    double top = 0;
    bool finite = true;
    for (Index i = threadIdx.x; i < end; i += warp) {
        const double x = fabs(static_cast<double>(A.data[i + j * A.ld]));
        finite = finite && isfinite(x);
        top = fmax(top, x);
    }
    top = warp_max(top);
    finite = __all_sync(~0u, finite);
    if (threadIdx.x == 0) tops[j] = finite ? top : NAN;
}

/// W := R D of an upper triangular R, where D scales its columns to unit norm; zeros below.
template <class T>
__global__ void __launch_bounds__(warp)
    unit_columns(MatrixView<const T, Cuda> R, MatrixView<double, Cuda> W, ColumnScales scales, double* diagonal) {
    const Index j = blockIdx.x;
    const T* r = R.data + j * R.ld;
    const double top = scales.tops[j];
    double square = 0;
    // ‖r‖ = top ‖r / top‖
    for (Index i = threadIdx.x; i <= j; i += warp) {
        const double x = static_cast<double>(r[i]) / top;
        square += x * x;
    }
    const double length = sqrt(warp_sum(square));
    for (Index i = threadIdx.x; i < R.rows; i += warp) {
        const double w = i <= j ? static_cast<double>(r[i]) / top / length : 0.0;
        W.data[i + j * W.ld] = w;
        if (i == j) diagonal[j] = w;
    }
    if (threadIdx.x == 0) scales.lengths[j] = length;
}

/// Of column j of W = R D and S = W⁻¹, with the norms ν of R's columns over a power of two, that of the largest:
/// sums(j) := Σ|w_ij|, Σ|s_ij|, Σ|w_ij| ν_j = Σ|r_ij| and Σ|s_ij| / ν_i = Σ|(R⁻¹)_ij|.
__global__ void __launch_bounds__(warp)
    triangle_sums(MatrixView<const double, Cuda> W, MatrixView<const double, Cuda> S, ColumnScales scales,
                  MatrixView<double, Cuda> sums) {
    const Index j = blockIdx.x, n = W.cols;
    double top = 0;
    for (Index i = threadIdx.x; i < n; i += warp) top = fmax(top, scales.tops[i]);
    top = warp_max(top);
    const int e = ilogb(top);
    const auto norm = [&](Index i) { return scalbn(scales.tops[i], -e) * scales.lengths[i]; };
    double of_w = 0, of_s = 0, of_inverse = 0;
    for (Index i = threadIdx.x; i <= j; i += warp) {
        const double s = fabs(S.data[i + j * S.ld]);
        of_w += fabs(W.data[i + j * W.ld]);
        of_s += s;
        of_inverse += s / norm(i);
    }
    of_w = warp_sum(of_w);
    of_s = warp_sum(of_s);
    of_inverse = warp_sum(of_inverse);
    if (threadIdx.x == 0) {
        double* sum = sums.data + j * sums.ld;
        sum[0] = of_w;
        sum[1] = of_s;
        sum[2] = of_w * norm(j);
        sum[3] = of_inverse;
    }
}

/// n of an n×n matrix whose bytes fit into any GPU: grids and cuSOLVER count it in 32 bits.
int small_size(Index n) {
    if (n > (Index(1) << 20)) {
        throw InvalidArgument("a triangle of " + std::to_string(n) + " columns is larger than any GPU's memory");
    }
    return static_cast<int>(n);
}

/// A product of norms, each the maximum over a row of the 4×n sums; infinity where one of them is no number.
double condition_of(const double* sums, Index n, int first, int second) {
    double top[2] = {0, 0};
    for (Index j = 0; j < n; ++j) {
        const double pair[] = {sums[4 * j + first], sums[4 * j + second]};
        for (int k = 0; k < 2; ++k) {
            if (!std::isfinite(pair[k])) return std::numeric_limits<double>::infinity();
            top[k] = std::max(top[k], pair[k]);
        }
    }
    return top[0] * top[1];
}

// ---- SVD -----------------------------------------------------------------------------------------------------------------

/// cuSOLVER's parameters, destroyed with it.
class SolverParameters {
public:
    SolverParameters() { QUOIN_CUDA_CHECK(cusolverDnCreateParams(&params_)); }
    SolverParameters(const SolverParameters&) = delete;
    ~SolverParameters() { cusolverDnDestroyParams(params_); }
    operator cusolverDnParams_t() const { return params_; }

private:
    cusolverDnParams_t params_ = nullptr;
};

/// A = U diag(s) Vᵀ with V itself in `V`, by the polar decomposition (gesvdp; Nakatsukasa and Higham 2013). A is lost.
/// False where it did not converge. Where it did, U and V are orthogonal, but U diag(s) Vᵀ is not always A: of 160 columns
/// ‖A − U diag(s) Vᵀ‖/‖A‖ is 2e-15 for κ < 1e6, up to 2e-12 for κ = 1e10, and up to 1e-4 where A is singular.
bool svd_by_polar(Context<Cuda>& ctx, MatrixView<double, Cuda> A, double* s, MatrixView<double, Cuda> U,
                  MatrixView<double, Cuda> V, int* info) {
    auto& state = ctx.state();
    const Index n = A.cols;
    const SolverParameters params;
    std::size_t device_bytes = 0, host_bytes = 0;
    QUOIN_CUDA_CHECK(cusolverDnXgesvdp_bufferSize(state.solver(), params, CUSOLVER_EIG_MODE_VECTOR, 1, n, n, CUDA_R_64F,
                                                  A.data, A.ld, CUDA_R_64F, s, CUDA_R_64F, U.data, U.ld, CUDA_R_64F,
                                                  V.data, V.ld, CUDA_R_64F, &device_bytes, &host_bytes));
    Arena::Frame frame(ctx);
    char* work = frame.take<char>(static_cast<Index>(device_bytes));
    std::vector<char> host_work(host_bytes);
    double perturbation = 0;
    const cusolverStatus_t status =
        cusolverDnXgesvdp(state.solver(), params, CUSOLVER_EIG_MODE_VECTOR, 1, n, n, CUDA_R_64F, A.data, A.ld,
                          CUDA_R_64F, s, CUDA_R_64F, U.data, U.ld, CUDA_R_64F, V.data, V.ld, CUDA_R_64F, work,
                          device_bytes, host_work.data(), host_bytes, info, &perturbation);
    if (status == CUSOLVER_STATUS_EXECUTION_FAILED) return false;
    check(status, "gesvdp");
    return *state.read_back(info, 1) == 0;
}

/// ‖A‖_F of an n×n A with ld = n.
double frobenius_norm(Context<Cuda>& ctx, MatrixView<const double, Cuda> A) {
    double norm = 0;
    column_norms<double>(ctx, {A.data, A.rows * A.cols, 1}, {&norm, 1});
    return norm;
}

/// ‖A − U diag(s) Vᵀ‖_F / ‖A‖_F; A and U (ld = n) are lost.
double svd_residual(Context<Cuda>& ctx, MatrixView<double, Cuda> A, const double* s, MatrixView<double, Cuda> U,
                    MatrixView<const double, Cuda> V) {
    const double norm = frobenius_norm(ctx, A);
    for_each_element(ctx, U.rows, U.cols, [=] __device__(Index i, Index j) { U.data[i + j * U.ld] *= s[j]; });
    gemm<double>(ctx, Op::None, Op::Transpose, -1, U, V, 1, A);
    return frobenius_norm(ctx, A) / norm;
}

/// A = U diag(s) Vt by QR iteration (gesvd). A is lost.
void svd_by_iteration(Context<Cuda>& ctx, MatrixView<double, Cuda> A, double* s, MatrixView<double, Cuda> U,
                      MatrixView<double, Cuda> Vt, bool vectors, int* info) {
    auto& state = ctx.state();
    const int n = small_size(A.cols), ld = static_cast<int>(A.ld);
    int size = 0;
    QUOIN_CUDA_CHECK(cusolverDnDgesvd_bufferSize(state.solver(), n, n, &size));
    Arena::Frame frame(ctx);
    double *work = frame.take<double>(size), *superdiagonal = frame.take<double>(n);
    const signed char job = vectors ? 'S' : 'N';
    QUOIN_CUDA_CHECK(cusolverDnDgesvd(state.solver(), job, job, n, n, A.data, ld, s, U.data, ld, Vt.data, ld, work,
                                      size, superdiagonal, info));
    const int failed = *state.read_back(info, 1);
    if (failed != 0) {
        throw NumericalBreakdown(
            "svd: " + std::to_string(failed) + " of " + std::to_string(n) + " superdiagonals did not converge to zero",
            failed - 1);
    }
}

template <class T>
void svd_on_host(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, std::span<T> s, MatrixView<T, Cuda> U,
                 MatrixView<T, Cuda> Vt) {
    const Index n = A.cols;
    Context<Host> host(1);
    Matrix<T> W = copy_to_host<T>(ctx, A);
    if (!U.data) return small_svd<T>(host, W.view(), s, {}, {});
    Matrix<T> host_U(n, n), host_Vt(n, n);
    small_svd<T>(host, W.view(), s, host_U.view(), host_Vt.view());
    copy_to_device<T>(ctx, host_U.view(), U);
    copy_to_device<T>(ctx, host_Vt.view(), Vt);
}

/// In double for either type, scaled by a power of two to entries of at most 2: the polar decomposition takes as long in f32
/// as in f64, where its errors are of no account for f32 data. Its result is taken where its residual certifies it.
template <class T>
void svd_on_device(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, std::span<T> s, MatrixView<T, Cuda> U,
                   MatrixView<T, Cuda> Vt) {
    const Index n = A.cols;
    const auto grid = static_cast<unsigned>(small_size(n));
    const bool vectors = U.data != nullptr;
    Arena::Frame frame(ctx);
    double* tops = frame.take<double>(n);
    column_tops<T><<<grid, warp, 0, ctx.stream()>>>(A, /*upper=*/false, tops);
    check_launch("column_tops");
    double top = 0;
    for (const double *x = ctx.state().read_back(tops, n), *end = x + n; x < end; ++x) {
        if (!std::isfinite(*x)) throw NumericalBreakdown("svd: R holds NaN or Inf", 0);
        top = std::max(top, *x);
    }
    if (top == 0) {
        std::fill(s.begin(), s.end(), T(0));
        if (vectors) {
            set_identity<T>(ctx, 0, U);
            set_identity<T>(ctx, 0, Vt);
        }
        return;
    }
    const int e = std::ilogb(top);
    const auto W = frame.matrix<double>(n, n), U_wide = frame.matrix<double>(n, n), V_wide = frame.matrix<double>(n, n);
    double* s_wide = frame.take<double>(n);
    int* info = frame.take<int>(1);
    const auto load = [&](MatrixView<double, Cuda> B) {
        for_each_element(ctx, n, n, [=] __device__(Index i, Index j) {
            B.data[i + j * B.ld] = scalbn(static_cast<double>(A.data[i + j * A.ld]), -e);
        });
    };
    const auto store = [&](bool transposed) {
        if (!vectors) return;
        for_each_element(ctx, n, n, [=] __device__(Index i, Index j) {
            U.data[i + j * U.ld] = static_cast<T>(U_wide.data[i + j * U_wide.ld]);
            Vt.data[i + j * Vt.ld] = static_cast<T>(V_wide.data[transposed ? j + i * V_wide.ld : i + j * V_wide.ld]);
        });
    };
    load(W);
    bool certified = svd_by_polar(ctx, W, s_wide, U_wide, V_wide, info);
    if (certified) {
        store(/*transposed=*/true);
        load(W);
        const double tolerance = static_cast<double>(n) * std::numeric_limits<T>::epsilon();
        certified = svd_residual(ctx, W, s_wide, U_wide, V_wide) <= tolerance;
    }
    if (!certified) {
        if (n <= Tuning<Cuda>::host_svd_cols_uncertified) return svd_on_host<T>(ctx, A, s, U, Vt);
        load(W);
        svd_by_iteration(ctx, W, s_wide, U_wide, V_wide, vectors, info);
        store(/*transposed=*/false);
    }
    const double* values = ctx.state().read_back(s_wide, n);
    for (Index j = 0; j < n; ++j) s[j] = static_cast<T>(std::scalbn(values[j], e));
}

cublasStatus_t nrm2(cublasHandle_t handle, Index n, const float* x, float* result) {
    return cublasSnrm2_64(handle, n, x, 1, result);
}
cublasStatus_t nrm2(cublasHandle_t handle, Index n, const double* x, double* result) {
    return cublasDnrm2_64(handle, n, x, 1, result);
}

/// Scalar results of cuBLAS go to device memory, until the end of the scope.
class ResultsOnDevice {
public:
    explicit ResultsOnDevice(cublasHandle_t handle) : handle_(handle) {
        QUOIN_CUDA_CHECK(cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_DEVICE));
    }
    ResultsOnDevice(const ResultsOnDevice&) = delete;
    ~ResultsOnDevice() { cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_HOST); }

private:
    cublasHandle_t handle_;
};

}  // namespace

template <class T, class D>
TriangleInspection inspect_triangle(Context<D>& ctx, View<const T, D> R) {
    const Index n = R.cols;
    TriangleInspection result;
    if (n == 0) return result;
    const auto grid = static_cast<unsigned>(small_size(n));
    Arena::Frame frame(ctx);
    const auto W = frame.matrix<double>(n, n), S = frame.matrix<double>(n, n);
    // tops, W's diagonal and the sums, to be read at once
    double *found = frame.take<double>(6 * n), *diagonal = found + n, *sums = found + 2 * n;
    const ColumnScales scales{found, frame.take<double>(n)};
    column_tops<T><<<grid, warp, 0, ctx.stream()>>>(R, /*upper=*/true, found);
    check_launch("column_tops");
    unit_columns<T><<<grid, warp, 0, ctx.stream()>>>(R, W, scales, diagonal);
    check_launch("unit_columns");
    // S = W⁻¹
    set_identity<double>(ctx, 0, S);
    trsm<double>(ctx, Side::Left, Triangle::Upper, Op::None, W, S);
    triangle_sums<<<grid, warp, 0, ctx.stream()>>>(W, S, scales, {sums, 4, n});
    check_launch("triangle_sums");
    const double* on_host = ctx.state().read_back(found, 6 * n);

    bool singular = false;
    for (Index j = n; j-- > 0;) {
        if (!std::isfinite(on_host[j])) {
            result.condition = result.scaled_condition = std::numeric_limits<double>::quiet_NaN();
            return result;
        }
        if (on_host[j] == 0) result.zero_column = j;
        singular = singular || on_host[j] == 0 || on_host[n + j] == 0;
    }
    if (singular) {
        result.condition = result.scaled_condition = std::numeric_limits<double>::infinity();
    } else {
        result.condition = condition_of(on_host + 2 * n, n, 2, 3);
        result.scaled_condition = condition_of(on_host + 2 * n, n, 0, 1);
    }
    return result;
}

template <class T>
double condition_estimate(Context<Cuda>& ctx, MatrixView<const T, Cuda> R) {
    if (R.rows != R.cols) {
        throw InvalidArgument("condition_estimate: R must be square, and is " + std::to_string(R.rows) + "x" +
                              std::to_string(R.cols));
    }
    return inspect_triangle<T>(ctx, R).condition;
}

template <class T, class D>
void column_norms(Context<D>& ctx, View<const T, D> A, std::span<Real<T>> norms) {
    std::fill(norms.begin(), norms.end(), T(0));
    if (A.empty()) return;
    Arena::Frame frame(ctx);
    T* found = frame.take<T>(A.cols);
    {
        const cublasHandle_t handle = ctx.state().blas();
        const ResultsOnDevice on_device(handle);
        for (Index j = 0; j < A.cols; ++j) check(nrm2(handle, A.rows, A.at(0, j), found + j), "nrm2");
    }
    std::copy_n(ctx.state().read_back(found, A.cols), A.cols, norms.begin());
}

template <class T, class D>
bool equal(Context<D>& ctx, View<const T, D> A, View<const T, D> B) {
    Arena::Frame frame(ctx);
    int* differ = frame.take<int>(1);
    QUOIN_CUDA_CHECK(cudaMemsetAsync(differ, 0, sizeof(int), ctx.stream()));
    for_each_element(ctx, A.rows, A.cols, [=] __device__(Index i, Index j) {
        if (!(A.data[i + j * A.ld] == B.data[i + j * B.ld])) atomicExch(differ, 1);
    });
    return *ctx.state().read_back(differ, 1) == 0;
}

template <class T, class D>
void small_svd(Context<D>& ctx, View<T, D> A, std::span<Real<T>> s, View<T, D> U, View<T, D> Vt) {
    if (A.empty()) return;
    if (A.cols <= Tuning<Cuda>::host_svd_cols(sizeof(T), U.data != nullptr)) {
        svd_on_host<T>(ctx, A, s, U, Vt);
    } else {
        svd_on_device<T>(ctx, A, s, U, Vt);
    }
}

QUOIN_IMPLEMENT(Cuda, inspect_triangle, column_norms, equal, small_svd)
template double condition_estimate<float>(Context<Cuda>&, MatrixView<const float, Cuda>);
template double condition_estimate<double>(Context<Cuda>&, MatrixView<const double, Cuda>);

}  // namespace quoin
