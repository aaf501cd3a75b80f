// Redistribution between rows in blocks over all ranks and a block-cyclic matrix.

#include <numeric>

#include "algorithms/ranks/block_cyclic.hpp"

namespace quoin {

namespace {

/// Consecutive rows of a matrix that are consecutive on their owner too.
struct Segment {
    Range global;
    int owner = 0;
    Index local = 0;
};

std::vector<Segment> segments_of(const CyclicAxis& axis) {
    std::vector<Segment> segments;
    axis.for_each_block({0, axis.size}, [&](Range block, int owner) {
        segments.push_back({block, owner, axis.before(owner, block.begin)});
    });
    return segments;
}

/// Moves a matrix between rows in blocks over all ranks and a block-cyclic layout: one rank's rows, another rank's
/// part.
template <class T, class D>
class Redistribution {
public:
    Redistribution(Context<D>& ctx, const ProcessGrid& grid, const BlockCyclic& layout, MatrixView<const T, D> rows,
                   MatrixView<const T, D> cyclic)
        : ctx_(ctx), grid_(grid), call_(host_context(ctx), grid.comm(), RankOperation::Redistribute), layout_(layout) {
        call_.attempt([&] {
            check_matrix(rows);
            check_cyclic(grid, BlockCyclicView<const T, D>(layout, cyclic));
            if (rows.cols != layout.cols) {
                throw InvalidArgument(fmt::format("redistribute: the rows have {} columns, and the matrix has {}",
                                                  rows.cols, layout.cols));
            }
        });
        const auto heights = agree_on<T>(call_, layout, grid, {}, rows.rows);
        call_.attempt(
            [&] {
                const Index all = std::accumulate(heights.begin(), heights.end(), Index{0});
                if (all != layout.rows) {
                    throw InvalidArgument(
                        fmt::format("redistribute: the ranks have {} rows, and the matrix has {}", all, layout.rows));
                }
                first_.assign(1, 0);
                for (const Index h : heights) first_.push_back(first_.back() + h);
                row_segments_ = segments_of(layout.row_axis(grid));
                col_segments_ = segments_of(layout.col_axis(grid));
            },
            JointCall::Of::All);
    }

    /// to := from, this rank's rows and its part of the blocks: from rows to blocks if `from_rows`, else back.
    void move(bool from_rows, MatrixView<const T, D> from, MatrixView<T, D> to) {
        Communicator& comm = grid_.comm();
        const int me = comm.rank(), count = comm.size();
        const auto size = [&](int a, int b) { return from_rows ? words(a, b) : words(b, a); };
        const auto pack = [&](int other, MatrixView<T, D> M) {
            with_message(me, other, from_rows, from, M, [&](auto X, auto part) { copy<T>(ctx_, X, part); });
        };
        const auto unpack = [&](int other, MatrixView<T, D> M) {
            with_message(me, other, !from_rows, to, M, [&](auto X, auto part) { copy<T>(ctx_, part, X); });
        };
        Matrix<T, D> memory;
        call_.attempt([&] {
            Index most = 0;
            for (int r = 0; r < count; ++r) most = std::max({most, size(me, r), size(r, me)});
            memory = Matrix<T, D>(ctx_, most, 1);
        });
        call_.agree();
        const auto message = [&](Index rows) { return memory.view().row_block({0, rows}); };
        call_.attempt([&] {
            pack(me, message(size(me, me)));
            unpack(me, message(size(me, me)));
        });
        // in step t ranks whose sum is t mod P meet, the lower one sends first: no two wait for each other
        for (int t = 0; t < count; ++t) {
            const int other = (t - me + count) % count;
            if (other == me) continue;
            const auto send = [&] {
                const auto M = message(size(me, other));
                call_.attempt([&] { pack(other, M); });
                if (M.rows > 0) comm.send<T>(ctx_, M, other, call_.note());
            };
            const auto receive = [&] {
                const auto M = message(size(other, me));
                if (M.rows > 0) call_.hear(comm.receive<T>(ctx_, M, other));
                call_.attempt([&] { unpack(other, M); });
            };
            if (me < other) {
                send();
                receive();
            } else {
                receive();
                send();
            }
        }
        call_.agree();
    }

private:
    /// Calls f(rows of a, columns of a, rows of b, columns of b) for each block that rank a has as rows and rank b as
    /// blocks.
    template <class F>
    void for_each_block(int a, int b, F f) const {
        const int row = b / grid_.cols(), col = b % grid_.cols();
        for (const Segment& c : col_segments_) {
            if (c.owner != col) continue;
            for (const Segment& r : row_segments_) {
                const Range g{std::max(r.global.begin, first_[a]), std::min(r.global.end, first_[a + 1])};
                if (r.owner != row || g.size() <= 0) continue;
                const Index local = r.local + g.begin - r.global.begin;
                f(Range{g.begin - first_[a], g.end - first_[a]}, c.global, Range{local, local + g.size()},
                  Range{c.local, c.local + c.global.size()});
            }
        }
    }

    /// Returns the number of entries that rank a has as rows and rank b as blocks.
    Index words(int a, int b) const {
        Index sum = 0;
        for_each_block(a, b, [&](Range r, Range c, Range, Range) { sum += r.size() * c.size(); });
        return sum;
    }
    /// Calls f(block of X, block of the message) for each block that rank `mine` shares with rank `other`. X has the
    /// rows of `mine` if `as_rows`, else its part of the blocks.
    template <class U, class F>
    void with_message(int mine, int other, bool as_rows, MatrixView<U, D> X, MatrixView<T, D> message, F f) const {
        Index at = 0;
        for_each_block(as_rows ? mine : other, as_rows ? other : mine,
                       [&](Range r, Range c, Range local_r, Range local_c) {
                           const MatrixView<T, D> part(message.data + at, r.size(), c.size());
                           f(as_rows ? X.block(r, c) : X.block(local_r, local_c), part);
                           at += r.size() * c.size();
                       });
    }

    Context<D>& ctx_;
    const ProcessGrid& grid_;
    JointCall call_;
    BlockCyclic layout_;
    std::vector<Index> first_;  // row of each rank
    std::vector<Segment> row_segments_, col_segments_;
};

}  // namespace

template <class T, class D>
void redistribute(Context<D>& ctx, const ProcessGrid& grid, View<const T, D> rows,
                  std::type_identity_t<BlockCyclicView<T, D>> B) {
    Redistribution<T, D>(ctx, grid, B.layout, rows, B.local).move(true, rows, B.local);
}

template <class T, class D>
void redistribute(Context<D>& ctx, const ProcessGrid& grid, std::type_identity_t<BlockCyclicView<const T, D>> A,
                  View<T, D> rows) {
    Redistribution<T, D>(ctx, grid, A.layout, rows, A.local).move(false, A.local, rows);
}

#define QUOIN_INSTANTIATE(T, D)                                                                                       \
    template void redistribute<T, D>(Context<D>&, const ProcessGrid&, MatrixView<const T, D>, BlockCyclicView<T, D>); \
    template void redistribute<T, D>(Context<D>&, const ProcessGrid&, BlockCyclicView<const T, D>, MatrixView<T, D>);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
