// The SVD of a small matrix: by the host, or by cuSOLVER's polar decomposition with a certificate.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cuda/elements/elementwise.cuh"
#include "cuda/elements/warp_sums.cuh"
#include "cuda/kernel_choice.hpp"
#include "cuda/runtime/blas.hpp"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/solver.hpp"
#include "cuda/tuning.hpp"

namespace quoin {

// svd_on_host calls the host's small_svd, not the one that this file defines
extern template decltype(small_svd<float, Host>) small_svd<float, Host>;
extern template decltype(small_svd<double, Host>) small_svd<double, Host>;

namespace {

using namespace cuda;

/// tops[j] := max_i |a_ij|; NaN where an entry is not finite. One warp a column.
template <class T>
__global__ void __launch_bounds__(32) column_tops_kernel(MatrixView<const T, Cuda> A, double* tops) {
    const Index j = blockIdx.x;
    double top = 0;
    bool finite = true;
    for (Index i = threadIdx.x; i < A.rows; i += 32) {
        const double x = fabs(static_cast<double>(A.data[i + j * A.ld]));
        finite = finite && isfinite(x);
        top = fmax(top, x);
    }
    top = warp_max(top);
    finite = __all_sync(~0u, finite);
    if (threadIdx.x == 0) tops[j] = finite ? top : NAN;
}

/// A = U diag(s) Vᵀ with V itself in `V`, by the polar decomposition (gesvdp; Nakatsukasa and Higham 2013). A is lost.
/// False where it did not converge. Where it did, U and V are orthogonal, but U diag(s) Vᵀ is not always A: of 160
/// columns ‖A − U diag(s) Vᵀ‖/‖A‖ is 2e-15 for κ < 1e6, up to 2e-12 for κ = 1e10, and up to 1e-4 where A is singular.
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

/// In double for either type, scaled by a power of two to entries of at most 2: the polar decomposition takes as long
/// in f32 as in f64, where its errors are of no account for f32 data. Its result is taken where its residual certifies
/// it.
template <class T>
void svd_on_device(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, std::span<T> s, MatrixView<T, Cuda> U,
                   MatrixView<T, Cuda> Vt) {
    const Index n = A.cols;
    const bool vectors = U.data != nullptr;
    Arena::Frame frame(ctx);
    double* tops = frame.take<double>(n);
    launch(ctx.stream(), column_tops_kernel<T>, {static_cast<unsigned>(small_size(n)), 32}, A, tops);
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

}  // namespace

template <class T, class D>
void small_svd(Context<D>& ctx, View<T, D> A, std::span<Real<T>> s, View<T, D> U, View<T, D> Vt) {
    if (A.empty()) return;
    if (choose_svd(A.cols, scalar_kind<T>, U.data != nullptr) == SvdKernel::Host) {
        svd_on_host<T>(ctx, A, s, U, Vt);
    } else {
        svd_on_device<T>(ctx, A, s, U, Vt);
    }
}

QUOIN_IMPLEMENT(Cuda, small_svd)

}  // namespace quoin
