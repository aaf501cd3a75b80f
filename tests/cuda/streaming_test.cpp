// Streams on the GPU: rows in blocks give what the whole matrix gives, and q_block gives the blocks of Q.

#include "quoin/streaming.hpp"

#include <fmt/format.h>

#include <optional>
#include <tuple>

#include "gallery.hpp"
#include "gpu.hpp"
#include "least_squares_law.hpp"
#include "measure/cuda/page_locked.hpp"

namespace quoin::test {
namespace {

/// Rows [0, m) in blocks of the given heights, the last height repeated.
std::vector<Range> cut(Index m, const std::vector<Index>& heights) {
    std::vector<Range> blocks;
    for (Index begin = 0; begin < m;) {
        const Index end = std::min(m, begin + heights[std::min(blocks.size(), heights.size() - 1)]);
        blocks.push_back({begin, end});
        begin = end;
    }
    return blocks;
}

/// As in the host's streaming tests: b factorizations in a row.
double streaming_law(const std::vector<Range>& blocks) { return law * std::sqrt(double(blocks.size())); }

template <class T>
class GpuStreaming : public OnGpu {
protected:
    Matrix<T, Cuda> on_gpu(MatrixView<const T> A) { return copy_to_device<T>(gpu(), A); }
};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuStreaming, Precisions);

/// Columns within one tree of the GPU, and beyond.
constexpr Index widths[] = {12, 45};

TYPED_TEST(GpuStreaming, ROfAnyMatrixInAnyBlocks) {
    using T = TypeParam;
    for (const Index n : widths) {
        const Index m = 6 * n;
        for (const Gallery matrix_class : gallery()) {
            if (quick() && matrix_class != Gallery::GradedBoth) continue;
            const Matrix<T> A = generate<T>(matrix_class, m, n);
            for (const auto& blocks : {cut(m, {n - 1}), cut(m, {2, 3 * n, 1, 7}), cut(m, {m})}) {
                SCOPED_TRACE(fmt::format("{} {}x{} in {}", to_string(matrix_class), m, n, blocks.size()));
                StreamingR<T, Cuda> stream(this->gpu(), n);
                for (const Range& rows : blocks) {
                    stream.append(this->gpu(), this->on_gpu(A.view().row_block(rows)).view());
                }
                const Matrix<T> R = copy_to_host<T>(this->gpu(), stream.r(this->gpu()).view());
                ASSERT_EQ(R.rows(), n);
                EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
                EXPECT_LE(gram_error<T>(A.view(), R.view()), streaming_law(blocks)) << "AᵀA = RᵀR";
            }
        }
    }
}

TYPED_TEST(GpuStreaming, LeastSquares) {
    using T = TypeParam;
    for (const Index n : widths) {
        const Index m = 10 * n, p = 3;
        const Matrix<T> A = generate<T>(Gallery::ClusteredScales, m, n), B = random_normal<T>(m, p, 5);
        const auto blocks = cut(m, {2 * n, 5, n});
        StreamingR<T, Cuda> stream(this->gpu(), n, p);
        EXPECT_THROW(stream.solve(this->gpu()), InvalidArgument);
        for (const Range& rows : blocks) {
            stream.append(this->gpu(), this->on_gpu(A.view().row_block(rows)).view(),
                          this->on_gpu(B.view().row_block(rows)).view());
        }
        const auto solution = stream.solve(this->gpu());
        const Matrix<T> X = copy_to_host<T>(this->gpu(), solution.X.view());
        const auto errors = least_squares_errors<T>(A.view(), B.view(), X.view(), solution.residual_norms);
        const double allowed = 2 * streaming_law(blocks) * (n + p) / n;
        EXPECT_LE(errors.gradient, allowed);
        EXPECT_LE(errors.residual_norm, allowed);
    }
}

TYPED_TEST(GpuStreaming, QInTwoPasses) {
    using T = TypeParam;
    for (const Index n : widths) {
        const Index m = 7 * n;
        for (const Gallery matrix_class : {Gallery::RandomNormal, Gallery::ZeroSomeColumns, Gallery::GradedRowsUp}) {
            for (const auto& blocks : {cut(m, {3 * n}), cut(m, {2, 3 * n, 1, n, 7})}) {
                SCOPED_TRACE(fmt::format("{} {}x{} in {}", to_string(matrix_class), m, n, blocks.size()));
                const Matrix<T> A = generate<T>(matrix_class, m, n);
                StreamingQR<T, Cuda> stream(this->gpu(), n);
                for (const Range& rows : blocks) {
                    stream.append(this->gpu(), this->on_gpu(A.view().row_block(rows)).view());
                }
                const Matrix<T> first_R = copy_to_host<T>(this->gpu(), stream.r(this->gpu()).view());
                Matrix<T> Q = filled<T>(m, n, std::numeric_limits<T>::quiet_NaN());
                if (blocks.size() > 1) {
                    const auto wrong = this->on_gpu(random_normal<T>(blocks.back().size(), n, 99).view());
                    EXPECT_THROW(stream.q_rows(this->gpu(), wrong.view()), InvalidArgument);
                }
                for (auto rows = blocks.rbegin(); rows != blocks.rend(); ++rows) {
                    const auto Q_rows = stream.q_rows(this->gpu(), this->on_gpu(A.view().row_block(*rows)).view());
                    copy_to_host<T>(this->gpu(), Q_rows.view(), Q.view().row_block(*rows));
                }
                const Matrix<T> R = copy_to_host<T>(this->gpu(), stream.r(this->gpu()).view());
                EXPECT_TRUE(same_bits<T>(R.view(), first_R.view()));
                EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
                EXPECT_LE(orthogonality_error<T>(Q.view(), n), streaming_law(blocks));
                EXPECT_LE(residual_error<T>(A.view(), Q.view(), R.view()), streaming_law(blocks));
            }
        }
    }
}

TYPED_TEST(GpuStreaming, RowsInTheHostsMemoryGiveTheSameBits) {
    using T = TypeParam;
    auto& ctx = this->gpu();
    // the largest blocks are more than one pinned buffer holds
    const Index tall = quick() ? 3000 : (Index(60) << 20) / Index(sizeof(T));
    for (const auto& [m, n, heights] : {std::tuple<Index, Index, std::vector<Index>>{200, 12, {1, 50, 7, 90}},
                                        {300, 45, {100}},
                                        {tall, 2, {tall / 3}}}) {
        SCOPED_TRACE(fmt::format("{}x{}", m, n));
        const Matrix<T> A = random_normal<T>(m, n), B = random_normal<T>(m, 1, 5);
        const auto blocks = cut(m, heights);
        for (const bool pinned : {false, true}) {
            std::optional<bench::PageLocked> of_a, of_b;
            if (pinned) {
                ASSERT_TRUE(of_a.emplace(const_cast<T*>(A.data()), sizeof(T) * m * n).locked());
                ASSERT_TRUE(of_b.emplace(const_cast<T*>(B.data()), sizeof(T) * m).locked());
            }
            StreamingR<T, Cuda> r(ctx, n, 1), given_r(ctx, n, 1);
            StreamingQR<T, Cuda> q(ctx, n), given_q(ctx, n);
            for (const Range& rows : blocks) {
                const auto a = A.view().row_block(rows), b = B.view().row_block(rows);
                // they may be changed at once
                Matrix<T> a_copy = copy(a), b_copy = copy(b);
                r.append(ctx, pinned ? a : std::as_const(a_copy).view(), pinned ? b : std::as_const(b_copy).view());
                std::fill_n(b_copy.data(), b_copy.rows(), std::numeric_limits<T>::quiet_NaN());
                q.append(ctx, pinned ? a : std::as_const(a_copy).view());
                std::fill_n(a_copy.data(), a_copy.rows() * n, std::numeric_limits<T>::quiet_NaN());
                given_r.append(ctx, this->on_gpu(a).view(), this->on_gpu(b).view());
                given_q.append(ctx, this->on_gpu(a).view());
            }
            const auto bits = [&](const Matrix<T, Cuda>& M) { return copy_to_host<T>(ctx, M.view()); };
            EXPECT_TRUE(same_bits<T>(bits(r.r(ctx)).view(), bits(given_r.r(ctx)).view()));
            EXPECT_TRUE(same_bits<T>(bits(r.solve(ctx).X).view(), bits(given_r.solve(ctx).X).view()));
            for (auto rows = blocks.rbegin(); rows != blocks.rend(); ++rows) {
                const auto a = A.view().row_block(*rows);
                const Matrix<T, Host> there = q.q_rows(ctx, a);
                EXPECT_TRUE(same_bits<T>(there.view(), bits(given_q.q_rows(ctx, this->on_gpu(a).view())).view()));
            }
            EXPECT_TRUE(same_bits<T>(bits(q.r(ctx)).view(), bits(given_q.r(ctx)).view()));
            EXPECT_GT(q.times().computing, 0);
        }
    }
}

TYPED_TEST(GpuStreaming, ReadsAndWritesRowsThatItIsNotGiven) {
    using T = TypeParam;
    auto& ctx = this->gpu();
    for (const Index n : widths) {
        const Index m = 9 * n;
        const Matrix<T> A = random_normal<T>(m, n), B = random_normal<T>(m, 2, 5);
        for (const auto& blocks : {cut(m, {3 * n}), cut(m, {2, 3 * n, 1, n, 7}), cut(m, {m})}) {
            SCOPED_TRACE(fmt::format("{}x{} in {}", m, n, blocks.size()));
            Index rows_read = 0;
            const RowReader<T> read = [&](Range rows, MatrixView<T> block) {
                rows_read += rows.size();
                for (Index j = 0; j < block.cols; ++j)
                    std::copy_n(j < n ? A.view().at(rows.begin, j) : B.view().at(rows.begin, j - n), rows.size(),
                                block.at(0, j));
            };
            StreamingR<T, Cuda> r(ctx, n, 2), given_r(ctx, n, 2);
            StreamingQR<T, Cuda> q(ctx, n), given_q(ctx, n);
            for (const Range& rows : blocks) {
                const auto a = this->on_gpu(A.view().row_block(rows)), b = this->on_gpu(B.view().row_block(rows));
                r.append(ctx, rows.size(), read);
                q.append(ctx, rows.size(), read);
                given_r.append(ctx, a.view(), b.view());
                given_q.append(ctx, a.view());
            }
            EXPECT_TRUE(same_bits<T>(copy_to_host<T>(ctx, r.solve(ctx).X.view()).view(),
                                     copy_to_host<T>(ctx, given_r.solve(ctx).X.view()).view()));
            rows_read = 0;
            Matrix<T> Q = filled<T>(m, n, std::numeric_limits<T>::quiet_NaN());
            q.q(ctx, read, [&](Range rows, MatrixView<const T> block) {
                for (Index j = 0; j < n; ++j) std::copy_n(block.at(0, j), rows.size(), Q.view().at(rows.begin, j));
            });
            EXPECT_EQ(rows_read, blocks.back().begin) << "the last block was there";
            for (auto rows = blocks.rbegin(); rows != blocks.rend(); ++rows) {
                const auto expected = given_q.q_rows(ctx, this->on_gpu(A.view().row_block(*rows)).view());
                EXPECT_TRUE(same_bits<T>(Q.view().row_block(*rows), copy_to_host<T>(ctx, expected.view()).view()));
            }
        }
    }
}

/// Both places are written to again after an error, and nothing is read from a block that is gone.
TYPED_TEST(GpuStreaming, AReaderThatFailsLeavesTheStateAsItWas) {
    using T = TypeParam;
    auto& ctx = this->gpu();
    const Index h = 5000, n = 12, blocks = 4;
    const Matrix<T> A = random_normal<T>(blocks * h, n);
    StreamingR<T, Cuda> r(ctx, n), given(ctx, n);
    for (Index i = 0; i < blocks; ++i) {
        const Range rows{i * h, (i + 1) * h};
        given.append(ctx, this->on_gpu(A.view().row_block(rows)).view());
        EXPECT_THROW(r.append(ctx, h, [](Range, auto) { throw Interrupted(); }), Interrupted);
        EXPECT_THROW(r.append(ctx, filled<T>(h, n, std::numeric_limits<T>::infinity()).view()), NonFiniteEntry);
        EXPECT_EQ(r.rows(), rows.begin);
        r.append(ctx, A.view().row_block(rows));
    }
    EXPECT_TRUE(
        same_bits<T>(copy_to_host<T>(ctx, r.r(ctx).view()).view(), copy_to_host<T>(ctx, given.r(ctx).view()).view()));
}

TYPED_TEST(GpuStreaming, NotFiniteRowsAreNamedAndLeaveTheStateAlone) {
    using T = TypeParam;
    Matrix<T> A = random_normal<T>(60, 5);
    StreamingR<T, Cuda> stream(this->gpu(), 5);
    stream.append(this->gpu(), this->on_gpu(A.view().row_block({0, 20})).view());
    A(33, 2) = std::numeric_limits<T>::quiet_NaN();
    try {
        stream.append(this->gpu(), this->on_gpu(A.view().row_block({30, 60})).view());
        ADD_FAILURE() << "no NonFiniteEntry";
    } catch (const NonFiniteEntry& e) {
        EXPECT_EQ(e.row, 3);
        EXPECT_EQ(e.col, 2);
    }
    EXPECT_EQ(stream.rows(), 20);
    EXPECT_THROW((StreamingR<T, Cuda>(this->gpu(), -1)), InvalidArgument);
    EXPECT_THROW((StreamingQR<T, Cuda>(this->gpu(), -1)), InvalidArgument);
}

TYPED_TEST(GpuStreaming, BlocksOfQAreThoseOfQ) {
    using T = TypeParam;
    const Index m = 300, n = 40;
    const Matrix<T> A = with_condition<T>(m, n, 10);
    const auto gA = this->on_gpu(A.view());
    for (const Method method : {Method::Auto, Method::BlockedHouseholder, Method::CAQR}) {
        for (const QForm q : {QForm::Any, QForm::Explicit}) {
            SCOPED_TRACE(fmt::format("{} {}", to_string(method), to_string(q)));
            Options options;
            options.method = method;
            options.q = q;
            const auto f = qr<T, Cuda>(this->gpu(), gA.view(), options);
            const auto block = [&](Range r, Range c) {
                return copy_to_host<T>(this->gpu(), f.q_block(this->gpu(), r, c).view());
            };
            const Matrix<T> thin = copy_to_host<T>(this->gpu(), f.form_q(this->gpu()).view());
            const Matrix<T> whole = block({0, m}, {0, m});
            EXPECT_LE(orthogonality_error<T>(whole.view(), n), law);
            EXPECT_LE(difference<T>(whole.view().col_block({0, n}), thin.view(), n, std::sqrt(double(n))), law);
            // few columns, few rows, beyond the thin part, none
            for (const auto& [r, c] : {std::pair<Range, Range>{{0, m}, {3, 9}},
                                       {{7, 11}, {0, m}},
                                       {{100, 250}, {30, 60}},
                                       {{5, 5}, {0, 9}},
                                       {{250, 300}, {290, 300}}}) {
                const Matrix<T> B = block(r, c);
                ASSERT_EQ(B.rows(), r.size());
                ASSERT_EQ(B.cols(), c.size());
                EXPECT_LE(difference<T>(B.view(), whole.view().block(r, c), n, std::sqrt(double(c.size() + 1))), law);
            }
            EXPECT_THROW(block({0, m + 1}, {0, 1}), InvalidArgument);
        }
    }
}

}  // namespace
}  // namespace quoin::test
