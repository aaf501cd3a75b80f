#include "quoin/streaming.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "checks.hpp"
#include "gallery.hpp"
#include "least_squares_law.hpp"

namespace quoin::test {
namespace {

template <class T>
class StreamingTest : public testing::Test {
protected:
    Context<Host> ctx{2};
};

template <class T>
class StreamingRTest : public StreamingTest<T> {};
TYPED_TEST_SUITE(StreamingRTest, Scalars);

template <class T>
class StreamingQRTest : public StreamingTest<T> {};
TYPED_TEST_SUITE(StreamingQRTest, Scalars);

/// Rows [0, m) cut into consecutive blocks of the given heights, the last height repeated.
std::vector<Range> cut(Index m, const std::vector<Index>& heights) {
    std::vector<Range> blocks;
    Index begin = 0;
    for (std::size_t i = 0; begin < m; ++i) {
        const Index end = std::min(m, begin + heights[std::min(i, heights.size() - 1)]);
        blocks.push_back({begin, end});
        begin = end;
    }
    return blocks;
}

/// Blocks of sizes that are hard: one row, one row fewer than columns, as many, one more; ragged ones; empty ones.
std::vector<std::vector<Range>> partitions(Index m, Index n) {
    return {cut(m, {1}),     cut(m, {std::max<Index>(1, n - 1)}), cut(m, {n}), cut(m, {n + 1}),
            cut(m, {3 * n}), cut(m, {2, 5 * n, 1, 0, n, 7}),      cut(m, {m})};
}

/// The law for a matrix in b blocks. Its rows take part in up to b factorizations, each with the law's error; roundings
/// behave as independent (see checks.hpp), so that the errors of b factorizations add up to √b of them.
double streaming_law(const std::vector<Range>& blocks) { return law * std::sqrt(double(blocks.size())); }

std::string describe(Gallery matrix_class, Index m, Index n, const std::vector<Range>& blocks) {
    return fmt::format("{} {}x{} in {} blocks, the first of {}", to_string(matrix_class), m, n, blocks.size(),
                       blocks[0].size());
}

template <class T>
Matrix<T> stream_r(Context<Host>& ctx, MatrixView<const T> A, const std::vector<Range>& blocks) {
    StreamingR<T> stream(ctx, A.cols);
    for (const Range& rows : blocks) stream.append(ctx, A.row_block(rows));
    EXPECT_EQ(stream.rows(), A.rows);
    return stream.r();
}

/// Both passes; Q comes back in one piece, poisoned beforehand.
template <class T>
Matrix<T> stream_q(Context<Host>& ctx, MatrixView<const T> A, const std::vector<Range>& blocks, Matrix<T>& R) {
    StreamingQR<T> stream(ctx, A.cols);
    for (const Range& rows : blocks) stream.append(ctx, A.row_block(rows));
    EXPECT_EQ(stream.rows(), A.rows);
    Matrix<T> Q = filled<T>(A.rows, std::min(A.rows, A.cols), std::numeric_limits<T>::quiet_NaN());
    for (auto rows = blocks.rbegin(); rows != blocks.rend(); ++rows) {
        const Matrix<T> Q_rows = stream.q_rows(ctx, A.row_block(*rows));
        EXPECT_EQ(Q_rows.rows(), rows->size());
        EXPECT_EQ(Q_rows.cols(), Q.cols());
        for (Index j = 0; j < Q.cols(); ++j) std::copy_n(Q_rows.view().at(0, j), rows->size(), &Q(rows->begin, j));
    }
    R = stream.r();
    return Q;
}

/// R with a non-negative diagonal.
template <class T>
Matrix<T> normalised(MatrixView<const T> R) {
    Matrix<T> S = copy(R);
    for (Index i = 0; i < R.rows; ++i) {
        for (Index j = 0; j < R.cols; ++j) S(i, j) = std::signbit(R(i, i)) ? -R(i, j) : R(i, j);
    }
    return S;
}

TYPED_TEST(StreamingRTest, RObeysTheLawForAnyMatrixInAnyBlocks) {
    using T = TypeParam;
    const Index m = quick() ? 60 : 150, n = 12;
    for (const Gallery matrix_class : gallery()) {
        const Matrix<T> A = generate<T>(matrix_class, m, n);
        for (const auto& blocks : partitions(m, n)) {
            SCOPED_TRACE(describe(matrix_class, m, n, blocks));
            const Matrix<T> R = stream_r<T>(this->ctx, A.view(), blocks);
            ASSERT_EQ(R.rows(), n);
            ASSERT_EQ(R.cols(), n);
            EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
            EXPECT_LE(gram_error<T>(A.view(), R.view()), streaming_law(blocks)) << "AᵀA = RᵀR";
        }
    }
}

TYPED_TEST(StreamingRTest, RIsThatOfTheMatrixInMemoryUpToSigns) {
    using T = TypeParam;
    const Index m = 200, n = 9;
    const double kappa = 100;
    const Matrix<T> A = with_condition<T>(m, n, kappa);
    const Matrix<T> expected = normalised<T>(qr(this->ctx, A.view()).r().view());
    for (const auto& blocks : partitions(m, n)) {
        SCOPED_TRACE(blocks.size());
        const Matrix<T> R = normalised<T>(stream_r<T>(this->ctx, A.view(), blocks).view());
        // R's condition with respect to A is κ(A) up to a factor of √2 (Stewart 1977; Higham 2002, section 19.9)
        EXPECT_LE(difference<T>(R.view(), expected.view(), n, std::sqrt(2.0) * kappa * frobenius_norm<T>(A.view())),
                  law + streaming_law(blocks));
    }
}

TYPED_TEST(StreamingRTest, FewerRowsThanColumns) {
    using T = TypeParam;
    const Index n = 7;
    for (const Gallery matrix_class : {Gallery::RandomNormal, Gallery::ZeroFirstColumn, Gallery::DuplicateColumns}) {
        const Matrix<T> A = generate<T>(matrix_class, 12, n);
        StreamingR<T> stream(this->ctx, n);
        EXPECT_EQ(stream.r().rows(), 0);
        EXPECT_EQ(stream.r().cols(), n);
        for (Index m = 1; m <= A.rows(); ++m) {
            SCOPED_TRACE(fmt::format("{} {} rows", to_string(matrix_class), m));
            stream.append(this->ctx, A.view().row_block({m - 1, m}));
            const Matrix<T> R = stream.r();
            ASSERT_EQ(R.rows(), std::min(m, n));
            EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
            EXPECT_LE(gram_error<T>(A.view().row_block({0, m}), R.view()), law * std::sqrt(double(m)));
        }
    }
}

TYPED_TEST(StreamingRTest, LeastSquaresObeysItsLaw) {
    using T = TypeParam;
    const Index m = 180, n = 8, p = 3;
    for (const Gallery matrix_class : {Gallery::RandomNormal, Gallery::GradedColumnsDown, Gallery::ClusteredScales}) {
        const Matrix<T> A = generate<T>(matrix_class, m, n), B = random_normal<T>(m, p, 5);
        for (const auto& blocks : partitions(m, n)) {
            SCOPED_TRACE(describe(matrix_class, m, n, blocks));
            StreamingR<T> stream(this->ctx, n, p);
            for (const Range& rows : blocks) {
                stream.append(this->ctx, A.view().row_block(rows), B.view().row_block(rows));
            }
            const auto solution = stream.solve(this->ctx);
            ASSERT_EQ(solution.X.rows(), n);
            ASSERT_EQ(solution.X.cols(), p);
            const auto errors = least_squares_errors<T>(A.view(), B.view(), solution.X.view(), solution.residual_norms);
            // n + p reflectors in each step
            const double allowed = 2 * streaming_law(blocks) * (n + p) / n;
            EXPECT_LE(errors.gradient, allowed);
            EXPECT_LE(errors.residual_norm, allowed);
            EXPECT_GE(solution.condition, 1);
        }
    }
}

TYPED_TEST(StreamingRTest, SolvesAsSoonAsThereAreEnoughRows) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(6, 4), B = random_normal<T>(6, 2, 5);
    StreamingR<T> stream(this->ctx, 4, 2);
    stream.append(this->ctx, A.view().row_block({0, 3}), B.view().row_block({0, 3}));
    EXPECT_THROW(stream.solve(this->ctx), InvalidArgument);
    stream.append(this->ctx, A.view().row_block({3, 4}), B.view().row_block({3, 4}));
    EXPECT_EQ(stream.solve(this->ctx).residual_norms, std::vector<T>(2, 0));
    for (Index m = 5; m <= 6; ++m) {
        stream.append(this->ctx, A.view().row_block({m - 1, m}), B.view().row_block({m - 1, m}));
        const auto solution = stream.solve(this->ctx);
        const auto errors = least_squares_errors<T>(A.view().row_block({0, m}), B.view().row_block({0, m}),
                                                    solution.X.view(), solution.residual_norms);
        EXPECT_LE(errors.gradient, 2 * least_squares_law);
        EXPECT_LE(errors.residual_norm, 2 * least_squares_law);
    }
}

TYPED_TEST(StreamingRTest, RankDeficiencyIsAnErrorOnRequest) {
    using T = TypeParam;
    const Matrix<T> A = generate<T>(Gallery::DuplicateColumns, 50, 6), B = random_normal<T>(50, 1, 5);
    StreamingR<T> stream(this->ctx, 6, 1);
    stream.append(this->ctx, A.view(), B.view());
    EXPECT_THROW(stream.solve(this->ctx, {.refuse_deficient = true}), RankDeficient);
    EXPECT_EQ(stream.solve(this->ctx).rank, 3);
}

TYPED_TEST(StreamingRTest, ErrorsLeaveTheStateAsItWas) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(60, 5), B = random_normal<T>(60, 2, 5);
    StreamingR<T> stream(this->ctx, 5, 2), undisturbed(this->ctx, 5, 2);
    const auto append = [&](StreamingR<T>& s, Range rows) {
        s.append(this->ctx, A.view().row_block(rows), B.view().row_block(rows));
    };
    append(stream, {0, 25});
    append(undisturbed, {0, 25});

    const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
    Matrix<T> bad_A = copy<T>(A.view()), bad_B = copy<T>(B.view());
    bad_A(33, 2) = nan;
    bad_B(40, 1) = inf;
    const Range rows{30, 60};
    try {
        stream.append(this->ctx, bad_A.view().row_block(rows), B.view().row_block(rows));
        ADD_FAILURE() << "no NonFiniteEntry";
    } catch (const NonFiniteEntry& e) {
        EXPECT_EQ(e.row, 3);
        EXPECT_EQ(e.col, 2);
    }
    try {
        stream.append(this->ctx, A.view().row_block(rows), bad_B.view().row_block(rows));
        ADD_FAILURE() << "no NonFiniteEntry";
    } catch (const NonFiniteEntry& e) {
        EXPECT_EQ(e.row, 10);
        EXPECT_EQ(e.col, 1);
    }
    EXPECT_THROW(stream.append(this->ctx, A.view().col_block({0, 4}), B.view()), InvalidArgument);
    EXPECT_THROW(stream.append(this->ctx, A.view(), B.view().row_block({0, 59})), InvalidArgument);
    EXPECT_THROW(stream.append(this->ctx, A.view(), B.view().col_block({0, 1})), InvalidArgument);
    EXPECT_THROW(stream.append(this->ctx, A.view()), InvalidArgument);
    EXPECT_EQ(stream.rows(), 25);
    append(stream, {25, 60});
    append(undisturbed, {25, 60});
    EXPECT_TRUE(same_bits<T>(stream.r().view(), undisturbed.r().view()));
    EXPECT_TRUE(same_bits<T>(stream.solve(this->ctx).X.view(), undisturbed.solve(this->ctx).X.view()));
}

TYPED_TEST(StreamingRTest, EmptyBlocksAndEmptyMatrices) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(20, 3);
    StreamingR<T> stream(this->ctx, 3);
    stream.append(this->ctx, Matrix<T>(0, 3).view());
    stream.append(this->ctx, A.view());
    const Matrix<T> R = stream.r();
    stream.append(this->ctx, Matrix<T>(0, 3).view());
    EXPECT_EQ(stream.rows(), 20);
    EXPECT_TRUE(same_bits<T>(stream.r().view(), R.view()));

    StreamingR<T> no_columns(this->ctx, 0, 1);
    no_columns.append(this->ctx, Matrix<T>(2, 0).view(), filled<T>(2, 1, 3).view());
    EXPECT_EQ(no_columns.r().cols(), 0);
    EXPECT_NEAR(no_columns.solve(this->ctx).residual_norms.at(0), std::sqrt(18.0), 20 * unit_roundoff<T>);

    EXPECT_THROW(StreamingR<T>(this->ctx, -1), InvalidArgument);
    EXPECT_THROW(StreamingR<T>(this->ctx, 3, -1), InvalidArgument);
    EXPECT_THROW(stream.solve(this->ctx), InvalidArgument);
}

/// The streams of the parts of [A b], merged as a binary tree over them, or one after the other from the last on.
template <class T>
StreamingR<T> merged(Context<Host>& ctx, MatrixView<const T> A, MatrixView<const T> b, const std::vector<Range>& parts,
                     bool tree) {
    std::vector<StreamingR<T>> streams;
    for (const Range& rows : parts) {
        streams.emplace_back(ctx, A.cols, b.cols).append(ctx, A.row_block(rows), b.row_block(rows));
    }
    while (streams.size() > 1) {
        if (tree) {
            for (std::size_t i = 0; i + 1 < streams.size(); ++i) {
                streams[i].merge(ctx, streams[i + 1]);
                streams.erase(streams.begin() + static_cast<std::ptrdiff_t>(i) + 1);
            }
        } else {
            StreamingR<T> last = std::move(streams.back());
            streams.pop_back();
            last.merge(ctx, streams.back());
            streams.back() = std::move(last);
        }
    }
    return std::move(streams.front());
}

TYPED_TEST(StreamingRTest, MergedInAnyOrderIsOfAllRows) {
    using T = TypeParam;
    const Index m = 150, n = 12, p = 2;
    for (const Gallery matrix_class : {Gallery::RandomNormal, Gallery::GradedColumnsDown, Gallery::DuplicateColumns}) {
        const Matrix<T> A = generate<T>(matrix_class, m, n), b = random_normal<T>(m, p, 5);
        for (const auto& parts : partitions(m, n)) {
            for (const bool tree : {false, true}) {
                SCOPED_TRACE(describe(matrix_class, m, n, parts) + (tree ? ", as a tree" : ""));
                const StreamingR<T> stream = merged<T>(this->ctx, A.view(), b.view(), parts, tree);
                EXPECT_EQ(stream.rows(), m);
                const Matrix<T> R = stream.r();
                ASSERT_EQ(R.rows(), n);
                EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
                EXPECT_LE(gram_error<T>(A.view(), R.view()), streaming_law(parts)) << "AᵀA = RᵀR";
                if (matrix_class == Gallery::DuplicateColumns) continue;
                const auto solution = stream.solve(this->ctx);
                const auto errors =
                    least_squares_errors<T>(A.view(), b.view(), solution.X.view(), solution.residual_norms);
                EXPECT_LE(errors.gradient, 2 * streaming_law(parts) * (n + p) / n);
                EXPECT_LE(errors.residual_norm, 2 * streaming_law(parts) * (n + p) / n);
            }
        }
    }
}

TYPED_TEST(StreamingRTest, MergesWhatIsEmptyItselfAndRefusesOtherSizes) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(30, 5), b = random_normal<T>(30, 1, 5);
    StreamingR<T> stream(this->ctx, 5, 1), empty(this->ctx, 5, 1);
    stream.append(this->ctx, A.view(), b.view());
    const Matrix<T> R = stream.r();
    const double flops = stream.solve(this->ctx).report.flops;
    stream.merge(this->ctx, empty);
    EXPECT_TRUE(same_bits<T>(stream.r().view(), R.view()));
    for (const auto& [n, p] : {std::pair<Index, Index>{5, 0}, {4, 2}, {4, 1}, {6, 1}}) {
        EXPECT_THROW(stream.merge(this->ctx, StreamingR<T>(this->ctx, n, p)), InvalidArgument) << n << ", " << p;
    }
    EXPECT_EQ(stream.rows(), 30);

    // [A; A] has the factor √2 R, and all its rows are counted, and all flops
    stream.merge(this->ctx, stream);
    EXPECT_EQ(stream.rows(), 60);
    Matrix<T> twice = copy<T>(R.view());
    for (Index i = 0; i < 25; ++i) twice.data()[i] *= std::sqrt(T(2));
    EXPECT_LE(difference<T>(normalised<T>(stream.r().view()).view(), normalised<T>(twice.view()).view(), 5,
                            frobenius_norm<T>(A.view())),
              2 * law);
    EXPECT_GT(stream.solve(this->ctx).report.flops, 2 * flops);

    empty.merge(this->ctx, stream);
    EXPECT_EQ(empty.rows(), 60);
    EXPECT_LE(gram_error<T>(stream.r().view(), empty.r().view()), law);
}

TYPED_TEST(StreamingRTest, GoesOnFromItsStateWithTheSameBits) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(60, 8), b = random_normal<T>(60, 2, 5);
    StreamingR<T> stream(this->ctx, 8, 2);
    for (const Range rows : {Range{0, 0}, Range{0, 5}, Range{5, 30}, Range{30, 60}}) {
        const auto append = [&](StreamingR<T>& s) {
            s.append(this->ctx, A.view().row_block(rows), b.view().row_block(rows));
        };
        StreamingR<T> restored(stream.state(this->ctx));
        append(stream);
        append(restored);
        EXPECT_EQ(restored.rows(), rows.end);
        EXPECT_TRUE(same_bits<T>(restored.r().view(), stream.r().view()));
    }
    const auto expected = stream.solve(this->ctx), solution = StreamingR<T>(stream.state(this->ctx)).solve(this->ctx);
    EXPECT_TRUE(same_bits<T>(solution.X.view(), expected.X.view()));
    EXPECT_EQ(solution.residual_norms, expected.residual_norms);
    EXPECT_EQ(solution.report.flops, expected.report.flops);
    for (const auto& spoil : std::vector<void (*)(typename StreamingR<T>::State&)>{
             [](auto& s) { s.n = -1; }, [](auto& s) { s.n = 11; }, [](auto& s) { s.rows = 9; },
             [](auto& s) { s.R = Matrix<T>(9, 10); }}) {
        auto state = stream.state(this->ctx);
        spoil(state);
        EXPECT_THROW(StreamingR<T>(std::move(state)), InvalidArgument);
    }
}

TYPED_TEST(StreamingQRTest, GoesOnFromItsStateWithTheSameBits) {
    using T = TypeParam;
    const Index m = 70, n = 9;
    const Matrix<T> A = random_normal<T>(m, n);
    const auto blocks = cut(m, {20, 3, 0, 30});
    StreamingQR<T> stream(this->ctx, n), saved(this->ctx, n);
    for (const Range& rows : blocks) {
        stream.append(this->ctx, A.view().row_block(rows));
        saved.append(this->ctx, A.view().row_block(rows));
        saved = StreamingQR<T>(this->ctx, saved.state(this->ctx));
        EXPECT_EQ(saved.rows(), rows.end);
    }
    for (auto rows = blocks.rbegin(); rows != blocks.rend(); ++rows) {
        const Matrix<T> Q = stream.q_rows(this->ctx, A.view().row_block(*rows));
        EXPECT_TRUE(same_bits<T>(saved.q_rows(this->ctx, A.view().row_block(*rows)).view(), Q.view()));
        saved = StreamingQR<T>(this->ctx, saved.state(this->ctx));
        EXPECT_TRUE(same_bits<T>(saved.r().view(), stream.r().view()));
        EXPECT_THROW(saved.append(this->ctx, A.view()), InvalidArgument) << "the second pass has begun";
    }
    EXPECT_EQ(saved.rows(), m);

    StreamingQR<T> backward(this->ctx, n);
    backward.append(this->ctx, A.view().row_block({0, 40}));
    backward.append(this->ctx, A.view().row_block({40, 70}));
    (void)backward.q_rows(this->ctx, A.view().row_block({40, 70}));
    for (const auto& spoil : std::vector<void (*)(typename StreamingQR<T>::State&)>{
             [](auto& s) { s.n = 8; }, [](auto& s) { s.rows = 39; }, [](auto& s) { s.heights = {-1}; },
             [](auto& s) {
                 s.heights = {40, 40};
             },
             [](auto& s) { s.heights = {}; }, [](auto& s) { s.backward = false; },
             [](auto& s) { s.R = Matrix<T>(8, 9); }, [](auto& s) { s.G = Matrix<T>(8, 9); },
             [](auto& s) { s.G = Matrix<T>(18, 8); }}) {
        auto state = backward.state(this->ctx);
        spoil(state);
        EXPECT_THROW(StreamingQR<T>(this->ctx, std::move(state)), InvalidArgument);
    }
}

TYPED_TEST(StreamingQRTest, QAndRObeyTheLawForAnyMatrixInAnyBlocks) {
    using T = TypeParam;
    const Index m = quick() ? 60 : 150, n = 12;
    for (const Gallery matrix_class : gallery()) {
        const Matrix<T> A = generate<T>(matrix_class, m, n);
        for (const auto& blocks : partitions(m, n)) {
            SCOPED_TRACE(describe(matrix_class, m, n, blocks));
            Matrix<T> R;
            const Matrix<T> Q = stream_q<T>(this->ctx, A.view(), blocks, R);
            EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
            EXPECT_LE(orthogonality_error<T>(Q.view(), n), streaming_law(blocks)) << "‖I − QᵀQ‖";
            EXPECT_LE(column_residual_error<T>(A.view(), Q.view(), R.view()), streaming_law(blocks))
                << "max ‖a_j − Q r_j‖";
        }
    }
}

TYPED_TEST(StreamingQRTest, OrthogonalWhateverTheCondition) {
    using T = TypeParam;
    const Index m = quick() ? 300 : 2000, n = 25;
    for (const double kappa : {1.0, 1e4, 1e8, 1e12, 1e16}) {
        SCOPED_TRACE(kappa);
        const Matrix<T> A = with_condition<T>(m, n, kappa);
        const auto blocks = cut(m, {100});
        Matrix<T> R;
        const Matrix<T> Q = stream_q<T>(this->ctx, A.view(), blocks, R);
        EXPECT_LE(orthogonality_error<T>(Q.view(), n), streaming_law(blocks));
        EXPECT_LE(residual_error<T>(A.view(), Q.view(), R.view()), streaming_law(blocks));
    }
}

TYPED_TEST(StreamingQRTest, FewerRowsThanColumns) {
    using T = TypeParam;
    const Index n = 9;
    for (const Gallery matrix_class : {Gallery::RandomNormal, Gallery::ZeroFirstColumn, Gallery::DuplicateColumns}) {
        for (const Index m : {1, 4, 8, 9, 10}) {
            const Matrix<T> A = generate<T>(matrix_class, m, n);
            for (const auto& blocks : {cut(m, {1}), cut(m, {3}), cut(m, {0, m})}) {
                SCOPED_TRACE(describe(matrix_class, m, n, blocks));
                const Index k = std::min(m, n);
                Matrix<T> R;
                const Matrix<T> Q = stream_q<T>(this->ctx, A.view(), blocks, R);
                ASSERT_EQ(R.rows(), k);
                EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
                EXPECT_LE(orthogonality_error<T>(Q.view(), k), streaming_law(blocks));
                EXPECT_LE(residual_error<T>(A.view(), Q.view(), R.view()), streaming_law(blocks));
            }
        }
    }
}

TYPED_TEST(StreamingQRTest, ThePassesMayDifferInThreadsAndStrides) {
    using T = TypeParam;
    const Index m = 5000, n = 10;
    const Matrix<T> A = random_normal<T>(m, n);
    const auto blocks = cut(m, {2000});
    Matrix<T> R;
    const Matrix<T> Q = stream_q<T>(this->ctx, A.view(), blocks, R);
    Context<Host> one(1), three(3);
    StreamingQR<T> stream(one, n);
    for (const Range& rows : blocks) stream.append(one, A.view().row_block(rows));
    for (auto rows = blocks.rbegin(); rows != blocks.rend(); ++rows) {
        const Padded<T> block(A.view().row_block(*rows));
        const Matrix<T> Q_rows = stream.q_rows(three, block.view());
        EXPECT_TRUE(same_bits<T>(Q_rows.view(), Q.view().row_block(*rows)));
        EXPECT_TRUE(block.padding_intact());
    }
    EXPECT_TRUE(same_bits<T>(stream.r().view(), R.view()));
}

TYPED_TEST(StreamingQRTest, BlocksOutOfTurnAreRefused) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(60, 5);
    const auto block = [&](Index i) { return A.view().row_block({20 * i, 20 * i + 20}); };
    StreamingQR<T> stream(this->ctx, 5), undisturbed(this->ctx, 5);
    for (Index i = 0; i < 3; ++i) {
        stream.append(this->ctx, block(i));
        undisturbed.append(this->ctx, block(i));
    }
    Matrix<T> bad = copy<T>(A.view());
    bad(50, 3) = std::numeric_limits<T>::quiet_NaN();
    EXPECT_THROW(stream.append(this->ctx, bad.view()), NonFiniteEntry);
    EXPECT_THROW(stream.append(this->ctx, A.view().col_block({0, 4})), InvalidArgument);
    EXPECT_THROW(stream.q_rows(this->ctx, block(1)), InvalidArgument) << "out of order";
    EXPECT_THROW(stream.q_rows(this->ctx, A.view().row_block({41, 60})), InvalidArgument) << "a row too few";
    EXPECT_THROW(stream.q_rows(this->ctx, A.view().block({40, 60}, {0, 4})), InvalidArgument) << "a column too few";
    EXPECT_THROW(stream.q_rows(this->ctx, bad.view().row_block({40, 60})), InvalidArgument) << "another entry";
    EXPECT_EQ(stream.rows(), 60);
    for (Index i = 3; i-- > 0;) {
        const Matrix<T> Q_rows = stream.q_rows(this->ctx, block(i));
        EXPECT_TRUE(same_bits<T>(Q_rows.view(), undisturbed.q_rows(this->ctx, block(i)).view()));
        EXPECT_THROW(stream.append(this->ctx, block(0)), InvalidArgument) << "the second pass has begun";
    }
    EXPECT_THROW(stream.q_rows(this->ctx, block(0)), InvalidArgument) << "no block is left";
    EXPECT_THROW(StreamingQR<T>(this->ctx, -1), InvalidArgument);
}

TYPED_TEST(StreamingQRTest, ReadsAndWritesRowsThatItIsNotGiven) {
    using T = TypeParam;
    const Index m = 130, n = 12, p = 2;
    const Matrix<T> A = random_normal<T>(m, n), b = random_normal<T>(m, p, 5);
    for (const auto& blocks : partitions(m, n)) {
        SCOPED_TRACE(blocks.size());
        StreamingR<T> of_r(this->ctx, n, p), given_r(this->ctx, n, p);
        StreamingQR<T> of_q(this->ctx, n), given_q(this->ctx, n);
        Index rows_read = 0;
        const RowReader<T> read = [&](Range rows, MatrixView<T> block) {
            rows_read += rows.size();
            ASSERT_EQ(block.rows, rows.size());
            for (Index j = 0; j < block.cols; ++j)
                std::copy_n(j < n ? A.view().at(rows.begin, j) : b.view().at(rows.begin, j - n), rows.size(),
                            block.at(0, j));
        };
        for (const Range& rows : blocks) {
            given_r.append(this->ctx, A.view().row_block(rows), b.view().row_block(rows));
            given_q.append(this->ctx, A.view().row_block(rows));
            of_r.append(this->ctx, rows.size(), read);
            of_q.append(this->ctx, rows.size(), read);
        }
        EXPECT_EQ(rows_read, 2 * m);
        EXPECT_TRUE(same_bits<T>(of_r.r().view(), given_r.r().view()));
        EXPECT_TRUE(same_bits<T>(of_r.solve(this->ctx).X.view(), given_r.solve(this->ctx).X.view()));
        EXPECT_TRUE(same_bits<T>(of_q.r().view(), given_q.r().view()));

        // the last block may be taken from the stream in the ordinary way
        Index left = m;
        if (blocks.size() % 2 == 0) {
            left = blocks.back().begin;
            of_q.q_rows(this->ctx, A.view().row_block(blocks.back()));
        }
        Matrix<T> Q = filled<T>(m, n, std::numeric_limits<T>::quiet_NaN());
        rows_read = 0;
        of_q.q(this->ctx, read, [&](Range rows, MatrixView<const T> block) {
            EXPECT_EQ(rows.end, left);
            left = rows.begin;
            for (Index j = 0; j < n; ++j) std::copy_n(block.at(0, j), rows.size(), Q.view().at(rows.begin, j));
        });
        EXPECT_EQ(left, 0);
        EXPECT_LE(rows_read, blocks.back().begin) << "a block that is there is not read again";
        for (auto rows = blocks.rbegin(); rows != blocks.rend(); ++rows) {
            const Matrix<T> expected = given_q.q_rows(this->ctx, A.view().row_block(*rows));
            if (rows == blocks.rbegin() && blocks.size() % 2 == 0) continue;
            EXPECT_TRUE(same_bits<T>(Q.view().row_block(*rows), expected.view()));
        }
        of_q.q(this->ctx, read, [](Range, auto) { ADD_FAILURE() << "no block is left"; });
        const StreamTimes times = of_q.times();
        for (const double seconds : {times.reading, times.to_device, times.computing, times.from_device, times.writing})
            EXPECT_GE(seconds, 0);
        EXPECT_GT(times.computing, 0);
    }
}

TYPED_TEST(StreamingQRTest, BlocksMayComeInEitherWay) {
    using T = TypeParam;
    const Index h = 20, n = 5;
    const Matrix<T> A = random_normal<T>(2 * h, n);
    const auto blocks = cut(2 * h, {h});
    Index rows_read = 0;
    const RowReader<T> read = [&](Range rows, MatrixView<T> block) {
        rows_read += rows.size();
        for (Index j = 0; j < n; ++j) std::copy_n(A.view().at(rows.begin, j), rows.size(), block.at(0, j));
    };
    StreamingQR<T> stream(this->ctx, n);
    stream.append(this->ctx, h, read);
    stream.append(this->ctx, A.view().row_block(blocks[1]));
    rows_read = 0;
    Matrix<T> R;
    const Matrix<T> expected = stream_q<T>(this->ctx, A.view(), blocks, R);
    stream.q(this->ctx, read, [&](Range rows, MatrixView<const T> block) {
        EXPECT_TRUE(same_bits<T>(block, expected.view().row_block(rows)));
    });
    EXPECT_EQ(rows_read, 2 * h);
}

TYPED_TEST(StreamingQRTest, AReaderThatFailsLeavesTheStateAsItWas) {
    using T = TypeParam;
    const Index h = 20, n = 5;
    const Matrix<T> A = random_normal<T>(2 * h, n);
    T spoilt = 0;
    bool fails = false;
    const RowReader<T> read = [&](Range rows, MatrixView<T> block) {
        if (fails) throw Interrupted();
        for (Index j = 0; j < n; ++j) std::copy_n(A.view().at(rows.begin, j), rows.size(), block.at(0, j));
        block(3, 2) += spoilt;
    };
    StreamingR<T> of_r(this->ctx, n);
    StreamingQR<T> of_q(this->ctx, n);
    const auto append = [&] {
        of_r.append(this->ctx, h, read);
        of_q.append(this->ctx, h, read);
    };
    append();
    spoilt = std::numeric_limits<T>::infinity();
    EXPECT_THROW(of_r.append(this->ctx, h, read), NonFiniteEntry);
    EXPECT_THROW(of_q.append(this->ctx, h, read), NonFiniteEntry);
    spoilt = 0;
    fails = true;
    EXPECT_THROW(of_r.append(this->ctx, h, read), Interrupted);
    EXPECT_THROW(of_q.append(this->ctx, h, read), Interrupted);
    EXPECT_THROW(of_r.append(this->ctx, -1, read), InvalidArgument);
    EXPECT_THROW(of_q.append(this->ctx, -1, read), InvalidArgument);
    EXPECT_EQ(of_r.rows(), h);
    EXPECT_EQ(of_q.rows(), h);
    // the block that the stream had is not taken for the one that was read last
    EXPECT_THROW(of_q.q(this->ctx, read, [](Range, auto) {}), Interrupted);
    fails = false;
    append();
    const std::vector<Range> blocks = cut(2 * h, {h});
    EXPECT_TRUE(same_bits<T>(of_r.r().view(), stream_r<T>(this->ctx, A.view(), blocks).view()));
    Matrix<T> R;
    const Matrix<T> expected = stream_q<T>(this->ctx, A.view(), blocks, R);
    of_q.q(this->ctx, read, [&](Range rows, MatrixView<const T> block) {
        EXPECT_TRUE(same_bits<T>(block, expected.view().row_block(rows)));
    });
}

TYPED_TEST(StreamingQRTest, EmptyMatrices) {
    using T = TypeParam;
    StreamingQR<T> nothing(this->ctx, 4);
    EXPECT_EQ(nothing.r().rows(), 0);
    EXPECT_EQ(nothing.r().cols(), 4);
    EXPECT_THROW(nothing.q_rows(this->ctx, Matrix<T>(0, 4).view()), InvalidArgument);

    StreamingQR<T> no_columns(this->ctx, 0);
    no_columns.append(this->ctx, Matrix<T>(3, 0).view());
    const Matrix<T> Q = no_columns.q_rows(this->ctx, Matrix<T>(3, 0).view());
    EXPECT_EQ(Q.rows(), 3);
    EXPECT_EQ(Q.cols(), 0);
}

}  // namespace
}  // namespace quoin::test
