// Memory, transfers, progress and interruption of Context<Cuda>.

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include "cases.hpp"
#include "cuda/primitives.hpp"
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

/// A call that neither checks its input nor decides anything enqueues all its work and waits for none of it.
TEST_F(GpuContext, ReflectorsWithoutACheckAreCapturedIntoAGraph) {
    const auto check = [](cudaError_t status) { ASSERT_EQ(status, cudaSuccess) << cudaGetErrorString(status); };
    for (Method method : {Method::BlockedHouseholder, Method::TSQR, Method::CAQR}) {
        SCOPED_TRACE(to_string(method));
        const Index m = 3000, n = method == Method::TSQR ? 30 : 70;
        Options options = with(method, QForm::Any);
        options.check_finite = false;
        Matrix<double, Cuda> A = copy_to_device<double>(gpu(), random_normal<double>(m, n, 1).view());
        Matrix<double, Cuda> Q(gpu(), m, n), R(gpu(), n, n);
        const auto factor = [&] {
            const QR<double, Cuda> f = qr<double, Cuda>(gpu(), A.view(), options);
            copy<double>(gpu(), f.form_q(gpu()).view(), Q.view());
            copy<double>(gpu(), f.r(gpu()).view(), R.view());
        };
        // handles, and an arena that need not grow
        factor();
        factor();
        gpu().wait();
        cudaGraph_t graph;
        cudaGraphExec_t replay;
        check(cudaStreamBeginCapture(gpu().stream(), cudaStreamCaptureModeThreadLocal));
        factor();
        check(cudaStreamEndCapture(gpu().stream(), &graph));
        check(cudaGraphInstantiate(&replay, graph, 0));
        for (std::uint64_t seed : {2, 3}) {
            copy_to_device<double>(gpu(), random_normal<double>(m, n, seed).view(), A.view());
            factor();
            const Matrix<double> expected_Q = copy_to_host<double>(gpu(), Q.view());
            const Matrix<double> expected_R = copy_to_host<double>(gpu(), R.view());
            set_identity<double>(gpu(), 0, Q.view());
            set_identity<double>(gpu(), 0, R.view());
            check(cudaGraphLaunch(replay, gpu().stream()));
            EXPECT_TRUE(same_bits<double>(copy_to_host<double>(gpu(), Q.view()).view(), expected_Q.view()));
            EXPECT_TRUE(same_bits<double>(copy_to_host<double>(gpu(), R.view()).view(), expected_R.view()));
        }
        check(cudaGraphExecDestroy(replay));
        check(cudaGraphDestroy(graph));
    }
}

}  // namespace
}  // namespace quoin::test
