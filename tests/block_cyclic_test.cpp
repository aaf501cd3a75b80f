// QR of block-cyclic matrices: layouts, redistribution, the law on several grids for odd blocks, shapes and every class
// of matrices, words and messages, faults.

#include "quoin/block_cyclic.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "algorithms/ranks/block_cyclic_whole_panel.hpp"
#include "checks.hpp"
#include "cyclic_matrices.hpp"
#include "gallery.hpp"
#include "quoin/distributed.hpp"
#include "quoin/qr.hpp"
#include "ranks.hpp"

namespace quoin::test {
namespace {

template <class T>
class BlockCyclicTest : public testing::Test {};
TYPED_TEST_SUITE(BlockCyclicTest, Scalars);

/// f on every grid of every number of ranks.
template <class F>
void on_grids(F f) {
    for (const int ranks : rank_counts()) {
        on_ranks(ranks, [&](Communicator& comm) {
            Context<Host> ctx(1);
            for (const auto& shape : grids(ranks)) {
                const ProcessGrid grid(comm, shape.first, shape.second);
                SCOPED_TRACE(fmt::format("grid {}x{}, rank {}", grid.rows(), grid.cols(), comm.rank()));
                f(ctx, grid);
            }
        });
    }
}

/// Factors A in this layout and expects the law of R, of the thin Q, of V and tau, and of products with Q.
template <class T>
void expect_law(Context<Host>& ctx, const ProcessGrid& grid, BlockCyclic layout, MatrixView<const T> A,
                Index panel_width = 0) {
    layout.rows = A.rows;
    layout.cols = A.cols;
    SCOPED_TRACE(fmt::format("{}x{} in blocks {}x{} from ({}, {}), panels {}", A.rows, A.cols, layout.row_block,
                             layout.col_block, layout.first_row, layout.first_col, panel_width));
    // stages: the leaf, the levels of the tree of ranks, and the reconstruction of V and T from Q
    const double bound = law * std::sqrt(2.0 + std::ceil(std::log2(grid.rows())));
    const Index m = A.rows, n = A.cols, k = std::min(m, n), p = 5;
    const Padded<T> mine(part_of<T>(grid, layout, A).view());
    const auto f = qr(ctx, grid, BlockCyclicView<const T>(layout, mine.view()), panel_width);
    EXPECT_TRUE(same_bits<T>(mine.view(), part_of<T>(grid, layout, A).view())) << "A has changed";
    EXPECT_TRUE(mine.padding_intact());

    BlockCyclic r_layout = layout, q_layout = layout, c_layout = layout;
    r_layout.rows = k;
    q_layout.cols = k;
    c_layout.cols = p;
    const Matrix<T> R = whole<T>(ctx, grid, r_layout, f.r(ctx).view());
    const Matrix<T> Q = whole<T>(ctx, grid, q_layout, f.form_q(ctx).view());
    const Matrix<T> V_R = whole<T>(ctx, grid, layout, f.v_and_r());
    const Matrix<T> C = random_normal<T>(m, p, 7);
    Padded<T> QtC_mine(part_of<T>(grid, c_layout, C.view()).view()),
        QC_mine(part_of<T>(grid, c_layout, C.view()).view());
    f.apply_q(ctx, Op::Transpose, {c_layout, QtC_mine.view()});
    f.apply_q(ctx, Op::None, {c_layout, QC_mine.view()});
    EXPECT_TRUE(QtC_mine.padding_intact() && QC_mine.padding_intact());
    const Matrix<T> QtC = whole<T>(ctx, grid, c_layout, std::as_const(QtC_mine).view());
    const Matrix<T> QC = whole<T>(ctx, grid, c_layout, std::as_const(QC_mine).view());
    // tau, the same on all ranks of a process column
    const Matrix<T> tau_mine = f.tau(ctx);
    const Matrix<T> tau = whole_tau<T>(ctx, grid, layout, tau_mine);
    Matrix<T> tau_of_column = copy<T>(std::as_const(tau_mine).view());
    if (tau_mine.rows() > 0) grid.col_comm().broadcast<T>(ctx, tau_of_column.view());
    EXPECT_TRUE(same_bits<T>(tau_of_column.view(), tau_mine.view()));

    // the same in A's memory, and V and tau imported with other panels; Q in the same memory
    Padded<T> in_place(mine.view());
    const auto again = qr_in_place<T>(ctx, grid, {layout, in_place.view()}, panel_width);
    EXPECT_TRUE(same_bits<T>(in_place.view(), f.v_and_r()));
    EXPECT_TRUE(same_bits<T>(again.tau(ctx).view(), tau_mine.view()));
    from_lapack<T>(ctx, grid, {layout, in_place.view()}, tau_mine.view(), 2).form_q_in_place(ctx);
    EXPECT_TRUE(in_place.padding_intact());
    const Matrix<T> Q_again =
        whole<T>(ctx, grid, q_layout, std::as_const(in_place).view().col_block({0, q_layout.local_cols(grid)}));

    if (grid.comm().rank() != 0) return;
    if (k > 0) {
        EXPECT_LE(difference<T>(Q_again.view(), Q.view(), k, std::sqrt(static_cast<double>(k))), bound) << "imported";
    }
    expect_cyclic_law<T>(ctx, A, {R, Q, V_R, tau, C, QtC, QC}, bound);
}

TEST(CyclicAxis, CountsAsEntryByEntry) {
    for (const Index size : {0, 1, 7, 30}) {
        for (const Index block : {1, 3, 8}) {
            for (int processes = 1; processes <= 4; ++processes) {
                for (int first = 0; first < processes; ++first) {
                    const CyclicAxis axis{size, block, processes, first};
                    std::vector<Index> count(processes);
                    for (Index i = 0; i < size; ++i) {
                        const int owner = static_cast<int>((i / block + first) % processes);
                        EXPECT_EQ(axis.owner(i), owner);
                        for (int p = 0; p < processes; ++p) EXPECT_EQ(axis.before(p, i), count[p]);
                        EXPECT_EQ(axis.global(owner, count[owner]), i);
                        ++count[owner];
                    }
                    for (int p = 0; p < processes; ++p) EXPECT_EQ(axis.local_size(p), count[p]);
                }
            }
        }
    }
}

TEST(SubCommunicator, HasItsOwnRanks) {
    for (const int ranks : rank_counts()) {
        on_ranks(ranks, [&](Communicator& comm) {
            Context<Host> ctx(1);
            // from the last rank to the first
            std::vector<int> members;
            for (int r = ranks - 1; r >= 0; --r) members.push_back(r);
            SubCommunicator reversed(comm, members);
            EXPECT_EQ(reversed.rank(), ranks - 1 - comm.rank());
            Index word = comm.rank();
            EXPECT_EQ(reversed.broadcast<Index>(ctx, {&word, 1, 1}), 0);
            EXPECT_EQ(word, ranks - 1);
            EXPECT_EQ(reversed.broadcast<Index>(ctx, {&word, 1, 1}, 0, 17), 17);
            EXPECT_THROW(SubCommunicator(comm, {ranks}), InvalidArgument);
            EXPECT_THROW(SubCommunicator(comm, {comm.rank(), comm.rank()}), InvalidArgument);
            EXPECT_THROW(SubCommunicator(comm, {}), InvalidArgument);
            EXPECT_THROW(ProcessGrid(comm, ranks, 2), InvalidArgument);
        });
    }
}

TEST(Communicator, StartedMessagesArriveInTheirOrder) {
    for (const int ranks : rank_counts()) {
        if (ranks == 1) continue;
        on_ranks(ranks, [&](Communicator& comm) {
            Context<Host> ctx(1);
            const int next = (comm.rank() + 1) % ranks, before = (comm.rank() + ranks - 1) % ranks;
            SubCommunicator same(comm, [&] {
                std::vector<int> all(ranks);
                for (int r = 0; r < ranks; ++r) all[r] = r;
                return all;
            }());
            // a ring in which everybody sends first: with `send` nobody would come to receive
            Matrix<double> A = filled<double>(2000, 50, 1.0 + comm.rank()),
                           B = filled<double>(3, 2, 10.0 + comm.rank());
            Matrix<double> C(2000, 50), D(3, 2);
            same.start_send<double>(ctx, A.view(), next);
            same.start_send<double>(ctx, B.view(), next);
            comm.start_send<double>(ctx, B.view(), next, 5);
            EXPECT_EQ(comm.receive<double>(ctx, C.view(), before), 0);
            EXPECT_EQ(same.receive<double>(ctx, D.view(), before), 0);
            EXPECT_EQ(C(1999, 49), 1.0 + before);
            EXPECT_EQ(D(2, 1), 10.0 + before);
            EXPECT_EQ(comm.receive<double>(ctx, D.view(), before), 5);
            comm.finish_sends();
            EXPECT_EQ(same.traffic().words_sent, 2000 * 50 + 6);
            EXPECT_EQ(comm.traffic().words_sent, 0);
            EXPECT_EQ(comm.traffic().messages_sent, 1);
        });
    }
}

TYPED_TEST(BlockCyclicTest, RedistributionMovesEveryEntryBothWays) {
    using T = TypeParam;
    on_grids([&](Context<Host>& ctx, const ProcessGrid& grid) {
        for (const auto& [m, n, mb, nb] : std::vector<std::array<Index, 4>>{
                 {23, 11, 3, 2}, {23, 11, 5, 64}, {4, 17, 1, 3}, {0, 5, 2, 2}, {5, 0, 2, 2}, {64, 8, 8, 4}}) {
            Matrix<T> A(m, n);
            for (Index i = 0; i < m * n; ++i) A.data()[i] = static_cast<T>(i + 1);
            const BlockCyclic layout{m, n, mb, nb, grid.rows() - 1, grid.cols() / 2};
            for (const Spread& spread : spreads) {
                const auto rows = spread.rows(m, n, grid.comm().size());
                const Range mine = rows[grid.comm().rank()];
                const Padded<T> from(A.view().row_block(mine));
                Padded<T> cyclic(layout.local_rows(grid), layout.local_cols(grid)), back(mine.size(), n);
                redistribute<T>(ctx, grid, from.view(), {layout, cyclic.view()});
                EXPECT_TRUE(same_bits<T>(cyclic.view(), part_of<T>(grid, layout, A.view()).view()));
                redistribute<T>(ctx, grid, BlockCyclicView<const T>(layout, cyclic.view()), back.view());
                EXPECT_TRUE(same_bits<T>(back.view(), from.view()));
                EXPECT_TRUE(cyclic.padding_intact() && back.padding_intact());
            }
        }
    });
}

TYPED_TEST(BlockCyclicTest, OddShapesAndBlocks) {
    using T = TypeParam;
    on_grids([&](Context<Host>& ctx, const ProcessGrid& grid) {
        Index turn = 0;
        for (const auto& [m, n] : std::vector<std::array<Index, 2>>{{0, 0},
                                                                    {0, 3},
                                                                    {3, 0},
                                                                    {1, 1},
                                                                    {1, 6},
                                                                    {6, 1},
                                                                    {5, 5},
                                                                    {37, 13},
                                                                    {13, 37},
                                                                    {40, 40},
                                                                    {150, 21},
                                                                    {200, 2}}) {
            const Matrix<T> A = random_normal<T>(m, n, 3);
            static constexpr std::array<Index, 2> blocks[] = {{1, 1}, {3, 5}, {8, 8}, {7, 2}, {64, 64}, {2, 16}};
            for (const auto& block : in_turn(blocks, turn)) {
                const BlockCyclic layout{m,
                                         n,
                                         block[0],
                                         block[1],
                                         static_cast<int>(turn) % grid.rows(),
                                         static_cast<int>(turn) % grid.cols()};
                expect_law<T>(ctx, grid, layout, A.view(), turn % 3 == 2 ? 3 : 0);
            }
            ++turn;
            const BlockCyclic layout{m, n, 4, 4};
            expect_law<T>(ctx, grid, layout, A.view());
        }
    });
}

TYPED_TEST(BlockCyclicTest, Gallery) {
    using T = TypeParam;
    on_grids([&](Context<Host>& ctx, const ProcessGrid& grid) {
        for (const Gallery matrix_class : gallery()) {
            SCOPED_TRACE(to_string(matrix_class));
            const Index b = 4 + static_cast<Index>(matrix_class) % 3;
            expect_law<T>(ctx, grid, {0, 0, b, 6}, generate<T>(matrix_class, 45, 20).view());
            if (quick()) continue;
            expect_law<T>(ctx, grid, {0, 0, 8, b}, generate<T>(matrix_class, 18, 27).view());
            // one panel of all columns where there is one process column
            expect_law<T>(ctx, grid, {0, 0, 16, 16}, generate<T>(matrix_class, 130, 16).view(), 16);
        }
    });
}

TYPED_TEST(BlockCyclicTest, RIsThatOfOneRankButForSigns) {
    using T = TypeParam;
    on_grids([&](Context<Host>& ctx, const ProcessGrid& grid) {
        const Index m = 90, n = 33;
        const Matrix<T> A = with_condition<T>(m, n, 10);
        const BlockCyclic layout{m, n, 5, 7};
        BlockCyclic r_layout = layout;
        r_layout.rows = n;
        const auto f = qr(ctx, grid, BlockCyclicView<const T>(layout, part_of<T>(grid, layout, A.view()).view()));
        Matrix<T> R = whole<T>(ctx, grid, r_layout, f.r(ctx).view());
        const Matrix<T> R1 = qr(ctx, A.view()).r(ctx);
        for (Index i = 0; i < n; ++i) {
            if ((R(i, i) < 0) == (R1(i, i) < 0)) continue;
            for (Index j = i; j < n; ++j) R(i, j) = -R(i, j);
        }
        // κ(A) = 10: both have a backward error of c n u ‖A‖ (checks.hpp), and ‖ΔR‖ <= √2 κ ‖ΔA‖ to first order
        // (Stewart 1977)
        EXPECT_LE(difference<T>(R.view(), R1.view(), n, frobenius_norm<T>(A.view())), 2 * std::sqrt(2.0) * 10 * law);
    });
}

TYPED_TEST(BlockCyclicTest, SameBitsAgain) {
    using T = TypeParam;
    on_grids([&](Context<Host>& ctx, const ProcessGrid& grid) {
        const BlockCyclic layout{61, 30, 6, 8};
        const Matrix<T> A = part_of<T>(grid, layout, random_normal<T>(61, 30, 5).view());
        const auto f = qr(ctx, grid, BlockCyclicView<const T>(layout, A.view()));
        Context<Host> two(2);
        const auto g = qr(two, grid, BlockCyclicView<const T>(layout, A.view()));
        EXPECT_TRUE(same_bits<T>(f.v_and_r(), g.v_and_r()));
        EXPECT_TRUE(same_bits<T>(f.tau(ctx).view(), g.tau(ctx).view()));
    });
}

TYPED_TEST(BlockCyclicTest, SolvesLeastSquares) {
    using T = TypeParam;
    on_grids([&](Context<Host>& ctx, const ProcessGrid& grid) {
        for (const auto& [m, n, p] :
             std::vector<std::array<Index, 3>>{{70, 23, 4}, {20, 20, 1}, {9, 4, 0}, {8, 0, 2}}) {
            const Matrix<T> A = with_condition<T>(m, n, 100), B = random_normal<T>(m, p, 4);
            const BlockCyclic layout{m, n, 4, 5}, b_layout{m, p, 4, 1, 0, grid.cols() - 1};
            const auto f = qr(ctx, grid, BlockCyclicView<const T>(layout, part_of<T>(grid, layout, A.view()).view()));
            Padded<T> mine(part_of<T>(grid, b_layout, B.view()).view());
            f.solve(ctx, {b_layout, mine.view()});
            EXPECT_TRUE(mine.padding_intact());
            const Matrix<T> X = whole<T>(ctx, grid, b_layout, std::as_const(mine).view());
            if (n == 0 || p == 0 || grid.comm().rank() != 0) continue;
            // Aᵀ(B − AX) of a backward stable solution is at most c k u ‖A‖ (‖B‖ + ‖A‖‖X‖) (Higham 2002, section 20.3)
            const auto X1 = X.view().row_block({0, n});
            Matrix<T> rest = product<T>(A.view(), X1);
            for (Index i = 0; i < m * p; ++i) rest.data()[i] = B.data()[i] - rest.data()[i];
            const Matrix<T> gradient = product<T>(transposed<T>(A.view()).view(), rest.view());
            const double a = frobenius_norm<T>(A.view());
            const double scale = a * (frobenius_norm<T>(B.view()) + a * frobenius_norm<T>(X1));
            EXPECT_LE(difference<T>(gradient.view(), filled<T>(n, p, T(0)).view(), n, scale), 2 * law);
        }
        const BlockCyclic layout{6, 3, 2, 2}, wide{3, 6, 2, 2}, b_layout{6, 1, 2, 2};
        Matrix<T> b = part_of<T>(grid, b_layout, filled<T>(6, 1, T(1)).view());
        const auto zero = qr(
            ctx, grid, BlockCyclicView<const T>(layout, part_of<T>(grid, layout, filled<T>(6, 3, T(0)).view()).view()));
        EXPECT_THROW(zero.solve(ctx, {b_layout, b.view()}), RankDeficient);
        const auto w =
            qr(ctx, grid, BlockCyclicView<const T>(wide, part_of<T>(grid, wide, filled<T>(3, 6, T(1)).view()).view()));
        const BlockCyclic c_layout{3, 1, 2, 2};
        Matrix<T> c = part_of<T>(grid, c_layout, filled<T>(3, 1, T(1)).view());
        EXPECT_THROW(w.solve(ctx, {c_layout, c.view()}), InvalidArgument);
    });
}

/// Columns H₁ H₂ … Hₙ [I; 0] whose reflectors v_j are e_j and one number below it, of norm √0.99.
template <class T>
Matrix<T> reflected_identity(Index m, Index n) {
    Matrix<T> Q = filled<T>(m, n, T(0));
    for (Index j = 0; j < n; ++j) {
        std::vector<double> q(m, 0.0);
        q[j] = 1;
        for (Index l = j; l >= 0; --l) {
            const double entry = std::sqrt(0.99 / static_cast<double>(m - l - 1));
            double product = q[l];
            for (Index i = l + 1; i < m; ++i) product += entry * q[i];
            product *= 2 / 1.99;
            q[l] -= product;
            for (Index i = l + 1; i < m; ++i) q[i] -= entry * product;
        }
        for (Index i = 0; i < m; ++i) Q(i, j) = static_cast<T>(q[i]);
    }
    return Q;
}

// Diagonal blocks: ‖(Q₁ − S)⁻¹‖ of the first one is too large for one step, and the second one multiplies what a
// column's norm departs from 1 by about 100 up to its last column: without their normalization ‖I − QᵀQ‖ is 46nu in f32
// on one rank. It depends on the reflectors alone: the law has no other stages.
TYPED_TEST(BlockCyclicTest, ColumnsAreOfUnitNormWhenTheyBecomeReflectors) {
    using T = TypeParam;
    const Index m1 = 60, n1 = 30, m2 = 260, n2 = 120, n = n1 + n2;
    const Matrix<T> Q1 = generate<T>(Gallery::OrthogonalGrowth, m1, n1), Q2 = reflected_identity<T>(m2, n2);
    Matrix<T> A = filled<T>(m1 + m2, n, T(0));
    for (Index j = 0; j < n1; ++j) {
        for (Index i = 0; i < m1; ++i) A(i < n1 ? i : i + n2, j) = Q1(i, j);
    }
    for (Index j = 0; j < n2; ++j) {
        for (Index i = 0; i < m2; ++i) A(n1 + (i < n2 ? i : i + m1 - n1), n1 + j) = Q2(i, j);
    }
    on_grids([&](Context<Host>& ctx, const ProcessGrid& grid) {
        if (grid.cols() > 1 || grid.rows() > 2) return;
        const BlockCyclic layout{A.rows(), n, 16, 16};
        const auto f = qr(ctx, grid, BlockCyclicView<const T>(layout, part_of<T>(grid, layout, A.view()).view()), n);
        const Matrix<T> Q = whole<T>(ctx, grid, layout, f.form_q(ctx).view());
        if (grid.comm().rank() != 0) return;
        EXPECT_LE(orthogonality_error<T>(Q.view(), n), law);
    });
}

/// Returns the traffic of this rank during the call.
template <class F>
Traffic traffic_of(const ProcessGrid& grid, F&& call) {
    const Traffic before = grid.traffic();
    call();
    const Traffic after = grid.traffic();
    return {after.messages_sent - before.messages_sent, after.words_sent - before.words_sent,
            after.messages_received - before.messages_received, after.words_received - before.words_received};
}

void expect_same(const Traffic& planned, const Traffic& counted) {
    EXPECT_EQ(planned.messages_sent, counted.messages_sent);
    EXPECT_EQ(planned.words_sent, counted.words_sent);
    EXPECT_EQ(planned.messages_received, counted.messages_received);
    EXPECT_EQ(planned.words_received, counted.words_received);
}

/// QB, Q orthonormal columns and B with ones on its diagonal and 1.5 right of it: every panel of eight columns needs
/// three passes.
template <class T>
Matrix<T> neighbours_alike(Context<Host>& ctx, Index m, Index n) {
    Matrix<T> A = qr(ctx, random_normal<T>(m, n, 2).view()).form_q(ctx);
    for (Index j = n - 1; j > 0; --j) {
        for (Index i = 0; i < m; ++i) A(i, j) += T(1.5) * A(i, j - 1);
    }
    return A;
}

/// A panel in three passes sums another triangle, says what is decided and sends another square, once to each rank but
/// the root.
TYPED_TEST(BlockCyclicTest, ThreePassesSendATriangleAndASquareMore) {
    using T = TypeParam;
    const BlockCyclic layout{100, 32, 8, 8};
    const Index w = 8, panels = layout.cols / w;
    on_grids([&](Context<Host>& ctx, const ProcessGrid& grid) {
        const auto sent_for = [&](const Matrix<T>& A) {
            const Matrix<T> mine = part_of<T>(grid, layout, A.view());
            return traffic_of(grid, [&] { qr(ctx, grid, BlockCyclicView<const T>(layout, mine.view()), w); });
        };
        const Traffic once = sent_for(qr(ctx, random_normal<T>(layout.rows, layout.cols, 2).view()).form_q(ctx)),
                      thrice = sent_for(neighbours_alike<T>(ctx, layout.rows, layout.cols));
        // messages and words, of all ranks on rank 0
        Communicator& comm = grid.comm();
        Matrix<Index> more(2, 1), part(2, 1);
        more(0, 0) = thrice.messages_sent - once.messages_sent;
        more(1, 0) = thrice.words_sent - once.words_sent;
        if (comm.rank() > 0) return comm.send<Index>(ctx, more.view(), 0);
        for (int rank = 1; rank < comm.size(); ++rank) {
            comm.receive<Index>(ctx, part.view(), rank);
            for (Index i = 0; i < 2; ++i) more(i, 0) += part(i, 0);
        }
        const Index to_others = panels * (grid.rows() - 1);
        EXPECT_EQ(more(0, 0), 3 * to_others);
        EXPECT_EQ(more(1, 0), (w * (w + 1) / 2 + 1 + w * w) * to_others);
    });
}

TYPED_TEST(BlockCyclicTest, ThePlanCountsTheMessagesOfEveryRank) {
    using T = TypeParam;
    struct Case {
        BlockCyclic layout;
        Index panel_width;
    };
    // panels in one pass, and at the end by the tree of ranks; fewer rows than columns, and than ranks; several panels
    // a block
    const Case cases[] = {{{90, 24, 4, 4}, 4}, {{100, 32, 8, 8}, 8}, {{40, 40, 8, 8}, 8}, {{30, 50, 3, 8, 0, 0}, 8},
                          {{5, 3, 1, 2}, 2},   {{60, 40, 7, 20}, 8}, {{0, 3, 2, 2}, 2},   {{64, 3, 8, 8}, 0}};
    on_grids([&](Context<Host>& ctx, const ProcessGrid& grid) {
        for (const Case& c : cases) {
            BlockCyclic layout = c.layout;
            const Index width = c.panel_width;
            layout.first_row = grid.rows() / 2;
            layout.first_col = grid.cols() - 1;
            SCOPED_TRACE(
                fmt::format("{}x{} in blocks {}x{}", layout.rows, layout.cols, layout.row_block, layout.col_block));
            Matrix<T> A = random_normal<T>(layout.rows, layout.cols, 2);
            if (A.rows() >= A.cols()) A = qr(ctx, A.view()).form_q(ctx);
            const Matrix<T> mine = part_of<T>(grid, layout, A.view());
            std::optional<BlockCyclicQR<T>> f;
            const Traffic of_qr = traffic_of(
                grid, [&] { f.emplace(qr(ctx, grid, BlockCyclicView<const T>(layout, mine.view()), width)); });
            const Traffic of_q = traffic_of(grid, [&] { f->form_q(ctx); });
            const BlockCyclicPlan plan = plan_block_cyclic<T>(ctx, layout, grid.rows(), grid.cols(), false, width),
                                  with_q = plan_block_cyclic<T>(ctx, layout, grid.rows(), grid.cols(), true, width);
            const Traffic planned = plan.traffic[grid.comm().rank()], both = with_q.traffic[grid.comm().rank()];
            expect_same(planned, of_qr);
            expect_same(
                {both.messages_sent - planned.messages_sent, both.words_sent - planned.words_sent,
                 both.messages_received - planned.messages_received, both.words_received - planned.words_received},
                of_q);
            EXPECT_EQ(plan.panel_width, f->panel_width());
        }
    });
}

// As GPUs of several process rows do: the rows of a panel, its blocks ragged and on any ranks, on one of them and
// back.
TYPED_TEST(BlockCyclicTest, OneRankFactorsAPanelOfAllRows) {
    using T = TypeParam;
    on_grids([&](Context<Host>& ctx, const ProcessGrid& grid) {
        const int last = grid.rows() - 1;
        for (const BlockCyclic& layout :
             {BlockCyclic{23, 9, 3, 4}, BlockCyclic{9, 23, 2, 5, last}, BlockCyclic{40, 8, 64, 8},
              BlockCyclic{30, 12, 1, 6, last / 2}, BlockCyclic{7, 7, 3, 7}}) {
            SCOPED_TRACE(fmt::format("{}x{} in blocks of {} rows", layout.rows, layout.cols, layout.row_block));
            const Matrix<T> A = random_normal<T>(layout.rows, layout.cols, 5);
            Padded<T> mine(part_of<T>(grid, layout, A.view()).view());
            BlockCyclicFactorization<T, Host> f;
            f.grid = &grid;
            f.layout = layout;
            lay_out(f, 4);
            f.A = mine.view();
            f.Tf = filled<T>(f.width, f.cols_before(f.k()), std::numeric_limits<T>::quiet_NaN());
            JointCall call(ctx, grid.comm(), RankOperation::Qr);
            const Plan plan;
            WholePanels<T, Host> panels(ctx, f, call, plan);
            for (Index s = 0; s < static_cast<Index>(f.panels.size()); ++s) {
                if (!f.owns(f.panels[s])) continue;
                OverlappedWork sum([&] {
                    Matrix<T> one = filled<T>(1, 1, T(1));
                    grid.col_comm().template all_reduce<T>(ctx, one.view());
                    EXPECT_EQ(one(0, 0), static_cast<T>(grid.rows()));
                });
                panels.gather(ctx, s);
                panels.factor(ctx, s, sum);
                EXPECT_FALSE(sum);
            }
            call.agree();
            EXPECT_TRUE(mine.padding_intact());
            Matrix<T> tau_mine(f.Tf.cols(), 1);
            for (const CyclicPanel& p : f.panels) {
                if (!f.owns(p)) continue;
                copy_diagonal<T>(ctx, std::as_const(f).t_of(p), tau_mine.view().row_block(f.local_cols(p.cols())));
                // one T on all ranks of the column
                Matrix<T> Tf = copy<T>(std::as_const(f).t_of(p)), first = copy<T>(std::as_const(Tf).view());
                grid.col_comm().template broadcast<T>(ctx, first.view());
                EXPECT_TRUE(same_bits<T>(Tf.view(), first.view()));
            }
            const Matrix<T> V_R = whole<T>(ctx, grid, layout, std::as_const(mine).view());
            const Matrix<T> tau = whole_tau<T>(ctx, grid, layout, tau_mine);
            // each panel is the QR of its columns of A
            for (const CyclicPanel& p : f.panels) {
                const Range rows{p.first, layout.rows};
                const auto here = A.view().block(rows, p.cols());
                const auto g = from_lapack<T>(
                    ctx, {copy<T>(V_R.view().block(rows, p.cols())), copy<T>(tau.view().row_block(p.cols()))});
                EXPECT_LE(orthogonality_error<T>(g.form_q(ctx).view(), p.width), law);
                EXPECT_LE(residual_error<T>(here, g.form_q(ctx).view(), g.r(ctx).view()), law);
            }
        }
    });
}

TEST(BlockCyclic, ThePlanAddsTheStepsOfTheBusiestRank) {
    Context<Host> ctx(1);
    const Index n = 4096, nb = 64;
    const BlockCyclic layout{n, n, nb, nb};
    const BlockCyclicPlan plan = plan_block_cyclic<double>(ctx, layout, 4, 8);
    double messages = 0, words = 0, received = 0;
    for (const Traffic& t : plan.traffic) {
        messages = std::max(messages, static_cast<double>(t.messages_sent + t.messages_received));
        words += static_cast<double>(t.words_sent);
        received += static_cast<double>(t.words_received);
    }
    EXPECT_EQ(words, received);
    EXPECT_GE(plan.messages, messages);
    EXPECT_LE(plan.bytes, 2 * 8 * words);
    // mn² − n³/3 multiplications and additions, spread over 32 ranks, and a panel's part
    const double flops = 4.0 / 3 * n * n * n / 32;
    EXPECT_GE(plan.flops, flops);
    EXPECT_LE(plan.flops, 1.5 * flops);
    EXPECT_EQ(plan.rows, n / 4);
    EXPECT_EQ(plan.cols, n / 8);
    EXPECT_GE(plan.memory_bytes, 2.0 * 8 * n * n / 32);
    EXPECT_EQ(plan.seconds(1, 1e300, 1e300), plan.messages);
    EXPECT_THROW(plan_block_cyclic<double>(ctx, layout, 0, 8), InvalidArgument);
    EXPECT_THROW(plan_block_cyclic<double>(ctx, {n, n, 0, nb}, 4, 8), InvalidArgument);
    EXPECT_THROW(plan_block_cyclic<double>(ctx, {n, n, nb, nb, 4, 0}, 4, 8), InvalidArgument);
    EXPECT_THROW(plan_block_cyclic<double>(ctx, layout, 4, 8, false, -1), InvalidArgument);
}

/// Words that all ranks together have sent along process rows and columns during the call.
struct Sent {
    Index row_words = 0, col_words = 0;
};
template <class F>
Sent sent_during(Context<Host>& ctx, const ProcessGrid& grid, F&& call) {
    const Index row = grid.row_comm().traffic().words_sent, col = grid.col_comm().traffic().words_sent;
    call();
    Matrix<Index> sent(2, 1);
    sent(0, 0) = grid.row_comm().traffic().words_sent - row;
    sent(1, 0) = grid.col_comm().traffic().words_sent - col;
    grid.comm().all_reduce<Index>(ctx, sent.view());
    return {sent(0, 0), sent(1, 0)};
}

TEST(BlockCyclic, SendsEachPanelOnceAlongRowsAndSumsAlongColumns) {
    on_grids([&](Context<Host>& ctx, const ProcessGrid& grid) {
        const Index m = 60, n = 24, nb = 4, p = 10;
        const BlockCyclic layout{m, n, nb, nb}, c_layout{m, p, nb, nb};
        const Matrix<double> A = random_normal<double>(m, n);
        Matrix<double> C = part_of<double>(grid, c_layout, random_normal<double>(m, p).view());
        std::optional<BlockCyclicQR<double>> f;
        const Sent of_qr = sent_during(ctx, grid, [&] {
            f.emplace(qr(ctx, grid,
                         BlockCyclicView<const double>(layout, part_of<double>(grid, layout, A.view()).view()), nb));
        });
        const Sent of_product = sent_during(ctx, grid, [&] { f->apply_q(ctx, Op::Transpose, {c_layout, C.view()}); });
        const Sent of_q = sent_during(ctx, grid, [&] { f->form_q(ctx); });
        // V and T go from one process column to the others: mn − n²/2 words of V with its upper triangles, and T for
        // each process row. Sums of w rows for each column of C go up and down the tree of a process column.
        Index v_and_t = 0, sums_of_q = 0;
        for (Index j = 0; j < n; j += nb) {
            v_and_t += nb * (m - j + grid.rows() * nb);
            sums_of_q += nb * (n - j);
        }
        EXPECT_EQ(of_qr.row_words, (grid.cols() - 1) * v_and_t);
        EXPECT_EQ(of_product.row_words, (grid.cols() - 1) * v_and_t);
        EXPECT_EQ(of_product.col_words, 2 * (grid.rows() - 1) * n * p);
        EXPECT_EQ(of_q.row_words, (grid.cols() - 1) * v_and_t);
        EXPECT_EQ(of_q.col_words, 2 * (grid.rows() - 1) * sums_of_q);
    });
}

/// The words of the error that all ranks throw.
template <class E, class F>
std::string error_of(F&& call) {
    try {
        call();
    } catch (const E& e) {
        return e.what();
    }
    ADD_FAILURE() << "nothing of that class was thrown";
    return {};
}

TYPED_TEST(BlockCyclicTest, AnErrorOfOneRankIsThrownOnAll) {
    using T = TypeParam;
    on_grids([&](Context<Host>& ctx, const ProcessGrid& grid) {
        const BlockCyclic layout{20, 12, 3, 2};
        const int last = grid.comm().size() - 1;
        Matrix<T> A = random_normal<T>(20, 12, 2);
        const auto factor = [&](BlockCyclic l, MatrixView<const T> local) {
            return qr(ctx, grid, BlockCyclicView<const T>(l, local));
        };
        // row and column in the whole matrix
        A(7, 5) = std::numeric_limits<T>::quiet_NaN();
        const int owner = grid.rank_at(layout.row_axis(grid).owner(7), layout.col_axis(grid).owner(5));
        Matrix<T> mine = part_of<T>(grid, layout, A.view());
        const std::string text = error_of<NonFiniteEntry>([&] { factor(layout, mine.view()); });
        EXPECT_NE(text.find(fmt::format("rank {}: ", owner)), std::string::npos) << text;
        EXPECT_NE(text.find("row 7, column 5"), std::string::npos) << text;
        // a wrong local part on one rank, and another layout on one rank
        A(7, 5) = 1;
        mine = part_of<T>(grid, layout, A.view());
        const Index missing = grid.comm().rank() == last && mine.rows() > 0 ? 1 : 0;
        if (layout.row_axis(grid).local_size(grid.rows() - 1) > 0) {
            EXPECT_THROW(factor(layout, std::as_const(mine).view().row_block({missing, mine.rows()})), InvalidArgument);
        }
        if (last > 0) {
            BlockCyclic other = layout;
            if (grid.comm().rank() == last) other.row_block = 4;
            const Matrix<T> local = part_of<T>(grid, other, A.view());
            const std::string said = error_of<InvalidArgument>([&] { factor(other, local.view()); });
            EXPECT_NE(said.find("the ranks disagree: the rows of a block"), std::string::npos) << said;
        }
        // a rank that is stopped in the middle
        Context<Host> stopped(1);
        if (grid.comm().rank() == last) stopped.request_stop();
        EXPECT_THROW(qr(stopped, grid, BlockCyclicView<const T>(layout, mine.view())), Interrupted);
        // the communicators are as good as before
        const auto f = factor(layout, mine.view());
        Matrix<T> C(1, 1);
        EXPECT_THROW(f.apply_q(ctx, Op::None, {BlockCyclic{19, 1, 3, 2}, C.view()}), InvalidArgument);
        expect_law<T>(ctx, grid, layout, A.view());
    });
}

}  // namespace
}  // namespace quoin::test
