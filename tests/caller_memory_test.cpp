// Results in the caller's memory have the bits of results that the library allocates, also in A's own memory, and
// nothing is copied where columns follow each other.

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>

#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"
#include "heap_peak.hpp"
#include "quoin/quoin.hpp"

namespace quoin::test {
namespace {

template <class T>
class CallerMemory : public testing::Test {
protected:
    Context<Host> ctx{2};
};
TYPED_TEST_SUITE(CallerMemory, Scalars);

const std::pair<Index, Index> shapes[] = {{3001, 20}, {300, 70}, {64, 64}, {40, 200},
                                          {9, 31},    {130, 1},  {5, 0},   {0, 3}};

/// The nearer `distance` is to 0, the more the second column depends on the first one: Cholesky QR improves the matrix,
/// or refuses it.
template <class T>
Matrix<T> matrix_with(Index m, Index n, double distance) {
    Matrix<T> A = random_normal<T>(m, n);
    for (Index i = 0; n > 1 && i < m; ++i) A(i, 1) = A(i, 0) + static_cast<T>(distance) * A(i, 1);
    return A;
}

TYPED_TEST(CallerMemory, HasTheSameBits) {
    using T = TypeParam;
    for (const auto& [m, n] : shapes) {
        const Index k = std::min(m, n);
        for (const Method method : all_methods) {
            if (!factors_shape(method, m, n)) continue;
            for (const double distance : {1.0, 1e-3, 1e-5, 1e-7, 1e-10}) {
                if (is_conditional(method) && distance < 1) continue;
                const Matrix<T> A = matrix_with<T>(m, n, distance);
                const ThinQR<T> thin = qr(this->ctx, A.view(), with(method, QForm::Explicit)).take_thin(this->ctx);
                const Matrix<T> R_alone = qr(this->ctx, A.view(), with(method, QForm::None)).r();
                for (const Index padding : {0, 3}) {
                    SCOPED_TRACE(std::string(to_string(method)) + " " + std::to_string(m) + "x" + std::to_string(n) +
                                 ", distance " + std::to_string(distance) + ", padding " + std::to_string(padding));
                    Padded<T> Q(m, k, padding), R(k, n, padding);
                    qr(this->ctx, A.view(), Q.view(), R.view(), with(method));
                    EXPECT_TRUE(same_bits<T>(Q.view(), thin.Q.view()));
                    EXPECT_TRUE(same_bits<T>(R.view(), thin.R.view()));
                    EXPECT_TRUE(Q.padding_intact() && R.padding_intact());

                    Padded<T> alone(k, n, padding);
                    qr(this->ctx, A.view(), {}, alone.view(), with(method));
                    EXPECT_TRUE(same_bits<T>(alone.view(), R_alone.view()));
                    EXPECT_TRUE(alone.padding_intact());

                    if (m < n) continue;
                    Padded<T> in_place(A.view(), padding), R2(n, n, padding);
                    qr(this->ctx, in_place.view(), in_place.view(), R2.view(), with(method));
                    EXPECT_TRUE(same_bits<T>(in_place.view(), thin.Q.view()));
                    EXPECT_TRUE(same_bits<T>(R2.view(), thin.R.view()));
                    EXPECT_TRUE(in_place.padding_intact() && R2.padding_intact());
                }
            }
        }
    }
}

TYPED_TEST(CallerMemory, HasLapacksFormat) {
    using T = TypeParam;
    for (const auto& [m, n] : shapes) {
        const Index k = std::min(m, n);
        const Matrix<T> A = random_normal<T>(m, n);
        const Matrix<T> At = transposed<T>(A.view());
        const LapackQR<T> expected =
            to_lapack(this->ctx, qr(this->ctx, A.view(), with(Method::Auto, QForm::Reflectors)));
        for (const Index padding : {0, 3}) {
            SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n));
            Padded<T> V_R(m, n, padding), tau(k, 1, padding), in_place(A.view(), padding), tau2(k, 1, padding);
            qr_lapack<T, Host>(this->ctx, RowMajorView<const T>{At.data(), m, n, At.ld()}, V_R.view(), tau.view());
            EXPECT_TRUE(same_bits<T>(V_R.view(), expected.V_R.view()) && same_bits<T>(tau.view(), expected.tau.view()));
            qr_lapack<T, Host>(this->ctx, in_place.view(), in_place.view(), tau2.view());
            EXPECT_TRUE(same_bits<T>(in_place.view(), expected.V_R.view()) &&
                        same_bits<T>(tau2.view(), expected.tau.view()));
            EXPECT_TRUE(V_R.padding_intact() && tau.padding_intact() && in_place.padding_intact() &&
                        tau2.padding_intact());
        }
    }
}

TYPED_TEST(CallerMemory, RefusesOtherShapesAndNaN) {
    using T = TypeParam;
    Matrix<T> A = random_normal<T>(9, 4), Q(9, 4), R(4, 4), tau(4, 1);
    EXPECT_THROW(qr(this->ctx, A.view(), Q.view().row_block({0, 8}), R.view()), InvalidArgument);
    EXPECT_THROW(qr(this->ctx, A.view(), Q.view(), R.view().col_block({0, 3})), InvalidArgument);
    EXPECT_THROW((qr_lapack<T, Host>(this->ctx, A.view(), Q.view(), R.view())), InvalidArgument);
    A(7, 2) = std::numeric_limits<T>::quiet_NaN();
    try {
        qr(this->ctx, A.view(), Q.view(), R.view());
        ADD_FAILURE() << "NaN was accepted";
    } catch (const NonFiniteEntry& e) {
        EXPECT_EQ(e.row, 7);
        EXPECT_EQ(e.col, 2);
    }
}

#ifndef QUOIN_SANITIZED
TYPED_TEST(CallerMemory, NeedsNoCopyOfQ) {
    using T = TypeParam;
    const Index m = 20000, n = 60;
    const Matrix<T> A = random_normal<T>(m, n);
    Matrix<T> Q(m, n), R(n, n);
    for (const Method method : {Method::Auto, Method::BlockedHouseholder}) {
        qr(this->ctx, A.view(), Q.view(), R.view(), with(method));  // the context's workspace
        const std::size_t before = in_use();
        max_in_use = before;
        qr(this->ctx, A.view(), Q.view(), R.view(), with(method));
        EXPECT_LT(max_in_use - before, sizeof(T) * m * n / 2) << to_string(method);
    }
}
#endif

}  // namespace
}  // namespace quoin::test
