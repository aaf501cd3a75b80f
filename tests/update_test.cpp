// Updates of explicit factors: the laws of a factorization hold for the changed matrix.

#include "quoin/update.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"

namespace quoin::test {
namespace {

/// A, its factors in padded memory or as rows, and the number of their reflectors.
template <class T>
struct Factored {
    Factored(Context<Host>& ctx, MatrixView<const T> A_, bool square) : A(copy<T>(A_)) {
        const QR<T> f = qr(ctx, A_);
        const Index k = square ? A_.rows : std::min(A_.rows, A_.cols);
        Matrix<T> Rk = filled<T>(k, A_.cols, T(0)), thin = f.r();
        for (Index j = 0; j < A_.cols; ++j) std::copy_n(thin.view().at(0, j), thin.rows(), Rk.view().at(0, j));
        // entries below the diagonal are not used
        for (Index j = 0; j < A_.cols; ++j) {
            for (Index i = j + 1; i < k; ++i) Rk(i, j) = T(7);
        }
        Q = Padded<T>(f.q_block(ctx, {0, A_.rows}, {0, k}).view());
        R = Padded<T>(std::as_const(Rk).view());
    }
    ExplicitFactors<T> views() const { return {Q.view(), R.view()}; }

    Matrix<T> A;
    Padded<T> Q{0, 0}, R{0, 0};
};

/// [A(:, 0:at) U A(:, end:n)], or the same of rows.
template <class T>
Matrix<T> spliced(MatrixView<const T> A, Range out, MatrixView<const T> U, bool rows) {
    if (rows) return transposed<T>(spliced<T>(transposed<T>(A).view(), out, transposed<T>(U).view(), false).view());
    Matrix<T> B(A.rows, A.cols - out.size() + U.cols);
    for (Index j = 0; j < B.cols(); ++j) {
        const Index u = j - out.begin;
        const T* from = u < 0 ? A.at(0, j) : u < U.cols ? U.at(0, u) : A.at(0, out.end + u - U.cols);
        std::copy_n(from, A.rows, B.view().at(0, j));
    }
    return B;
}

/// Expects f to be factors of B, with the shapes of a square or thin Q, after `updates` changes of p rows or columns.
/// A change is two sweeps of n + p reflectors at most, beside the n of the first factorization. Its errors are relative
/// to `size`, the norms of all that went into B.
template <class T>
void expect_factors(const ThinQR<T>& f, MatrixView<const T> B, bool square, Index p, double size, Index updates = 1) {
    const Index m = B.rows, n = B.cols, k = square ? m : std::min(m, n);
    ASSERT_EQ(f.Q.rows(), m);
    ASSERT_EQ(f.Q.cols(), k);
    ASSERT_EQ(f.R.rows(), k);
    ASSERT_EQ(f.R.cols(), n);
    const Index reflectors = (1 + 2 * updates) * (std::min(m, n) + p) + 1;
    EXPECT_LE(orthogonality_error<T>(f.Q.view(), reflectors), law);
    EXPECT_TRUE(is_upper_trapezoidal<T>(f.R.view()));
    EXPECT_LE(difference<T>(product<T>(f.Q.view(), f.R.view()).view(), B, reflectors, size), law);
}

template <class T>
double norm(const Matrix<T>& A) {
    return frobenius_norm<T>(A.view());
}

template <class T>
class Update : public testing::Test {
protected:
    /// Expects the law of every change of A by p rows, columns or ranks at every third place.
    void expect_all(MatrixView<const T> A, bool square, Index p) {
        const Index m = A.rows, n = A.cols;
        square = square || m <= n;
        SCOPED_TRACE(shape_name(m, n) + (square ? " square " : " thin ") + std::to_string(p));
        const Factored<T> f(ctx, A, square);
        const double size = norm(f.A);
        const Padded<T> U(random_normal<T>(m, p, 5).view()), V(random_normal<T>(n, p, 6).view()),
            rows(random_normal<T>(p, n, 7).view());
        const double of_U = frobenius_norm<T>(U.view()), of_V = frobenius_norm<T>(V.view());
        for (const bool by_rows : {false, true}) {
            const Index all = by_rows ? m : n;
            std::vector<Index> places{0, all / 2, all};
            places.erase(std::unique(places.begin(), places.end()), places.end());
            for (const Index at : places) {
                SCOPED_TRACE((by_rows ? "rows at " : "columns at ") + std::to_string(at));
                const auto in = by_rows ? rows.view() : U.view();
                expect_factors<T>(
                    by_rows ? insert_rows<T>(ctx, f.views(), at, in) : insert_columns<T>(ctx, f.views(), at, in),
                    spliced<T>(A, {at, at}, in, by_rows).view(), square, p,
                    size + (by_rows ? frobenius_norm<T>(rows.view()) : of_U));
                const Range out{at, std::min(all, at + p)};
                expect_factors<T>(
                    by_rows ? delete_rows<T>(ctx, f.views(), out) : delete_columns<T>(ctx, f.views(), out),
                    spliced<T>(A, out, Matrix<T>(by_rows ? 0 : m, by_rows ? n : 0).view(), by_rows).view(), square, p,
                    size);
            }
        }
        Matrix<T> B = product<T>(U.view(), transposed<T>(V.view()).view());
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) B(i, j) += A(i, j);
        }
        expect_factors<T>(update<T>(ctx, f.views(), U.view(), V.view()), B.view(), square, p, size + of_U * of_V);
        EXPECT_TRUE(f.Q.padding_intact() && f.R.padding_intact() && U.padding_intact());
    }
    Context<Host> ctx{2};
};
TYPED_TEST_SUITE(Update, Scalars);

TYPED_TEST(Update, EveryShapeObeysTheLaw) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{90, 60},
                        {60, 60},
                        {60, 90},
                        {61, 60},
                        {300, 7},
                        {700, 1},
                        {1, 1},
                        {1, 6},
                        {3, 2},
                        {0, 3},
                        {3, 0},
                        {0, 0}}) {
        for (const Index p : {0, 1, 2, 20, 95}) {
            for (const bool square : {false, true}) {
                if (!square || m <= 300) this->expect_all(random_normal<T>(m, n).view(), square, p);
            }
        }
    }
}

TYPED_TEST(Update, EveryFiniteMatrixObeysTheLaw) {
    using T = TypeParam;
    for (const Gallery kind : gallery()) {
        SCOPED_TRACE(to_string(kind));
        const Matrix<T> A = generate<T>(kind, 50, 30);
        for (const Index p : {1, 8}) this->expect_all(A.view(), false, p);
    }
}

/// Columns in the span of Q, or of zeros, leave r_jj = 0 and an orthonormal Q.
TYPED_TEST(Update, DependentColumnsLeaveQOrthonormal) {
    using T = TypeParam;
    for (const Index m : {80, 42, 40}) {
        for (const bool zeros : {false, true}) {
            const Index n = 40, p = 5;
            const Factored<T> f(this->ctx, random_normal<T>(m, n).view(), false);
            const Matrix<T> U =
                zeros ? filled<T>(m, p, T(0)) : product<T>(f.A.view(), random_normal<T>(n, p, 3).view());
            for (const Index at : {Index(0), n}) {
                expect_factors<T>(insert_columns<T>(this->ctx, f.views(), at, U.view()),
                                  spliced<T>(f.A.view(), {at, at}, U.view(), false).view(), false, p,
                                  norm(f.A) + norm(U));
            }
            const Matrix<T> V = random_normal<T>(n, p, 4);
            Matrix<T> B = product<T>(U.view(), transposed<T>(V.view()).view());
            for (Index j = 0; j < n; ++j) {
                for (Index i = 0; i < m; ++i) B(i, j) += f.A(i, j);
            }
            expect_factors<T>(update<T>(this->ctx, f.views(), U.view(), V.view()), B.view(), m <= n, p,
                              norm(f.A) + norm(U) * norm(V));
        }
    }
}

/// One row has all of a column: without it the matrix is singular. Another one is 1 / u times as large as the others.
TYPED_TEST(Update, RowsThatCarryTheMatrixAreDeleted) {
    using T = TypeParam;
    for (const double scale : {1.0, 1 / unit_roundoff<T>}) {
        Matrix<T> A = random_normal<T>(60, 20);
        for (Index i = 0; i < 60; ++i) A(i, 4) = i == 11 ? static_cast<T>(scale) : T(0);
        const Factored<T> f(this->ctx, A.view(), false);
        const ThinQR<T> g = delete_rows<T>(this->ctx, f.views(), {11, 12});
        expect_factors<T>(g, spliced<T>(A.view(), {11, 12}, Matrix<T>(0, 20).view(), true).view(), false, 1, norm(A));
        EXPECT_LE(std::abs(g.R(4, 4)), law * 60 * unit_roundoff<T> * norm(A));
    }
}

/// A window of 60 rows slides over 160, and a column is taken away and comes back.
TYPED_TEST(Update, ErrorsOfManyUpdatesAddUp) {
    using T = TypeParam;
    const Index m = 60, n = 20, steps = 100;
    const Matrix<T> all = random_normal<T>(m + steps, n);
    const MatrixView<const T> A = all.view();
    ThinQR<T> f = qr(this->ctx, A.row_block({0, m}), {.q = QForm::Explicit}).take_thin(this->ctx);
    for (Index s = 0; s < steps; ++s) {
        f = delete_rows<T>(this->ctx, f, {0, 1});
        f = insert_rows<T>(this->ctx, f, m - 1, A.row_block({m + s, m + s + 1}));
        const Index j = s % n;
        f = delete_columns<T>(this->ctx, f, {j, j + 1});
        f = insert_columns<T>(this->ctx, f, j, A.block({s + 1, s + 1 + m}, {j, j + 1}));
    }
    expect_factors<T>(f, A.row_block({steps, steps + m}), false, 1, norm(all), 4 * steps);
}

TYPED_TEST(Update, StorageAndThreadsChangeNoBits) {
    using T = TypeParam;
    const Factored<T> f(this->ctx, random_normal<T>(1100, 70).view(), false);
    const Matrix<T> U = random_normal<T>(1100, 9, 3), Qt = transposed<T>(f.Q.view()), Rt = transposed<T>(f.R.view()),
                    Ut = transposed<T>(U.view());
    const auto by_rows = [](const Matrix<T>& At) {
        return InputView<T>(RowMajorView<const T>{At.data(), At.cols(), At.rows(), At.ld()});
    };
    const ThinQR<T> a = insert_columns<T>(this->ctx, f.views(), 30, U.view());
    Context<Host> one(1);
    const ThinQR<T> b = insert_columns<T>(one, {by_rows(Qt), by_rows(Rt)}, 30, by_rows(Ut));
    EXPECT_TRUE(same_bits<T>(a.Q.view(), b.Q.view()) && same_bits<T>(a.R.view(), b.R.view()));
    const ThinQR<T> c = delete_rows<T>(this->ctx, f.views(), {500, 509}),
                    d = delete_rows<T>(one, {by_rows(Qt), by_rows(Rt)}, {500, 509});
    EXPECT_TRUE(same_bits<T>(c.Q.view(), d.Q.view()) && same_bits<T>(c.R.view(), d.R.view()));
}

TYPED_TEST(Update, RefusesBadInput) {
    using T = TypeParam;
    const Factored<T> f(this->ctx, random_normal<T>(12, 5).view(), false);
    const auto of = f.views();
    Matrix<T> U = random_normal<T>(12, 2), V = random_normal<T>(2, 5);
    auto& ctx = this->ctx;
    for (const Index at : {-1, 6}) EXPECT_THROW(insert_columns<T>(ctx, of, at, U.view()), InvalidArgument);
    for (const Index at : {-1, 13}) EXPECT_THROW(insert_rows<T>(ctx, of, at, V.view()), InvalidArgument);
    for (const Range r : {Range{-1, 2}, {3, 2}, {4, 13}}) {
        EXPECT_THROW(delete_columns<T>(ctx, of, r), InvalidArgument);
        EXPECT_THROW(delete_rows<T>(ctx, of, r), InvalidArgument);
    }
    EXPECT_THROW(insert_columns<T>(ctx, of, 0, V.view()), InvalidArgument);
    EXPECT_THROW(insert_rows<T>(ctx, of, 0, U.view()), InvalidArgument);
    EXPECT_THROW(update<T>(ctx, of, U.view(), V.view()), InvalidArgument);
    EXPECT_THROW(delete_rows<T>(ctx, {of.Q, of.R.row_block({0, 4})}, {0, 1}), InvalidArgument);
    EXPECT_THROW(delete_rows<T>(ctx, {of.Q, of.R.col_block({0, 4})}, {0, 1}), InvalidArgument);
    try {
        update<T>(ctx, of, V.view(), U.view());
        FAIL();
    } catch (const InvalidArgument& error) {
        EXPECT_STREQ(error.what(), "update: U is 2 x 5, and must have 12 rows");
    }
    U(3, 1) = std::numeric_limits<T>::quiet_NaN();
    try {
        insert_columns<T>(ctx, of, 0, U.view());
        FAIL();
    } catch (const NonFiniteEntry& error) {
        EXPECT_EQ(error.row, 3);
        EXPECT_EQ(error.col, 1);
    }
    // unchecked, it propagates
    EXPECT_FALSE(is_finite<T>(insert_columns<T>(ctx, of, 0, U.view(), false).R.view()));
}

}  // namespace
}  // namespace quoin::test
