// The checks against LAPACK, which must satisfy the law, and against wrong factorizations, which must not.

#include "checks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "gallery.hpp"
#include "lapack.hpp"
#include "quoin/scalar.hpp"

namespace quoin::test {
namespace {

/// A = QR by LAPACK.
template <class T>
struct Reference {
    Matrix<T> thin_Q, Q, R;
    Matrix<T> V, tau;

    explicit Reference(MatrixView<const T> A) : V(copy(A)), tau(std::min(A.rows, A.cols), 1) {
        const Index m = A.rows, k = tau.rows();
        EXPECT_EQ(lapack::geqrf(V.view(), tau.data()), 0);
        R = filled<T>(k, A.cols, 0);
        for (Index j = 0; j < A.cols; ++j) std::copy_n(V.view().at(0, j), std::min(j + 1, k), R.view().at(0, j));
        thin_Q = copy<T>(V.view().col_block({0, k}));
        EXPECT_EQ(lapack::orgqr(thin_Q.view(), k, tau.data()), 0);
        Q = identity<T>(m);
        for (Index j = 0; j < k; ++j) std::copy_n(V.view().at(0, j), m, Q.view().at(0, j));
        EXPECT_EQ(lapack::orgqr(Q.view(), k, tau.data()), 0);
    }
};

template <class T>
class Checks : public testing::Test {};
TYPED_TEST_SUITE(Checks, Scalars);

/// The largest relative error of rounding to nearest: 1 + u is a tie, which goes to 1.
TYPED_TEST(Checks, TheUnitRoundoffIsThatOfTheType) {
    using T = TypeParam;
    volatile T tie = T(1) + static_cast<T>(Scalar<T>::u), above = T(1) + static_cast<T>(1.25 * Scalar<T>::u);
    EXPECT_EQ(tie, T(1));
    EXPECT_GT(above, T(1));
    EXPECT_EQ(Scalar<T>::u, unit_roundoff<T>);
}

TYPED_TEST(Checks, LapackObeysTheLawOnTheGallery) {
    using T = TypeParam;
    for (Gallery matrix_class : gallery())
        for (auto [m, n] : {std::pair<Index, Index>{60, 17}, {40, 40}, {17, 30}, {50, 1}}) {
            SCOPED_TRACE(to_string(matrix_class) + " " + std::to_string(m) + "x" + std::to_string(n));
            const Matrix<T> A = generate<T>(matrix_class, m, n);
            const Index k = std::min(m, n);
            const Reference<T> f(A.view());
            EXPECT_TRUE(is_upper_trapezoidal<T>(f.R.view()));
            EXPECT_TRUE(is_finite<T>(f.R.view()));
            EXPECT_LE(orthogonality_error<T>(f.thin_Q.view(), k), law);
            EXPECT_LE(orthogonality_error<T>(f.Q.view(), k), law);
            EXPECT_LE(residual_error<T>(A.view(), f.thin_Q.view(), f.R.view()), law);
            EXPECT_LE(column_residual_error<T>(A.view(), f.thin_Q.view(), f.R.view()), law);
            EXPECT_LE(gram_error<T>(A.view(), f.R.view()), law);
            for (Side side : {Side::Left, Side::Right})
                for (Op op : {Op::None, Op::Transpose}) {
                    const Matrix<T> C = side == Side::Left ? random_normal<T>(m, 3) : random_normal<T>(3, m);
                    Padded<T> X(C.view());
                    ASSERT_EQ(lapack::ormqr(side == Side::Left ? 'L' : 'R', op == Op::None ? 'N' : 'T', k, f.V.view(),
                                            f.tau.data(), X.view()),
                              0);
                    EXPECT_LE(product_error<T>(side, op, f.Q.view(), C.view(), X.view(), k), law);
                    EXPECT_TRUE(X.padding_intact());
                }
        }
}

TYPED_TEST(Checks, AnErrorOfKnownSizeIsMeasuredToThreeDigits) {
    using T = TypeParam;
    const double u = unit_roundoff<T>, delta = 1024 * u;
    // Q = diag(1 + δ, 1, …): ‖I − QᵀQ‖_F = 2δ + δ²
    Matrix<T> Q = identity<T>(9);
    Q(0, 0) = T(1 + delta);
    EXPECT_NEAR(orthogonality_error<T>(Q.view(), 9) * 9 * u, 2 * delta + delta * delta, 1e-3 * delta);
    // A = I, R = (1 + δ) I: ‖A − IR‖_F = 3δ, ‖A‖_F = 3, every column off by δ
    const Matrix<T> I = identity<T>(9);
    Matrix<T> R = identity<T>(9);
    for (Index j = 0; j < 9; ++j) R(j, j) = T(1 + delta);
    EXPECT_NEAR(residual_error<T>(I.view(), I.view(), R.view()) * 9 * u, delta, 1e-3 * delta);
    EXPECT_NEAR(column_residual_error<T>(I.view(), I.view(), R.view()) * 9 * u, delta, 1e-3 * delta);
    // (AᵀA − RᵀR)_jj = −2δ − δ² in units of 2·9u
    EXPECT_NEAR(gram_error<T>(I.view(), R.view()) * 9 * u, delta, 1e-2 * delta);
    EXPECT_NEAR(product_error<T>(Side::Left, Op::None, I.view(), I.view(), R.view(), 9) * 9 * u, delta, 1e-3 * delta);
    EXPECT_NEAR(difference<T>(R.view(), I.view(), 9, 3.0) * 9 * u, delta, 1e-3 * delta);
}

TYPED_TEST(Checks, AccumulationIsFinerThanTheData) {
    using T = TypeParam;
    // 2^8 entries of 2^-4: the norm is exactly 1, and T cannot hold the partial sums once an entry is perturbed.
    Matrix<T> q = filled<T>(256, 1, T(1) / 16);
    EXPECT_EQ(orthogonality_error<T>(q.view(), 1), 0.0);
    q(0, 0) += std::numeric_limits<T>::epsilon() * q(0, 0);
    // ‖q‖² − 1 = 2^-8 (2ε + ε²), far below u
    EXPECT_NEAR(orthogonality_error<T>(q.view(), 1), 4.0 / 256, 0.04 / 256);
}

TYPED_TEST(Checks, ABrokenQIsRefused) {
    using T = TypeParam;
    const Index m = 50, n = 12;
    const Matrix<T> A = random_normal<T>(m, n);
    const Reference<T> f(A.view());
    const T relative = T(10000 * unit_roundoff<T>);
    {
        SCOPED_TRACE("one entry off by 10000u");
        Matrix<T> Q = copy<T>(f.thin_Q.view());
        Q(m - 1, n - 1) += relative;
        EXPECT_GT(orthogonality_error<T>(Q.view(), n), law);
        EXPECT_GT(residual_error<T>(A.view(), Q.view(), f.R.view()), law);
        EXPECT_GT(column_residual_error<T>(A.view(), Q.view(), f.R.view()), law);
    }
    {
        SCOPED_TRACE("two rows of Q swapped: still orthonormal, no longer a factor of A");
        Matrix<T> Q = copy<T>(f.thin_Q.view());
        for (Index j = 0; j < n; ++j) std::swap(Q(3, j), Q(40, j));
        EXPECT_LE(orthogonality_error<T>(Q.view(), n), law);
        EXPECT_GT(residual_error<T>(A.view(), Q.view(), f.R.view()), law);
    }
    {
        SCOPED_TRACE("a column of Q scaled by 1 + 10000u: the residual is blind to it if R is scaled back");
        Matrix<T> Q = copy<T>(f.thin_Q.view()), R = copy<T>(f.R.view());
        for (Index i = 0; i < m; ++i) Q(i, 0) *= 1 + relative;
        for (Index j = 0; j < n; ++j) R(0, j) /= 1 + relative;
        EXPECT_GT(orthogonality_error<T>(Q.view(), n), law);
        EXPECT_LE(residual_error<T>(A.view(), Q.view(), R.view()), law);
        EXPECT_GT(gram_error<T>(A.view(), R.view()), law);
    }
    {
        SCOPED_TRACE("a product with the transposed Q, or from the other side");
        const Matrix<T> C = random_normal<T>(m, m);
        Matrix<T> QC = copy<T>(C.view());
        ASSERT_EQ(lapack::ormqr('L', 'N', n, f.V.view(), f.tau.data(), QC.view()), 0);
        EXPECT_LE(product_error<T>(Side::Left, Op::None, f.Q.view(), C.view(), QC.view(), n), law);
        EXPECT_GT(product_error<T>(Side::Left, Op::Transpose, f.Q.view(), C.view(), QC.view(), n), law);
        EXPECT_GT(product_error<T>(Side::Right, Op::None, f.Q.view(), C.view(), QC.view(), n), law);
        EXPECT_GT(product_error<T>(Side::Right, Op::Transpose, f.Q.view(), C.view(), QC.view(), n), law);
    }
    {
        SCOPED_TRACE("NaN");
        Matrix<T> Q = copy<T>(f.thin_Q.view());
        Q(m / 2, n / 2) = std::numeric_limits<T>::quiet_NaN();
        EXPECT_FALSE(is_finite<T>(Q.view()));
        EXPECT_FALSE(orthogonality_error<T>(Q.view(), n) <= law);
        EXPECT_FALSE(residual_error<T>(A.view(), Q.view(), f.R.view()) <= law);
        EXPECT_FALSE(column_residual_error<T>(A.view(), Q.view(), f.R.view()) <= law);
        EXPECT_FALSE(difference<T>(Q.view(), f.thin_Q.view(), n, 1) <= law);
    }
}

TYPED_TEST(Checks, ColumnResidualSeesASmallColumnThatTheNormHides) {
    using T = TypeParam;
    const Matrix<T> A = generate<T>(Gallery::GradedColumnsDown, 30, 10);
    const Reference<T> f(A.view());
    Matrix<T> R = copy<T>(f.R.view());
    R(9, 9) *= T(1.01);
    EXPECT_LE(residual_error<T>(A.view(), f.thin_Q.view(), R.view()), law);
    EXPECT_GT(column_residual_error<T>(A.view(), f.thin_Q.view(), R.view()), law);
    EXPECT_GT(gram_error<T>(A.view(), R.view()), law);
}

TYPED_TEST(Checks, ImplicitOrthogonalityTellsQrFromTheCholeskyFactorOfTheGramMatrix) {
    using T = TypeParam;
    // κ²·u = 0.1: the Cholesky factorization of AᵀA succeeds and its R is wrong by κ²·u instead of κ·u.
    const Index m = 200, n = 10;
    const Matrix<T> A = with_condition<T>(m, n, std::sqrt(0.1 / unit_roundoff<T>));
    const Reference<T> f(A.view());
    EXPECT_LE(implicit_orthogonality_error<T>(A.view(), f.R.view()), law);

    Matrix<T> R = filled<T>(n, n, 0);
    for (Index j = 0; j < n; ++j)
        for (Index i = 0; i <= j; ++i) {
            T a_ij = 0;
            for (Index l = 0; l < m; ++l) a_ij += A(l, i) * A(l, j);
            for (Index l = 0; l < i; ++l) a_ij -= R(l, i) * R(l, j);
            R(i, j) = i == j ? std::sqrt(a_ij) : a_ij / R(i, i);
        }
    ASSERT_TRUE(is_finite<T>(R.view()));
    EXPECT_LE(gram_error<T>(A.view(), R.view()), law);
    EXPECT_GT(implicit_orthogonality_error<T>(A.view(), R.view()), law);
}

TYPED_TEST(Checks, ExactPropertiesAreExact) {
    using T = TypeParam;
    Matrix<T> R = identity<T>(4);
    EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
    R(3, 2) = std::numeric_limits<T>::denorm_min();
    EXPECT_FALSE(is_upper_trapezoidal<T>(R.view()));

    Matrix<T> A = identity<T>(4);
    A(2, 1) = -T(0);
    EXPECT_FALSE(same_bits<T>(A.view(), identity<T>(4).view()));
    EXPECT_FALSE(same_bits<T>(A.view(), A.view().col_block({0, 3})));
    EXPECT_TRUE(same_bits<T>(A.view(), copy<T>(A.view()).view()));
}

TYPED_TEST(Checks, PaddingTellsAWriteEvenOfNaN) {
    using T = TypeParam;
    Padded<T> A(5, 3);
    EXPECT_TRUE(A.padding_intact());
    EXPECT_FALSE(is_finite<T>(A.view()));
    A.view()(4, 2) = 1;
    EXPECT_TRUE(A.padding_intact());
    A.view().data[5] = std::numeric_limits<T>::quiet_NaN();
    EXPECT_FALSE(A.padding_intact());
}

TYPED_TEST(Checks, AMatrixOfZeroSizeMeasuresZero) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{0, 0}, {0, 3}, {3, 0}}) {
        const Matrix<T> A(m, n), Q(m, 0), R(0, n);
        EXPECT_EQ(orthogonality_error<T>(Q.view(), 0), 0.0);
        EXPECT_EQ(residual_error<T>(A.view(), Q.view(), R.view()), 0.0);
        EXPECT_EQ(gram_error<T>(A.view(), R.view()), 0.0);
    }
}

}  // namespace
}  // namespace quoin::test
