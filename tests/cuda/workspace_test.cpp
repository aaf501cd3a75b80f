// A plan's workspace is what its factorization takes of the GPU's memory beyond A.

#include "../workspace_cases.hpp"
#include "algorithms/one_matrix/plan.hpp"
#include "gallery.hpp"
#include "gpu.hpp"

namespace quoin::test {
namespace {

template <class T>
class GpuWorkspace : public OnGpu {
protected:
    void is_what_the_plan_says(double aspect);
};
TYPED_TEST_SUITE(GpuWorkspace, Scalars);

template <class T>
void GpuWorkspace<T>::is_what_the_plan_says(double aspect) {
    const double entries = quick() ? 4e6 : 1.2e8, spare = 0x1p28;
    // every case views the same numbers
    const Matrix<T, Cuda> numbers =
        copy_to_device<T>(this->gpu(), random_normal<T>(static_cast<Index>(1.1 * entries), 1).view());
    Index turn = sizeof(T) / 4;
    for (const WorkspaceCase& c : workspace_cases<Cuda>(entries, aspect)) {
        // one formula counts entries of both types
        if (!every_combination() && ++turn % 2 > 0) continue;
        SCOPED_TRACE(c.name);
        Context<Cuda> ctx;
        Matrix<T, Cuda> A(ctx, c.m, c.n);
        copy<T>(ctx, MatrixView<const T, Cuda>(numbers.data(), c.m, c.n, c.m), A.view());
        const Plan plan = plan_qr<T>(ctx, c.m, c.n, c.options);
        const double before = memory_in_use(ctx).own;
        const QR<T, Cuda> f = qr(ctx, std::move(A), plan);
        ctx.wait();
        // the pool keeps the most that it has had
        const double taken = memory_in_use(ctx).own - before;
        EXPECT_LE(taken, plan.workspace_bytes + spare);
        EXPECT_LE(plan.workspace_bytes, 1.1 * taken + spare);
    }
}

// one test would last longer than all others together
TYPED_TEST(GpuWorkspace, OfVeryTallMatricesIsWhatThePlanSays) { this->is_what_the_plan_says(aspects[0]); }
TYPED_TEST(GpuWorkspace, OfTallMatricesIsWhatThePlanSays) { this->is_what_the_plan_says(aspects[1]); }
TYPED_TEST(GpuWorkspace, OfSquaresIsWhatThePlanSays) { this->is_what_the_plan_says(aspects[2]); }
TYPED_TEST(GpuWorkspace, OfWideMatricesIsWhatThePlanSays) { this->is_what_the_plan_says(aspects[3]); }

/// Needs no GPU.
TEST(GpuPlans, FitTheMultiprocessorsOfTheirGpu) {
    for (const cuda::Kernels& kernels : {cuda::Kernels(), cuda::ampere_kernels}) {
        const Tuning<Cuda> tuning(kernels);
        const Plan pivoted = plan_for<float>(tuning, 20000, 20000, {.pivoting = Pivoting{.kind = Pivots::Randomized}});
        EXPECT_LT((pivoted.panel_width + 8) * 20000 * 4, kernels.multiprocessors * kernels.shared_bytes);
        // R, and a sum of 128×128 for two multiprocessors
        const Plan projected = plan_for<double>(tuning, 100000, 256, {.method = ClassicalGramSchmidt{}});
        EXPECT_NEAR(projected.workspace_bytes / (8 * 128 * 128) - 4, kernels.multiprocessors / 2, 1);
    }
}

}  // namespace
}  // namespace quoin::test
