// Threads, progress and interruption.

#include "quoin/context.hpp"

#include <gtest/gtest.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"
#include "host/parallel.hpp"
#include "omp_threads.hpp"
#include "quoin/qr.hpp"

namespace quoin::test {
namespace {

TEST(Context, TakesTheThreadsAskedFor) {
    EXPECT_GE(Context<Host>().threads(), 1);
    EXPECT_EQ(Context<Host>(3).threads(), 3);
    EXPECT_THROW(Context<Host>(-1), InvalidArgument);
}

/// OMP_NUM_THREADS=100000.
TEST(Context, TakesNoMoreThreadsThanCanBeStarted) {
    const int before = omp_get_max_threads();
    omp_set_num_threads(100000);
    EXPECT_EQ(Context<Host>().threads(), 4096);
    omp_set_num_threads(before);
    EXPECT_EQ(Context<Host>(100000).threads(), 4096);
}

TEST(Context, TakesNoMoreThreadsThanItsQuotaUnlessAskedTo) {
    const int cores = omp_get_num_procs();
    {
        const OmpThreads all(cores);
        EXPECT_EQ(host::default_threads(1.5), std::min(cores, 2));
        EXPECT_EQ(host::default_threads(0.1), 1);
        EXPECT_EQ(host::default_threads(cores), cores);
        EXPECT_EQ(host::default_threads(std::numeric_limits<double>::infinity()), cores);
    }
    const OmpThreads chosen(cores + 3);
    EXPECT_EQ(host::default_threads(1.5), cores + 3);
    EXPECT_EQ(Context<Host>().threads(), cores + 3);
}

TEST(Context, Moves) {
    const Matrix<double> A = random_normal<double>(300, 20);
    Context<Host> first(2);
    qr(first, A.view());
    Context<Host> second = std::move(first);
    EXPECT_EQ(second.threads(), 2);
    expect_law<double>(second, A.view(), qr(second, A.view()));
    Context<Host> third(1);
    third = std::move(second);
    EXPECT_EQ(third.threads(), 2);
    expect_law<double>(third, A.view(), qr(third, A.view()));
}

TEST(Context, OneServesBothTypesAndEveryShape) {
    Context<Host> ctx(2);
    for (auto [m, n] : {std::pair<Index, Index>{2000, 10}, {3, 3}, {50, 200}, {0, 0}, {400, 100}}) {
        const Matrix<double> A = random_normal<double>(m, n);
        expect_law<double>(ctx, A.view(), qr(ctx, A.view()));
        const Matrix<float> B = random_normal<float>(m, n);
        expect_law<float>(ctx, B.view(), qr(ctx, B.view()));
    }
}

/// Returns the threads of this process, by the system's numbers.
std::set<std::string> threads_of_process() {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) found.insert(entry.path());
    return found;
}

TEST(Context, KeepsItsThreadsForWorkOfEverySize) {
    Context<Host> ctx(4);
    const std::pair<Index, Index> shapes[] = {{1383, 83}, {300, 300}, {60, 900}, {30000, 10}, {9000, 3}, {700, 700}};
    const auto factor_all = [&] {
        for (const auto& [m, n] : shapes) {
            const Matrix<double> A = random_normal<double>(m, n);
            for (QForm q : {QForm::None, QForm::Reflectors, QForm::Explicit}) qr(ctx, A.view(), {.q = q});
        }
    };
    qr(ctx, random_normal<double>(20000, 40).view());
    const auto before = threads_of_process();
    EXPECT_GE(before.size(), 4U);
    factor_all();
    EXPECT_EQ(threads_of_process(), before);
}

TEST(Context, ServesTheChildOfAForkOnOneThread) {
    const Matrix<double> A = random_normal<double>(20000, 30);
    Context<Host> ctx(2);
    const Matrix<double> R = qr(ctx, A.view()).r();
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        Context<Host> fresh(2);
        const bool same = same_bits<double>(qr(ctx, A.view()).r().view(), R.view()) &&
                          same_bits<double>(qr(fresh, A.view()).r().view(), R.view());
        _exit(same ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

TEST(Context, CountsTheFlopsOfThePlan) {
    // one panel of every method, and several
    for (auto [m, n] : {std::pair<Index, Index>{3000, 60}, {2000, 200}}) {
        const Matrix<double> A = random_normal<double>(m, n);
        for (Method method : all_methods)
            for (QForm q : q_forms) {
                SCOPED_TRACE(case_name(m, n, method, q));
                const Options options = with(method, q);
                Context<Host> ctx(2);
                EXPECT_EQ(ctx.flops_done(), 0);
                const QR<double> f = qr(ctx, A.view(), options);
                // Progress that ends at 90% or 110% misleads.
                EXPECT_NEAR(ctx.flops_done() / f.plan().flops, 1, 0.1);
                ctx.reset_progress();
                EXPECT_EQ(ctx.flops_done(), 0);
            }
    }
}

TEST(Context, AStopStandsUntilItIsCleared) {
    const Matrix<double> A = random_normal<double>(3000, 60), before = copy<double>(A.view());
    for (Method method : all_methods) {
        SCOPED_TRACE(to_string(method));
        const Options options = with(method);
        Context<Host> ctx(2);
        ctx.request_stop();
        EXPECT_THROW(qr(ctx, A.view(), options), Interrupted);
        EXPECT_THROW(qr(ctx, A.view(), options), Interrupted);
        ctx.clear_stop();
        expect_law<double>(ctx, A.view(), qr(ctx, A.view(), options));
    }
    EXPECT_TRUE(same_bits<double>(A.view(), before.view()));
}

TEST(Context, ACallInProgressStops) {
    const Index m = quick() ? 1000 : 3000;  // of far more work than a busy machine takes to start the watcher
    const Matrix<double> A = random_normal<double>(m, m), B = random_normal<double>(300, 40);
    Context<Host> ctx(2);
    std::atomic<bool> finished = false;
    // Stops the call as soon as it has counted any work, from another thread.
    std::thread watcher([&] {
        while (ctx.flops_done() == 0 && !finished) std::this_thread::sleep_for(std::chrono::microseconds(50));
        ctx.request_stop();
    });
    EXPECT_THROW(qr(ctx, A.view()), Interrupted);
    finished = true;
    watcher.join();
    ctx.clear_stop();
    expect_law<double>(ctx, B.view(), qr(ctx, B.view()));
}

}  // namespace
}  // namespace quoin::test
