// Rows over ranks in the memory of GPUs. As cuda_distributed_test all ranks share one GPU and their messages go through
// the host; as cuda_nccl_test every rank has a GPU of its own, and NCCL connects them.

#include "quoin/distributed.hpp"

#include <fmt/format.h>

#include <cmath>

#include "cases.hpp"
#include "devices.hpp"
#include "gallery.hpp"
#include "gpu_ranks.hpp"
#include "least_squares_law.hpp"
#include "rank_laws.hpp"
#include "ranks.hpp"
#include "svd_law.hpp"

namespace quoin::test {
namespace {

using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuRanks, Precisions);
using GpuRanksOnce = GpuRanks<double>;

/// Factors A, spread over the ranks, and expects the law of R, of the thin Q and of products with it.
template <class T>
void expect_law_over_gpus(Context<Cuda>& ctx, Communicator& comm, MatrixView<const T> A, const Spread& spread,
                          const Options& options) {
    SCOPED_TRACE(fmt::format("{} of {} {}x{}, rows {}, {} {}", comm.rank(), comm.size(), A.rows, A.cols, spread.name,
                             to_string(options.method), to_string(options.q)));
    Context<Host> host(1);
    const double bound = law * std::sqrt(1 + std::ceil(std::log2(comm.size())));
    const Index n = A.cols, k = std::min(A.rows, n), p = 3;
    const auto rows = spread.rows(A.rows, n, comm.size());
    const auto mine_of = [&](MatrixView<const T> B) { return B.row_block(rows[comm.rank()]); };
    GpuPadded<T> mine(ctx, mine_of(A));
    const auto f = qr<T, Cuda>(ctx, comm, mine.view(), options);
    EXPECT_TRUE(same_bits<T>(mine.fetch(ctx).view(), mine_of(A))) << "A has changed";
    EXPECT_EQ(f.plan().q, options.q);
    EXPECT_EQ(f.plan().check_finite, options.check_finite);
    const auto fetched = [&](const Matrix<T, Cuda>& B) { return copy_to_host<T>(ctx, B.view()); };
    const Matrix<T> R = fetched(f.r(ctx));
    EXPECT_EQ(f.r(ctx, Ranks::Root).rows(), comm.rank() == 0 ? k : 0);
    ASSERT_EQ(R.rows(), k);
    EXPECT_TRUE(same_as_on_root<T>(host, comm, R.view()));
    EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
    if (options.q == QForm::None) {
        if (comm.rank() == 0) {
            EXPECT_LE(gram_error<T>(A, R.view()), bound);
        }
        EXPECT_THROW(f.form_q(ctx), InvalidArgument);
        return;
    }
    const Matrix<T> C = random_normal<T>(A.rows, p, 7), W = random_normal<T>(k, p, 8);
    const Matrix<T> Q_mine = fetched(f.form_q(ctx));
    auto spent = qr<T, Cuda>(ctx, comm, mine.view(), options);
    EXPECT_TRUE(same_bits<T>(fetched(std::move(spent).take_q(ctx)).view(), Q_mine.view()));
    const Matrix<T> Q = gather<T>(host, comm, rows, Q_mine.view());
    const auto C_mine = copy_to_device<T>(ctx, mine_of(C.view()));
    const Matrix<T> QtC = fetched(f.apply_thin_q(ctx, Op::Transpose, C_mine.view()));
    const Matrix<T> QW = gather<T>(
        host, comm, rows, fetched(f.apply_thin_q(ctx, Op::None, copy_to_device<T>(ctx, W.view()).view())).view());
    EXPECT_TRUE(same_as_on_root<T>(host, comm, QtC.view()));
    if (comm.rank() != 0) return;
    EXPECT_LE(orthogonality_error<T>(Q.view(), k), bound) << "‖I − QᵀQ‖";
    EXPECT_LE(residual_error<T>(A, Q.view(), R.view()), bound) << "‖A − QR‖";
    const Matrix<T> Qt = transposed<T>(Q.view());
    EXPECT_LE(difference<T>(QtC.view(), product<T>(Qt.view(), C.view()).view(), k, frobenius_norm<T>(C.view())), bound)
        << "Q₁ᵀC";
    EXPECT_LE(difference<T>(QW.view(), product<T>(Q.view(), W.view()).view(), k, frobenius_norm<T>(W.view())), bound)
        << "Q₁W";
}

TYPED_TEST(GpuRanks, GalleryObeysTheLaw) {
    using T = TypeParam;
    Index turn = 0;
    const std::vector<int> counts = gpu_rank_counts();
    for (const Gallery matrix_class : gallery()) {
        SCOPED_TRACE(to_string(matrix_class));
        const Matrix<T> A = generate<T>(matrix_class, 700, 20);
        on_gpus(counts[turn % counts.size()], [&](Context<Cuda>& ctx, Communicator& comm) {
            for (const Method method : {Method::Auto, Method::TSQR})
                expect_law_over_gpus<T>(ctx, comm, A.view(), spreads[0], with(method));
        });
        ++turn;
    }
}

TYPED_TEST(GpuRanks, ShapesAndSpreadsObeyTheLaw) {
    using T = TypeParam;
    const struct {
        Index m, n;
    } shapes[] = {{0, 0},     {9, 0},      {1, 1},      {5, 9},      {40, 33},   {300, 32},
                  {1000, 65}, {2500, 193}, {3000, 256}, {5000, 300}, {1200, 257}};
    const std::vector<int> counts = gpu_rank_counts();
    Index turn = 0;
    for (const auto& [m, n] : shapes) {
        const Matrix<T> A = random_normal<T>(m, n);
        for (const Spread& spread : spreads) {
            on_gpus(counts[turn++ % counts.size()], [&](Context<Cuda>& ctx, Communicator& comm) {
                for (const QForm q : {QForm::Any, QForm::None, QForm::Explicit}) {
                    expect_law_over_gpus<T>(ctx, comm, A.view(), spread, with(Method::Auto, q));
                    if (m < 2000) expect_law_over_gpus<T>(ctx, comm, A.view(), spread, with(Method::TSQR, q));
                }
            });
        }
    }
}

TYPED_TEST(GpuRanks, EveryConditionAndRangeObeysTheLaw) {
    using T = TypeParam;
    const int ranks = gpu_rank_counts().back();
    for (double condition = 1; condition < 10 / unit_roundoff<T>; condition *= 300) {
        Matrix<T> A = with_condition<T>(400, 6, condition);
        // one column whose squares overflow, one whose squares are lost
        for (Index i = 0; i < 400; ++i) {
            A(i, 1) = std::ldexp(A(i, 1), std::numeric_limits<T>::max_exponent * 3 / 4);
            A(i, 4) = std::ldexp(A(i, 4), std::numeric_limits<T>::min_exponent * 3 / 4);
        }
        on_gpus(ranks, [&](Context<Cuda>& ctx, Communicator& comm) {
            const auto rows = spreads[0].rows(400, 6, ranks);
            const auto mine = copy_to_device<T>(ctx, A.view().row_block(rows[comm.rank()]));
            for (const Method method : {Method::Auto, Method::TSQR}) {
                const auto f = qr<T, Cuda>(ctx, comm, mine.view(), with(method));
                Context<Host> host(1);
                const Matrix<T> Q = gather<T>(host, comm, rows, copy_to_host<T>(ctx, f.form_q(ctx).view()).view());
                const Matrix<T> R = copy_to_host<T>(ctx, f.r(ctx).view());
                if (comm.rank() != 0) continue;
                EXPECT_LE(orthogonality_error<T>(Q.view(), 6), 2 * law) << condition;
                EXPECT_LE(column_residual_error<T>(A.view(), Q.view(), R.view()), 2 * law) << condition;
            }
        });
    }
}

TYPED_TEST(GpuRanks, TheSameBitsInEveryRun) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(quick() ? 3000 : 40000, 40);
    const int ranks = gpu_rank_counts().back();
    on_gpus(ranks, [&](Context<Cuda>& ctx, Communicator& comm) {
        const auto mine = copy_to_device<T>(ctx, A.view().row_block(spreads[0].rows(A.rows(), 40, ranks)[comm.rank()]));
        for (const Method method : {Method::TSQR, Method::CholeskyQR2}) {
            std::optional<Matrix<T>> R, Q;
            for (int run = 0; run < 3; ++run) {
                const auto f = qr<T, Cuda>(ctx, comm, mine.view(), with(method));
                Matrix<T> R_now = copy_to_host<T>(ctx, f.r(ctx).view()),
                          Q_now = copy_to_host<T>(ctx, f.form_q(ctx).view());
                if (R) {
                    EXPECT_TRUE(same_bits<T>(R->view(), R_now.view()));
                    EXPECT_TRUE(same_bits<T>(Q->view(), Q_now.view()));
                }
                R = std::move(R_now);
                Q = std::move(Q_now);
            }
        }
    });
}

TYPED_TEST(GpuRanks, AFaultOfOneRankIsThatOfAll) {
    using T = TypeParam;
    const int ranks = gpu_rank_counts().back();
    on_gpus(ranks, [&](Context<Cuda>& ctx, Communicator& comm) {
        for (const Method method : {Method::Auto, Method::TSQR, Method::RandomizedCholeskyQR}) {
            Matrix<T> A = random_normal<T>(500, 8, 1 + comm.rank());
            const bool last = comm.rank() == comm.size() - 1;
            if (last) A(5, 3) = std::numeric_limits<T>::quiet_NaN();
            const auto factor = [&](Index n) {
                const auto mine = copy_to_device<T>(ctx, A.view().col_block({0, n}));
                return qr<T, Cuda>(ctx, comm, mine.view(), with(method));
            };
            try {
                factor(8);
                ADD_FAILURE() << "not thrown on rank " << comm.rank();
            } catch (const NonFiniteEntry& e) {
                EXPECT_EQ(e.row, 5);
                EXPECT_EQ(e.col, 3);
                EXPECT_NE(std::string(e.what()).find(fmt::format("rank {}", comm.size() - 1)), std::string::npos)
                    << e.what();
            }
            if (comm.size() > 1) {
                EXPECT_THROW(factor(last ? 7 : 8), InvalidArgument);
            }
            // the ranks go on together
            A(5, 3) = 1;
            EXPECT_EQ(factor(8).rows(), 500 * comm.size());
        }
    });
}

TYPED_TEST(GpuRanks, LeastSquaresAndSvdObeyTheLaw) {
    using T = TypeParam;
    const Index m = 900, p = 3;
    const std::vector<int> counts = gpu_rank_counts();
    Index turn = 0;
    for (const Index n : {1, 33, 120}) {
        for (const double condition : {1.0, 0.01 / unit_roundoff<T>}) {
            const Matrix<T> A = with_condition<T>(m, n, n > 1 ? condition : 1), B = random_normal<T>(m, p, 3);
            const int ranks = counts[turn++ % counts.size()];
            on_gpus(ranks, [&](Context<Cuda>& ctx, Communicator& comm) {
                SCOPED_TRACE(fmt::format("{}x{}, κ = {:.2g}, rank {} of {}", m, n, condition, comm.rank(), ranks));
                Context<Host> host(1);
                const auto rows = spreads[0].rows(m, n, ranks);
                const auto mine = rows[comm.rank()];
                const auto A_mine = copy_to_device<T>(ctx, A.view().row_block(mine)),
                           B_mine = copy_to_device<T>(ctx, B.view().row_block(mine));
                const auto solution = least_squares<T, Cuda>(ctx, comm, A_mine.view(), B_mine.view());
                const Matrix<T> X = copy_to_host<T>(ctx, solution.X.view());
                EXPECT_TRUE(same_as_on_root<T>(host, comm, X.view()));
                const auto again = least_squares<T, Cuda>(ctx, qr<T, Cuda>(ctx, comm, A_mine.view()), B_mine.view());
                EXPECT_TRUE(same_bits<T>(copy_to_host<T>(ctx, again.X.view()).view(), X.view()));
                EXPECT_EQ(again.residual_norms, solution.residual_norms);
                const auto f = svd<T, Cuda>(ctx, comm, A_mine.view());
                const Matrix<T> U = gather<T>(host, comm, rows, copy_to_host<T>(ctx, f.U.view()).view());
                if (comm.rank() != 0) return;
                const auto errors = least_squares_errors<T>(A.view(), B.view(), X.view(), solution.residual_norms);
                const double bound = least_squares_law * std::sqrt(1 + std::ceil(std::log2(ranks)));
                EXPECT_LE(errors.gradient, bound);
                EXPECT_LE(errors.residual_norm, bound);
                SVD<T> on_host;
                on_host.U = copy<T>(U.view());
                on_host.s = f.s;
                on_host.Vt = copy_to_host<T>(ctx, f.Vt.view());
                expect_svd_law<T>(A.view(), on_host);
            });
        }
    }
}

TYPED_TEST(GpuRanks, MergedStreamsAreThatOfAllRows) {
    using T = TypeParam;
    const std::vector<int> counts = gpu_rank_counts();
    Index turn = 0;
    for (const Gallery matrix_class : {Gallery::RandomNormal, Gallery::GradedColumnsDown, Gallery::Banded}) {
        // by a cluster a matrix, and by strips
        for (const Index n : {7, 45}) {
            const Matrix<T> A = generate<T>(matrix_class, 600, n), B = random_normal<T>(600, 2, 3);
            for (const Spread& spread : spreads) {
                on_gpus(counts[turn++ % counts.size()], [&](Context<Cuda>& ctx, Communicator& comm) {
                    expect_merged_law<T>(ctx, comm, spread, A.view(), B.view());
                });
            }
        }
    }
}

TEST_F(GpuRanksOnce, MergedStreamsOfFewRowsAndOfOthersThanTheRest) {
    for (const int ranks : gpu_rank_counts()) {
        on_gpus(ranks,
                [](Context<Cuda>& ctx, Communicator& comm) { expect_merge_of_few_rows_and_refusals(ctx, comm); });
    }
}

TYPED_TEST(GpuRanks, ColumnsAppendedObeyTheLaw) {
    using T = TypeParam;
    const std::vector<int> counts = gpu_rank_counts();
    Index turn = 0;
    for (const Gallery matrix_class : gallery()) {
        SCOPED_TRACE(to_string(matrix_class));
        const Matrix<T> A = generate<T>(matrix_class, 500, 60);
        const Spread& spread = spreads[static_cast<std::size_t>(turn) % std::size(spreads)];
        on_gpus(counts[turn++ % counts.size()], [&](Context<Cuda>& ctx, Communicator& comm) {
            expect_appended_law<T>(ctx, comm, spread, A.view(), {{0, 1}, {1, 8}, {8, 8}, {8, 20}, {20, 60}});
        });
    }
}

TEST_F(GpuRanksOnce, AppendRefusesOnAllRanksAndChangesNothing) {
    for (const int ranks : gpu_rank_counts()) {
        on_gpus(ranks, [](Context<Cuda>& ctx, Communicator& comm) { expect_append_refuses(ctx, comm); });
    }
}

/// Ctrl-C on one rank, before the call.
TYPED_TEST(GpuRanks, OneRankIsInterrupted) {
    using T = TypeParam;
    on_gpus(gpu_rank_counts().back(), [&](Context<Cuda>& ctx, Communicator& comm) {
        for (const Method method : {Method::CholeskyQR2, Method::TSQR}) {
            const auto mine = copy_to_device<T>(ctx, random_normal<T>(500, 8, 1 + comm.rank()).view());
            if (comm.rank() == 0) ctx.request_stop();
            EXPECT_THROW((qr<T, Cuda>(ctx, comm, mine.view(), with(method))), Interrupted);
            ctx.clear_stop();
            EXPECT_EQ((qr<T, Cuda>(ctx, comm, mine.view(), with(method))).cols(), 8);
        }
    });
}

#ifdef QUOIN_TEST_NCCL
TEST(NcclCommunicator, ConnectsTheGpusOfAControl) {
    if (gpu_rank_counts().empty()) GTEST_SKIP() << "one GPU: NCCL needs two";
    run_ranks(gpu_rank_counts().back(), [&](Communicator& control) {
        const CurrentDevice gpu(control.rank());
        NcclCommunicator comm(control);
        Context<Cuda> ctx;
        Matrix<double> A(3, 1);
        A(1, 0) = 7 + control.rank();
        const auto on_device = copy_to_device<double>(ctx, A.view());
        Matrix<double, Cuda> received = copy_to_device<double>(ctx, A.view());
        if (comm.rank() == 1) comm.send<double>(ctx, on_device.view(), 0);
        if (comm.rank() == 0) comm.receive<double>(ctx, received.view(), 1);
        EXPECT_EQ(copy_to_host<double>(ctx, received.view())(1, 0), comm.rank() == 0 ? 8 : 7 + comm.rank());
        if (comm.rank() < 2) {
            const int other = 1 - comm.rank();
            EXPECT_EQ(comm.exchange<double>(ctx, on_device.view(), received.view(), other), 0);
            EXPECT_EQ(copy_to_host<double>(ctx, received.view())(1, 0), 7 + other);
            EXPECT_EQ(comm.exchange<double>(ctx, on_device.view(), received.view(), other, comm.rank()), other);
        }
        EXPECT_THROW(NcclCommunicator(control, connected(2)[1 - control.rank() % 2]), InvalidArgument);
    });
}
#endif

}  // namespace
}  // namespace quoin::test
