#include "measure/cuda/accuracy.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "cuda/elements/elementwise.cuh"
#include "cuda/runtime/blas.hpp"

namespace quoin::bench {

namespace {

/// B := A.
template <class T>
void widen(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<double, Cuda> B) {
    cuda::for_each_element(ctx, A.rows, A.cols,
                           [A, B] __device__(Index i, Index j) { B.data[i + j * B.ld] = A.data[i + j * A.ld]; });
}

/// A block of a matrix in double: a copy for float, the block itself for double.
template <class T>
class Widened {
public:
    Widened(Context<Cuda>& ctx, Index rows, Index cols) : ctx_(ctx), copy_(ctx, sizeof(T) == 8 ? 0 : rows, cols) {}
    MatrixView<const double, Cuda> operator()(MatrixView<const T, Cuda> A) {
        if constexpr (sizeof(T) == 8) {
            return A;
        } else {
            const MatrixView<double, Cuda> B(copy_.data(), A.rows, A.cols);
            widen<T>(ctx_, A, B);
            return B;
        }
    }

private:
    Context<Cuda>& ctx_;
    Matrix<double, Cuda> copy_;
};

Index columns_at_once(Index m, Index n) {
    return std::clamp<Index>((Index(1) << 28) / std::max<Index>(1, m), 1, std::max<Index>(1, n));
}

/// Calls `work` for every `width` of n columns.
template <class Work>
void for_each_block(Index n, Index width, Work work) {
    for (Index j = 0; j < n; j += width) work(Range{j, std::min(n, j + width)});
}

/// ‖A‖_F of a contiguous A.
double frobenius_norm(Context<Cuda>& ctx, MatrixView<const double, Cuda> A) {
    double norm = 0;
    QUOIN_CUDA_CHECK(cublasDnrm2_64(ctx.state().blas(), A.rows * A.cols, A.data, 1, &norm));
    return norm;
}

}  // namespace

template <class T>
double orthogonality(Context<Cuda>& ctx, const Matrix<T, Cuda>& Q) {
    const Index m = Q.rows(), k = Q.cols(), width = columns_at_once(m, k);
    Widened<T> left(ctx, m, width), right(ctx, m, width);
    Matrix<double, Cuda> G(ctx, width, width);
    double norm = 0;
    for_each_block(k, width, [&](Range J) {
        const auto Q_j = right(Q.view().col_block(J));
        for_each_block(J.end, width, [&](Range I) {
            const bool diagonal = I.begin == J.begin;
            const MatrixView<double, Cuda> G_ij(G.data(), I.size(), J.size());
            if (diagonal) set_identity<double>(ctx, 0, G_ij);
            // G_ij := Q_iᵀQ_j − δ_ij I;  ‖G_ji‖ = ‖G_ij‖
            cuda::gemm<double>(ctx, Op::Transpose, Op::None, 1, diagonal ? Q_j : left(Q.view().col_block(I)), Q_j,
                               diagonal ? -1 : 0, G_ij);
            norm = std::hypot(norm, (diagonal ? 1 : std::numbers::sqrt2) * frobenius_norm(ctx, G_ij));
        });
    });
    return norm;
}

template <class T>
double residual(Context<Cuda>& ctx, const ColumnSource<T>& A, const Matrix<T, Cuda>& Q, const Matrix<T, Cuda>& R) {
    const Index m = Q.rows(), k = Q.cols(), n = R.cols(), width = columns_at_once(m, std::max(k, n));
    Widened<T> wide_Q(ctx, m, width), wide_R(ctx, width, width);
    Matrix<double, Cuda> E(ctx, m, width);
    Matrix<T, Cuda> narrow(ctx, sizeof(T) == 8 ? 0 : m, width);
    double whole = 0, rest = 0;
    for_each_block(n, width, [&](Range J) {
        const MatrixView<double, Cuda> E_j(E.data(), m, J.size());
        if constexpr (sizeof(T) == 8) {
            A(J, E_j);
        } else {
            const MatrixView<T, Cuda> A_j(narrow.data(), m, J.size());
            A(J, A_j);
            widen<T>(ctx, A_j, E_j);
        }
        whole = std::hypot(whole, frobenius_norm(ctx, E_j));
        // E_j := A_j − Σ_i Q_i R_ij
        for_each_block(k, width, [&](Range I) {
            cuda::gemm<double>(ctx, Op::None, Op::None, -1, wide_Q(Q.view().col_block(I)), wide_R(R.view().block(I, J)),
                               1, E_j);
        });
        rest = std::hypot(rest, frobenius_norm(ctx, E_j));
    });
    return rest / whole;
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
template double residual(Context<Cuda>&, const ColumnSource<float>&, const Matrix<float, Cuda>&,
                         const Matrix<float, Cuda>&);
template double residual(Context<Cuda>&, const ColumnSource<double>&, const Matrix<double, Cuda>&,
                         const Matrix<double, Cuda>&);
template Matrix<float, Cuda> upper_trapezoid(Context<Cuda>&, const Matrix<float, Cuda>&);
template Matrix<double, Cuda> upper_trapezoid(Context<Cuda>&, const Matrix<double, Cuda>&);

}  // namespace quoin::bench
