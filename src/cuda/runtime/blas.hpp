#pragma once

// cuBLAS with 64-bit sizes, by type.

#include <cublas_v2.h>

#include "cuda/runtime/device.hpp"
#include "cuda/runtime/state.hpp"

namespace quoin::cuda {

inline void check(cublasStatus_t status, const char* call) {
    if (status != CUBLAS_STATUS_SUCCESS) fail(call, cublasGetStatusString(status));
}

/// cuBLAS reads its scalars in device memory, and leaves scalar results there, while this lives.
class ScalarsOnDevice {
public:
    explicit ScalarsOnDevice(cublasHandle_t blas) : blas_(blas) {
        check(cublasSetPointerMode(blas_, CUBLAS_POINTER_MODE_DEVICE), "cublasSetPointerMode");
    }
    ScalarsOnDevice(const ScalarsOnDevice&) = delete;
    ~ScalarsOnDevice() { cublasSetPointerMode(blas_, CUBLAS_POINTER_MODE_HOST); }

private:
    cublasHandle_t blas_;
};

inline cublasOperation_t blas_op(Op op) { return op == Op::None ? CUBLAS_OP_N : CUBLAS_OP_T; }
inline cublasSideMode_t blas_side(Side side) { return side == Side::Left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT; }
inline cublasFillMode_t blas_fill(Triangle triangle) {
    return triangle == Triangle::Upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
}
inline cublasDiagType_t blas_diagonal(Triangle triangle) {
    return triangle == Triangle::UnitLower ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
}

/// C := alpha op(A) op(B) + beta C.
template <class T>
void gemm(Context<Cuda>& ctx, Op op_a, Op op_b, T alpha, MatrixView<const T, Cuda> A, MatrixView<const T, Cuda> B,
          T beta, MatrixView<T, Cuda> C) {
    if (C.empty()) return;
    const Index k = op_a == Op::None ? A.cols : A.rows;
    const auto call = [&] {
        if constexpr (std::is_same_v<T, double>) {
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
        if constexpr (std::is_same_v<T, double>) {
            return cublasDgemmStridedBatched_64(ctx.state().blas(), CUBLAS_OP_T, CUBLAS_OP_N, n, p, h, &one, A.data,
                                                A.ld, h, B.data, B.ld, h, &zero, parts, n, n * p, count);
        } else {
            return cublasSgemmStridedBatched_64(ctx.state().blas(), CUBLAS_OP_T, CUBLAS_OP_N, n, p, h, &one, A.data,
                                                A.ld, h, B.data, B.ld, h, &zero, parts, n, n * p, count);
        }
    };
    check(call(), "gemmStridedBatched");
}

/// C_i := alpha A_i B_i, i < count, of m×k by k×n, whose memory starts `apart_·` entries one after the other.
template <class T>
void gemm_batched(Context<Cuda>& ctx, Index count, Index m, Index n, Index k, T alpha, const T* A, Index lda,
                  Index apart_a, const T* B, Index ldb, Index apart_b, T* C, Index ldc, Index apart_c) {
    const T zero = 0;
    const auto call = [&](auto routine) {
        return routine(ctx.state().blas(), CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, A, lda, apart_a, B, ldb, apart_b,
                       &zero, C, ldc, apart_c, count);
    };
    if constexpr (std::is_same_v<T, double>) {
        check(call(cublasDgemmStridedBatched_64), "gemmStridedBatched");
    } else {
        check(call(cublasSgemmStridedBatched_64), "gemmStridedBatched");
    }
}

/// result := ‖x‖.
template <class T>
void nrm2(Context<Cuda>& ctx, Index n, const T* x, T* result) {
    if constexpr (std::is_same_v<T, double>) {
        check(cublasDnrm2_64(ctx.state().blas(), n, x, 1, result), "nrm2");
    } else {
        check(cublasSnrm2_64(ctx.state().blas(), n, x, 1, result), "nrm2");
    }
}

/// X := op(A)⁻¹ X, or X op(A)⁻¹.
template <class T>
void trsm(Context<Cuda>& ctx, Side side, Triangle triangle, Op op, MatrixView<const T, Cuda> A, MatrixView<T, Cuda> X) {
    if (X.empty()) return;
    const T one = 1;
    const auto call = [&](auto routine) {
        return routine(ctx.state().blas(), blas_side(side), blas_fill(triangle), blas_op(op), blas_diagonal(triangle),
                       X.rows, X.cols, &one, A.data, A.ld, X.data, X.ld);
    };
    if constexpr (std::is_same_v<T, double>) {
        check(call(cublasDtrsm_64), "trsm");
    } else {
        check(call(cublasStrsm_64), "trsm");
    }
}

/// X := alpha op(A) X, or alpha X op(A), for a triangle A.
template <class T>
void trmm(Context<Cuda>& ctx, Side side, Triangle triangle, Op op, T alpha, MatrixView<const T, Cuda> A,
          MatrixView<T, Cuda> X) {
    if (X.empty()) return;
    const auto call = [&](auto routine) {
        return routine(ctx.state().blas(), blas_side(side), blas_fill(triangle), blas_op(op), blas_diagonal(triangle),
                       X.rows, X.cols, &alpha, A.data, A.ld, X.data, X.ld, X.data, X.ld);
    };
    if constexpr (std::is_same_v<T, double>) {
        check(call(cublasDtrmm_64), "trmm");
    } else {
        check(call(cublasStrmm_64), "trmm");
    }
}

}  // namespace quoin::cuda
