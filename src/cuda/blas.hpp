#pragma once

// cuBLAS with 64-bit sizes, by type.

#include "cuda/primitives.hpp"
#include "cuda/state.hpp"

namespace quoin::cuda {

inline cublasOperation_t blas_op(Op op) { return op == Op::None ? CUBLAS_OP_N : CUBLAS_OP_T; }

/// C := alpha op(A) op(B) + beta C.
template <class T>
void gemm(Context<Cuda>& ctx, Op op_a, Op op_b, T alpha, MatrixView<const T, Cuda> A, MatrixView<const T, Cuda> B,
          T beta, MatrixView<T, Cuda> C) {
    if (C.empty()) return;
    const Index k = op_a == Op::None ? A.cols : A.rows;
    const auto call = [&] {
        if constexpr (sizeof(T) == 8) {
            return cublasDgemm_64(ctx.state().blas(), blas_op(op_a), blas_op(op_b), C.rows, C.cols, k, &alpha, A.data,
                                  A.ld, B.data, B.ld, &beta, C.data, C.ld);
        } else {
            return cublasSgemm_64(ctx.state().blas(), blas_op(op_a), blas_op(op_b), C.rows, C.cols, k, &alpha, A.data,
                                  A.ld, B.data, B.ld, &beta, C.data, C.ld);
        }
    };
    check(call(), "gemm");
}

/// parts + c·n·p := A(rows c)ᵀ B(rows c) for `count` runs of h rows.
template <class T>
void gemm_of_rows(Context<Cuda>& ctx, Index count, Index h, MatrixView<const T, Cuda> A, MatrixView<const T, Cuda> B,
                  T* parts) {
    const T one = 1, zero = 0;
    const Index n = A.cols, p = B.cols;
    if (count == 0) return;
    const auto call = [&] {
        if constexpr (sizeof(T) == 8) {
            return cublasDgemmStridedBatched_64(ctx.state().blas(), CUBLAS_OP_T, CUBLAS_OP_N, n, p, h, &one, A.data,
                                                A.ld, h, B.data, B.ld, h, &zero, parts, n, n * p, count);
        } else {
            return cublasSgemmStridedBatched_64(ctx.state().blas(), CUBLAS_OP_T, CUBLAS_OP_N, n, p, h, &one, A.data,
                                                A.ld, h, B.data, B.ld, h, &zero, parts, n, n * p, count);
        }
    };
    check(call(), "gemmStridedBatched");
}

/// X := op(A)⁻¹ X, or X op(A)⁻¹.
template <class T>
void trsm(Context<Cuda>& ctx, Side side, Triangle triangle, Op op, MatrixView<const T, Cuda> A, MatrixView<T, Cuda> X) {
    if (X.empty()) return;
    const T one = 1;
    const auto left = side == Side::Left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
    const auto upper = triangle == Triangle::Upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
    const auto unit = triangle == Triangle::Upper ? CUBLAS_DIAG_NON_UNIT : CUBLAS_DIAG_UNIT;
    const auto call = [&] {
        if constexpr (sizeof(T) == 8) {
            return cublasDtrsm_64(ctx.state().blas(), left, upper, blas_op(op), unit, X.rows, X.cols, &one, A.data,
                                  A.ld, X.data, X.ld);
        } else {
            return cublasStrsm_64(ctx.state().blas(), left, upper, blas_op(op), unit, X.rows, X.cols, &one, A.data,
                                  A.ld, X.data, X.ld);
        }
    };
    check(call(), "trsm");
}

/// X := alpha A X, or alpha X A, A upper triangular.
template <class T>
void trmm_upper(Context<Cuda>& ctx, Side side, T alpha, MatrixView<const T, Cuda> A, MatrixView<T, Cuda> X) {
    if (X.empty()) return;
    const auto left = side == Side::Left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
    const auto call = [&] {
        if constexpr (sizeof(T) == 8) {
            return cublasDtrmm_64(ctx.state().blas(), left, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT,
                                  X.rows, X.cols, &alpha, A.data, A.ld, X.data, X.ld, X.data, X.ld);
        } else {
            return cublasStrmm_64(ctx.state().blas(), left, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT,
                                  X.rows, X.cols, &alpha, A.data, A.ld, X.data, X.ld, X.data, X.ld);
        }
    };
    check(call(), "trmm");
}

}  // namespace quoin::cuda
