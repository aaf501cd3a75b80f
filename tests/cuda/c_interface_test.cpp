// The C interface on a GPU, for matrices in its memory, obeys the laws of C++'s.

#include "quoin.h"

#include "gallery.hpp"
#include "gpu.hpp"
#include "least_squares_law.hpp"

namespace quoin::test {
namespace {

template <class T>
class GpuCInterface : public OnGpu {
protected:
    void SetUp() override {
        OnGpu::SetUp();
        if (IsSkipped()) return;
        EXPECT_EQ(quoin_context_create(0, 0, nullptr, &ctx), QUOIN_OK) << quoin_last_error();
    }
    ~GpuCInterface() override { quoin_context_destroy(ctx); }

    static quoin_matrix given(MatrixView<T, Cuda> A) {
        const int type = std::is_same_v<T, float> ? QUOIN_TYPE_F32 : QUOIN_TYPE_F64;
        return {A.data, A.rows, A.cols, A.ld, type, QUOIN_COLUMN_MAJOR, 0};
    }
    /// Copies A to the GPU before any call of quoin.h, which has a stream of its own.
    GpuPadded<T> on_gpu(MatrixView<const T> A) {
        GpuPadded<T> copy(gpu(), A);
        gpu().wait();
        return copy;
    }
    /// Returns the output of `call`, which writes a rows×cols matrix.
    template <class Call>
    Matrix<T> written(Index rows, Index cols, const Call& call) {
        GpuPadded<T> output(gpu(), rows, cols);
        gpu().wait();
        const quoin_matrix to = given(output.view());
        EXPECT_EQ(call(&to), QUOIN_OK) << quoin_last_error();
        EXPECT_EQ(quoin_wait(ctx), QUOIN_OK) << quoin_last_error();
        return output.fetch(gpu());
    }

    quoin_context* ctx = nullptr;
};
TYPED_TEST_SUITE(GpuCInterface, Scalars);

TYPED_TEST(GpuCInterface, FactorizationsSolutionsAndStreamsObeyTheLaws) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{3000, 40}, {200, 200}, {300, 7}, {1, 1}}) {
        SCOPED_TRACE(testing::Message() << m << " x " << n);
        const Matrix<T> A = random_normal<T>(m, n), B = random_normal<T>(m, 2, 7);
        auto gA = this->on_gpu(A.view()), gB = this->on_gpu(B.view());
        const quoin_matrix a = this->given(gA.view()), b = this->given(gB.view());
        quoin_context* const ctx = this->ctx;
        quoin_factorization* f = nullptr;
        ASSERT_EQ(quoin_factor(ctx, &a, nullptr, &f), QUOIN_OK) << quoin_last_error();
        const auto r = [&](const quoin_matrix* R) { return quoin_r(ctx, f, R); };
        const auto q = [&](const quoin_matrix* Q) { return quoin_thin_q(ctx, f, Q); };
        const Matrix<T> Q = this->written(m, n, q), R = this->written(n, n, r);
        EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
        EXPECT_LE(orthogonality_error<T>(Q.view(), n), law);
        EXPECT_LE(residual_error<T>(A.view(), Q.view(), R.view()), law);

        LeastSquares<T> solution;
        solution.residual_norms.resize(2);
        solution.X = this->written(n, 2, [&](const quoin_matrix* X) {
            return quoin_solve(ctx, f, &b, nullptr, X, solution.residual_norms.data(), nullptr);
        });
        expect_least_squares_law<T>(A.view(), B.view(), solution);
        quoin_factorization_destroy(f);

        quoin_stream* stream = nullptr;
        ASSERT_EQ(quoin_stream_create(ctx, a.type, n, 2, &stream), QUOIN_OK) << quoin_last_error();
        EXPECT_EQ(quoin_stream_append(ctx, stream, &a, &b), QUOIN_OK) << quoin_last_error();
        solution.X = this->written(n, 2, [&](const quoin_matrix* X) {
            return quoin_stream_solve(ctx, stream, nullptr, X, solution.residual_norms.data(), nullptr);
        });
        expect_least_squares_law<T>(A.view(), B.view(), solution);
        quoin_stream_destroy(stream);
        EXPECT_TRUE(same_bits<T>(gA.fetch(this->gpu()).view(), A.view())) << "A is only read";
    }
}

TYPED_TEST(GpuCInterface, NamesTheFirstEntryThatIsNoNumber) {
    using T = TypeParam;
    Matrix<T> A = random_normal<T>(50, 3);
    A.view()(7, 2) = std::numeric_limits<T>::quiet_NaN();
    auto gA = this->on_gpu(A.view());
    const quoin_matrix a = this->given(gA.view());
    quoin_factorization* f = nullptr;
    EXPECT_EQ(quoin_factor(this->ctx, &a, nullptr, &f), QUOIN_NON_FINITE_ENTRY);
    EXPECT_NE(std::string(quoin_last_error()).find("row 7, column 2"), std::string::npos) << quoin_last_error();
}

}  // namespace
}  // namespace quoin::test
