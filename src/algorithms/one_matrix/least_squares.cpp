// Least squares and solutions of least norm by QR of A or of its transpose.

#include "quoin/least_squares.hpp"

#include <fmt/format.h>

#include <optional>
#include <type_traits>

#include "algorithms/one_matrix/least_norm.hpp"
#include "algorithms/one_matrix/mixed_precision.hpp"
#include "algorithms/one_matrix/pivoted_qr.hpp"
#include "algorithms/one_matrix/range_scaling.hpp"
#include "algorithms/shared/copies.hpp"
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

/// Solves min ‖AX − 2^-e B‖ for A = QR or A P = QR, m >= n. R is n×n. The residual norms are multiplied by 2^e.
template <class T, class D>
LeastSquares<T, D> solve_overdetermined(Context<D>& ctx, const QR<T, D>& factorization, MatrixView<const T, D> R,
                                        MatrixView<const T, D> B, int e, const LeastSquaresOptions& solver) {
    const Index m = factorization.rows(), n = factorization.cols();
    const Span span(ctx, "solve");
    LeastSquares<T, D> solution;
    const RankTest test = test_rank<T, D>(ctx, R, m, n, solver, solution, factorization.plan().check_finite,
                                          factorization.report().perturbed_condition, factorization.permutation());

    Matrix<T, D> C = scaled_by_power<T, D>(ctx, -e, B);
    solution.residual_norms.resize(C.cols());
    solution.X = Matrix<T, D>(ctx, n, C.cols());
    if (const auto* basis = Inside::of(factorization).explicit_q()) {
        // R X = C₁ = Q₁ᵀB,   ‖A x_j − b_j‖ = ‖b_j − Q₁C₁(:, j)‖
        const MatrixView<const T, D> Q1 = basis->Q.view();
        const auto C1 = solution.X.view().row_block({0, Q1.cols});
        multiply_transposed<T>(ctx, Q1, C.view(), C1);
        if (Q1.cols < n) set_zero(ctx, solution.X.view().row_block({Q1.cols, n}));
        if (m > Q1.cols) {
            subtract_product<T>(ctx, Q1, C1, C.view());
            column_norms<T>(ctx, C.view(), solution.residual_norms);
        }
    } else {
        // QᵀB = [C₁; C₂],   R X = C₁,   ‖A x_j − b_j‖ = ‖C₂(:, j)‖
        factorization.apply_q(ctx, Side::Left, Op::Transpose, C.view());
        copy<T>(ctx, C.view().row_block({0, n}), solution.X.view());
        column_norms<T>(ctx, C.view().row_block({n, m}), solution.residual_norms);
    }
    solve_of_any_rank<T, D>(ctx, Op::None, R, test, solution);
    for (T& norm : solution.residual_norms) norm = std::scalbn(norm, e);
    return solution;
}

/// Computes the X of least norm with AX = 2^-e B, m < n, from Aᵀ = QR. The residual norms, which are 0 for rank m, are
/// multiplied by 2^e.
template <class T, class D>
LeastSquares<T, D> solve_underdetermined(Context<D>& ctx, const QR<T, D>& factorization, MatrixView<const T, D> R,
                                         MatrixView<const T, D> B, int e, const LeastSquaresOptions& solver) {
    const Span span(ctx, "solve");
    LeastSquares<T, D> solution;
    const RankTest test =
        test_rank<T, D>(ctx, R, R.rows, factorization.rows(), solver, solution, factorization.plan().check_finite,
                        factorization.report().perturbed_condition);

    // Rᵀ Y = B,   X = Q [Y; 0]
    solution.residual_norms.assign(B.cols, T(0));
    solution.X = scaled_by_power<T, D>(ctx, -e, B);
    solve_of_any_rank<T, D>(ctx, Op::Transpose, R, test, solution);
    solution.X = multiply_thin_q<T, D>(ctx, factorization, solution.X.view());
    for (T& norm : solution.residual_norms) norm = std::scalbn(norm, e);
    return solution;
}

/// Moves X and the dependent columns of A P back to A: row order[j] of X := row j.
template <class T, class D>
void undo_pivoting(Context<D>& ctx, std::span<const Index> order, LeastSquares<T, D>& solution) {
    Matrix<T, D> Xt = transposed<T, D>(ctx, solution.X.view());
    permute(ctx, inverse_of(order), Xt.view());
    transpose<T>(ctx, Xt.view(), solution.X.view());
    for (Index& j : solution.dependent) j = order[j];
    std::sort(solution.dependent.begin(), solution.dependent.end());
}

/// Solves min ‖AX − B‖ in T alone.
template <class T, class D>
LeastSquares<T, D> solve(Context<D>& ctx, InputView<T, D> A, MatrixView<const T, D> B,
                         const LeastSquaresOptions& solver, Options options) {
    options = for_thin_products<T>(ctx, A.rows, A.cols, options);
    // 2^-e A X = 2^-e B
    QRInRange<T, D> factored(ctx, A, options, largest_entry<T, D>(ctx, B, options.check_finite));
    auto& [f, R, report, e] = factored;
    LeastSquares<T, D> solution = A.rows < A.cols ? solve_underdetermined<T, D>(ctx, f, R.view(), B, e, solver)
                                                  : solve_overdetermined<T, D>(ctx, f, R.view(), B, e, solver);
    for (Real<T>& value : solution.singular_values) value = std::scalbn(value, e);
    solution.report = report;
    solution.R = std::move(R);
    solution.exponent = e;
    return solution;
}

}  // namespace

template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, InputView<T, D> A, View<const T, D> B,
                                 const LeastSquaresOptions& solver, Options options) {
    require_options(solver, true);
    require_rows(A.rows, A.cols, B.rows);
    require_orthonormal(options, "least_squares");
    require_unpivoted(options, "least_squares");
    if (!solver.mixed_precision) return solve<T, D>(ctx, A, B, solver, options);
    require_mixed_precision(Scalar<T>::kind, A.rows, A.cols, solver, options);
    std::optional<LeastSquares<T, D>> solution;
    if constexpr (std::is_same_v<T, double>) {
        WorkTimer<D> timer(ctx);
        Refinement refinement;
        solution = solve_in_mixed_precision<D>(ctx, A, B, solver, options, refinement);
        options.arithmetic = Arithmetic::Auto;  // f32's
        if (!solution) solution = solve<T, D>(ctx, A, B, solver, options);
        solution->refinement = std::move(refinement);
        timer.stop();
        solution->report.seconds = timer.seconds();
    }
    return std::move(*solution);
}

template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, const QR<T, D>& factorization,
                                 std::type_identity_t<MatrixView<const T, D>> B, const LeastSquaresOptions& solver) {
    require_options(solver);
    const Index m = factorization.rows(), n = factorization.cols();
    if (m < n) {
        throw InvalidArgument(
            fmt::format("least_squares: the factorization is of a {}x{} matrix; an underdetermined system needs that "
                        "of its transpose",
                        m, n));
    }
    require_rows(m, n, B.rows);
    require_orthonormal(factorization.plan(), "least_squares");
    const double largest = largest_entry<T, D>(ctx, B, factorization.plan().check_finite);
    const int e = std::max(0, min_norm_exponent<T>(largest));
    Matrix<T, D> R = factorization.r(ctx);
    if (R.rows() < n) {
        // a limit of pivoting left k rows
        Matrix<T, D> padded(ctx, n, n);
        set_zero(ctx, padded.view());
        copy<T>(ctx, R.view(), padded.view().row_block({0, R.rows()}));
        R = std::move(padded);
    }
    LeastSquares<T, D> solution = solve_overdetermined<T, D>(ctx, factorization, R.view(), B, e, solver);
    if (e != 0) scale_by_power<T, D>(ctx, e, solution.X.view(), solution.X.view());
    if (!factorization.permutation().empty()) undo_pivoting<T, D>(ctx, factorization.permutation(), solution);
    solution.report = factorization.report();
    solution.R = std::move(R);
    return solution;
}

#define QUOIN_INSTANTIATE(T, D)                                                                           \
    template LeastSquares<T, D> least_squares<T, D>(Context<D>&, InputView<T, D>, MatrixView<const T, D>, \
                                                    const LeastSquaresOptions&, Options);                 \
    template LeastSquares<T, D> least_squares<T, D>(Context<D>&, const QR<T, D>&, MatrixView<const T, D>, \
                                                    const LeastSquaresOptions&);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
