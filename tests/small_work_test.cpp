// Small work starts no thread: on cores that other programs share, a team is waited for longer than it works.

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <utility>

#include "cases.hpp"
#include "gallery.hpp"
#include "quoin/apps/lyapunov.hpp"
#include "quoin/quoin.hpp"

namespace quoin::test {
namespace {

/// Threads of this process. A pool of workers is never given back: one region of several threads is seen afterwards.
Index threads_of_process() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
}

class SmallWork : public testing::Test {
protected:
    void TearDown() override { EXPECT_EQ(threads_of_process(), before_); }
    Context<Host> ctx_{4};

private:
    Index before_ = threads_of_process();
};

TEST_F(SmallWork, StepsOfLorenz96) {
    const auto system = tangent_map(Lorenz96{.size = 40, .forcing = 8});
    lyapunov_spectrum(ctx_, *system, {.time = 5, .transient = 1, .alignment = 1, .steps_per_qr = 5});
}

TEST_F(SmallWork, QrOfEveryMethodAndForm) {
    for (auto [m, n] : {std::pair<Index, Index>{40, 40}, {100, 100}, {1000, 20}}) {
        const Matrix<double> A = random_normal<double>(m, n);
        for (Method method : all_methods) {
            for (QForm q : q_forms) {
                SCOPED_TRACE(case_name(m, n, method, q));
                const auto f = qr(ctx_, A.view(), with(method, q));
                if (q == QForm::None) continue;
                Matrix<double> C = random_normal<double>(m, 5);
                f.apply_q(ctx_, Side::Left, Op::Transpose, C.view());
                f.form_q(ctx_);
            }
        }
    }
}

TEST_F(SmallWork, Solvers) {
    const Matrix<double> A = random_normal<double>(200, 30), B = random_normal<double>(200, 2);
    least_squares(ctx_, A.view(), B.view());
    svd(ctx_, A.view());
}

TEST_F(SmallWork, AppendedColumnsAndRows) {
    GramSchmidt<double> basis(ctx_, 1000);
    StreamingR<double> stream(ctx_, 20);
    for (int step = 0; step < 20; ++step) {
        basis.append(ctx_, random_normal<double>(1000, 1, step).view());
        stream.append(ctx_, random_normal<double>(500, 20, step).view());
    }
}

}  // namespace
}  // namespace quoin::test
