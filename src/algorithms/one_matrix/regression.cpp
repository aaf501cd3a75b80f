// Statistics of a linear regression from the triangular factor of [A b], and least squares with constraints.

#include "quoin/regression.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "algorithms/one_matrix/least_norm.hpp"
#include "algorithms/one_matrix/solver_steps.hpp"
#include "algorithms/shared/copies.hpp"
#include "devices.hpp"
#include "quoin/gram_schmidt.hpp"

namespace quoin {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// Returns P(|t| >= |t_value|) for Student's t distribution.
double two_sided_p_value(double t_value, double degrees_of_freedom) {
    if (std::isnan(t_value)) return unknown;
    return boost::math::ibeta(degrees_of_freedom / 2, 0.5,
                              degrees_of_freedom / (degrees_of_freedom + t_value * t_value));
}

/// Returns P(F >= f_value) for the F distribution.
double f_p_value(double f_value, double df1, double df2) {
    if (std::isnan(f_value)) return unknown;
    return boost::math::ibeta(df2 / 2, df1 / 2, df2 / (df2 + df1 * f_value));
}

void require_weights(std::span<const double> weights, Index rows) {
    if (!weights.empty() && static_cast<Index>(weights.size()) != rows)
        throw InvalidArgument(
            fmt::format("regression: {} weights were given for {} observations", weights.size(), rows));
    for (std::size_t i = 0; i < weights.size(); ++i)
        if (!(weights[i] >= 0 && std::isfinite(weights[i])))
            throw InvalidArgument(
                fmt::format("regression: weight {} is {}, and weights are finite and not negative", i, weights[i]));
}

template <class T>
Matrix<double> in_double(MatrixView<const T> A) {
    Matrix<double> B(A.rows, A.cols);
    for (Index j = 0; j < A.cols; ++j) std::copy_n(A.at(0, j), A.rows, B.view().at(0, j));
    return B;
}

template <class T>
Matrix<T> chosen_columns(MatrixView<const T> A, const std::vector<Index>& columns) {
    Matrix<T> B(A.rows, static_cast<Index>(columns.size()));
    for (Index j = 0; j < B.cols(); ++j) std::copy_n(A.at(0, columns[j]), A.rows, B.view().at(0, j));
    return B;
}

std::vector<Index> all_but(const std::vector<Index>& left_out, Index n) {
    std::vector<Index> rest;
    for (Index j = 0; j < n; ++j)
        if (!std::binary_search(left_out.begin(), left_out.end(), j)) rest.push_back(j);
    return rest;
}

/// Returns the columns of R that do not depend on earlier ones: of each, more than `tolerance` of its norm remains.
template <class T>
std::vector<Index> independent_columns(Context<Host>& ctx, MatrixView<const T> R, double tolerance) {
    GramSchmidt<T> basis(ctx, R.rows, R.cols);
    std::vector<Index> found;
    for (Index j = 0; j < R.cols && basis.cols() < R.rows; ++j) {
        Matrix<T> rest = copy_of<T, Host>(ctx, R.col_block({j, j + 1}));
        T norm = 0, left = 0;
        column_norms<T>(ctx, rest.view(), {&norm, 1});
        basis.orthogonalize(ctx, rest.view());
        column_norms<T>(ctx, rest.view(), {&left, 1});
        if (!(left > tolerance * norm)) continue;
        basis.append(ctx, R.col_block({j, j + 1}));
        found.push_back(j);
    }
    return found;
}

/// The solution with the columns `model` of R: [R(:, model); √λ I] = Q U, where the intercept has no row of √λ I.
template <class T>
LeastSquares<T> solve_with(Context<Host>& ctx, MatrixView<const T> R, MatrixView<const T> C,
                           const std::vector<Index>& model, const RegressionOptions& options) {
    const Index n = R.rows, r = static_cast<Index>(model.size());
    Matrix<T> S(n + (options.ridge > 0 ? r : 0), r), D(S.rows(), C.cols);
    set_zero(ctx, S.view());
    set_zero(ctx, D.view());
    copy<T>(ctx, chosen_columns<T>(R, model).view(), S.view().row_block({0, n}));
    copy<T>(ctx, C, D.view().row_block({0, n}));
    for (Index j = 0; j < S.rows() - n; ++j)
        if (!options.intercept || model[j] > 0) S(n + j, j) = static_cast<T>(std::sqrt(options.ridge));
    return least_squares<T, Host>(ctx, qr(ctx, S.view()), D.view());
}

/// Returns the regression whose √W [1 A B] has the triangular or trapezoidal factor W = [R C; 0 E], R with n columns.
template <class T>
Regression regression_from(Context<Host>& ctx, MatrixView<const T> W, Index n, Index rows,
                           const RegressionOptions& options) {
    require_weights(options.weights, rows);
    if (!(options.ridge >= 0 && std::isfinite(options.ridge)))
        throw InvalidArgument(fmt::format("regression: the ridge is {}, and must not be negative", options.ridge));
    const Index p = W.cols - n, k = std::min(n, W.rows), constant = options.intercept;
    Matrix<T> R(n, n), C(n, p);
    set_zero(ctx, R.view());
    set_zero(ctx, C.view());
    copy<T>(ctx, W.block({0, k}, {0, n}), R.view().row_block({0, k}));
    copy<T>(ctx, W.block({0, k}, {n, n + p}), C.view().row_block({0, k}));
    std::vector<T> left(static_cast<std::size_t>(p));
    column_norms<T>(ctx, W.block({k, W.rows}, {n, n + p}), left);

    std::vector<Index> model(static_cast<std::size_t>(n));
    std::iota(model.begin(), model.end(), Index(0));
    LeastSquares<T> solution = solve_with<T>(ctx, R.view(), C.view(), model, options);
    Regression fit;
    if (solution.rank < n) {
        model = independent_columns<T>(ctx, R.view(), solution.tolerance);
        if (static_cast<Index>(model.size()) != solution.rank) model = all_but(solution.dependent, n);
        fit.dependent = all_but(model, n);
        solution = solve_with<T>(ctx, R.view(), C.view(), model, options);
    }
    const Index r = static_cast<Index>(model.size());
    fit.observations = options.weights.empty() ? rows
                                               : std::count_if(options.weights.begin(), options.weights.end(),
                                                               [](double w) { return w > 0; });
    fit.rank = r;
    fit.intercept = options.intercept;
    fit.ridge = options.ridge;
    fit.condition = solution.condition;
    fit.R = in_double<T>(solution.R.view());
    const MatrixView<const double> U = fit.R.view();

    // V = R₀U⁻¹ for R₀ = R(:, model): the thin Q of A in the basis of R's rows, I without a ridge;   Z = U⁻¹Vᵀ
    const Matrix<double> R0 = in_double<T>(chosen_columns<T>(R.view(), model).view());
    Matrix<double> inverse(r, r), Z(r, r);
    set_identity<double>(ctx, 0, inverse.view());
    solve_triangle<double>(ctx, Triangle::Upper, Op::None, U, inverse.view());
    double trace = static_cast<double>(r);
    if (options.ridge > 0) {
        Z = transposed<double, Host>(ctx, R0.view());
        solve_triangle<double>(ctx, Triangle::Upper, Op::Transpose, U, Z.view());
        trace = entry_norms<double>(ctx, Z.view()).squares;
        solve_triangle<double>(ctx, Triangle::Upper, Op::None, U, Z.view());
    } else {
        Z = copy_of<double, Host>(ctx, inverse.view());
    }
    // (UᵀU)⁻¹ = U⁻¹U⁻ᵀ, and the norms of the rows of U⁻¹ and Z and of the columns of U
    const auto norms = [&](MatrixView<const double> A) {
        std::vector<double> lengths(static_cast<std::size_t>(A.cols));
        column_norms<double>(ctx, A, lengths);
        return lengths;
    };
    const Matrix<double> inverse_t = transposed<double, Host>(ctx, inverse.view());
    const std::vector<double> rows_of_inverse = norms(inverse_t.view()), of_columns = norms(U),
                              of_Z = norms(transposed<double, Host>(ctx, Z.view()).view());
    Matrix<double> G(r, r);
    multiply_transposed<double>(ctx, inverse_t.view(), inverse_t.view(), G.view());
    std::vector<double> through_residual(static_cast<std::size_t>(r));  // |G| times the norms of the columns of U
    for (Index j = 0; j < r; ++j)
        for (Index i = 0; i < r; ++i) through_residual[i] += std::abs(G(i, j)) * of_columns[j];

    const double df = fit.degrees_of_freedom = static_cast<double>(fit.observations) - trace;
    const double df_model = static_cast<double>(r - constant), epsilon = std::max<double>(1, r) * Scalar<T>::u;
    for (Matrix<double>* const each :
         {&fit.coefficients, &fit.standard_errors, &fit.t_values, &fit.p_values, &fit.error_bounds}) {
        *each = Matrix<double>(n, p);
        std::fill_n(each->data(), n * p, unknown);
    }
    for (Index c = 0; c < p; ++c) {
        // y = R₀x,   ‖b − Ax‖² = ‖C − y‖² + ‖E‖²
        std::vector<double> y(static_cast<std::size_t>(n));
        for (Index j = 0; j < r; ++j)
            for (Index i = 0; i < n; ++i) y[i] += R0(i, j) * static_cast<double>(solution.X(j, c));
        double residual = static_cast<double>(left[c]), total = residual, explained = 0, size = residual;
        for (Index i = 0; i < n; ++i) {
            const double b = static_cast<double>(C(i, c));
            residual = std::hypot(residual, b - y[i]);
            size = std::hypot(size, b);
            if (i >= constant) total = std::hypot(total, b), explained = std::hypot(explained, y[i]);
        }
        const double s = df > 0 ? residual / std::sqrt(df) : unknown;
        // without a ridge y is orthogonal to the residual: no cancellation
        const double r2 = options.ridge > 0 ? 1 - std::pow(residual / total, 2)
                                            : std::pow(explained / std::hypot(explained, residual), 2);
        const double f = df_model > 0 && options.ridge == 0 ? std::pow(explained / s, 2) / df_model : unknown;
        fit.residual_norms.push_back(residual);
        fit.residual_standard_errors.push_back(s);
        fit.r_squared.push_back(r2);
        fit.adjusted_r_squared.push_back(df > 0 ? 1 - (1 - r2) * static_cast<double>(fit.observations - constant) / df
                                                : unknown);
        fit.f_values.push_back(f);
        fit.f_p_values.push_back(f_p_value(f, df_model, df));

        double terms = size;
        for (Index j = 0; j < r; ++j) terms += of_columns[j] * std::abs(static_cast<double>(solution.X(j, c)));
        for (Index i = 0; i < r; ++i) {
            const Index at = model[i];
            const double x = fit.coefficients(at, c) = static_cast<double>(solution.X(i, c));
            const double error = fit.standard_errors(at, c) = s * of_Z[i];
            fit.t_values(at, c) = options.ridge > 0 ? unknown : x / error;
            fit.p_values(at, c) = two_sided_p_value(fit.t_values(at, c), df);
            fit.error_bounds(at, c) = epsilon * (rows_of_inverse[i] * terms + through_residual[i] * residual);
        }
    }
    return fit;
}

/// Returns √w_i, or 1 without weights, m×1.
template <class T, class D>
Matrix<T, D> roots(Context<D>& ctx, std::span<const double> weights, Index m) {
    Matrix<T> w(m, 1);
    for (Index i = 0; i < m; ++i) w(i, 0) = weights.empty() ? T(1) : static_cast<T>(std::sqrt(weights[i]));
    return device_copy_of<T, D>(ctx, w.view());
}

}  // namespace

template <class T, class D>
Regression regression(Context<D>& ctx, Input<T, D> A, View<const T, D> B, const RegressionOptions& options) {
    const Index m = A.rows, constant = options.intercept, n = constant + A.cols, p = B.cols;
    if (B.rows != m) throw InvalidArgument(fmt::format("regression: B has {} rows, and A is {}x{}", B.rows, m, A.cols));
    require_weights(options.weights, m);
    require_finite<T, D>(ctx, A, "A");
    require_finite<T, D>(ctx, B, "B");
    StreamingR<T, D> rows(ctx, n, p);
    if (!options.intercept && options.weights.empty()) {
        rows.append(ctx, A, B);
    } else {
        // √W [1 A B]
        const Matrix<T, D> w = roots<T, D>(ctx, options.weights, m);
        Matrix<T, D> W(ctx, m, n + p);
        copy<T>(ctx, w.view().col_block({0, constant}), W.view().col_block({0, constant}));
        load<T>(ctx, A, W.view().col_block({constant, n}));
        copy<T>(ctx, B, W.view().col_block({n, n + p}));
        if (!options.weights.empty()) flip_rows<T>(ctx, w.view(), W.view().col_block({constant, n + p}));
        rows.append(ctx, W.view().col_block({0, n}), W.view().col_block({n, n + p}));
    }
    return regression<T, D>(ctx, rows, options);
}

template <class T, class D>
Regression regression(Context<D>& ctx, const StreamingR<T, D>& rows, const RegressionOptions& options) {
    const auto state = rows.state(ctx);
    if (options.intercept && state.n == 0)
        throw InvalidArgument("regression: the stream has no columns, and the intercept needs a column of ones");
    return regression_from<T>(host_context(ctx), host_copy_of<T, D>(ctx, state.R.view()).view(), state.n, state.rows,
                              options);
}

template <class T, class D>
std::vector<double> leverages(Context<D>& ctx, const Regression& fit, Input<T, D> A, std::span<const double> weights) {
    const Index m = A.rows, constant = fit.intercept, n = constant + A.cols;
    if (n != fit.coefficients.rows())
        throw InvalidArgument(fmt::format("leverages: A has {} columns, and the regression has {} coefficients{}",
                                          A.cols, fit.coefficients.rows(), fit.intercept ? " with the intercept" : ""));
    require_weights(weights, m);
    // the rows of A R⁻¹ are the columns of R⁻ᵀAᵀ
    Matrix<T, D> W(ctx, m, n), model(ctx, m, fit.rank);
    load<T>(ctx, A, W.view().col_block({constant, n}));
    copy<T>(ctx, roots<T, D>(ctx, {}, m).view().col_block({0, constant}), W.view().col_block({0, constant}));
    Index r = 0;
    for (const Index j : all_but(fit.dependent, n)) {
        copy<T>(ctx, W.view().col_block({j, j + 1}), model.view().col_block({r, r + 1}));
        ++r;
    }
    Matrix<T> R(r, r);
    for (Index j = 0; j < r; ++j)
        for (Index i = 0; i < r; ++i) R(i, j) = static_cast<T>(fit.R(i, j));
    const Matrix<T, D> U = device_copy_of<T, D>(ctx, R.view());
    Matrix<T, D> Qt = transposed<T, D>(ctx, model.view());
    solve_triangle<T>(ctx, Triangle::Upper, Op::Transpose, U.view(), Qt.view());
    std::vector<T> norms(static_cast<std::size_t>(m));
    column_norms<T>(ctx, Qt.view(), norms);
    std::vector<double> h(norms.size());
    for (std::size_t i = 0; i < h.size(); ++i)
        h[i] = std::pow(static_cast<double>(norms[i]), 2) * (weights.empty() ? 1 : weights[i]);
    return h;
}

std::string summary(const Regression& fit, const std::vector<std::string>& names, Index c) {
    const Index n = fit.coefficients.rows();
    if (c < 0 || c >= fit.coefficients.cols())
        throw InvalidArgument(
            fmt::format("summary: there is no right-hand side {} among {}", c, fit.coefficients.cols()));
    if (!names.empty() && static_cast<Index>(names.size()) != n)
        throw InvalidArgument(fmt::format("summary: {} names were given for {} coefficients", names.size(), n));
    const auto name = [&](Index j) { return names.empty() ? fmt::format("x{}", j) : names[j]; };
    const auto number = [](double x) { return std::isnan(x) ? std::string("NA") : fmt::format("{:.6g}", x); };
    const auto p_value = [](double x) {
        constexpr double least = 2.2e-16;  // smaller ones are no more than rounding errors of the data
        return std::isnan(x) ? std::string("NA") : x < least ? "< 2.2e-16" : fmt::format("{:.3g}", x);
    };
    std::size_t width = 11;
    for (Index j = 0; j < n; ++j) width = std::max(width, fmt::formatted_size("{}", name(j)));
    std::string text = fmt::format("{:<{}} {:>13} {:>13} {:>10} {:>10}\n", "coefficient", width, "estimate",
                                   "std. error", "t value", "Pr(>|t|)");
    for (Index j = 0; j < n; ++j)
        text += fmt::format("{:<{}} {:>13} {:>13} {:>10} {:>10}\n", name(j), width, number(fit.coefficients(j, c)),
                            number(fit.standard_errors(j, c)), number(fit.t_values(j, c)), p_value(fit.p_values(j, c)));
    text += fmt::format("residual standard error {} on {:.6g} degrees of freedom\n",
                        number(fit.residual_standard_errors[c]), fit.degrees_of_freedom);
    text += fmt::format("R² {}, adjusted R² {}{}\n", number(fit.r_squared[c]), number(fit.adjusted_r_squared[c]),
                        fit.intercept ? "" : " (about 0: no intercept)");
    if (!std::isnan(fit.f_values[c]))
        text += fmt::format("F {} on {} and {:.6g} degrees of freedom, p value {}\n", number(fit.f_values[c]),
                            fit.rank - fit.intercept, fit.degrees_of_freedom, p_value(fit.f_p_values[c]));
    if (fit.ridge > 0)
        text += fmt::format("ridge {}: the estimates are biased, and t and p values do not apply\n", fit.ridge);
    if (!fit.dependent.empty()) {
        std::vector<std::string> left_out;
        for (const Index j : fit.dependent) left_out.push_back(name(j));
        text += fmt::format("left out, because they depend on earlier columns: {}\n", fmt::join(left_out, ", "));
    }
    return text;
}

template <class T, class D>
LeastSquares<T, D> constrained_least_squares(Context<D>& ctx, Input<T, D> A, View<const T, D> C, Input<T, D> B,
                                             View<const T, D> constraint_values, const LeastSquaresOptions& solver,
                                             Options options) {
    const Index m = A.rows, n = A.cols, p = B.rows, q = C.cols;
    const Range first{0, p}, rest{p, n};
    if (C.rows != m || B.cols != n || constraint_values.rows != p || constraint_values.cols != q)
        throw InvalidArgument(fmt::format(
            "constrained_least_squares: A is {}x{}, C {}x{}, B {}x{} and D {}x{}; A and C need equally many "
            "rows, A and B equally many columns, and D the rows of B and the columns of C",
            m, n, C.rows, q, p, B.cols, constraint_values.rows, constraint_values.cols));
    if (p > n)
        throw InvalidArgument(
            fmt::format("constrained_least_squares: {} constraints on {} unknowns; at most {} can hold", p, n, n));
    require_finite<T, D>(ctx, A, "A");
    require_finite<T, D>(ctx, B, "B");
    require_finite<T, D>(ctx, C, "C");
    require_finite<T, D>(ctx, constraint_values, "D");
    options.check_finite = false;
    options.q = QForm::Any;

    // Bᵀ = Q [R; 0],   Y₁ = R⁻ᵀD
    const QR<T, D> f = qr_of_transpose<T, D>(ctx, B, options);
    const Matrix<T, D> R = f.r(ctx);
    LeastSquares<T, D> constraints;
    const RankTest test = test_rank<T, D>(ctx, R.view(), p, n, {}, constraints);
    constraints.residual_norms.resize(static_cast<std::size_t>(q));
    constraints.X = copy_of<T, D>(ctx, constraint_values);
    solve_of_any_rank<T, D>(ctx, Op::Transpose, R.view(), test, constraints);
    if (!constraints.dependent.empty())
        throw RankDeficient(
            fmt::format("constrained_least_squares: the constraints BX = D are linearly dependent: leave out row {} of "
                        "B and D, which follow from the other ones or contradict them",
                        fmt::join(constraints.dependent, ", ")),
            1 / constraints.condition);

    // A Q = [A₁ A₂],   min ‖A₂Y₂ − (C − A₁Y₁)‖,   X = Q [Y₁; Y₂]
    Matrix<T, D> AQ = loaded<T, D>(ctx, A), rhs = copy_of<T, D>(ctx, C);
    f.apply_q(ctx, Side::Right, Op::None, AQ.view());
    subtract_product<T>(ctx, AQ.view().col_block(first), constraints.X.view(), rhs.view());
    LeastSquares<T, D> solution =
        least_squares<T, D>(ctx, InputView<T, D>(AQ.view().col_block(rest)), rhs.view(), solver, options);
    Matrix<T, D> X(ctx, n, q);
    copy<T>(ctx, constraints.X.view(), X.view().row_block(first));
    copy<T>(ctx, solution.X.view(), X.view().row_block(rest));
    f.apply_q(ctx, Side::Left, Op::None, X.view());
    solution.X = std::move(X);
    solution.dependent.clear();
    return solution;
}

#define QUOIN_INSTANTIATE(T, D)                                                                                 \
    template Regression regression<T, D>(Context<D>&, Input<T, D>, View<const T, D>, const RegressionOptions&); \
    template Regression regression<T, D>(Context<D>&, const StreamingR<T, D>&, const RegressionOptions&);       \
    template decltype(leverages<T, D>) leverages<T, D>;                                                         \
    template decltype(constrained_least_squares<T, D>) constrained_least_squares<T, D>;
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
