// Least squares of batches on a GPU obey the law of single ones, whatever their neighbours are.

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>

#include "../least_squares_law.hpp"
#include "batches.hpp"
#include "gallery.hpp"

namespace quoin::test {
namespace {

template <class T>
class GpuBatchLeastSquares : public OnGpuBatches<T> {
protected:
    static BatchView<const T, Cuda> one_of(const Matrix<T, Cuda>& all, Index b, Index n) {
        return {all.data() + b * n * all.ld(), all.rows(), n, all.ld(), all.rows() * n, 1};
    }

    void expect_law(Index b, MatrixView<const T> A, MatrixView<const T> B, BatchedLeastSquares<T, Cuda>& s) {
        SCOPED_TRACE(fmt::format("matrix {}, {}x{}", b, A.rows, A.cols));
        const Matrix<T> X = this->fetched(s.X[b]), norms = this->fetched(s.residual_norms[b]);
        ASSERT_TRUE(X.rows() == A.cols && X.cols() == B.cols && norms.rows() == B.cols);
        const auto errors = least_squares_errors<T>(A, B, X.view(), {norms.data(), norms.data() + norms.rows()});
        EXPECT_LE(errors.residual_norm, least_squares_law) << "ρ = ‖b − Ax‖";
        if (A.rows > A.cols) {
            EXPECT_LE(errors.gradient, least_squares_law) << "Aᵀ(b − Ax) = 0";
        } else {
            EXPECT_LE(errors.residual, least_squares_law) << "Ax = b";
        }
    }
};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuBatchLeastSquares, Precisions);

struct Shape {
    Index m, n;
};
constexpr Shape shapes[] = {{1, 1},   {3, 3},    {16, 8},   {5, 1},     {33, 32},   {64, 64},
                            {65, 65}, {128, 64}, {257, 64}, {140, 130}, {200, 200}, {300, 260},
                            {2, 7},   {8, 16},   {32, 33},  {64, 80},   {100, 190}};

TYPED_TEST(GpuBatchLeastSquares, EveryClassAndShapeInOneMixedBatch) {
    using T = TypeParam;
    std::vector<Matrix<T>> As, Bs;
    for (const Gallery matrix_class : {Gallery::RandomNormal, Gallery::GradedColumnsUp, Gallery::ClusteredScales,
                                       Gallery::Orthogonal, Gallery::NearOverflow}) {
        for (const auto& [m, n] : shapes) {
            const Index turn = static_cast<Index>(As.size());
            As.push_back(m < n ? random_normal<T>(m, n, turn) : generate<T>(matrix_class, m, n));
            Bs.push_back(random_normal<T>(m, turn % 6, turn));
        }
    }
    const auto A = this->on_gpu(As), B = this->on_gpu(Bs);
    auto s = least_squares<T>(this->gpu(), this->of(A), this->of(B));
    for (std::size_t b = 0; b < As.size(); ++b) this->expect_law(static_cast<Index>(b), As[b].view(), Bs[b].view(), s);
}

TYPED_TEST(GpuBatchLeastSquares, ManyOfOneShape) {
    using T = TypeParam;
    for (const auto& [m, n] : shapes) {
        const Index count = 17, p = 2;
        const Matrix<T> all = random_normal<T>(m, n * count), right = random_normal<T>(m, p * count, 3);
        const auto A = copy_to_device<T>(this->gpu(), all.view()), B = copy_to_device<T>(this->gpu(), right.view());
        auto s = least_squares<T>(this->gpu(), this->in(A, n), this->in(B, p), {.rcond = 0});
        // the bits that each has alone, and on a factorization that exists
        for (Index b = 0; b < count; ++b) {
            const auto Ab = all.view().col_block({b * n, (b + 1) * n}),
                       Bb = right.view().col_block({b * p, (b + 1) * p});
            this->expect_law(b, Ab, Bb, s);
            auto alone = least_squares<T>(this->gpu(), this->one_of(A, b, n), this->one_of(B, b, p), {.rcond = 0});
            EXPECT_TRUE(same_bits<T>(this->fetched(alone.X[0]).view(), this->fetched(s.X[b]).view()));
        }
        if (m < n) continue;
        auto again = least_squares<T>(this->gpu(), qr<T>(this->gpu(), this->in(A, n)), this->in(B, p), {.rcond = 0});
        for (Index b = 0; b < count; ++b)
            this->expect_law(b, all.view().col_block({b * n, (b + 1) * n}),
                             right.view().col_block({b * p, (b + 1) * p}), again);
    }
}

TYPED_TEST(GpuBatchLeastSquares, WhatIsRefusedIsNamedAndItsNeighboursAreUnharmed) {
    using T = TypeParam;
    for (const auto& [m, n] : {Shape{16, 8}, Shape{8, 16}, Shape{90, 70}, Shape{300, 260}}) {
        SCOPED_TRACE(fmt::format("{}x{}", m, n));
        const Index count = 20;
        Matrix<T> all = random_normal<T>(m, n * count), right = random_normal<T>(m, count, 3);
        auto clean = least_squares<T>(this->gpu(), this->in(copy_to_device<T>(this->gpu(), all.view()), n),
                                      this->in(copy_to_device<T>(this->gpu(), right.view()), 1));
        for (Index j = 0; j < n; ++j) all(1, 7 * n + j) = all(0, 7 * n + j);
        for (Index i = 0; i < m; ++i) all(i, 7 * n + 1) = all(i, 7 * n);
        const auto deficient = copy_to_device<T>(this->gpu(), all.view()),
                   B = copy_to_device<T>(this->gpu(), right.view());
        EXPECT_THROW(
            (void)least_squares<T>(this->gpu(), this->in(deficient, n), this->in(B, 1), {.refuse_deficient = true}),
            RankDeficient);
        EXPECT_LT(least_squares<T>(this->gpu(), this->in(deficient, n), this->in(B, 1)).ranks[7], std::min(m, n));
        all(0, 3 * n + 1) = std::numeric_limits<T>::quiet_NaN();
        const auto spoilt = copy_to_device<T>(this->gpu(), all.view());
        try {
            (void)least_squares<T>(this->gpu(), this->in(spoilt, n), this->in(B, 1));
            FAIL() << "NaN was accepted";
        } catch (const NonFiniteEntry& e) {
            EXPECT_EQ(e.col, 1);
            EXPECT_NE(std::string(e.what()).find("matrix 3 of the batch"), std::string::npos) << e.what();
        }
        Options unchecked;
        unchecked.check_finite = false;
        auto s =
            least_squares<T>(this->gpu(), this->in(spoilt, n), this->in(B, 1), {.refuse_deficient = true}, unchecked);
        for (Index b = 0; b < count; ++b) {
            SCOPED_TRACE(b);
            const Matrix<T> X = this->fetched(s.X[b]);
            if (b == 3 || b == 7) {
                EXPECT_TRUE(std::isnan(X(0, 0)) && std::isnan(X(n - 1, 0)));
            } else {
                EXPECT_TRUE(same_bits<T>(X.view(), this->fetched(clean.X[b]).view()));
            }
        }
    }
}

}  // namespace
}  // namespace quoin::test
