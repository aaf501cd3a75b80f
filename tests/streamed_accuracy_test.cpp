// The accuracy that --verify of files measures, block by block, against its definition: of a Q that is far from
// orthonormal and an A that is far from QR, so that each of its entries counts.

#include "streamed_accuracy.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "checks.hpp"
#include "gallery.hpp"

namespace quoin::test {
namespace {

template <class T>
class StreamedAccuracyTest : public testing::Test {};
TYPED_TEST_SUITE(StreamedAccuracyTest, Scalars);

TYPED_TEST(StreamedAccuracyTest, IsThatOfTheWholeMatrixInAnyBlocks) {
    using T = TypeParam;
    Context<Host> ctx(2);
    const Index m = 301;
    for (const auto& [n, k] : {std::pair<Index, Index>{37, 37}, {53, 20}, {1, 1}}) {
        const Matrix<T> A = random_normal<T>(m, n, 1), Q = random_normal<T>(m, k, 2);
        Matrix<T> R = random_normal<T>(k, n, 3);
        for (Index j = 0; j < n; ++j)
            for (Index i = j + 1; i < k; ++i) R(i, j) = 0;
        Wide<T> departure = 0, difference = 0, norm = 0;
        for (Index j = 0; j < k; ++j)
            for (Index i = 0; i < k; ++i) {
                Wide<T> dot = i == j ? -1 : 0;
                for (Index l = 0; l < m; ++l) dot += Wide<T>(Q(l, i)) * Q(l, j);
                departure += dot * dot;
            }
        for (Index j = 0; j < n; ++j)
            for (Index i = 0; i < m; ++i) {
                Wide<T> e = A(i, j);
                norm += e * e;
                for (Index l = 0; l < k; ++l) e -= Wide<T>(Q(i, l)) * R(l, j);
                difference += e * e;
            }
        const double expected_departure = std::sqrt(static_cast<double>(departure)),
                     expected_residual = std::sqrt(static_cast<double>(difference / norm));
        for (const Index width : {Index{1}, Index{8}, n}) {
            for (const Index tile : {1, 50, 256}) {
                SCOPED_TRACE(fmt::format("{}x{} of {} columns, by {} and {}", m, n, k, width, tile));
                std::optional<cli::StreamedAccuracy<T>> all;
                for (Index j = 0; j < n; j += width) {
                    const Range J{j, std::min(n, j + width)}, above{0, std::min(k, J.end)};
                    cli::StreamedAccuracy<T> pass(k, J, tile);
                    for (const Range rows : {Range{0, 100}, Range{100, 101}, Range{101, m}})
                        pass.add(ctx, A.view().block(rows, J), Q.view().block(rows, above), R.view().block(above, J));
                    if (all) pass.add(*all);
                    all.emplace(std::move(pass));
                }
                // QᵀQ is rounded in double for either type, norms of A's columns as BLAS has them
                EXPECT_NEAR(all->orthogonality(), expected_departure, 256 * unit_roundoff<double> * expected_departure);
                EXPECT_NEAR(all->residual(), expected_residual, 256 * unit_roundoff<T> * expected_residual);
            }
        }
    }
}

}  // namespace
}  // namespace quoin::test
