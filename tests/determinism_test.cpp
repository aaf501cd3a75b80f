// Under one plan the bits of R, Q and apply_q depend neither on the number of threads nor on what ran before.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"
#include "omp_threads.hpp"
#include "quoin/qr.hpp"

namespace quoin::test {
namespace {

/// Everything a factorization gives: R, thin Q, QᵀC, CQ, a block of Q, R and Q in LAPACK's format.
template <class T>
std::vector<Matrix<T>> everything(Context<Host>& ctx, MatrixView<const T> A, const Plan& plan) {
    const Index m = A.rows;
    QR<T> f = qr(ctx, copy(A), plan);
    std::vector<Matrix<T>> results;
    results.push_back(f.r());
    if (plan.q == QForm::None) return results;
    results.push_back(f.form_q(ctx));
    Matrix<T> C = random_normal<T>(m, 19);
    f.apply_q(ctx, Side::Left, Op::Transpose, C.view());
    results.push_back(std::move(C));
    Matrix<T> D = random_normal<T>(6, m);
    f.apply_q(ctx, Side::Right, Op::None, D.view());
    results.push_back(std::move(D));
    results.push_back(f.q_block(ctx, {m / 3, m / 2}, {0, std::min<Index>(m, A.cols + 2)}));
    LapackQR<T> factors = to_lapack(ctx, std::move(f));
    results.push_back(std::move(factors.V_R));
    results.push_back(std::move(factors.tau));
    return results;
}

template <class T>
void expect_same_bits(const std::vector<Matrix<T>>& a, const std::vector<Matrix<T>>& b) {
    const char* names[] = {"R", "thin Q", "QᵀC", "CQ", "block of Q", "LAPACK's V and R", "LAPACK's tau"};
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(same_bits<T>(a[i].view(), b[i].view())) << names[i];
}

class Determinism : public testing::TestWithParam<std::tuple<Method, QForm>> {
protected:
    template <class T>
    void check_thread_counts() {
        const auto [method, q] = GetParam();
        // 1031 and 20011 are prime: no number of threads or leaves divides them.
        for (auto [m, n] :
             {std::pair<Index, Index>{quick() ? 2003 : 20011, 23}, {1031, 130}, {300, 300}, {37, 397}, {125, 390}}) {
            if (!factors_shape(method, m, n)) continue;
            SCOPED_TRACE(shape_name(m, n));
            const Options options = with(method, q);
            // Within the domain of every method.
            const Matrix<T> A = with_condition<T>(m, n, 10);
            const Plan plan = plan_qr<T>(Context<Host>(4), m, n, options);
            Context<Host> one(1);
            const OmpThreads one_outside(1);
            const auto expected = everything<T>(one, A.view(), plan);
            expect_same_bits(expected, everything<T>(one, A.view(), plan));
            for (int threads : {2, 3, 4}) {
                if (quick() && threads == 3) continue;
                SCOPED_TRACE(std::to_string(threads) + " threads");
                Context<Host> ctx(threads);
                const OmpThreads also_outside(threads);
                expect_same_bits(expected, everything<T>(ctx, A.view(), plan));
            }
        }
    }
};

TEST_P(Determinism, OfThreadCountsF32) { check_thread_counts<float>(); }
TEST_P(Determinism, OfThreadCountsF64) { check_thread_counts<double>(); }

INSTANTIATE_TEST_SUITE_P(Every, Determinism,
                         testing::Combine(testing::ValuesIn(all_methods), testing::ValuesIn(q_forms)),
                         [](const auto& info) {
                             std::string name = std::string(to_string(std::get<0>(info.param))) + "_" +
                                                to_string(std::get<1>(info.param));
                             for (char& c : name)
                                 if (c == '-') c = '_';
                             return name;
                         });

template <class T>
class Repeated : public testing::Test {};
TYPED_TEST_SUITE(Repeated, Scalars);

TYPED_TEST(Repeated, RunsInAContextThatDidOtherWork) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(3000, 40), other = random_normal<T>(700, 90);
    for (Method method : all_methods) {
        SCOPED_TRACE(to_string(method));
        const Options options = with(method);
        Context<Host> ctx(3);
        const Plan plan = plan_qr<T>(ctx, 3000, 40, options);
        const auto first = everything<T>(ctx, A.view(), plan);
        qr(ctx, other.view());
        expect_same_bits(first, everything<T>(ctx, A.view(), plan));
    }
}

TYPED_TEST(Repeated, TheLeadingDimensionDoesNotMatter) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(1003, 37);
    for (Method method : all_methods)
        for (Index padding : {1, 5}) {
            SCOPED_TRACE(to_string(method));
            const Options options = with(method);
            Context<Host> ctx(2);
            const Padded<T> padded(A.view(), padding);
            const Matrix<T> R = qr(ctx, A.view(), options).r();
            EXPECT_TRUE(same_bits<T>(R.view(), qr(ctx, padded.view(), options).r().view()));
        }
}

TYPED_TEST(Repeated, ConstMembersServeSeveralThreadsAtOnce) {
    using T = TypeParam;
    const Index m = 4000, n = 30;
    const Matrix<T> A = random_normal<T>(m, n);
    for (Method method : all_methods)
        for (QForm q : q_forms_with_q) {
            SCOPED_TRACE(std::string(to_string(method)) + " " + to_string(q));
            const Options options = with(method, q);
            Context<Host> ctx(2);
            const QR<T> f = qr(ctx, A.view(), options);
            const auto use = [&f, m](Context<Host>& own) {
                std::vector<Matrix<T>> results;
                results.push_back(f.r());
                results.push_back(f.form_q(own));
                results.push_back(f.q_block(own, {0, 50}, {0, 40}));
                Matrix<T> C = random_normal<T>(m, 7);
                f.apply_q(own, Side::Left, Op::Transpose, C.view());
                results.push_back(std::move(C));
                return results;
            };
            const auto expected = use(ctx);
            std::vector<std::vector<Matrix<T>>> results(3);
            std::vector<std::thread> threads;
            for (auto& result : results)
                threads.emplace_back([&] {
                    Context<Host> own(1);
                    result = use(own);
                });
            for (std::thread& thread : threads) thread.join();
            for (const auto& result : results)
                for (std::size_t i = 0; i < expected.size(); ++i)
                    EXPECT_TRUE(same_bits<T>(expected[i].view(), result[i].view())) << "result " << i;
        }
}

}  // namespace
}  // namespace quoin::test
