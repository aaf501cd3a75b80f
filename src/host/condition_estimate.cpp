// Condition of a triangle by Hager's and Higham's estimator, safe from overflow.

#include "host/condition_estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <numeric>

#include "host/column_norm.hpp"
#include "host/device.hpp"
#include "host/parallel.hpp"
#include "host/substitute.hpp"
#include "quoin/least_squares.hpp"

namespace quoin {
namespace {

/// Double, or complex double.
template <class T>
using Wide = decltype(widened(T()));

/// The upper triangle of R in double, so that 1/κ₁ of an f32 matrix may be far below f32's u.
template <class T>
Matrix<Wide<T>> widened_triangle(MatrixView<const T, Host> R) {
    Matrix<Wide<T>> S(R.cols, R.cols);
    for (Index j = 0; j < R.cols; ++j) {
        for (Index i = 0; i <= j; ++i) S(i, j) = widened(R(i, j));
    }
    return S;
}

/// x := 2^e x of m entries: one multiplication each if 2^e is a normal number.
template <class W>
void scale_by_power(Index m, int e, W* x) {
    if (std::abs(e) < std::numeric_limits<double>::max_exponent - 2) {
        const double power = std::ldexp(1.0, e);
        for (Index i = 0; i < m; ++i) x[i] *= power;
    } else {
        for (Index i = 0; i < m; ++i) x[i] = times_power_of_two(x[i], e);
    }
}

/// ‖B⁻¹‖₁, or an estimate from below, for solve(op, x): x := op(B)⁻¹ x and n >= 1 (Hager 1984, Higham 1988, as LAPACK's
/// lacn2); not finite if B is singular. At most 10 solves.
template <class W, class Solve>
double inverse_norm(Index n, const Solve& solve) {
    Matrix<W> vector(n, 1);
    W *const x = vector.data(), *const end = x + n;
    const auto norm = [&] { return std::accumulate(x, end, 0.0, [](double sum, W a) { return sum + std::abs(a); }); };
    const auto larger = [](W a, W b) { return std::abs(a) < std::abs(b); };
    std::fill(x, end, 1 / static_cast<double>(n));
    solve(Op::None, x);
    double largest = norm();
    if (n == 1 || !std::isfinite(largest)) return largest;
    // from column to column of B⁻¹, where the gradient of ‖B⁻¹x‖₁ is largest
    for (Index iteration = 0, column = -1; iteration < 4; ++iteration) {
        std::transform(x, end, x, [](W a) { return sign(a); });
        solve(Op::Transpose, x);
        const Index next = std::max_element(x, end, larger) - x;
        if (column >= 0 && std::abs(x[column]) == std::abs(x[next])) break;
        column = next;
        std::fill(x, end, 0.0);
        x[column] = 1;
        solve(Op::None, x);
        if (!(norm() > largest)) break;
        largest = norm();
    }
    // columns of B⁻¹ that cancel in those sums do not cancel here
    for (Index i = 0; i < n; ++i)
        x[i] = (i % 2 == 0 ? 1 : -1) * (1 + static_cast<double>(i) / static_cast<double>(n - 1));
    solve(Op::None, x);
    return std::max(largest, 2 * norm() / (3 * static_cast<double>(n)));
}

/// Returns an estimate of 1/κ₁(S), 0 if S is singular, NaN if S holds NaN or Inf. Does not read the lower triangle.
template <class W>
double reciprocal_condition(const Matrix<W>& S) {
    const Index n = S.rows();
    if (n == 0) return 1;
    double norm = 0;
    for (Index j = 0; j < n; ++j) {
        double sum = 0;
        for (Index i = 0; i <= j; ++i) sum += std::abs(S(i, j));
        if (!std::isfinite(sum)) return std::numeric_limits<double>::quiet_NaN();
        norm = std::max(norm, sum);
    }
    const double inverse =
        inverse_norm<W>(n, [&](Op op, W* x) { host::substitute<W>(Triangle::Upper, op, S.view(), x); });
    return std::isfinite(inverse) ? 1 / norm / inverse : 0;
}

}  // namespace

template <class T, class D>
void column_norms(Context<D>& ctx, View<const T, D> A, std::span<Real<T>> norms) {
    host::for_parts(host::team(ctx, 0, A.rows * A.cols), A.cols,
                    [&](Index j) { norms[j] = host::column_norm(A.rows, A.at(0, j)); });
}

template <class T, class D>
void write_column_norms(Context<D>& ctx, View<const T, D> A, View<Real<T>, D> norms) {
    column_norms<T>(ctx, A, {norms.data, static_cast<std::size_t>(A.cols)});
}

template <class T>
double condition_estimate(Context<Host>&, MatrixView<const T, Host> R) {
    const Index n = R.cols;
    if (R.rows != n) {
        throw InvalidArgument(fmt::format("condition_estimate: R must be square, and is {}x{}", R.rows, n));
    }
    Matrix<Wide<T>> S = widened_triangle(R);
    double largest = 0;
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i <= j; ++i) {
            if (!std::isfinite(real_part(S(i, j))) || !std::isfinite(imaginary_part(S(i, j))))
                return std::numeric_limits<double>::quiet_NaN();
            largest = std::max(largest, std::abs(S(i, j)));
        }
    }
    if (largest > 0) {
        // κ(2⁻ᵉR) = κ(R), and a column sum of 2⁻ᵉR does not overflow
        const int e = std::ilogb(largest);
        for (Index j = 0; j < n; ++j) scale_by_power(j + 1, -e, &S(0, j));
    }
    const double rcond = reciprocal_condition(S);
    return rcond > 0 ? 1 / rcond : std::numeric_limits<double>::infinity();
}

template <class T>
double scaled_condition_estimate(MatrixView<const T, Host> R) {
    Matrix<Wide<T>> S = widened_triangle(R);
    for (Index j = 0; j < R.cols; ++j) {
        double largest = 0;
        for (Index i = 0; i <= j; ++i) largest = std::max(largest, std::abs(S(i, j)));
        if (largest == 0) return std::numeric_limits<double>::infinity();
        // the norm of 2^-e times the column does not overflow
        const int e = std::ilogb(largest);
        scale_by_power(j + 1, -e, &S(0, j));
        const double norm = host::column_norm(j + 1, S.view().at(0, j));
        for (Index i = 0; i <= j; ++i) S(i, j) /= norm;
    }
    const double rcond = reciprocal_condition(S);
    return rcond == 0 ? std::numeric_limits<double>::infinity() : 1 / rcond;
}

template <class T, class D>
double inverse_norm_estimate(Context<D>&, View<const T, D> LU) {
    if (LU.rows == 0) return 0;
    using W = Wide<T>;
    Matrix<W> X(LU.rows, LU.cols);
    for (Index j = 0; j < LU.cols; ++j) {
        for (Index i = 0; i < LU.rows; ++i) X(i, j) = widened(LU(i, j));
    }
    const double norm = inverse_norm<W>(X.rows(), [&](Op op, W* x) {
        // (LU)⁻¹ = U⁻¹L⁻¹,   (LU)⁻ᵀ = L⁻ᵀU⁻ᵀ
        host::substitute<W>(op == Op::None ? Triangle::UnitLower : Triangle::Upper, op, X.view(), x);
        host::substitute<W>(op == Op::None ? Triangle::Upper : Triangle::UnitLower, op, X.view(), x);
    });
    return std::isfinite(norm) ? norm : std::numeric_limits<double>::infinity();
}

template <class T, class D>
TriangleInspection inspect_triangle(Context<D>& ctx, View<const T, D> R) {
    TriangleInspection found;
    for (Index j = R.cols; j-- > 0;) {
        if (host::column_norm(j + 1, R.at(0, j)) == 0) found.zero_column = j;
    }
    // some ten solves of n² flops each
    std::exception_ptr failures[2];
    host::for_tasks(host::team(ctx, 20.0 * number(R.cols) * number(R.cols)), 2, [&](Index task) {
        try {
            if (task == 0) found.condition = condition_estimate<T>(ctx, R);
            if (task == 1) found.scaled_condition = scaled_condition_estimate<T>(R);
        } catch (...) {
            failures[task] = std::current_exception();
        }
    });
    for (const std::exception_ptr& failure : failures) {
        if (failure) std::rethrow_exception(failure);
    }
    return found;
}

QUOIN_IMPLEMENT(Host, column_norms, write_column_norms, inverse_norm_estimate, inspect_triangle)
#define QUOIN_INSTANTIATE(T)                                                          \
    template double condition_estimate<T>(Context<Host>&, MatrixView<const T, Host>); \
    template double scaled_condition_estimate<T>(MatrixView<const T, Host>);
QUOIN_INSTANTIATE(QUOIN_F32)
QUOIN_INSTANTIATE(QUOIN_F64)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
