// Least squares of deficient rank: the solution of least norm, the rank, and who decides it.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"
#include "lapack.hpp"
#include "least_squares_law.hpp"
#include "quoin/batch.hpp"
#include "quoin/distributed.hpp"
#include "quoin/least_squares.hpp"
#include "quoin/streaming.hpp"
#include "quoin/svd.hpp"
#include "ranks.hpp"

/// The law. Three factorizations (of A, of R, and of the r rows that are left) each perturb A by law·k·u‖A‖_F at most.
/// So x̂ is the shortest solution of a problem of the same rank with ‖ΔA‖ ≤ ε‖A‖ and ‖Δb‖ ≤ ε‖b‖, ε = 3·law·k·u. With
/// κ = σ₁/σ_r and κε < 1 (Wedin 1973)
///
///     ‖x̂ − x‖ ≤ 2εκ(‖x‖ + κ‖r‖/‖A‖)(1 + O(κε)),      ‖Nᵀx̂‖ ≤ εκ‖x̂‖(1 + O(κε)) for orthonormal N, A N = 0:
///
/// x̂ is in the range of (A + ΔA)ᵀ, whose angle with the range of Aᵀ is at most ‖ΔA‖/σ_r.
namespace quoin::test {
namespace {

constexpr double least_norm_law = 3 * least_squares_law;

template <class T>
class LeastNorm : public testing::Test {
protected:
    Context<Host> ctx{2};
};
TYPED_TEST_SUITE(LeastNorm, Scalars);

Matrix<double> widened(const auto& A) {
    Matrix<double> W(A.rows(), A.cols());
    std::copy_n(A.data(), A.rows() * A.cols(), W.data());
    return W;
}

/// X and the singular values by LAPACK in f64, for singular values above rcond σ₁.
struct Reference {
    template <class T>
    Reference(const Matrix<T>& A_, const Matrix<T>& B, double rcond)
        : X(filled<double>(std::max(A_.rows(), A_.cols()), B.cols(), 0)), s(std::min(A_.rows(), A_.cols())) {
        Matrix<double> A = widened(A_);
        for (Index j = 0; j < B.cols(); ++j) std::copy_n(B.view().at(0, j), B.rows(), X.view().at(0, j));
        lapack_int found = 0;
        EXPECT_EQ(lapack::gelsd(A.view(), X.view(), s.data(), rcond, &found), 0);
        rank = found;
    }
    Matrix<double> X;
    std::vector<double> s;
    Index rank = 0;
};

template <class T>
double norm(const T* x, Index n) {
    return std::sqrt(std::inner_product(x, x + n, x, 0.0, std::plus<>(), [](double a, double b) { return a * b; }));
}

/// A = [I; U₂] [I V₂] of rank r, its shortest solution X and the residual Z, all in integers: X is in the range of Aᵀ,
/// Aᵀ Z = 0, B = A X + Z.
template <class T>
struct Known {
    Known(Index m, Index n, Index r, Index p)
        : A(filled<T>(m, n, 0)), X(filled<T>(n, p, 0)), Z(filled<T>(m, p, 0)), N(filled<T>(n, n - r, 0)) {
        const auto entry = [](Index i, Index j, Index most) {
            return (7 * i * i + 5 * i * j + 3 * j) % (2 * most + 1) - most;
        };
        const auto u = [&](Index i, Index l) { return i < r ? Index(i == l) : entry(i, l, 1); };
        const auto v = [&](Index l, Index j) { return j < r ? Index(j == l) : entry(j + 1, l + 2, 1); };
        for (Index l = 0; l < r; ++l)
            for (Index j = 0; j < n; ++j) {
                for (Index i = 0; i < m; ++i) A(i, j) += static_cast<T>(u(i, l) * v(l, j));
                for (Index c = 0; c < p; ++c) X(j, c) += static_cast<T>(v(l, j) * entry(l, c, 3));
            }
        for (Index j = r; j < n; ++j) {
            N(j, j - r) = 1;
            for (Index l = 0; l < r; ++l) N(l, j - r) = static_cast<T>(-v(l, j));
        }
        for (Index c = 0; c < p; ++c)
            for (Index i = r; i < m; ++i) {
                Z(i, c) = static_cast<T>(-entry(i, c, 2));
                for (Index l = 0; l < r; ++l) Z(l, c) += static_cast<T>(u(i, l) * entry(i, c, 2));
            }
        B = product<T>(A.view(), X.view());
        for (Index i = 0; i < m * p; ++i) B.data()[i] += Z.data()[i];
        const Reference reference(A, B, 1e-10);
        EXPECT_EQ(reference.rank, r);
        if (r > 0) size = reference.s[0], kappa = reference.s[0] / reference.s[r - 1];
    }

    Matrix<T> A, B, X, Z, N;
    double size = 0, kappa = 1;  ///< σ₁ and σ₁/σ_r

    /// Expects that `solution` has this X and its residual norms.
    void expect_solved(MatrixView<const T> found, const std::vector<T>& residual_norms) {
        const Index m = A.rows(), n = A.cols();
        ASSERT_EQ(found.rows, n);
        const double unit = std::max<Index>(1, std::min(m, n)) * unit_roundoff<T> * kappa;
        for (Index c = 0; c < found.cols; ++c) {
            const double x = norm(X.view().at(0, c), n), z = norm(Z.view().at(0, c), m);
            std::vector<double> error(n);
            for (Index i = 0; i < n; ++i) error[i] = static_cast<double>(found(i, c)) - X(i, c);
            EXPECT_LE(norm(error.data(), n), least_norm_law * unit * (x + (size > 0 ? kappa * z / size : 0)));
            for (Index l = 0; l < N.cols(); ++l) {
                const double dot = std::inner_product(N.view().at(0, l), N.view().at(n, l), found.at(0, c), 0.0);
                EXPECT_LE(std::abs(dot), least_norm_law * unit * norm(N.view().at(0, l), n) * norm(found.at(0, c), n));
            }
        }
        EXPECT_LE(least_squares_errors<T>(A.view(), B.view(), found, residual_norms).residual_norm, least_norm_law);
    }
};

/// The last has pivots of a sketch.
const struct {
    Index m, n, r;
} shapes[] = {{1, 1, 0},    {2, 2, 1},   {5, 3, 0},    {3, 5, 2},     {30, 12, 5},  {12, 12, 7},   {12, 30, 11},
              {60, 40, 39}, {40, 60, 1}, {300, 20, 3}, {20, 300, 19}, {35, 35, 34}, {280, 270, 40}};

TYPED_TEST(LeastNorm, IsTheSolutionThatIsKnownExactly) {
    using T = TypeParam;
    for (const auto& shape : shapes) {
        const Index m = shape.m, n = shape.n, r = shape.r;
        SCOPED_TRACE(fmt::format("{}x{} of rank {}", m, n, r));
        Known<T> problem(m, n, r, 3);
        const MatrixView<const T> A = problem.A.view(), B = problem.B.view();
        const auto expect = [&](const LeastSquares<T>& solution) {
            problem.expect_solved(solution.X.view(), solution.residual_norms);
            EXPECT_EQ(solution.rank, r);
            // without the dependent columns (rows) the rank is the same, and full
            const Index k = std::min(m, n);
            ASSERT_EQ(solution.dependent.size(), static_cast<std::size_t>(k - r));
            const bool rows = m < n;
            const Matrix<T> tall = rows ? transposed<T>(A) : copy<T>(A);
            Matrix<T> kept(tall.rows(), r);
            for (Index j = 0, i = 0; j < k; ++j)
                if (!std::binary_search(solution.dependent.begin(), solution.dependent.end(), j))
                    std::copy_n(tall.view().at(0, j), tall.rows(), kept.view().at(0, i++));
            EXPECT_EQ(least_squares(this->ctx, kept.view(), filled<T>(kept.rows(), 1, 1).view()).rank, r);
        };
        const double rcond = 0.1 / problem.kappa;
        for (const LeastSquaresOptions& solver : {LeastSquaresOptions{}, LeastSquaresOptions{.rcond = rcond}}) {
            SCOPED_TRACE(solver.rcond);
            if (solver.rcond != -1 && n > 256) continue;  // the SVD, which has been tested
            expect(least_squares(this->ctx, A, B, solver));
            const Matrix<T> by_rows = transposed<T>(A);
            EXPECT_TRUE(same_bits<T>(
                least_squares(this->ctx, RowMajorView<const T>{by_rows.data(), m, n, n}, B, solver).X.view(),
                least_squares(this->ctx, A, B, solver).X.view()));
            if (m < n) continue;
            for (const QForm q : {QForm::Any, QForm::Explicit, QForm::Reflectors})
                expect(least_squares(this->ctx, qr(this->ctx, A, {.q = q}), B, solver));
            for (const Pivots kind : {Pivots::Greedy, Pivots::Randomized})
                for (const Index most : {Index(0), r}) {
                    const Options pivoted{.pivoting = Pivoting{.kind = kind, .max_rank = most}};
                    expect(least_squares(this->ctx, qr(this->ctx, A, pivoted), B, solver));
                }
            StreamingR<T> stream(this->ctx, n, 3);
            stream.append(this->ctx, A, B);
            expect(stream.solve(this->ctx, solver));
            for (const auto& [ranks, spread] : {std::pair(1, spreads[0]), {2, spreads[1]}, {3, spreads[0]}})
                on_ranks(ranks, [&, ranks = ranks, spread = spread](Communicator& comm) {
                    SCOPED_TRACE(fmt::format("rank {} of {}", comm.rank(), ranks));
                    Context<Host> own(1);
                    const Range rows = spread.rows(m, n, ranks)[comm.rank()];
                    const auto A_own = A.row_block(rows), B_own = B.row_block(rows);
                    const auto f = qr<T, Host>(own, comm, A_own);
                    for (const auto& solution : {least_squares<T, Host>(own, comm, A_own, B_own, solver),
                                                 least_squares<T, Host>(own, f, B_own, solver)}) {
                        problem.expect_solved(solution.X.view(), solution.residual_norms);
                        EXPECT_TRUE(same_as_on_root<T>(own, comm, solution.X.view()));
                        EXPECT_TRUE(same_as_on_root(
                            own, comm, fmt::format("{} {} {}", solution.rank, solution.tolerance, solution.condition)));
                        EXPECT_TRUE(same_as_on_root(own, comm, fmt::format("{}", fmt::join(solution.dependent, " "))));
                        if (comm.rank() == 0) expect(solution);
                    }
                });
        }
        // a batch of this matrix and of its copies
        Matrix<T> all(m, 3 * n);
        for (Index b = 0; b < 3; ++b) std::copy_n(A.data, m * n, all.view().at(0, b * n));
        for (const double tolerance : {-1.0, rcond}) {
            auto batch = least_squares<T>(this->ctx, BatchView<const T>(all.data(), m, n, m, m * n, 3),
                                          BatchView<const T>(B.data, m, 3, m, 0, 3), {.rcond = tolerance});
            for (Index b = 0; b < 3; ++b) {
                const MatrixView<const T> norms = batch.residual_norms[b];
                problem.expect_solved(batch.X[b], std::vector<T>(norms.data, norms.data + 3));
            }
            EXPECT_EQ(batch.ranks, std::vector<Index>(3, r));
        }
    }
}

/// Errors of a wide A, in units of the whole of A: each row has a backward error relative to its own norm alone.
template <class T>
LeastSquaresErrors<T> errors_of_wide(MatrixView<const T> A, MatrixView<const T> B, const LeastSquares<T>& solution) {
    using W = Wide<T>;
    const W unit = std::max<Index>(1, A.rows) * W(unit_roundoff<T>);
    W squares = 0;
    for (Index j = 0; j < A.cols; ++j)
        for (Index i = 0; i < A.rows; ++i) squares += W(A(i, j)) * W(A(i, j));
    const W size = std::sqrt(squares);
    LeastSquaresErrors<T> errors;
    for (Index c = 0; c < B.cols; ++c) {
        W of_r = 0, of_b = 0, of_x = 0, of_gradient = 0;
        std::vector<W> r(A.rows);
        for (Index i = 0; i < A.rows; ++i) {
            r[i] = B(i, c);
            for (Index j = 0; j < A.cols; ++j) r[i] -= W(A(i, j)) * W(solution.X(j, c));
            of_r += r[i] * r[i];
            of_b += W(B(i, c)) * W(B(i, c));
        }
        for (Index j = 0; j < A.cols; ++j) {
            W gradient = 0;
            for (Index i = 0; i < A.rows; ++i) gradient += W(A(i, j)) * r[i];
            of_gradient += gradient * gradient;
            of_x += W(solution.X(j, c)) * W(solution.X(j, c));
        }
        const W terms = std::sqrt(of_b) + size * std::sqrt(of_x);
        const auto raise = [](double& worst, W error) { worst = std::max(worst, static_cast<double>(error)); };
        raise(errors.gradient, std::sqrt(of_gradient) / (unit * size * terms));
        raise(errors.residual_norm, std::abs(W(solution.residual_norms[c]) - std::sqrt(of_r)) / (unit * terms));
    }
    return errors;
}

/// Every class and every shape: the gradient of the residual is within the law for the part of A that is dropped, too.
/// A column loses at most 2√k·tolerance times its norm (docs/pivoting.md), and for m < n a row.
TYPED_TEST(LeastNorm, EveryClassOfMatrixHasAnAnswer) {
    using T = TypeParam;
    for (const Gallery matrix_class : gallery()) {
        for (const auto& [m, n] : {std::pair<Index, Index>{60, 12}, {33, 33}, {12, 60}, {400, 15}}) {
            SCOPED_TRACE(to_string(matrix_class) + " " + shape_name(m, n));
            const Matrix<T> A = generate<T>(matrix_class, m, n), B = random_normal<T>(m, 2, 7);
            const auto solution = least_squares(this->ctx, A.view(), B.view());
            if (!is_finite<T>(solution.X.view())) continue;  // T does not hold X
            const double k = static_cast<double>(std::min(m, n));
            const double dropped = solution.rank < k ? 4 * solution.tolerance / (std::sqrt(k) * unit_roundoff<T>) : 0;
            const auto errors =
                m < n ? errors_of_wide<T>(A.view(), B.view(), solution)
                      : least_squares_errors<T>(A.view(), B.view(), solution.X.view(), solution.residual_norms);
            EXPECT_LE(errors.residual_norm, least_norm_law + dropped);
            EXPECT_LE(errors.gradient, least_norm_law + dropped);
        }
    }
}

TYPED_TEST(LeastNorm, AgreesWithLapackWhereTheGapIsClear) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{50, 20}, {20, 20}, {20, 50}, {500, 20}}) {
        for (const Index r : {0, 1, 7, 19, 20}) {
            for (const double decay : {1.0, 1e-2}) {
                SCOPED_TRACE(fmt::format("{} {} {}", shape_name(m, n), r, decay));
                // r values from 1 down to `decay`, the others 1e-4 of that
                std::vector<double> s(20);
                for (Index i = 0; i < 20; ++i) s[i] = i < r ? std::pow(decay, i / 19.0) : 1e-4 * decay;
                if (r == 0) std::fill(s.begin(), s.end(), 0.0);
                const Matrix<T> A = with_singular_values<T>(m, n, s), B = random_normal<T>(m, 2, 5);
                const double rcond = 1e-2 * decay;
                const auto solution =
                    least_squares(this->ctx, A.view(), B.view(), {.rcond = rcond, .singular_values = true});
                const Reference reference(A, B, rcond);
                EXPECT_EQ(solution.rank, reference.rank);
                EXPECT_EQ(solution.rank, r);
                EXPECT_EQ(solution.tolerance, rcond);
                const double unit = 20 * unit_roundoff<T>;
                ASSERT_EQ(solution.singular_values.size(), 20U);
                for (Index i = 0; i < 20; ++i)
                    EXPECT_NEAR(solution.singular_values[i], reference.s[i], law * unit * reference.s[0]);
                if (r == 0) continue;
                // of the rank r part, by the gap between σ_r and σ_(r+1) (Stewart and Sun 1990, V.2)
                const double kappa = 1 / reference.s[r - 1];
                for (Index c = 0; c < 2; ++c) {
                    std::vector<double> error(n);
                    for (Index i = 0; i < n; ++i) error[i] = static_cast<double>(solution.X(i, c)) - reference.X(i, c);
                    EXPECT_LE(norm(error.data(), n),
                              2 * least_norm_law * unit * kappa *
                                  (norm(reference.X.view().at(0, c), n) + kappa * norm(B.view().at(0, c), m)));
                }
            }
        }
    }
}

/// Columns 2^e_j g_c(j) of a well-conditioned G. Its solution y has y_c = Σ 2^e_j x_j over the columns of group c, and
/// the shortest x has x_j = 2^e_j y_c / Σ 4^e_j. The backward error is relative to each column.
TYPED_TEST(LeastNorm, UnitsOfTheUnknownsDoNotMatter) {
    using T = TypeParam;
    const Index m = 30, groups = 4, n = 3 * groups;
    const int far = std::numeric_limits<T>::digits / 2 - 2;  // beyond, rounding errors of long columns hide short ones
    const Matrix<T> G = with_condition<T>(m, groups, 10), B = random_normal<T>(m, 1, 5);
    const auto y = least_squares(this->ctx, G.view(), B.view());
    const int exponents[] = {0, far, -far, 3, -1, far / 2, 0, -far / 2, 1, -2, far, 1};
    Matrix<T> A(m, n);
    std::vector<double> sums(groups, 0), found(groups, 0);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) A(i, j) = std::scalbn(G(i, j % groups), exponents[j]);
        sums[j % groups] += std::pow(4.0, exponents[j]);
    }
    const auto solution = least_squares(this->ctx, A.view(), B.view());
    EXPECT_EQ(solution.rank, groups);
    const auto errors = least_squares_errors<T>(A.view(), B.view(), solution.X.view(), solution.residual_norms);
    EXPECT_LE(std::max(errors.gradient, errors.residual_norm), least_norm_law);
    double shortest = 0;
    for (Index j = 0; j < n; ++j) {
        found[j % groups] += std::scalbn(static_cast<double>(solution.X(j, 0)), exponents[j]);
        shortest += std::pow(std::pow(2.0, exponents[j]) * y.X(j % groups, 0) / sums[j % groups], 2);
    }
    const double unit = n * unit_roundoff<T> * 10 * norm(y.X.data(), groups);
    for (Index c = 0; c < groups; ++c) EXPECT_NEAR(found[c], y.X(c, 0), least_norm_law * unit) << c;
    EXPECT_LE(norm(solution.X.data(), n), std::sqrt(shortest) * (1 + least_norm_law * n * unit_roundoff<T> * 100));
    // by singular values of A itself the columns of small units count for nothing
    EXPECT_LT(least_squares(this->ctx, A.view(), B.view(), {.rcond = 0.1}).rank, groups);
}

/// The polynomial of degree 10 of NIST's Filip: κ₂ = 1e15, and of columns with unit norm 1e10.
TEST(LeastNormOfFilip, CountsAsFullRankUnlessSingularValuesDecide) {
    Context<Host> ctx;
    Matrix<double> A(82, 11), twice(82, 12), b(82, 1);
    for (Index i = 0; i < 82; ++i) {
        const double x = -9 + 6 * static_cast<double>(i) / 81;
        for (Index j = 0; j < 11; ++j) A(i, j) = twice(i, j) = std::pow(x, static_cast<double>(j));
        twice(i, 11) = A(i, 10);
        b(i, 0) = std::sin(x);
    }
    const auto full = least_squares(ctx, A.view(), b.view());
    EXPECT_EQ(full.rank, 11);
    EXPECT_EQ(least_squares(ctx, A.view(), b.view(), {.rcond = 82 * 2 * unit_roundoff<double>}).rank,
              Reference(A, b, 82 * 2 * unit_roundoff<double>).rank);
    // a second column x¹⁰: the same fit
    const auto shared = least_squares(ctx, twice.view(), b.view());
    EXPECT_EQ(shared.rank, 11);
    EXPECT_EQ(shared.dependent.size(), 1U);
    EXPECT_NEAR(shared.residual_norms[0], full.residual_norms[0], 1e-4 * full.residual_norms[0]);
    for (Index j = 0; j < 10; ++j) EXPECT_NEAR(shared.X(j, 0), full.X(j, 0), 1e-4 * std::abs(full.X(j, 0)));
    EXPECT_NEAR(shared.X(10, 0) + shared.X(11, 0), full.X(10, 0), 1e-4 * std::abs(full.X(10, 0)));
}

/// Greedy pivots do not see that Kahan's triangle is singular: no entry of its diagonal is small. Its columns have
/// decreasing norms, so that they stay in their order.
TYPED_TEST(LeastNorm, KahansTriangleIsTruncatedByItsSingularValues) {
    using T = TypeParam;
    const Index n = 100;
    const double c = std::is_same_v<T, double> ? 0.35 : 0.2, s = std::sqrt(1 - c * c);
    Matrix<T> A = filled<T>(n, n, 0);
    const Matrix<T> B = random_normal<T>(n, 1, 5);
    for (Index j = 0; j < n; ++j)
        for (Index i = 0; i <= j; ++i)
            A(i, j) = static_cast<T>((1.5 - 1e-3 * static_cast<double>(j)) * std::pow(s, i) * (i == j ? 1 : -c));
    const Matrix<T> R = qr(this->ctx, A.view(), {.pivoting = Pivoting{.kind = Pivots::Greedy}}).r();
    const auto solution = least_squares(this->ctx, A.view(), B.view());
    EXPECT_EQ(solution.rank, n - 1);
    EXPECT_GT(std::abs(R(n - 1, n - 1)), 1000 * solution.tolerance * std::abs(R(0, 0)));
    const auto errors = least_squares_errors<T>(A.view(), B.view(), solution.X.view(), solution.residual_norms);
    EXPECT_LE(errors.gradient, least_norm_law + 4 * solution.tolerance / (std::sqrt(n) * unit_roundoff<T>));
    const Reference reference(A, B, solution.tolerance);
    EXPECT_EQ(reference.rank, n - 1);
    EXPECT_LE(norm(solution.X.data(), n), 1.001 * norm(reference.X.data(), n));
}

TYPED_TEST(LeastNorm, PowersOfTwoScaleTheSolution) {
    using T = TypeParam;
    using Limits = std::numeric_limits<T>;
    const int ends[] = {Limits::min_exponent - Limits::digits, Limits::min_exponent / 2, 0, Limits::max_exponent / 2,
                        Limits::max_exponent - 12};
    for (const auto& [m, n, r] : {std::tuple<Index, Index, Index>{40, 6, 4}, {6, 6, 3}, {5, 30, 3}}) {
        const Known<T> problem(m, n, r, 2);
        const auto scaled = [](const Matrix<T>& M, int e) {
            Matrix<T> S(M.rows(), M.cols());
            for (Index i = 0; i < M.rows() * M.cols(); ++i) S.data()[i] = std::scalbn(M.data()[i], e);
            return S;
        };
        for (const int e : ends) {
            for (const int of_b : ends) {
                if (std::abs(of_b - e) > Limits::max_exponent - 12) continue;
                SCOPED_TRACE(fmt::format("{}x{}, A times 2^{}, b times 2^{}", m, n, e, of_b));
                const Matrix<T> A = scaled(problem.A, e), B = scaled(problem.B, of_b);
                const auto solution = least_squares(this->ctx, A.view(), B.view(), {.singular_values = true});
                EXPECT_EQ(solution.rank, r);
                for (Index i = 0; i < 2 * n; ++i) {
                    const T x = std::scalbn(problem.X.data()[i], of_b - e);
                    EXPECT_NEAR(solution.X.data()[i], x,
                                1e4 * unit_roundoff<T> * std::scalbn(T(10), of_b - e) + 2 * Limits::denorm_min());
                }
                const T largest = solution.singular_values.at(0);
                EXPECT_NEAR(largest, std::scalbn(static_cast<T>(problem.size), e),
                            1e3 * unit_roundoff<T> * largest + Limits::denorm_min());
            }
        }
    }
}

TYPED_TEST(LeastNorm, ZeroMatricesAndEmptyOnes) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{9, 4}, {4, 4}, {4, 9}}) {
        for (const double rcond : {-1.0, 0.0, 0.5, 1.0}) {
            SCOPED_TRACE(fmt::format("{} {}", shape_name(m, n), rcond));
            const Matrix<T> zero = filled<T>(m, n, 0), B = filled<T>(m, 2, 3), none(m, 0);
            const auto solution = least_squares(this->ctx, zero.view(), B.view(), {.rcond = rcond});
            EXPECT_EQ(solution.rank, 0);
            EXPECT_TRUE(same_bits<T>(solution.X.view(), filled<T>(n, 2, 0).view()));
            EXPECT_NEAR(solution.residual_norms.at(1), 3 * std::sqrt(static_cast<double>(m)), 100 * unit_roundoff<T>);
            const auto empty = least_squares(this->ctx, zero.view(), none.view(), {.rcond = rcond});
            EXPECT_EQ(empty.rank, 0);
            EXPECT_EQ(empty.X.cols(), 0);
        }
    }
    for (const auto& [m, n] : {std::pair<Index, Index>{0, 0}, {0, 3}, {3, 0}}) {
        const auto solution = least_squares(this->ctx, Matrix<T>(m, n).view(), Matrix<T>(m, 0).view(),
                                            {.rcond = 0.5, .singular_values = true});
        EXPECT_EQ(solution.rank, 0);
        EXPECT_TRUE(solution.dependent.empty() && solution.singular_values.empty());
    }
}

TYPED_TEST(LeastNorm, TheSameBitsForAnyNumberOfThreads) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{500, 120}, {120, 500}}) {
        const Matrix<T> A = generate<T>(Gallery::RankDeficientExact, m, n), B = random_normal<T>(m, 3, 5);
        for (const double rcond : {-1.0, 1e-4}) {
            Context<Host> one(1), four(4);
            const auto expected = least_squares(one, A.view(), B.view(), {.rcond = rcond}),
                       found = least_squares(four, A.view(), B.view(), {.rcond = rcond});
            EXPECT_EQ(found.rank, 60);
            EXPECT_TRUE(same_bits<T>(found.X.view(), expected.X.view()));
            EXPECT_EQ(found.residual_norms, expected.residual_norms);
            EXPECT_EQ(found.dependent, expected.dependent);
        }
    }
}

TYPED_TEST(LeastNorm, NaNIsNamedByItsPlace) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{20, 6}, {6, 20}}) {
        Matrix<T> A = generate<T>(Gallery::DuplicateColumns, m, n);
        A(4, 3) = std::numeric_limits<T>::quiet_NaN();
        try {
            least_squares(this->ctx, A.view(), random_normal<T>(m, 1).view());
            ADD_FAILURE() << "no NonFiniteEntry";
        } catch (const NonFiniteEntry& e) {
            EXPECT_TRUE(e.row == 4 && e.col == 3);
        }
        const auto unchecked =
            least_squares(this->ctx, A.view(), random_normal<T>(m, 1).view(), {}, {.check_finite = false});
        EXPECT_EQ(unchecked.rank, 0);
        EXPECT_TRUE(std::isnan(unchecked.condition));
    }
}

}  // namespace
}  // namespace quoin::test
