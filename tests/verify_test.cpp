#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "checks.hpp"
#include "gallery.hpp"
#include "omp_threads.hpp"
#include "quoin/qr.hpp"

/// `orthogonality` and `residual`: instruments, whose own error must be small against the n·u that they measure.
namespace quoin::test {
namespace {

template <class T>
class VerifyTest : public testing::Test {
protected:
    Context<Host> ctx{2};
};
TYPED_TEST_SUITE(VerifyTest, Scalars);

TYPED_TEST(VerifyTest, AgreesWithHigherPrecision) {
    using T = TypeParam;
    const struct {
        Index m, n;
    } shapes[] = {{1, 1}, {5, 3}, {127, 127}, {128, 128}, {300, 129}, {quick() ? 700 : 5000, 40}, {50, 200}};
    for (const auto& [m, n] : shapes) {
        SCOPED_TRACE(fmt::format("{}x{}", m, n));
        const Index k = std::min(m, n);
        const double u = unit_roundoff<T>;
        const Matrix<T> A = random_normal<T>(m, n);
        const auto f = qr(this->ctx, A.view());
        const Matrix<T> Q = f.form_q(this->ctx), R = f.r();
        // a tenth of k·u for the instrument, a twentieth for the 64 bits of the reference
        EXPECT_NEAR(orthogonality<T>(this->ctx, Q.view()), orthogonality_error<T>(Q.view(), k) * k * u, 0.15 * k * u);
        const double norm_A = frobenius_norm<T>(A.view());
        const double unit = k * (u * norm_A + std::sqrt(double(m * n)) * std::numeric_limits<T>::denorm_min()) / norm_A;
        EXPECT_NEAR(residual<T>(this->ctx, A.view(), Q.view(), R.view()),
                    residual_error<T>(A.view(), Q.view(), R.view()) * unit, 0.15 * unit);
    }
}

TYPED_TEST(VerifyTest, MeasuresATallColumnToAFractionOfTheRoundoff) {
    using T = TypeParam;
    // m·q² for q = fl(1/√m) is known; a sum of 10⁶ equal terms in working precision is off by many u
    const Index m = 1000003;
    const T q = static_cast<T>(1 / std::sqrt(Wide<T>(m)));
    const Matrix<T> Q = filled<T>(m, 1, q);
    const double expected = static_cast<double>(std::abs(Wide<T>(m) * Wide<T>(q) * Wide<T>(q) - 1));
    EXPECT_NEAR(orthogonality<T>(this->ctx, Q.view()), expected, 0.1 * unit_roundoff<T>);
}

TYPED_TEST(VerifyTest, SeesOneWrongEntry) {
    using T = TypeParam;
    const Index m = 700, n = 150;
    const T delta = 64 * std::numeric_limits<T>::epsilon();
    Matrix<T> Q = filled<T>(m, n, 0), R = filled<T>(n, n, 0);
    for (Index j = 0; j < n; ++j) Q(j, j) = R(j, j) = 1;
    Matrix<T> A = copy<T>(Q.view());
    EXPECT_EQ(orthogonality<T>(this->ctx, Q.view()), 0);
    EXPECT_EQ(residual<T>(this->ctx, A.view(), Q.view(), R.view()), 0);
    A(m - 1, n - 1) = delta;
    EXPECT_NEAR(residual<T>(this->ctx, A.view(), Q.view(), R.view()), delta / std::sqrt(double(n)), 1e-6 * delta);
    A(m - 1, n - 1) = 0;
    R(n - 1, 0) = delta;  // below the diagonal
    EXPECT_NEAR(residual<T>(this->ctx, A.view(), Q.view(), R.view()), delta / std::sqrt(double(n)), 1e-6 * delta);
    Q(3, 140) = delta;  // off the diagonal of QᵀQ, twice
    EXPECT_NEAR(orthogonality<T>(this->ctx, Q.view()), std::sqrt(2.0) * delta, 1e-6 * delta);
}

TYPED_TEST(VerifyTest, ScaleDoesNotMatter) {
    using T = TypeParam;
    for (const Gallery matrix_class : {Gallery::NearOverflow, Gallery::GradedColumnsDown, Gallery::GradedBoth}) {
        const Matrix<T> A = generate<T>(matrix_class, 90, 30);
        const auto f = qr(this->ctx, A.view());
        const double measured = residual<T>(this->ctx, A.view(), f.form_q(this->ctx).view(), f.r().view());
        EXPECT_LE(measured, law * 30 * unit_roundoff<T>) << to_string(matrix_class);
        EXPECT_GT(measured, 0) << to_string(matrix_class);
    }
    // A = 0: the residual is absolute
    const Matrix<T> Z = filled<T>(3, 2, 0), Q = filled<T>(3, 2, 1), R = filled<T>(2, 2, 2);
    EXPECT_EQ(residual<T>(this->ctx, Z.view(), Q.view(), R.view()), std::sqrt(6 * 16.0));
}

TYPED_TEST(VerifyTest, NaNIsNotGoodNews) {
    using T = TypeParam;
    const T nan = std::numeric_limits<T>::quiet_NaN();
    const Matrix<T> A = random_normal<T>(200, 140);
    const auto f = qr(this->ctx, A.view());
    const Matrix<T> Q = f.form_q(this->ctx), R = f.r();
    for (const auto& [i, j] : {std::pair<Index, Index>{0, 0}, {199, 139}, {130, 5}, {77, 131}}) {
        Matrix<T> bad_A = copy<T>(A.view()), bad_Q = copy<T>(Q.view()), bad_R = copy<T>(R.view());
        bad_A(i, j) = bad_Q(i, j) = bad_R(std::min<Index>(i, 139), j) = nan;
        EXPECT_TRUE(std::isnan(orthogonality<T>(this->ctx, bad_Q.view())));
        EXPECT_TRUE(std::isnan(residual<T>(this->ctx, bad_A.view(), Q.view(), R.view())));
        EXPECT_TRUE(std::isnan(residual<T>(this->ctx, A.view(), bad_Q.view(), R.view())));
        EXPECT_TRUE(std::isnan(residual<T>(this->ctx, A.view(), Q.view(), bad_R.view())));
    }
}

TYPED_TEST(VerifyTest, TheSameBitsForAnyNumberOfThreads) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(3000, 150);
    const auto f = qr(this->ctx, A.view());
    const Matrix<T> Q = f.form_q(this->ctx), R = f.r();
    Context<Host> one(1);
    for (const int threads : {2, 3, 4}) {
        Context<Host> several(threads);
        const OmpThreads outside(threads);
        EXPECT_EQ(orthogonality<T>(several, Q.view()), orthogonality<T>(one, Q.view()));
        EXPECT_EQ(residual<T>(several, A.view(), Q.view(), R.view()), residual<T>(one, A.view(), Q.view(), R.view()));
    }
}

TYPED_TEST(VerifyTest, EmptyShapesAndShapesThatDoNotFit) {
    using T = TypeParam;
    EXPECT_EQ(orthogonality<T>(this->ctx, Matrix<T>(0, 0).view()), 0);
    EXPECT_EQ(orthogonality<T>(this->ctx, Matrix<T>(3, 0).view()), 0);
    EXPECT_EQ(orthogonality<T>(this->ctx, Matrix<T>(0, 4).view()), 2);  // ‖I₄‖_F
    EXPECT_EQ(residual<T>(this->ctx, Matrix<T>(0, 3).view(), Matrix<T>(0, 0).view(), Matrix<T>(0, 3).view()), 0);
    const Matrix<T> A = filled<T>(5, 3, 1);
    EXPECT_EQ(residual<T>(this->ctx, A.view(), Matrix<T>(5, 0).view(), Matrix<T>(0, 3).view()), 1);
    EXPECT_THROW(residual<T>(this->ctx, A.view(), Matrix<T>(5, 2).view(), Matrix<T>(3, 3).view()), InvalidArgument);
    EXPECT_THROW(residual<T>(this->ctx, A.view(), Matrix<T>(4, 3).view(), Matrix<T>(3, 3).view()), InvalidArgument);
}

}  // namespace
}  // namespace quoin::test
