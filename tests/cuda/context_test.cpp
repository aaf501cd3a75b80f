// Memory, transfers, progress and interruption of Context<Cuda>.

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "cases.hpp"
#include "devices.hpp"
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

TEST_F(GpuContext, PinnedMemoryIsReadInPlace) {
    for (auto [m, n] : {std::pair<Index, Index>{1, 1}, {1001, 37}, {3, 70'001}}) {
        const Index ld = m + 3;
        const Matrix<float> A = random_normal<float>(ld, n), poison = filled<float>(ld, n, -1);
        float* pinned = nullptr;
        ASSERT_EQ(cudaHostAlloc(reinterpret_cast<void**>(&pinned), ld * n * sizeof(float), cudaHostAllocDefault),
                  cudaSuccess);
        std::copy_n(A.data(), ld * n, pinned);
        const MatrixView<float> there(pinned, m, n, ld);
        GpuPadded<float> gA(gpu(), m, n);
        copy_to_device<float>(gpu(), there, gA.view());
        EXPECT_TRUE(same_bits<float>(gA.fetch(gpu()).view(), A.view().row_block({0, m})));
        std::copy_n(poison.data(), ld * n, pinned);
        copy_to_host<float>(gpu(), gA.view(), there);
        const MatrixView<const float> all(pinned, ld, n, ld);
        EXPECT_TRUE(same_bits<float>(all.row_block({0, m}), A.view().row_block({0, m})));
        EXPECT_TRUE(same_bits<float>(all.row_block({m, ld}), poison.view().row_block({m, ld}))) << "padding";
        EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
    }
}

TEST_F(GpuContext, RowsTravelInBlocks) {
    // one block, many, a last one that is shorter, rows longer than a block, no rows, rows of nothing
    for (auto [m, n] : {std::pair<Index, Index>{1, 1}, {70'001, 100}, {5'000'011, 1}, {5, 4'500'000}, {0, 3}, {3, 0}}) {
        if (quick() && m * n > 1'000'000) continue;
        const Matrix<float> A = random_normal<float>(m, n);
        GpuPadded<float> gA(gpu(), m, n);
        Index next = 0;
        copy_rows_to_device<float>(
            gpu(),
            [&, m = m, n = n](Range rows, MatrixView<float> block) {
                EXPECT_EQ(rows.begin, next);
                next = rows.end;
                ASSERT_LE(rows.end, m);
                ASSERT_EQ(block.rows, rows.size());
                ASSERT_EQ(block.cols, n);
                for (Index j = 0; j < n; ++j) std::copy_n(A.view().at(rows.begin, j), rows.size(), block.at(0, j));
            },
            gA.view());
        EXPECT_EQ(next, m);
        EXPECT_TRUE(same_bits<float>(gA.fetch(gpu()).view(), A.view()));
        Index taken = 0;
        Matrix<float> back = filled<float>(m, n, std::numeric_limits<float>::quiet_NaN());
        copy_rows_to_host<float>(gpu(), gA.view(), [&, n = n](Range rows, MatrixView<const float> block) {
            for (Index j = 0; j < n; ++j) std::copy_n(block.at(0, j), rows.size(), back.view().at(rows.begin, j));
            taken += rows.size();
        });
        EXPECT_EQ(taken, m);
        EXPECT_TRUE(same_bits<float>(back.view(), A.view()));
    }
    // an error on the way ends the copy, and the next one is not disturbed
    const Matrix<float> A = random_normal<float>(70'001, 100);
    auto gA = copy_to_device<float>(gpu(), A.view());
    Matrix<float, Cuda> gB(gpu(), A.rows(), A.cols());
    const auto fail = [](Range rows, auto) {
        if (rows.begin > 0) throw Interrupted();
    };
    EXPECT_THROW(copy_rows_to_device<float>(gpu(), fail, gB.view()), Interrupted);
    EXPECT_THROW(copy_rows_to_host<float>(gpu(), gA.view(), fail), Interrupted);
    EXPECT_TRUE(same_bits<float>(copy_to_host<float>(gpu(), gA.view()).view(), A.view()));
}

TEST_F(GpuContext, SurveyFindsThisGpu) {
    const GpuSurvey survey = survey_gpus();
    ASSERT_FALSE(survey.gpus.empty()) << survey.problem;
    EXPECT_EQ(survey.gpus[0].problem, "");
    EXPECT_NE(survey.gpus[0].name, "");
    EXPECT_GE(survey.gpus[0].capability_major, 9);
    const DeviceMemory memory = device_memory(gpu());
    EXPECT_EQ(memory.total, survey.gpus[0].memory.total);
    EXPECT_LE(memory.free, memory.total);
}

/// Other programs may take and return memory of the device meanwhile: this context's own is counted.
TEST_F(GpuContext, MemoryInUseIsItsOwn) {
    constexpr double GiB = 1 << 30;
    const double before = memory_in_use(gpu()).own;
    EXPECT_LT(before, GiB / 2);
    const Matrix<double, Cuda> A(gpu(), 1 << 20, 128);
    Context<Cuda> another;
    const Matrix<double, Cuda> B(another, 1 << 20, 256);
    const double after = memory_in_use(gpu()).own;
    EXPECT_GE(after, before + GiB);
    EXPECT_LE(after, before + 1.1 * GiB);
    EXPECT_GE(memory_in_use(gpu()).obtainable, after);
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

TEST_F(GpuContext, StreamsAreOrderedByFollowAndPrecede) {
    const auto take_long = [](CudaStream stream) {
        const auto sleep = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); };
        ASSERT_EQ(cudaLaunchHostFunc(stream, sleep, nullptr), cudaSuccess);
    };
    const Matrix<double> A = random_normal<double>(300, 70);
    const auto gA = copy_to_device<double>(gpu(), A.view());
    const auto poison =
        copy_to_device<double>(gpu(), filled<double>(300, 70, std::numeric_limits<double>::quiet_NaN()).view());
    Matrix<double, Cuda> B(gpu(), 300, 70), C(gpu(), 300, 70);
    copy<double>(gpu(), poison.view(), B.view());
    Context<Cuda> other;
    gpu().wait();
    take_long(gpu().stream());
    copy<double>(gpu(), gA.view(), B.view());
    other.follow(gpu().stream());
    take_long(other.stream());
    copy<double>(other, B.view(), C.view());
    other.precede(gpu().stream());
    copy<double>(gpu(), poison.view(), B.view());
    EXPECT_TRUE(same_bits<double>(copy_to_host<double>(gpu(), C.view()).view(), A.view()));
}

TEST_F(GpuContext, BorrowedMemoryIsFactoredInPlaceAndStays) {
    const Matrix<double> A = random_normal<double>(1000, 40);
    for (Method method : {Method::CholeskyQR2, Method::CAQR, Method::BlockedHouseholder}) {
        SCOPED_TRACE(to_string(method));
        GpuPadded<double> padded(gpu(), A.view(), method == Method::CAQR ? 0 : 3);
        const MatrixView<double, Cuda> memory = padded.view();
        const Plan plan = plan_qr<double>(gpu(), 1000, 40, with(method, QForm::Explicit));
        Matrix<double> R;
        {
            QR<double, Cuda> f = qr<double, Cuda>(gpu(), Matrix<double, Cuda>::over(memory), plan);
            R = copy_to_host<double>(gpu(), f.r(gpu()).view());
            const Matrix<double, Cuda> Q = std::move(f).take_q(gpu());
            EXPECT_EQ(Q.data(), memory.data);
        }
        const Matrix<double> Q = padded.fetch(gpu());
        EXPECT_LE(orthogonality_error<double>(Q.view(), 40), law);
        EXPECT_LE(residual_error<double>(A.view(), Q.view(), R.view()), law);
    }
}

TEST_F(GpuContext, AlignedColumnsAreOnlyThoseOfSomeLength) {
    const auto ld = [&](Index rows) { return Matrix<float, Cuda>::aligned(gpu(), rows, 2).ld(); };
    EXPECT_EQ(ld(0), 1);
    EXPECT_EQ(ld(1023), 1023);
    EXPECT_EQ(ld(1028), 1028);
    EXPECT_EQ(ld(1025), 1056);
    // Q of a copy of A has them
    const Matrix<float> A = random_normal<float>(20001, 70);
    for (QForm q : {QForm::Explicit, QForm::Reflectors}) {
        const auto gA = copy_to_device<float>(gpu(), A.view());
        QR<float, Cuda> f = qr<float, Cuda>(gpu(), gA.view(), with(Method::Auto, q));
        const Matrix<float> R = copy_to_host<float>(gpu(), f.r(gpu()).view());
        const Matrix<float, Cuda> Q = std::move(f).take_q(gpu());
        EXPECT_EQ(Q.ld(), 20032);
        const Matrix<float> on_host = copy_to_host<float>(gpu(), Q.view());
        EXPECT_LE(orthogonality_error<float>(on_host.view(), 70), law);
        EXPECT_LE(residual_error<float>(A.view(), on_host.view(), R.view()), law);
    }
}

TEST_F(GpuContext, TheCurrentDeviceComesBack) {
    int before = -1, after = -1;
    ASSERT_EQ(cudaGetDevice(&before), cudaSuccess);
    EXPECT_THROW(CurrentDevice(4711), DeviceFailure);
    { const CurrentDevice current(before); }
    ASSERT_EQ(cudaGetDevice(&after), cudaSuccess);
    EXPECT_EQ(before, after);
    Matrix<double, Cuda> A(gpu(), 10, 10);
    EXPECT_NO_THROW(set_identity<double>(gpu(), 0, A.view())) << "an error that is left behind";
}

/// A call that neither checks its input nor decides anything enqueues all its work and waits for none of it.
TEST_F(GpuContext, ReflectorsWithoutACheckAreCapturedIntoAGraph) {
    if (has_plain_kernels()) GTEST_SKIP() << "plain kernels wait";
    const auto check = [](cudaError_t status) { ASSERT_EQ(status, cudaSuccess) << cudaGetErrorString(status); };
    for (Method method : {Method::BlockedHouseholder, Method::TSQR, Method::CAQR}) {
        SCOPED_TRACE(to_string(method));
        const Index m = 3000, n = method == Method::TSQR ? 30 : 70;
        Options options = with(method, QForm::Any);
        options.check_finite = false;
        if (method == Method::BlockedHouseholder) options.method.set_panel_width(32);  // wider ones are reconstructed
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
