// Memory, transfers, progress and interruption of Context<Cuda>.

#include <gmock/gmock.h>

#include "gallery.hpp"
#include "gpu.hpp"
#include "quoin/qr.hpp"

namespace quoin::test {
namespace {

using GpuContext = OnGpu;

TEST_F(GpuContext, MatricesGoThereAndBack) {
    for (auto [m, n] : {std::pair<Index, Index>{0, 5}, {1, 1}, {1000, 333}, {5'000'011, 1}, {3, 1'000'003}}) {
        if (quick() && m * n > 1'000'000) continue;
        const Matrix<double> A = random_normal<double>(m, n);
        for (Index padding : {0, 5}) {
            GpuPadded<double> gA(gpu(), A.view(), padding);
            EXPECT_TRUE(same_bits<double>(gA.fetch(gpu()).view(), A.view()));
        }
    }
}

TEST_F(GpuContext, MemoryThatCannotBeHadIsAClearError) {
    try {
        Matrix<double, Cuda> A(gpu(), Index(1) << 32, 1000);
        FAIL() << "32 TiB";
    } catch (const OutOfMemory& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("34359738368000 bytes asked for"));
        EXPECT_THAT(error.what(), testing::HasSubstr("free"));
    }
    // and the context goes on
    Matrix<double, Cuda> B(gpu(), 1000, 1000);
    EXPECT_THROW((Matrix<double, Cuda>(gpu(), -1, 3)), InvalidArgument);
}

TEST_F(GpuContext, ProgressAndStop) {
    const Matrix<double> A = random_normal<double>(2000, 60);
    const auto gA = copy_to_device<double>(gpu(), A.view());
    EXPECT_EQ(gpu().flops_done(), 0);
    qr<double, Cuda>(gpu(), gA.view());
    EXPECT_GT(gpu().flops_done(), 0);
    gpu().reset_progress();
    EXPECT_EQ(gpu().flops_done(), 0);
    gpu().request_stop();
    EXPECT_THROW((qr<double, Cuda>(gpu(), gA.view())), Interrupted);
    gpu().clear_stop();
    EXPECT_NO_THROW((qr<double, Cuda>(gpu(), gA.view())));
}

TEST_F(GpuContext, AFactorizationOutlivesItsContext) {
    const Matrix<float> A = random_normal<float>(500, 20);
    std::optional<QR<float, Cuda>> f;
    {
        Context<Cuda> other;
        f = qr<float, Cuda>(other, copy_to_device<float>(other, A.view()).view());
        other.wait();
    }
    const Matrix<float> Q = copy_to_host<float>(gpu(), f->form_q(gpu()).view());
    EXPECT_LE(orthogonality_error<float>(Q.view(), 20), law);
}

}  // namespace
}  // namespace quoin::test
