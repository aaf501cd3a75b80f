// QR of matrices in the host's memory by a GPU that may take less: the law, the same R as where all is in its memory,
// the cap, the bytes that were planned, and that moves go on beside the computation.

#include "quoin/out_of_core.hpp"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/out_of_core/tiles.hpp"
#include "cases.hpp"
#include "cuda/tuning.hpp"
#include "devices.hpp"
#include "gallery.hpp"
#include "gpu.hpp"
#include "measure/cuda/accuracy.hpp"
#include "measure/cuda/page_locked.hpp"
#include "out_of_core_law.hpp"
#include "quoin/study.hpp"

namespace quoin::test {
namespace {

constexpr double MiB = 1 << 20;
/// Bytes of a cap that libraries take: the plan refuses less.
constexpr double libraries = Tuning<Cuda>::library_bytes;

constexpr OutOfCoreMethod methods[] = {OutOfCoreMethod::Householder, OutOfCoreMethod::Recursive, study::Blocking};

template <class T>
OutOfCoreOptions options_of(OutOfCoreMethod method, double matrix_memory, Arithmetic arithmetic = Arithmetic::Native) {
    OutOfCoreOptions options;
    options.method = method;
    options.arithmetic = arithmetic;
    options.memory_bytes = libraries + matrix_memory;
    return options;
}

template <class T>
class GpuOutOfCore : public OnGpu {
protected:
    void SetUp() override {
        OnGpu::SetUp();
        if (!IsSkipped()) apart_.emplace();
    }
    /// A context whose memory `gpu()` does not count.
    Context<Cuda>& apart() { return *apart_; }

    using Factors = OutOfCoreFactors<T>;
    Factors factor(MatrixView<const T> A, const OutOfCoreOptions& options) {
        Factors factors = factor_out_of_core_copy<T>(gpu(), A, options);
        EXPECT_LE(factors.report.memory_bytes, options.memory_bytes) << "the cap";
        return factors;
    }
    void expect_law(MatrixView<const T> A, const Factors& f, bool orthonormal) {
        expect_out_of_core_law<T>(A, f, orthonormal);
    }

private:
    std::optional<Context<Cuda>> apart_;
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuOutOfCore, Types);

TYPED_TEST(GpuOutOfCore, MovesEveryShapeFromAnyMemory) {
    using T = TypeParam;
    auto& ctx = this->gpu();
    auto &in = copy_in_stream(ctx), &out = copy_out_stream(ctx);
    // the largest are more than the buffers hold at a time
    const std::pair<Index, Index> shapes[] = {{1, 1},     {5, 3},       {1000, 77},   {1, 3000},
                                              {70001, 5}, {9000001, 9}, {4097, 20011}};
    for (const auto& [m, n] : shapes) {
        SCOPED_TRACE(shape_name(m, n));
        const bool large = m * n > 1000000;
        Matrix<T> A(m + 3, n);
#pragma omp parallel for
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m + 3; ++i) A(i, j) = static_cast<T>((i * 31 + j * 1009) % 65521);
        }
        for (const bool pinned : {false, true}) {
            Matrix<T> B = filled<T>(m + 3, n, T(-1));
            if (pinned && large) continue;
            std::optional<bench::PageLocked> of_a, of_b;
            if (pinned) {
                ASSERT_TRUE(of_a.emplace(A.data(), sizeof(T) * A.rows() * n).locked());
                ASSERT_TRUE(of_b.emplace(B.data(), sizeof(T) * B.rows() * n).locked());
            }
            Matrix<T, Cuda> there(ctx, m + 1, n);
            wait_for(in, ctx);
            start_copy_from_host<T>(in, std::as_const(A).view().row_block({0, m}), there.view().row_block({0, m}));
            wait_for(out, in);
            start_copy_to_host<T>(out, there.view().row_block({0, m}), B.view().row_block({0, m}));
            // work after a finished copy finds it
            finish_copies(out);
            wait_for(in, out);
            start_copy_from_host<T>(in, std::as_const(B).view().row_block({0, m}), there.view().row_block({0, m}));
            wait_for(ctx, in);
            ctx.wait();
            const Matrix<T> back = copy_to_host<T>(ctx, there.view().row_block({0, m}));
            Index wrong = 0, wrong_back = 0, touched = 0;
#pragma omp parallel for reduction(+ : wrong, wrong_back, touched)
            for (Index j = 0; j < n; ++j) {
                for (Index i = 0; i < m; ++i) {
                    wrong += B(i, j) != A(i, j);
                    wrong_back += back(i, j) != A(i, j);
                }
                for (Index i = m; i < m + 3; ++i) touched += B(i, j) != T(-1);
            }
            EXPECT_EQ(wrong, 0);
            EXPECT_EQ(wrong_back, 0);
            EXPECT_EQ(touched, 0) << "padding";
        }
    }
}

TYPED_TEST(GpuOutOfCore, ObeysTheLawWithinTheCap) {
    using T = TypeParam;
    constexpr bool single = std::is_same_v<T, float>;
    const std::pair<Index, Index> shapes[] = {{900, 500}, {411, 411}, {1500, 233}};
    for (const auto& [m, n] : shapes) {
        const Matrix<T> A = random_normal<T>(m, n);
        const double bytes = static_cast<double>(m * n) * sizeof(T);
        // the same in the device's memory
        const Matrix<T, Cuda> on_gpu = copy_to_device<T>(this->apart(), A.view());
        const auto in_core = qr<T, Cuda>(this->apart(), on_gpu.view(), with(Method::BlockedHouseholder));
        const Matrix<T> R = copy_to_host<T>(this->apart(), in_core.r(this->apart()).view());
        for (const OutOfCoreMethod method : methods) {
            for (const bool again : {false, true}) {
                if (again && method == OutOfCoreMethod::Householder) continue;
                OutOfCoreOptions options = options_of<T>(method, bytes);
                options.reorthogonalize = again;
                options.block = method == OutOfCoreMethod::Householder ? 0 : 64;
                SCOPED_TRACE(shape_name(m, n) + " " + to_string(method) + (again ? " again" : ""));
                const auto f = this->factor(A.view(), options);
                EXPECT_LT(f.report.plan.block, n) << "out of core";
                this->expect_law(A.view(), f, again || method == OutOfCoreMethod::Householder);
                // R is unique but for the signs of its rows; what each route's errors move it by is κ(A) times them
                Matrix<T> same = test::copy<T>(f.R.view());
                for (Index i = 0; i < n; ++i) {
                    if ((same(i, i) < 0) == (R(i, i) < 0)) continue;
                    for (Index j = i; j < n; ++j) same(i, j) = -same(i, j);
                }
                const double condition = m == n ? 1e5 : 10;
                EXPECT_LE(difference<T>(same.view(), R.view(), n, condition * frobenius_norm<T>(A.view())), law);
            }
        }
    }
    // pieces of the gallery that are hard on everything but reflectors
    for (const Gallery g : {Gallery::RankDeficientExact, Gallery::ZeroSomeColumns, Gallery::GradedColumnsDown,
                            Gallery::GradedRowsUp, Gallery::NearOverflow, Gallery::Denormal, Gallery::Kahan}) {
        SCOPED_TRACE(to_string(g));
        for (const auto& [m, n] : {std::pair<Index, Index>{500, 400}, {300, 450}}) {
            const Matrix<T> A = generate<T>(g, m, n);
            const auto f = this->factor(A.view(), options_of<T>(OutOfCoreMethod::Householder, 2 * MiB,
                                                                single ? Arithmetic::Corrected : Arithmetic::Native));
            this->expect_law(A.view(), f, true);
        }
    }
}

/// Without one of the optimizations, or all: products in f32 also round Q to 16 bits and pass it in places.
TYPED_TEST(GpuOutOfCore, FactorsByEverySchedule) {
    using T = TypeParam;
    const Index m = 2500, n = 1100;
    const Matrix<T> A = random_normal<T>(m, n);
    for (const OutOfCoreMethod method : {OutOfCoreMethod::Recursive, study::Blocking}) {
        for (const OutOfCoreSchedule& schedule : {OutOfCoreSchedule{.asynchronous = false},
                                                  {.growing = false},
                                                  {.joined_stages = false},
                                                  {false, false, false}}) {
            OutOfCoreOptions options = options_of<T>(method, sizeof(T) * static_cast<double>(m * n));
            options.block = 128;
            options.reorthogonalize = true;
            this->expect_law(A.view(), factor_out_of_core_copy<T>(this->gpu(), A.view(), options, schedule), true);
            if (std::is_same_v<T, double>) continue;
            options.reorthogonalize = false;
            options.arithmetic = Arithmetic::FP16;
            const auto f = factor_out_of_core_copy<T>(this->gpu(), A.view(), options, schedule);
            EXPECT_LE(residual_error<T>(A.view(), f.Q.view(), f.R.view()) * unit_roundoff<T>, law * 0x1p-11);
        }
    }
}

TYPED_TEST(GpuOutOfCore, LeavesLapacksFormat) {
    using T = TypeParam;
    const Index m = 900, n = 640;
    const Matrix<T> A = random_normal<T>(m, n);
    Matrix<T> V = test::copy<T>(A.view()), tau = filled<T>(n, 1, std::numeric_limits<T>::quiet_NaN());
    OutOfCoreOptions options = options_of<T>(OutOfCoreMethod::Householder, 4 * MiB);
    const OutOfCoreReport report = factor_out_of_core<T, Cuda>(this->gpu(), V.view(), tau.view(), options);
    EXPECT_EQ(report.bytes_in, report.plan.bytes_in);
    EXPECT_LT(report.plan.block, n);
    // τ = 2 / ‖v‖²
    for (Index j = 0; j < n; ++j) {
        double square = 1;
        for (Index i = j + 1; i < m; ++i) square += double(V(i, j)) * V(i, j);
        if (j < m - 1) {
            ASSERT_NEAR(tau(j, 0), 2 / square, 100 * unit_roundoff<T> * m) << j;
        }
    }
}

/// Another context takes a GiB meanwhile, or two, as another program may.
TYPED_TEST(GpuOutOfCore, CountsItsOwnMemory) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(900, 500);
    for (const OutOfCoreMethod method : methods) {
        SCOPED_TRACE(to_string(method));
        OutOfCoreOptions options = options_of<T>(method, sizeof(T) * 900.0 * 500);
        options.block = method == OutOfCoreMethod::Householder ? 0 : 64;
        Matrix<T, Cuda> of_another;
        options.progress = [&](double) {
            if (of_another.rows() == 0) of_another = Matrix<T, Cuda>(this->apart(), Index(1) << 28, 1);
        };
        this->factor(A.view(), options);
        EXPECT_GT(of_another.rows(), 0);
    }
}

TYPED_TEST(GpuOutOfCore, NamesWhatItCannotFactor) {
    using T = TypeParam;
    Matrix<T> A = random_normal<T>(400, 300), R = filled<T>(300, 300, T(0));
    for (const OutOfCoreMethod method : methods) {
        Matrix<T> B = test::copy<T>(A.view());
        B(17, 211) = std::numeric_limits<T>::infinity();
        try {
            qr_out_of_core<T, Cuda>(this->gpu(), B.view(), R.view(), options_of<T>(method, 2 * MiB));
            FAIL() << "Inf went through";
        } catch (const NonFiniteEntry& entry) {
            EXPECT_EQ(entry.row, 17);
            EXPECT_EQ(entry.col, 211);
        }
    }
    OutOfCoreOptions small = options_of<T>(OutOfCoreMethod::Recursive, 1000);
    EXPECT_THROW((qr_out_of_core<T, Cuda>(this->gpu(), A.view(), R.view(), small)), OutOfMemory);
    this->gpu().request_stop();
    EXPECT_THROW(
        (qr_out_of_core<T, Cuda>(this->gpu(), A.view(), R.view(), options_of<T>(OutOfCoreMethod::Recursive, 2 * MiB))),
        Interrupted);
    this->gpu().clear_stop();
}

/// Errors that the arithmetic of large products leaves, f32, on matrices wide enough for it to be used; and what the
/// trace says.
using GpuArithmetic = GpuOutOfCore<float>;
TEST_F(GpuArithmetic, LargeProductsKeepTheirAccuracy) {
    const Index m = 4096, n = 4096;
    const Matrix<float> A = random_normal<float>(m, n);
    const Matrix<float, Cuda> on_gpu = copy_to_device<float>(apart(), A.view());
    const struct {
        Arithmetic arithmetic;
        double residual;  // in units of the arithmetic's u
        double u;
    } cases[] = {{Arithmetic::Native, 200, 0x1p-24},
                 {Arithmetic::Corrected, 200, 0x1p-24},
                 {study::TF32, 16, 0x1p-11},
                 {Arithmetic::FP16, 16, 0x1p-11},
                 {study::BF16, 16, 0x1p-8}};
    for (const OutOfCoreMethod method : methods) {
        for (const auto& c : cases) {
            const bool slabs = method == OutOfCoreMethod::Householder;
            if (slabs && c.u != 0x1p-24) continue;
            for (const bool again : {false, true}) {
                if (again && (slabs || c.u != 0x1p-24)) continue;
                const double memory = !slabs ? 96 : c.arithmetic == Arithmetic::Native ? 48 : 160;
                OutOfCoreOptions options = options_of<float>(method, memory * MiB, c.arithmetic);
                options.reorthogonalize = again;
                SCOPED_TRACE(std::string(to_string(method)) + " " + to_string(c.arithmetic) + (again ? " again" : ""));
                const auto f = factor(A.view(), options);
                EXPECT_LT(f.report.plan.block, n);
                const Matrix<float, Cuda> Q = copy_to_device<float>(apart(), f.Q.view()),
                                          R = copy_to_device<float>(apart(), f.R.view());
                const double residual = bench::residual<float>(apart(), on_gpu, Q, R);
                const double orthogonality = bench::orthogonality<float>(apart(), Q);
                RecordProperty(std::string(to_string(method)) + to_string(c.arithmetic), std::to_string(residual));
                EXPECT_LE(residual, c.residual * c.u);
                EXPECT_GT(residual, 0);
                if (slabs || again) {
                    EXPECT_LE(orthogonality, law * n * c.u);
                }
            }
        }
    }
}

/// Blocks of Q that pass are kept in 16 bits, in runs of rows and pieces of columns, none of them whole here. Pinned
/// memory is read and written as soon as the order of the streams lets it be, and other memory later.
///
/// An entry of Q₀ᵀW is a sum of m products of operands rounded independently: ± u/√m of its columns' norms, or a few
/// times that. Where nothing cancels this is what departs from orthogonality; and after a second projection, which
/// rounds as the first one did, whatever has cancelled in that.
TEST_F(GpuArithmetic, PassesRoundedColumns) {
    const Index m = 17001, n = 3100;
    const Matrix<float> apart_from_each_other = random_normal<float>(m, n);
    // 64 parts of one column in all of them: once leaves 64 times as much
    Matrix<float> alike = test::copy<float>(apart_from_each_other.view());
    for (Index j = 1; j < n; ++j) {
        for (Index i = 0; i < m; ++i) alike(i, j) += 64 * alike(i, 0);
    }
    const std::pair<Arithmetic, double> cases[] = {{Arithmetic::FP16, 0x1p-11}, {study::BF16, 0x1p-8}};
    for (const auto& [arithmetic, u] : cases) {
        for (const auto& [pinned, again] : {std::pair{false, false}, {true, false}, {true, true}}) {
            SCOPED_TRACE(std::string(to_string(arithmetic)) + (pinned ? " pinned" : "") + (again ? " again" : ""));
            const Matrix<float>& A = again ? alike : apart_from_each_other;
            const Matrix<float, Cuda> on_gpu = copy_to_device<float>(apart(), A.view());
            OutOfCoreOptions options = options_of<float>(OutOfCoreMethod::Recursive, 180 * MiB, arithmetic);
            options.block = again ? 512 : 1024;
            options.reorthogonalize = again;
            Matrix<float> Q = test::copy<float>(A.view()), R = filled<float>(n, n, 0);
            std::optional<bench::PageLocked> of_q, of_r;
            if (pinned) {
                ASSERT_TRUE(of_q.emplace(Q.data(), sizeof(float) * m * n).locked());
                ASSERT_TRUE(of_r.emplace(R.data(), sizeof(float) * n * n).locked());
            }
            Trace trace;
            gpu().attach(&trace);
            const OutOfCoreReport report = qr_out_of_core<float, Cuda>(gpu(), Q.view(), R.view(), options);
            gpu().attach(nullptr);
            EXPECT_LE(report.memory_bytes, options.memory_bytes) << "the cap";
            EXPECT_EQ(report.bytes_in, report.plan.bytes_in);
            EXPECT_EQ(report.bytes_out, report.plan.bytes_out);
            EXPECT_LT(report.plan.block, n / 2);
            // and a leaf too, where it does not share the memory with what comes again
            EXPECT_NE(tiles_of(report.plan).passes_q(report.plan.block, report.plan.block), again);
            int passing = 0;
            for (const Trace::Span& span : trace.spans()) passing += std::string(span.name) == "Q in";
            EXPECT_GE(passing, 6);
            const Matrix<float, Cuda> Q_there = copy_to_device<float>(apart(), Q.view()),
                                      R_there = copy_to_device<float>(apart(), R.view());
            const double residual = bench::residual<float>(apart(), on_gpu, Q_there, R_there);
            EXPECT_LE(residual, 16 * u);
            EXPECT_GT(residual, u / 64);
            EXPECT_LE(bench::orthogonality<float>(apart(), Q_there), 8 * u * n / std::sqrt(m));
        }
    }
}

TEST_F(GpuArithmetic, ComputesWhileItMoves) {
    const Index m = 12288, n = 12288;
    // pinned, so that the bus and not the host's cores are what moves
    Matrix<float> A(m, n), R(n, n);
#pragma omp parallel for
    for (Index j = 0; j < n; ++j) {
        std::uint64_t state = static_cast<std::uint64_t>(j) * 0x9e3779b97f4a7c15u + 1;
        for (Index i = 0; i < m; ++i) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            A(i, j) = static_cast<float>(static_cast<double>(state >> 40) * 0x1p-23 - 1);
            R(i, j) = 0;
        }
    }
    const bench::PageLocked of_a(A.data(), sizeof(float) * m * n), of_r(R.data(), sizeof(float) * n * n);
    ASSERT_TRUE(of_a.locked() && of_r.locked());
    const OutOfCoreOptions options = options_of<float>(OutOfCoreMethod::Recursive, 256 * MiB);
    {
        Trace trace;
        gpu().attach(&trace);
        const OutOfCoreReport report = qr_out_of_core<float, Cuda>(gpu(), A.view(), R.view(), options);
        gpu().attach(nullptr);
        EXPECT_GT(report.hidden, 0.4) << "native products take far longer than their moves";
        const study::PaperBytes paper = study::paper_bytes(report.plan, report.plan.block);
        EXPECT_LE(report.bytes_in + report.bytes_out, paper.in + paper.out);
        int in = 0, out = 0, products = 0;
        for (const Trace::Span& span : trace.spans()) {
            in += span.row == Trace::Row::ToDevice;
            out += span.row == Trace::Row::ToHost;
            products += span.row == Trace::Row::Device;
        }
        EXPECT_GT(in, 20);
        EXPECT_GT(out, 20);
        EXPECT_GT(products, 20);
        const OutOfCoreTimes times = out_of_core_times(trace);
        EXPECT_EQ(times.hidden(), report.hidden);
        for (const double seconds : {times.in, times.out, times.panels, times.products, times.product_copies}) {
            EXPECT_GT(seconds, 0);
            EXPECT_LT(seconds, report.seconds);
        }
        EXPECT_LT(times.product_copies, times.copies) << "panels are copied too";
        EXPECT_LE(times.panels + times.products, report.seconds) << "both are on one stream";
    }
}

}  // namespace
}  // namespace quoin::test
