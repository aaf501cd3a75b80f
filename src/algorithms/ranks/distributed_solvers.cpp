// Least squares and the SVD of rows spread over ranks: R is handled on one rank, Q on all.

#include <fmt/format.h>

#include <bit>
#include <numeric>
#include <optional>

#include "algorithms/one_matrix/least_norm.hpp"
#include "algorithms/one_matrix/range_scaling.hpp"
#include "algorithms/ranks/distributed.hpp"
#include "algorithms/shared/matrix_checks.hpp"

namespace quoin {
namespace {

void require_tall(const char* what, Index m, Index n) {
    if (m < n)
        throw InvalidArgument(
            fmt::format("{} over ranks needs at least as many rows as columns, and A is {}x{}", what, m, n));
}

/// 2^-e A = QR, with e = 0 unless R would overflow or lose digits to underflow. Every rank has R.
template <class T, class D>
struct RankQRInRange {
    DistributedQR<T, D> factors;
    Matrix<T, D> R;
    int exponent = 0;

    /// `other`: as for `solver_exponent`, equal on all ranks.
    RankQRInRange(Context<D>& ctx, Communicator& comm, MatrixView<const T, D> A, const Options& options,
                  double other = 0)
        : factors(qr<T, D>(ctx, comm, A, options)), R(factors.r(ctx)) {
        Matrix<T, D> scaled;
        JointCall call(host_context(ctx), comm, RankOperation::ChooseRange);
        call.attempt([&] {
            exponent = solver_exponent<T>(entry_norms<T>(ctx, R.view()).largest, other);
            if (exponent != 0) scaled = scaled_by_power<T, D>(ctx, -exponent, A);
        });
        call.agree();
        if (exponent == 0) return;
        factors = qr<T, D>(ctx, comm, std::as_const(scaled).view(), options);
        R = factors.r(ctx);
    }
};

/// Checks B before the ranks agree to solve, also for finite entries with `check_finite`. Returns the largest entry of
/// this rank's B.
template <class T, class D>
double largest_of_rank(Context<D>& ctx, MatrixView<const T, D> B, Index rows, bool check_finite) {
    check_matrix(B);
    if (rows != B.rows) throw InvalidArgument(fmt::format("least_squares: B has {} rows, and A {}", B.rows, rows));
    if (check_finite) require_finite<T>(ctx, B, "B");
    return entry_norms<T>(ctx, B).largest;
}

/// Returns the largest of the ranks' `mine`.
template <class D>
double largest_of_all(Context<D>& ctx, Communicator& comm, double mine) {
    Matrix<double> largest(1, 1);
    largest(0, 0) = mine;
    comm.all_reduce<double>(host_context(ctx), largest.view(), Reduction::Max);
    return largest(0, 0);
}

/// Solves min ‖AX − 2^-e B‖ for A = QR over ranks, m >= n. The residual norms are multiplied by 2^e.
template <class T, class D>
LeastSquares<T, D> solve_over_ranks(Context<D>& ctx, JointCall& call, const DistributedFactorization<T, D>& f,
                                    MatrixView<const T, D> B, int e, LeastSquaresOptions solver) {
    Context<Host>& host = host_context(ctx);
    const Index n = f.plan.cols, p = B.cols;
    LeastSquares<T, D> solution;
    std::optional<ThinProduct<T, D>> product;
    Matrix<T, D> X;
    Matrix<T> norms, part;
    Matrix<double> found;  // condition, rank, tolerance, and for each column whether it is dependent
    call.attempt([&] {
        product.emplace(ctx, f, p);
        X = scaled_by_power<T, D>(ctx, -e, B);
        norms = Matrix<T>(p, 1);
        part = Matrix<T>(p, 1);
        found = Matrix<double>(n + 3, 1);
    });
    call.agree();
    // 2^-e B = Q₁C₁ + the rest,   X = R⁺C₁,   ‖A x_j − b_j‖ = 2^e ‖[rest(:, j); (C₁ − R X)(:, j)]‖
    solution.X = product->project(ctx, call, std::move(X), &solution.residual_norms);
    const int root = f.layout.root();
    call.attempt([&] { std::copy_n(solution.residual_norms.data(), p, norms.data()); });
    reduce_entries<T>(call.comm(), host, norms.view(), part.view(), root, call.note(),
                      [](T a, T b) { return std::hypot(a, b); });
    if (f.is_root()) {
        call.attempt(
            [&] {
                std::copy_n(norms.data(), p, solution.residual_norms.data());
                solver.singular_values = false;
                const RankTest test = test_rank<T, D>(ctx, f.R.view(), f.plan.rows, n, solver, solution,
                                                      f.plan.check_finite, f.report.perturbed_condition);
                solve_of_any_rank<T, D>(ctx, Op::None, f.R.view(), test, solution);
                std::copy_n(solution.residual_norms.data(), p, norms.data());
                set_zero(host, found.view());
                found(0, 0) = solution.condition;
                found(1, 0) = static_cast<double>(solution.rank);
                found(2, 0) = solution.tolerance;
                for (const Index j : solution.dependent) found(3 + j, 0) = 1;
            },
            JointCall::Of::All);
    }
    call.share<T>(ctx, solution.X.view(), root);
    call.share<T>(host, norms.view(), root);
    call.share<double>(host, found.view(), root);
    for (Index j = 0; j < p; ++j) solution.residual_norms[j] = std::scalbn(norms(j, 0), e);
    solution.condition = found(0, 0);
    solution.rank = static_cast<Index>(found(1, 0));
    solution.tolerance = found(2, 0);
    solution.dependent.clear();
    for (Index j = 0; j < n; ++j)
        if (found(3 + j, 0) != 0) solution.dependent.push_back(j);
    solution.report = f.report;
    return solution;
}

}  // namespace

template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, Communicator& comm, MatrixView<const T, D> A,
                                 std::type_identity_t<MatrixView<const T, D>> B, const LeastSquaresOptions& solver,
                                 Options options) {
    if (options.q == QForm::None) options.q = QForm::Any;
    JointCall call(host_context(ctx), comm, RankOperation::LeastSquares);
    double largest = 0;
    call.attempt([&] {
        require_options(solver);
        check_matrix(A);
        largest = largest_of_rank<T, D>(ctx, B, A.rows, options.check_finite);
    });
    const auto heights = call.agree({{"the number of columns of A", A.cols},
                                     {"the number of columns of B", B.cols},
                                     {"the size of an element", sizeof(T)},
                                     {"Options::check_finite", options.check_finite},
                                     {"rcond (its bits)", std::bit_cast<Index>(solver.rcond)},
                                     {"refuse_deficient", solver.refuse_deficient}},
                                    A.rows);
    require_tall("least_squares", std::accumulate(heights.begin(), heights.end(), Index{0}), A.cols);
    RankQRInRange<T, D> factored(ctx, comm, A, options, largest_of_all(ctx, comm, largest));
    LeastSquares<T, D> solution =
        solve_over_ranks<T, D>(ctx, call, InsideRanks::of(factored.factors), B, factored.exponent, solver);
    solution.R = std::move(factored.R);
    solution.exponent = factored.exponent;
    return solution;
}

template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, const DistributedQR<T, D>& factorization,
                                 std::type_identity_t<MatrixView<const T, D>> B, const LeastSquaresOptions& solver) {
    const auto& f = InsideRanks::of(factorization);
    JointCall call(host_context(ctx), *f.comm, RankOperation::LeastSquares);
    double largest = 0;
    call.attempt([&] {
        require_options(solver);
        f.require_q("least_squares");
        largest = largest_of_rank<T, D>(ctx, B, f.own_rows(), f.plan.check_finite);
    });
    call.agree({{"the number of columns of B", B.cols},
                {"rcond (its bits)", std::bit_cast<Index>(solver.rcond)},
                {"refuse_deficient", solver.refuse_deficient}});
    require_tall("least_squares", f.plan.rows, f.plan.cols);
    const int e = std::max(0, min_norm_exponent<T>(largest_of_all(ctx, *f.comm, largest)));
    LeastSquares<T, D> solution = solve_over_ranks<T, D>(ctx, call, f, B, e, solver);
    if (e != 0) scale_by_power<T, D>(ctx, e, solution.X.view(), solution.X.view());
    return solution;
}

template <class T, class D>
SVD<T, D> svd(Context<D>& ctx, Communicator& comm, MatrixView<const T, D> A, bool vectors, Options options) {
    if (!vectors) options.q = QForm::None;
    if (vectors && options.q == QForm::None) options.q = QForm::Any;
    const Index n = A.cols;
    const RankQRInRange<T, D> factored(ctx, comm, A, options);
    require_tall("svd", factored.factors.rows(), n);
    const auto& f = InsideRanks::of(factored.factors);
    Context<Host>& host = host_context(ctx);
    JointCall call(host, comm, RankOperation::Svd);
    SVD<T, D> result;
    result.report = factored.factors.report();
    Matrix<T> values;
    Matrix<T, D> left, R;
    std::optional<ThinProduct<T, D>> product;
    call.attempt([&] {
        values = Matrix<T>(n, 1);
        R = copy_of<T, D>(ctx, factored.R.view());
        result.s.resize(n);
        if (!vectors) return;
        left = Matrix<T, D>(ctx, n, n);
        result.Vt = Matrix<T, D>(ctx, n, n);
        product.emplace(ctx, f, n);
    });
    call.agree({{"vectors", vectors}});
    // R = U₁ΣVᵀ,   U = Q U₁
    const int root = f.layout.root();
    if (f.is_root()) {
        call.attempt(
            [&] {
                small_svd<T>(ctx, R.view(), result.s, left.view(), result.Vt.view());
                std::copy(result.s.begin(), result.s.end(), values.data());
            },
            JointCall::Of::All);
    }
    call.share<T>(host, values.view(), root);
    for (Index j = 0; j < n; ++j) result.s[j] = std::scalbn(values(j, 0), factored.exponent);
    if (!vectors) return result;
    call.share<T>(ctx, left.view(), root);
    call.share<T>(ctx, result.Vt.view(), root);
    result.U = product->expand(ctx, call, left.view());
    call.agree();
    return result;
}

#define QUOIN_INSTANTIATE(T, D)                                                                                      \
    template LeastSquares<T, D> least_squares<T, D>(Context<D>&, Communicator&, MatrixView<const T, D>,              \
                                                    MatrixView<const T, D>, const LeastSquaresOptions&, Options);    \
    template LeastSquares<T, D> least_squares<T, D>(Context<D>&, const DistributedQR<T, D>&, MatrixView<const T, D>, \
                                                    const LeastSquaresOptions&);                                     \
    template SVD<T, D> svd<T, D>(Context<D>&, Communicator&, MatrixView<const T, D>, bool, Options);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
