// From file to file by way of a GPU: the bits of the same slabs in the host's memory, both caps, the bytes that were
// planned, and runs that go on where others stopped.

#include "quoin/file_qr.hpp"

#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "cuda/tuning.hpp"
#include "file_qr_folder.hpp"
#include "gpu.hpp"
#include "quoin/out_of_core.hpp"

namespace quoin::test {
namespace {

template <class T>
class GpuFileQR : public WithGpu<FileQRFolder<T>> {
protected:
    using IoTest::path;
    using WithGpu<FileQRFolder<T>>::gpu;

    /// So much of the GPU for matrices, and in the host's memory `columns` at a time.
    FileOptions options_of(Index m, Index n, double matrix_memory, Index columns) {
        FileOptions options;
        options.device_memory = Tuning<Cuda>::library_bytes + matrix_memory;
        const double least = plan_file_qr<T>(gpu(), m, n, options).memory_bytes;
        options.memory = least + 2 * static_cast<double>(m * (columns - 1)) * sizeof(T);
        EXPECT_EQ(plan_file_qr<T>(gpu(), m, n, options).chunk, columns);
        return options;
    }
    FileQR<T, Cuda> open(const FileOptions& options) {
        return FileQR<T, Cuda>(gpu(), path("A.npy"), path("out"), options);
    }
    FileReport factor(const FileOptions& options) {
        FileQR<T, Cuda> f = open(options);
        f.run(gpu());
        const FilePlan& plan = f.plan();
        f.commit();
        EXPECT_LE(f.report().device_memory_bytes, options.device_memory) << "the cap";
        if (f.report().first_step == 0) {
            EXPECT_EQ(f.report().bytes_read, plan.bytes_read);
            EXPECT_GE(f.report().bytes_written, plan.bytes_written);
            EXPECT_LE(f.report().bytes_written - plan.bytes_written, headers);
        }
        return f.report();
    }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuFileQR, Types);

TYPED_TEST(GpuFileQR, HasTheBitsOfTheSameSlabsInTheHostsMemory) {
    using T = TypeParam;
    const std::pair<Index, Index> shapes[] = {{1500, 233}, {411, 411}, {300, 700}, {1, 1}};
    for (const auto& [m, n] : shapes) {
        const Index k = std::min(m, n);
        const Matrix<T> A = random_normal<T>(m, n);
        const double bytes = std::max(1.0, static_cast<double>(m * n) * sizeof(T) / (1 << 20)) * (1 << 20);
        OutOfCoreOptions beyond;
        beyond.memory_bytes = Tuning<Cuda>::library_bytes + bytes;
        Matrix<T> Q = copy<T>(A.view()), R = filled<T>(k, n, T(0));
        const OutOfCoreReport expected = qr_out_of_core<T, Cuda>(this->gpu(), Q.view(), R.view(), beyond);
        const Index slab = std::min(expected.plan.block, n);
        for (const bool fortran_order : {true, false}) {
            this->save(A.view(), fortran_order);
            for (const Index columns : {Index{1}, std::min<Index>(7, slab), slab}) {
                SCOPED_TRACE(fmt::format("{}x{} by {} {}", m, n, columns, fortran_order));
                const FileReport report = this->factor(this->options_of(m, n, bytes, columns));
                EXPECT_EQ(report.bytes_to_device, expected.bytes_in);
                EXPECT_EQ(report.bytes_from_device, expected.bytes_out);
                EXPECT_TRUE(same_bits<T>(this->r().view(), R.view()));
                EXPECT_TRUE(same_bits<T>(this->q().view(), std::as_const(Q).view().col_block({0, k})));
                EXPECT_TRUE(is_upper_trapezoidal<T>(this->r().view()));
                EXPECT_LE(orthogonality_error<T>(this->q().view(), k), law);
                EXPECT_LE(residual_error<T>(A.view(), this->q().view(), this->r().view()), law);
                EXPECT_FALSE(fs::exists(this->path("out/quoin-journal")));
            }
        }
    }
}

TYPED_TEST(GpuFileQR, ObeysTheLawForAnyMatrix) {
    using T = TypeParam;
    const Index m = 420, n = 330;
    for (const Gallery matrix_class : gallery()) {
        SCOPED_TRACE(to_string(matrix_class));
        const Matrix<T> A = generate<T>(matrix_class, m, n);
        this->save(A.view(), true);
        this->factor(this->options_of(m, n, 1 << 20, 16));
        EXPECT_LE(orthogonality_error<T>(this->q().view(), n), law);
        EXPECT_LE(residual_error<T>(A.view(), this->q().view(), this->r().view()), law);
        if (quick()) break;
    }
}

TYPED_TEST(GpuFileQR, AStoppedRunGoesOnToTheSameBits) {
    using T = TypeParam;
    const Index m = 900, n = 800;
    this->save(random_normal<T>(m, n).view(), true);
    const FileOptions options = this->options_of(m, n, 3 << 20, 20);
    this->factor(options);
    const std::string expected = this->outputs();
    const Index slabs = plan_file_qr<T>(this->gpu(), m, n, options).blocks;
    ASSERT_GE(slabs, 4);
    for (const Index steps : {Index{1}, slabs / 2, slabs, slabs + 1, 3 * slabs / 2}) {
        Index done = 0;
        while (done < steps) {
            FileQR<T, Cuda> f = this->open(options);
            std::atomic<bool> over{false};
            const double enough = static_cast<double>(steps) / static_cast<double>(2 * slabs);
            std::thread stop([&] {
                while (!over && f.fraction() < enough) std::this_thread::yield();
                this->gpu().request_stop();
            });
            try {
                f.run(this->gpu());
            } catch (const Interrupted&) {
            }
            over = true;
            stop.join();
            this->gpu().clear_stop();
            done = f.steps_done();
        }
        EXPECT_GE(this->factor(options).first_step, steps);
        EXPECT_TRUE(expected == this->outputs()) << "from step " << steps;
    }
}

TYPED_TEST(GpuFileQR, RefusesWhatTheHostBeganAndNamesBadEntries) {
    using T = TypeParam;
    const Index m = 300, n = 200;
    Matrix<T> A = random_normal<T>(m, n);
    this->save(A.view(), true);
    const FileOptions options = this->options_of(m, n, 1 << 20, 8);
    {
        Context<Host> host(2);
        FileQR<T> begun(host, this->path("A.npy"), this->path("out"), options);
        begun.run(host);
    }
    EXPECT_THROW(this->open(options), InvalidArgument);
    FileOptions anew = options;
    anew.restart = true;
    this->factor(anew);
    A(17, 150) = std::numeric_limits<T>::quiet_NaN();
    this->save(A.view(), true);
    try {
        this->factor(options);
        ADD_FAILURE() << "NaN went through";
    } catch (const NonFiniteEntry& entry) {
        EXPECT_EQ(entry.row, 17);
        EXPECT_EQ(entry.col, 150);
    }
    EXPECT_FALSE(fs::exists(this->path("out/quoin-journal")));
}

}  // namespace
}  // namespace quoin::test
