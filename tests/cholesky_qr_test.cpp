// The conditional methods: the law inside their domain of κ, outside it the law or an exception, never a wrong answer;
// and Auto, which may use them but answers for every matrix.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "checks.hpp"
#include "devices.hpp"
#include "gallery.hpp"
#include "quoin/qr.hpp"

namespace quoin::test {
namespace {

template <class T>
class CholeskyQR : public testing::Test {
protected:
    static constexpr double u = unit_roundoff<T>;
    /// Where CholeskyQR2 (Yamamoto et al. 2015) and randomized CholeskyQR (Higgins et al. 2023) are safe for every
    /// matrix of moderate size.
    const double domain_of_cholesky_qr2 = 0.01 / std::sqrt(u);
    const double domain_of_randomized_cholesky_qr = 0.01 / u;
    const Index tall = quick() ? 1000 : 6000;

    Context<Host> ctx{2};

    void expect_law_of_every_form(Method method, MatrixView<const T> A) {
        for (QForm q : q_forms) {
            SCOPED_TRACE(std::string(to_string(method)) + " " + to_string(q));
            const QR<T> f = qr(ctx, A, with(method, q));
            EXPECT_EQ(f.report().method, method);
            EXPECT_FALSE(f.report().fell_back);
            expect_law(ctx, A, f);
        }
    }

    /// The law, or NumericalBreakdown at a column of A, and A as it was. True if it was the law.
    bool expect_law_or_breakdown(Method method, QForm q, MatrixView<const T> A) {
        const Matrix<T> before = copy(A);
        bool succeeded = false;
        try {
            const QR<T> f = qr(ctx, A, with(method, q));
            expect_law(ctx, A, f);
            succeeded = true;
        } catch (const NumericalBreakdown& breakdown) {
            EXPECT_EQ(breakdown.code(), ErrorCode::NumericalBreakdown);
            EXPECT_GE(breakdown.column, 0);
            EXPECT_LT(breakdown.column, A.cols);
        }
        EXPECT_TRUE(same_bits<T>(A, before.view()));
        return succeeded;
    }
};
TYPED_TEST_SUITE(CholeskyQR, Scalars);

TYPED_TEST(CholeskyQR, TwoPassesObeyTheLawInTheirDomain) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{this->tall, 33}, {60, 20}, {30, 30}, {500, 1}, {257, 64}})
        for (double kappa : {1.0, 3.0, std::sqrt(this->domain_of_cholesky_qr2), this->domain_of_cholesky_qr2}) {
            SCOPED_TRACE(shape_name(m, n) + " kappa " + std::to_string(kappa));
            this->expect_law_of_every_form(Method::CholeskyQR2, with_condition<T>(m, n, kappa).view());
        }
}

/// Up to ‖(R D)⁻¹‖₂² = 1/(1 − x) = 8, whatever the scales of columns: mn² flops for R alone, and 3mn² beyond.
TYPED_TEST(CholeskyQR, OnePassWhereTheFactorProvesThatItSuffices) {
    using T = TypeParam;
    const Index m = this->tall, n = 40;
    const double one_pass = 1.0 * m * n * n;
    for (const double x : {0.0, 0.5, 0.86, 0.874, 0.876, 0.9, 0.999}) {
        SCOPED_TRACE(x);
        const Matrix<T> A = with_cosine<T>(m, n, x);
        this->ctx.reset_progress();
        const QR<T> f = qr(this->ctx, A.view(), with(Method::CholeskyQR2, QForm::None));
        EXPECT_NEAR(this->ctx.flops_done() / one_pass, x < 0.875 ? 1 : 3, 0.1);
        this->expect_law_of_every_form(Method::CholeskyQR2, A.view());
    }
}

TYPED_TEST(CholeskyQR, PassesBehindASketchObeyTheLawInTheirDomain) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{this->tall, 33}, {60, 20}, {30, 30}, {500, 1}, {257, 64}})
        for (double kappa : {1.0, this->domain_of_cholesky_qr2, 100 * this->domain_of_cholesky_qr2,
                             std::sqrt(this->domain_of_cholesky_qr2 * this->domain_of_randomized_cholesky_qr),
                             this->domain_of_randomized_cholesky_qr}) {
            SCOPED_TRACE(shape_name(m, n) + " kappa " + std::to_string(kappa));
            this->expect_law_of_every_form(Method::RandomizedCholeskyQR, with_condition<T>(m, n, kappa).view());
        }
}

/// Dependent columns, exactly or to rounding errors, are perturbed by their rounding errors' size, and columns of zeros
/// have some q_j: a thin Q comes of the passes then. LAPACK's format has I for exact zeros, and is refused.
TYPED_TEST(CholeskyQR, DependentColumnsArePerturbedBehindASketch) {
    using T = TypeParam;
    std::vector<std::pair<std::string, std::function<T(Index, Index)>>> classes = {
        {"ones", [](Index, Index) { return T(1); }},
        {"three columns of small integers", [](Index i, Index j) { return T((7 * i + 13 * (j % 3)) % 11 < 3); }},
        {"one row", [](Index i, Index j) { return i == 5 ? T(j + 1) : T(0); }},
        {"rank 1", [](Index i, Index j) { return T(1) / T(i + 3) / T(j + 1); }},
        {"growth", [](Index i, Index j) { return i == j  ? T(1)
                                                 : i < j ? T(-1)
                                                         : T(0); }},
    };
    const auto expect_no_breakdown = [&](const Matrix<T>& A) {
        EXPECT_TRUE(this->expect_law_or_breakdown(Method::RandomizedCholeskyQR, QForm::Explicit, A.view()));
    };
    for (auto [m, n] : {std::pair<Index, Index>{128, 2}, {600, 7}, {this->tall, 33}, {1600, 200}}) {
        if (quick() && n > 100) continue;
        SCOPED_TRACE(shape_name(m, n));
        for (const auto& [name, entry] : classes) {
            SCOPED_TRACE(name);
            Matrix<T> A(m, n);
            for (Index j = 0; j < n; ++j) {
                for (Index i = 0; i < m; ++i) A(i, j) = entry(i, j);
            }
            expect_no_breakdown(A);
        }
        for (const Gallery matrix_class :
             {Gallery::RankDeficientExact, Gallery::RankDeficientNumerical, Gallery::DuplicateColumns, Gallery::Hilbert,
              Gallery::Vandermonde, Gallery::ZeroFirstColumn, Gallery::ZeroLastColumn, Gallery::ZeroSomeColumns,
              Gallery::Zero}) {
            SCOPED_TRACE(to_string(matrix_class));
            expect_no_breakdown(generate<T>(matrix_class, m, n));
        }
        for (const double kappa : {0.01 / this->u, 0.1 / this->u, 1 / this->u, 10 / this->u, 1e4 / this->u}) {
            SCOPED_TRACE(kappa);
            expect_no_breakdown(with_condition<T>(m, n, kappa));
        }
    }
    const Matrix<T> A = generate<T>(Gallery::DuplicateColumns, 1000, 20);
    EXPECT_THROW(qr(this->ctx, A.view(), with(Method::RandomizedCholeskyQR, QForm::Reflectors)), NumericalBreakdown);
    // columns of zeros, and dependent ones beside them, by Auto: R has zeros there, and A is as it was where nothing
    // else answers
    for (const Index m : {Index(1000), this->tall}) {
        Matrix<T> B = generate<T>(Gallery::DuplicateColumns, m, 20);
        for (const Index j : {0, 7, 19}) std::fill_n(B.view().at(0, j), m, T(0));
        for (const Method method : {Method::Auto, Method::RandomizedCholeskyQR}) {
            const QR<T> f = qr(this->ctx, B.view(), with(method, QForm::Explicit));
            expect_law<T>(this->ctx, B.view(), f);
            if (!is_conditional(f.plan().method)) continue;
            EXPECT_EQ(f.report().method, Method::RandomizedCholeskyQR);
            EXPECT_EQ(f.report().perturbed_condition, std::numeric_limits<double>::infinity());
            const Matrix<T> R = f.r(this->ctx);
            for (const Index j : {0, 7, 19}) {
                for (Index i = 0; i < 20; ++i) EXPECT_EQ(R(i, j), T(0));
            }
        }
    }
}

/// To 1/4: eigenvalues 1 ± x of [1 x; x 1] beside others of 1.
TYPED_TEST(CholeskyQR, ASmallEigenvalueIsRefused) {
    using T = TypeParam;
    for (const Index n : {2, 49, 100}) {
        for (const double x : {0.0, 0.7, 0.749, 0.751, 0.8, 0.999}) {
            Matrix<T> G = identity<T>(n), R(n, n);
            G(0, n - 1) = static_cast<T>(x);
            Certificate state;
            factor_gram<T>(this->ctx, G.view(), {.min_eigenvalue = 0.25}, R.view(),
                           CertificateView<Host>(&state, 1, 1));
            EXPECT_EQ(state.reason, x < 0.75 ? Certificate::Valid : Certificate::Eigenvalue) << x;
            EXPECT_EQ(state.column, x < 0.75 ? -1 : n - 1) << x;
        }
    }
}

TYPED_TEST(CholeskyQR, NeverASilentlyWrongAnswerWhateverTheCondition) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{2000, 16}, {60, 20}})
        for (double kappa = 0.01 / std::sqrt(this->u); kappa < 1e3 / this->u; kappa *= 7) {
            const Matrix<T> A = with_condition<T>(m, n, kappa);
            for (Method method : conditional_methods)
                for (QForm q : q_forms) {
                    SCOPED_TRACE(case_name(m, n, method, q) + " kappa " + std::to_string(kappa));
                    this->expect_law_or_breakdown(method, q, A.view());
                }
        }
}

/// One small singular value, one large one, half and half: spectra that condition estimators see differently.
TYPED_TEST(CholeskyQR, NeverASilentlyWrongAnswerWhateverTheSpectrum) {
    using T = TypeParam;
    const Index m = 300, n = 24;
    for (double kappa = 0.1 / std::sqrt(this->u); kappa < 100 / std::sqrt(this->u); kappa *= 2)
        for (Index large : {Index(1), n / 2, n - 1}) {
            std::vector<double> s(n, 1 / kappa);
            std::fill_n(s.begin(), large, 1.0);
            const Matrix<T> A = with_singular_values<T>(m, n, s);
            for (Method method : conditional_methods)
                for (QForm q : q_forms) {
                    SCOPED_TRACE(case_name(m, n, method, q) + " " + std::to_string(large) +
                                 " large singular values, kappa " + std::to_string(kappa));
                    this->expect_law_or_breakdown(method, q, A.view());
                }
            const QR<T> f = qr(this->ctx, A.view());
            SCOPED_TRACE("auto");
            expect_law(this->ctx, A.view(), f);
        }
}

TYPED_TEST(CholeskyQR, NeverASilentlyWrongAnswerOnTheGallery) {
    using T = TypeParam;
    for (Gallery matrix_class : gallery())
        for (auto [m, n] : {std::pair<Index, Index>{500, 24}, {45, 45}}) {
            const Matrix<T> A = generate<T>(matrix_class, m, n);
            for (Method method : conditional_methods)
                for (QForm q : q_forms) {
                    SCOPED_TRACE(to_string(matrix_class) + " " + case_name(m, n, method, q));
                    this->expect_law_or_breakdown(method, q, A.view());
                }
        }
}

/// Kahan's triangle has large pivots throughout and yet κ = 10^(0.13n): no pivot warns of it.
TYPED_TEST(CholeskyQR, NeverASilentlyWrongAnswerWhereNoPivotIsSmall) {
    using T = TypeParam;
    for (Index n = 20; n <= 120; n += 10) {
        const Index m = 6 * n;
        const Matrix<T> A = generate<T>(Gallery::Kahan, m, n);
        for (QForm q : q_forms) {
            SCOPED_TRACE(shape_name(m, n) + " " + to_string(q));
            for (Method method : conditional_methods) this->expect_law_or_breakdown(method, q, A.view());
            expect_law(this->ctx, A.view(), qr(this->ctx, A.view(), with(Method::Auto, q)));
        }
    }
}

TYPED_TEST(CholeskyQR, RankDeficiencyBreaksDown) {
    using T = TypeParam;
    // A Q with orthonormal columns would have to come from a pivot that holds nothing but rounding errors.
    for (Gallery matrix_class : {Gallery::RankDeficientExact, Gallery::DuplicateColumns, Gallery::ZeroFirstColumn,
                                 Gallery::ZeroLastColumn, Gallery::ZeroSomeColumns, Gallery::Zero})
        for (QForm q : {QForm::Any, QForm::None, QForm::Explicit}) {
            SCOPED_TRACE(to_string(matrix_class) + " " + to_string(q));
            const Matrix<T> A = generate<T>(matrix_class, 500, 24);
            EXPECT_THROW(qr(this->ctx, A.view(), with(Method::CholeskyQR2, q)), NumericalBreakdown);
        }
}

TYPED_TEST(CholeskyQR, BreakdownNamesTheColumn) {
    using T = TypeParam;
    for (Index zero_column : {0, 5, 11}) {
        Matrix<T> A = random_normal<T>(300, 12);
        std::fill_n(A.view().at(0, zero_column), 300, T(0));
        try {
            qr(this->ctx, A.view(), with(Method::CholeskyQR2, QForm::Explicit));
            FAIL() << "a zero column must break down";
        } catch (const NumericalBreakdown& breakdown) {
            EXPECT_EQ(breakdown.column, zero_column);
            EXPECT_NE(std::string(breakdown.what()).find(std::to_string(zero_column)), std::string::npos)
                << breakdown.what();
        }
    }
}

TYPED_TEST(CholeskyQR, TheContextWorksOnAfterABreakdown) {
    using T = TypeParam;
    const Matrix<T> bad = generate<T>(Gallery::DuplicateColumns, 300, 12), good = random_normal<T>(300, 12);
    EXPECT_THROW(qr(this->ctx, bad.view(), with(Method::CholeskyQR2, QForm::Any)), NumericalBreakdown);
    this->expect_law_of_every_form(Method::CholeskyQR2, good.view());
}

// ---- Auto ----------------------------------------------------------------------------------------------------------

/// Shapes on both sides of the tuning table: those where Auto tries a conditional method and those where it does not.
template <class T>
class AutoOf : public CholeskyQR<T> {
protected:
    /// Calls check(A, q) with a matrix of every shape and the QForms whose turn it is.
    template <class Generate, class Check>
    void for_every_shape(Generate generate, Check check, Index turn = 0) {
        for (auto [m, n] : {std::pair<Index, Index>{20000, 32}, {6000, 64}, {3000, 8}, {1000, 100}, {200, 150}}) {
            if (quick() && m > 3000) continue;
            const Matrix<T> A = generate(m, n);
            for (QForm q : in_turn(q_forms, turn++)) {
                SCOPED_TRACE(case_name(m, n, Method::Auto, q));
                check(A.view(), q);
            }
        }
    }
};
TYPED_TEST_SUITE(AutoOf, Scalars);

TYPED_TEST(AutoOf, ObeysTheLawForEveryCondition) {
    using T = TypeParam;
    const double u = this->u;
    Index turn = 0;
    for (double kappa : {1.0, 0.1 / std::sqrt(u), 1 / std::sqrt(u), 0.01 / u, 1e3 / u}) {
        SCOPED_TRACE("kappa " + std::to_string(kappa));
        const auto conditioned = [kappa](Index m, Index n) { return with_condition<T>(m, n, kappa); };
        const auto check = [&](MatrixView<const T> A, QForm q) {
            const QR<T> f = qr(this->ctx, A, with(Method::Auto, q));
            expect_law(this->ctx, A, f);
            EXPECT_EQ(f.report().fell_back, f.report().method != f.plan().method);
            if (q == QForm::None && kappa * std::sqrt(u) <= 1) {
                EXPECT_LE(implicit_orthogonality_error<T>(A, f.r().view()), law);
            }
        };
        this->for_every_shape(conditioned, check, turn++);
    }
}

/// Around κ = u^(-1/2) the first pass goes through and the certificate still fails: what is done then goes on with Q₁,
/// for the whole matrix as for one tall panel of a blocked factorization.
TYPED_TEST(AutoOf, ObeysTheLawWhereTheFirstPassHelpsAndTheCertificateFails) {
    using T = TypeParam;
    const Index m = 2400, n = 32;
    Index by_sketch = 0;
    for (double kappa = 0.05 / std::sqrt(this->u); kappa < 5 / std::sqrt(this->u); kappa *= 1.25) {
        const Matrix<T> A = with_condition<T>(m, n, kappa);
        for (Method method : {Method::Auto, Method::BlockedHouseholder})
            for (QForm q : q_forms) {
                SCOPED_TRACE(case_name(m, n, method, q) + " kappa " + std::to_string(kappa));
                Options options = with(method, q);
                if (method == Method::BlockedHouseholder) options.method.set_panel_width(n);
                const QR<T> f = qr(this->ctx, A.view(), options);
                expect_law(this->ctx, A.view(), f);
                if (f.plan().method == Method::CholeskyQR2 && (q == QForm::Any || q == QForm::Explicit)) {
                    EXPECT_TRUE(is_conditional(f.report().method));
                    by_sketch += f.report().method == Method::RandomizedCholeskyQR;
                }
            }
    }
    EXPECT_GT(by_sketch, 0);
}

/// Here a panel fails that is not the first one.
TYPED_TEST(AutoOf, ObeysTheLawWhereALaterPanelIsRefused) {
    using T = TypeParam;
    const Index m = 2400, n = 16;
    const Matrix<T> first = random_normal<T>(m, n);
    for (const double times : {0.5, 1.0, 2.0, 1e4}) {
        SCOPED_TRACE("kappa " + std::to_string(times) + " u^(-1/2)");
        const Matrix<T> second = with_condition<T>(m, n, times / std::sqrt(this->u));
        Matrix<T> A(m, 2 * n);
        for (Index j = 0; j < n; ++j) {
            std::copy_n(first.view().at(0, j), m, A.view().at(0, j));
            std::copy_n(second.view().at(0, j), m, A.view().at(0, n + j));
        }
        Options options = with(Method::BlockedHouseholder, QForm::Explicit);
        options.method.set_panel_width(n);
        expect_law<T>(this->ctx, A.view(), qr(this->ctx, A.view(), options));
    }
}

/// ‖I − Q₁ᵀQ₁‖_F <= 1/2, to the bound: around κ = u^(-1/2) it takes every value.
TYPED_TEST(AutoOf, CertifiesUpToOneHalf) {
    using T = TypeParam;
    int just_above = 0, below = 0;
    Plan plan = plan_qr<T>(this->ctx, 150, 24, with(Method::CholeskyQR2, QForm::Explicit));
    std::get<CholeskyPlan>(plan.choices).fallback =
        Method::TSQR;  // as Auto has it, which does not take this method on every CPU
    for (double kappa = 0.2 / std::sqrt(this->u); kappa < 8 / std::sqrt(this->u); kappa *= 1.04) {
        const QR<T> f = qr(this->ctx, with_condition<T>(150, 24, kappa), plan);
        const double departure = f.report().gram_departure;
        if (departure < 0 || f.report().method == Method::RandomizedCholeskyQR) continue;
        EXPECT_EQ(f.report().fell_back, departure > 0.5) << "kappa " << kappa << ", departure " << departure;
        below += departure <= 0.5;
        just_above += departure > 0.5 && departure < 0.9;
    }
    EXPECT_GT(below, 0);
    EXPECT_GT(just_above, 0);
}

/// It is of the same Q₁, whatever is made of it; R alone does not even write it.
TYPED_TEST(AutoOf, ReportsTheSameDepartureForEveryFormOfQ) {
    using T = TypeParam;
    const Matrix<T> A = with_condition<T>(2000, 24, 0.1 / std::sqrt(this->u));
    const auto departure = [&](QForm q) {
        return qr(this->ctx, A.view(), with(Method::CholeskyQR2, q)).report().gram_departure;
    };
    const double expected = departure(QForm::Explicit);
    EXPECT_TRUE(0 < expected && expected < 0.5) << expected;
    for (const QForm q : {QForm::None, QForm::Reflectors}) EXPECT_EQ(departure(q), expected) << to_string(q);
}

TYPED_TEST(AutoOf, ObeysTheLawOnTheGalleryWhereItIsTall) {
    using T = TypeParam;
    for (Gallery matrix_class : gallery()) {
        const Matrix<T> A = generate<T>(matrix_class, 2500, 24);
        for (QForm q : q_forms) {
            SCOPED_TRACE(to_string(matrix_class) + " " + to_string(q));
            expect_law(this->ctx, A.view(), qr(this->ctx, A.view(), with(Method::Auto, q)));
        }
    }
}

TYPED_TEST(AutoOf, FallsBackWhereItsMethodCannotCertify) {
    using T = TypeParam;
    const auto deficient = [](Index m, Index n) { return generate<T>(Gallery::RankDeficientExact, m, n); };
    this->for_every_shape(deficient, [&](MatrixView<const T> A, QForm q) {
        const QR<T> f = qr(this->ctx, A, with(Method::Auto, q));
        const Plan& plan = f.plan();
        expect_law(this->ctx, A, f);
        EXPECT_EQ(f.report().fell_back, is_conditional(plan.method));
        // a sketch where the thin Q is formed and A is only slightly perturbed by it
        const bool sketched =
            (q == QForm::Any || q == QForm::Explicit) && A.rows >= std::max(8 * A.cols, sketch_rows(A.cols));
        EXPECT_EQ(f.report().method, !is_conditional(plan.method) ? plan.method
                                     : sketched                   ? Method::RandomizedCholeskyQR
                                                                  : plan.fallback());
    });
}

TYPED_TEST(AutoOf, FallsBackInPlace) {
    using T = TypeParam;
    const auto deficient = [](Index m, Index n) { return generate<T>(Gallery::DuplicateColumns, m, n); };
    this->for_every_shape(deficient, [&](MatrixView<const T> A, QForm q) {
        const Plan plan = plan_qr<T>(this->ctx, A.rows, A.cols, with(Method::Auto, q));
        const QR<T> f = qr(this->ctx, copy(A), plan);
        expect_law(this->ctx, A, f);
        EXPECT_EQ(f.report().fell_back, is_conditional(plan.method));
    });
}

TYPED_TEST(AutoOf, DoesNotFallBackOnAWellConditionedMatrix) {
    using T = TypeParam;
    const auto conditioned = [](Index m, Index n) { return with_condition<T>(m, n, 3); };
    this->for_every_shape(conditioned, [&](MatrixView<const T> A, QForm q) {
        const QR<T> f = qr(this->ctx, A, with(Method::Auto, q));
        EXPECT_FALSE(f.report().fell_back);
        EXPECT_EQ(f.report().method, f.plan().method);
    });
}

}  // namespace
}  // namespace quoin::test
