// Gram-Schmidt on the GPU: the host's laws (tests/gram_schmidt_test.cpp), and the laws of every arithmetic.

#include "quoin/gram_schmidt.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "devices.hpp"
#include "gpu.hpp"
#include "gram_schmidt_law.hpp"
#include "quoin/quoin.hpp"
#include "quoin/study.hpp"

namespace quoin::test {
namespace {

template <class T>
class GpuGramSchmidt : public OnGpu {
protected:
    static constexpr double u = unit_roundoff<T>;
    const double largest_kappa = std::is_same_v<T, double> ? 1e15 : 1e6;

    struct Factors {
        Matrix<T> Q, R;
        Report report;
    };
    Factors factors(MatrixView<const T> A, const Options& options) {
        QR<T, Cuda> f = qr<T, Cuda>(gpu(), copy_to_device<T>(gpu(), A).view(), options);
        return {copy_to_host<T>(gpu(), f.form_q(gpu()).view()), copy_to_host<T>(gpu(), f.r(gpu()).view()), f.report()};
    }
    /// ‖I − QᵀQ‖ in units of nu, with a check of what holds whatever κ is.
    double loss(MatrixView<const T> A, const Options& options) {
        const Factors f = factors(A, options);
        EXPECT_LE(column_residual_error<T>(A, f.Q.view(), f.R.view()), law);
        EXPECT_TRUE(is_upper_trapezoidal<T>(f.R.view()));
        return orthogonality_error<T>(f.Q.view(), A.cols);
    }
    void expect_law_of(MatrixView<const T> A, MatrixView<const T> Q, MatrixView<const T> R, double max_loss = law) {
        ASSERT_EQ(Q.cols, A.cols);
        EXPECT_TRUE(is_upper_trapezoidal<T>(R));
        if (A.cols == 0) return;
        EXPECT_LE(column_residual_error<T>(A, Q, R), law);
        EXPECT_LE(orthogonality_error<T>(Q, A.cols), max_loss);
    }
    void expect_law_of(MatrixView<const T> A, const GramSchmidt<T, Cuda>& basis, double max_loss = law) {
        expect_law_of(A, copy_to_host<T>(gpu(), basis.q()).view(), copy_to_host<T>(gpu(), basis.r()).view(), max_loss);
    }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuGramSchmidt, Types);

/// On the host both methods take panels by modified Gram-Schmidt.
TYPED_TEST(GpuGramSchmidt, FactorsPanelsByTheMethodOrTheTable) {
    const auto panel = [&](Method method) {
        return plan_qr<TypeParam>(this->gpu(), 5000, 300, {.method = method}).gram_schmidt().panel;
    };
    EXPECT_EQ(panel(Method::ModifiedGramSchmidt), GramSchmidtPanel::MGS);
    EXPECT_EQ(panel(Method::ClassicalGramSchmidt), GramSchmidtPanel::CholeskyQR2);
}

// ---- Primitives -----------------------------------------------------------------------------------------------------

TYPED_TEST(GpuGramSchmidt, ColumnsAreOrthonormalizedOneByOne) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{1, 1}, {5, 5}, {32, 32}, {127, 31}, {1000, 7}, {34000, 32}, {90001, 9}})
        for (Index k : {0, 3, 1000}) {
            SCOPED_TRACE(shape_name(m, n) + " behind " + std::to_string(k));
            Matrix<T> A = random_normal<T>(m, n);
            for (Index j = 0; j < n; ++j) A(j, j) += 4 * std::sqrt(T(m));
            const Matrix<T> above = random_normal<T>(k, n, 3);
            GpuPadded<T> gA(this->gpu(), A.view()), gR(this->gpu(), k + n, n);
            if (k > 0) copy_to_device<T>(this->gpu(), above.view(), gR.view().row_block({0, k}));
            Matrix<Certificate, Cuda> certificate(this->gpu(), 1, 1);
            write_certificate(this->gpu(), certificate.view(), {});
            orthonormalize_columns<T>(this->gpu(), gA.view(), gR.view(), false, certificate.view());
            EXPECT_FALSE(read_certificate(this->gpu(), certificate.view()).refused());
            const Remainders found = inspect_remainders<T>(this->gpu(), gR.view());
            const Matrix<T> Q = gA.fetch(this->gpu()), R = gR.fetch(this->gpu());
            EXPECT_TRUE(same_bits<T>(R.view().row_block({0, k}), above.view()));
            this->expect_law_of(A.view(), Q.view(), R.view().row_block({k, k + n}));
            const Remainders expected = inspect_remainders<T>(this->host, R.view());
            EXPECT_EQ(found.zeros, expected.zeros);
            EXPECT_EQ(found.dependent, expected.dependent);
            EXPECT_NEAR(found.least, expected.least, 1e-12);
            EXPECT_NEAR(found.departure, expected.departure, 1e-10);
        }
}

TYPED_TEST(GpuGramSchmidt, DependentColumnsCloseTheGateOrAreReplaced) {
    using T = TypeParam;
    const Index m = 2000, n = 20, k = 4;
    for (Index bad : {0, 7, 19}) {
        Matrix<T> A = random_normal<T>(m, n);
        for (Index i = 0; i < m; ++i) A(i, bad) = bad == 0 ? T(0) : A(i, 3) - 2 * A(i, 5);
        GpuPadded<T> gR(this->gpu(), filled<T>(k + n, n, T(0)).view());
        Matrix<Certificate, Cuda> certificate(this->gpu(), 1, 1);
        for (bool complete : {false, true}) {
            GpuPadded<T> gA(this->gpu(), A.view());
            write_certificate(this->gpu(), certificate.view(), {});
            orthonormalize_columns<T>(this->gpu(), gA.view(), gR.view(), complete, certificate.view());
            const Certificate state = read_certificate(this->gpu(), certificate.view());
            EXPECT_EQ(state.refused(), !complete);
            if (!complete) {
                EXPECT_EQ(state.reason, Certificate::Pivot);
                EXPECT_EQ(state.column, k + bad);
                continue;
            }
            const Matrix<T> Q = gA.fetch(this->gpu()), R = gR.fetch(this->gpu());
            EXPECT_EQ(R(k + bad, bad), T(0));
            for (Index i : {Index(0), Index(11), m - 1})
                EXPECT_EQ(Q(i, bad), static_cast<T>(random_sign(i, k + bad) / std::sqrt(double(m))));
            EXPECT_LE(column_residual_error<T>(A.view(), Q.view(), R.view().row_block({k, k + n})), law);
            EXPECT_EQ(inspect_remainders<T>(this->gpu(), gR.view()).zeros, 1);
        }
    }
}

// ---- The laws -------------------------------------------------------------------------------------------------------

TYPED_TEST(GpuGramSchmidt, ModifiedLosesWithKappa) {
    using T = TypeParam;
    for (auto [n, width] : {std::pair<Index, Index>{60, 0}, {60, 16}, {100, 64}}) {
        SCOPED_TRACE(shape_name(n, width));
        const Options options = gram_schmidt_cases[0].options(width);
        const double found = slope_of_loss<T>(
            500, n, this->largest_kappa, [&](MatrixView<const T> A) { return this->loss(A, options); },
            [&, n = n](double kappa) { return max_modified_loss(n, this->u, kappa_f(n, kappa)); },
            [&](double kappa) { return kappa > 30 && kappa * this->u < 0.01; });
        EXPECT_GT(found, 0.85);
        EXPECT_LT(found, 1.1);
    }
}

TYPED_TEST(GpuGramSchmidt, ClassicalLosesWithKappaSquared) {
    using T = TypeParam;
    for (auto [n, width] : {std::pair<Index, Index>{60, 30}, {60, 32}}) {
        SCOPED_TRACE(shape_name(n, width));
        const Options options = gram_schmidt_cases[3].options(width);
        const double found = slope_of_loss<T>(
            500, n, this->largest_kappa, [&](MatrixView<const T> A) { return this->loss(A, options); },
            [&, n = n](double kappa) { return max_classical_loss(n, this->u, kappa_f(n, kappa)); },
            [&](double kappa) { return kappa > 5 && kappa * kappa * this->u < 0.01; });
        EXPECT_GT(found, 1.8);
        EXPECT_LT(found, 2.2);
    }
}

TYPED_TEST(GpuGramSchmidt, ReorthogonalizedObeysTheLawOnEveryClass) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{300, 70}, {90, 90}})
        for (Gallery matrix_class : gallery()) {
            const Matrix<T> A = generate<T>(matrix_class, m, n);
            for (const auto& scheme : gram_schmidt_cases)
                for (Index width : {0, 16}) {
                    if (!scheme.unconditional() || (quick() && m != n)) continue;
                    SCOPED_TRACE(to_string(matrix_class) + " " + case_name(scheme, m, n, width));
                    const auto f = this->factors(A.view(), scheme.options(width));
                    EXPECT_TRUE(is_finite<T>(f.R.view()));
                    this->expect_law_of(A.view(), f.Q.view(), f.R.view());
                }
        }
}

TYPED_TEST(GpuGramSchmidt, EveryShape) {
    using T = TypeParam;
    for (const auto& scheme : gram_schmidt_cases)
        for (auto [m, n] : {std::pair<Index, Index>{0, 0},
                            {5, 0},
                            {1, 1},
                            {3, 3},
                            {33, 32},
                            {129, 129},
                            {3001, 17},
                            {900, 531},
                            {40001, 65}}) {
            if (quick() && m * n > 10000) continue;
            SCOPED_TRACE(case_name(scheme, m, n, 0));
            Matrix<T> A = random_normal<T>(m, n, m + n);
            for (Index j = 0; j < n; ++j) A(j, j) += 4 * std::sqrt(T(m));
            GpuPadded<T> gA(this->gpu(), A.view());
            const auto once = qr<T, Cuda>(this->gpu(), gA.view(), scheme.options());
            const auto twice = qr<T, Cuda>(this->gpu(), gA.view(), scheme.options());
            EXPECT_TRUE(same_bits<T>(gA.fetch(this->gpu()).view(), A.view())) << "A is as it was";
            const Matrix<T> Q = copy_to_host<T>(this->gpu(), once.form_q(this->gpu()).view());
            const Matrix<T> R = copy_to_host<T>(this->gpu(), once.r(this->gpu()).view());
            this->expect_law_of(A.view(), Q.view(), R.view());
            EXPECT_TRUE(same_bits<T>(copy_to_host<T>(this->gpu(), twice.form_q(this->gpu()).view()).view(), Q.view()));
            EXPECT_TRUE(same_bits<T>(copy_to_host<T>(this->gpu(), twice.r(this->gpu()).view()).view(), R.view()));
        }
}

TYPED_TEST(GpuGramSchmidt, ADependentColumnIsNamedOrCompleted) {
    using T = TypeParam;
    const Index m = 400, n = 150;
    for (const auto& scheme : gram_schmidt_cases)
        for (Index bad : {Index(0), Index(40), n - 1}) {
            SCOPED_TRACE(case_name(scheme, m, n, 0) + " column " + std::to_string(bad));
            Matrix<T> A = random_normal<T>(m, n);
            for (Index i = 0; i < m; ++i) A(i, bad) = bad == 0 ? T(0) : 3 * A(i, bad / 2);
            if (scheme.unconditional()) {
                const auto f = this->factors(A.view(), scheme.options());
                EXPECT_EQ(f.report.dependent_columns, 1);
                EXPECT_EQ(f.R(bad, bad), T(0));
                this->expect_law_of(A.view(), f.Q.view(), f.R.view());
                continue;
            }
            try {
                this->factors(A.view(), scheme.options());
                FAIL() << "a dependent column must break down";
            } catch (const NumericalBreakdown& breakdown) {
                EXPECT_EQ(breakdown.column, bad);
            }
        }
}

// ---- Columns one after the other ------------------------------------------------------------------------------------

TYPED_TEST(GpuGramSchmidt, AppendedInPiecesObeysTheLawOfAllAtOnce) {
    using T = TypeParam;
    const Index m = 500, n = 150;
    Matrix<T> A = with_condition<T>(m, n, 1e3);
    // columns far from each other's scale
    for (Index j = 0; j < n; j += 3) {
        for (Index i = 0; i < m; ++i) A(i, j) = std::ldexp(A(i, j), std::is_same_v<T, double> ? 900 : 90);
    }
    const Matrix<T, Cuda> gA = copy_to_device<T>(this->gpu(), A.view());
    for (const auto& scheme : gram_schmidt_cases)
        for (const std::vector<Index>& pieces : {std::vector<Index>{150}, {1, 149}, {0, 64, 0, 1, 85}, {100, 50}})
            for (bool told : {false, true}) {
                SCOPED_TRACE(case_name(scheme, m, n, 0) + " in " + std::to_string(pieces.size()) + " pieces");
                GramSchmidt<T, Cuda> basis(this->gpu(), m, 7, scheme.options());
                Index k = 0, seen = 0;
                for (Index p : pieces) {
                    const auto on_columns = [&](Range columns) {
                        EXPECT_EQ(columns.begin, seen);
                        seen = columns.end;
                        return true;
                    };
                    const auto piece = gA.view().col_block({k, k + p});
                    if (told) {
                        basis.append(this->gpu(), piece, on_columns);
                    } else {
                        basis.append(this->gpu(), piece);
                    }
                    k += p;
                }
                EXPECT_EQ(seen, told ? n : 0);
                const double kappa = 1e3 * std::sqrt(static_cast<double>(n));
                this->expect_law_of(A.view(), basis, max_loss(scheme, n, this->u, kappa));
            }
}

TYPED_TEST(GpuGramSchmidt, OrthogonalizesTruncatesAndAppendsAgain) {
    using T = TypeParam;
    const Index m = 300, p = 3;
    const Matrix<T> A = random_normal<T>(m, 60), V = random_normal<T>(m, p, 7);
    const Matrix<T, Cuda> gA = copy_to_device<T>(this->gpu(), A.view());
    for (const auto& scheme : gram_schmidt_cases) {
        if (!scheme.unconditional()) continue;
        SCOPED_TRACE(scheme.name);
        GramSchmidt<T, Cuda> basis(this->gpu(), m, 0, scheme.options(16));
        basis.append(this->gpu(), gA.view().col_block({0, 50}));
        basis.truncate(20);
        basis.append(this->gpu(), gA.view().col_block({20, 60}));
        this->expect_law_of(A.view(), basis);
        // V = [Q V'] [H; I],   QᵀV' = 0
        GpuPadded<T> gV(this->gpu(), V.view());
        const Matrix<T> H = copy_to_host<T>(this->gpu(), basis.orthogonalize(this->gpu(), gV.view()).view());
        const Matrix<T> Q = copy_to_host<T>(this->gpu(), basis.q()), rest = gV.fetch(this->gpu());
        Matrix<T> sum = copy<T>(V.view()), along(60, p);
        subtract_product<T>(this->host, Q.view(), H.view(), sum.view());
        multiply_transposed<T>(this->host, Q.view(), rest.view(), along.view());
        const double scale = frobenius_norm<T>(V.view());
        EXPECT_LE(difference<T>(sum.view(), rest.view(), 60, scale), law);
        EXPECT_LE(difference<T>(along.view(), filled<T>(60, p, T(0)).view(), 60, scale), law);
    }
}

TYPED_TEST(GpuGramSchmidt, EndsWhereTheCallerHasEnough) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(100, 64);
    const Matrix<T, Cuda> gA = copy_to_device<T>(this->gpu(), A.view());
    GramSchmidt<T, Cuda> basis(this->gpu(), 100, 64, gram_schmidt_cases[0].options(8));
    basis.append(this->gpu(), gA.view(), [](Range columns) { return columns.end < 20; });
    EXPECT_EQ(basis.cols(), 24);
    basis.append(this->gpu(), gA.view().col_block({24, 64}));
    this->expect_law_of(A.view(), basis, 100);
}

// ---- Arithmetic -----------------------------------------------------------------------------------------------------

using GpuGramSchmidtArithmetic = GpuGramSchmidt<float>;

Options in_arithmetic(Arithmetic arithmetic, Reorthogonalization reorthogonalization) {
    Options options = with(Method::ClassicalGramSchmidt, QForm::Explicit);
    options.arithmetic = arithmetic;
    options.method.set_reorthogonalization(reorthogonalization);
    return options;
}

/// In units of what its products are rounded to: the residual always, orthogonality with reorthogonalization. Columns
/// of norms from 2⁻⁹⁰ to 2⁹⁰.
TEST_F(GpuGramSchmidtArithmetic, ObeysTheLawInItsOwnUnits) {
    const Index m = 2100, n = 1100;
    Matrix<float> A = random_normal<float>(m, n);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) A(i, j) = std::ldexp(A(i, j), 90 * int(j % 3 - 1));
    }
    for (auto [arithmetic, units] : {std::pair{Arithmetic::Native, 1.0},
                                     {Arithmetic::Corrected, 1.0},
                                     {study::TF32, 0x1p14},
                                     {Arithmetic::FP16, 0x1p13},
                                     {study::BF16, 0x1p16}})
        for (const Reorthogonalization r : {Reorthogonalization::Off, Reorthogonalization::Always}) {
            SCOPED_TRACE(std::string(to_string(arithmetic)) + " " + to_string(r));
            const Factors f = factors(A.view(), in_arithmetic(arithmetic, r));
            EXPECT_TRUE(is_upper_trapezoidal<float>(f.R.view()));
            EXPECT_LE(column_residual_error<float>(A.view(), f.Q.view(), f.R.view()), law * units);
            const double lost = orthogonality_error<float>(f.Q.view(), n);
            EXPECT_LE(lost, r == Reorthogonalization::Always ? law * units : 1 / u);
            EXPECT_GT(lost, units > 1 && !has_plain_kernels() ? 10 : 0) << "as good as f32";
        }
}

TEST_F(GpuGramSchmidtArithmetic, CorrectedObeysTheLawOnEveryClass) {
    const Index m = 640, n = 600;
    for (Gallery matrix_class : gallery())
        for (const Reorthogonalization r : {Reorthogonalization::Selective, Reorthogonalization::Always}) {
            if (quick() && matrix_class != Gallery::Kahan) continue;
            SCOPED_TRACE(to_string(matrix_class) + " " + to_string(r));
            const Matrix<float> A = generate<float>(matrix_class, m, n);
            Options options = in_arithmetic(Arithmetic::Corrected, r);
            options.method.set_panel_width(64);
            const Factors f = factors(A.view(), options);
            EXPECT_TRUE(is_finite<float>(f.R.view()));
            expect_law_of(A.view(), f.Q.view(), f.R.view());
        }
}

TEST_F(GpuGramSchmidtArithmetic, CorrectedIsAsAccurateAsHouseholder) {
    const Index n = quick() ? 1500 : 6000;
    const Matrix<float, Cuda> A = copy_to_device<float>(gpu(), random_normal<float>(n, n).view());
    const auto report = [&](Options options) {
        options.verify = true;
        return qr<float, Cuda>(gpu(), A.view(), options).report();
    };
    const Report householder = report(with(Method::BlockedHouseholder, QForm::Explicit));
    const Report cgs = report(in_arithmetic(Arithmetic::Corrected, Reorthogonalization::Always));
    EXPECT_LE(cgs.orthogonality, 3 * householder.orthogonality);
    EXPECT_LE(cgs.residual, 3 * householder.residual);
}

TEST_F(GpuGramSchmidtArithmetic, IsForF32ByClassicalGramSchmidt) {
    for (const Arithmetic arithmetic : {study::TF32, Arithmetic::FP16, study::BF16, Arithmetic::Corrected}) {
        Options options = in_arithmetic(arithmetic, Reorthogonalization::Off);
        EXPECT_EQ(plan_qr<float>(gpu(), 100, 50, options).arithmetic, arithmetic);
        EXPECT_THROW(plan_qr<double>(gpu(), 100, 50, options), InvalidArgument);
        EXPECT_THROW(plan_qr<float>(host, 100, 50, options), InvalidArgument);
        options.method = Method::ModifiedGramSchmidt;
        EXPECT_THROW(plan_qr<float>(gpu(), 100, 50, options), InvalidArgument);
    }
}

}  // namespace
}  // namespace quoin::test
