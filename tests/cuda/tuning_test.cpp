// The table of `quoin tune --device cuda`: measured, written, read, and named by the plans that it serves.

#include "quoin/tuning.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "gpu.hpp"
#include "quoin/qr.hpp"

namespace quoin::test {
namespace {

/// One process reads its table once, so that this is one test.
TEST(GpuTuning, PlansNameTheTableThatIsRead) {
    const std::string path =
        (std::filesystem::temp_directory_path() / ("quoin-gpu-tuning-" + std::to_string(getpid()))).string();
    setenv("QUOIN_TUNING", path.c_str(), 1);
    Context<Cuda> ctx;
    double done = 0;
    TuningTable table = tune(ctx, {.shapes = {{3000, 8}, {40, 60}}, .progress = [&](double x) {
                                       EXPECT_GE(x, done);
                                       done = x;
                                   }});
    ASSERT_GT(table.cases.size(), 8);
    for (const TunedCase& c : table.cases) {
        // wide matrices have no CholeskyQR2
        EXPECT_EQ(c.seconds[0] > 0, c.rows >= c.cols) << c.rows << "x" << c.cols;
        EXPECT_GT(c.seconds[1], 0);
        EXPECT_LT(c.seconds[1], 1);
    }
    // other choices for certain
    table.cases.push_back({1000, 100, ScalarKind::F64, QForm::Explicit, {4, 3, 2, 1}});
    table.cases.push_back({1000, 100, ScalarKind::F64, QForm::Any, {1, 2, 3, 4}});
    EXPECT_EQ(tuning_path<Cuda>(), path);
    save_tuning(table, path);
    const Plan plan = plan_qr<double>(ctx, 1000, 100, {.q = QForm::Explicit});
    EXPECT_EQ(tuning_in_use<Cuda>().refusal, "");
    EXPECT_EQ(plan.tuning, table.id);
    EXPECT_EQ(plan.method, Method::CAQR);
    EXPECT_EQ(plan_qr<double>(ctx, 1000, 100, {.method = Method::CholeskyQR2, .q = QForm::Explicit}).tuning, 0u);
    const Plan any = plan_qr<double>(ctx, 1000, 100, {});
    EXPECT_EQ(any.method, Method::CholeskyQR2);
    EXPECT_EQ(any.q, QForm::Reflectors) << "which tune measures";
    bool is_listed = false;
    for (const TunedChoice& c : changed_choices<Cuda>(table))
        is_listed = is_listed || (c.measured.rows == 1000 && c.tuned == Method::CAQR);
    EXPECT_TRUE(is_listed);
    const Matrix<double> A = random_normal<double>(1000, 100);
    const auto Q = [&](const Plan& by) {
        return copy_to_host<double>(ctx, qr<double>(ctx, copy_to_device<double>(ctx, A.view()), by).form_q(ctx).view());
    };
    EXPECT_TRUE(same_bits<double>(Q(plan).view(), Q(plan).view()));
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace quoin::test
