// Views and owning matrices.

#include "quoin/matrix.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "checks.hpp"
#include "heap_peak.hpp"

namespace quoin::test {
namespace {

TEST(MatrixView, IsColumnMajor) {
    std::vector<double> data(20);
    std::iota(data.begin(), data.end(), 0.0);
    const MatrixView<double> A(data.data(), 3, 4, 5);
    EXPECT_EQ(A(2, 3), 17.0);
    EXPECT_EQ(A.at(1, 2), data.data() + 11);
    EXPECT_EQ((MatrixView<double>(data.data(), 3, 4).ld), 3);
    EXPECT_EQ((MatrixView<double>(data.data(), 0, 4).ld), 1);
}

TEST(MatrixView, BlocksShareMemory) {
    std::vector<double> data(20);
    std::iota(data.begin(), data.end(), 0.0);
    const MatrixView<double> A(data.data(), 5, 4);
    const MatrixView<double> B = A.block({1, 4}, {2, 4});
    EXPECT_EQ(B.rows, 3);
    EXPECT_EQ(B.cols, 2);
    EXPECT_EQ(B.ld, 5);
    EXPECT_EQ(&B(2, 1), &A(3, 3));
    EXPECT_EQ(&A.row_block({2, 5})(0, 3), &A(2, 3));
    EXPECT_EQ(&A.col_block({2, 4})(4, 1), &A(4, 3));
    B(0, 0) = -1;
    EXPECT_EQ(data[11], -1);
    EXPECT_TRUE(A.block({2, 2}, {0, 4}).empty());
    EXPECT_TRUE(A.block({0, 5}, {1, 1}).empty());
    EXPECT_FALSE(B.empty());
}

TEST(MatrixView, OfWritableMemoryServesAsOneOfReadOnlyMemoryButNotTheReverse) {
    static_assert(std::is_convertible_v<MatrixView<double>, MatrixView<const double>>);
    static_assert(!std::is_convertible_v<MatrixView<const double>, MatrixView<double>>);
    static_assert(!std::is_convertible_v<MatrixView<float>, MatrixView<const double>>);
}

template <class T>
class MatrixOf : public testing::Test {};
TYPED_TEST_SUITE(MatrixOf, Scalars);

TYPED_TEST(MatrixOf, OwnsAlignedMemory) {
    for (Index m : {1, 3, 1000}) {
        Matrix<TypeParam> A = filled<TypeParam>(m, 7, 2);
        EXPECT_EQ(A.rows(), m);
        EXPECT_EQ(A.cols(), 7);
        EXPECT_EQ(A.ld(), m);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(A.data()) % 64, 0u);
        EXPECT_EQ(&A(m - 1, 6), A.data() + m * 7 - 1);
        EXPECT_EQ(A.view().data, A.data());
    }
}

TYPED_TEST(MatrixOf, MovesWithoutACopy) {
    static_assert(!std::is_copy_constructible_v<Matrix<TypeParam>>);
    static_assert(!std::is_copy_assignable_v<Matrix<TypeParam>>);
    Matrix<TypeParam> A = filled<TypeParam>(30, 4, 2);
    const TypeParam* data = A.data();
    Matrix<TypeParam> B = std::move(A);
    EXPECT_EQ(B.data(), data);
    Matrix<TypeParam> C(2, 2);
    C = std::move(B);
    EXPECT_EQ(C.data(), data);
    EXPECT_EQ(C.rows(), 30);
    EXPECT_EQ(C.cols(), 4);
}

TYPED_TEST(MatrixOf, ZeroSizeHasNoMemory) {
    for (auto [m, n] : {std::pair<Index, Index>{0, 0}, {0, 5}, {5, 0}}) {
        const Matrix<TypeParam> A(m, n);
        EXPECT_EQ(A.rows(), m);
        EXPECT_EQ(A.cols(), n);
        EXPECT_GE(A.ld(), 1);
        EXPECT_TRUE(A.view().empty());
    }
    EXPECT_EQ(Matrix<TypeParam>().data(), nullptr);
}

TYPED_TEST(MatrixOf, ImpossibleSizesAreInvalid) {
    constexpr Index largest = std::numeric_limits<Index>::max();
    EXPECT_THROW(Matrix<TypeParam>(-1, 1), InvalidArgument);
    EXPECT_THROW(Matrix<TypeParam>(1, -1), InvalidArgument);
    EXPECT_THROW(Matrix<TypeParam>(-1, 0), InvalidArgument);
    EXPECT_THROW(Matrix<TypeParam>(largest, largest), InvalidArgument);
    EXPECT_THROW(Matrix<TypeParam>(Index(1) << 32, Index(1) << 32), InvalidArgument);
    EXPECT_THROW(Matrix<TypeParam>(largest, 2), InvalidArgument);
}

TYPED_TEST(MatrixOf, MemoryThatCannotBeHadIsOutOfMemory) {
    // 2^52 entries are beyond the address space of every machine Quoin runs on.
    EXPECT_THROW(Matrix<TypeParam>(Index(1) << 26, Index(1) << 26), OutOfMemory);
}

#ifndef QUOIN_SANITIZED
TEST(Matrix, TakesItsSizeAlsoWhereItWouldBeginALargePage) {
    // 40 MB in steps of 208 bytes, the block that the heap gives one: some begin a large page of 2 MiB
    std::vector<Matrix<double>> all;
    all.reserve(200'000);
    const std::size_t before = in_use();
    while (all.size() < 200'000) {
        for (int i = 0; i < 1000; ++i) all.emplace_back(8, 1);
        ASSERT_LT(in_use() - before, 256 * all.size());
    }
}
#endif

}  // namespace
}  // namespace quoin::test
