// SVD of a matrix with m >= n. LAPACK decomposes a small one on one thread. All threads reduce a larger one to
// bidiagonal form, and decompose that, but for its values alone, which LAPACK computes on one thread.

#include <fmt/format.h>
#include <lapacke.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "host/bidiagonal.hpp"
#include "host/device.hpp"
#include "host/tuning.hpp"

namespace quoin {
namespace {

lapack_int gesdd(char job, lapack_int m, lapack_int n, float* A, lapack_int lda, float* s, float* U, lapack_int ldu,
                 float* Vt, lapack_int ldvt, float* work, lapack_int lwork, lapack_int* iwork) {
    return LAPACKE_sgesdd_work(LAPACK_COL_MAJOR, job, m, n, A, lda, s, U, ldu, Vt, ldvt, work, lwork, iwork);
}
lapack_int gesdd(char job, lapack_int m, lapack_int n, double* A, lapack_int lda, double* s, double* U, lapack_int ldu,
                 double* Vt, lapack_int ldvt, double* work, lapack_int lwork, lapack_int* iwork) {
    return LAPACKE_dgesdd_work(LAPACK_COL_MAJOR, job, m, n, A, lda, s, U, ldu, Vt, ldvt, work, lwork, iwork);
}
lapack_int gesvd(char job, lapack_int m, lapack_int n, float* A, lapack_int lda, float* s, float* U, lapack_int ldu,
                 float* Vt, lapack_int ldvt, float* superdiagonal) {
    return LAPACKE_sgesvd(LAPACK_COL_MAJOR, job, job, m, n, A, lda, s, U, ldu, Vt, ldvt, superdiagonal);
}
lapack_int gesvd(char job, lapack_int m, lapack_int n, double* A, lapack_int lda, double* s, double* U, lapack_int ldu,
                 double* Vt, lapack_int ldvt, double* superdiagonal) {
    return LAPACKE_dgesvd(LAPACK_COL_MAJOR, job, job, m, n, A, lda, s, U, ldu, Vt, ldvt, superdiagonal);
}
lapack_int bdsdc(lapack_int n, float* d, float* e, float* work, lapack_int* iwork) {
    return LAPACKE_sbdsdc_work(LAPACK_COL_MAJOR, 'U', 'N', n, d, e, nullptr, 1, nullptr, 1, nullptr, nullptr, work,
                               iwork);
}
lapack_int bdsdc(lapack_int n, double* d, double* e, double* work, lapack_int* iwork) {
    return LAPACKE_dbdsdc_work(LAPACK_COL_MAJOR, 'U', 'N', n, d, e, nullptr, 1, nullptr, 1, nullptr, nullptr, work,
                               iwork);
}
lapack_int bdsqr(lapack_int cols, lapack_int n, float* d, float* e, float* Vt, lapack_int ldvt, float* U,
                 lapack_int ldu, float* work) {
    return LAPACKE_sbdsqr_work(LAPACK_COL_MAJOR, 'U', n, cols, cols, 0, d, e, Vt, ldvt, U, ldu, nullptr, 1, work);
}
lapack_int bdsqr(lapack_int cols, lapack_int n, double* d, double* e, double* Vt, lapack_int ldvt, double* U,
                 lapack_int ldu, double* work) {
    return LAPACKE_dbdsqr_work(LAPACK_COL_MAJOR, 'U', n, cols, cols, 0, d, e, Vt, ldvt, U, ldu, nullptr, 1, work);
}

/// One thread for OpenMP, and so for a BLAS built on it, until the end of the scope.
class Sequential {
public:
    Sequential() { omp_set_num_threads(1); }
    Sequential(const Sequential&) = delete;
    ~Sequential() { omp_set_num_threads(threads_); }

private:
    int threads_ = omp_get_max_threads();
};

/// Throws what the `info` of QR iteration says.
void require_success(lapack_int info, Index n) {
    if (info < 0) throw OutOfMemory("svd: no memory for LAPACK's workspace");
    if (info > 0)
        throw NumericalBreakdown(fmt::format("svd: {} of {} superdiagonals did not converge to zero", info, n),
                                 info - 1);
}

/// U, s, Vt := the SVD of the upper bidiagonal B, by divide and conquer, or by QR iteration if that does not converge.
/// `work` holds 3n² + 4n numbers if U has data, else 4n.
template <class T>
void bidiagonal_svd(Context<Host>& ctx, const host::Bidiagonal<T>& B, std::span<T> s, MatrixView<T> U, MatrixView<T> Vt,
                    T* work) {
    const auto n = static_cast<lapack_int>(s.size()), ldu = static_cast<lapack_int>(U.ld),
               ldvt = static_cast<lapack_int>(Vt.ld);
    const Sequential sequential;
    std::vector<T> e(B.e);
    std::vector<lapack_int> iwork(8 * s.size());
    std::copy(B.d.begin(), B.d.end(), s.begin());
    if (U.data ? host::divide_and_conquer<T>(ctx, s, B.e, U, Vt, work)
               : bdsdc(n, s.data(), e.data(), work, iwork.data()) == 0)
        return;
    std::copy(B.d.begin(), B.d.end(), s.begin());
    std::copy(B.e.begin(), B.e.end(), e.begin());
    if (U.data) {
        set_identity<T>(ctx, 0, U);
        set_identity<T>(ctx, 0, Vt);
    }
    require_success(bdsqr(U.data ? n : 0, n, s.data(), e.data(), Vt.data, ldvt, U.data, ldu, work), s.size());
}

/// A = H [B; 0] Gᵀ, B = U₁ΣW, U = H [U₁; 0], Vᵀ = W Gᵀ.
template <class T>
void svd_by_panels(Context<Host>& ctx, MatrixView<T> A, std::span<T> s, MatrixView<T> U, MatrixView<T> Vt) {
    const Index n = A.cols;
    // the entries of 2⁻ᵉA are below 2, and their products within T's range
    const Real<T> largest = entry_norms<T>(ctx, A).largest;
    constexpr int most = std::numeric_limits<T>::max_exponent - 2;
    const int e = largest > 0 ? std::clamp(std::ilogb(largest), -most, most) : 0;
    // columns that do not evict each other from a cache
    const Index ld =
        Tuning<Host>::columns_collide(A.ld * Index{sizeof(T)}) ? Tuning<Host>::rows_apart(A.rows, sizeof(T)) : 0;
    Matrix<T> apart(ld, n);
    const MatrixView<T> W = ld > 0 ? MatrixView<T>(apart.data(), A.rows, n, ld) : A;
    scaled_copy<T>(ctx, std::ldexp(1.0, -e), A, W);
    host::Bidiagonal<T> B = host::reduce_to_bidiagonal(ctx, W);
    Matrix<T> work(n, U.data ? 3 * n + 4 : 4);
    bidiagonal_svd<T>(ctx, B, s, U.row_block({0, n}), Vt, work.data());
    for (T& value : s) value = std::scalbn(value, e);
    if (!U.data) return;
    set_zero<T>(ctx, U.row_block({n, A.rows}));
    host::apply_reflectors(ctx, 0, B.V, B.tau_v, U);
    const MatrixView<T> V = work.view().col_block({0, n});
    transpose<T>(ctx, Vt, V);
    host::apply_reflectors(ctx, 1, B.U.view(), B.tau_u, V);
    transpose<T>(ctx, V, Vt);
}

}  // namespace

template <class T, class D>
void small_svd(Context<D>& ctx, View<T, D> A, std::span<Real<T>> s, View<T, D> U, View<T, D> Vt) {
    if (A.empty()) return;
    // of Inf LAPACK's QR iteration never ends
    for (Index j = 0; j < A.cols; ++j) {
        if (!std::all_of(A.at(0, j), A.at(A.rows, j), [](T x) { return std::isfinite(x); }))
            throw NumericalBreakdown("svd: A or R holds NaN or Inf", 0);
    }
    const auto m = static_cast<lapack_int>(A.rows), n = static_cast<lapack_int>(A.cols);
    const auto lda = static_cast<lapack_int>(A.ld), ldu = static_cast<lapack_int>(U.ld),
               ldvt = static_cast<lapack_int>(Vt.ld);
    const char job = U.data ? 'S' : 'N';
    if (A.cols >= Tuning<Host>::min_reduced_by_panels) return svd_by_panels<T>(ctx, A, s, U, Vt);
    const Sequential sequential;
    Matrix<T> A_again(m, n);
    copy<T>(ctx, A, A_again.view());
    std::vector<lapack_int> iwork(8 * A.cols);
    T best;
    gesdd(job, m, n, A.data, lda, s.data(), U.data, ldu, Vt.data, ldvt, &best, -1, iwork.data());
    std::vector<T> work(static_cast<std::size_t>(best));
    if (gesdd(job, m, n, A.data, lda, s.data(), U.data, ldu, Vt.data, ldvt, work.data(),
              static_cast<lapack_int>(work.size()), iwork.data()) == 0)
        return;
    copy<T>(ctx, A_again.view(), A);
    require_success(gesvd(job, m, n, A.data, lda, s.data(), U.data, ldu, Vt.data, ldvt, work.data()), A.cols);
}

QUOIN_IMPLEMENT(Host, small_svd)

}  // namespace quoin
