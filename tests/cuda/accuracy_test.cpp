// Tests of the accuracy that `quoin bench` measures: known errors, in blocks of columns, within a bound of memory.

#include "measure/cuda/accuracy.hpp"

#include <cmath>

#include "devices.hpp"
#include "gpu.hpp"
#include "measure/cuda/random.hpp"

namespace quoin::test {
namespace {

template <class T>
class GpuMeasures : public OnGpu {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuMeasures, Types);

/// 64 columns of 2²² rows make 2 GiB of double: three blocks of Q = I and R = I, but for q_130 = e_3 and r_3,130 = 2.
TYPED_TEST(GpuMeasures, ErrorsAcrossBlocksOfColumns) {
    using T = TypeParam;
    auto& ctx = this->gpu();
    const Index m = Index(1) << 22, n = 140;
    Matrix<T, Cuda> Q(ctx, m, n), R(ctx, n, n);
    set_identity<T>(ctx, 0, Q.view());
    set_identity<T>(ctx, 0, R.view());
    const auto identity = [&](Range cols, MatrixView<T, Cuda> block) { set_identity<T>(ctx, -cols.begin, block); };
    const auto residual = [&] { return bench::residual<T>(ctx, identity, Q, R); };
    EXPECT_EQ(bench::orthogonality(ctx, Q), 0);
    EXPECT_EQ(residual(), 0);

    // A − QR = −2 e_3 e_130ᵀ
    const Matrix<T> two = filled<T>(1, 1, T(2)), one = filled<T>(1, 1, T(1)), zero = filled<T>(1, 1, T(0));
    copy_to_device<T>(ctx, two.view(), R.view().block({3, 4}, {130, 131}));
    EXPECT_NEAR(residual(), 2 / std::sqrt(n), 1e-14);

    // QᵀQ − I has ones at (3, 130) and (130, 3)
    copy_to_device<T>(ctx, zero.view(), Q.view().block({130, 131}, {130, 131}));
    copy_to_device<T>(ctx, one.view(), Q.view().block({3, 4}, {130, 131}));
    EXPECT_NEAR(bench::orthogonality(ctx, Q), std::sqrt(2), 1e-14);

    // beside Q two blocks in double and one of float, or one in double, and what the pool does not fit together; A − QR
    // as a whole would take 4.4 GiB, and Q in double as much
    const double GiB = 1 << 30, of_q = sizeof(T) * static_cast<double>(m) * n;
    EXPECT_LE(memory_in_use(ctx).own, of_q + (std::is_same_v<T, float> ? 7.5 : 4.25) * GiB);
}

TYPED_TEST(GpuMeasures, ColumnsAreMadeAgain) {
    using T = TypeParam;
    auto& ctx = this->gpu();
    Matrix<T, Cuda> A(ctx, 1001, 37), block(ctx, 1001, 6);
    bench::fill_normal(ctx, A);
    bench::normal_columns<T>(ctx)({30, 36}, block.view());
    EXPECT_TRUE(same_bits<T>(copy_to_host<T>(ctx, block.view()).view(),
                             copy_to_host<T>(ctx, A.view()).view().col_block({30, 36})));
}

}  // namespace
}  // namespace quoin::test
