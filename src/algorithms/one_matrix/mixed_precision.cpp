// Iterative refinement of least squares, preconditioned by the triangular factor of A in f32.

#include "algorithms/one_matrix/mixed_precision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/one_matrix/full_rank.hpp"
#include "algorithms/shared/copies.hpp"
#include "devices.hpp"

namespace quoin {
namespace {

template <class D>
std::vector<double> norms_of(Context<D>& ctx, MatrixView<const double, D> A) {
    std::vector<double> norms(A.cols);
    column_norms<double>(ctx, A, norms);
    return norms;
}

/// Whether products of columns with these norms are safe in f64. False for NaN.
bool are_in_range(const std::vector<double>& norms) {
    constexpr int safe = Scalar<double>::safe_exponent;
    return std::all_of(norms.begin(), norms.end(),
                       [](double x) { return x == 0 || (x >= std::ldexp(1.0, -safe) && x <= std::ldexp(1.0, safe)); });
}

/// The diagonal D = diag(2^-e_j) that scales columns of a matrix to norms from 1 to 2, and its inverse. 1 for zeros.
template <class D>
struct ColumnUnits {
    Matrix<double, D> factors, inverse;

    ColumnUnits(Context<D>& ctx, const std::vector<double>& norms)
        : factors(on_device(ctx, norms, -1)), inverse(on_device(ctx, norms, 1)) {}

private:
    static Matrix<double, D> on_device(Context<D>& ctx, const std::vector<double>& norms, int sign) {
        Matrix<double> powers(static_cast<Index>(norms.size()), 1);
        std::transform(norms.begin(), norms.end(), powers.data(),
                       [=](double x) { return x == 0 ? 1 : std::ldexp(1.0, sign * std::ilogb(x)); });
        return device_copy_of<double, D>(ctx, powers.view());
    }
};

/// A step of refinement has to divide the error by this.
constexpr double least_reduction = 4;

/// Returns ‖w − R⁻ᵀAᵀA R⁻¹w‖/‖w‖ for w near the left singular vector of the smallest singular value of R D: the part
/// of an error in this direction that a step of refinement leaves. It is about 1 if A has no full rank, since R holds
/// nothing but rounding errors there. Two inverse iterations with R D from random signs, and two passes over A.
template <class D>
double share_left(Context<D>& ctx, MatrixView<const double, D> A, const ColumnUnits<D>& units,
                  MatrixView<const double, D> R) {
    const Index m = A.rows, n = A.cols;
    if (n == 0) return 0;
    Matrix<double> signs(n, 1);
    for (Index i = 0; i < n; ++i) signs(i, 0) = random_sign(i, 0);
    Matrix<double, D> w = device_copy_of<double, D>(ctx, signs.view());
    const auto solve = [&](Op op, Matrix<double, D>& x) {
        solve_triangle<double>(ctx, Triangle::Upper, op, R, x.view());
    };
    for (int iteration = 0; iteration < 2; ++iteration) {
        // w := (R D)⁻ᵀ(R D)⁻¹w / ‖…‖
        solve(Op::None, w);
        for (int i = 0; i < 2; ++i) flip_rows<double>(ctx, units.inverse.view(), w.view());
        solve(Op::Transpose, w);
        scaled_copy<double>(ctx, 1 / norms_of<D>(ctx, w.view())[0], w.view(), w.view());
    }
    // −A v for v = R⁻¹w, and w − R⁻ᵀAᵀA v
    Matrix<double, D> v = copy_of<double, D>(ctx, w.view()), product(ctx, m, 1);
    solve(Op::None, v);
    set_zero(ctx, product.view());
    subtract_product<double>(ctx, A, v.view(), product.view());
    multiply_transposed<double>(ctx, A, product.view(), v.view());
    solve(Op::Transpose, v);
    add<double>(ctx, v.view(), w.view());
    return norms_of<D>(ctx, w.view())[0];
}

/// Refines X, n×p, and the residuals, m×p, of min ‖AX − B‖ from zero, until b = r + A x up to ε(‖b‖ + ‖D⁻¹x‖), and
/// DAᵀr = 0 up to ε‖r‖ or r is that small, for every column. Returns why this failed, or nothing. `b`: the norms of B's
/// columns.
template <class D>
std::string refine(Context<D>& ctx, MatrixView<const double, D> A, const ColumnUnits<D>& units,
                   MatrixView<const double, D> R, MatrixView<const double, D> B, const std::vector<double>& b,
                   MatrixView<double, D> X, MatrixView<double, D> residuals, Index& steps) {
    const Span span(ctx, "refine");
    const Index m = A.rows, n = A.cols, p = B.cols;
    const double epsilon = 10 * std::sqrt(static_cast<double>(n)) * Scalar<double>::u;
    const auto scaled_norms = [&](const Matrix<double, D>& factors, MatrixView<const double, D> V) {
        Matrix<double, D> scaled = copy_of<double, D>(ctx, V);
        flip_rows<double>(ctx, factors.view(), scaled.view());
        return norms_of<D>(ctx, scaled.view());
    };
    std::vector<double> last(p, std::numeric_limits<double>::infinity()), last_fresh = last;
    Matrix<double, D> G(ctx, n, p), Z(ctx, n, p), change(ctx, m, p);
    set_zero(ctx, X);
    copy<double>(ctx, B, residuals);
    bool is_fresh = false, is_corrected = false;
    const auto refresh = [&] {
        multiply_transposed<double>(ctx, A, residuals, G.view());
        is_fresh = true;
    };
    refresh();
    for (steps = 0;;) {
        throw_if_stopped(ctx);
        const std::vector<double> g = scaled_norms(units.factors, G.view()), r = norms_of<D>(ctx, residuals),
                                  x = scaled_norms(units.inverse, X);
        copy<double>(ctx, G.view(), Z.view());
        solve_triangle<double>(ctx, Triangle::Upper, Op::Transpose, R, Z.view());
        const std::vector<double> z = norms_of<D>(ctx, Z.view());
        bool is_open = false;
        Index stagnant = -1;
        for (Index c = 0; c < p; ++c) {
            if (g[c] <= epsilon * r[c] || r[c] <= epsilon * (b[c] + x[c])) continue;
            is_open = true;
            if (!(z[c] <= (is_fresh ? last_fresh : last)[c] / least_reduction)) stagnant = c;
        }
        if (is_fresh && !is_open) {
            // f = b − r − A x
            copy<double>(ctx, B, change.view());
            subtract<double>(ctx, residuals, change.view());
            subtract_product<double>(ctx, A, X, change.view());
            const std::vector<double> f = norms_of<D>(ctx, change.view());
            Index large = -1;
            for (Index c = 0; c < p; ++c) {
                if (!(f[c] <= epsilon * (b[c] + x[c]))) large = c;
            }
            if (large < 0) return {};
            if (is_corrected)
                return fmt::format("rounding errors of {:.1e} remain in right-hand side {}", f[large], large);
            // earlier x were much larger than this one: r := r + f
            is_corrected = true;
            add<double>(ctx, change.view(), residuals);
            last_fresh.assign(p, std::numeric_limits<double>::infinity());
            refresh();
            continue;
        }
        if (is_fresh && stagnant >= 0)
            return fmt::format("refinement of right-hand side {} ends before f64's accuracy, after {} steps", stagnant,
                               steps);
        if (!is_open || stagnant >= 0) {
            refresh();
            continue;
        }
        last = z;
        if (is_fresh) last_fresh = z;
        // x := x + R⁻¹z,   r := r − A R⁻¹z,   g := g − AᵀA R⁻¹z
        solve_triangle<double>(ctx, Triangle::Upper, Op::None, R, Z.view());
        add<double>(ctx, Z.view(), X);
        set_zero(ctx, change.view());
        subtract_product<double>(ctx, A, Z.view(), change.view());
        add<double>(ctx, change.view(), residuals);
        multiply_transposed<double>(ctx, A, change.view(), G.view(), true);
        is_fresh = false;
        ++steps;
    }
}

}  // namespace

void require_mixed_precision(ScalarKind scalar, Index m, Index n, const LeastSquaresOptions& solver,
                             const Options& options) {
    const auto refuse = [](const std::string& reason) {
        throw InvalidArgument("mixed_precision factors in f32 and refines to f64: " + reason);
    };
    if (scalar != ScalarKind::F64) refuse(fmt::format("the matrix is of {}", to_string(scalar)));
    if (m < n) refuse(fmt::format("the {}x{} matrix must have at least as many rows as columns", m, n));
    if (solver.singular_values) refuse("there is no R in f64 to compute singular values from");
    if (options.verify) refuse("there is no Q to verify");
}

template <class D>
std::optional<LeastSquares<double, D>> solve_in_mixed_precision(Context<D>& ctx, Input<double, D> A,
                                                                View<const double, D> B,
                                                                const LeastSquaresOptions& solver, Options options,
                                                                Refinement& refinement) {
    const Index m = A.rows, n = A.cols, p = B.cols;
    const auto fall_back = [&](std::string reason) {
        refinement.fell_back = std::move(reason);
        return std::nullopt;
    };
    Matrix<double, D> by_columns;
    if (A.by_rows) {
        by_columns = loaded<double, D>(ctx, A);
        A = by_columns.view();
    }
    const std::vector<double> a = norms_of<D>(ctx, A.stored()), b = norms_of<D>(ctx, B);
    if (!are_in_range(a) || !are_in_range(b))
        return fall_back(
            fmt::format("norms of columns are beyond 2^±{}, or not finite", Scalar<double>::safe_exponent));

    // A D ≈ Q (R D) in f32
    const ColumnUnits<D> units(ctx, a);
    Matrix<float, D> scaled(ctx, m, n);
    multiply_columns<double, float>(ctx, A.stored(), units.factors.view(), scaled.view());
    options.q = QForm::None;
    options.check_finite = false;
    LeastSquares<double, D> solution;
    Matrix<double, D>& R = solution.R;
    R = Matrix<double, D>(ctx, n, n);
    try {
        const QR<float, D> f = qr<float, D>(ctx, std::move(scaled), plan_qr<float>(ctx, m, n, options));
        multiply_columns<float, double>(ctx, f.r(ctx).view(), units.inverse.view(), R.view());
        solution.report = f.report();
    } catch (const NumericalBreakdown& e) {
        return fall_back(std::string("QR in f32: ") + e.what());
    }
    const TriangleInspection found = inspect_triangle<double>(ctx, R.view());
    if (!(found.scaled_condition * Scalar<float>::u < 1))
        return fall_back(fmt::format("the condition number {:.1e} is too large for f32", found.scaled_condition));
    if (solver.rcond > 0 && !has_full_rank(found.condition, n, solver.rcond))
        return fall_back("rcond may drop singular values");

    if (const double left = share_left<D>(ctx, A.stored(), units, R.view()); !(left <= 1 / least_reduction))
        return fall_back(
            fmt::format("the condition number {:.1e} is too large for f32: a step of refinement leaves {:.2g} "
                        "of an error",
                        found.scaled_condition, left));

    solution.X = Matrix<double, D>(ctx, n, p);
    Matrix<double, D> residuals(ctx, m, p);
    const std::string reason =
        refine<D>(ctx, A.stored(), units, R.view(), B, b, solution.X.view(), residuals.view(), refinement.steps);
    if (!reason.empty()) return fall_back(reason);
    solution.residual_norms = m == n ? std::vector<double>(p) : norms_of<D>(ctx, residuals.view());
    solution.condition = found.condition;
    solution.rank = n;
    solution.tolerance = solver.rcond == -1 ? default_tolerance<double> : solver.rcond;
    return solution;
}

#define QUOIN_INSTANTIATE(D)                                                  \
    template std::optional<LeastSquares<double, D>> solve_in_mixed_precision( \
        Context<D>&, Input<double, D>, View<const double, D>, const LeastSquaresOptions&, Options, Refinement&);
QUOIN_FOR_EACH_DEVICE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
