#pragma once

// Copies of a matrix in memory of their own.

#include "primitives.hpp"

namespace quoin {

/// Returns a column-major copy of A, a row-major or column-major matrix.
template <class T, class D>
Matrix<T, D> loaded(Context<D>& ctx, InputView<T, D> A) {
    Matrix<T, D> B(ctx, A.rows, A.cols);
    load<T>(ctx, A, B.view());
    return B;
}

/// Returns Aᵀ, in memory of its own.
template <class T, class D>
Matrix<T, D> transposed(Context<D>& ctx, MatrixView<const T, D> A) {
    Matrix<T, D> B(ctx, A.cols, A.rows);
    transpose<T>(ctx, A, B.view());
    return B;
}

/// Returns a copy of A.
template <class T, class D>
Matrix<T, D> copy_of(Context<D>& ctx, MatrixView<const T, D> A) {
    return loaded<T, D>(ctx, A);
}

/// B := A, in the host's memory. Waits.
template <class T, class D>
void bring_to_host(Context<D>& ctx, MatrixView<const T, D> A, MatrixView<T, Host> B) {
    start_copy_to_host<T>(ctx, A, B);
    finish_copies(ctx);
    ctx.wait();
}

/// B := A, which is in the host's memory. Waits.
template <class T, class D>
void bring_from_host(Context<D>& ctx, MatrixView<const T, Host> A, MatrixView<T, D> B) {
    start_copy_from_host<T>(ctx, A, B);
    finish_copies(ctx);
    ctx.wait();
}

/// Returns a copy of A in the host's memory. Waits.
template <class T, class D>
Matrix<T, Host> host_copy_of(Context<D>& ctx, MatrixView<const T, D> A) {
    Matrix<T, Host> B(A.rows, A.cols);
    bring_to_host<T, D>(ctx, A, B.view());
    return B;
}

/// Returns a copy of A, which is in the host's memory, on the device. Waits.
template <class T, class D>
Matrix<T, D> device_copy_of(Context<D>& ctx, MatrixView<const T, Host> A) {
    Matrix<T, D> B(ctx, A.rows, A.cols);
    bring_from_host<T, D>(ctx, A, B.view());
    return B;
}

}  // namespace quoin
