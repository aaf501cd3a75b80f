// The formulas for complex numbers, as far as the host has them, with LAPACK's conventions. A complex matrix X is
// measured as the real X' that has [Re x, −Im x; Im x, Re x] for every entry x: (XY)' = X'Y', (Xᴴ)' = X'ᵀ, ‖X'‖_F =
// √2‖X‖_F, and X' is upper trapezoidal where X is and has a real diagonal. k complex reflectors are 2k real ones of X',
// whose law is in checks.hpp.

#include <gtest/gtest.h>
#include <lapacke.h>

#include <complex>
#include <vector>

#include "algorithms/one_matrix/blocked_householder.hpp"
#include "algorithms/one_matrix/factorization.hpp"
#include "algorithms/one_matrix/reconstruct_householder.hpp"
#include "algorithms/one_matrix/tsqr_caqr.hpp"
#include "algorithms/shared/column_scaling.hpp"
#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"

namespace quoin {

/// Complex numbers have no plan of their own yet: panels are as wide as for real ones.
template <>
Plan plan_qr<std::complex<float>>(const Context<Host>& ctx, Index m, Index n, Options options) {
    return plan_qr<float>(ctx, m, n, options);
}
template <>
Plan plan_qr<std::complex<double>>(const Context<Host>& ctx, Index m, Index n, Options options) {
    return plan_qr<double>(ctx, m, n, options);
}

}  // namespace quoin

namespace quoin::test {
namespace {

template <class T>
Matrix<Real<T>> embedded(const Matrix<T>& X) {
    Matrix<Real<T>> Y(2 * X.rows(), 2 * X.cols());
    for (Index j = 0; j < X.cols(); ++j)
        for (Index i = 0; i < X.rows(); ++i) {
            Y(2 * i, 2 * j) = Y(2 * i + 1, 2 * j + 1) = X(i, j).real();
            Y(2 * i + 1, 2 * j) = X(i, j).imag();
            Y(2 * i, 2 * j + 1) = -X(i, j).imag();
        }
    return Y;
}

template <class T>
Matrix<T> poisoned(Index m, Index n) {
    return filled<T>(m, n, std::numeric_limits<Real<T>>::quiet_NaN());
}

/// Real and imaginary parts of one class, or (by turns) one of the two alone.
template <class T>
Matrix<T> complex(Gallery matrix_class, Index m, Index n, Index turn = 0) {
    const auto re = generate<Real<T>>(matrix_class, m, n, 1), im = generate<Real<T>>(matrix_class, m, n, 2);
    Matrix<T> A(m, n);
    for (Index j = 0; j < n; ++j)
        for (Index i = 0; i < m; ++i) A(i, j) = T(turn % 5 == 1 ? 0 : re(i, j), turn % 5 == 3 ? 0 : im(i, j));
    return A;
}
template <class T>
Matrix<T> random_complex(Index m, Index n) {
    return complex<T>(Gallery::RandomNormal, m, n);
}
template <class T>
double norm(const Matrix<T>& A) {
    return frobenius_norm<Real<T>>(embedded(A).view());
}

/// X = Y up to the roundings of k reflectors on something of norm `scale`.
template <class T>
double distance(const Matrix<T>& X, const Matrix<T>& Y, Index k, double scale) {
    return difference<Real<T>>(embedded(X).view(), embedded(Y).view(), 2 * k, scale);
}

// ---- LAPACK --------------------------------------------------------------------------------------------------------

lapack_complex_float* raw(std::complex<float>* p) { return reinterpret_cast<lapack_complex_float*>(p); }
lapack_complex_double* raw(std::complex<double>* p) { return reinterpret_cast<lapack_complex_double*>(p); }
lapack_int geqrf(MatrixView<std::complex<float>> A, std::complex<float>* tau) {
    return LAPACKE_cgeqrf(LAPACK_COL_MAJOR, A.rows, A.cols, raw(A.data), A.ld, raw(tau));
}
lapack_int geqrf(MatrixView<std::complex<double>> A, std::complex<double>* tau) {
    return LAPACKE_zgeqrf(LAPACK_COL_MAJOR, A.rows, A.cols, raw(A.data), A.ld, raw(tau));
}
lapack_int ungqr(MatrixView<std::complex<float>> V, std::complex<float>* tau) {
    return LAPACKE_cungqr(LAPACK_COL_MAJOR, V.rows, V.cols, V.cols, raw(V.data), V.ld, raw(tau));
}
lapack_int ungqr(MatrixView<std::complex<double>> V, std::complex<double>* tau) {
    return LAPACKE_zungqr(LAPACK_COL_MAJOR, V.rows, V.cols, V.cols, raw(V.data), V.ld, raw(tau));
}

struct Scheme {
    const char* name;
    Method method;
    Index width = 0, more_rows = 0, fan_in = 0;

    template <class T>
    Plan plan(const Context<Host>& ctx, Index m, Index n) const {
        Options options;
        options.method = method;
        if (width > 0) options.method.set_panel_width(width);
        if (fan_in > 0) options.method.set_tree({(width > 0 ? width : std::max<Index>(1, n)) + more_rows, fan_in});
        Plan plan = plan_qr<T>(ctx, m, n, options);
        if (auto* const chosen = std::get_if<HouseholderPlan>(&plan.choices); chosen && fan_in > 0)
            chosen->reconstruct_rows = 3 * plan.panel_width;
        return plan;
    }
};
constexpr Scheme schemes[] = {
    {"householder", Method::BlockedHouseholder, 9},
    {"householder_one_by_one", Method::BlockedHouseholder, 1},
    {"householder_reconstructed", Method::BlockedHouseholder, 4, 3, 2},
    {"tsqr", Method::TSQR},
    {"tsqr_fan3", Method::TSQR, 0, 5, 3},
    {"caqr", Method::CAQR, 5, 6, 2},
};

template <class T>
class Complex : public testing::Test {
protected:
    using R_ = Real<T>;
    Context<Host> ctx{2};

    Matrix<T> unit_matrix(Index m) {
        Matrix<T> I = poisoned<T>(m, m);
        set_identity<T>(ctx, 0, I.view());
        return I;
    }
    Matrix<T> triangle_of(const Matrix<T>& A, Index k) {
        Matrix<T> R = poisoned<T>(k, A.cols());
        copy_triangle<T>(ctx, A.view().row_block({0, k}), R.view());
        return R;
    }
    static void expect_factors(const Matrix<T>& A, const Matrix<T>& Q, const Matrix<T>& R, double bound = law) {
        const auto A_ = embedded(A), Q_ = embedded(Q), R1 = embedded(R);
        EXPECT_TRUE(is_upper_trapezoidal<R_>(R1.view())) << "zeros below R's diagonal, which is real";
        EXPECT_TRUE(is_finite<R_>(R1.view()));
        EXPECT_LE(orthogonality_error<R_>(Q_.view(), R1.rows()), bound) << "‖I − QᴴQ‖";
        EXPECT_LE(residual_error<R_>(A_.view(), Q_.view(), R1.view()), bound) << "‖A − QR‖";
        EXPECT_LE(column_residual_error<R_>(A_.view(), Q_.view(), R1.view()), bound) << "max ‖a_j − Q r_j‖";
    }
    /// LAPACK's Q of V and of T's diagonal.
    void expect_lapack_format(const Matrix<T>& A, const Matrix<T>& V_R, const Matrix<T>& Tf) {
        Matrix<T> Q = copy<T>(V_R.view()), tau = poisoned<T>(A.cols(), 1);
        copy_diagonal<T>(ctx, Tf.view(), tau.view());
        ASSERT_EQ(ungqr(Q.view(), tau.data()), 0);
        expect_factors(A, Q, triangle_of(V_R, A.cols()));
    }

    /// apply(op, C) is C := op(W) C for a W (m×m) whose first columns are Q.
    template <class Apply>
    void expect_application(const Matrix<T>& Q, double bound, Apply apply) {
        const Index m = Q.rows(), k = Q.cols();
        Matrix<T> W = unit_matrix(m), C = random_complex<T>(m, 3);
        apply(Op::None, W.view());
        EXPECT_LE(orthogonality_error<R_>(embedded(W).view(), 2 * k), bound);
        EXPECT_LE(distance(copy<T>(W.view().col_block({0, k})), Q, k, norm(Q)), bound);
        for (Op op : {Op::None, Op::Transpose}) {
            Matrix<T> X = copy<T>(C.view()), Xt = poisoned<T>(3, m), Y = poisoned<T>(m, 3);
            apply(op, X.view());
            // Cᴴ op(W)ᴴ
            adjoint<T>(ctx, C.view(), Xt.view());
            apply_from_right<T, Host>(ctx, op == Op::None ? Op::Transpose : Op::None, Xt.view(), apply);
            adjoint<T>(ctx, Xt.view(), Y.view());
            for (const Matrix<T>* result : {&X, &Y})
                EXPECT_LE(product_error<R_>(Side::Left, op, embedded(W).view(), embedded(C).view(),
                                            embedded(*result).view(), 2 * k),
                          bound);
        }
    }

    void expect_law(const Matrix<T>& A, const Scheme& scheme) {
        const Index m = A.rows(), n = A.cols(), k = std::min(m, n);
        SCOPED_TRACE(shape_name(m, n) + " " + scheme.name);
        const Plan plan = scheme.plan<T>(ctx, m, n);
        // reductions in a row, where a tree is asked for
        const TreePlan chosen = plan.tree();
        const PanelTree tree{m, plan.panel_width, 1, chosen.leaf_rows, chosen.leaf_rows, chosen.fan_in};
        const Index stages = scheme.fan_in > 0 ? 1 + tree.levels() * (chosen.fan_in - 1) : 1;
        const double bound = law * std::sqrt(static_cast<double>(stages));
        ReflectorForest<T, Host> forest;
        lay_out_panels(ctx, plan, forest);
        forest.Tf = poisoned<T>(forest.Tf.rows(), forest.Tf.cols());
        forest.A = copy<T>(A.view());
        ColumnScaling<T, Host> scaling(ctx, A.view());
        scaling.needed(ctx, true);
        scaling.scale(ctx, forest.A.view());
        if (plan.method == Method::BlockedHouseholder) {
            factor_blocked_householder(ctx, plan, forest.view());
        } else {
            factor_trees(ctx, forest);
        }
        Matrix<T> R = triangle_of(forest.A, k), Q = copy<T>(forest.A.view().col_block({0, k}));
        scaling.unscale(ctx, Part::Upper, R.view());
        form_q_in_place<T, Host>(ctx, {forest.panels, Q.view(), forest.Tf.view()});
        expect_factors(A, Q, R, bound);
        if (m > 64) return;
        expect_application(Q, bound,
                           [&](Op op, MatrixView<T> C) { apply_forest(ctx, std::as_const(forest).view(), op, C); });
        if (m < n) return;
        const ExplicitQ<T, Host> basis(copy<T>(Q.view()), std::move(R));
        expect_application(Q, bound, [&](Op op, MatrixView<T> C) {
            apply_basis<T, Host>(ctx, basis.Q.view(), basis.kernel(ctx), op, C);
        });
    }
};
template <class... T>
testing::Types<std::complex<T>...> complex_of(testing::Types<T...>);
TYPED_TEST_SUITE(Complex, decltype(complex_of(Scalars())));

TYPED_TEST(Complex, TheGalleryObeysTheLaw) {
    Index turn = 0;
    for (const Gallery matrix_class : gallery())
        for (auto [m, n] : {std::pair<Index, Index>{45, 45}, {19, 50}, {60, 1}, {83, 21}}) {
            SCOPED_TRACE(to_string(matrix_class));
            const auto A = complex<TypeParam>(matrix_class, m, n, turn);
            for (const Scheme& scheme : in_turn(schemes, turn++)) this->expect_law(A, scheme);
        }
}

TYPED_TEST(Complex, EveryShapeObeysTheLaw) {
    for (Index m : {0, 1, 2, 3, 5, 50})
        for (Index n : {0, 1, 2, 3, 5, 50})
            for (const Scheme& scheme : schemes) this->expect_law(random_complex<TypeParam>(m, n), scheme);
    for (const Scheme& scheme : schemes) this->expect_law(random_complex<TypeParam>(quick() ? 1500 : 9000, 20), scheme);
}

/// LAPACK's V, R and tau where κ(A) is below 10; reflectors scale by themselves what may not be squared, and one whose
/// alpha alone is imaginary is not I.
TYPED_TEST(Complex, PanelsAreLapacks) {
    using T = TypeParam;
    const int e = std::is_same_v<Real<T>, double> ? 500 : 60;
    for (auto [m, n] : {std::pair<Index, Index>{203, 37}, {64, 8}, {1, 1}, {30, 1}})
        for (int exponent : {0, e, -e}) {
            Matrix<T> A = random_complex<T>(m, n), tau = poisoned<T>(n, 1), Tf = poisoned<T>(n, n);
            for (Index i = 0; i < m * n; ++i) A.data()[i] = times_power_of_two(A.data()[i], exponent);
            for (Index i = 1; i < m && m == 64; ++i) A(i, 0) = 0;
            Matrix<T> V_R = copy<T>(A.view()), expected = copy<T>(A.view());
            factor_panel<T>(this->ctx, V_R.view(), Tf.view());
            this->expect_lapack_format(A, V_R, Tf);
            ASSERT_EQ(geqrf(expected.view(), tau.data()), 0);
            if (exponent == 0) {
                EXPECT_LE(distance(V_R, expected, n, 10 * norm(A)), law);
            }
        }
}

TYPED_TEST(Complex, PanelsHaveTheSameBitsOnAnyNumberOfCores) {
    using T = TypeParam;
    const Index m = 1500, n = 50;
    const Matrix<T> A = random_complex<T>(m, n);
    const auto factored = [&](int threads) {
        Context<Host> ctx(threads);
        Matrix<T> V_R = copy<T>(A.view()), Tf = poisoned<T>(n, n);
        factor_panel<T>(ctx, V_R.view(), Tf.view());
        return std::pair(std::move(V_R), std::move(Tf));
    };
    const auto [one, T_of_one] = factored(1);
    this->expect_lapack_format(A, one, T_of_one);
    for (const int threads : {2, 4}) {
        const auto [V_R, Tf] = factored(threads);
        EXPECT_TRUE(std::equal(one.data(), one.data() + m * n, V_R.data()));
        EXPECT_TRUE(std::equal(T_of_one.data(), T_of_one.data() + n * n, Tf.data()));
    }
}

TYPED_TEST(Complex, NanInEitherPartIsFound) {
    using T = TypeParam;
    for (T bad : {T(1, NAN), T(NAN, 1)}) {
        Matrix<T> A = random_complex<T>(9, 4);
        A(7, 2) = bad;
        Matrix<int> exponents(4, 1);
        Matrix<Scan> found(1, 1);
        scan<T>(this->ctx, A.view(), Scalar<T>::safe_exponent, exponents.view(), found.view());
        EXPECT_EQ(found(0, 0).bad_row, 7);
        EXPECT_EQ(found(0, 0).bad_col, 2);
    }
}

/// The full T joined, column by column, and by the recurrence with S = V Tᴴ; blocks of Q by T and by S.
TYPED_TEST(Complex, TheFullT) {
    using T = TypeParam;
    auto& ctx = this->ctx;
    const Index m = 700, k = 21, k1 = 9;
    const Range left{0, k1}, right{k1, k}, below{k1, m};
    const Matrix<T> A = random_complex<T>(m, k);
    Matrix<T> V_R = copy<T>(A.view()), S = poisoned<T>(m, k), Tf = this->unit_matrix(k), by_columns = poisoned<T>(k, k),
              tau = poisoned<T>(k, 1);
    const auto V1 = V_R.view().col_block(left), V2 = V_R.view().block(below, right);
    const auto T1 = Tf.view().block(left, left), T2 = Tf.view().block(right, right);
    factor_panel<T>(ctx, V1, T1);
    form_s<T>(ctx, V1, T1, S.view().col_block(left));
    apply_and_factor_next<T>(ctx, V1, T1, V_R.view().col_block(right), T2, {S.view().col_block(left), {}, {}});
    form_s<T>(ctx, V2, T2, S.view().block(below, right));
    Matrix<T> T12 = poisoned<T>(k1, k - k1);
    apply_and_extend<T>(ctx, V2, T2, {}, {S.view().block(below, right), S.view().block(below, left), T12.view()});
    join_two<T, Host>(ctx, V_R.view(), left, right, Tf.view());
    EXPECT_LE(distance(T12, copy<T>(Tf.view().block(left, right)), k, norm(T12)), law);
    this->expect_lapack_format(A, V_R, Tf);
    copy_diagonal<T>(ctx, Tf.view(), tau.view());
    compact_wy<T>(ctx, V_R.view(), tau.view(), by_columns.view());
    EXPECT_LE(distance(by_columns, Tf, k, norm(Tf)), law);

    FullWY<T, Host> wy{V_R.view(), Tf.view(), {}};
    Matrix<T> Q = this->unit_matrix(m);
    apply_panel<T>(ctx, Op::None, wy.V, wy.Tf, Q.view());
    for (const bool with_s : {false, true})
        for (auto [r, c] : {std::pair<Range, Range>{{3, 40}, {0, 90}}, {{0, 300}, {5, 60}}}) {
            if (with_s) wy.S = S.view();
            Matrix<T> B = poisoned<T>(r.size(), c.size());
            form_full_wy_block<T, Host>(ctx, wy, r, c, B.view(), Arithmetic::Native);
            EXPECT_LE(distance(B, copy<T>(Q.view().block(r, c)), k, norm(B)), law) << with_s;
            for (Op op : {Op::None, Op::Transpose}) {
                // the rows `to` of op(Q) [0; C; 0]
                const Range from = op == Op::None ? c : r, to = op == Op::None ? r : c;
                const Matrix<T> C = random_complex<T>(from.size(), 4);
                Matrix<T> X = poisoned<T>(to.size(), 4), E = poisoned<T>(m, 4);
                set_identity<T>(ctx, 4, E.view());
                copy<T>(ctx, C.view(), E.view().row_block(from));
                apply_full_wy<T, Host>(ctx, wy, op, E.view(), Arithmetic::Native);
                apply_full_wy_block<T, Host>(ctx, wy, op, r, c, C.view(), X.view(), Arithmetic::Native);
                EXPECT_LE(distance(X, copy<T>(E.view().row_block(to)), k, norm(C)), law) << with_s;
            }
        }
}

/// op(A) (op(A)⁻¹ B) = B, op(A) B and B op(A), for triangles with NaN beside them.
TYPED_TEST(Complex, Triangles) {
    using T = TypeParam;
    using R = Real<T>;
    const Index n = 61, p = 50;
    for (Triangle triangle : {Triangle::UnitLower, Triangle::Lower, Triangle::Upper})
        for (Op op : {Op::None, Op::Transpose}) {
            const bool unit = triangle == Triangle::UnitLower, upper = triangle == Triangle::Upper;
            Matrix<T> A = random_complex<T>(n, n), stored = poisoned<T>(n, n);
            for (Index j = 0; j < n; ++j)
                for (Index i = 0; i < n; ++i) {
                    A(i, j) *= (i < j) == upper ? R(0.02) : R(0);
                    if (i == j) A(i, j) = unit ? T(1) : T(1, 1);
                    if (i == j ? !unit : (i < j) == upper) stored(i, j) = A(i, j);
                }
            const Matrix<T> B = random_complex<T>(n, p), C = random_complex<T>(p, n);
            Matrix<T> X = copy<T>(B.view()), Y = copy<T>(B.view()), Z = copy<T>(C.view());
            solve_triangle<T>(this->ctx, triangle, op, stored.view(), X.view());
            multiply_triangle<T>(this->ctx, Side::Left, triangle, op, stored.view(), Y.view());
            multiply_triangle<T>(this->ctx, Side::Right, triangle, op, stored.view(), Z.view());
            const auto error = [&](Side side, const Matrix<T>& from, const Matrix<T>& to) {
                return product_error<R>(side, op, embedded(A).view(), embedded(from).view(), embedded(to).view(),
                                        2 * n);
            };
            for (double e : {error(Side::Left, X, B), error(Side::Left, B, Y), error(Side::Right, C, Z)})
                EXPECT_LE(e, law * norm(A));
        }
}

TYPED_TEST(Complex, CholeskyQrAndReconstruction) {
    using T = TypeParam;
    using Passes = CholeskyPasses<T, Host>;
    auto& ctx = this->ctx;
    for (auto [m, n] : {std::pair<Index, Index>{800, 70}, {60, 5}, {7, 7}})
        for (const auto chain : {CholeskyChain::OfA, CholeskyChain::Sketched}) {
            SCOPED_TRACE(shape_name(m, n));
            Matrix<T> A = random_complex<T>(m, n);
            for (Index i = 0; i < m; ++i) A(i, n - 1) = A(i, 0) + A(i, n - 1) * Real<T>(0x1p-5);
            Matrix<T> Q = copy<T>(A.view()), R = poisoned<T>(n, n), Tf = poisoned<T>(n, n);
            const auto passes = cholesky_passes<T, Host>(ctx, chain, true, Q.view(), Q.view(), R.view());
            ASSERT_EQ(passes.state, Passes::State::Certified);
            this->expect_factors(A, Q, R);
            reconstruct_householder<T, Host>(ctx, Q.view(), R.view(), Tf.view());
            this->expect_lapack_format(A, Q, Tf);
        }
    Matrix<T> singular = complex<T>(Gallery::DuplicateColumns, 50, 6), R = poisoned<T>(6, 6);
    for (const auto chain : {CholeskyChain::OfA, CholeskyChain::Sketched, CholeskyChain::SketchedIfRefused}) {
        const auto passes = cholesky_passes<T, Host>(ctx, chain, true, singular.view(), singular.view(), R.view());
        EXPECT_EQ(passes.state, Passes::State::Refused);
    }
    // ‖I − G‖_F
    Matrix<T> G = this->unit_matrix(2);
    G(0, 1) = T(0.25, 0.25);
    Certificate state;
    factor_gram<T>(ctx, G.view(), {}, G.view(), {&state, 1, 1});
    EXPECT_EQ(state.departure, 0.5);
}

/// κ₁ of a triangle times phases from both sides: estimates are from below, and rarely off by a factor of 3 (Higham
/// 1988).
TYPED_TEST(Complex, Conditions) {
    using T = TypeParam;
    const Index n = 30;
    for (Index seed = 0; seed < 40; ++seed) {
        Matrix<T> R = complex<T>(Gallery::Kahan, n, n, 3), X = this->unit_matrix(n);
        for (Index j = 0; j < n; ++j)
            for (Index i = 0; i < n; ++i)
                R(i, j) *= std::polar(Real<T>(1), Real<T>((3 * i * i + 5 * j * j + i) * (seed + 1)));
        solve_triangle<T>(this->ctx, Triangle::Upper, Op::None, R.view(), X.view());
        double columns[2] = {};
        for (Index j = 0; j < n; ++j) {
            double sums[2] = {};
            for (Index i = 0; i < n; ++i) {
                sums[0] += std::abs(R(i, j));
                sums[1] += std::abs(X(i, j));
            }
            for (int s : {0, 1}) columns[s] = std::max(columns[s], sums[s]);
        }
        const double condition = inspect_triangle<T>(this->ctx, R.view()).condition / columns[0] / columns[1];
        EXPECT_GE(condition, 1.0 / 3);
        EXPECT_LE(condition, 1.001);
    }
}

}  // namespace
}  // namespace quoin::test
