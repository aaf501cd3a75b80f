// Block-cyclic matrices in the memory of GPUs: the law on every grid, panels that one GPU factors by strips and by
// reconstruction, panels that GPUs share, corrected products, faults. As cuda_block_cyclic_test all ranks share one
// GPU; in cuda_nccl_test every rank has one of its own.

#include "quoin/block_cyclic.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "algorithms/ranks/block_cyclic_tuning.hpp"
#include "cyclic_matrices.hpp"
#include "gallery.hpp"
#include "gpu_ranks.hpp"
#include "measure/cuda/accuracy.hpp"
#include "quoin/qr.hpp"

namespace quoin::test {
namespace {

template <class T>
class GpuBlockCyclic : public GpuRanks<T> {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuBlockCyclic, Precisions);

/// f on every grid of up to four ranks.
void on_gpu_grids(const std::function<void(Context<Cuda>&, const ProcessGrid&)>& f) {
    for (const int ranks : gpu_rank_counts()) {
        if (ranks > 4) continue;
        on_gpus(ranks, [&](Context<Cuda>& ctx, Communicator& comm) {
            for (const auto& shape : grids(ranks)) {
                const ProcessGrid grid(comm, shape.first, shape.second);
                SCOPED_TRACE(fmt::format("grid {}x{}, rank {}", grid.rows(), grid.cols(), comm.rank()));
                f(ctx, grid);
            }
        });
    }
}

/// This rank's part of A on its GPU.
template <class T>
Matrix<T, Cuda> part_on_gpu(Context<Cuda>& ctx, const ProcessGrid& grid, const BlockCyclic& layout,
                            MatrixView<const T> A) {
    return copy_to_device<T>(ctx, part_of<T>(grid, layout, A).view());
}
template <class T>
BlockCyclicQR<T, Cuda> qr_of(Context<Cuda>& ctx, const ProcessGrid& grid, const BlockCyclic& layout,
                             MatrixView<const T, Cuda> mine, Index panel_width = 0) {
    return qr<T, Cuda>(ctx, grid, BlockCyclicView<const T, Cuda>(layout, mine), panel_width);
}

/// Factors A in this layout and expects the law of R, of the thin Q, of V and tau, and of products with Q.
template <class T>
void expect_law(Context<Cuda>& ctx, const ProcessGrid& grid, BlockCyclic layout, MatrixView<const T> A,
                Index panel_width = 0) {
    layout.rows = A.rows;
    layout.cols = A.cols;
    SCOPED_TRACE(fmt::format("{}x{} in blocks {}x{} from ({}, {}), panels {}", A.rows, A.cols, layout.row_block,
                             layout.col_block, layout.first_row, layout.first_col, panel_width));
    // stages: the leaf, the levels of the tree of ranks, and the reconstruction of V and T from Q
    const double bound = law * std::sqrt(2.0 + std::ceil(std::log2(grid.rows())));
    const Index m = A.rows, n = A.cols, k = std::min(m, n), p = 5;
    Context<Host> host(1);
    const auto whole_of = [&](const BlockCyclic& of, MatrixView<const T, Cuda> part) {
        return whole<T>(host, grid, of, copy_to_host<T>(ctx, part).view());
    };
    GpuPadded<T> mine(ctx, part_of<T>(grid, layout, A).view());
    const auto f = qr_of<T>(ctx, grid, layout, mine.view(), panel_width);
    EXPECT_TRUE(same_bits<T>(mine.fetch(ctx).view(), part_of<T>(grid, layout, A).view())) << "A has changed";

    BlockCyclic r_layout = layout, q_layout = layout, c_layout = layout;
    r_layout.rows = k;
    q_layout.cols = k;
    c_layout.cols = p;
    const Matrix<T> R = whole_of(r_layout, f.r(ctx).view()), Q = whole_of(q_layout, f.form_q(ctx).view());
    const Matrix<T> V_R_mine = copy_to_host<T>(ctx, f.v_and_r()), V_R = whole<T>(host, grid, layout, V_R_mine.view());
    const Matrix<T> C = random_normal<T>(m, p, 7);
    GpuPadded<T> QtC_mine(ctx, part_of<T>(grid, c_layout, C.view()).view()),
        QC_mine(ctx, part_of<T>(grid, c_layout, C.view()).view());
    f.apply_q(ctx, Op::Transpose, {c_layout, QtC_mine.view()});
    f.apply_q(ctx, Op::None, {c_layout, QC_mine.view()});
    const Matrix<T> QtC = whole<T>(host, grid, c_layout, QtC_mine.fetch(ctx).view());
    const Matrix<T> QC = whole<T>(host, grid, c_layout, QC_mine.fetch(ctx).view());
    // tau, the same on all ranks of a process column
    const Matrix<T> tau_mine = copy_to_host<T>(ctx, f.tau(ctx).view());
    const Matrix<T> tau = whole_tau<T>(host, grid, layout, tau_mine);

    // in A's memory, and Q there: another leading dimension may make other bits
    GpuPadded<T> in_place(ctx, part_of<T>(grid, layout, A).view());
    auto again = qr_in_place<T, Cuda>(ctx, grid, {layout, in_place.view()}, panel_width);
    const Matrix<T> R_again = whole_of(r_layout, again.r(ctx).view());
    std::move(again).form_q_in_place(ctx);
    const Matrix<T> Q_again =
        whole<T>(host, grid, q_layout, in_place.fetch(ctx).view().col_block({0, q_layout.local_cols(grid)}));

    // V and tau imported with other panels; Q in their memory
    GpuPadded<T> imported(ctx, V_R_mine.view());
    const auto taus = copy_to_device<T>(ctx, tau_mine.view());
    from_lapack<T>(ctx, grid, {layout, imported.view()}, taus.view(), n > 60 ? 40 : 2).form_q_in_place(ctx);
    const Matrix<T> Q_imported =
        whole<T>(host, grid, q_layout, imported.fetch(ctx).view().col_block({0, q_layout.local_cols(grid)}));

    if (grid.comm().rank() != 0) return;
    if (k > 0) {
        EXPECT_LE(orthogonality_error<T>(Q_again.view(), k), bound) << "‖I − QᵀQ‖ in place";
        EXPECT_LE(residual_error<T>(A, Q_again.view(), R_again.view()), bound) << "‖A − QR‖ in place";
        EXPECT_LE(difference<T>(Q_imported.view(), Q.view(), k, std::sqrt(static_cast<double>(k))), bound)
            << "imported";
    }
    expect_cyclic_law<T>(host, A, {R, Q, V_R, tau, C, QtC, QC}, bound);
}

TYPED_TEST(GpuBlockCyclic, OddShapesAndBlocks) {
    using T = TypeParam;
    static constexpr std::array<Index, 2> shapes[] = {{0, 0},   {0, 3},   {3, 0},    {1, 1},   {1, 6},    {6, 1},
                                                      {37, 13}, {13, 37}, {200, 90}, {90, 70}, {130, 200}};
    static constexpr std::array<Index, 2> blocks[] = {{1, 1}, {3, 5}, {8, 8}, {64, 64}, {2, 16}, {32, 24}};
    on_gpu_grids([&](Context<Cuda>& ctx, const ProcessGrid& grid) {
        Index turn = grid.rows() + grid.cols();
        for (const auto& [m, n] : shapes) {
            const Matrix<T> A = random_normal<T>(m, n, 3);
            for (Index i = 0; i < (every_combination() ? 2 : 1); ++i, ++turn) {
                const auto& block = blocks[turn % 6];
                const BlockCyclic layout{m,
                                         n,
                                         block[0],
                                         block[1],
                                         static_cast<int>(turn) % grid.rows(),
                                         static_cast<int>(turn) % grid.cols()};
                expect_law<T>(ctx, grid, layout, A.view(), turn % 3 == 2 ? 3 : 0);
            }
        }
    });
}

// Panels by strips, by reconstruction beyond their rows, and wider than those that are reconstructed at once; halves of
// updates before the next panel comes; several panels of a block; ragged last blocks.
TYPED_TEST(GpuBlockCyclic, TallAndWidePanels) {
    using T = TypeParam;
    const Index tall = 65536 / sizeof(T) + 100;
    const struct {
        Index m, n, block;
    } cases[] = {{tall, 70, 33}, {tall, 200, 140}, {700, 450, 128}, {150, 4700, 100}, {900, 120, 16}, {300, 900, 256}};
    on_gpu_grids([&](Context<Cuda>& ctx, const ProcessGrid& grid) {
        if (grid.comm().size() == 3) return;
        for (const auto& [m, n, block] : cases) {
            if (m * n > 400000 && quick()) continue;
            const Matrix<T> A = random_normal<T>(m, n, 3);
            expect_law<T>(ctx, grid, {m, n, block, block}, A.view());
        }
    });
}

// More rows than go to one GPU: the ranks of a process column factor a panel together.
TYPED_TEST(GpuBlockCyclic, PanelsThatRanksShare) {
    using T = TypeParam;
    if (quick()) GTEST_SKIP() << "large";
    const Index m = CyclicTuning::max_gathered_rows + 777, n = 24;
    const Matrix<T> random = random_normal<T>(m, n, 3), condition = with_condition<T>(m, n, 1e4);
    on_gpu_grids([&](Context<Cuda>& ctx, const ProcessGrid& grid) {
        if (grid.rows() == 1 || grid.comm().size() == 3) return;
        expect_law<T>(ctx, grid, {m, n, 100, 10}, random.view());
        expect_law<T>(ctx, grid, {m, n, 512, 24}, condition.view(), 16);
    });
}

TYPED_TEST(GpuBlockCyclic, Gallery) {
    using T = TypeParam;
    on_gpu_grids([&](Context<Cuda>& ctx, const ProcessGrid& grid) {
        if (grid.comm().size() == 3) return;
        for (const Gallery matrix_class : gallery()) {
            // on square grids or on the others
            if (!every_combination() && (static_cast<int>(matrix_class) + grid.rows() + grid.cols()) % 2 > 0) continue;
            SCOPED_TRACE(to_string(matrix_class));
            const Index b = 4 + static_cast<Index>(matrix_class) % 3;
            expect_law<T>(ctx, grid, {0, 0, b, 6}, generate<T>(matrix_class, 45, 20).view());
            if (quick()) continue;
            expect_law<T>(ctx, grid, {0, 0, 16, 16}, generate<T>(matrix_class, 130, 16).view(), 16);
        }
    });
}

TYPED_TEST(GpuBlockCyclic, RedistributionMovesEveryEntryBothWays) {
    using T = TypeParam;
    on_gpu_grids([&](Context<Cuda>& ctx, const ProcessGrid& grid) {
        for (const auto& [m, n, mb, nb] : std::vector<std::array<Index, 4>>{
                 {23, 11, 3, 2}, {23, 11, 5, 64}, {4, 17, 1, 3}, {0, 5, 2, 2}, {5, 0, 2, 2}, {64, 8, 8, 4}}) {
            Matrix<T> A(m, n);
            for (Index i = 0; i < m * n; ++i) A.data()[i] = static_cast<T>(i + 1);
            const BlockCyclic layout{m, n, mb, nb, grid.rows() - 1, grid.cols() / 2};
            for (const Spread& spread : spreads) {
                const Range mine = spread.rows(m, n, grid.comm().size())[grid.comm().rank()];
                const auto rows = A.view().row_block(mine);
                GpuPadded<T> from(ctx, rows), cyclic(ctx, layout.local_rows(grid), layout.local_cols(grid)),
                    back(ctx, mine.size(), n);
                redistribute<T, Cuda>(ctx, grid, from.view(), {layout, cyclic.view()});
                EXPECT_TRUE(same_bits<T>(cyclic.fetch(ctx).view(), part_of<T>(grid, layout, A.view()).view()));
                redistribute<T, Cuda>(ctx, grid, BlockCyclicView<const T, Cuda>(layout, cyclic.view()), back.view());
                EXPECT_TRUE(same_bits<T>(back.fetch(ctx).view(), copy<T>(rows).view()));
            }
        }
    });
}

// Panels, messages and updates are on two streams: a race between them would show.
TYPED_TEST(GpuBlockCyclic, SameBitsAgain) {
    using T = TypeParam;
    on_gpu_grids([&](Context<Cuda>& ctx, const ProcessGrid& grid) {
        for (const BlockCyclic& layout : {BlockCyclic{610, 300, 60, 80}, BlockCyclic{1500, 1300, 64, 256}}) {
            if (quick() && layout.rows > 1000) continue;
            const auto A = part_on_gpu<T>(ctx, grid, layout, random_normal<T>(layout.rows, layout.cols, 5).view());
            const auto f = qr_of<T>(ctx, grid, layout, A.view());
            const auto on_host = [&](MatrixView<const T, Cuda> X) { return copy_to_host<T>(ctx, X); };
            // one tau on the ranks of a process column
            const Matrix<T> tau = on_host(f.tau(ctx).view());
            Matrix<T> first = copy<T>(tau.view());
            Context<Host> host(1);
            grid.col_comm().template broadcast<T>(host, first.view());
            EXPECT_TRUE(same_bits<T>(tau.view(), first.view()));
            for (int run = 0; run < 3; ++run) {
                const auto g = qr_of<T>(ctx, grid, layout, A.view());
                EXPECT_TRUE(same_bits<T>(on_host(f.v_and_r()).view(), on_host(g.v_and_r()).view()));
                EXPECT_TRUE(same_bits<T>(on_host(f.tau(ctx).view()).view(), on_host(g.tau(ctx).view()).view()));
                EXPECT_TRUE(same_bits<T>(on_host(f.form_q(ctx).view()).view(), on_host(g.form_q(ctx).view()).view()));
            }
        }
    });
}

TYPED_TEST(GpuBlockCyclic, SolvesLeastSquares) {
    using T = TypeParam;
    on_gpu_grids([&](Context<Cuda>& ctx, const ProcessGrid& grid) {
        Context<Host> host(1);
        for (const auto& [m, n, p] :
             std::vector<std::array<Index, 3>>{{170, 63, 4}, {20, 20, 1}, {9, 4, 0}, {8, 0, 2}}) {
            const Matrix<T> A = with_condition<T>(m, n, 100), B = random_normal<T>(m, p, 4);
            const BlockCyclic layout{m, n, 4, 5}, b_layout{m, p, 4, 1, 0, grid.cols() - 1};
            const auto f = qr_of<T>(ctx, grid, layout, part_on_gpu<T>(ctx, grid, layout, A.view()).view());
            GpuPadded<T> mine(ctx, part_of<T>(grid, b_layout, B.view()).view());
            f.solve(ctx, {b_layout, mine.view()});
            const Matrix<T> X = whole<T>(host, grid, b_layout, mine.fetch(ctx).view());
            if (n == 0 || p == 0 || grid.comm().rank() != 0) continue;
            // as tests/block_cyclic_test.cpp
            const auto X1 = X.view().row_block({0, n});
            Matrix<T> rest = product<T>(A.view(), X1);
            for (Index i = 0; i < m * p; ++i) rest.data()[i] = B.data()[i] - rest.data()[i];
            const Matrix<T> gradient = product<T>(transposed<T>(A.view()).view(), rest.view());
            const double a = frobenius_norm<T>(A.view());
            const double scale = a * (frobenius_norm<T>(B.view()) + a * frobenius_norm<T>(X1));
            EXPECT_LE(difference<T>(gradient.view(), filled<T>(n, p, T(0)).view(), n, scale), 2 * law);
        }
        const BlockCyclic layout{6, 3, 2, 2}, b_layout{6, 1, 2, 2};
        auto b = part_on_gpu<T>(ctx, grid, b_layout, filled<T>(6, 1, T(1)).view());
        const auto zero =
            qr_of<T>(ctx, grid, layout, part_on_gpu<T>(ctx, grid, layout, filled<T>(6, 3, T(0)).view()).view());
        EXPECT_THROW(zero.solve(ctx, {b_layout, b.view()}), RankDeficient);
    });
}

TYPED_TEST(GpuBlockCyclic, ThePlanCountsTheMessagesOfEveryRank) {
    using T = TypeParam;
    on_gpu_grids([&](Context<Cuda>& ctx, const ProcessGrid& grid) {
        Context<Host> host(1);
        for (const Index block : {4, 10}) {
            const BlockCyclic layout{900, 24, block, block, grid.rows() / 2, grid.cols() - 1};
            // one pass of every panel
            const Matrix<T> A = qr(host, random_normal<T>(900, 24, 2).view()).form_q(host);
            const auto mine = part_on_gpu<T>(ctx, grid, layout, A.view());
            const Traffic before = grid.traffic();
            qr_of<T>(ctx, grid, layout, mine.view(), 5);
            const Traffic after = grid.traffic();
            const BlockCyclicPlan plan = plan_block_cyclic<T>(ctx, layout, grid.rows(), grid.cols(), false, 5);
            const Traffic planned = plan.traffic[grid.comm().rank()];
            EXPECT_EQ(planned.messages_sent, after.messages_sent - before.messages_sent);
            EXPECT_EQ(planned.words_sent, after.words_sent - before.words_sent);
            EXPECT_EQ(planned.messages_received, after.messages_received - before.messages_received);
            EXPECT_EQ(planned.words_received, after.words_received - before.words_received);
        }
    });
}

TYPED_TEST(GpuBlockCyclic, AnErrorOfOneRankIsThrownOnAll) {
    using T = TypeParam;
    on_gpu_grids([&](Context<Cuda>& ctx, const ProcessGrid& grid) {
        const BlockCyclic layout{20, 12, 3, 2};
        const int last = grid.comm().size() - 1;
        Matrix<T> A = random_normal<T>(20, 12, 2);
        const auto factor = [&](Context<Cuda>& with) {
            return qr_of<T>(with, grid, layout, part_on_gpu<T>(with, grid, layout, A.view()).view());
        };
        // row and column in the whole matrix
        A(7, 5) = std::numeric_limits<T>::quiet_NaN();
        const int owner = grid.rank_at(layout.row_axis(grid).owner(7), layout.col_axis(grid).owner(5));
        try {
            factor(ctx);
            ADD_FAILURE() << "not thrown on rank " << grid.comm().rank();
        } catch (const NonFiniteEntry& e) {
            const std::string text = e.what();
            EXPECT_NE(text.find(fmt::format("rank {}: ", owner)), std::string::npos) << text;
            EXPECT_NE(text.find("row 7, column 5"), std::string::npos) << text;
        }
        A(7, 5) = 1;
        // a rank that is stopped in the middle
        Context<Cuda> stopped;
        if (grid.comm().rank() == last) stopped.request_stop();
        EXPECT_THROW(factor(stopped), Interrupted);
        // the communicators are as good as before
        const auto f = factor(ctx);
        Matrix<T, Cuda> C(ctx, 1, 1);
        EXPECT_THROW(f.apply_q(ctx, Op::None, {BlockCyclic{19, 1, 3, 2}, C.view()}), InvalidArgument);
        expect_law<T>(ctx, grid, layout, A.view());
    });
}

/// ‖A − QR‖ column by column and ‖I − QᵀQ‖ of a matrix whose updates are by products of f16, its columns of every
/// scale.
using GpuBlockCyclicProducts = GpuRanks<float>;
TEST_F(GpuBlockCyclicProducts, CorrectedProductsObeyTheLaw) {
    if (quick()) GTEST_SKIP() << "large";
    const Index m = 4608, n = 4100, block = 512;
    const Matrix<float> unit = random_normal<float>(m, n, 3);
    const auto scale = [](Index j) { return std::ldexp(1.0f, static_cast<int>(j % 61) - 30); };
    Matrix<float> A = copy<float>(unit.view());
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) A(i, j) *= scale(j);
    }
    const int ranks = gpu_rank_counts().size() > 2 ? 4 : 2;
    on_gpus(ranks, [&](Context<Cuda>& ctx, Communicator& comm) {
        for (const auto& shape : grids(ranks)) {
            const ProcessGrid grid(comm, shape.first, shape.second);
            SCOPED_TRACE(fmt::format("grid {}x{}", grid.rows(), grid.cols()));
            const BlockCyclic layout{m, n, block, block};
            BlockCyclic r_layout = layout;
            r_layout.rows = n;
            const auto f = qr_of<float>(ctx, grid, layout, part_on_gpu<float>(ctx, grid, layout, A.view()).view());
            const auto on_root = [&](const BlockCyclic& of, const Matrix<float, Cuda>& part) {
                Matrix<float, Cuda> all(ctx, comm.rank() == 0 ? of.rows : 0, of.cols);
                redistribute<float, Cuda>(ctx, grid, BlockCyclicView<const float, Cuda>(of, part.view()), all.view());
                return all;
            };
            const Matrix<float, Cuda> Q = on_root(layout, f.form_q(ctx)), R = on_root(r_layout, f.r(ctx));
            if (comm.rank() != 0) continue;
            Matrix<float> of_unit = copy_to_host<float>(ctx, R.view());
            for (Index j = 0; j < n; ++j) {
                for (Index i = 0; i < n; ++i) of_unit(i, j) /= scale(j);
            }
            const double k = static_cast<double>(n), u = unit_roundoff<float>;
            EXPECT_LE(bench::orthogonality<float>(ctx, Q), law * k * u);
            EXPECT_LE(bench::residual<float>(ctx, copy_to_device<float>(ctx, unit.view()), Q,
                                             copy_to_device<float>(ctx, of_unit.view())),
                      law * std::sqrt(k) * u);
        }
    });
}

}  // namespace
}  // namespace quoin::test
