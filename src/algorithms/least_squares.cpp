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
    const Span span(ctx, "solve");
    const Matrix<T, D> R = factorization.r(ctx);
    LeastSquares<T, D> solution;
    solution.condition = require_full_rank<T, D>(ctx, R.view(), m, n, rcond);

    solution.residual_norms.resize(p);
    solution.X = Matrix<T, D>(ctx, n, p);
    if (holds_thin_q(factorization)) {
        // R X = C₁ = Q₁ᵀB,   ‖A x_j − b_j‖ = ‖b_j − Q₁C₁(:, j)‖
        const MatrixView<const T, D> Q1 = factorization.impl().Q.view();
        multiply_transposed<T>(ctx, Q1, B, solution.X.view());
        if (m > n) {
            Matrix<T, D> E = copy_of<T, D>(ctx, B);
            subtract_product<T>(ctx, Q1, solution.X.view(), E.view());
            column_norms<T>(ctx, E.view(), solution.residual_norms);
        }
    } else {
        // QᵀB = [C₁; C₂],   R X = C₁,   ‖A x_j − b_j‖ = ‖C₂(:, j)‖
        Matrix<T, D> C = copy_of<T, D>(ctx, B);
        factorization.apply_q(ctx, Side::Left, Op::Transpose, C.view());
        copy<T>(ctx, C.view().row_block({0, n}), solution.X.view());
        column_norms<T>(ctx, C.view().row_block({n, m}), solution.residual_norms);
    }
    solve_triangle<T>(ctx, Triangle::Upper, Op::None, R.view(), solution.X.view());
    solution.report = factorization.report();
    return solution;
}

/// The X of least norm with AX = B, m < n, from Aᵀ = QR.
template <class T, class D>
LeastSquares<T, D> solve_underdetermined(Context<D>& ctx, MatrixView<const T, D> A, MatrixView<const T, D> B,
                                         double rcond, const Options& options) {
    const Index m = A.rows, n = A.cols;
    WorkTimer<D> timer(ctx);
    const QR<T, D> factorization = qr_of_transpose(ctx, A, options);
    timer.stop();
    const Span span(ctx, "solve");
    const Matrix<T, D> R = factorization.r(ctx);
    LeastSquares<T, D> solution;
    solution.condition = require_full_rank<T, D>(ctx, R.view(), m, n, rcond);
    solution.report = completed(factorization.report(), timer);

    // Rᵀ Y = B,   X = Q [Y; 0]
    Matrix<T, D> Y = copy_of<T, D>(ctx, B);
    solve_triangle<T>(ctx, Triangle::Upper, Op::Transpose, R.view(), Y.view());
    solution.X = multiply_thin_q<T, D>(ctx, factorization, Y.view());
    solution.residual_norms.assign(B.cols, T(0));
    return solution;
}

}  // namespace

template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, MatrixView<const T, D> A,
                                 std::type_identity_t<MatrixView<const T, D>> B, double rcond, Options options) {
    require_rows(A.rows, A.cols, B.rows);
    require_orthonormal(options, "least_squares");
    if (options.q == QForm::None) options.q = QForm::Any;
    if (options.check_finite) require_finite<T>(ctx, B, "B");
    if (A.rows < A.cols) return solve_underdetermined<T>(ctx, A, B, rcond, options);
    WorkTimer<D> timer(ctx);
    const QR<T, D> factorization = qr<T>(ctx, A, options);
    timer.stop();
    LeastSquares<T, D> solution = solve_overdetermined<T>(ctx, factorization, B, rcond);
    solution.report = completed(solution.report, timer);
    return solution;
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
    require_orthonormal(factorization.plan(), "least_squares");
    if (factorization.plan().check_finite) require_finite<T>(ctx, B, "B");
    return solve_overdetermined<T>(ctx, factorization, B, rcond);
}

#define QUOIN_INSTANTIATE(T, D)                                                                                  \
    template LeastSquares<T, D> least_squares<T, D>(Context<D>&, MatrixView<const T, D>, MatrixView<const T, D>, \
                                                    double, Options);                                            \
    template LeastSquares<T, D> least_squares<T, D>(Context<D>&, const QR<T, D>&, MatrixView<const T, D>, double);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
