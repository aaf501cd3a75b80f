#pragma once

#include <lapacke.h>

#include <algorithm>
#include <vector>

#include "quoin/matrix.hpp"

/// LAPACK as the independent reference, one name for both precisions. Every call returns `info`.
namespace quoin::test::lapack {

inline lapack_int geqrf(MatrixView<double> A, double* tau) {
    return LAPACKE_dgeqrf(LAPACK_COL_MAJOR, A.rows, A.cols, A.data, A.ld, tau);
}
inline lapack_int geqrf(MatrixView<float> A, float* tau) {
    return LAPACKE_sgeqrf(LAPACK_COL_MAJOR, A.rows, A.cols, A.data, A.ld, tau);
}

/// geqp3: A P = QR; pivots are one-based, and those that are not 0 on entry are moved to the front.
inline lapack_int geqp3(MatrixView<double> A, lapack_int* pivots, double* tau) {
    return LAPACKE_dgeqp3(LAPACK_COL_MAJOR, A.rows, A.cols, A.data, A.ld, pivots, tau);
}
inline lapack_int geqp3(MatrixView<float> A, lapack_int* pivots, float* tau) {
    return LAPACKE_sgeqp3(LAPACK_COL_MAJOR, A.rows, A.cols, A.data, A.ld, pivots, tau);
}

/// gglse: x of min ‖A x − c‖ subject to B x = d. A, B, c and d are lost.
inline lapack_int gglse(MatrixView<double> A, MatrixView<double> B, double* c, double* d, double* x) {
    return LAPACKE_dgglse(LAPACK_COL_MAJOR, A.rows, A.cols, B.rows, A.data, A.ld, B.data, B.ld, c, d, x);
}
inline lapack_int gglse(MatrixView<float> A, MatrixView<float> B, float* c, float* d, float* x) {
    return LAPACKE_sgglse(LAPACK_COL_MAJOR, A.rows, A.cols, B.rows, A.data, A.ld, B.data, B.ld, c, d, x);
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

/// A := V and R, Tf (nb×k) := the T of blocks of nb columns.
inline lapack_int geqrt(MatrixView<double> A, MatrixView<double> Tf) {
    return LAPACKE_dgeqrt(LAPACK_COL_MAJOR, A.rows, A.cols, Tf.rows, A.data, A.ld, Tf.data, Tf.ld);
}
inline lapack_int geqrt(MatrixView<float> A, MatrixView<float> Tf) {
    return LAPACKE_sgeqrt(LAPACK_COL_MAJOR, A.rows, A.cols, Tf.rows, A.data, A.ld, Tf.data, Tf.ld);
}

/// geqrt3: A = QR with one T, m >= n.
inline lapack_int geqrt3(MatrixView<double> A, MatrixView<double> Tf) {
    return LAPACKE_dgeqrt3(LAPACK_COL_MAJOR, A.rows, A.cols, A.data, A.ld, Tf.data, Tf.ld);
}
inline lapack_int geqrt3(MatrixView<float> A, MatrixView<float> Tf) {
    return LAPACKE_sgeqrt3(LAPACK_COL_MAJOR, A.rows, A.cols, A.data, A.ld, Tf.data, Tf.ld);
}

/// As ormqr, with Tf (nb×k). LAPACKE_?gemqrt allocates too little where C is wider than high (3.11), so its middle
/// level.
inline lapack_int gemqrt(char side, char trans, MatrixView<const double> V, MatrixView<const double> Tf,
                         MatrixView<double> C) {
    std::vector<double> work(std::max(C.rows, C.cols) * Tf.rows);
    return LAPACKE_dgemqrt_work(LAPACK_COL_MAJOR, side, trans, C.rows, C.cols, Tf.cols, Tf.rows, V.data, V.ld, Tf.data,
                                Tf.ld, C.data, C.ld, work.data());
}
inline lapack_int gemqrt(char side, char trans, MatrixView<const float> V, MatrixView<const float> Tf,
                         MatrixView<float> C) {
    std::vector<float> work(std::max(C.rows, C.cols) * Tf.rows);
    return LAPACKE_sgemqrt_work(LAPACK_COL_MAJOR, side, trans, C.rows, C.cols, Tf.cols, Tf.rows, V.data, V.ld, Tf.data,
                                Tf.ld, C.data, C.ld, work.data());
}

/// [A; B] := op(Q) [A; B] with V = [I; V_B], l = 0.
inline lapack_int tpmqrt(char side, char trans, MatrixView<const double> V, MatrixView<const double> Tf,
                         MatrixView<double> A, MatrixView<double> B) {
    std::vector<double> work(std::max(B.rows, B.cols) * Tf.rows);
    return LAPACKE_dtpmqrt_work(LAPACK_COL_MAJOR, side, trans, B.rows, B.cols, Tf.cols, 0, Tf.rows, V.data, V.ld,
                                Tf.data, Tf.ld, A.data, A.ld, B.data, B.ld, work.data());
}
inline lapack_int tpmqrt(char side, char trans, MatrixView<const float> V, MatrixView<const float> Tf,
                         MatrixView<float> A, MatrixView<float> B) {
    std::vector<float> work(std::max(B.rows, B.cols) * Tf.rows);
    return LAPACKE_stpmqrt_work(LAPACK_COL_MAJOR, side, trans, B.rows, B.cols, Tf.cols, 0, Tf.rows, V.data, V.ld,
                                Tf.data, Tf.ld, A.data, A.ld, B.data, B.ld, work.data());
}

/// gelsd: B, of max(m, n) rows, becomes the X of least norm; s receives the singular values of A, which is lost.
inline lapack_int gelsd(MatrixView<double> A, MatrixView<double> B, double* s, double rcond, lapack_int* rank) {
    return LAPACKE_dgelsd(LAPACK_COL_MAJOR, A.rows, A.cols, B.cols, A.data, A.ld, B.data, B.ld, s, rcond, rank);
}

}  // namespace quoin::test::lapack
