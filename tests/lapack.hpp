#pragma once

#include <lapacke.h>

#include "quoin/matrix.hpp"

/// LAPACK as the independent reference, one name for both precisions. Every call returns `info`.
namespace quoin::test::lapack {

inline lapack_int geqrf(MatrixView<double> A, double* tau) {
    return LAPACKE_dgeqrf(LAPACK_COL_MAJOR, A.rows, A.cols, A.data, A.ld, tau);
}
inline lapack_int geqrf(MatrixView<float> A, float* tau) {
    return LAPACKE_sgeqrf(LAPACK_COL_MAJOR, A.rows, A.cols, A.data, A.ld, tau);
}

/// V (m×q, reflectors in its first k columns) becomes the first q columns of Q.
inline lapack_int orgqr(MatrixView<double> V, Index k, const double* tau) {
    return LAPACKE_dorgqr(LAPACK_COL_MAJOR, V.rows, V.cols, k, V.data, V.ld, tau);
}
inline lapack_int orgqr(MatrixView<float> V, Index k, const float* tau) {
    return LAPACKE_sorgqr(LAPACK_COL_MAJOR, V.rows, V.cols, k, V.data, V.ld, tau);
}

/// C := op(Q) C (side 'L') or C op(Q) (side 'R'), op by `trans` 'N' or 'T'.
inline lapack_int ormqr(char side, char trans, Index k, MatrixView<const double> V, const double* tau,
                        MatrixView<double> C) {
    return LAPACKE_dormqr(LAPACK_COL_MAJOR, side, trans, C.rows, C.cols, k, V.data, V.ld, tau, C.data, C.ld);
}
inline lapack_int ormqr(char side, char trans, Index k, MatrixView<const float> V, const float* tau,
                        MatrixView<float> C) {
    return LAPACKE_sormqr(LAPACK_COL_MAJOR, side, trans, C.rows, C.cols, k, V.data, V.ld, tau, C.data, C.ld);
}

}  // namespace quoin::test::lapack
