#include "rivals/reference_lapack.hpp"

#include <fmt/format.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "rivals/in_precision.hpp"

namespace quoin::cli {

namespace {

/// The routines of T's precision under one name.
template <class T>
struct Lapacke {
    static constexpr auto geqrf = bench::in_precision<T>(LAPACKE_sgeqrf_work, LAPACKE_dgeqrf_work);
    static constexpr auto geqrt = bench::in_precision<T>(LAPACKE_sgeqrt_work, LAPACKE_dgeqrt_work);
    static constexpr auto geqrt3 = bench::in_precision<T>(LAPACKE_sgeqrt3_work, LAPACKE_dgeqrt3_work);
    static constexpr auto orgqr = bench::in_precision<T>(LAPACKE_sorgqr_work, LAPACKE_dorgqr_work);
    static constexpr auto ormqr = bench::in_precision<T>(LAPACKE_sormqr_work, LAPACKE_dormqr_work);
    static constexpr auto gels = bench::in_precision<T>(LAPACKE_sgels_work, LAPACKE_dgels_work);
    static constexpr auto gesdd = bench::in_precision<T>(LAPACKE_sgesdd_work, LAPACKE_dgesdd_work);
};

lapack_int dimension(Index size) {
    if (size > std::numeric_limits<lapack_int>::max())
        throw InvalidArgument(
            fmt::format("the reference LAPACK counts in 32 bits, too few for a dimension of {}", size));
    return static_cast<lapack_int>(size);
}

void check(const char* name, lapack_int info) {
    if (info != 0) throw InvalidArgument(fmt::format("the reference LAPACK's {} returned info = {}", name, info));
}

/// Runs `routine(work, lwork)` twice: to ask for the optimal lwork, then with it.
template <class T, class Routine>
void run_with_workspace(const char* name, std::vector<T>& work, Routine routine) {
    T optimal = 0;
    lapack_int info = routine(&optimal, -1);
    if (info == 0) {
        // A count kept in a float is rounded, perhaps down.
        const double count = std::ceil(static_cast<double>(optimal) * (1 + std::numeric_limits<T>::epsilon()));
        if (static_cast<double>(work.size()) < count) work.resize(static_cast<std::size_t>(count));
        info = routine(work.data(), dimension(static_cast<Index>(work.size())));
    }
    check(name, info);
}

}  // namespace

template <class T>
ReferenceLapack<T>::ReferenceLapack(Index m, Index n)
    : tau_(static_cast<std::size_t>(std::min(dimension(m), dimension(n)))),
      iwork_(8 * static_cast<std::size_t>(std::min(m, n))) {}

template <class T>
void ReferenceLapack<T>::geqrf(MatrixView<T> A) {
    run_with_workspace("geqrf", work_, [&](T* work, lapack_int lwork) {
        return Lapacke<T>::geqrf(LAPACK_COL_MAJOR, dimension(A.rows), dimension(A.cols), A.data, dimension(A.ld),
                                 tau_.data(), work, lwork);
    });
}

template <class T>
void ReferenceLapack<T>::geqrt(MatrixView<T> A, MatrixView<T> Tf) {
    work_.resize(std::max(work_.size(), static_cast<std::size_t>(Tf.rows * A.cols)));
    check("geqrt", Lapacke<T>::geqrt(LAPACK_COL_MAJOR, dimension(A.rows), dimension(A.cols), dimension(Tf.rows), A.data,
                                     dimension(A.ld), Tf.data, dimension(Tf.ld), work_.data()));
}

template <class T>
void ReferenceLapack<T>::geqrt3(MatrixView<T> A, MatrixView<T> Tf) {
    check("geqrt3", Lapacke<T>::geqrt3(LAPACK_COL_MAJOR, dimension(A.rows), dimension(A.cols), A.data, dimension(A.ld),
                                       Tf.data, dimension(Tf.ld)));
}

template <class T>
void ReferenceLapack<T>::ormqr(MatrixView<const T> A, MatrixView<T> C) {
    const lapack_int k = std::min(dimension(A.rows), dimension(A.cols));
    run_with_workspace("ormqr", work_, [&](T* work, lapack_int lwork) {
        return Lapacke<T>::ormqr(LAPACK_COL_MAJOR, 'L', 'T', dimension(C.rows), dimension(C.cols), k, A.data,
                                 dimension(A.ld), tau_.data(), C.data, dimension(C.ld), work, lwork);
    });
}

template <class T>
void ReferenceLapack<T>::orgqr(MatrixView<T> A) {
    orgqr(A, tau_.data());
}

template <class T>
void ReferenceLapack<T>::orgqr(MatrixView<T> A, const T* tau) {
    const lapack_int k = std::min(dimension(A.rows), dimension(A.cols));
    run_with_workspace("orgqr", work_, [&](T* work, lapack_int lwork) {
        return Lapacke<T>::orgqr(LAPACK_COL_MAJOR, dimension(A.rows), k, k, A.data, dimension(A.ld), tau, work, lwork);
    });
}

template <class T>
void ReferenceLapack<T>::gels(MatrixView<T> A, MatrixView<T> b) {
    run_with_workspace("gels", work_, [&](T* work, lapack_int lwork) {
        return Lapacke<T>::gels(LAPACK_COL_MAJOR, 'N', dimension(A.rows), dimension(A.cols), dimension(b.cols), A.data,
                                dimension(A.ld), b.data, dimension(b.ld), work, lwork);
    });
}

template <class T>
void ReferenceLapack<T>::gesdd(MatrixView<T> A, MatrixView<T> U, std::vector<T>& s, MatrixView<T> Vt) {
    run_with_workspace("gesdd", work_, [&](T* work, lapack_int lwork) {
        return Lapacke<T>::gesdd(LAPACK_COL_MAJOR, 'S', dimension(A.rows), dimension(A.cols), A.data, dimension(A.ld),
                                 s.data(), U.data, dimension(U.ld), Vt.data, dimension(Vt.ld), work, lwork,
                                 iwork_.data());
    });
}

template class ReferenceLapack<float>;
template class ReferenceLapack<double>;

}  // namespace quoin::cli
