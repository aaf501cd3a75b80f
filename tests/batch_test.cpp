#include "quoin/batch.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include "checks.hpp"
#include "gallery.hpp"
#include "quoin/error.hpp"

namespace quoin::test {
namespace {

template <class T>
class BatchTest : public testing::Test {
protected:
    using Views = std::vector<MatrixView<T>>;
    Context<Host> ctx{2};

    static BatchView<const T> of(const std::vector<Matrix<T>>& matrices) {
        std::vector<MatrixView<const T>> views;
        for (const auto& A : matrices) views.push_back(A.view());
        return BatchView<const T>(std::move(views));
    }
    /// One array of copies of A.
    static Matrix<T> repeated(MatrixView<const T> A, Index count) {
        Matrix<T> all(A.rows, A.cols * count);
        for (Index b = 0; b < count; ++b) {
            for (Index j = 0; j < A.cols; ++j) std::copy_n(A.at(0, j), A.rows, all.view().at(0, b * A.cols + j));
        }
        return all;
    }
    static BatchView<const T> in(const Matrix<T>& all, Index n) {
        const Index m = all.rows();
        return {all.data(), m, n, all.ld(), m * n, n > 0 ? all.cols() / n : 0};
    }

    void expect_law(const BatchView<const T>& A, const BatchedQR<T>& f) {
        const Batch<T> Q = f.form_q(ctx), R = f.r(ctx);
        for (Index b = 0; b < A.count(); ++b) {
            SCOPED_TRACE(fmt::format("matrix {}, {}x{}", b, A.rows(b), A.cols(b)));
            const Index k = std::min(A.rows(b), A.cols(b));
            const MatrixView<const T> M(A.data(b), A.rows(b), A.cols(b), A.col_stride(b));
            ASSERT_EQ(f.rows(b), M.rows);
            ASSERT_EQ(f.cols(b), M.cols);
            ASSERT_TRUE(Q[b].rows == M.rows && Q[b].cols == k && R[b].rows == k && R[b].cols == M.cols);
            EXPECT_TRUE(is_upper_trapezoidal<T>(R[b]));
            EXPECT_LE(orthogonality_error<T>(Q[b], k), law);
            EXPECT_LE(column_residual_error<T>(M, Q[b], R[b]), law);
        }
    }
};
TYPED_TEST_SUITE(BatchTest, Scalars);

struct Shape {
    Index m, n;
};
/// Both sides of every edge of Tuning<Host>::in_lanes and of host::tiny_rows, odd and even numbers of rows.
constexpr Shape shapes[] = {{1, 1},     {2, 1},     {2, 2},     {3, 2},     {4, 1},    {4, 3},    {4, 4},
                            {3, 4},     {5, 4},     {3, 3},     {2, 7},     {16, 8},   {5, 1},    {1, 5},
                            {33, 32},   {64, 64},   {65, 65},   {64, 80},   {512, 16}, {129, 64}, {192, 192},
                            {193, 193}, {190, 194}, {1152, 32}, {1153, 32}, {70, 200}};

TYPED_TEST(BatchTest, EveryClassAndShapeInOneMixedBatch) {
    using T = TypeParam;
    std::vector<Matrix<T>> matrices;
    Index turn = 0;
    for (const Gallery matrix_class : gallery()) {
        for (const auto& [m, n] : in_turn(shapes, turn++)) matrices.push_back(generate<T>(matrix_class, m, n));
        matrices.push_back(generate<T>(matrix_class, 16, 8));
    }
    const auto A = this->of(matrices);
    const auto f = qr<T>(this->ctx, A);
    this->expect_law(A, f);

    // each has the bits that it has alone
    const Batch<T> R = f.r(this->ctx), Q = f.form_q(this->ctx);
    for (Index b = 0; b < A.count(); ++b) {
        SCOPED_TRACE(b);
        const auto alone = qr<T>(this->ctx, this->in(matrices[b], matrices[b].cols()));
        EXPECT_TRUE(same_bits<T>(alone.r(this->ctx)[0], R[b]));
        EXPECT_TRUE(same_bits<T>(alone.form_q(this->ctx)[0], Q[b]));
    }
}

/// Every result of a pivoted batch has the bits that its matrix has alone, and obeys the law for A P.
TYPED_TEST(BatchTest, PivotedMatricesHaveTheBitsOfOneMatrix) {
    using T = TypeParam;
    std::vector<Matrix<T>> matrices;
    Index turn = 0;
    for (const Gallery matrix_class : gallery()) {
        for (const auto& [m, n] : in_turn(shapes, turn++)) matrices.push_back(generate<T>(matrix_class, m, n));
        matrices.push_back(generate<T>(matrix_class, 16, 8));
    }
    matrices.emplace_back(3, 0);
    matrices.emplace_back(0, 3);
    const auto A = this->of(matrices);
    const Options pivoted{.pivoting = Pivoting{}};
    const auto f = qr<T>(this->ctx, A, pivoted);
    const Batch<T> R = f.r(this->ctx), Q = f.form_q(this->ctx),
                   R_alone = qr<T>(this->ctx, A, {.q = QForm::None, .pivoting = Pivoting{}}).r(this->ctx);
    for (Index b = 0; b < A.count(); ++b) {
        const Matrix<T>& M = matrices[b];
        SCOPED_TRACE(fmt::format("matrix {}, {}x{}", b, M.rows(), M.cols()));
        auto alone = qr<T, Host>(this->ctx, M.view(), {.method = Method::BlockedHouseholder, .pivoting = Pivoting{}});
        EXPECT_TRUE(same_bits<T>(R[b], alone.r(this->ctx).view()));
        EXPECT_TRUE(same_bits<T>(Q[b], alone.form_q(this->ctx).view()));
        const auto order = f.permutation(b), expected = alone.permutation();
        EXPECT_TRUE(std::equal(order.begin(), order.end(), expected.begin(), expected.end()));
        EXPECT_EQ(f.report(b).rank, alone.report().rank);
        const auto without_q = qr<T, Host>(this->ctx, M.view(), {.q = QForm::None, .pivoting = Pivoting{}});
        EXPECT_TRUE(same_bits<T>(R_alone[b], without_q.r(this->ctx).view()));
        Matrix<T> AP(M.rows(), M.cols());
        for (Index j = 0; j < M.cols(); ++j) std::copy_n(M.view().at(0, order[j]), M.rows(), AP.view().at(0, j));
        EXPECT_LE(column_residual_error<T>(AP.view(), Q[b], R[b]), law);
        // a batch of M alone; its columns are in range, unless the gallery has M out of range
        const Index k = std::min(M.rows(), M.cols());
        const BatchView<const T> only(M.data(), M.rows(), M.cols(), M.ld(), 0, 1);
        auto one = qr<T>(this->ctx, only, pivoted);
        EXPECT_TRUE(same_bits<T>(R[b], one.r(this->ctx)[0]));
        EXPECT_TRUE(std::equal(order.begin(), order.end(), one.permutation(0).begin()));
        EXPECT_EQ(one.report(0).rank, alone.report().rank);
        Matrix<T> C = random_normal<T>(M.rows(), 2, b), QtC = copy<T>(C.view());
        alone.apply_q(this->ctx, Side::Left, Op::Transpose, QtC.view());
        EXPECT_TRUE(same_bits<T>(one.apply_q(this->ctx, Op::Transpose, C.view())[0], QtC.view()));
        Batch<T> V_R(this->ctx, M.rows(), M.cols(), 1), tau(this->ctx, k, 1, 1);
        one.lapack(this->ctx, V_R.view(), tau.view());
        const LapackQR<T> expected_format = to_lapack(this->ctx, std::move(alone));
        EXPECT_TRUE(same_bits<T>(V_R[0], expected_format.V_R.view()));
        EXPECT_TRUE(same_bits<T>(tau[0], expected_format.tau.view()));
        EXPECT_TRUE(same_bits<T>(std::move(one).take_q(this->ctx)[0], Q[b]));
        EXPECT_TRUE(same_bits<T>(orthonormalize<T>(this->ctx, only, pivoted)[0], Q[b]));
        EXPECT_TRUE(same_bits<T>(qr<T>(this->ctx, only, {.q = QForm::None, .pivoting = Pivoting{}}).r(this->ctx)[0],
                                 R_alone[b]));
    }
    EXPECT_TRUE(qr<T>(this->ctx, A).permutation(0).empty());
}

TYPED_TEST(BatchTest, PivotedSystemsOfAnyRank) {
    using T = TypeParam;
    std::vector<Matrix<T>> matrices;
    for (const Gallery matrix_class : {Gallery::RandomNormal, Gallery::RankDeficientExact, Gallery::DuplicateColumns})
        matrices.push_back(generate<T>(matrix_class, 30, 6));
    const auto A = this->of(matrices);
    const Matrix<T> B = random_normal<T>(30, 2, 5);
    const BatchView<const T> all(B.data(), 30, 2, 30, 0, 3);
    for (const Index most : {6, 2}) {
        const Pivoting pivoting{.max_rank = most < 6 ? most : 0};
        const auto f = qr<T>(this->ctx, A, {.pivoting = pivoting});
        const auto solved = least_squares<T>(this->ctx, f, all);
        for (Index b = 0; b < 3; ++b) {
            const Options options{.method = Method::BlockedHouseholder, .pivoting = pivoting};
            const auto alone = least_squares(this->ctx, qr<T, Host>(this->ctx, matrices[b].view(), options), B.view());
            EXPECT_TRUE(same_bits<T>(solved.X[b], alone.X.view()));
            EXPECT_EQ(solved.ranks[b], alone.rank);
            EXPECT_EQ(f.report(b).rank, std::min<Index>(most, b == 0 ? 6 : 3));
        }
    }
}

/// With limits each matrix has its own rank, and zeros beyond it, up to the largest rank of its shape.
TYPED_TEST(BatchTest, PivotedMatricesStopAtTheirLimits) {
    using T = TypeParam;
    std::vector<Matrix<T>> matrices;
    for (const Index rank : {4, 1, 6, 0, 3}) {
        for (const auto& [m, n] : {Shape{12, 6}, Shape{6, 12}})
            matrices.push_back(product<T>(random_normal<T>(m, rank, rank).view(), random_normal<T>(rank, n, 7).view()));
    }
    matrices.push_back(random_normal<T>(40, 30));
    const auto A = this->of(matrices);
    for (const Pivoting& limits :
         {Pivoting{.max_rank = 3}, Pivoting{.relative_tolerance = 1e-3},
          Pivoting{.max_rank = 5, .relative_frobenius = 1e-3}, Pivoting{.kind = Pivots::Strong, .max_rank = 4}}) {
        const auto f = qr<T>(this->ctx, A, {.pivoting = limits});
        const Batch<T> R = f.r(this->ctx), Q = f.form_q(this->ctx);
        std::vector<std::pair<Index, Index>> like_A, columns;
        std::map<Index, Index> largest;  // rank, for each number of rows
        for (Index b = 0; b < A.count(); ++b) {
            like_A.emplace_back(A.rows(b), A.cols(b));
            columns.emplace_back(f.k(b), 1);
            largest[A.rows(b)] = std::max(largest[A.rows(b)], f.report(b).rank);
        }
        Batch<T> V_R(this->ctx, like_A), tau(this->ctx, columns);
        f.lapack(this->ctx, V_R.view(), tau.view());
        for (Index b = 0; b < A.count(); ++b) {
            SCOPED_TRACE(fmt::format("matrix {}, {}x{}", b, A.rows(b), A.cols(b)));
            const Options options{.method = Method::BlockedHouseholder, .pivoting = limits};
            auto alone = qr<T, Host>(this->ctx, matrices[b].view(), options);
            const Index rank = alone.report().rank, k = f.k(b);
            EXPECT_EQ(f.report(b).rank, rank);
            EXPECT_EQ(k, largest[A.rows(b)]);
            const auto order = f.permutation(b), expected = alone.permutation();
            EXPECT_TRUE(std::equal(order.begin(), order.end(), expected.begin(), expected.end()));
            const auto padded = [&](MatrixView<const T> X, Index rows, Index cols) {
                Matrix<T> all = filled<T>(rows, cols, 0);
                for (Index j = 0; j < X.cols; ++j) std::copy_n(X.at(0, j), X.rows, all.view().at(0, j));
                return all;
            };
            EXPECT_TRUE(same_bits<T>(R[b], padded(alone.r(this->ctx).view(), k, A.cols(b)).view()));
            EXPECT_TRUE(same_bits<T>(Q[b], padded(alone.form_q(this->ctx).view(), A.rows(b), k).view()));
            const LapackQR<T> factors = to_lapack(this->ctx, std::move(alone));
            EXPECT_TRUE(same_bits<T>(V_R[b], factors.V_R.view()));
            EXPECT_TRUE(same_bits<T>(tau[b], padded(factors.tau.view(), k, 1).view()));
        }
    }
    EXPECT_THROW(qr<T>(this->ctx, A, {.pivoting = Pivoting{.max_rank = 7}}), InvalidArgument);
}

TYPED_TEST(BatchTest, PivotingInTheCallersMemoryIsRefused) {
    using T = TypeParam;
    const Matrix<T> all = random_normal<T>(8, 12);
    const auto A = this->in(all, 4);
    const Options pivoted{.pivoting = Pivoting{}};
    Batch<T> Q(this->ctx, 8, 4, 3), R(this->ctx, 4, 4, 3), tau(this->ctx, 4, 1, 3);
    EXPECT_THROW(qr<T>(this->ctx, A, Q.view(), R.view(), pivoted), InvalidArgument);
    EXPECT_THROW(qr_lapack<T>(this->ctx, A, Q.view(), tau.view(), pivoted), InvalidArgument);
    EXPECT_THROW(least_squares<T>(this->ctx, A, A, {}, pivoted), InvalidArgument);
    Matrix<T> bad = copy<T>(all.view());
    bad(5, 6) = std::numeric_limits<T>::quiet_NaN();
    try {
        qr<T>(this->ctx, this->in(bad, 4), pivoted);
        ADD_FAILURE() << "no NonFiniteEntry";
    } catch (const NonFiniteEntry& e) {
        EXPECT_TRUE(e.row == 5 && e.col == 2);
        EXPECT_NE(std::string(e.what()).find("matrix 1"), std::string::npos) << e.what();
    }
}

TYPED_TEST(BatchTest, AnyNumberOfMatricesOfOneShape) {
    using T = TypeParam;
    for (const auto& [m, n] : shapes) {
        for (const Index count : {1, 2, 3, 4, 5, 15, 16, 17, 33}) {
            if (m * n > 4096 && count != 3 && count != 17) continue;  // a part of a group; whole groups and a part
            SCOPED_TRACE(fmt::format("{} of {}x{}", count, m, n));
            const Matrix<T> all = random_normal<T>(m, n * count);
            this->expect_law(this->in(all, n), qr<T>(this->ctx, this->in(all, n)));
        }
    }
}

TYPED_TEST(BatchTest, HugeTinyAndDenormalEntriesInOneGroup) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(20, 6);
    std::vector<Matrix<T>> matrices;
    for (const double factor :
         {1.0, 1e-3 * std::numeric_limits<T>::max(), 1e3 * std::numeric_limits<T>::min(),
          8.0 * std::numeric_limits<T>::denorm_min(), std::sqrt(double(std::numeric_limits<T>::min())), 0.0}) {
        matrices.push_back(copy<T>(A.view()));
        for (Index i = 0; i < 20 * 6; ++i) matrices.back().data()[i] = static_cast<T>(A.data()[i] * factor);
    }
    // what is left of the second column is too small to be squared
    matrices.push_back(copy<T>(A.view()));
    for (Index i = 0; i < 20; ++i) {
        matrices.back()(i, 1) =
            i == 0 ? T(1) : static_cast<T>(A(i, 1) * std::sqrt(double(std::numeric_limits<T>::min())));
        matrices.back()(i, 0) = i == 0;
    }
    const auto A_all = this->of(matrices);
    this->expect_law(A_all, qr<T>(this->ctx, A_all));
}

TYPED_TEST(BatchTest, RIsThatOfLapack) {
    using T = TypeParam;
    for (const auto& [m, n] : shapes) {
        SCOPED_TRACE(fmt::format("{}x{}", m, n));
        const Index k = std::min(m, n), count = 5;
        const Matrix<T> all = random_normal<T>(m, n * count);
        const auto f = qr<T>(this->ctx, this->in(all, n));
        Batch<T> V_R(this->ctx, m, n, count), tau(this->ctx, k, 1, count);
        f.lapack(this->ctx, V_R.view(), tau.view());
        const Batch<T> R = f.r(this->ctx), Q = f.form_q(this->ctx);
        for (Index b = 0; b < count; ++b) {
            // the same reflectors: signs and all
            Matrix<double> W(m, n);
            std::vector<double> t(k);
            for (Index i = 0; i < m * n; ++i) W.data()[i] = all.data()[b * m * n + i];
            const double norm = frobenius_norm<double>(W.view());
            ASSERT_EQ(LAPACKE_dgeqrf(LAPACK_COL_MAJOR, m, n, W.data(), W.ld(), t.data()), 0);
            // ‖R⁻¹‖ of a random square matrix of 64 columns is in the hundreds
            const double tolerance = 2000 * law * k * unit_roundoff<T>;
            for (Index j = 0; j < n; ++j) {
                for (Index i = 0; i < m; ++i) EXPECT_NEAR(V_R[b](i, j), W(i, j), tolerance * (i <= j ? norm : 1));
                for (Index i = 0; i < k; ++i) EXPECT_EQ(R[b](i, j), i <= j ? V_R[b](i, j) : T(0));
            }
            // and LAPACK makes the same Q of them
            Matrix<T> from_lapack = copy<T>(MatrixView<const T>(V_R[b]).col_block({0, k}));
            int info;
            if constexpr (sizeof(T) == sizeof(float)) {
                info = LAPACKE_sorgqr(LAPACK_COL_MAJOR, m, k, k, from_lapack.data(), from_lapack.ld(), tau[b].data);
            } else {
                info = LAPACKE_dorgqr(LAPACK_COL_MAJOR, m, k, k, from_lapack.data(), from_lapack.ld(), tau[b].data);
            }
            ASSERT_EQ(info, 0);
            EXPECT_LE(difference<T>(from_lapack.view(), Q[b], k, std::sqrt(double(k))), law);
        }
    }
}

TYPED_TEST(BatchTest, LapackFormatInPlaceAndElsewhere) {
    using T = TypeParam;
    // as `qr` of a batch takes them, also where one matrix has another method
    const Options reflectors{.method = Method::BlockedHouseholder};
    for (const Shape& shape : shapes) {
        const Index m = shape.m, n = shape.n;
        for (const Index count : {1, 5, 37}) {
            SCOPED_TRACE(fmt::format("{} of {}x{}", count, m, n));
            const Index k = std::min(m, n);
            Matrix<T> all = random_normal<T>(m, n * count);
            Batch<T> V_R(this->ctx, m, n, count), tau(this->ctx, k, 1, count);
            qr<T>(this->ctx, this->in(all, n)).lapack(this->ctx, V_R.view(), tau.view());
            const auto expect_same = [&](MatrixView<const T> factors, MatrixView<const T> scalars) {
                for (Index b = 0; b < count; ++b) {
                    EXPECT_TRUE(same_bits<T>(factors.col_block({b * n, (b + 1) * n}), V_R[b]));
                    EXPECT_TRUE(same_bits<T>(scalars.col_block({b, b + 1}), tau[b]));
                }
            };
            Padded<T> other(m, n * count), other_tau(k, count);
            const auto to = other.view(), to_tau = other_tau.view();
            qr_lapack<T>(this->ctx, this->in(all, n), BatchView<T>(to.data, m, n, to.ld, n * to.ld, count),
                         BatchView<T>(to_tau.data, k, 1, to_tau.ld, to_tau.ld, count), reflectors);
            expect_same(to, to_tau);
            EXPECT_TRUE(other.padding_intact() && other_tau.padding_intact());

            Matrix<T> dense_tau = filled<T>(k, count, std::numeric_limits<T>::quiet_NaN());
            const BatchView<T> scalars(dense_tau.data(), k, 1, k, k, count);
            Matrix<T> dense = filled<T>(m, n * count, std::numeric_limits<T>::quiet_NaN());
            qr_lapack<T>(this->ctx, this->in(all, n), BatchView<T>(dense.data(), m, n, m, m * n, count), scalars,
                         reflectors);
            expect_same(dense.view(), dense_tau.view());
            qr_lapack<T>(this->ctx, BatchView<T>(all.data(), m, n, m, m * n, count), scalars, reflectors);
            expect_same(all.view(), dense_tau.view());
        }
    }
}

TYPED_TEST(BatchTest, AFailureInPlaceNamesTheEntry) {
    using T = TypeParam;
    for (const auto& [m, n] : {Shape{4, 3}, Shape{20, 12}, Shape{200, 195}}) {
        SCOPED_TRACE(fmt::format("{}x{}", m, n));
        const Index count = 37;
        Matrix<T> all = random_normal<T>(m, n * count), tau(std::min(m, n), count);
        const BatchView<T> A(all.data(), m, n, m, m * n, count);
        // in the last block of columns
        all(1, 18 * n + n - 1) = std::numeric_limits<T>::infinity();
        all(m - 1, 18 * n + n - 2) = std::numeric_limits<T>::quiet_NaN();
        try {
            qr_lapack<T>(this->ctx, A, BatchView<T>(tau.data(), tau.rows(), 1, tau.rows(), tau.rows(), count));
            FAIL() << "NaN was accepted";
        } catch (const NonFiniteEntry& e) {
            EXPECT_EQ(e.row, m - 1);
            EXPECT_EQ(e.col, n - 2);
            EXPECT_NE(std::string(e.what()).find("matrix 18 of the batch"), std::string::npos) << e.what();
        }
    }
}

TYPED_TEST(BatchTest, NeighboursDoNotChangeBits) {
    using T = TypeParam;
    Options unchecked;
    unchecked.check_finite = false;
    for (const auto& [m, n] : shapes) {
        SCOPED_TRACE(fmt::format("{}x{}", m, n));
        const Index count = 48;
        Matrix<T> all = random_normal<T>(m, n * count);
        const auto clean = qr<T>(this->ctx, this->in(all, n));
        const Batch<T> R = clean.r(this->ctx), Q = clean.form_q(this->ctx);
        // one in each 16: columns that are scaled, zeros, NaN
        const double bad[] = {1e-3 * std::numeric_limits<T>::max(), 0, std::numeric_limits<double>::quiet_NaN()};
        for (Index i = 0; i < 3; ++i) {
            for (Index j = 0; j < m * n; ++j) {
                T& a = all.data()[16 * i * m * n + j];
                a = static_cast<T>(a * bad[i]);
            }
        }
        const auto f = qr<T>(this->ctx, this->in(all, n), unchecked);
        const Batch<T> S = f.r(this->ctx), P = f.form_q(this->ctx);
        for (Index b = 0; b < count; ++b) {
            if (b % 16 == 0) continue;
            EXPECT_TRUE(same_bits<T>(R[b], S[b])) << b;
            EXPECT_TRUE(same_bits<T>(Q[b], P[b])) << b;
        }
    }
}

TYPED_TEST(BatchTest, AppliesQ) {
    using T = TypeParam;
    std::vector<Matrix<T>> matrices, right_sides;
    Index p = 0;
    for (const auto& [m, n] : shapes) {
        for (int twice = 0; twice < 2; ++twice) {
            matrices.push_back(random_normal<T>(m, n, p + 1));
            right_sides.push_back(random_normal<T>(m, p++ % 5));
        }
    }
    const auto f = qr<T>(this->ctx, this->of(matrices));
    constexpr Op ops[] = {Op::None, Op::Transpose};
    std::vector<Padded<T>> C[2];
    std::vector<MatrixView<T>> views[2];
    for (int i = 0; i < 2; ++i) {
        C[i].reserve(right_sides.size());
        for (const auto& B : right_sides) views[i].push_back(C[i].emplace_back(MatrixView<const T>(B.view())).view());
        f.apply_q(this->ctx, ops[i], BatchView<T>(views[i]));
    }
    for (std::size_t b = 0; b < matrices.size(); ++b) {
        SCOPED_TRACE(b);
        const Index m = matrices[b].rows(), k = std::min(m, matrices[b].cols());
        // the m×m Q, from the batch's own product with I
        const auto one = qr<T>(this->ctx, this->in(matrices[b], matrices[b].cols()));
        const Batch<T> Q = one.apply_q(this->ctx, Op::None, identity<T>(m).view());
        // of the tallest ones the products say enough
        if (m <= 512) {
            EXPECT_LE(orthogonality_error<T>(Q[0], k), law);
        }
        for (int i = 0; i < 2; ++i) {
            EXPECT_LE(product_error<T>(Side::Left, ops[i], Q[0], right_sides[b].view(), views[i][b], k), law);
            EXPECT_TRUE(C[i][b].padding_intact());
        }
    }
}

/// Memory of `count` matrices with some strides, NaN wherever no entry of them lies.
template <class T>
struct Strided {
    Strided(Index rows_, Index cols_, Index row, Index col, Index count_)
        : rows(rows_), cols(cols_), row_stride(row), col_stride(col), count(count_) {
        stride = rows * row_stride + cols * col_stride + 1;
        memory.assign(static_cast<std::size_t>(stride * count), std::numeric_limits<T>::quiet_NaN());
    }
    BatchView<T> view() { return {memory.data(), rows, cols, row_stride, col_stride, stride, count}; }
    T& at(Index b, Index i, Index j) {
        return memory[static_cast<std::size_t>(b * stride + i * row_stride + j * col_stride)];
    }
    /// Whether it has the bits of `expected`, and nothing else was written.
    bool is(const Batch<T>& expected) {
        std::size_t written = 0;
        for (Index b = 0; b < count; ++b) {
            for (Index j = 0; j < cols; ++j) {
                for (Index i = 0; i < rows; ++i) {
                    const T there = at(b, i, j), wanted = expected[b](i, j);
                    if (std::memcmp(&there, &wanted, sizeof there) != 0) return false;
                }
            }
        }
        for (const T x : memory) written += !std::isnan(x);
        return written == static_cast<std::size_t>(rows * cols * count);
    }

    Index rows, cols, row_stride, col_stride, stride, count;
    std::vector<T> memory;
};

TYPED_TEST(BatchTest, AnyStridesInAndOut) {
    using T = TypeParam;
    const Index count = 19, p = 3;
    for (const auto& [m, n] :
         {Shape{3, 3}, Shape{4, 2}, Shape{4, 3}, Shape{2, 1}, Shape{3, 5}, Shape{9, 6}, Shape{17, 12}, Shape{33, 33}}) {
        const Index k = std::min(m, n);
        const Matrix<T> all = random_normal<T>(m, n * count), C = random_normal<T>(m, p * count);
        Batch<T> Q(this->ctx, m, k, count), R(this->ctx, k, n, count), V_R(this->ctx, m, n, count),
            tau(this->ctx, k, 1, count);
        qr<T>(this->ctx, this->in(all, n), Q.view(), R.view());
        const auto f = qr<T>(this->ctx, this->in(all, n));
        f.lapack(this->ctx, V_R.view(), tau.view());
        Batch<T> products(this->ctx, m, p, count);
        f.apply_q(this->ctx, Op::Transpose, this->in(C, p), products.view());
        // by columns and by rows, dense or with gaps
        for (const auto& strides : std::initializer_list<Index (*)(Index, Index, bool)>{
                 [](Index rows, Index, bool of_rows) { return of_rows ? 1 : rows + 2; },
                 [](Index, Index cols, bool of_rows) { return of_rows ? cols : 1; },
                 [](Index rows, Index, bool of_rows) { return of_rows ? 2 : 2 * rows + 1; },
                 [](Index, Index cols, bool of_rows) { return of_rows ? 3 * cols + 1 : 3; }}) {
            const auto memory = [&](Index rows, Index cols) {
                return Strided<T>(rows, cols, strides(rows, cols, true), strides(rows, cols, false), count);
            };
            SCOPED_TRACE(fmt::format("{}x{}, strides {} and {}", m, n, strides(m, n, true), strides(m, n, false)));
            auto A = memory(m, n), from = memory(m, p);
            for (Index b = 0; b < count; ++b) {
                for (Index i = 0; i < m; ++i) {
                    for (Index j = 0; j < n; ++j) A.at(b, i, j) = all(i, b * n + j);
                    for (Index j = 0; j < p; ++j) from.at(b, i, j) = C(i, b * p + j);
                }
            }
            auto Q_there = memory(m, k), R_there = memory(k, n), V_R_there = memory(m, n), tau_there = memory(k, 1),
                 to = memory(m, p);
            qr<T>(this->ctx, BatchView<const T>(A.view()), Q_there.view(), R_there.view());
            EXPECT_TRUE(Q_there.is(Q));
            EXPECT_TRUE(R_there.is(R));
            f.apply_q(this->ctx, Op::Transpose, from.view(), to.view());
            EXPECT_TRUE(to.is(products));
            f.lapack(this->ctx, V_R_there.view(), tau_there.view());
            EXPECT_TRUE(V_R_there.is(V_R));
            EXPECT_TRUE(tau_there.is(tau));
            // columns side by side from what lies so
            Batch<T> V_R_here(this->ctx, m, n, count), tau_here(this->ctx, k, 1, count);
            qr_lapack<T>(this->ctx, BatchView<const T>(A.view()), V_R_here.view(), tau_here.view());
            const Batch<T> R_here = qr<T>(this->ctx, BatchView<const T>(A.view())).r(this->ctx);
            for (Index b = 0; b < count; ++b) {
                EXPECT_TRUE(same_bits<T>(V_R_here[b], V_R[b]));
                EXPECT_TRUE(same_bits<T>(tau_here[b], tau[b]));
                EXPECT_TRUE(same_bits<T>(R_here[b], R[b]));
            }
            qr_lapack<T>(this->ctx, A.view(), tau_there.view());
            EXPECT_TRUE(A.is(V_R)) << "in place";
            EXPECT_TRUE(tau_there.is(tau));
        }
    }
}

TYPED_TEST(BatchTest, OneRightSideForAll) {
    using T = TypeParam;
    const Index m = 20, n = 6, count = 9;
    const Matrix<T> all = random_normal<T>(m, n * count), C = random_normal<T>(m, 3);
    const auto f = qr<T>(this->ctx, this->in(all, n));
    const Batch<T> products = f.apply_q(this->ctx, Op::Transpose, C.view());
    Batch<T> each(this->ctx, m, 3, count);
    for (Index b = 0; b < count; ++b) {
        for (Index i = 0; i < m * 3; ++i) each[b].data[i] = C.data()[i];
    }
    f.apply_q(this->ctx, Op::Transpose, each.view());
    for (Index b = 0; b < count; ++b) EXPECT_TRUE(same_bits<T>(products[b], each[b]));
}

TYPED_TEST(BatchTest, RowMajorAndOtherStrides) {
    using T = TypeParam;
    for (const auto& [m, n] : shapes) {
        const Index count = 5, k = std::min(m, n);
        const Matrix<T> all = random_normal<T>(m, n * count);
        const auto expected = qr<T>(this->ctx, this->in(all, n));
        // C order with a gap after each row and each matrix
        Padded<T> rows(filled<T>(n, m * count, T(0)).view());
        for (Index b = 0; b < count; ++b) {
            for (Index i = 0; i < m; ++i) {
                for (Index j = 0; j < n; ++j) rows.view()(j, b * m + i) = all(i, b * n + j);
            }
        }
        const Index ld = rows.view().ld;
        const auto f = qr<T>(this->ctx, BatchView<const T>(rows.view().data, m, n, ld, 1, m * ld, count));
        EXPECT_TRUE(rows.padding_intact());
        const Batch<T> R = f.r(this->ctx), R_expected = expected.r(this->ctx), Q_expected = expected.form_q(this->ctx);
        // results in C order too
        Padded<T> Q(k, m * count);
        f.form_q(this->ctx, BatchView<T>(Q.view().data, m, k, Q.view().ld, 1, m * Q.view().ld, count));
        EXPECT_TRUE(Q.padding_intact());
        for (Index b = 0; b < count; ++b) {
            EXPECT_TRUE(same_bits<T>(R[b], R_expected[b]));
            EXPECT_TRUE(same_bits<T>(transposed<T>(Q.view().col_block({b * m, (b + 1) * m})).view(), Q_expected[b]));
        }
    }
}

/// A list in which each matrix lies before the one listed before it, aligned to its entries alone, and some are empty.
TYPED_TEST(BatchTest, ListsInAnyOrderOfAddresses) {
    using T = TypeParam;
    std::vector<Matrix<T>> matrices;
    Index size = 1;
    for (const auto& [m, n] : shapes) {
        for (const auto& [rows, cols] : {std::pair{m, n}, std::pair{Index(0), n}, std::pair{m, n}}) {
            matrices.push_back(random_normal<T>(rows, cols, static_cast<std::uint64_t>(size)));
            size += rows * cols + 1;
        }
    }
    const auto expected = qr<T>(this->ctx, this->of(matrices));
    const Batch<T> R = expected.r(this->ctx);
    std::vector<T> memory(static_cast<std::size_t>(size));
    std::vector<MatrixView<T>> views, taus;
    std::vector<Matrix<T>> tau;
    T* end = memory.data() + size;
    for (const auto& A : matrices) {
        end -= A.rows() * A.cols() + 1;
        std::copy_n(A.data(), A.rows() * A.cols(), end);
        views.emplace_back(end, A.rows(), A.cols(), std::max<Index>(1, A.rows()));
        tau.emplace_back(std::min(A.rows(), A.cols()), 1);
    }
    for (auto& t : tau) taus.push_back(t.view());
    const BatchView<T> list(views);
    const Batch<T> found = qr<T>(this->ctx, list).r(this->ctx);
    qr_lapack<T>(this->ctx, list, BatchView<T>(taus), {.method = Method::BlockedHouseholder});
    for (Index b = 0; b < std::ssize(matrices); ++b) {
        SCOPED_TRACE(fmt::format("matrix {}, {}x{}", b, matrices[b].rows(), matrices[b].cols()));
        EXPECT_TRUE(same_bits<T>(found[b], R[b]));
        for (Index j = 0; j < views[b].cols; ++j) {
            for (Index i = 0; i <= std::min(j, views[b].rows - 1); ++i) EXPECT_EQ(views[b](i, j), R[b](i, j));
        }
    }
}

TYPED_TEST(BatchTest, ThreadsDoNotChangeBits) {
    using T = TypeParam;
    Context<Host> one(1), four(4);
    for (const auto& [m, n] : shapes) {
        const Index count = 37;
        const Matrix<T> all = random_normal<T>(m, n * count);
        const auto f = qr<T>(one, this->in(all, n)), g = qr<T>(four, this->in(all, n));
        const Batch<T> R = f.r(one), S = g.r(four), Q = f.form_q(one), P = g.form_q(four);
        for (Index b = 0; b < count; ++b) {
            EXPECT_TRUE(same_bits<T>(R[b], S[b]));
            EXPECT_TRUE(same_bits<T>(Q[b], P[b]));
        }
    }
}

TYPED_TEST(BatchTest, NothingToDo) {
    using T = TypeParam;
    EXPECT_EQ(qr<T>(this->ctx, BatchView<const T>(nullptr, 3, 3, 3, 9, 0)).count(), 0);
    EXPECT_EQ(qr<T>(this->ctx, BatchView<const T>(std::vector<MatrixView<const T>>{})).r(this->ctx).count(), 0);
    std::vector<Matrix<T>> matrices;
    matrices.push_back(random_normal<T>(5, 3));
    matrices.push_back(Matrix<T>(0, 4));
    matrices.push_back(Matrix<T>(4, 0));
    matrices.push_back(Matrix<T>(0, 0));
    const auto f = qr<T>(this->ctx, this->of(matrices));
    this->expect_law(this->of(matrices), f);
}

TYPED_TEST(BatchTest, NonFiniteEntriesAreNamedOrStayInTheirMatrix) {
    using T = TypeParam;
    for (const auto& [m, n] : {Shape{6, 4}, Shape{90, 70}}) {
        const Index count = 21;
        Matrix<T> all = random_normal<T>(m, n * count);
        const auto clean = qr<T>(this->ctx, this->in(all, n));
        all(m - 1, 18 * n + 1) = std::numeric_limits<T>::infinity();
        all(2, 17 * n + 3) = std::numeric_limits<T>::quiet_NaN();
        try {
            (void)qr<T>(this->ctx, this->in(all, n));
            FAIL() << "NaN was accepted";
        } catch (const NonFiniteEntry& e) {
            EXPECT_EQ(e.row, 2);
            EXPECT_EQ(e.col, 3);
            EXPECT_NE(std::string(e.what()).find("matrix 17 of the batch"), std::string::npos) << e.what();
        }
        Options options;
        options.check_finite = false;
        const auto f = qr<T>(this->ctx, this->in(all, n), options);
        const Batch<T> R = f.r(this->ctx), R_clean = clean.r(this->ctx);
        for (Index b = 0; b < count; ++b) {
            if (b == 17 || b == 18) {
                EXPECT_FALSE(is_finite<T>(R[b]));
            } else {
                EXPECT_TRUE(same_bits<T>(R[b], R_clean[b]));
            }
        }
    }
}

TYPED_TEST(BatchTest, OtherMethodsFactorEachMatrixAsQrDoes) {
    using T = TypeParam;
    const Index m = 60, n = 7, count = 5;
    const Matrix<T> all = random_normal<T>(m, n * count);
    for (const Method method : {Method::TSQR, Method::CholeskyQR2}) {
        Options options;
        options.method = method;
        const auto f = qr<T>(this->ctx, this->in(all, n), options);
        const Batch<T> R = f.r(this->ctx);
        for (Index b = 0; b < count; ++b) {
            EXPECT_EQ(f.report(b).method, method);
            EXPECT_TRUE(same_bits<T>(
                R[b], qr<T>(this->ctx, all.view().col_block({b * n, (b + 1) * n}), options).r(this->ctx).view()));
        }
    }
    Options verify;
    verify.verify = true;
    EXPECT_GE(qr<T>(this->ctx, this->in(all, n), verify).report(3).orthogonality, 0);
}

TYPED_TEST(BatchTest, RefusesWhatDoesNotFit) {
    using T = TypeParam;
    Matrix<T> all = random_normal<T>(6, 4 * 3);
    const auto f = qr<T>(this->ctx, this->in(all, 4));
    Batch<T> fewer(this->ctx, 4, 4, 2), wide(this->ctx, 4, 5, 3);
    EXPECT_THROW(f.r(this->ctx, fewer.view()), InvalidArgument);
    EXPECT_THROW(f.r(this->ctx, wide.view()), InvalidArgument);
    EXPECT_THROW(f.form_q(this->ctx, wide.view()), InvalidArgument);
    EXPECT_THROW(f.apply_q(this->ctx, Op::None, wide.view()), InvalidArgument);
    EXPECT_THROW((void)f.apply_q(this->ctx, Op::None, Matrix<T>(5, 1).view()), InvalidArgument);
    EXPECT_THROW(f.lapack(this->ctx, wide.view(), fewer.view()), InvalidArgument);
    Batch<T> factors(this->ctx, 6, 4, 3), tau(this->ctx, 4, 1, 3);
    EXPECT_THROW(qr_lapack<T>(this->ctx, this->in(all, 4), factors.view(), fewer.view()), InvalidArgument);
    EXPECT_THROW(qr_lapack<T>(this->ctx, this->in(all, 4), wide.view(), tau.view()), InvalidArgument);
    EXPECT_THROW((void)qr<T>(this->ctx, BatchView<const T>(nullptr, 3, 3, 3, 9, 2)), InvalidArgument);
    EXPECT_THROW((void)qr<T>(this->ctx, BatchView<const T>(all.data(), -1, 3, 3, 9, 2)), InvalidArgument);
    EXPECT_THROW((void)qr<T>(this->ctx, BatchView<const T>(all.data(), 2, 3, 2, 6, -2)), InvalidArgument);
    const std::vector<MatrixView<const T>> overlapping = {{all.data(), 6, 2, 5}};
    EXPECT_THROW((void)qr<T>(this->ctx, BatchView<const T>(overlapping)), InvalidArgument);
}

TYPED_TEST(BatchTest, Stops) {
    using T = TypeParam;
    for (const auto& [m, n] : {Shape{6, 4}, Shape{90, 70}}) {
        const Matrix<T> all = random_normal<T>(m, n * 20);
        this->ctx.request_stop();
        EXPECT_THROW((void)qr<T>(this->ctx, this->in(all, n)), Interrupted);
        this->ctx.clear_stop();
        EXPECT_EQ(qr<T>(this->ctx, this->in(all, n)).count(), 20);
    }
}

}  // namespace
}  // namespace quoin::test
