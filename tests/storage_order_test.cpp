// Row-major matrices give the bits of column-major ones, and what only reads them makes no copy.

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "checks.hpp"
#include "gallery.hpp"
#include "heap_peak.hpp"
#include "quoin/quoin.hpp"

namespace quoin::test {
namespace {

/// A in C order, its rows `padding` entries further apart than they are long.
template <class T>
class ByRows {
public:
    ByRows(MatrixView<const T> A, Index padding)
        : At_(transposed<T>(A).view(), padding), original_(copy<T>(A)), rows_(A.rows) {}
    RowMajorView<const T> view() const { return {At_.view().data, rows_, At_.view().rows, At_.view().ld}; }
    RowMajorView<const T> rows(Range r) const {
        return {At_.view().at(0, r.begin), r.size(), At_.view().rows, At_.view().ld};
    }
    /// Whether nothing was written to it, or between its rows.
    bool is_untouched() const {
        return At_.padding_intact() && same_bits<T>(transposed<T>(At_.view()).view(), original_.view());
    }

private:
    Padded<T> At_;
    Matrix<T> original_;
    Index rows_;
};

template <class T>
class StorageOrder : public testing::Test {
protected:
    Context<Host> ctx{2};
};
TYPED_TEST_SUITE(StorageOrder, Scalars);

const std::pair<Index, Index> shapes[] = {{5003, 50}, {700, 70}, {3001, 7}, {64, 64}, {130, 1}, {9, 31}, {40, 200}};

/// `first` is a power of two by which the first column is multiplied: beyond the range of squares all columns are
/// scaled.
template <class T>
Matrix<T> matrix_of(Index m, Index n, T first) {
    Matrix<T> A = random_normal<T>(m, n);
    for (Index i = 0; i < m; ++i) A(i, 0) *= first;
    return A;
}

TYPED_TEST(StorageOrder, RAloneHasTheSameBits) {
    using T = TypeParam;
    const T huge = std::numeric_limits<T>::max() / 1024;
    for (const auto& [m, n] : shapes) {
        for (const T first : {T(1), huge}) {
            const Matrix<T> A = matrix_of<T>(m, n, first);
            const ByRows<T> rows(A.view(), 3);
            for (const Method method : {Method::Auto, Method::TSQR, Method::BlockedHouseholder, Method::CholeskyQR2}) {
                if (m < n && method == Method::CholeskyQR2) continue;
                SCOPED_TRACE(std::string(to_string(method)) + " " + std::to_string(m) + "x" + std::to_string(n));
                Options options;
                options.method = method;
                options.q = QForm::None;
                const Matrix<T> R = qr(this->ctx, A.view(), options).r();
                EXPECT_TRUE(same_bits<T>(qr(this->ctx, rows.view(), options).r().view(), R.view()));
            }
            EXPECT_TRUE(rows.is_untouched());
        }
    }
}

TYPED_TEST(StorageOrder, SingularValuesAndVectorsHaveTheSameBits) {
    using T = TypeParam;
    for (const auto& [m, n] : shapes) {
        const Matrix<T> A = random_normal<T>(m, n);
        const ByRows<T> rows(A.view(), 2);
        for (const bool vectors : {false, true}) {
            SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n));
            const SVD<T> f = svd(this->ctx, A.view(), vectors), g = svd(this->ctx, rows.view(), vectors);
            EXPECT_EQ(f.s, g.s);
            EXPECT_TRUE(same_bits<T>(f.U.view(), g.U.view()));
            EXPECT_TRUE(same_bits<T>(f.Vt.view(), g.Vt.view()));
        }
        EXPECT_TRUE(rows.is_untouched());
    }
}

TYPED_TEST(StorageOrder, LeastSquaresHasTheSameBits) {
    using T = TypeParam;
    for (const auto& [m, n] : shapes) {
        for (const T scale : {T(1), std::numeric_limits<T>::max() / 1024}) {
            Matrix<T> A = random_normal<T>(m, n);
            for (Index i = 0; i < m * n; ++i) A.data()[i] *= scale;
            const Matrix<T> B = random_normal<T>(m, 2, 3);
            const ByRows<T> rows(A.view(), 1);
            const auto f = least_squares(this->ctx, A.view(), B.view());
            const auto g = least_squares(this->ctx, rows.view(), B.view());
            EXPECT_TRUE(same_bits<T>(f.X.view(), g.X.view())) << m << "x" << n;
            EXPECT_EQ(f.residual_norms, g.residual_norms);
            EXPECT_EQ(f.condition, g.condition);
            EXPECT_TRUE(rows.is_untouched());
        }
    }
}

TYPED_TEST(StorageOrder, StreamsHaveTheSameBits) {
    using T = TypeParam;
    const Index m = 900, n = 21;
    const std::vector<Range> blocks = {{0, 5}, {5, 700}, {700, m}};
    const Matrix<T> A = random_normal<T>(m, n), b = random_normal<T>(m, 3, 5);
    const ByRows<T> A_rows(A.view(), 4), b_rows(b.view(), 1);
    StreamingR<T> f(this->ctx, n, 3), g(this->ctx, n, 3);
    StreamingQR<T> p(this->ctx, n), q(this->ctx, n);
    for (const Range r : blocks) {
        f.append(this->ctx, A.view().row_block(r), b.view().row_block(r));
        g.append(this->ctx, A_rows.rows(r), b_rows.rows(r));
        p.append(this->ctx, A.view().row_block(r));
        q.append(this->ctx, A_rows.rows(r));
    }
    EXPECT_TRUE(same_bits<T>(f.r().view(), g.r().view()));
    EXPECT_TRUE(same_bits<T>(f.solve(this->ctx).X.view(), g.solve(this->ctx).X.view()));
    for (auto r = blocks.rbegin(); r != blocks.rend(); ++r) {
        const Matrix<T> P = p.q_rows(this->ctx, A.view().row_block(*r)), Q = q.q_rows(this->ctx, A_rows.rows(*r));
        EXPECT_TRUE(same_bits<T>(P.view(), Q.view()));
    }
    EXPECT_TRUE(A_rows.is_untouched() && b_rows.is_untouched());
}

TYPED_TEST(StorageOrder, TheFirstBadEntryIsThatOfColumnMajorOrder) {
    using T = TypeParam;
    const T nan = std::numeric_limits<T>::quiet_NaN();
    for (const bool wide : {false, true}) {
        const Index m = wide ? 70 : 5000, n = wide ? 5000 : 70;
        Matrix<T> A = random_normal<T>(m, n);
        A(m - 1, 66) = A(0, 67) = A(m - 9, 66) = nan;
        const ByRows<T> rows(A.view(), 3);
        try {
            svd(this->ctx, rows.view(), /*vectors=*/false);
            ADD_FAILURE() << "accepted";
        } catch (const NonFiniteEntry& e) {
            EXPECT_EQ(e.row, m - 9);
            EXPECT_EQ(e.col, 66);
        }
    }
}

#ifndef QUOIN_SANITIZED
TYPED_TEST(StorageOrder, WhatOnlyReadsMakesNoCopy) {
    using T = TypeParam;
    const Index m = 200'000, n = 20;
    const Matrix<T> A = random_normal<T>(n, m);  // Aᵀ
    const RowMajorView<const T> rows{A.data(), m, n, n};
    const auto max_taken = [](auto work) {
        max_in_use = 0;
        const std::size_t before = in_use();
        work();
        return max_in_use > before ? max_in_use - before : 0;
    };
    const std::size_t some = m * n * sizeof(T) / 4;
    for (const Method method : {Method::Auto, Method::TSQR, Method::CholeskyQR2}) {
        Options options;
        options.method = method;
        options.q = QForm::None;
        EXPECT_LT(max_taken([&] { qr(this->ctx, rows, options); }), some) << to_string(method);
    }
    EXPECT_LT(max_taken([&] { svd(this->ctx, rows, /*vectors=*/false); }), some);
}
#endif

}  // namespace
}  // namespace quoin::test
