#include "quoin/regression.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"
#include "lapack.hpp"
#include "least_squares_law.hpp"
#include "nist_linear.hpp"
#include "quoin/svd.hpp"

namespace quoin::test {
namespace {

using Vector = std::vector<double>;

template <class T>
Matrix<T> from_columns(const std::vector<Vector>& columns) {
    Matrix<T> A(static_cast<Index>(columns[0].size()), static_cast<Index>(columns.size()));
    for (Index j = 0; j < A.cols(); ++j)
        for (Index i = 0; i < A.rows(); ++i) A(i, j) = static_cast<T>(columns[j][i]);
    return A;
}

template <class T>
std::vector<Index> rows_with_nan(const Matrix<T>& X) {
    std::vector<Index> rows;
    for (Index i = 0; i < X.rows(); ++i)
        if (std::isnan(X(i, 0))) rows.push_back(i);
    return rows;
}

/// First-order bounds for backward errors ‖ΔR(:, j)‖ <= ε ‖R(:, j)‖ and ‖Δb‖ <= ε ‖b‖, ε = r u.
///
/// Let w_j = ‖R(:, j)‖ ‖e_jᵀR⁻¹‖. A row of R⁻¹ changes by ε Σ_j w_j of its norm, and the residual by ε (‖b‖ + Σ_j
/// ‖a_j‖|x_j|).
struct Sensitivity {
    Sensitivity(const Regression& fit, double norm_of_b, double u) {
        double sum_w = 0, size = norm_of_b;
        const std::vector<Index> left_out = fit.dependent;
        for (Index i = 0, j = 0; i < fit.coefficients.rows(); ++i) {
            if (std::binary_search(left_out.begin(), left_out.end(), i)) continue;
            double squares = 0;
            for (Index l = 0; l <= j; ++l) squares += fit.R(l, j) * fit.R(l, j);
            sum_w += std::sqrt(squares) * fit.standard_errors(i, 0) / fit.residual_standard_errors[0];
            size += std::sqrt(squares) * std::abs(fit.coefficients(i, 0));
            ++j;
        }
        const double epsilon = static_cast<double>(std::max<Index>(1, fit.rank)) * u;
        residual = epsilon * size;
        of_s = residual / fit.residual_norms[0];
        of_errors = of_s + epsilon * sum_w;
        // explained sum of squares: ‖y‖² = ‖b‖² − ‖b − Ax‖²
        of_f = 2 * (of_s + residual / (fit.residual_norms[0] * std::sqrt(fit.r_squared[0] / (1 - fit.r_squared[0]))));
    }
    double residual;               ///< absolute
    double of_s, of_errors, of_f;  ///< relative, of s, of standard errors and of F
};

double norm_of(const Vector& y) { return std::sqrt(std::inner_product(y.begin(), y.end(), y.begin(), 0.0)); }

TEST(Nist, CertifiedValues) {
    Context<Host> ctx(2);
    const double u = unit_roundoff<double>, rounding = 5e-15;  // of 15 digits
    for (const Certified& data : nist_linear()) {
        SCOPED_TRACE(data.name);
        const Matrix<double> A = from_columns<double>(data.columns), b = from_columns<double>({data.y});
        const Regression fit = regression<double>(ctx, A.view(), b.view(), {.intercept = data.intercept});
        const Index n = A.cols() + data.intercept;
        ASSERT_EQ(fit.rank, n);
        EXPECT_EQ(fit.degrees_of_freedom, static_cast<double>(A.rows() - n));
        const Sensitivity allowed(fit, norm_of(data.y), u);
        const bool is_exact = data.residual_standard_error == 0;
        for (Index j = 0; j < n; ++j) {
            const double x = data.coefficients[j], error = std::abs(fit.coefficients(j, 0) - x);
            EXPECT_LE(error, fit.error_bounds(j, 0) + rounding * std::abs(x)) << j;
            EXPECT_LE(error, std::pow(10.0, -data.digits) * std::abs(x)) << j;
            if (is_exact) continue;
            EXPECT_NEAR(fit.standard_errors(j, 0) / data.standard_errors[j], 1, allowed.of_errors + rounding) << j;
        }
        if (is_exact) {
            EXPECT_LE(fit.residual_norms[0], allowed.residual);
            EXPECT_NEAR(fit.r_squared[0], 1, 2 * u);
            EXPECT_LT(fit.f_p_values[0], 1e-100);
            continue;
        }
        EXPECT_NEAR(fit.residual_standard_errors[0] / data.residual_standard_error, 1, allowed.of_s + rounding);
        EXPECT_NEAR(fit.r_squared[0], data.r_squared, 2 * allowed.of_s * (1 - data.r_squared) + 1e-14);
        EXPECT_NEAR(fit.f_values[0] / data.f_value, 1, allowed.of_f + 10 * rounding);
    }
}

/// Data, and the results of R 4.2.2: summary(lm(y ~ x1 + x2)), hatvalues.
const Vector x1 = {1.2, -0.7, 3.1, 0.4, 2.2, -1.5, 0.9, 1.8, -0.3, 2.7, 0.1, -2.0},
             x2 = {0.5, 1.1, -0.4, 2.3, 0.0, 1.7, -1.2, 0.8, 2.9, -0.6, 1.3, 0.2},
             y = {3.9, 1.2, 6.8, 4.4, 5.1, 0.3, 1.0, 5.6, 4.9, 5.9, 2.7, -2.1},
             weights = {1, 2, 0.5, 1, 3, 1, 0, 2, 1, 0.25, 1, 4};

struct FromR {
    Vector coefficients, standard_errors, t_values, p_values;
    double s, df, r_squared, adjusted, f, f_p;
    Vector leverages;
};

template <class T>
void expect_r(const Regression& fit, const FromR& R) {
    const double u = unit_roundoff<T>, rounding = 5e-15;
    // data that are decimal fractions change by u of themselves, too
    const Sensitivity allowed(fit, norm_of(y), 2 * u);
    EXPECT_EQ(fit.degrees_of_freedom, R.df);
    for (Index j = 0, k = 0; j < fit.coefficients.rows(); ++j) {
        if (std::isnan(fit.coefficients(j, 0))) continue;
        const double error = 2 * fit.error_bounds(j, 0), of_t = error / std::abs(R.coefficients[k]) + allowed.of_errors;
        EXPECT_NEAR(fit.coefficients(j, 0), R.coefficients[k], error + rounding * std::abs(R.coefficients[k]));
        EXPECT_NEAR(fit.standard_errors(j, 0) / R.standard_errors[k], 1, allowed.of_errors + rounding);
        EXPECT_NEAR(fit.t_values(j, 0) / R.t_values[k], 1, of_t + rounding);
        // p decreases at most as t^-df does
        EXPECT_NEAR(fit.p_values(j, 0) / R.p_values[k], 1, (R.df + 1) * (of_t + rounding));
        ++k;
    }
    EXPECT_NEAR(fit.residual_standard_errors[0] / R.s, 1, allowed.of_s + rounding);
    EXPECT_NEAR(fit.r_squared[0], R.r_squared, 2 * (allowed.of_s + rounding));
    EXPECT_NEAR(fit.adjusted_r_squared[0], R.adjusted, 4 * (allowed.of_s + rounding));
    EXPECT_NEAR(fit.f_values[0] / R.f, 1, allowed.of_f + rounding);
    EXPECT_NEAR(fit.f_p_values[0] / R.f_p, 1, (R.df + 1) * (allowed.of_f + rounding));
}

template <class T>
class RegressionTest : public testing::Test {
protected:
    Context<Host> ctx{2};
    Regression fit(const std::vector<Vector>& columns, const RegressionOptions& options) {
        return regression<T>(ctx, from_columns<T>(columns).view(), from_columns<T>({y}).view(), options);
    }
    void expect_leverages(const Regression& of, const std::vector<Vector>& columns, const Vector& reference,
                          std::span<const double> w = {}) {
        const Vector h = leverages<T>(ctx, of, from_columns<T>(columns).view(), w);
        ASSERT_EQ(h.size(), y.size());
        double sum = 0;
        // a row of AR⁻¹, of norm <= 1, changes with R and with the errors of its own solution; h is its square
        const double allowed = 4 * Sensitivity(of, norm_of(y), 2 * unit_roundoff<T>).of_errors;
        for (std::size_t i = 0, k = 0; i < h.size(); ++i) {
            sum += h[i];
            const bool counts = w.empty() || w[i] > 0;
            EXPECT_NEAR(h[i], counts ? reference[k++] : 0, allowed) << i;
        }
        EXPECT_NEAR(sum, static_cast<double>(of.rank), static_cast<double>(h.size()) * allowed);
    }
};
TYPED_TEST_SUITE(RegressionTest, Scalars);

TYPED_TEST(RegressionTest, IsRsSummaryOfLm) {
    const FromR with_intercept{{1.11678708949722, 1.91634195514854, 1.29761086980929},
                               {0.1528233855152160, 0.0785565828409531, 0.1051039585228294},
                               {7.30769761271925, 24.39441592092156, 12.34597524247807},
                               {4.52717651624155e-05, 1.56525639298022e-09, 6.04194083293100e-07},
                               3.63651191564499e-01,
                               9,
                               9.85102113943653e-01,
                               9.81791472597798e-01,
                               2.97556277177850e+02,
                               6.01258068663379e-09,
                               {0.0934480701452656, 0.1484406485217015, 0.2914982279371982, 0.2697311136838105,
                                0.1665565417214953, 0.2458897384957401, 0.3633387958567441, 0.1508159565410213,
                                0.3907106039698984, 0.2509144718853821, 0.1054961883755731, 0.5231596428661698}};
    const FromR without{{2.25538722490875, 1.80917365967398},
                        {0.158356978363301, 0.195844155133072},
                        {14.24242397284487, 9.23782309686333},
                        {5.74707509885611e-08, 3.27106022233582e-06},
                        9.08418177611344e-01,
                        10,
                        9.60932462935439e-01,
                        9.53118955522527e-01,
                        1.22983496674932e+02,
                        9.10081244513342e-08,
                        {0.0642422038638713, 0.0597535173688460, 0.2811470007487028, 0.2643231843413845,
                         0.1470781445314144, 0.1650237931071003, 0.0755880249915204, 0.1494766005253683,
                         0.3807642580089067, 0.2143286020493872, 0.0807725950332517, 0.1175020754302461}};
    const FromR weighted{{1.20746811576602, 1.82257379872229, 1.23697920460668},
                         {0.1205959665733635, 0.0530500934805255, 0.1038083539355077},
                         {10.0125082958845, 34.3557132352906, 11.9159890096626},
                         {8.40932483250906e-06, 5.63202436920369e-10, 2.26173638614644e-06},
                         3.58997496570294e-01,
                         8,
                         9.93384857637068e-01,
                         9.91731072046335e-01,
                         6.00673305659138e+02,
                         1.91494709434414e-09,
                         {0.0837160197435474, 0.1600989696349657, 0.1490737828039665, 0.2621103000297907,
                          0.5108500384713917, 0.1640505461363075, 0.2365184029778725, 0.4241765890065864,
                          0.0731137380898940, 0.0823059003172312, 0.8539857127884464}};
    const std::vector<Vector> A = {x1, x2};
    const Regression first = this->fit(A, {.intercept = true}), second = this->fit(A, {}),
                     third = this->fit(A, {.intercept = true, .weights = weights});
    expect_r<TypeParam>(first, with_intercept);
    this->expect_leverages(first, A, with_intercept.leverages);
    expect_r<TypeParam>(second, without);
    this->expect_leverages(second, A, without.leverages);
    expect_r<TypeParam>(third, weighted);
    EXPECT_EQ(third.observations, 11);
    this->expect_leverages(third, A, weighted.leverages, weights);
}

TYPED_TEST(RegressionTest, LeavesOutTheDependentColumnsThatRLeavesOut) {
    Vector x3(x1.size()), x4(x1.size());
    for (std::size_t i = 0; i < x1.size(); ++i) x3[i] = x1[i] - 2 * x2[i], x4[i] = x1[i] * x1[i];
    const FromR R{{0.851686317333188, 1.845006857155805, 1.382425269043147, 0.088090935048198},
                  {0.1813769996097760, 0.0750488567984068, 0.0982214962534354, 0.0419709188357070},
                  {4.69566879574340, 24.58407677163941, 14.07456943514843, 2.09885648186606},
                  {1.55011761341134e-03, 8.00617614183391e-09, 6.30692863799375e-07, 6.90602558552637e-02},
                  3.09745075277769e-01,
                  8,
                  9.90392488427459e-01,
                  9.86789671587756e-01,
                  2.74893932301356e+02,
                  2.08866443051142e-08,
                  {0.171343948172252, 0.163097451098788, 0.543553348262444, 0.286612235707214, 0.166600741788661,
                   0.326248594657244, 0.669513500611921, 0.154646797664148, 0.390956271872883, 0.293139058128520,
                   0.166898956279674, 0.667389095756252}};
    const std::vector<Vector> A = {x1, x2, x3, x4};
    const Regression fit = this->fit(A, {.intercept = true});
    EXPECT_EQ(fit.rank, 4);
    EXPECT_EQ(fit.dependent, std::vector<Index>{3});
    for (const auto* each : {&fit.coefficients, &fit.standard_errors, &fit.t_values, &fit.p_values, &fit.error_bounds})
        EXPECT_EQ(rows_with_nan(*each), std::vector<Index>{3});
    expect_r<TypeParam>(fit, R);
    this->expect_leverages(fit, A, R.leverages);
    EXPECT_NE(summary(fit, {"(intercept)", "x1", "x2", "x3", "x4"}).find("earlier columns: x3\n"), std::string::npos);

    // earlier columns stay, whatever the norms: the last indicator goes, not the intercept
    Vector even(x1.size()), odd(x1.size()), large(x1.size());
    for (std::size_t i = 0; i < x1.size(); ++i) even[i] = (i + 1) % 2, odd[i] = i % 2, large[i] = 1e6 * x1[i];
    EXPECT_EQ(this->fit({even, odd}, {.intercept = true}).dependent, std::vector<Index>{2});
    EXPECT_EQ(this->fit({x1, large, Vector(x1.size(), 0.0)}, {}).dependent, (std::vector<Index>{1, 2}));
}

TYPED_TEST(RegressionTest, EmptyAndSmallShapes) {
    using T = TypeParam;
    // the intercept alone is the mean, and its standard error s/√m
    const Regression mean =
        regression<T>(this->ctx, Matrix<T>(12, 0).view(), from_columns<T>({y}).view(), {.intercept = true});
    const double expected = std::accumulate(y.begin(), y.end(), 0.0) / 12;
    EXPECT_NEAR(mean.coefficients(0, 0), expected, law * unit_roundoff<T> * norm_of(y));
    EXPECT_NEAR(mean.standard_errors(0, 0), mean.residual_standard_errors[0] / std::sqrt(12.0), law * unit_roundoff<T>);
    EXPECT_EQ(mean.r_squared[0], 0);
    EXPECT_TRUE(std::isnan(mean.f_values[0]));
    const struct {
        Index m, n, p;
    } shapes[] = {{0, 0, 0}, {0, 0, 1}, {0, 3, 1}, {5, 0, 2}, {1, 1, 1}, {1, 3, 2}, {3, 3, 1}, {2, 5, 1}, {7, 2, 0}};
    for (const bool intercept : {false, true}) {
        for (const auto& [m, n, p] : shapes) {
            SCOPED_TRACE(fmt::format("{}x{}, {} right-hand sides, intercept {}", m, n, p, intercept));
            const Matrix<T> A = random_normal<T>(m, n), B = random_normal<T>(m, p, 5);
            const Regression fit = regression<T>(this->ctx, A.view(), B.view(), {.intercept = intercept});
            const Index unknowns = n + intercept;
            EXPECT_EQ(fit.rank, std::min(m, unknowns));
            EXPECT_EQ(fit.degrees_of_freedom, static_cast<double>(m - fit.rank));
            EXPECT_EQ(static_cast<Index>(fit.dependent.size()), unknowns - fit.rank);
            ASSERT_EQ(fit.coefficients.rows(), unknowns);
            ASSERT_EQ(fit.coefficients.cols(), p);
            EXPECT_EQ(leverages<T>(this->ctx, fit, A.view()).size(), static_cast<std::size_t>(m));
            for (Index c = 0; c < p; ++c) {
                EXPECT_NE(summary(fit, {}, c), "");
                // no degrees of freedom are left: nothing is known about errors
                EXPECT_EQ(std::isnan(fit.residual_standard_errors[c]), m == fit.rank);
            }
        }
    }
}

TYPED_TEST(RegressionTest, IsLeastSquaresForEveryRightHandSide) {
    using T = TypeParam;
    const Matrix<T> A = with_condition<T>(80, 7, 1e3), B = random_normal<T>(80, 4, 9);
    const Regression fit = regression<T>(this->ctx, A.view(), B.view());
    LeastSquares<T> solution;
    solution.X = Matrix<T>(7, 4);
    for (Index c = 0; c < 4; ++c) {
        for (Index j = 0; j < 7; ++j) solution.X(j, c) = static_cast<T>(fit.coefficients(j, c));
        solution.residual_norms.push_back(static_cast<T>(fit.residual_norms[c]));
        const Regression alone = regression<T>(this->ctx, A.view(), B.view().col_block({c, c + 1}));
        const double of_errors = Sensitivity(alone, frobenius_norm<T>(B.view()), law * unit_roundoff<T>).of_errors;
        for (Index j = 0; j < 7; ++j) {
            const double of_x = law * alone.error_bounds(j, 0) / alone.standard_errors(j, 0);
            EXPECT_NEAR(fit.t_values(j, c), alone.t_values(j, 0), of_x + of_errors * std::abs(alone.t_values(j, 0)));
        }
    }
    expect_least_squares_law<T>(A.view(), B.view(), solution);
}

TYPED_TEST(RegressionTest, UnitsDoNotChangeTheStatistics) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(40, 3), b = random_normal<T>(40, 1, 5);
    Matrix<T> scaled = copy<T>(A.view());
    const int exponents[] = {std::numeric_limits<T>::max_exponent / 3, 0, -std::numeric_limits<T>::max_exponent / 3};
    for (Index j = 0; j < 3; ++j)
        for (Index i = 0; i < 40; ++i) scaled(i, j) = std::ldexp(A(i, j), exponents[j]);
    const Regression fit = regression<T>(this->ctx, A.view(), b.view()),
                     other = regression<T>(this->ctx, scaled.view(), b.view());
    const Sensitivity allowed(fit, frobenius_norm<T>(b.view()), law * unit_roundoff<T>);
    EXPECT_EQ(other.rank, 3);
    EXPECT_NEAR(other.f_values[0] / fit.f_values[0], 1, allowed.of_f);
    for (Index j = 0; j < 3; ++j)
        EXPECT_NEAR(std::ldexp(other.standard_errors(j, 0), exponents[j]) / fit.standard_errors(j, 0), 1,
                    allowed.of_errors);
}

TYPED_TEST(RegressionTest, RowsMayComeInBlocks) {
    using T = TypeParam;
    const Index m = y.size();
    StreamingR<T> stream(this->ctx, 3, 1);
    for (Index i = 0; i < m; i += 5) {
        Matrix<T> rows(std::min<Index>(5, m - i), 4);
        for (Index k = 0; k < rows.rows(); ++k) {
            const double w = std::sqrt(weights[i + k]), row[] = {1, x1[i + k], x2[i + k], y[i + k]};
            for (Index j = 0; j < 4; ++j) rows(k, j) = static_cast<T>(w * row[j]);
        }
        stream.append(this->ctx, rows.view().col_block({0, 3}), rows.view().col_block({3, 4}));
    }
    const Regression fit = regression<T>(this->ctx, stream, {.intercept = true, .weights = weights}),
                     whole = this->fit({x1, x2}, {.intercept = true, .weights = weights});
    EXPECT_EQ(fit.observations, 11);
    const Sensitivity allowed(whole, norm_of(y), law * unit_roundoff<T>);
    EXPECT_NEAR(fit.f_values[0] / whole.f_values[0], 1, allowed.of_f);
    for (Index j = 0; j < 3; ++j)
        EXPECT_NEAR(fit.coefficients(j, 0), whole.coefficients(j, 0), law * whole.error_bounds(j, 0));
}

/// Ridge regression is least squares with [A; √λ I], and has Σ σ²/(σ² + λ) parameters.
TYPED_TEST(RegressionTest, RidgeIsLeastSquaresWithMoreRows) {
    using T = TypeParam;
    const Index m = 30, n = 6;
    for (const double lambda : {1e-3, 1.0, 1e3}) {
        SCOPED_TRACE(lambda);
        const Matrix<T> A = with_condition<T>(m, n, 1e2), b = random_normal<T>(m, 1, 5);
        Matrix<T> S = filled<T>(m + n, n, 0), d = filled<T>(m + n, 1, 0);
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) S(i, j) = A(i, j), d(i, 0) = b(i, 0);
            S(m + j, j) = static_cast<T>(std::sqrt(lambda));
        }
        const Regression fit = regression<T>(this->ctx, A.view(), b.view(), {.ridge = lambda});
        const auto stacked = least_squares(this->ctx, S.view(), d.view());
        double effective = 0, squares = 0, size = frobenius_norm<T>(b.view());
        for (const T s : svd<T, Host>(this->ctx, InputView<T>(A.view()), false).s)
            effective += 1 / (1 + lambda / (static_cast<double>(s) * s));
        for (Index j = 0; j < n; ++j) {
            squares += lambda * std::pow(fit.coefficients(j, 0), 2);
            size += frobenius_norm<T>(S.view().col_block({j, j + 1})) * std::abs(fit.coefficients(j, 0));
            EXPECT_NEAR(fit.coefficients(j, 0), stacked.X(j, 0), law * fit.error_bounds(j, 0));
            EXPECT_TRUE(std::isnan(fit.p_values(j, 0)) && fit.standard_errors(j, 0) > 0);
        }
        const double unit = law * n * unit_roundoff<T>;
        EXPECT_NEAR(m - fit.degrees_of_freedom, effective, unit * fit.condition);
        EXPECT_NEAR(std::sqrt(std::pow(fit.residual_norms[0], 2) + squares), stacked.residual_norms[0],
                    2 * unit * size);
        const Vector h = leverages<T>(this->ctx, fit, A.view());
        EXPECT_NEAR(std::accumulate(h.begin(), h.end(), 0.0), effective, unit * fit.condition);
        // dependent columns share the coefficient, and none is left out
        const Regression twins = this->fit({x1, x1}, {.intercept = true, .ridge = lambda});
        EXPECT_TRUE(twins.dependent.empty());
        EXPECT_NEAR(twins.coefficients(1, 0), twins.coefficients(2, 0), 2 * law * twins.error_bounds(1, 0));
    }
    // the intercept is not penalised: with a large λ the coefficients are aᵀ(y − mean)/λ, and it is nearly the mean
    const double mean = std::accumulate(y.begin(), y.end(), 0.0) / 12, lambda = 1e12;
    EXPECT_NEAR(this->fit({x1, x2}, {.intercept = true, .ridge = lambda}).coefficients(0, 0), mean,
                law * unit_roundoff<TypeParam> * norm_of(y) + 2 * norm_of(x1) * norm_of(y) / lambda);
}

TYPED_TEST(RegressionTest, RefusesBadInputInASentence) {
    using T = TypeParam;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto message = [](auto&& call) -> std::string {
        try {
            call();
        } catch (const Error& e) {
            return e.what();
        }
        return "no error";
    };
    const auto weighted = [&](Vector w) { return message([&] { this->fit({x1}, {.weights = w}); }); };
    EXPECT_EQ(weighted({1, 2}), "regression: 2 weights were given for 12 observations");
    Vector w(12, 1.0);
    w[3] = -0.5;
    EXPECT_EQ(weighted(w), "regression: weight 3 is -0.5, and weights are finite and not negative");
    w[3] = nan;
    EXPECT_EQ(weighted(w), "regression: weight 3 is nan, and weights are finite and not negative");
    EXPECT_EQ(message([&] { this->fit({x1}, {.ridge = -1}); }),
              "regression: the ridge is -1, and must not be negative");
    EXPECT_EQ(message([&] { regression<T>(this->ctx, Matrix<T>(3, 1).view(), Matrix<T>(4, 1).view()); }),
              "regression: B has 4 rows, and A is 3x1");
    Vector bad = x1;
    bad[4] = nan;
    EXPECT_NE(message([&] { this->fit({x2, bad}, {.intercept = true}); }).find("A"), std::string::npos);
    const Regression fit = this->fit({x1}, {.intercept = true});
    EXPECT_NE(message([&] { leverages<T>(this->ctx, fit, Matrix<T>(3, 2).view()); }).find("2 coefficients"),
              std::string::npos);
    EXPECT_EQ(message([&] { summary(fit, {"x"}); }), "summary: 1 names were given for 2 coefficients");
    EXPECT_NE(message([&] { summary(fit, {}, 1); }).find("right-hand side 1"), std::string::npos);
}

/// Values of R 4.2.2's pt and pf, through data that have these t and F values.
TEST(Distributions, AreThoseOfStudentAndFisher) {
    Context<Host> ctx(1);
    // two observations ±1 + c about 0: x̄ = c, s/√2 = 1, so t = c with one degree of freedom
    const Matrix<double> one = filled<double>(2, 1, 1);
    Matrix<double> b(2, 1);
    b(0, 0) = 1.5, b(1, 0) = -0.5;
    const Regression fit = regression<double>(ctx, one.view(), b.view());
    EXPECT_NEAR(fit.t_values(0, 0), 0.5, law * unit_roundoff<double>);
    EXPECT_NEAR(fit.p_values(0, 0), 7.04832764699134e-01, law * unit_roundoff<double>);
    EXPECT_NEAR(fit.f_values[0], 0.25, law * unit_roundoff<double>);
    EXPECT_NEAR(fit.f_p_values[0], fit.p_values(0, 0), law * unit_roundoff<double>) << "F of one coefficient is t²";
}

TYPED_TEST(RegressionTest, ConstraintsHoldAsInLapack) {
    using T = TypeParam;
    const double u = unit_roundoff<T>;
    const struct { Index m, n, p; } shapes[] = {{20, 5, 2}, {6, 5, 4}, {5, 5, 5}, {3, 7, 4}, {40, 12, 1}};
    for (const auto& [m, n, p] : shapes) {
        SCOPED_TRACE(fmt::format("{}x{} with {} constraints", m, n, p));
        const Matrix<T> A = random_normal<T>(m, n), B = random_normal<T>(p, n, 3), C = random_normal<T>(m, 1, 5),
                        D = random_normal<T>(p, 1, 7);
        const auto solution = constrained_least_squares<T>(this->ctx, A.view(), C.view(), B.view(), D.view());
        // BX = D, in units of n u ‖B‖‖X‖
        const double size = frobenius_norm<T>(B.view()) * frobenius_norm<T>(solution.X.view());
        EXPECT_LE(difference<T>(product<T>(B.view(), solution.X.view()).view(), D.view(), n, size), law);
        Matrix<T> A_lost = copy<T>(A.view()), B_lost = copy<T>(B.view()), c = copy<T>(C.view()), d = copy<T>(D.view()),
                  X(n, 1);
        ASSERT_EQ(lapack::gglse(A_lost.view(), B_lost.view(), c.data(), d.data(), X.data()), 0);
        // both have errors of order n u κ of B and of A in the null space of B
        const auto of_B = least_squares(this->ctx, B.view(), D.view());
        const double kappa = std::max(solution.condition, 1.0) * std::max(of_B.condition, 1.0);
        EXPECT_LE(difference<T>(solution.X.view(), X.view(), n, kappa * frobenius_norm<T>(X.view())), 2 * law);
        Matrix<T> R = product<T>(A.view(), solution.X.view());
        for (Index i = 0; i < m; ++i) R(i, 0) -= C(i, 0);
        EXPECT_NEAR(solution.residual_norms[0], frobenius_norm<T>(R.view()),
                    law * n * u * kappa * frobenius_norm<T>(C.view()));
    }
}

TYPED_TEST(RegressionTest, ConstraintsAtTheEdges) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(9, 4), C = random_normal<T>(9, 2, 5), none(0, 4), no_values(0, 2);
    EXPECT_TRUE(same_bits<T>(
        constrained_least_squares<T>(this->ctx, A.view(), C.view(), none.view(), no_values.view()).X.view(),
        least_squares(this->ctx, A.view(), C.view()).X.view()));
    // of all X with BX = D, A = 0 prefers none: the shortest is returned
    const Matrix<T> zero = filled<T>(9, 4, 0), B = random_normal<T>(2, 4, 3), D = random_normal<T>(2, 2, 7);
    const auto shortest = constrained_least_squares<T>(this->ctx, zero.view(), C.view(), B.view(), D.view());
    const auto of_B = least_squares(this->ctx, B.view(), D.view());
    EXPECT_LE(difference<T>(shortest.X.view(), of_B.X.view(), 4, of_B.condition * frobenius_norm<T>(of_B.X.view())),
              2 * law);

    const auto message = [&](const Matrix<T>& constraints) -> std::string {
        try {
            constrained_least_squares<T>(this->ctx, A.view(), C.view(), constraints.view(),
                                         random_normal<T>(constraints.rows(), 2, 7).view());
        } catch (const Error& e) {
            return e.what();
        }
        return "no error";
    };
    Matrix<T> twice = random_normal<T>(3, 4, 3);
    for (Index j = 0; j < 4; ++j) twice(2, j) = twice(0, j) * T(-0.5);
    EXPECT_NE(message(twice).find("linearly dependent: leave out row 2 of B"), std::string::npos) << message(twice);
    EXPECT_EQ(message(random_normal<T>(5, 4)),
              "constrained_least_squares: 5 constraints on 4 unknowns; at most 4 can hold");
    EXPECT_NE(message(random_normal<T>(2, 3)).find("B 2x3"), std::string::npos);
}

}  // namespace
}  // namespace quoin::test
