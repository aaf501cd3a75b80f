// LAPACK's format: LAPACK understands what leaves through to_lapack, and from_lapack what LAPACK wrote.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"
#include "lapack.hpp"
#include "quoin/qr.hpp"

namespace quoin::test {
namespace {

constexpr std::pair<Index, Index> shapes[] = {{60, 17}, {33, 33}, {12, 40}, {50, 1},  {1, 1},
                                              {1, 5},   {5, 0},   {0, 5},   {203, 64}};

template <class T>
Matrix<T> upper_trapezoid(MatrixView<const T> V_R) {
    const Index k = std::min(V_R.rows, V_R.cols);
    Matrix<T> R = filled<T>(k, V_R.cols, 0);
    for (Index j = 0; j < V_R.cols; ++j) std::copy_n(V_R.at(0, j), std::min(j + 1, k), R.view().at(0, j));
    return R;
}

/// The first q columns of H_1 ⋯ H_k [I; 0], by LAPACK.
template <class T>
Matrix<T> orgqr(const LapackQR<T>& factors, Index q) {
    const Index m = factors.V_R.rows(), k = factors.tau.rows();
    Matrix<T> Q(m, q);
    std::fill_n(Q.data(), m * q, T(0));
    for (Index j = 0; j < k; ++j) std::copy_n(factors.V_R.view().at(0, j), m, Q.view().at(0, j));
    if (m > 0 && q > 0) {
        EXPECT_EQ(lapack::orgqr(Q.view(), k, factors.tau.data()), 0);
    }
    return Q;
}

template <class T>
void ormqr(const LapackQR<T>& factors, Side side, Op op, MatrixView<T> C) {
    if (C.empty() || factors.tau.rows() == 0) return;
    EXPECT_EQ(lapack::ormqr(side == Side::Left ? 'L' : 'R', op == Op::None ? 'N' : 'T', factors.tau.rows(),
                            factors.V_R.view(), factors.tau.data(), C),
              0);
}

/// Checks what every consumer of the format relies on: A = Q R with the Q that LAPACK multiplies out, tau = 0 or 1 <=
/// tau <= 2 (τ = 2/vᵀv with v_1 = 1), and an orthogonal product of the reflectors.
template <class T>
void expect_lapack_format(MatrixView<const T> A, const LapackQR<T>& factors) {
    const Index m = A.rows, n = A.cols, k = std::min(m, n);
    ASSERT_EQ(factors.V_R.rows(), m);
    ASSERT_EQ(factors.V_R.cols(), n);
    ASSERT_EQ(factors.tau.rows(), k);
    ASSERT_EQ(factors.tau.cols(), 1);
    EXPECT_TRUE(is_finite<T>(factors.V_R.view()));
    for (Index j = 0; j < k; ++j) {
        const double tau = factors.tau(j, 0), slack = law * double(k) * unit_roundoff<T>;
        EXPECT_TRUE(tau == 0 || (tau >= 1 - slack && tau <= 2 + slack)) << "tau(" << j << ") = " << tau;
    }
    // The m×m product where it is small, else its first k columns.
    const Matrix<T> Q = orgqr(factors, m <= 100 ? m : k);
    EXPECT_LE(orthogonality_error<T>(Q.view(), k), law) << "H_1 ⋯ H_k";
    const MatrixView<const T> thin_Q = Q.view().col_block({0, k});
    const Matrix<T> R = upper_trapezoid<T>(factors.V_R.view());
    EXPECT_LE(orthogonality_error<T>(thin_Q, k), law);
    EXPECT_LE(column_residual_error<T>(A, thin_Q, R.view()), law);
}

class LapackFormat : public testing::TestWithParam<Method> {
protected:
    Context<Host> ctx{2};

    template <class T>
    void check_format_of_the_gallery() {
        for (Gallery matrix_class : gallery())
            for (auto [m, n] : {std::pair<Index, Index>{90, 20}, {30, 30}, {10, 25}})
                for (QForm q : q_forms_with_q) {
                    if (!factors_shape(GetParam(), m, n)) continue;
                    SCOPED_TRACE(to_string(matrix_class) + " " + shape_name(m, n) + " " + to_string(q));
                    const Matrix<T> A = generate<T>(matrix_class, m, n);
                    expect_lapack_format<T>(A.view(), to_lapack(ctx, qr(ctx, A.view(), with(GetParam(), q))));
                }
    }

    /// Trees that reconstruction has to flatten.
    template <class T>
    void check_format_of_trees() {
        const Index n = 9;
        for (Index m : {9, 10, 17, 18, 19, 100, 1000})
            for (QForm q : q_forms_with_q) {
                SCOPED_TRACE(shape_name(m, n) + " " + to_string(q));
                Options options = with(GetParam(), q);
                if (GetParam() != Method::BlockedHouseholder && GetParam() != Method::Auto) {
                    options.method.set_tree({n, 2});
                    if (GetParam() == Method::CAQR) options.method.set_panel_width(4);
                }
                const Matrix<T> A = random_normal<T>(m, n);
                expect_lapack_format<T>(A.view(), to_lapack(ctx, qr(ctx, A.view(), options)));
            }
    }

    /// A = [D; 0], and a triangle beside it: nothing is below the diagonal, and nothing is reflected.
    template <class T>
    void check_columns_that_are_zero_below() {
        for (auto [m, n] : {std::pair<Index, Index>{400, 16}, {3000, 40}, {33, 33}, {12, 40}})
            for (QForm q : q_forms_with_q)
                for (bool triangle : {false, true}) {
                    SCOPED_TRACE(shape_name(m, n) + " " + to_string(q) + (triangle ? " triangle" : " diagonal"));
                    Matrix<T> A = filled<T>(m, n, 0);
                    for (Index j = 0; j < n; ++j) {
                        for (Index i = 0; i < std::min(j, m); ++i)
                            A(i, j) = triangle ? T(1) / static_cast<T>(i + j) : T(0);
                        if (j < m) A(j, j) = j % 3 == 1 ? T(-4) : T(4);
                    }
                    const LapackQR<T> factors = to_lapack(ctx, qr(ctx, A.view(), with(GetParam(), q)));
                    for (Index j = 0; j < std::min(m, n); ++j) {
                        EXPECT_EQ(factors.tau(j, 0), 0) << j;
                        EXPECT_EQ(factors.V_R(j, j) < 0, A(j, j) < 0) << j;
                    }
                    EXPECT_LE(difference<T>(factors.V_R.view(), A.view(), std::min(m, n), frobenius_norm<T>(A.view())),
                              law);
                }
    }

    /// The thin Q keeps its columns and R its rows, up to the signs that reconstruction flips in both.
    template <class T>
    void check_agreement() {
        for (auto [m, n] : shapes)
            for (QForm q : q_forms_with_q) {
                if (!factors_shape(GetParam(), m, n)) continue;
                SCOPED_TRACE(shape_name(m, n) + " " + to_string(q));
                const Index k = std::min(m, n);
                const Matrix<T> A = random_normal<T>(m, n);
                QR<T> f = qr(ctx, A.view(), with(GetParam(), q));
                Matrix<T> R = f.r(), Q = f.form_q(ctx), QtA = copy<T>(A.view());
                f.apply_q(ctx, Side::Left, Op::Transpose, QtA.view());
                const LapackQR<T> factors = to_lapack(ctx, std::move(f));
                const Matrix<T> lapack_R = upper_trapezoid<T>(factors.V_R.view()), lapack_Q = orgqr(factors, k);
                Matrix<T> lapack_QtA = copy<T>(A.view());
                ormqr<T>(factors, Side::Left, Op::Transpose, lapack_QtA.view());
                for (Index i = 0; i < k; ++i) {
                    if (std::signbit(R(i, i)) == std::signbit(lapack_R(i, i))) continue;
                    EXPECT_NE(q, QForm::Reflectors) << "row " << i << " of R changed its sign";
                    for (Index j = 0; j < n; ++j) R(i, j) = -R(i, j), QtA(i, j) = -QtA(i, j);
                    for (Index l = 0; l < m; ++l) Q(l, i) = -Q(l, i);
                }
                // Two backward stable R's of one A differ by κ·u; the same R, with signs, by its roundings alone.
                const double norm_A = frobenius_norm<T>(A.view());
                EXPECT_LE(difference<T>(lapack_R.view(), R.view(), k, norm_A), law) << "R";
                EXPECT_LE(difference<T>(lapack_Q.view(), Q.view(), k, std::sqrt(double(k))), law) << "orgqr";
                EXPECT_LE(difference<T>(lapack_QtA.view(), QtA.view(), k, norm_A), law) << "ormqr";
            }
    }

    /// Held as reflectors, the m×m Q is LAPACK's too, from both sides.
    template <class T>
    void check_full_agreement() {
        for (auto [m, n] : shapes) {
            if (!factors_shape(GetParam(), m, n)) continue;
            SCOPED_TRACE(shape_name(m, n));
            const Index k = std::min(m, n), p = 7;
            const Matrix<T> A = random_normal<T>(m, n);
            QR<T> f = qr(ctx, A.view(), with(GetParam(), QForm::Reflectors));
            std::vector<Matrix<T>> products;
            const auto operand = [&, m = m](Side side) {  // Clang 14 captures no structured binding by itself
                return side == Side::Left ? random_normal<T>(m, p) : random_normal<T>(p, m);
            };
            for (Side side : {Side::Left, Side::Right})
                for (Op op : {Op::None, Op::Transpose}) {
                    products.push_back(operand(side));
                    f.apply_q(ctx, side, op, products.back().view());
                }
            const Matrix<T> R = f.r();
            const LapackQR<T> factors = to_lapack(ctx, std::move(f));
            EXPECT_TRUE(same_bits<T>(R.view(), upper_trapezoid<T>(factors.V_R.view()).view()));
            auto product = products.begin();
            for (Side side : {Side::Left, Side::Right})
                for (Op op : {Op::None, Op::Transpose}) {
                    Matrix<T> C = operand(side);
                    const double norm_C = frobenius_norm<T>(C.view());
                    ormqr<T>(factors, side, op, C.view());
                    EXPECT_LE(difference<T>(C.view(), (product++)->view(), k, norm_C), law)
                        << (side == Side::Left ? "left" : "right") << (op == Op::None ? " Q" : " Qᵀ");
                }
        }
    }
};

TEST_P(LapackFormat, HoldsOnTheGalleryF32) { check_format_of_the_gallery<float>(); }
TEST_P(LapackFormat, HoldsOnTheGalleryF64) { check_format_of_the_gallery<double>(); }
TEST_P(LapackFormat, HoldsForTreesF32) { check_format_of_trees<float>(); }
TEST_P(LapackFormat, HoldsForTreesF64) { check_format_of_trees<double>(); }
TEST_P(LapackFormat, ReflectsNoColumnThatIsZeroBelowItsDiagonalF32) { check_columns_that_are_zero_below<float>(); }
TEST_P(LapackFormat, ReflectsNoColumnThatIsZeroBelowItsDiagonalF64) { check_columns_that_are_zero_below<double>(); }
TEST_P(LapackFormat, AgreesUpToSignsF32) { check_agreement<float>(); }
TEST_P(LapackFormat, AgreesUpToSignsF64) { check_agreement<double>(); }
TEST_P(LapackFormat, OfReflectorsAgreesFromBothSidesF32) { check_full_agreement<float>(); }
TEST_P(LapackFormat, OfReflectorsAgreesFromBothSidesF64) { check_full_agreement<double>(); }

INSTANTIATE_TEST_SUITE_P(Every, LapackFormat, testing::ValuesIn(unconditional_methods),
                         [](const auto& info) { return std::string(to_string(info.param)); });

// ---- compact WY form -----------------------------------------------------------------------------------------------

template <class T>
class CompactWY : public testing::Test {
protected:
    Context<Host> ctx{2};

    /// I − V T Vᵀ is the Q of `apply_q`; V is unit lower trapezoidal, T upper triangular, tau T's diagonal and
    /// LAPACK's.
    void expect_compact_wy(QR<T>&& f) {
        const Index m = f.rows(), k = std::min(m, f.cols());
        const Matrix<T> V = f.v(ctx), Tf = f.t(ctx), tau = f.tau(ctx), Q = f.q_block(ctx, {0, m}, {0, m});
        ASSERT_TRUE(V.rows() == m && V.cols() == k && Tf.rows() == k && Tf.cols() == k && tau.rows() == k);
        for (Index j = 0; j < k; ++j) {
            for (Index i = 0; i <= j; ++i) EXPECT_EQ(V(i, j), T(i == j));
            for (Index i = j + 1; i < k; ++i) EXPECT_EQ(Tf(i, j), T(0));
            EXPECT_EQ(Tf(j, j), tau(j, 0));
        }
        Matrix<T> H = filled<T>(m, m, 0);
        for (Index j = 0; j < m; ++j) {
            for (Index i = 0; i < m; ++i) {
                long double sum = i == j;
                for (Index l = 0; l < k; ++l) {
                    for (Index s = l; s < k; ++s) sum -= (long double)V(i, l) * Tf(l, s) * V(j, s);
                }
                H(i, j) = static_cast<T>(sum);
            }
        }
        EXPECT_LE(difference<T>(H.view(), Q.view(), k, std::sqrt(double(m))), law);
        EXPECT_LE(orthogonality_error<T>(H.view(), k), law);
        const LapackQR<T> factors = to_lapack(ctx, std::move(f));
        EXPECT_TRUE(same_bits<T>(factors.tau.view(), tau.view()));
    }
};
TYPED_TEST_SUITE(CompactWY, Scalars);

TYPED_TEST(CompactWY, IsQ) {
    using T = TypeParam;
    for (Gallery matrix_class : gallery())
        for (auto [m, n] : {std::pair<Index, Index>{40, 20}, {17, 17}, {10, 25}, {1, 1}, {3, 0}, {0, 3}})
            for (Index nb : {0, 1, 6}) {
                SCOPED_TRACE(to_string(matrix_class) + " " + shape_name(m, n) + " panels of " + std::to_string(nb));
                Options options = with(Method::BlockedHouseholder, QForm::Reflectors);
                options.method.set_panel_width(nb);
                const Matrix<T> A = generate<T>(matrix_class, m, n);
                this->expect_compact_wy(qr(this->ctx, A.view(), options));
            }
}

TYPED_TEST(CompactWY, IsQOfReconstructionAndOfImports) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(90, 20);
    for (Method method : {Method::TSQR, Method::CholeskyQR2}) {
        this->expect_compact_wy(qr(this->ctx, A.view(), with(method, QForm::Reflectors)));
    }
    this->expect_compact_wy(
        from_lapack(this->ctx, to_lapack(this->ctx, qr(this->ctx, A.view(), with(Method::BlockedHouseholder)))));
}

TYPED_TEST(CompactWY, IsRefusedWhereReflectorsAreNotLapacks) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(90, 9);
    Options tree = with(Method::TSQR);
    tree.method.set_tree({.leaf_rows = 30});
    for (const Options& options : {tree, with(Method::CholeskyQR2), with(Method::Auto, QForm::None)}) {
        const QR<T> f = qr(this->ctx, A.view(), options);
        EXPECT_THROW(f.v(this->ctx), InvalidArgument);
        EXPECT_THROW(f.tau(this->ctx), InvalidArgument);
        EXPECT_THROW(f.t(this->ctx), InvalidArgument);
    }
}

// ---- import --------------------------------------------------------------------------------------------------------

template <class T>
class LapackImport : public testing::Test {
protected:
    Context<Host> ctx{2};

    LapackQR<T> geqrf(MatrixView<const T> A) {
        LapackQR<T> factors{copy(A), Matrix<T>(std::min(A.rows, A.cols), 1)};
        if (!A.empty()) {
            EXPECT_EQ(lapack::geqrf(factors.V_R.view(), factors.tau.data()), 0);
        }
        return factors;
    }
    LapackQR<T> copied(const LapackQR<T>& factors) {
        return {copy<T>(factors.V_R.view()), copy<T>(factors.tau.view())};
    }
};
TYPED_TEST_SUITE(LapackImport, Scalars);

TYPED_TEST(LapackImport, IsTheFactorizationThatLapackMade) {
    using T = TypeParam;
    for (Gallery matrix_class : gallery())
        for (auto [m, n] : shapes) {
            SCOPED_TRACE(to_string(matrix_class) + " " + shape_name(m, n));
            const Index k = std::min(m, n), p = 5;
            const Matrix<T> A = generate<T>(matrix_class, m, n);
            const LapackQR<T> factors = this->geqrf(A.view());
            const QR<T> f = from_lapack(this->ctx, this->copied(factors));
            EXPECT_EQ(f.rows(), m);
            EXPECT_EQ(f.cols(), n);
            EXPECT_TRUE(same_bits<T>(f.r().view(), upper_trapezoid<T>(factors.V_R.view()).view()));
            EXPECT_LE(difference<T>(f.form_q(this->ctx).view(), orgqr(factors, k).view(), k, std::sqrt(double(k))),
                      law);
            for (Side side : {Side::Left, Side::Right})
                for (Op op : {Op::None, Op::Transpose}) {
                    const Matrix<T> C = side == Side::Left ? random_normal<T>(m, p) : random_normal<T>(p, m);
                    Matrix<T> ours = copy<T>(C.view()), theirs = copy<T>(C.view());
                    f.apply_q(this->ctx, side, op, ours.view());
                    ormqr<T>(factors, side, op, theirs.view());
                    EXPECT_LE(difference<T>(ours.view(), theirs.view(), k, frobenius_norm<T>(C.view())), law)
                        << (side == Side::Left ? "left" : "right") << (op == Op::None ? " Q" : " Qᵀ");
                }
        }
}

TYPED_TEST(LapackImport, OutAndBackAreTheSameBits) {
    using T = TypeParam;
    for (auto [m, n] : shapes) {
        SCOPED_TRACE(shape_name(m, n));
        const LapackQR<T> factors = this->geqrf(random_normal<T>(m, n).view());
        const LapackQR<T> back = to_lapack(this->ctx, from_lapack(this->ctx, this->copied(factors)));
        EXPECT_TRUE(same_bits<T>(back.V_R.view(), factors.V_R.view()));
        EXPECT_TRUE(same_bits<T>(back.tau.view(), factors.tau.view()));
    }
}

TYPED_TEST(LapackImport, RefusesATauOfTheWrongLength) {
    using T = TypeParam;
    for (Index length : {0, 4, 6, 12}) {
        LapackQR<T> factors{random_normal<T>(12, 5), filled<T>(length, 1, T(1))};
        EXPECT_THROW(from_lapack(this->ctx, std::move(factors)), InvalidArgument);
    }
    LapackQR<T> row{random_normal<T>(12, 5), filled<T>(1, 5, T(1))};
    EXPECT_THROW(from_lapack(this->ctx, std::move(row)), InvalidArgument);
}

TYPED_TEST(LapackImport, RAloneHasNoLapackFormat) {
    using T = TypeParam;
    Options options;
    options.q = QForm::None;
    EXPECT_THROW(to_lapack(this->ctx, qr(this->ctx, random_normal<T>(12, 5).view(), options)), InvalidArgument);
}

}  // namespace
}  // namespace quoin::test
