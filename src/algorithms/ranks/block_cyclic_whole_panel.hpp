#pragma once

// A panel that one rank of its process column factors as on one process. If the other ranks have parts of it, their
// rows go to that rank, and V, R and T come back.

#include "algorithms/one_matrix/blocked_householder.hpp"
#include "algorithms/ranks/block_cyclic.hpp"

namespace quoin {

/// The panels of one factorization. For m' rows and w columns each of P process rows sends m'w/P words, and gets m'w/P
/// + w² back, in one message each.
///
///     rank that has row `first`      other ranks of its process column
///     gather:   receives all rows    send theirs
///     factor:   A = H R
///               sends V, R and T     receive their rows of V and R, and T
template <class T, class D>
class WholePanels {
public:
    using Factors = BlockCyclicFactorization<T, D>;
    /// Allocates. `plan` is for all rows.
    WholePanels(Context<D>& ctx, Factors& f, JointCall& call, const Plan& plan)
        : f_(f), call_(call), plan_(plan), is_spread_(f.grid->rows() > 1) {
        if (!is_spread_) return;
        Index most = 0;
        for (int r = 0; r < f.grid->rows(); ++r) most = std::max(most, f.row_axis.local_size(r));
        A_ = Matrix<T, D>(ctx, f.layout.rows * f.width, 1);
        Tf_ = Matrix<T, D>(ctx, f.width * f.width, 1);
        message_ = Matrix<T, D>(ctx, (most + f.width) * f.width, 1);
    }

    /// Gathers the rows of panel s on its root. All ranks of its process column call it, in the order of the work of
    /// `where`.
    void gather(Context<D>& where, Index s) {
        if (!is_spread_) return;
        const CyclicPanel& p = f_.panels[s];
        const Span span(where, "gather", s);
        if (!is_root(p)) {
            const auto rows = message_of(p, ranks().rank()).rows;
            call_.attempt([&] { copy<T>(where, own(p), rows); });
            ranks().template send<T>(where, rows, root(p), call_.note());
            return;
        }
        for (int i = 0; i < ranks().size(); ++i) {
            const int r = (root(p) + i) % ranks().size();  // its own rows while it waits
            const auto rows = i == 0 ? own(p) : message_of(p, r).rows;
            if (i > 0) call_.hear(ranks().template receive<T>(where, rows, r));
            call_.attempt([&] {
                for_each_run(p, r, [&](Range local, Range place) {
                    copy<T>(where, rows.row_block(local), panel(p).row_block(place));
                });
            });
        }
    }

    /// Computes V, R and T of panel s on all ranks of its process column, after `gather`. `overlapped`, which may have
    /// messages of its own, runs at the same time as the panel.
    void factor(Context<D>& where, Index s, OverlappedWork& overlapped) {
        const CyclicPanel& p = f_.panels[s];
        if (is_root(p)) {
            call_.attempt([&] { factor_one_panel<T, D>(where, plan_, s, panel(p), triangle(p), overlapped); });
        }
        overlapped();
        if (!is_spread_) return;
        const Span span(where, "scatter", s);
        if (!is_root(p)) {
            const Message own_part = message_of(p, ranks().rank());
            call_.hear(ranks().template receive<T>(where, own_part.words, root(p)));
            call_.attempt([&] {
                copy<T>(where, own_part.rows, own(p));
                copy<T>(where, own_part.Tf, f_.t_of(p));
            });
            return;
        }
        for (int i = 1; i <= ranks().size(); ++i) {
            const int r = (root(p) + i) % ranks().size();  // its own rows last
            const bool mine = r == root(p);
            const Message part = message_of(p, r);
            call_.attempt([&] {
                for_each_run(p, r, [&](Range local, Range place) {
                    copy<T>(where, panel(p).row_block(place), (mine ? own(p) : part.rows).row_block(local));
                });
                copy<T>(where, triangle(p), mine ? f_.t_of(p) : part.Tf);
            });
            if (!mine) ranks().template send<T>(where, part.words, r, call_.note());
        }
    }

private:
    struct Message {
        MatrixView<T, D> words, rows, Tf;  ///< the whole message; rows of A or of V and R; T after them
    };

    Communicator& ranks() const { return f_.grid->col_comm(); }
    int root(const CyclicPanel& p) const { return f_.row_axis.owner(p.first); }
    bool is_root(const CyclicPanel& p) const { return ranks().rank() == root(p); }
    /// Returns this rank's rows of panel p.
    MatrixView<T, D> own(const CyclicPanel& p) { return f_.A.block(f_.rows_from(p.first), f_.local_cols(p.cols())); }
    /// `panel` returns all rows on the root, `triangle` its T.
    MatrixView<T, D> panel(const CyclicPanel& p) {
        return is_spread_ ? MatrixView<T, D>(A_.data(), f_.layout.rows - p.first, p.width) : own(p);
    }
    MatrixView<T, D> triangle(const CyclicPanel& p) {
        return is_spread_ ? MatrixView<T, D>(Tf_.data(), p.width, p.width) : f_.t_of(p);
    }
    Message message_of(const CyclicPanel& p, int r) {
        const Index h = f_.row_axis.local_size(r) - f_.row_axis.before(r, p.first), w = p.width;
        return {{message_.data(), (h + w) * w, 1}, {message_.data(), h, w}, {message_.data() + h * w, w, w}};
    }

    /// Calls f(local, place) for rank r's rows of the panel and their places in it. Rows among the panel's own indices
    /// are in the order of the matrix. The other rows follow rank by rank.
    template <class F>
    void for_each_run(const CyclicPanel& p, int r, F f) const {
        const CyclicAxis& axis = f_.row_axis;
        const Index first = axis.before(r, p.first), end = p.cols().end;
        axis.for_each_block(p.cols(), [&](Range block, int owner) {
            const Index local = axis.before(r, block.begin) - first, place = block.begin - p.first;
            if (owner == r) f(Range{local, local + block.size()}, Range{place, place + block.size()});
        });
        Index place = p.width;
        for (int above = 0; above < r; ++above) place += axis.local_size(above) - axis.before(above, end);
        const Range local{axis.before(r, end) - first, axis.local_size(r) - first};
        if (local.size() > 0) f(local, Range{place, place + local.size()});
    }

    Factors& f_;
    JointCall& call_;
    const Plan& plan_;
    const bool is_spread_;
    Matrix<T, D> A_, Tf_, message_;  // all rows of a panel, and its T, on its root; rows and T of one rank
};

}  // namespace quoin
