// QR of rows spread over ranks: the law for every class of matrices and every way to spread rows; words and messages;
// faults.

#include "quoin/distributed.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"
#include "least_squares_law.hpp"
#include "rank_laws.hpp"
#include "ranks.hpp"
#include "svd_law.hpp"

namespace quoin::test {
namespace {

template <class T>
class DistributedTest : public testing::Test {};
TYPED_TEST_SUITE(DistributedTest, Scalars);

/// Factors A, spread over the ranks, and expects the law of R, of the thin Q and of products with it.
template <class T>
void expect_law_over_ranks(Communicator& comm, MatrixView<const T> A, const Spread& spread, const Options& options) {
    SCOPED_TRACE(fmt::format("{} of {} {}x{}, rows {}, {} {}", comm.rank(), comm.size(), A.rows, A.cols, spread.name,
                             to_string(options.method), to_string(options.q)));
    Context<Host> ctx(1);
    const double bound = law_over(comm.size());
    const Index n = A.cols, k = std::min(A.rows, n), p = 3;
    const auto rows = spread.rows(A.rows, n, comm.size());
    const Padded<T> mine(A.row_block(rows[comm.rank()]));
    const auto f = qr(ctx, comm, mine.view(), options);
    EXPECT_TRUE(same_bits<T>(mine.view(), A.row_block(rows[comm.rank()]))) << "A has changed";
    EXPECT_EQ(f.rows(), A.rows);
    EXPECT_EQ(f.cols(), n);
    EXPECT_EQ(f.plan().q, options.q);
    EXPECT_EQ(f.plan().check_finite, options.check_finite);

    const Matrix<T> R = f.r(ctx), R_of_root = f.r(ctx, Ranks::Root);
    ASSERT_EQ(R.rows(), k);
    ASSERT_EQ(R.cols(), n);
    EXPECT_TRUE(same_as_on_root<T>(ctx, comm, R.view()));
    EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
    EXPECT_TRUE(is_finite<T>(R.view()));
    if (comm.rank() == 0) {
        EXPECT_TRUE(same_bits<T>(R.view(), R_of_root.view()));
    } else {
        EXPECT_EQ(R_of_root.rows(), 0);
    }
    if (options.q == QForm::None) {
        if (comm.rank() == 0) {
            EXPECT_LE(gram_error<T>(A, R.view()), bound);
        }
        EXPECT_THROW(f.form_q(ctx), InvalidArgument);
        EXPECT_THROW(f.apply_thin_q(ctx, Op::Transpose, mine.view()), InvalidArgument);
        return;
    }

    const Matrix<T> Q_mine = f.form_q(ctx);
    ASSERT_EQ(Q_mine.rows(), rows[comm.rank()].size());
    ASSERT_EQ(Q_mine.cols(), k);
    auto spent = qr(ctx, comm, mine.view(), options);
    EXPECT_TRUE(same_bits<T>(std::move(spent).take_q(ctx).view(), Q_mine.view()));
    EXPECT_THROW(spent.form_q(ctx), InvalidArgument);
    const Matrix<T> Q = gather<T>(ctx, comm, rows, Q_mine.view());
    const Matrix<T> C = random_normal<T>(A.rows, p, 7), W = random_normal<T>(k, p, 8);
    const Padded<T> C_mine(C.view().row_block(rows[comm.rank()]));
    const Matrix<T> QtC = f.apply_thin_q(ctx, Op::Transpose, C_mine.view());
    const Matrix<T> QW = gather<T>(ctx, comm, rows, f.apply_thin_q(ctx, Op::None, W.view()).view());
    EXPECT_TRUE(same_as_on_root<T>(ctx, comm, QtC.view()));
    if (comm.rank() != 0) return;
    EXPECT_TRUE(is_finite<T>(Q.view()));
    EXPECT_LE(orthogonality_error<T>(Q.view(), k), bound) << "‖I − QᵀQ‖";
    EXPECT_LE(residual_error<T>(A, Q.view(), R.view()), bound) << "‖A − QR‖";
    if (f.report().method == Method::TSQR) {
        EXPECT_LE(column_residual_error<T>(A, Q.view(), R.view()), bound) << "max ‖a_j − Q r_j‖";
    }
    const Matrix<T> Qt = transposed<T>(Q.view());
    EXPECT_LE(difference<T>(QtC.view(), product<T>(Qt.view(), C.view()).view(), k, frobenius_norm<T>(C.view())), bound)
        << "Q₁ᵀC";
    EXPECT_LE(difference<T>(QW.view(), product<T>(Q.view(), W.view()).view(), k, frobenius_norm<T>(W.view())), bound)
        << "Q₁W";
}

/// Returns the message of each rank's exception, the same on all; every rank must throw E.
template <class E, class F>
std::string expect_throw_on_all(Communicator& comm, F&& call) {
    Context<Host> ctx(1);
    std::string text;
    try {
        call(ctx);
        ADD_FAILURE() << "rank " << comm.rank() << " has not thrown";
    } catch (const E& e) {
        text = e.what();
    } catch (const std::exception& e) {
        ADD_FAILURE() << "rank " << comm.rank() << " has thrown another class: " << e.what();
    }
    EXPECT_TRUE(same_as_on_root(ctx, comm, text)) << "rank " << comm.rank() << " says: " << text;
    return text;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// ---- the communicator -----------------------------------------------------------------------------------------------

template <class T>
class CommunicatorTest : public testing::Test {};
using Words = testing::Types<float, double, Index>;
TYPED_TEST_SUITE(CommunicatorTest, Words);

TYPED_TEST(CommunicatorTest, MovesViewsOfAnyShape) {
    using T = TypeParam;
    for (const int ranks : rank_counts()) {
        on_ranks(ranks, [&](Communicator& comm) {
            ASSERT_EQ(comm.size(), ranks);
            Context<Host> ctx(1);
            const auto entry = [](int rank, Index i, Index j) { return static_cast<T>(100 * rank + 10 * i + j + 1); };
            for (const Index m : {0, 1, 3}) {
                for (int root = 0; root < ranks; ++root) {
                    // 5×2 around m×2: what lies around must survive
                    Matrix<T> frame(5, 2);
                    std::fill_n(frame.data(), 10, T(-1));
                    const auto A = frame.view().row_block({1, 1 + m});
                    const auto fill = [&](int rank) {
                        for (Index i = 0; i < m; ++i) A(i, 0) = entry(rank, i, 0), A(i, 1) = entry(rank, i, 1);
                    };
                    const auto expect_of = [&](auto value) {
                        for (Index j = 0; j < 2; ++j) {
                            for (Index i = 0; i < 5; ++i)
                                EXPECT_EQ(frame(i, j), i >= 1 && i < 1 + m ? value(i - 1, j) : T(-1));
                        }
                    };
                    fill(comm.rank());
                    EXPECT_EQ(comm.broadcast<T>(ctx, A, root), 0);
                    expect_of([&](Index i, Index j) { return entry(root, i, j); });
                    EXPECT_EQ(comm.broadcast<T>(ctx, A, root, comm.rank() == root ? 5 : 0), 5);
                    expect_of([&](Index i, Index j) { return entry(root, i, j); });

                    fill(comm.rank());
                    EXPECT_EQ(comm.all_reduce<T>(ctx, A, Reduction::Max), 0);
                    expect_of([&](Index i, Index j) { return entry(ranks - 1, i, j); });
                    fill(comm.rank());
                    EXPECT_EQ(comm.all_reduce<T>(ctx, A), 0);
                    expect_of([&](Index i, Index j) {
                        T sum = 0;
                        for (int r = 0; r < ranks; ++r) sum += entry(r, i, j);
                        return sum;
                    });
                    EXPECT_EQ(comm.all_reduce<T>(ctx, A, Reduction::Sum, comm.rank() == root ? 1 + root : 0), 1 + root);
                }
            }
        });
    }
}

TYPED_TEST(CommunicatorTest, ExchangesViewsAndNotes) {
    using T = TypeParam;
    for (const int ranks : rank_counts()) {
        on_ranks(ranks, [&](Communicator& comm) {
            const int other = comm.rank() ^ 1;
            if (other >= ranks) return;
            Context<Host> ctx(1);
            for (const Index m : {0, 1, 3}) {
                Matrix<T> A(5, 2), B(5, 2);
                std::fill_n(A.data(), 10, static_cast<T>(comm.rank()));
                std::fill_n(B.data(), 10, T(-1));
                const Range rows{1, 1 + m};
                const Traffic before = comm.traffic();
                EXPECT_EQ(comm.exchange<T>(ctx, A.view().row_block(rows), B.view().row_block(rows), other), 0);
                for (Index i = 0; i < 5; ++i) EXPECT_EQ(B(i, 1), static_cast<T>(i >= 1 && i < 1 + m ? other : -1));
                EXPECT_EQ(comm.traffic().words_sent - before.words_sent, 2 * m);
                EXPECT_EQ(comm.traffic().words_received - before.words_received, 2 * m);
                // a note of one of them
                EXPECT_EQ(comm.exchange<T>(ctx, A.view(), B.view(), other, comm.rank() % 2 == 0 ? 7 : 0),
                          comm.rank() % 2 == 0 ? 0 : 7);
            }
        });
    }
}

TEST(Communicator, SumsInTheOrderOfTheTreeOfRanks) {
    // 1, u, u, u, …: every order of the sum has other bits
    for (const int ranks : rank_counts()) {
        std::vector<double> tree(ranks, unit_roundoff<double>);
        tree[0] = 1;
        for (int distance = 1; distance < ranks; distance *= 2) {
            for (int r = 0; r + distance < ranks; r += 2 * distance) tree[r] += tree[r + distance];
        }
        on_ranks(ranks, [&](Communicator& comm) {
            Context<Host> ctx(1);
            double x = comm.rank() == 0 ? 1 : unit_roundoff<double>;
            comm.all_reduce<double>(ctx, {&x, 1, 1});
            EXPECT_EQ(x, tree[0]);
        });
    }
}

TEST(Communicator, CountsWordsAndMessages) {
    for (const int ranks : rank_counts()) {
        on_ranks(ranks, [&](Communicator& comm) {
            Context<Host> ctx(1);
            Matrix<float> A(6, 5);
            std::fill_n(A.data(), 30, 1.0f);
            comm.broadcast<float>(ctx, A.view());
            const Traffic& t = comm.traffic();
            EXPECT_EQ(t.messages_received, comm.rank() > 0);
            EXPECT_EQ(t.words_received, 30 * t.messages_received);
            EXPECT_EQ(t.words_sent, 30 * t.messages_sent);
            Index sent[] = {t.messages_sent};
            comm.all_reduce<Index>(ctx, {sent, 1, 1});
            EXPECT_EQ(sent[0], ranks - 1);
            if (comm.rank() == 0) {
                EXPECT_LE(t.messages_sent, 2 * levels(ranks));
            }
            // a note is a message without words
            const Traffic before = t;
            EXPECT_EQ(comm.broadcast<float>(ctx, A.view(), 0, 3), 3);
            EXPECT_EQ(t.words_sent, before.words_sent);
            EXPECT_EQ(t.messages_received, before.messages_received + (comm.rank() > 0));
        });
    }
}

TEST(Communicator, RefusesRanksThatAreNotThere) {
    for (const int ranks : rank_counts()) {
        on_ranks(ranks, [&](Communicator& comm) {
            Context<Host> ctx(1);
            double x = 1;
            for (const int rank : {-1, comm.rank(), ranks}) {
                EXPECT_THROW(comm.send<double>(ctx, {&x, 1, 1}, rank), InvalidArgument);
                EXPECT_THROW(comm.receive<double>(ctx, {&x, 1, 1}, rank), InvalidArgument);
                EXPECT_THROW(comm.exchange<double>(ctx, {&x, 1, 1}, {&x, 1, 1}, rank), InvalidArgument);
            }
            EXPECT_THROW(comm.broadcast<double>(ctx, {&x, 1, 1}, ranks), InvalidArgument);
        });
    }
}

#ifndef QUOIN_TEST_MPI
TEST(ThreadCommunicator, NobodyWaitsForARankThatHasEnded) {
    const auto wait_for_1 = [](Communicator& comm) {
        Context<Host> ctx(1);
        double x = 0;
        comm.rank() % 2 == 0 ? comm.send<double>(ctx, {&x, 1, 1}, 1) : (void)comm.receive<double>(ctx, {&x, 1, 1}, 1);
    };
    // the first exception of all, and not what follows from it
    EXPECT_THROW(run_ranks(4,
                           [&](Communicator& comm) {
                               if (comm.rank() == 1) throw std::out_of_range("rank 1 fails");
                               wait_for_1(comm);
                           }),
                 std::out_of_range);
    try {
        run_ranks(3, [&](Communicator& comm) {
            if (comm.rank() != 1) wait_for_1(comm);
        });
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::CommunicationFailure);
        EXPECT_TRUE(contains(e.what(), "rank 1 has ended")) << e.what();
    }
    EXPECT_THROW(run_ranks(0, [](Communicator&) {}), InvalidArgument);
}

TEST(ThreadCommunicator, AMessageOfAnotherSizeIsAnError) {
    double x[3] = {};
    EXPECT_THROW(run_ranks(2,
                           [&](Communicator& comm) {
                               Context<Host> ctx(1);
                               if (comm.rank() == 0) return comm.send<double>(ctx, {x, 3, 1}, 1);
                               double y[2];
                               comm.receive<double>(ctx, {y, 2, 1}, 0);
                           }),
                 Error);
}
#endif

// ---- the law --------------------------------------------------------------------------------------------------------

TYPED_TEST(DistributedTest, GalleryObeysTheLaw) {
    using T = TypeParam;
    const Index m = quick() ? 60 : 150, n = 9;
    Index turn = 0;
    for (const Gallery matrix_class : gallery()) {
        const Matrix<T> A = generate<T>(matrix_class, m, n);
        for (const int ranks : rank_counts()) {
            for (const Spread& spread : in_turn(spreads, turn++)) {
                SCOPED_TRACE(to_string(matrix_class));
                on_ranks(ranks, [&](Communicator& comm) {
                    expect_law_over_ranks<T>(comm, A.view(), spread, with(Method::TSQR));
                    expect_law_over_ranks<T>(comm, A.view(), spread, with(Method::Auto));
                });
            }
        }
    }
}

TYPED_TEST(DistributedTest, ShapesAndSpreadsObeyTheLaw) {
    using T = TypeParam;
    Index turn = 0;
    const Index shapes[][2] = {{0, 0}, {0, 3}, {3, 0},  {1, 1},   {2, 5},   {5, 5},
                               {6, 7}, {7, 6}, {40, 1}, {61, 17}, {200, 33}};
    for (const auto& shape : shapes) {
        const Index m = shape[0], n = shape[1];
        const Matrix<T> A = random_normal<T>(m, n);
        for (const int ranks : rank_counts()) {
            for (const Spread& spread : spreads) {
                for (const QForm q : in_turn(std::span(q_forms).first(3), turn++)) {
                    on_ranks(ranks, [&](Communicator& comm) {
                        expect_law_over_ranks<T>(comm, A.view(), spread, with(Method::TSQR, q));
                        if (m < n) return;
                        for (const Method method : conditional_methods)
                            expect_law_over_ranks<T>(comm, A.view(), spread, with(method, q));
                    });
                }
            }
        }
    }
}

TYPED_TEST(DistributedTest, TreesBelowTheRanksObeyTheLaw) {
    using T = TypeParam;
    const Index m = 600, n = 12;
    const Matrix<T> A = generate<T>(Gallery::RankDeficientExact, m, n);
    for (const int ranks : rank_counts()) {
        for (const Index fan_in : {Index{2}, Index{3}}) {
            on_ranks(ranks, [&](Communicator& comm) {
                Options options = with(Method::TSQR);
                options.method.set_tree({.leaf_rows = 2 * n, .fan_in = fan_in});
                // 25 leaves of one rank are merged in 5 levels, or 6 stages of fan-in 3
                SCOPED_TRACE(fan_in);
                expect_law_over_ranks<T>(comm, A.view(), spreads[0], options);
            });
        }
    }
}

TYPED_TEST(DistributedTest, GramPassesAreCertifiedOrFallBack) {
    using T = TypeParam;
    const Index m = 400, n = 8;
    const double u = unit_roundoff<T>;
    const struct {
        double condition;
        Method method;
        bool certified;
    } cases[] = {{10, Method::Auto, true},
                 {10, Method::CholeskyQR2, true},
                 {0.01 / std::sqrt(u), Method::CholeskyQR2, true},
                 {0.1 / u, Method::Auto, false},
                 {0.1 / u, Method::CholeskyQR2, false},
                 {0.001 / u, Method::RandomizedCholeskyQR, true},
                 {10 / u, Method::RandomizedCholeskyQR, true}};
    for (const auto& c : cases) {
        const Method method = c.method;
        const bool certified = c.certified;
        const Matrix<T> A = with_condition<T>(m, n, c.condition);
        for (const int ranks : rank_counts()) {
            on_ranks(ranks, [&](Communicator& comm) {
                const auto rows = spreads[0].rows(m, n, comm.size())[comm.rank()];
                const auto factor = [&](Context<Host>& ctx) {
                    return qr<T, Host>(ctx, comm, A.view().row_block(rows), with(method, QForm::Explicit));
                };
                if (method != Method::Auto && !certified) {
                    const auto text = expect_throw_on_all<NumericalBreakdown>(comm, factor);
                    EXPECT_TRUE(contains(text, to_string(method))) << text;
                    return;
                }
                Context<Host> ctx(1);
                const auto f = factor(ctx);
                EXPECT_EQ(f.report().fell_back, !certified);
                EXPECT_EQ(f.report().method, !certified               ? Method::TSQR
                                             : method == Method::Auto ? Method::CholeskyQR2
                                                                      : method);
                if (certified) {
                    EXPECT_LE(f.report().gram_departure, method == Method::RandomizedCholeskyQR ? 2.0 * n : 0.5);
                    EXPECT_GE(f.report().gram_departure, 0);
                }
                expect_law_over_ranks<T>(comm, A.view(), spreads[0], with(method, QForm::Explicit));
            });
        }
    }
}

/// An unconditional R: the first Gram matrix is refused, or the second one, whose Q₁ trees factor then.
TYPED_TEST(DistributedTest, AutoIsAsAccurateAsTreesForEveryCondition) {
    using T = TypeParam;
    for (double condition = 1; condition < 10 / unit_roundoff<T>; condition *= 30) {
        const Matrix<T> A = with_condition<T>(200, 6, condition);
        for (const int ranks : rank_counts()) {
            on_ranks(ranks, [&](Communicator& comm) {
                for (const QForm q : {QForm::Any, QForm::None})
                    expect_law_over_ranks<T>(comm, A.view(), spreads[0], with(Method::Auto, q));
            });
        }
    }
}

TYPED_TEST(DistributedTest, TheSameBitsInEveryRunAndForAnyNumberOfThreads) {
    using T = TypeParam;
    const Index m = quick() ? 3000 : 20000, n = 24;
    const Matrix<T> A = random_normal<T>(m, n);
    for (const int ranks : rank_counts()) {
        on_ranks(ranks, [&](Communicator& comm) {
            const auto mine = A.view().row_block(spreads[0].rows(m, n, ranks)[comm.rank()]);
            for (const Method method : {Method::TSQR, Method::CholeskyQR2}) {
                Matrix<T> R, Q;
                for (const int threads : {1, 2, 1}) {
                    Context<Host> ctx(threads);
                    const auto f = qr<T, Host>(ctx, comm, mine, with(method));
                    Matrix<T> R_now = f.r(ctx), Q_now = f.form_q(ctx);
                    if (R.cols() > 0) {
                        EXPECT_TRUE(same_bits<T>(R.view(), R_now.view()));
                        EXPECT_TRUE(same_bits<T>(Q.view(), Q_now.view()));
                    }
                    R = std::move(R_now);
                    Q = std::move(Q_now);
                }
            }
        });
    }
}

TEST(Distributed, OneRankHasTheBitsOfOneProcess) {
    if (rank_counts().front() != 1) GTEST_SKIP();
    const Matrix<double> A = random_normal<double>(500, 20);
    on_ranks(1, [&](Communicator& comm) {
        Context<Host> ctx(1);
        for (const Method method : {Method::TSQR, Method::CholeskyQR2}) {
            const auto f = qr(ctx, comm, A.view(), with(method));
            const auto g = qr(ctx, A.view(), with(method));
            EXPECT_TRUE(same_bits<double>(f.r(ctx).view(), g.r(ctx).view()));
            EXPECT_TRUE(same_bits<double>(f.form_q(ctx).view(), g.form_q(ctx).view()));
        }
        EXPECT_EQ(comm.traffic().messages_sent, 0);
    });
}

// ---- words and messages ---------------------------------------------------------------------------------------------

/// Returns the traffic of a call on this rank.
template <class F>
Traffic traffic_of(Communicator& comm, F&& call) {
    const Traffic before = comm.traffic();
    call();
    const Traffic& after = comm.traffic();
    return {after.messages_sent - before.messages_sent, after.words_sent - before.words_sent,
            after.messages_received - before.messages_received, after.words_received - before.words_received};
}

TEST(Distributed, AFactorizationGoesOnOverAnotherCommunicator) {
    for (const int ranks : rank_counts()) {
        on_ranks(ranks, [&](Communicator& comm) {
            Context<Host> ctx(1);
            const Matrix<double> A = random_normal<double>(20, 3, 1 + comm.rank());
            std::vector<int> members(ranks);
            std::iota(members.begin(), members.end(), 0);
            auto first = std::make_unique<SubCommunicator>(comm, members);
            auto f = qr(ctx, *first, A.view(), with(Method::TSQR));
            const Matrix<double> R = f.r(ctx), Q = f.form_q(ctx);
            first.reset();
            f.over(comm);
            EXPECT_TRUE(same_bits<double>(f.r(ctx).view(), R.view()));
            EXPECT_TRUE(same_bits<double>(f.form_q(ctx).view(), Q.view()));
            SubCommunicator alone(comm, {comm.rank()});
            if (ranks > 1) {
                EXPECT_THROW(f.over(alone), InvalidArgument);
            }
        });
    }
}

TEST(Distributed, SendsOneTriangleALevel) {
    const Index m = 700;
    for (const int ranks : rank_counts()) {
        on_ranks(ranks, [&](Communicator& comm) {
            Context<Host> ctx(1);
            // what does not depend on n are the messages in which the ranks agree
            const auto measure = [&](Index n, Method method, auto call) {
                const Matrix<double> A = random_normal<double>(m, n);
                const auto mine = A.view().row_block(spreads[0].rows(m, n, ranks)[comm.rank()]);
                std::optional<DistributedQR<double>> f;
                const auto factor = [&] { f.emplace(qr<double, Host>(ctx, comm, mine, with(method))); };
                if constexpr (std::is_null_pointer_v<decltype(call)>) {
                    return traffic_of(comm, factor);
                } else {
                    factor();
                    return traffic_of(comm, [&] { call(*f); });
                }
            };
            const auto expect = [&](const char* what, Index up, Index down, Method method, auto call) {
                SCOPED_TRACE(fmt::format("{} of rank {} of {}", what, comm.rank(), ranks));
                const Index n = 30, few = 10, triangles = (n * (n + 1) - few * (few + 1)) / 2;
                const Traffic large = measure(n, method, call), small = measure(few, method, call);
                EXPECT_EQ(large.messages_sent, small.messages_sent);
                EXPECT_EQ(large.messages_received, small.messages_received);
                // the rank's place in the tree: its members, and whether it has a head
                Index members = 0;
                for (int d = 1; d < ranks && comm.rank() % (2 * d) == 0; d *= 2) members += comm.rank() + d < ranks;
                if (comm.rank() == 0) {
                    EXPECT_EQ(members, levels(ranks));
                }
                const Index head = comm.rank() > 0;
                EXPECT_EQ(large.words_sent - small.words_sent, triangles * (up * head + down * members));
                EXPECT_EQ(large.words_received - small.words_received, triangles * (up * members + down * head));
            };
            expect("TSQR", 1, 0, Method::TSQR, nullptr);
            expect("form_q", 0, 1, Method::TSQR, [&](const auto& f) { f.form_q(ctx); });
            expect("r", 0, 1, Method::TSQR, [&](const auto& f) { f.r(ctx); });
            expect("CholeskyQR2", 1, 1, Method::CholeskyQR2, nullptr);
            expect("form_q of an explicit Q", 0, 0, Method::CholeskyQR2, [&](const auto& f) { f.form_q(ctx); });
        });
    }
}

TEST(Distributed, ThePlanCountsTheMessagesOfTheRoot) {
    const Index m = 700, n = 20;
    const Matrix<double> A = random_normal<double>(m, n);
    for (const int ranks : rank_counts()) {
        on_ranks(ranks, [&](Communicator& comm) {
            Context<Host> ctx(1);
            const auto mine = A.view().row_block(spreads[0].rows(m, n, ranks)[comm.rank()]);
            for (const Method method :
                 {Method::Auto, Method::TSQR, Method::CholeskyQR2, Method::RandomizedCholeskyQR}) {
                for (const QForm q : {QForm::Any, QForm::None, QForm::Explicit}) {
                    SCOPED_TRACE(fmt::format("{} {} on {}", to_string(method), to_string(q), ranks));
                    const RankPlan plan = plan_ranks<double>(ctx, m, n, ranks, with(method, q));
                    std::optional<Method> taken;
                    const Traffic t = traffic_of(
                        comm, [&] { taken = qr<double, Host>(ctx, comm, mine, with(method, q)).report().method; });
                    EXPECT_EQ(plan.method, *taken);
                    EXPECT_EQ(plan.rows, (m + ranks - 1) / ranks);
                    if (comm.rank() != 0) continue;
                    EXPECT_EQ(plan.messages, t.messages_sent + t.messages_received);
                    EXPECT_EQ(plan.bytes, 8 * (t.words_sent + t.words_received));
                }
            }
        });
    }
    Context<Host> ctx(1);
    EXPECT_THROW(plan_ranks<double>(ctx, 700, 20, 0), InvalidArgument);
    EXPECT_THROW(plan_ranks<double>(ctx, 700, 20, 36), InvalidArgument);
    EXPECT_THROW(plan_ranks<double>(ctx, 700, 20, 4, with(Method::CAQR)), InvalidArgument);
    const RankPlan plan = plan_ranks<double>(ctx, 1 << 20, 64, 8, with(Method::TSQR, QForm::None));
    EXPECT_EQ(plan.seconds(1, 1e300, 1e300), plan.messages);
    EXPECT_EQ(plan.seconds(0, 2, 1e300), plan.bytes / 2);
    EXPECT_EQ(plan.seconds(0, 1e300, 3), plan.flops / 3);
}

TEST(Distributed, AFactorizationTakesFewMessages) {
    const Matrix<double> A = random_normal<double>(700, 20), of_two_passes = with_cosine<double>(700, 20, 0.9);
    for (const int ranks : rank_counts()) {
        on_ranks(ranks, [&](Communicator& comm) {
            Context<Host> ctx(1);
            const Range rows = spreads[0].rows(700, 20, ranks)[comm.rank()];
            const auto mine = A.view().row_block(rows);
            // up and down to agree on the arguments, then on the scales; the triangles up, and that all is well down
            const Traffic tree =
                traffic_of(comm, [&] { qr<double, Host>(ctx, comm, mine, with(Method::TSQR, QForm::None)); });
            // up and down to agree on the arguments, for each Gram matrix, and that all is well
            const auto gram = [&](MatrixView<const double> mine) {
                return traffic_of(comm, [&] { qr<double, Host>(ctx, comm, mine, with(Method::CholeskyQR2)); });
            };
            const Traffic once = gram(mine), twice = gram(of_two_passes.view().row_block(rows));
            if (comm.rank() == 0) {
                EXPECT_EQ(tree.messages_received, 3 * levels(ranks));
                EXPECT_EQ(tree.messages_sent, 3 * levels(ranks));
                EXPECT_EQ(once.messages_received, 3 * levels(ranks));
                EXPECT_EQ(once.messages_sent, 3 * levels(ranks));
                EXPECT_EQ(twice.messages_received, 4 * levels(ranks));
                EXPECT_EQ(twice.messages_sent, 4 * levels(ranks));
            }
        });
    }
}

// ---- streams --------------------------------------------------------------------------------------------------------

TYPED_TEST(DistributedTest, MergedStreamsAreThatOfAllRows) {
    using T = TypeParam;
    const Index m = 90, n = 7, p = 2;
    Index turn = 0;
    for (const Gallery matrix_class : {Gallery::RandomNormal, Gallery::GradedColumnsDown, Gallery::Banded}) {
        const Matrix<T> A = generate<T>(matrix_class, m, n), B = random_normal<T>(m, p, 3);
        for (const int ranks : rank_counts()) {
            for (const Spread& spread : in_turn(spreads, turn++)) {
                on_ranks(ranks, [&](Communicator& comm) {
                    Context<Host> ctx(1);
                    expect_merged_law<T>(ctx, comm, spread, A.view(), B.view());
                });
            }
        }
    }
}

TEST(Distributed, MergedStreamsOfFewRowsAndOfOthersThanTheRest) {
    for (const int ranks : rank_counts()) {
        on_ranks(ranks, [&](Communicator& comm) {
            Context<Host> ctx(1);
            expect_merge_of_few_rows_and_refusals(ctx, comm);
        });
    }
}

// ---- Gram-Schmidt ---------------------------------------------------------------------------------------------------

TYPED_TEST(DistributedTest, ColumnsAppendedObeyTheLaw) {
    using T = TypeParam;
    Index turn = 0;
    for (const Gallery matrix_class : gallery()) {
        SCOPED_TRACE(to_string(matrix_class));
        const Matrix<T> A = generate<T>(matrix_class, 120, 20);
        for (const int ranks : rank_counts()) {
            for (const Spread& spread : in_turn(spreads, turn++)) {
                on_ranks(ranks, [&](Communicator& comm) {
                    Context<Host> ctx(1);
                    expect_appended_law<T>(ctx, comm, spread, A.view(), {{0, 1}, {1, 8}, {8, 8}, {8, 20}});
                });
            }
        }
    }
}

TEST(Distributed, AppendRefusesOnAllRanksAndChangesNothing) {
    for (const int ranks : rank_counts()) {
        on_ranks(ranks, [&](Communicator& comm) {
            Context<Host> ctx(1);
            expect_append_refuses(ctx, comm);
        });
    }
}

// ---- least squares and the SVD --------------------------------------------------------------------------------------

TYPED_TEST(DistributedTest, LeastSquaresObeysTheLaw) {
    using T = TypeParam;
    const Index m = 90, n = 7, p = 3;
    Index turn = 0;
    for (const Gallery matrix_class :
         {Gallery::RandomNormal, Gallery::GradedRowsUp, Gallery::GradedColumnsDown, Gallery::NearOverflow,
          Gallery::ClusteredScales, Gallery::RowScaled, Gallery::Banded}) {
        const Matrix<T> A = generate<T>(matrix_class, m, n), B = random_normal<T>(m, p, 3);
        for (const int ranks : rank_counts()) {
            for (const Spread& spread : in_turn(spreads, turn++)) {
                on_ranks(ranks, [&](Communicator& comm) {
                    SCOPED_TRACE(fmt::format("{} {} {}", to_string(matrix_class), ranks, spread.name));
                    Context<Host> ctx(1);
                    const auto rows = spread.rows(m, n, ranks)[comm.rank()];
                    for (const Method method : {Method::TSQR, Method::Auto}) {
                        const Padded<T> A_mine(A.view().row_block(rows)), B_mine(B.view().row_block(rows));
                        const auto s =
                            least_squares<T, Host>(ctx, comm, A_mine.view(), B_mine.view(), {.rcond = 0}, with(method));
                        EXPECT_TRUE(same_as_on_root<T>(ctx, comm, s.X.view()));
                        EXPECT_TRUE(same_as_on_root<T>(ctx, comm, MatrixView<const T>(s.residual_norms.data(), p, 1)));
                        if (matrix_class != Gallery::NearOverflow) {
                            const auto f = qr(ctx, comm, A_mine.view(), with(method));
                            const auto again = least_squares<T, Host>(ctx, f, B_mine.view(), {.rcond = 0});
                            EXPECT_TRUE(same_bits<T>(again.X.view(), s.X.view()));
                            EXPECT_EQ(again.residual_norms, s.residual_norms);
                            EXPECT_EQ(again.condition, s.condition);
                        }
                        if (comm.rank() != 0) continue;
                        const auto errors = least_squares_errors<T>(A.view(), B.view(), s.X.view(), s.residual_norms);
                        const double bound = least_squares_law * law_over(ranks) / law;
                        EXPECT_LE(errors.gradient, bound);
                        EXPECT_LE(errors.residual_norm, bound);
                        EXPECT_GE(s.condition, 1);
                    }
                });
            }
        }
    }
}

/// Columns whose largest entries are on other ranks, and far below T's squares; one rank has zeros alone.
TYPED_TEST(DistributedTest, ScalesAreThoseOfTheWholeMatrix) {
    using T = TypeParam;
    const Index m = 80, n = 5;
    const int tiny = std::is_same_v<T, double> ? -700 : -90;
    for (const int ranks : rank_counts()) {
        const auto rows = spreads[0].rows(m, n, ranks);
        Matrix<T> A = random_normal<T>(m, n);
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) {
                if (ranks > 1 && i < rows[0].end) A(i, j) = 0;
                A(i, j) = std::scalbn(A(i, j), j == 2 ? -tiny : tiny);
            }
        }
        on_ranks(ranks, [&](Communicator& comm) {
            expect_law_over_ranks<T>(comm, A.view(), spreads[0], with(Method::TSQR));
            expect_law_over_ranks<T>(comm, A.view(), spreads[0], with(Method::Auto));
            Context<Host> ctx(1);
            const auto f = qr<T, Host>(ctx, comm, A.view().row_block(rows[comm.rank()]));
            EXPECT_FALSE(f.report().fell_back) << "the Gram matrix has usable squares once A is scaled";
        });
    }
}

/// Only the last rank's rows of B are too large for a norm.
TYPED_TEST(DistributedTest, TheRangeIsThatOfTheWholeRightHandSide) {
    using T = TypeParam;
    const Index m = 80, n = 3;
    const int e = std::numeric_limits<T>::max_exponent - 4;
    const Matrix<T> A = integers<T>(m, n, 10), B = random_normal<T>(m, 1);
    for (const int ranks : rank_counts()) {
        on_ranks(ranks, [&](Communicator& comm) {
            Context<Host> ctx(1);
            const auto rows = spreads[0].rows(m, n, ranks)[comm.rank()];
            const auto solve = [&](int scale) {
                Matrix<T> mine = copy<T>(B.view().row_block(rows));
                const bool is_large = comm.rank() == ranks - 1;
                for (Index i = 0; i < mine.rows(); ++i) mine(i, 0) = is_large ? std::scalbn(mine(i, 0), scale) : T(0);
                const auto f = qr<T, Host>(ctx, comm, A.view().row_block(rows));
                const auto again = least_squares<T, Host>(ctx, f, mine.view());
                auto s = least_squares<T, Host>(ctx, comm, A.view().row_block(rows), mine.view());
                EXPECT_TRUE(same_bits<T>(again.X.view(), s.X.view()));
                return s;
            };
            const auto s = solve(e), s0 = solve(0);
            for (Index j = 0; j < n; ++j) EXPECT_EQ(s.X(j, 0), std::scalbn(s0.X(j, 0), e));
        });
    }
}

/// Where R or the norms of B would leave the range of T on the way.
TYPED_TEST(DistributedTest, PowersOfTwoScaleSolutionsAndSingularValues) {
    using T = TypeParam;
    using Limits = std::numeric_limits<T>;
    const Index m = 40, n = 3;
    const Matrix<T> A0 = integers<T>(m, n, 0), B0 = random_normal<T>(m, 1);
    for (const int ranks : rank_counts()) {
        for (const int e : {Limits::max_exponent - 5, Limits::min_exponent - Limits::digits + 2}) {
            const Matrix<T> A = integers<T>(m, n, e);
            on_ranks(ranks, [&](Communicator& comm) {
                SCOPED_TRACE(fmt::format("2^{} on {} ranks", e, ranks));
                Context<Host> ctx(1);
                const auto rows = spreads[0].rows(m, n, ranks)[comm.rank()];
                const auto solve = [&](const Matrix<T>& M) {
                    return least_squares<T, Host>(ctx, comm, M.view().row_block(rows), B0.view().row_block(rows), {},
                                                  with(Method::TSQR));
                };
                if (e > 0) {
                    const auto s = solve(A), s0 = solve(A0);
                    for (Index j = 0; j < n; ++j) EXPECT_NEAR(std::scalbn(s.X(j, 0), e) / s0.X(j, 0), 1, 1e-3);
                }
                const auto f = svd<T, Host>(ctx, comm, A.view().row_block(rows), false, with(Method::TSQR));
                const auto f0 = svd<T, Host>(ctx, comm, A0.view().row_block(rows), false, with(Method::TSQR));
                // R's own SVD scales as it likes; a denormal number is known to half of the smallest
                const double unit =
                    svd_law * n * unit_roundoff<T> * f0.s[0] + std::scalbn(double(Limits::denorm_min()), -e - 1);
                for (Index j = 0; j < n; ++j) {
                    if (std::isinf(std::scalbn(f0.s[j], e))) {
                        EXPECT_TRUE(std::isinf(f.s[j]));
                    } else {
                        EXPECT_NEAR(std::scalbn(double(f.s[j]), -e), f0.s[j], unit);
                    }
                }
            });
        }
    }
}

TYPED_TEST(DistributedTest, SvdObeysTheLaw) {
    using T = TypeParam;
    const Index m = 80, n = 6;
    Index turn = 0;
    for (const Gallery matrix_class : svd_classes) {
        const Matrix<T> A = generate<T>(matrix_class, m, n);
        for (const int ranks : rank_counts()) {
            for (const Spread& spread : in_turn(spreads, turn++)) {
                on_ranks(ranks, [&](Communicator& comm) {
                    SCOPED_TRACE(fmt::format("{} {} {}", to_string(matrix_class), ranks, spread.name));
                    Context<Host> ctx(1);
                    const auto rows = spread.rows(m, n, ranks);
                    const auto mine = A.view().row_block(rows[comm.rank()]);
                    SVD<T> f = svd<T, Host>(ctx, comm, mine);
                    EXPECT_TRUE(same_as_on_root<T>(ctx, comm, f.Vt.view()));
                    EXPECT_TRUE(same_as_on_root<T>(ctx, comm, MatrixView<const T>(f.s.data(), n, 1)));
                    f.U = gather<T>(ctx, comm, rows, f.U.view());
                    const SVD<T> values = svd<T, Host>(ctx, comm, mine, false);
                    if (comm.rank() != 0) return;
                    expect_svd_law<T>(A.view(), f);
                    EXPECT_LE(singular_value_error<T>(reference_singular_values<T>(A.view()), values.s), svd_law);
                });
            }
        }
    }
}

// ---- faults ---------------------------------------------------------------------------------------------------------

/// Every rank calls with its own arguments, which are wrong on rank `bad`; then the ranks still work together.
template <class E, class F>
void expect_fault(int ranks, int bad, const std::vector<std::string>& parts, F&& call) {
    on_ranks(ranks, [&](Communicator& comm) {
        SCOPED_TRACE(fmt::format("rank {} of {}, {} is wrong", comm.rank(), ranks, bad));
        const std::string text =
            expect_throw_on_all<E>(comm, [&](Context<Host>& ctx) { call(ctx, comm, comm.rank() == bad); });
        for (const std::string& part : parts) EXPECT_TRUE(contains(text, part)) << text;
        Context<Host> ctx(1);
        const Matrix<double> A = random_normal<double>(20, 4, 1 + comm.rank());
        EXPECT_EQ(qr(ctx, comm, A.view()).r(ctx).rows(), 4);
    });
}

TEST(DistributedFaults, OneRankWithNaN) {
    for (const int ranks : rank_counts()) {
        for (const int bad : {0, ranks - 1}) {
            for (const Method method : {Method::TSQR, Method::Auto, Method::CholeskyQR2}) {
                expect_fault<NonFiniteEntry>(ranks, bad, {fmt::format("rank {}: the matrix", bad), "row 5", "column 2"},
                                             [&](Context<Host>& ctx, Communicator& comm, bool is_bad) {
                                                 Matrix<double> A = random_normal<double>(40, 4, 1 + comm.rank());
                                                 if (is_bad) A(5, 2) = std::numeric_limits<double>::quiet_NaN();
                                                 qr(ctx, comm, A.view(), with(method));
                                             });
            }
            expect_fault<NonFiniteEntry>(ranks, bad, {fmt::format("rank {}: B", bad), "row 1", "column 0"},
                                         [&](Context<Host>& ctx, Communicator& comm, bool is_bad) {
                                             Matrix<double> A = random_normal<double>(9, 2),
                                                            B = random_normal<double>(9, 1);
                                             if (is_bad) B(1, 0) = std::numeric_limits<double>::infinity();
                                             least_squares(ctx, comm, A.view(), B.view());
                                         });
        }
    }
}

TEST(DistributedFaults, TheRanksDisagree) {
    for (const int ranks : rank_counts()) {
        if (ranks == 1) continue;
        for (const int bad : {0, ranks - 1}) {
            const std::string who = fmt::format("on rank {}", bad);
            expect_fault<InvalidArgument>(ranks, bad, {"the number of columns is", who},
                                          [&](Context<Host>& ctx, Communicator& comm, bool is_bad) {
                                              const Matrix<double> A = random_normal<double>(30, is_bad ? 5 : 4);
                                              qr(ctx, comm, A.view());
                                          });
            expect_fault<InvalidArgument>(ranks, bad, {"the size of an element", who},
                                          [&](Context<Host>& ctx, Communicator& comm, bool is_bad) {
                                              const Matrix<double> A = random_normal<double>(30, 4);
                                              const Matrix<float> B = random_normal<float>(30, 4);
                                              is_bad ? (void)qr(ctx, comm, B.view()) : (void)qr(ctx, comm, A.view());
                                          });
            expect_fault<InvalidArgument>(ranks, bad, {"Options::method", who},
                                          [&](Context<Host>& ctx, Communicator& comm, bool is_bad) {
                                              const Matrix<double> A = random_normal<double>(30, 4);
                                              qr(ctx, comm, A.view(), with(is_bad ? Method::TSQR : Method::Auto));
                                          });
            expect_fault<InvalidArgument>(ranks, bad, {"which ranks get R", who},
                                          [&](Context<Host>& ctx, Communicator& comm, bool is_bad) {
                                              const Matrix<double> A = random_normal<double>(30, 4);
                                              qr(ctx, comm, A.view()).r(ctx, is_bad ? Ranks::Root : Ranks::All);
                                          });
            expect_fault<InvalidArgument>(
                ranks, bad, {"calls", "qr", "least_squares", fmt::format("rank {}", bad)},
                [&](Context<Host>& ctx, Communicator& comm, bool is_bad) {
                    const Matrix<double> A = random_normal<double>(30, 4), B = random_normal<double>(30, 1);
                    is_bad ? (void)qr(ctx, comm, A.view()) : (void)least_squares(ctx, comm, A.view(), B.view());
                });
        }
    }
}

TEST(DistributedFaults, OneRankWithOtherArguments) {
    const Matrix<double> A = random_normal<double>(30, 4);
    for (const int ranks : rank_counts()) {
        for (const int bad : {0, ranks - 1}) {
            const std::string who = fmt::format("rank {}: ", bad);
            expect_fault<InvalidArgument>(
                ranks, bad, {who, "ld must be"}, [&](Context<Host>& ctx, Communicator& comm, bool is_bad) {
                    qr(ctx, comm, MatrixView<const double>(A.data(), 30, 4, is_bad ? 29 : 30));
                });
            expect_fault<InvalidArgument>(ranks, bad, {who, "over ranks"},
                                          [&](Context<Host>& ctx, Communicator& comm, bool is_bad) {
                                              qr(ctx, comm, A.view(), with(is_bad ? Method::CAQR : Method::TSQR));
                                          });
            expect_fault<InvalidArgument>(ranks, bad, {who, "LAPACK's format"},
                                          [&](Context<Host>& ctx, Communicator& comm, bool is_bad) {
                                              Options options;
                                              options.q = is_bad ? QForm::Reflectors : QForm::Any;
                                              qr(ctx, comm, A.view(), options);
                                          });
            expect_fault<InvalidArgument>(ranks, bad, {who, "verify"},
                                          [&](Context<Host>& ctx, Communicator& comm, bool is_bad) {
                                              Options options;
                                              options.verify = is_bad;
                                              qr(ctx, comm, A.view(), options);
                                          });
            expect_fault<InvalidArgument>(
                ranks, bad, {who, "B has 29 rows"}, [&](Context<Host>& ctx, Communicator& comm, bool is_bad) {
                    least_squares(ctx, comm, A.view(), A.view().row_block({0, is_bad ? 29 : 30}));
                });
            expect_fault<InvalidArgument>(
                ranks, bad, {who, "C has 29 rows"}, [&](Context<Host>& ctx, Communicator& comm, bool is_bad) {
                    const auto f = qr(ctx, comm, A.view());
                    f.apply_thin_q(ctx, Op::Transpose, A.view().row_block({0, is_bad ? 29 : 30}));
                });
        }
    }
}

TEST(DistributedFaults, OneRankThatCannotTakePart) {
    const Matrix<double> A = random_normal<double>(30, 4);
    for (const int ranks : rank_counts()) {
        for (const int bad : {0, ranks - 1}) {
            for (const bool factored : {false, true}) {
                expect_fault<InvalidArgument>(ranks, bad, {fmt::format("rank {}: no file", bad)},
                                              [&](Context<Host>& ctx, Communicator& comm, bool is_bad) {
                                                  const auto fail = [&] { fail_on_all_ranks(ctx, comm, "no file"); };
                                                  if (is_bad && !factored) fail();
                                                  const auto f = qr(ctx, comm, A.view());
                                                  if (is_bad) fail();
                                                  f.form_q(ctx);
                                              });
            }
        }
    }
}

TEST(DistributedFaults, RanksThatConnectTheirGpus) {
    for (const int ranks : rank_counts()) {
        on_ranks(ranks, [&](Communicator& comm) {
            Context<Host> ctx(1);
            const auto numbers = agree_on_gpus(ctx, comm, [&] { return 10 + comm.rank(); });
            ASSERT_EQ(numbers.size(), comm.size());
            for (int r = 0; r < comm.size(); ++r) EXPECT_EQ(numbers[r], 10 + r);
        });
        for (const int bad : {0, ranks - 1}) {
            expect_fault<InvalidArgument>(ranks, bad, {fmt::format("rank {}: no NCCL", bad)},
                                          [&](Context<Host>& ctx, Communicator& comm, bool is_bad) {
                                              agree_on_gpus(ctx, comm, [&]() -> Index {
                                                  if (is_bad) throw InvalidArgument("no NCCL");
                                                  return 1;
                                              });
                                          });
        }
    }
}

TEST(DistributedFaults, OneRankWithoutMemory) {
    const Matrix<double> A = random_normal<double>(30, 4);
    for (const int ranks : rank_counts()) {
        for (const int bad : {0, ranks - 1}) {
            expect_fault<OutOfMemory>(ranks, bad, {fmt::format("rank {}: ", bad)},
                                      [&](Context<Host>& ctx, Communicator& comm, bool is_bad) {
                                          const Index m = is_bad ? Index{1} << 50 : 30;
                                          qr(ctx, comm, MatrixView<const double>(A.data(), m, 4));
                                      });
        }
    }
}

TEST(DistributedFaults, NaNPropagatesWhereNobodyChecks) {
    for (const int ranks : rank_counts()) {
        on_ranks(ranks, [&](Communicator& comm) {
            Context<Host> ctx(1);
            Matrix<double> A = random_normal<double>(40, 4, 1 + comm.rank());
            if (comm.rank() == ranks - 1) A(5, 2) = std::numeric_limits<double>::quiet_NaN();
            for (const Method method : {Method::TSQR, Method::Auto}) {
                Options options = with(method);
                options.check_finite = false;
                EXPECT_FALSE(is_finite<double>(qr(ctx, comm, A.view(), options).r(ctx).view()));
            }
        });
    }
}

/// A piece of work that fails between two messages, wherever that is.
TEST(DistributedFaults, OneRankIsInterrupted) {
    const Matrix<double> A = random_normal<double>(60, 6);
    for (const int ranks : rank_counts()) {
        for (const int bad : {0, ranks / 2, ranks - 1}) {
            for (const Method method : {Method::TSQR, Method::CholeskyQR2, Method::RandomizedCholeskyQR}) {
                for (const QForm q : {QForm::Any, QForm::None, QForm::Explicit}) {
                    expect_fault<Interrupted>(ranks, bad, {}, [&](Context<Host>& ctx, Communicator& comm, bool is_bad) {
                        if (is_bad) ctx.request_stop();
                        qr(ctx, comm, A.view(), with(method, q));
                    });
                }
            }
            for (const bool forms : {true, false}) {
                expect_fault<Interrupted>(ranks, bad, {}, [&](Context<Host>& ctx, Communicator& comm, bool is_bad) {
                    const auto f = qr(ctx, comm, A.view(), with(Method::TSQR));
                    if (is_bad) ctx.request_stop();
                    forms ? f.form_q(ctx) : f.apply_thin_q(ctx, Op::Transpose, A.view());
                });
            }
        }
    }
}

TEST(DistributedFaults, WhatTheMatrixAsAWholeDoesNotHave) {
    for (const int ranks : rank_counts()) {
        on_ranks(ranks, [&](Communicator& comm) {
            Matrix<double> A = random_normal<double>(20, 3, 1 + comm.rank()), B = random_normal<double>(20, 1);
            std::fill_n(A.view().at(0, 1), 20, 0.0);
            const auto text = expect_throw_on_all<RankDeficient>(comm, [&](Context<Host>& ctx) {
                least_squares(ctx, comm, A.view(), B.view(), {.refuse_deficient = true});
            });
            EXPECT_TRUE(contains(text, fmt::format("column 1 of the {}x3 matrix is zero", 20 * ranks))) << text;
            const auto no_rows = A.view().row_block({0, comm.rank() == 0 ? 2 : 0});
            const auto wide = expect_throw_on_all<InvalidArgument>(comm, [&](Context<Host>& ctx) {
                least_squares<double, Host>(ctx, comm, no_rows, B.view().row_block({0, no_rows.rows}));
            });
            EXPECT_TRUE(contains(wide, "least_squares over ranks needs at least as many rows as columns")) << wide;
            Context<Host> own(1);
            const auto f = qr<double, Host>(own, comm, no_rows), none = qr(own, comm, A.view(), {.q = QForm::None});
            const auto again = expect_throw_on_all<InvalidArgument>(comm, [&](Context<Host>& ctx) {
                least_squares<double, Host>(ctx, f, B.view().row_block({0, no_rows.rows}));
            });
            EXPECT_EQ(again, wide);
            const auto needs = expect_throw_on_all<InvalidArgument>(
                comm, [&](Context<Host>& ctx) { least_squares<double, Host>(ctx, none, B.view()); });
            EXPECT_TRUE(contains(needs, "least_squares needs Q")) << needs;
            const auto of_svd = expect_throw_on_all<InvalidArgument>(
                comm, [&](Context<Host>& ctx) { svd<double, Host>(ctx, comm, no_rows); });
            EXPECT_TRUE(contains(of_svd, "svd over ranks needs at least as many rows as columns")) << of_svd;
        });
    }
}

}  // namespace
}  // namespace quoin::test
