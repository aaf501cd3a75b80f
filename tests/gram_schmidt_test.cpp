// Gram-Schmidt: how orthogonality is lost with κ and without reorthogonalization, the law of every other method with
// it, and columns that come one after the other.

#include "quoin/gram_schmidt.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"
#include "gram_schmidt_law.hpp"
#include "quoin/quoin.hpp"

namespace quoin::test {
namespace {

template <class T>
class GramSchmidtTest : public testing::Test {
protected:
    static constexpr double u = unit_roundoff<T>;
    const double largest_kappa = std::is_same_v<T, double> ? 1e15 : 1e6;
    Context<Host> ctx{2};

    /// ‖I − QᵀQ‖ in units of nu, of the thin Q, with a check of what holds whatever κ is.
    double loss(MatrixView<const T> A, const Options& options) {
        const QR<T> f = qr(ctx, A, options);
        const Matrix<T> Q = f.form_q(ctx), R = f.r();
        EXPECT_LE(column_residual_error<T>(A, Q.view(), R.view()), law);
        EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
        return orthogonality_error<T>(Q.view(), A.cols);
    }

    template <class Bound, class Used>
    double slope(const Options& options, Index n, Bound bound, Used used) {
        return slope_of_loss<T>(
            quick() ? 150 : 500, n, largest_kappa, [&](MatrixView<const T> A) { return loss(A, options); }, bound,
            used);
    }

    /// Q and R of a basis, against the law.
    void expect_law_of(MatrixView<const T> A, const GramSchmidt<T>& basis, double max_loss = law) {
        ASSERT_EQ(basis.cols(), A.cols);
        EXPECT_LE(orthogonality_error<T>(basis.q(), A.cols), max_loss);
        EXPECT_LE(column_residual_error<T>(A, basis.q(), basis.r()), law);
        EXPECT_TRUE(is_upper_trapezoidal<T>(basis.r()));
    }
};
TYPED_TEST_SUITE(GramSchmidtTest, Scalars);

// ---- The laws of the loss of orthogonality --------------------------------------------------------------------------

TYPED_TEST(GramSchmidtTest, ModifiedLosesWithKappa) {
    for (auto [n, width] : {std::pair<Index, Index>{60, 0}, {60, 1}, {60, 7}, {60, 16}, {100, 64}}) {
        SCOPED_TRACE(shape_name(n, width));
        const double found = this->slope(
            gram_schmidt_cases[0].options(width), n,
            [&, n = n](double kappa) { return max_modified_loss(n, this->u, kappa_f(n, kappa)); },
            [&](double kappa) { return kappa > 30 && kappa * this->u < 0.01; });
        EXPECT_GT(found, 0.85);
        EXPECT_LT(found, 1.1);
    }
}

TYPED_TEST(GramSchmidtTest, ClassicalLosesWithKappaSquared) {
    for (auto [n, width] : {std::pair<Index, Index>{60, 30}, {60, 32}, {96, 0}}) {
        SCOPED_TRACE(shape_name(n, width));
        const double found = this->slope(
            gram_schmidt_cases[3].options(width), n,
            [&, n = n](double kappa) { return max_classical_loss(n, this->u, kappa_f(n, kappa)); },
            [&](double kappa) { return kappa > 5 && kappa * kappa * this->u < 0.01; });
        EXPECT_GT(found, 1.8);
        EXPECT_LT(found, 2.2);
    }
}

/// One panel of classical Gram-Schmidt for each column loses as fast: the law is not one of the panels.
TYPED_TEST(GramSchmidtTest, ClassicalLosesWithKappaSquaredColumnByColumn) {
    const auto any = [](double) { return std::numeric_limits<double>::infinity(); };
    const double found = this->slope(gram_schmidt_cases[3].options(1), 60, any,
                                     [&](double kappa) { return kappa > 5 && kappa * kappa * this->u < 0.01; });
    EXPECT_GT(found, 1.8);
    EXPECT_LT(found, 2.2);
}

TYPED_TEST(GramSchmidtTest, ReorthogonalizedLosesNothingWhateverKappa) {
    using T = TypeParam;
    const Index widths[] = {0, 1, 16};
    Index turn = 0;
    for (const auto& scheme : gram_schmidt_cases) {
        if (!scheme.unconditional()) continue;
        ++turn;  // another width first
        for (double kappa = 10; kappa <= 1.01 * this->largest_kappa; kappa *= 100)
            for (const Index width : in_turn(widths, turn++)) {
                SCOPED_TRACE(std::string(scheme.name) + " " + std::to_string(width) + " kappa " +
                             std::to_string(kappa));
                const Matrix<T> A = with_singular_values<T>(200, 60, near_one_line(60, kappa));
                EXPECT_LE(this->loss(A.view(), scheme.options(width)), law);
                const Matrix<T> B = with_condition<T>(200, 60, kappa);
                EXPECT_LE(this->loss(B.view(), scheme.options(width)), law);
            }
    }
}

/// R of modified Gram-Schmidt equals R of Householder's method on [0; A], whatever Q has lost.
TYPED_TEST(GramSchmidtTest, RIsAsGoodAsHouseholders) {
    using T = TypeParam;
    for (double kappa = 10; kappa <= 1.01 * this->largest_kappa; kappa *= 10)
        for (QForm q : {QForm::None, QForm::Any}) {
            const Matrix<T> A = with_condition<T>(300, 40, kappa);
            const Matrix<T> R = qr(this->ctx, A.view(), gram_schmidt_cases[0].options(0, q)).r();
            EXPECT_LE(gram_error<T>(A.view(), R.view()), law) << kappa;
            EXPECT_LE(implicit_orthogonality_error<T>(A.view(), R.view()), law) << kappa;
        }
}

// ---- Every matrix ---------------------------------------------------------------------------------------------------

class GramSchmidtOfTheGallery : public testing::TestWithParam<std::tuple<Gallery, GramSchmidtCase>> {
protected:
    template <class T>
    void check() {
        const auto& [matrix_class, scheme] = GetParam();
        Context<Host> ctx(2);
        std::vector<std::pair<Index, Index>> shapes = {{45, 45}, {60, 1}};
        if (!quick()) shapes.insert(shapes.end(), {{203, 37}, {64, 12}});
        for (auto [m, n] : shapes)
            for (Index width : {0, 5}) {
                SCOPED_TRACE(shape_name(m, n) + " panels of " + std::to_string(width));
                const Matrix<T> A = generate<T>(matrix_class, m, n, m + n), before = copy<T>(A.view());
                for (QForm q : {QForm::Any, QForm::Explicit, QForm::None}) {
                    const Options options = scheme.options(width, q);
                    if (scheme.unconditional()) {
                        expect_law(ctx, A.view(), qr(ctx, A.view(), options));
                    } else {
                        expect_factors_or_breakdown<T>(ctx, A.view(), options);
                    }
                    EXPECT_TRUE(same_bits<T>(A.view(), before.view()));
                }
            }
    }

    /// A = QR to the law, or a column of A that depends on those before it.
    template <class T>
    void expect_factors_or_breakdown(Context<Host>& ctx, MatrixView<const T> A, const Options& options) {
        try {
            const QR<T> f = qr(ctx, A, options);
            const Matrix<T> R = f.r();
            EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
            EXPECT_TRUE(is_finite<T>(R.view()));
            if (options.method == Method::ModifiedGramSchmidt) {
                EXPECT_LE(gram_error<T>(A, R.view()), law);
            }
            if (options.q == QForm::None) return;
            EXPECT_LE(column_residual_error<T>(A, f.form_q(ctx).view(), R.view()), law);
        } catch (const NumericalBreakdown& breakdown) {
            EXPECT_GE(breakdown.column, 0);
            EXPECT_LT(breakdown.column, A.cols);
        }
    }
};

TEST_P(GramSchmidtOfTheGallery, F32) { check<float>(); }
TEST_P(GramSchmidtOfTheGallery, F64) { check<double>(); }

INSTANTIATE_TEST_SUITE_P(Every, GramSchmidtOfTheGallery,
                         testing::Combine(testing::ValuesIn(gallery()), testing::ValuesIn(gram_schmidt_cases)),
                         [](const auto& info) {
                             return to_string(std::get<0>(info.param)) + "_" + std::get<1>(info.param).name;
                         });

TYPED_TEST(GramSchmidtTest, EveryShape) {
    using T = TypeParam;
    for (const auto& scheme : gram_schmidt_cases)
        for (auto [m, n] : {std::pair<Index, Index>{0, 0},
                            {5, 0},
                            {1, 1},
                            {2, 1},
                            {3, 3},
                            {50, 10},
                            {129, 129},
                            {3001, 17},
                            {700, 97}}) {
            SCOPED_TRACE(std::string(scheme.name) + " " + shape_name(m, n));
            // far from dependent, so that each scheme obeys the law
            Matrix<T> A = random_normal<T>(m, n, m + n);
            for (Index j = 0; j < n; ++j) A(j, j) += 4 * std::sqrt(T(m));
            const Padded<T> padded(A.view(), 5);
            const QR<T> f = qr(this->ctx, padded.view(), scheme.options());
            EXPECT_TRUE(padded.padding_intact());
            expect_law<T>(this->ctx, A.view(), f);
            const QR<T> in_place = qr(this->ctx, copy<T>(A.view()), plan_qr<T>(this->ctx, m, n, scheme.options()));
            EXPECT_TRUE(same_bits<T>(f.form_q(this->ctx).view(), in_place.form_q(this->ctx).view()));
        }
}

TYPED_TEST(GramSchmidtTest, TheSameBitsForAnyNumberOfThreads) {
    using T = TypeParam;
    for (const auto& scheme : gram_schmidt_cases)
        for (auto [m, n] : {std::pair<Index, Index>{quick() ? 2003 : 20011, 23}, {1031, 130}, {300, 300}}) {
            SCOPED_TRACE(std::string(scheme.name) + " " + shape_name(m, n));
            const Matrix<T> A = random_normal<T>(m, n);
            Context<Host> one(1);
            const QR<T> expected = qr(one, A.view(), scheme.options());
            for (int threads : {2, 3, 4}) {
                Context<Host> several(threads);
                const QR<T> f = qr(several, A.view(), scheme.options());
                EXPECT_TRUE(same_bits<T>(expected.form_q(one).view(), f.form_q(one).view())) << threads;
                EXPECT_TRUE(same_bits<T>(expected.r().view(), f.r().view())) << threads;
            }
        }
}

// ---- Dependent columns ----------------------------------------------------------------------------------------------

TYPED_TEST(GramSchmidtTest, ADependentColumnIsNamedOrCompleted) {
    using T = TypeParam;
    const Index m = 120, n = 40;
    for (const auto& scheme : gram_schmidt_cases)
        for (Index width : {0, 1, 8})
            for (Index bad : {Index(0), Index(1), Index(17), n - 1})
                for (bool zero : {true, false}) {
                    if (!zero && bad == 0) continue;
                    SCOPED_TRACE(std::string(scheme.name) + " " + std::to_string(width) + " column " +
                                 std::to_string(bad));
                    Matrix<T> A = random_normal<T>(m, n);
                    for (Index i = 0; i < m; ++i) A(i, bad) = zero ? T(0) : 3 * A(i, bad / 2);
                    if (!scheme.unconditional()) {
                        try {
                            qr(this->ctx, A.view(), scheme.options(width));
                            FAIL() << "a dependent column must break down";
                        } catch (const NumericalBreakdown& breakdown) {
                            EXPECT_EQ(breakdown.column, bad);
                            EXPECT_NE(std::string(breakdown.what()).find("column " + std::to_string(bad)),
                                      std::string::npos);
                        }
                        continue;
                    }
                    const QR<T> f = qr(this->ctx, A.view(), scheme.options(width));
                    EXPECT_EQ(f.report().dependent_columns, 1);
                    EXPECT_EQ(f.r()(bad, bad), T(0));
                    expect_law<T>(this->ctx, A.view(), f);
                }
}

// ---- What is refused ------------------------------------------------------------------------------------------------

TYPED_TEST(GramSchmidtTest, RefusesWhatItCannotDo) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(30, 10), wide = random_normal<T>(10, 30), b = random_normal<T>(30, 1);
    const auto refuses = [](auto call, const char* word) {
        try {
            call();
            FAIL() << word;
        } catch (const InvalidArgument& error) {
            EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
        }
    };
    for (const auto& scheme : gram_schmidt_cases) {
        refuses([&] { qr(this->ctx, wide.view(), scheme.options()); }, "rows");
        refuses([&] { qr(this->ctx, A.view(), scheme.options(0, QForm::Reflectors)); }, "reflectors");
        if (scheme.unconditional()) continue;
        refuses([&] { least_squares(this->ctx, A.view(), b.view(), {}, scheme.options(0, QForm::Any)); },
                "orthonormal");
        refuses([&] { svd(this->ctx, A.view(), true, scheme.options(0, QForm::Any)); }, "orthonormal");
        refuses([&] { to_lapack(this->ctx, qr(this->ctx, A.view(), scheme.options(0, QForm::Any))); }, "orthonormal");
    }
    Options mgs = gram_schmidt_cases[0].options();
    refuses([&] { mgs.method.set_panel(GramSchmidtPanel::CholeskyQR2); }, "panel belongs to cgs");
    Options householder = with(Method::BlockedHouseholder);
    refuses([&] { householder.method.set_reorthogonalization(Reorthogonalization::Always); }, "reorthogonalization");
    refuses([&] { GramSchmidt<T>(this->ctx, 10, 3, with(Method::TSQR)); }, "tsqr");
    refuses([&] { GramSchmidt<T>(this->ctx, -1); }, "negative");
    GramSchmidt<T> basis(this->ctx, 30);
    refuses([&] { basis.append(this->ctx, wide.view()); }, "append");
    basis.append(this->ctx, A.view());
    refuses([&] { basis.append(this->ctx, random_normal<T>(30, 21).view()); }, "20");
    refuses([&] { basis.truncate(11); }, "truncate");
    refuses([&] { basis.orthogonalize(this->ctx, Matrix<T>(29, 1).view()); }, "orthogonalize");
}

// ---- Columns one after the other ------------------------------------------------------------------------------------

TYPED_TEST(GramSchmidtTest, AppendedInPiecesObeysTheLawOfAllAtOnce) {
    using T = TypeParam;
    const Index m = 400, n = 150;
    const Matrix<T> A = with_condition<T>(m, n, 1e3);
    for (const auto& scheme : gram_schmidt_cases)
        for (const std::vector<Index>& pieces : {std::vector<Index>{150},
                                                 {1, 149},
                                                 {0, 64, 0, 1, 85},
                                                 {100, 50},
                                                 std::vector<Index>(150, 1),
                                                 std::vector<Index>(15, 10)}) {
            SCOPED_TRACE(std::string(scheme.name) + " in " + std::to_string(pieces.size()) + " pieces");
            GramSchmidt<T> basis(this->ctx, m, 7, scheme.options());
            Index k = 0;
            for (Index p : pieces) {
                basis.append(this->ctx, A.view().col_block({k, k + p}));
                k += p;
            }
            // ‖A‖_F <= √n ‖A‖₂
            const double kappa = 1e3 * std::sqrt(static_cast<double>(n));
            this->expect_law_of(A.view(), basis, max_loss(scheme, n, this->u, kappa));
        }
}

/// A column at a time, in panels that grow: as ModifiedLosesWithKappa, where a panel's law of its own would be κ²u.
TYPED_TEST(GramSchmidtTest, AppendedOneByOneLosesWithKappa) {
    using T = TypeParam;
    const Index m = 150, n = 40;
    const double kappa = std::sqrt(1 / this->u) * 10;
    const Matrix<T> A = with_singular_values<T>(m, n, near_one_line(n, kappa));
    for (Index piece : {1, 3})
        for (Index width : {0, 8, 16}) {
            GramSchmidt<T> basis(this->ctx, m, n, gram_schmidt_cases[0].options(width));
            for (Index k = 0; k < n; k += piece)
                basis.append(this->ctx, A.view().col_block({k, std::min(n, k + piece)}));
            this->expect_law_of(A.view(), basis, max_modified_loss(n, this->u, kappa_f(n, kappa)));
        }
}

TYPED_TEST(GramSchmidtTest, ColumnsAreFinalWhenTheyAreTold) {
    using T = TypeParam;
    const Index m = 300, n = 200;
    const Matrix<T> A = random_normal<T>(m, n);
    for (const auto& scheme : gram_schmidt_cases) {
        SCOPED_TRACE(scheme.name);
        GramSchmidt<T> basis(this->ctx, m, n, scheme.options(16));
        Matrix<T> early_Q = filled<T>(m, n, std::numeric_limits<T>::quiet_NaN()), early_R = filled<T>(n, n, T(0));
        Index told = 0;
        const auto on_columns = [&](Range columns) {
            EXPECT_EQ(columns.begin, told);
            EXPECT_GT(columns.end, told);
            told = columns.end;
            EXPECT_EQ(basis.cols(), told);
            for (Index j = columns.begin; j < columns.end; ++j) {
                std::copy_n(basis.q().at(0, j), m, early_Q.view().at(0, j));
                std::copy_n(basis.r().at(0, j), told, early_R.view().at(0, j));
            }
            return true;
        };
        basis.append(this->ctx, A.view().col_block({0, 70}), on_columns);
        basis.append(this->ctx, A.view().col_block({70, n}), on_columns);
        EXPECT_EQ(told, n);
        EXPECT_TRUE(same_bits<T>(basis.q(), early_Q.view()));
        EXPECT_TRUE(same_bits<T>(basis.r(), early_R.view()));
    }
}

TYPED_TEST(GramSchmidtTest, EndsWhereTheCallerHasEnough) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(100, 64);
    GramSchmidt<T> basis(this->ctx, 100, 64, gram_schmidt_cases[0].options(8));
    basis.append(this->ctx, A.view(), [](Range columns) { return columns.end < 20; });
    EXPECT_EQ(basis.cols(), 24);
    this->expect_law_of(A.view().col_block({0, 24}), basis);
    basis.append(this->ctx, A.view().col_block({24, 64}));
    this->expect_law_of(A.view(), basis);
}

TYPED_TEST(GramSchmidtTest, AFailedAppendLeavesTheStateAsItWas) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(100, 30);
    for (int failure : {0, 1}) {
        GramSchmidt<T> basis(this->ctx, 100, 0, gram_schmidt_cases[0].options(16)),
            calm(this->ctx, 100, 0, gram_schmidt_cases[0].options(16));
        basis.append(this->ctx, A.view().col_block({0, 10}));
        calm.append(this->ctx, A.view().col_block({0, 10}));
        Matrix<T> bad = copy<T>(A.view().col_block({10, 30}));
        if (failure == 0) {
            std::copy_n(A.view().at(0, 3), 100, bad.view().at(0, 18));
            try {
                basis.append(this->ctx, bad.view());
                FAIL();
            } catch (const NumericalBreakdown& breakdown) {
                EXPECT_EQ(breakdown.column, 28);
            }
        } else {
            bad(5, 2) = std::numeric_limits<T>::infinity();
            try {
                basis.append(this->ctx, bad.view());
                FAIL();
            } catch (const NonFiniteEntry& entry) {
                EXPECT_EQ(entry.row, 5);
                EXPECT_EQ(entry.col, 2);
            }
        }
        EXPECT_TRUE(same_bits<T>(basis.q(), calm.q()));
        EXPECT_TRUE(same_bits<T>(basis.r(), calm.r()));
        basis.append(this->ctx, A.view().col_block({10, 30}));
        calm.append(this->ctx, A.view().col_block({10, 30}));
        EXPECT_TRUE(same_bits<T>(basis.q(), calm.q()));
        EXPECT_TRUE(same_bits<T>(basis.r(), calm.r()));
    }
}

TYPED_TEST(GramSchmidtTest, TruncatedAndAppendedAgain) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(100, 60);
    for (const auto& scheme : gram_schmidt_cases) {
        SCOPED_TRACE(scheme.name);
        GramSchmidt<T> basis(this->ctx, 100, 0, scheme.options(16)), straight(this->ctx, 100, 0, scheme.options(16));
        basis.append(this->ctx, A.view().col_block({0, 50}));
        basis.truncate(20);
        EXPECT_EQ(basis.cols(), 20);
        basis.append(this->ctx, A.view().col_block({20, 60}));
        this->expect_law_of(A.view(), basis, 1e3);
        if (scheme.unconditional()) this->expect_law_of(A.view(), basis);
    }
}

TYPED_TEST(GramSchmidtTest, GoesOnFromItsStateWithTheSameBits) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(100, 60);
    for (const auto& scheme : gram_schmidt_cases) {
        SCOPED_TRACE(scheme.name);
        GramSchmidt<T> basis(this->ctx, 100, 0, scheme.options(16)), saved(this->ctx, 100, 0, scheme.options(16));
        const auto save = [&] { saved = GramSchmidt<T>(this->ctx, saved.state(this->ctx)); };
        const auto expect_same = [&] {
            save();
            EXPECT_TRUE(same_bits<T>(saved.q(), basis.q()));
            EXPECT_TRUE(same_bits<T>(saved.r(), basis.r()));
        };
        const auto append = [&](Range columns) {
            basis.append(this->ctx, A.view().col_block(columns));
            saved.append(this->ctx, A.view().col_block(columns));
            expect_same();
        };
        EXPECT_EQ(basis.q().rows, 100);
        save();
        append({0, 1});
        append({1, 23});
        append({23, 50});
        basis.truncate(20);
        saved.truncate(20);
        append({20, 60});
        Matrix<T> V = random_normal<T>(100, 3, 5), W = copy<T>(std::as_const(V).view());
        const Matrix<T> H = basis.orthogonalize(this->ctx, V.view()), K = saved.orthogonalize(this->ctx, W.view());
        EXPECT_TRUE(same_bits<T>(std::as_const(W).view(), std::as_const(V).view()));
        EXPECT_TRUE(same_bits<T>(K.view(), H.view()));
    }
    GramSchmidt<T> basis(this->ctx, 100, 0, gram_schmidt_cases[0].options(16));
    basis.append(this->ctx, A.view());
    for (const auto& spoil : std::vector<void (*)(typename GramSchmidt<T>::State&)>{
             [](auto& s) { s.Q = Matrix<T>(100, 59); }, [](auto& s) { s.Q = Matrix<T>(50, 60); },
             [](auto& s) { s.R = Matrix<T>(60, 59); }, [](auto& s) { s.L = Matrix<T>(15, 60); },
             [](auto& s) { s.panels.pop_back(); },
             [](auto& s) {
                 s.panels = {{0, 60}};
             },
             [](auto& s) { s.options.method.set_panel_width(8); },
             [](auto& s) { s.options.method = Method::ClassicalGramSchmidt; }}) {
        auto state = basis.state(this->ctx);
        spoil(state);
        EXPECT_THROW(GramSchmidt<T>(this->ctx, state), InvalidArgument);
    }
}

TYPED_TEST(GramSchmidtTest, OrthogonalizesWhatIsNotAppended) {
    using T = TypeParam;
    const Index m = 200, n = 40, p = 3;
    const Matrix<T> A = random_normal<T>(m, n);
    for (const auto& scheme : gram_schmidt_cases)
        for (int exponent : {0, std::is_same_v<T, double> ? 900 : 90, std::is_same_v<T, double> ? -900 : -90}) {
            SCOPED_TRACE(std::string(scheme.name) + " 2^" + std::to_string(exponent));
            GramSchmidt<T> basis(this->ctx, m, n, scheme.options());
            basis.append(this->ctx, A.view());
            Matrix<T> V0 = random_normal<T>(m, p, 7);
            for (Index i = 0; i < m * p; ++i) V0.data()[i] = std::ldexp(V0.data()[i], exponent);
            Padded<T> V(V0.view());
            const Matrix<T> H = basis.orthogonalize(this->ctx, V.view());
            EXPECT_TRUE(V.padding_intact());
            // V₀ = [Q V] [H; I],   QᵀV = 0 against the norms of V₀
            for (Index l = 0; l < p; ++l) {
                long double norm = 0, left = 0, along = 0;
                for (Index i = 0; i < m; ++i) {
                    long double sum = V.view()(i, l);
                    for (Index j = 0; j < n; ++j) sum += static_cast<long double>(basis.q()(i, j)) * H(j, l);
                    norm += static_cast<long double>(V0(i, l)) * V0(i, l);
                    left += (sum - V0(i, l)) * (sum - V0(i, l));
                }
                for (Index j = 0; j < n; ++j) {
                    long double dot = 0;
                    for (Index i = 0; i < m; ++i) dot += static_cast<long double>(basis.q()(i, j)) * V.view()(i, l);
                    along += dot * dot;
                }
                const double nu = static_cast<double>(n) * this->u;
                EXPECT_LE(std::sqrt(static_cast<double>(left / norm)), law * nu);
                // without reorthogonalization Q itself has lost what κ(A) <= 10 makes it
                EXPECT_LE(std::sqrt(static_cast<double>(along / norm)), (scheme.unconditional() ? 1 : 100) * law * nu);
            }
        }
}

TYPED_TEST(GramSchmidtTest, ColumnsOfAnyScale) {
    using T = TypeParam;
    const int far = std::is_same_v<T, double> ? 900 : 90;
    Matrix<T> A = random_normal<T>(80, 20);
    for (Index j = 0; j < 20; ++j)
        for (Index i = 0; i < 80; ++i) A(i, j) = std::ldexp(A(i, j), j % 3 == 0 ? far : j % 3 == 1 ? -far : 0);
    for (const auto& scheme : gram_schmidt_cases) {
        GramSchmidt<T> basis(this->ctx, 80, 0, scheme.options(8));
        for (Index j = 0; j < 20; j += 5) basis.append(this->ctx, A.view().col_block({j, j + 5}));
        this->expect_law_of(A.view(), basis, scheme.unconditional() ? law : 1e3);
    }
}

/// Arnoldi with a cyclic permutation of four coordinates, which commits no rounding: the Krylov space of the first one
/// ends, with a zero below the diagonal of H.
TYPED_TEST(GramSchmidtTest, ArnoldiSeesTheKrylovSpaceEnd) {
    using T = TypeParam;
    constexpr Index m = 60;
    const auto multiply = [](MatrixView<const T> x) {
        Matrix<T> y = filled<T>(m, 1, T(0));
        for (Index i = 0; i < 4; ++i) y((i + 1) % 4, 0) = 2 * x(i, 0);
        return y;
    };
    Matrix<T> v = filled<T>(m, 1, T(0));
    v(0, 0) = 4;
    for (const auto& scheme : gram_schmidt_cases) {
        SCOPED_TRACE(scheme.name);
        GramSchmidt<T> basis(this->ctx, m, 8, scheme.options());
        basis.append(this->ctx, v.view());
        const auto step = [&] {
            const Index j = basis.cols() - 1;
            basis.append(this->ctx, multiply(basis.q().col_block({j, j + 1})).view());
        };
        for (Index j = 0; j < 3; ++j) {
            step();
            EXPECT_NE(basis.r()(j + 1, j + 1), T(0));
        }
        if (!scheme.unconditional()) {
            EXPECT_THROW(step(), NumericalBreakdown);
            EXPECT_EQ(basis.cols(), 4);
            continue;
        }
        step();
        EXPECT_EQ(basis.r()(4, 4), T(0));
        EXPECT_EQ(std::abs(basis.r()(0, 4)), T(2));
        EXPECT_LE(orthogonality_error<T>(basis.q(), 5), law);
    }
}

}  // namespace
}  // namespace quoin::test
