#include "quoin/least_squares.hpp"

#include <fmt/format.h>

#include "algorithms/instantiate.hpp"
#include "algorithms/solver_steps.hpp"

namespace quoin {
namespace {

void require_rows(Index m, Index n, Index rows_of_B) {
    if (rows_of_B != m) {
        throw InvalidArgument(fmt::format("least_squares: B has {} rows, and A is {}x{}", rows_of_B, m, n));
    }
}

/// min ‖AX − B‖ for A = QR, m >= n; B is known to be finite, or not to be checked.
template <class T, class D>
LeastSquares<T, D> solve_overdetermined(Context<D>& ctx, const QR<T, D>& factorization, MatrixView<const T, D> B,
                                        double rcond) {
    const Index m = factorization.rows(), n = factorization.cols(), p = B.cols;
    const Matrix<T, D> R = factorization.r();
    require_full_rank<T>(ctx, R.view(), m, n, rcond);

    // QᵀB = [C₁; C₂],   R X = C₁,   ‖A x_j − b_j‖ = ‖C₂(:, j)‖
    Matrix<T, D> C(m, p);
    copy<T>(ctx, B, C.view());
    factorization.apply_q(ctx, Side::Left, Op::Transpose, C.view());

    LeastSquares<T, D> solution;
    solution.X = Matrix<T, D>(n, p);
    copy<T>(ctx, C.view().row_block({0, n}), solution.X.view());
    solve_triangle<T>(ctx, Triangle::Upper, Op::None, R.view(), solution.X.view());
    for (Index j = 0; j < p; ++j) {
        solution.residual_norms.push_back(column_norm<T>(C.view().block({n, m}, {j, j + 1})));
    }
    solution.condition = condition_estimate<T>(ctx, R.view());
    solution.report = factorization.report();
    return solution;
}

/// The X of least norm with AX = B, m < n, from Aᵀ = QR.
template <class T, class D>
LeastSquares<T, D> solve_underdetermined(Context<D>& ctx, MatrixView<const T, D> A, MatrixView<const T, D> B,
                                         double rcond, const Options& options) {
    const Index m = A.rows, n = A.cols, p = B.cols;
    const QR<T, D> factorization = qr_of_transpose(ctx, A, options);
    const Matrix<T, D> R = factorization.r();
    require_full_rank<T>(ctx, R.view(), m, n, rcond);

    // Rᵀ Y = B,   X = Q [Y; 0]
    LeastSquares<T, D> solution;
    solution.X = Matrix<T, D>(n, p);
    const MatrixView<T, D> X = solution.X.view(), Y = X.row_block({0, m});
    copy<T>(ctx, B, Y);
    solve_triangle<T>(ctx, Triangle::Upper, Op::Transpose, R.view(), Y);
    set_zero(ctx, X.row_block({m, n}));
    factorization.apply_q(ctx, Side::Left, Op::None, X);
    solution.residual_norms.assign(p, T(0));
    solution.condition = condition_estimate<T>(ctx, R.view());
    solution.report = factorization.report();
    return solution;
}

}  // namespace

template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, MatrixView<const T, D> A,
                                 std::type_identity_t<MatrixView<const T, D>> B, double rcond, Options options) {
    require_rows(A.rows, A.cols, B.rows);
    if (options.q == QForm::None) options.q = QForm::Any;
    if (options.check_finite) require_finite<T>(ctx, B, "B");
    if (A.rows >= A.cols) return solve_overdetermined<T>(ctx, qr<T>(ctx, A, options), B, rcond);
    return solve_underdetermined<T>(ctx, A, B, rcond, options);
}

template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, const QR<T, D>& factorization,
                                 std::type_identity_t<MatrixView<const T, D>> B, double rcond) {
    const Index m = factorization.rows(), n = factorization.cols();
    if (m < n) {
        throw InvalidArgument(
            fmt::format("least_squares: the factorization is of a {}x{} matrix; an underdetermined system needs that "
                        "of its transpose",
                        m, n));
    }
    require_rows(m, n, B.rows);
    if (factorization.plan().check_finite) require_finite<T>(ctx, B, "B");
    return solve_overdetermined<T>(ctx, factorization, B, rcond);
}

#define QUOIN_INSTANTIATE(T, D)                                                                                  \
    template LeastSquares<T, D> least_squares<T, D>(Context<D>&, MatrixView<const T, D>, MatrixView<const T, D>, \
                                                    double, Options);                                            \
    template LeastSquares<T, D> least_squares<T, D>(Context<D>&, const QR<T, D>&, MatrixView<const T, D>, double);
QUOIN_FOR_EACH_HOST_TYPE(QUOIN_INSTANTIATE)

}  // namespace quoin
