// SVD of a small matrix by LAPACK, on one thread.

#include <fmt/format.h>
#include <lapacke.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "host/device.hpp"

namespace quoin {
namespace {

lapack_int gesdd(char job, lapack_int n, float* A, lapack_int lda, float* s, float* U, lapack_int ldu, float* Vt,
                 lapack_int ldvt, float* work, lapack_int lwork, lapack_int* iwork) {
    return LAPACKE_sgesdd_work(LAPACK_COL_MAJOR, job, n, n, A, lda, s, U, ldu, Vt, ldvt, work, lwork, iwork);
}
lapack_int gesdd(char job, lapack_int n, double* A, lapack_int lda, double* s, double* U, lapack_int ldu, double* Vt,
                 lapack_int ldvt, double* work, lapack_int lwork, lapack_int* iwork) {
    return LAPACKE_dgesdd_work(LAPACK_COL_MAJOR, job, n, n, A, lda, s, U, ldu, Vt, ldvt, work, lwork, iwork);
}
lapack_int gesvd(char job, lapack_int n, float* A, lapack_int lda, float* s, float* U, lapack_int ldu, float* Vt,
                 lapack_int ldvt, float* superdiagonal) {
    return LAPACKE_sgesvd(LAPACK_COL_MAJOR, job, job, n, n, A, lda, s, U, ldu, Vt, ldvt, superdiagonal);
}
lapack_int gesvd(char job, lapack_int n, double* A, lapack_int lda, double* s, double* U, lapack_int ldu, double* Vt,
                 lapack_int ldvt, double* superdiagonal) {
    return LAPACKE_dgesvd(LAPACK_COL_MAJOR, job, job, n, n, A, lda, s, U, ldu, Vt, ldvt, superdiagonal);
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

}  // namespace

template <class T, class D>
void small_svd(Context<D>& ctx, View<T, D> A, std::span<Real<T>> s, View<T, D> U, View<T, D> Vt) {
    if (A.empty()) return;
    // of Inf LAPACK's QR iteration never ends
    for (Index j = 0; j < A.cols; ++j) {
        if (!std::all_of(A.at(0, j), A.at(A.rows, j), [](T x) { return std::isfinite(x); }))
            throw NumericalBreakdown("svd: R holds NaN or Inf", 0);
    }
    const auto n = static_cast<lapack_int>(A.cols);
    const auto lda = static_cast<lapack_int>(A.ld), ldu = static_cast<lapack_int>(U.ld),
               ldvt = static_cast<lapack_int>(Vt.ld);
    const char job = U.data ? 'S' : 'N';
    const Sequential sequential;

    Matrix<T> A_again(A.rows, A.cols);
    copy<T>(ctx, A, A_again.view());
    lapack_int info = 1;
    // gesdd's workspace of 3n² elements must fit in LAPACK's integer
    if (3.1 * n * n < std::numeric_limits<lapack_int>::max()) {
        std::vector<lapack_int> iwork(8 * A.cols);
        T best;
        gesdd(job, n, A.data, lda, s.data(), U.data, ldu, Vt.data, ldvt, &best, -1, iwork.data());
        // an f32 may have rounded the size down
        std::vector<T> work(static_cast<std::size_t>(std::nextafter(best, 2 * best)));
        info = gesdd(job, n, A.data, lda, s.data(), U.data, ldu, Vt.data, ldvt, work.data(),
                     static_cast<lapack_int>(work.size()), iwork.data());
    }
    if (info > 0) {
        std::vector<T> superdiagonal(A.cols);
        info = gesvd(job, n, A_again.data(), n, s.data(), U.data, ldu, Vt.data, ldvt, superdiagonal.data());
    }
    if (info < 0) throw OutOfMemory("svd: no memory for LAPACK's workspace");
    if (info > 0) {
        throw NumericalBreakdown(fmt::format("svd: {} of {} superdiagonals did not converge to zero", info, n),
                                 info - 1);
    }
}

QUOIN_IMPLEMENT(Host, small_svd)

}  // namespace quoin
