#include "accuracy.hpp"

#include "cuda/blas.hpp"
#include "cuda/elementwise.cuh"

namespace quoin::bench {

namespace {

/// B := A.
template <class T>
void widen(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<double, Cuda> B) {
    cuda::for_each_element(ctx, A.rows, A.cols,
                           [A, B] __device__(Index i, Index j) { B.data[i + j * B.ld] = A.data[i + j * A.ld]; });
}

/// A in double: a copy for float, A itself for double.
template <class T>
class Widened {
public:
    Widened(Context<Cuda>& ctx, const Matrix<T, Cuda>& A) : copy_(ctx, A.rows(), A.cols()) {
        widen<T>(ctx, A.view(), copy_.view());
    }
    MatrixView<const double, Cuda> view() const { return copy_.view(); }

private:
    Matrix<double, Cuda> copy_;
};
template <>
class Widened<double> {
public:
    Widened(Context<Cuda>&, const Matrix<double, Cuda>& A) : view_(A.view()) {}
    MatrixView<const double, Cuda> view() const { return view_; }

private:
    MatrixView<const double, Cuda> view_;
};

double frobenius_norm(Context<Cuda>& ctx, const Matrix<double, Cuda>& A) {
    double norm = 0;
    QUOIN_CUDA_CHECK(cublasDnrm2_64(ctx.state().blas(), A.rows() * A.cols(), A.data(), 1, &norm));
    return norm;
}

}  // namespace

template <class T>
double orthogonality(Context<Cuda>& ctx, const Matrix<T, Cuda>& Q) {
    const Widened<T> wide(ctx, Q);
    Matrix<double, Cuda> G(ctx, Q.cols(), Q.cols());
    set_identity<double>(ctx, 0, G.view());
    // G := QᵀQ − I
    cuda::gemm<double>(ctx, Op::Transpose, Op::None, 1, wide.view(), wide.view(), -1, G.view());
    return frobenius_norm(ctx, G);
}

template <class T>
double residual(Context<Cuda>& ctx, const Matrix<T, Cuda>& A, const Matrix<T, Cuda>& Q, const Matrix<T, Cuda>& R) {
    const Widened<T> wide_Q(ctx, Q), wide_R(ctx, R);
    Matrix<double, Cuda> E(ctx, A.rows(), A.cols());
    widen<T>(ctx, A.view(), E.view());
    const double norm = frobenius_norm(ctx, E);
    // E := A − QR
    cuda::gemm<double>(ctx, Op::None, Op::None, -1, wide_Q.view(), wide_R.view(), 1, E.view());
    return frobenius_norm(ctx, E) / norm;
}

template <class T>
Matrix<T, Cuda> upper_trapezoid(Context<Cuda>& ctx, const Matrix<T, Cuda>& V_R) {
    const Index k = std::min(V_R.rows(), V_R.cols());
    Matrix<T, Cuda> R(ctx, k, V_R.cols());
    cuda::for_each_element(ctx, k, V_R.cols(), [from = V_R.view(), to = R.view()] __device__(Index i, Index j) {
        to.data[i + j * to.ld] = i <= j ? from.data[i + j * from.ld] : T(0);
    });
    return R;
}

template double orthogonality(Context<Cuda>&, const Matrix<float, Cuda>&);
template double orthogonality(Context<Cuda>&, const Matrix<double, Cuda>&);
template double residual(Context<Cuda>&, const Matrix<float, Cuda>&, const Matrix<float, Cuda>&,
                         const Matrix<float, Cuda>&);
template double residual(Context<Cuda>&, const Matrix<double, Cuda>&, const Matrix<double, Cuda>&,
                         const Matrix<double, Cuda>&);
template Matrix<float, Cuda> upper_trapezoid(Context<Cuda>&, const Matrix<float, Cuda>&);
template Matrix<double, Cuda> upper_trapezoid(Context<Cuda>&, const Matrix<double, Cuda>&);

}  // namespace quoin::bench
