// Least squares and least-norm solutions by QR of A or of its transpose.

#include "quoin/least_squares.hpp"

#include <fmt/format.h>

#include "algorithms/one_matrix/full_rank.hpp"
#include "algorithms/one_matrix/range_scaling.hpp"
#include "devices.hpp"

namespace quoin {
namespace {

void require_rows(Index m, Index n, Index rows_of_B) {
    if (rows_of_B != m) {
        throw InvalidArgument(fmt::format("least_squares: B has {} rows, and A is {}x{}", rows_of_B, m, n));
    }
}

/// Returns max |b_ij|. With `check_finite` throws NonFiniteEntry.
template <class T, class D>
double largest_entry(Context<D>& ctx, MatrixView<const T, D> B, bool check_finite) {
    if (check_finite) require_finite<T>(ctx, B, "B");
    return entry_norms<T>(ctx, B).largest;
}

/// Solves min ‖AX − 2^-e B‖ for A = QR, m >= n. The residual norms are multiplied by 2^e.
template <class T, class D>
LeastSquares<T, D> solve_overdetermined(Context<D>& ctx, const QR<T, D>& factorization, MatrixView<const T, D> R,
                                        MatrixView<const T, D> B, int e, double rcond) {
    const Index m = factorization.rows(), n = factorization.cols();
    const Span span(ctx, "solve");
    LeastSquares<T, D> solution;
    solution.condition = require_full_rank<T, D>(ctx, R, m, n, rcond, factorization.plan().check_finite,
                                                 factorization.report().perturbed_condition);

    Matrix<T, D> C = scaled_by_power<T, D>(ctx, -e, B);
    solution.residual_norms.resize(C.cols());
    solution.X = Matrix<T, D>(ctx, n, C.cols());
    if (const auto* basis = Inside::of(factorization).explicit_q()) {
        // R X = C₁ = Q₁ᵀB,   ‖A x_j − b_j‖ = ‖b_j − Q₁C₁(:, j)‖
        const MatrixView<const T, D> Q1 = basis->Q.view();
        multiply_transposed<T>(ctx, Q1, C.view(), solution.X.view());
        if (m > n) {
            subtract_product<T>(ctx, Q1, solution.X.view(), C.view());
            column_norms<T>(ctx, C.view(), solution.residual_norms);
        }
    } else {
        // QᵀB = [C₁; C₂],   R X = C₁,   ‖A x_j − b_j‖ = ‖C₂(:, j)‖
        factorization.apply_q(ctx, Side::Left, Op::Transpose, C.view());
        copy<T>(ctx, C.view().row_block({0, n}), solution.X.view());
        column_norms<T>(ctx, C.view().row_block({n, m}), solution.residual_norms);
    }
    solve_triangle<T>(ctx, Triangle::Upper, Op::None, R, solution.X.view());
    for (T& norm : solution.residual_norms) norm = std::scalbn(norm, e);
    return solution;
}

/// Computes the X of least norm with AX = 2^-e B, m < n, from Aᵀ = QR.
template <class T, class D>
LeastSquares<T, D> solve_underdetermined(Context<D>& ctx, const QR<T, D>& factorization, MatrixView<const T, D> R,
                                         MatrixView<const T, D> B, int e, double rcond) {
    const Span span(ctx, "solve");
    LeastSquares<T, D> solution;
    solution.condition =
        require_full_rank<T, D>(ctx, R, R.rows, factorization.rows(), rcond, factorization.plan().check_finite,
                                factorization.report().perturbed_condition);

    // Rᵀ Y = B,   X = Q [Y; 0]
    Matrix<T, D> Y = scaled_by_power<T, D>(ctx, -e, B);
    solve_triangle<T>(ctx, Triangle::Upper, Op::Transpose, R, Y.view());
    solution.X = multiply_thin_q<T, D>(ctx, factorization, Y.view());
    solution.residual_norms.assign(Y.cols(), T(0));
    return solution;
}

}  // namespace

template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, InputView<T, D> A, View<const T, D> B, double rcond,
                                 Options options) {
    rcond = rank_tolerance<T>(rcond);
    require_rows(A.rows, A.cols, B.rows);
    require_orthonormal(options, "least_squares");
    require_unpivoted(options, "least_squares");
    options = for_thin_products<T>(ctx, A.rows, A.cols, options);
    // 2^-e A X = 2^-e B
    QRInRange<T, D> factored(ctx, A, options, largest_entry<T, D>(ctx, B, options.check_finite));
    auto& [f, R, report, e] = factored;
    LeastSquares<T, D> solution = A.rows < A.cols ? solve_underdetermined<T, D>(ctx, f, R.view(), B, e, rcond)
                                                  : solve_overdetermined<T, D>(ctx, f, R.view(), B, e, rcond);
    solution.report = report;
    solution.R = std::move(R);
    solution.exponent = e;
    return solution;
}

template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, const QR<T, D>& factorization,
                                 std::type_identity_t<MatrixView<const T, D>> B, double rcond) {
    rcond = rank_tolerance<T>(rcond);
    const Index m = factorization.rows(), n = factorization.cols();
    if (m < n) {
        throw InvalidArgument(
            fmt::format("least_squares: the factorization is of a {}x{} matrix; an underdetermined system needs that "
                        "of its transpose",
                        m, n));
    }
    require_rows(m, n, B.rows);
    require_orthonormal(factorization.plan(), "least_squares");
    require_unpivoted(factorization.plan(), "least_squares");
    const double largest = largest_entry<T, D>(ctx, B, factorization.plan().check_finite);
    const int e = std::max(0, min_norm_exponent<T>(largest));
    Matrix<T, D> R = factorization.r(ctx);
    LeastSquares<T, D> solution = solve_overdetermined<T, D>(ctx, factorization, R.view(), B, e, rcond);
    if (e != 0) scale_by_power<T, D>(ctx, e, solution.X.view(), solution.X.view());
    solution.report = factorization.report();
    solution.R = std::move(R);
    return solution;
}

#define QUOIN_INSTANTIATE(T, D)                                                                                   \
    template LeastSquares<T, D> least_squares<T, D>(Context<D>&, InputView<T, D>, MatrixView<const T, D>, double, \
                                                    Options);                                                     \
    template LeastSquares<T, D> least_squares<T, D>(Context<D>&, const QR<T, D>&, MatrixView<const T, D>, double);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
