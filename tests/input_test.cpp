// Refusals and their messages: entries that are not finite, shapes and options outside their domain.

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"
#include "quoin/qr.hpp"

namespace quoin::test {
namespace {

template <class T>
class Input : public testing::Test {
protected:
    static constexpr T nan = std::numeric_limits<T>::quiet_NaN();
    static constexpr T inf = std::numeric_limits<T>::infinity();

    Context<Host> ctx{2};

    template <class Factor>
    void expect_non_finite(Index row, Index col, Factor factor) {
        try {
            factor();
            ADD_FAILURE() << "accepted";
        } catch (const NonFiniteEntry& e) {
            EXPECT_EQ(e.row, row);
            EXPECT_EQ(e.col, col);
            EXPECT_EQ(e.code(), ErrorCode::NonFiniteEntry);
        }
    }
};
TYPED_TEST_SUITE(Input, Scalars);

TYPED_TEST(Input, TheFirstBadEntryIsNamed) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{9000, 5}, {60, 20}, {33, 33}, {1, 1}})
        for (Method method : all_methods)
            for (QForm q : q_forms)
                for (auto [row, col] : {std::pair<Index, Index>{0, 0}, {m / 2, n / 2}, {m - 1, n - 1}, {m - 1, 0}})
                    for (T bad : {this->nan, this->inf, -this->inf}) {
                        SCOPED_TRACE(case_name(m, n, method, q) + " A(" + std::to_string(row) + ", " +
                                     std::to_string(col) + ") = " + std::to_string(bad));
                        // The padding holds NaN too, and is none of the matrix.
                        Padded<T> A(random_normal<T>(m, n).view());
                        A.view()(row, col) = bad;
                        this->expect_non_finite(row, col, [&] { qr(this->ctx, A.view(), with(method, q)); });
                    }
}

TYPED_TEST(Input, FirstMeansColumnMajorOrder) {
    using T = TypeParam;
    Matrix<T> A = random_normal<T>(5000, 6);
    A(4999, 2) = this->inf;
    A(0, 3) = this->nan;
    A(4500, 2) = this->nan;
    A(1, 5) = this->nan;
    this->expect_non_finite(4500, 2, [&] { qr(this->ctx, A.view()); });
    const Matrix<T> At = transposed<T>(A.view());
    this->expect_non_finite(4500, 2, [&] {
        qr(this->ctx, RowMajorView<const T>{At.data(), A.rows(), A.cols(), At.ld()});
    });
    const Plan plan = plan_qr<T>(this->ctx, A.rows(), A.cols());
    this->expect_non_finite(4500, 2, [&] { qr(this->ctx, copy<T>(A.view()), plan); });
}

TYPED_TEST(Input, WideMatricesAreCheckedToTheirLastColumn) {
    using T = TypeParam;
    for (Method method : unconditional_methods) {
        if (!factors_shape(method, 10, 40)) continue;
        SCOPED_TRACE(to_string(method));
        Matrix<T> A = random_normal<T>(10, 40);
        A(7, 39) = this->nan;
        this->expect_non_finite(7, 39, [&] { qr(this->ctx, A.view(), with(method)); });
    }
}

TYPED_TEST(Input, UncheckedNaNPropagates) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{3000, 5}, {60, 20}, {33, 33}, {10, 40}})
        for (Method method : unconditional_methods)
            for (T bad : {this->nan, this->inf}) {
                if (!factors_shape(method, m, n)) continue;
                SCOPED_TRACE(shape_name(m, n) + " " + to_string(method));
                Options options = with(method);
                options.check_finite = false;
                Matrix<T> A = random_normal<T>(m, n);
                A(m / 2, n / 3) = bad;
                const QR<T> f = qr(this->ctx, A.view(), options);
                EXPECT_FALSE(is_finite<T>(f.r().view()));
            }
}

TYPED_TEST(Input, UncheckedNaNBreaksConditionalMethodsDown) {
    using T = TypeParam;
    for (Method method : conditional_methods) {
        SCOPED_TRACE(to_string(method));
        Options options = with(method, QForm::Explicit);
        options.check_finite = false;
        Matrix<T> A = random_normal<T>(300, 10);
        A(100, 3) = this->nan;
        try {
            EXPECT_FALSE(is_finite<T>(qr(this->ctx, A.view(), options).r().view())) << "a finite answer to NaN";
        } catch (const NumericalBreakdown&) {
        }
    }
}

TYPED_TEST(Input, ImpossibleViewsAreInvalid) {
    using T = TypeParam;
    std::vector<T> data(100, T(1));
    const auto view = [&](Index m, Index n, Index ld) { return MatrixView<const T>(data.data(), m, n, ld); };
    EXPECT_THROW(qr(this->ctx, view(-1, 3, 5)), InvalidArgument);
    EXPECT_THROW(qr(this->ctx, view(3, -1, 5)), InvalidArgument);
    EXPECT_THROW(qr(this->ctx, view(5, 3, 4)), InvalidArgument);
    EXPECT_THROW(qr(this->ctx, view(0, 3, 0)), InvalidArgument);
    EXPECT_THROW(qr(this->ctx, MatrixView<const T>(nullptr, 5, 3, 5)), InvalidArgument);
    EXPECT_NO_THROW(qr(this->ctx, MatrixView<const T>(nullptr, 0, 3, 1)));
    EXPECT_NO_THROW(qr(this->ctx, MatrixView<const T>(nullptr, 5, 0, 5)));

    const auto rows = [&](Index m, Index n, Index ld) { return RowMajorView<const T>{data.data(), m, n, ld}; };
    EXPECT_THROW(qr(this->ctx, rows(-1, 3, 5)), InvalidArgument);
    EXPECT_THROW(qr(this->ctx, rows(3, -1, 5)), InvalidArgument);
    EXPECT_THROW(qr(this->ctx, rows(3, 5, 4)), InvalidArgument);
    EXPECT_THROW(qr(this->ctx, RowMajorView<const T>{nullptr, 5, 3, 5}), InvalidArgument);
    EXPECT_NO_THROW(qr(this->ctx, RowMajorView<const T>{nullptr, 0, 3, 3}));
}

TYPED_TEST(Input, ImpossibleOptionsAreInvalidForQrToo) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(40, 6);
    Options options = with(Method::TSQR);
    options.method.set_tree({.fan_in = 1});
    EXPECT_THROW(qr(this->ctx, A.view(), options), InvalidArgument);
}

}  // namespace
}  // namespace quoin::test
