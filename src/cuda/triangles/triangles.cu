// Products and solves with triangles: cuBLAS's trsm and trmm, GEMM with a copy that has the triangle's zeros, and
// triangles/multiply_upper.cuh up to 256 columns.

#include "cuda/elements/elementwise.cuh"
#include "cuda/runtime/blas.hpp"
#include "cuda/runtime/device.hpp"
#include "cuda/triangles/multiply_upper.cuh"
#include "cuda/tuning.hpp"

namespace quoin {
namespace {

using namespace cuda;

/// X := op(A) X, or X op(A): copies of both, and one GEMM.
template <class T>
void multiply_copied(Context<Cuda>& ctx, Side side, Triangle triangle, Op op, MatrixView<const T, Cuda> A,
                     MatrixView<T, Cuda> X) {
    const Index n = A.rows;
    Arena::Frame frame(ctx);
    const auto B = frame.matrix<T>(n, n), Y = frame.matrix<T>(X.rows, X.cols);
    for_each_element(ctx, std::max(n, X.rows), n + X.cols, [=] __device__(Index i, Index j) {
        if (j >= n) {
            if (i < X.rows) Y.data[i + (j - n) * Y.ld] = X.data[i + (j - n) * X.ld];
        } else if (i < n) {
            const bool stored = triangle == Triangle::Upper ? i <= j : triangle == Triangle::Lower ? i >= j : i > j;
            B.data[i + j * n] = stored ? A.data[i + j * A.ld] : T(i == j && triangle == Triangle::UnitLower);
        }
    });
    if (side == Side::Left) {
        gemm<T>(ctx, op, Op::None, 1, B, Y, 0, X);
    } else {
        gemm<T>(ctx, Op::None, op, 1, Y, B, 0, X);
    }
}

}  // namespace

template <class T, class P, class D>
void multiply_upper(Context<D>& ctx, View<const T, D> S, View<const T, D> R, View<P, D> to,
                    CertificateView<D> certificate) {
    const Index n = R.rows;
    if (n == 0) return;
    if (n <= product_rows) {
        cuda::multiply_upper<T, P>(ctx, S, R, to, certificate.data);
    } else {
        // cuBLAS writes whatever the certificate says
        if (certificate.data && read_certificate(ctx, certificate).refused()) return;
        Arena::Frame frame(ctx);
        const auto X = frame.matrix<T>(n, n);
        copy_triangle<T>(ctx, R, X);
        if (S.data) trmm<T>(ctx, Side::Left, Triangle::Upper, Op::None, 1, S, X);
        for_each_element(ctx, n, n, [=] __device__(Index i, Index j) {
            to.data[i + j * to.ld] = static_cast<P>(X.data[i + j * n]);
        });
    }
    ctx.state().add_flops(1.0 / 3.0 * n * n * n);
}

template <class T, class D>
void solve_triangle(Context<D>& ctx, Triangle triangle, Op op, View<const T, D> A, View<T, D> X) {
    trsm<T>(ctx, Side::Left, triangle, op, A, X);
    ctx.state().add_flops(1.0 * A.rows * A.rows * X.cols);
}

template <class T, class D>
void multiply_triangle(Context<D>& ctx, Side side, Triangle triangle, Op op, View<const T, D> A, View<T, D> X) {
    const Index n = A.rows, half = n / 2;
    if (X.empty()) return;
    if (n <= Tuning<Cuda>::copied_width) {
        multiply_copied<T>(ctx, side, triangle, op, A, X);
        ctx.state().add_flops(1.0 * n * X.rows * X.cols);
        return;
    }
    const Range head{0, half}, tail{half, n};
    const bool left = side == Side::Left, stored_upper = triangle == Triangle::Upper;
    const auto part = [&](Range r) { return left ? X.row_block(r) : X.col_block(r); };
    // the part of X that takes something of the other one comes first: X₁ where op(A) X has an upper triangle, or
    // X op(A) a lower one
    const bool first = left == (stored_upper == (op == Op::None));
    const Range to = first ? head : tail, from = first ? tail : head;
    const auto corner = stored_upper ? A.block(head, tail) : A.block(tail, head);
    multiply_triangle<T>(ctx, side, triangle, op, A.block(to, to), part(to));
    if (left) {
        gemm<T>(ctx, op, Op::None, 1, corner, part(from), 1, part(to));
    } else {
        gemm<T>(ctx, Op::None, op, 1, part(from), corner, 1, part(to));
    }
    ctx.state().add_flops(2.0 * half * (n - half) * (left ? X.cols : X.rows));
    multiply_triangle<T>(ctx, side, triangle, op, A.block(from, from), part(from));
}

QUOIN_IMPLEMENT(Cuda, solve_triangle, multiply_triangle)
template decltype(multiply_upper<float, float, Cuda>) multiply_upper<float, float, Cuda>;
template decltype(multiply_upper<double, double, Cuda>) multiply_upper<double, double, Cuda>;
template decltype(multiply_upper<double, float, Cuda>) multiply_upper<double, float, Cuda>;
template decltype(multiply_upper<float, double, Cuda>) multiply_upper<float, double, Cuda>;

}  // namespace quoin
