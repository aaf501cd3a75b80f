#pragma once

// Shared by the parts of block-cyclic QR: checks of layouts, the factorization, and V and T of panels on their way
// along the process rows.

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "algorithms/ranks/block_cyclic_tuning.hpp"
#include "algorithms/ranks/distributed.hpp"
#include "algorithms/shared/matrix_checks.hpp"
#include "algorithms/shared/side_work.hpp"
#include "quoin/block_cyclic.hpp"

namespace quoin {

inline void check_layout(int grid_rows, int grid_cols, const BlockCyclic& l) {
    if (l.rows < 0 || l.cols < 0 || l.row_block < 1 || l.col_block < 1 || l.first_row < 0 || l.first_row >= grid_rows ||
        l.first_col < 0 || l.first_col >= grid_cols) {
        throw InvalidArgument(
            fmt::format("a {} x {} matrix in blocks of {} x {} from process ({}, {}) is no layout on {} x {} processes",
                        l.rows, l.cols, l.row_block, l.col_block, l.first_row, l.first_col, grid_rows, grid_cols));
    }
}

template <class T, class D>
void check_cyclic(const ProcessGrid& grid, BlockCyclicView<const T, D> A) {
    check_layout(grid.rows(), grid.cols(), A.layout);
    check_matrix(A.local);
    const Index rows = A.layout.local_rows(grid), cols = A.layout.local_cols(grid);
    if (A.local.rows != rows || A.local.cols != cols) {
        throw InvalidArgument(fmt::format("the local part is {} x {}, and the layout gives this rank {} x {}",
                                          A.local.rows, A.local.cols, rows, cols));
    }
}

/// Has the ranks agree on a layout, on T, and on `more`, another value that must be equal on all of them. Returns
/// `mine` of every rank.
template <class T>
std::vector<Index> agree_on(JointCall& call, const BlockCyclic& l, const ProcessGrid& grid, JointCall::Same more = {},
                            Index mine = 0) {
    return call.agree({{"the number of rows", l.rows},
                       {"the number of columns", l.cols},
                       {"the rows of a block", l.row_block},
                       {"the columns of a block", l.col_block},
                       {"the first process row", l.first_row},
                       {"the first process column", l.first_col},
                       {"the number of process rows", grid.rows()},
                       {"the number of process columns", grid.cols()},
                       {"the size of an element", sizeof(T)},
                       more},
                      mine);
}

/// A panel: `width` columns from `first` on, all of one process column.
struct CyclicPanel {
    Index first = 0, width = 0;
    Range cols() const { return {first, first + width}; }
};

/// Whether a panel is applied as on one process. True on an asynchronous device that has all rows of the panel.
template <class D>
constexpr bool columns_are_whole(int process_rows) {
    return Tuning<D>::asynchronous && process_rows == 1;
}
/// Whether one rank factors a panel as on one process: it has all rows of the panel, or receives them.
template <class D>
constexpr bool panels_are_whole(int process_rows, Index rows) {
    return Tuning<D>::asynchronous && (process_rows == 1 || rows <= CyclicTuning::max_gathered_rows);
}

/// The data of a BlockCyclicQR.
template <class T, class D>
struct BlockCyclicFactorization {
    const ProcessGrid* grid = nullptr;
    BlockCyclic layout;
    CyclicAxis row_axis, col_axis;
    std::vector<CyclicPanel> panels;
    Index width = 1;      ///< of the widest panel
    Matrix<T, D> memory;  ///< of A; none if A is the caller's
    MatrixView<T, D> A;   ///< V and R: this rank's part
    Matrix<T, D> Tf;      ///< width × this rank's columns of the panels: T of each, zeros below its diagonal
    Arithmetic arithmetic = Arithmetic::Native;  ///< of the updates, whose columns are scaled for it

    Index k() const { return std::min(layout.rows, layout.cols); }
    bool has_whole_columns() const { return columns_are_whole<D>(grid->rows()); }
    bool has_whole_panels() const { return panels_are_whole<D>(grid->rows(), layout.rows); }
    bool owns(const CyclicPanel& p) const { return col_axis.owner(p.first) == grid->col(); }
    /// Returns how many of this rank's rows are above row i, and how many of its columns are left of column j.
    Index rows_before(Index i) const { return row_axis.before(grid->row(), i); }
    Index cols_before(Index j) const { return col_axis.before(grid->col(), j); }
    Range local_cols(Range c) const { return {cols_before(c.begin), cols_before(c.end)}; }
    Range rows_from(Index i) const { return {rows_before(i), A.rows}; }
    MatrixView<T, D> t_of(const CyclicPanel& p) { return Tf.view().block({0, p.width}, local_cols(p.cols())); }
    MatrixView<const T, D> t_of(const CyclicPanel& p) const {
        return Tf.view().block({0, p.width}, local_cols(p.cols()));
    }

    /// Calls f(local, global) for this rank's rows within `rows`, by runs of rows that are neighbours in the matrix
    /// too.
    template <class F>
    void for_each_run(Range rows, F f) const {
        if (row_axis.processes == 1) {
            if (rows.size() > 0) f(rows, rows);
            return;
        }
        row_axis.for_each_block(rows, [&](Range block, int owner) {
            const Index first = rows_before(block.begin);
            if (owner == grid->row()) f(Range{first, first + block.size()}, block);
        });
    }

    /// Calls all(B, j) for blocks of X above the diagonal, and square(B, j) for square blocks on it. Together they are
    /// this rank's part of the upper trapezoid of a matrix in A's layout. X has all columns of this rank. j: B's local
    /// columns.
    template <class U, class All, class Square>
    void for_each_block_of_r(MatrixView<U, D> X, All all, Square square) const {
        col_axis.for_each_block({0, layout.cols}, [&](Range columns, int owner) {
            if (owner != grid->col()) return;
            const Index j = columns.begin, c = cols_before(j);
            const auto block = [&](Range rows, Range cols) {
                const Range at{c + cols.begin - j, c + cols.end - j};
                return std::pair(X.block(rows, at), at);
            };
            const auto above = block({0, rows_before(std::min(j, layout.rows))}, columns);
            all(above.first, above.second);
            for_each_run({j, std::min(columns.end, layout.rows)}, [&](Range local, Range global) {
                const auto on = block(local, global), right = block(local, {global.end, columns.end});
                square(on.first, on.second);
                all(right.first, right.second);
            });
        });
    }
};

/// Whether one Gram pass is enough for w columns of m independent random numbers (docs/algorithms.md, section 6).
template <class D>
bool one_pass_if_random(Index m, Index w) {
    return std::is_same_v<D, Host> ? Tuning<Host>::tall(m, w, ScalarKind::F64)
                                   : CommonTuning::norm_proves_one_pass(m, w);
}

/// Returns the default width of panels. If one rank factors a whole panel: a width of `CyclicTuning`, or blocked
/// Householder's width on one process. Otherwise: all columns if random ones would be nearly orthogonal, else the width
/// for trees over ranks.
template <class T, class D>
Index panel_width_for(const BlockCyclic& layout, int process_rows, int process_cols) {
    const Index m = layout.rows, k = std::min(m, layout.cols), w = std::min(k, Tuning<D>::tall_cyclic_width);
    if (panels_are_whole<D>(process_rows, m)) {
        if (process_cols > 1) return CyclicTuning::whole_width;
        return process_rows > 1 ? CyclicTuning::block
                                : Tuning<D>::panel_width(m, k, scalar_kind<T>, Arithmetic::Native);
    }
    if (process_cols == 1 && w > 0 && m >= 4 * w * w) return w;
    // the width for more rows than one device holds, because ranks factor a panel by trees
    const Index width =
        Tuning<D>::panel_width(std::numeric_limits<Index>::max(), k, ScalarKind::F64, Arithmetic::Native);
    return std::min(width, CyclicTuning::shared_width);
}

/// Returns panels of at most `width` columns. With several process columns no panel crosses the end of a block.
inline std::vector<CyclicPanel> panels_of(const BlockCyclic& layout, int process_cols, Index width) {
    const Index k = std::min(layout.rows, layout.cols), block = process_cols == 1 ? k : layout.col_block;
    // even parts of a block
    const Index parts = block > 0 ? (block + width - 1) / width : 1, part = (block + parts - 1) / parts;
    std::vector<CyclicPanel> panels;
    for (Index j = 0; j < k;) {
        const Index end = std::min({k, j / block * block + (j % block / part + 1) * part, (j / block + 1) * block});
        panels.push_back({j, end - j});
        j = end;
    }
    return panels;
}

/// Lays out everything but memory, for a checked layout. width 0: the default width.
template <class T, class D>
void lay_out(BlockCyclicFactorization<T, D>& f, Index width) {
    f.row_axis = f.layout.row_axis(*f.grid);
    f.col_axis = f.layout.col_axis(*f.grid);
    if (width == 0) width = panel_width_for<T, D>(f.layout, f.grid->rows(), f.grid->cols());
    f.panels = panels_of(f.layout, f.grid->cols(), width);
    for (const auto& p : f.panels) f.width = std::max(f.width, p.width);
}

inline void check_width(Index width) {
    if (width < 0) throw InvalidArgument(fmt::format("the width of a panel is {}", width));
}

/// V = [V₁; V₂], this rank's rows from the panel's first row on. V₁ are its rows among the panel's own indices, with
/// their ones and zeros.
template <class T, class D>
struct VRows {
    MatrixView<T, D> top, below;
};

/// V and T of panels on their way along the process rows, and products with I − V T Vᵀ.
template <class T, class D>
class CyclicReflectors {
public:
    using Factors = BlockCyclicFactorization<T, D>;
    /// Prepares products with up to p local columns. With Corrected arithmetic the columns have similar norms, of at
    /// most 2. Allocates.
    CyclicReflectors(Context<D>& ctx, const Factors& f, JointCall& call, Index p,
                     Arithmetic arithmetic = Arithmetic::Native)
        : ctx_(ctx),
          f_(f),
          call_(call),
          arithmetic_(arithmetic),
          travels_(f.grid->cols() > 1),
          is_copied_(travels_ || (f.has_whole_panels() && !f.has_whole_columns())),
          words_((f.width + (is_copied_ ? f.A.rows : std::min(f.A.rows, f.width))) * f.width),
          panels_(1 + (f.panels.size() > 1)) {
        W_ = Matrix<T, D>(ctx, f.width * (f.has_whole_columns() ? f.width : std::max(p, f.width)), 1);
        part_ = Matrix<T, D>(ctx, W_.rows(), f.grid->rows() > 1 ? 1 : 0);
        memory_ = Matrix<T, D>(ctx, words_, panels_);
    }

    CyclicReflectors(const CyclicReflectors&) = delete;
    /// Waits until the messages are sent, because their memory goes.
    ~CyclicReflectors() {
        try {
            f_.grid->row_comm().finish_sends();
        } catch (...) {
        }
    }

    /// Returns how many of this rank's rows are among the panel's own indices.
    Index top_rows(Index s) const {
        return f_.rows_before(f_.panels[s].cols().end) - f_.rows_before(f_.panels[s].first);
    }
    VRows<T, D> v(Index s) {
        const auto& p = f_.panels[s];
        const Range rows = f_.rows_from(p.first), top{0, top_rows(s)};
        const MatrixView<T, D> V(memory_.view().at(f_.width * f_.width, s % panels_),
                                 is_copied_ ? rows.size() : top.end, p.width);
        const auto below = is_copied_ ? V.row_block({top.end, V.rows})
                                      : f_.A.block({rows.begin + top.end, rows.end}, f_.local_cols(p.cols()));
        return {V.row_block(top), below};
    }
    MatrixView<T, D> t(Index s) {
        const Index w = f_.panels[s].width;
        return {memory_.view().at(0, s % panels_), w, w};
    }

    /// Sends V and T of panel s from its process column along the process rows, in the order of the work of `where`,
    /// the context or its side stream. `await` orders later work after V and T.
    void share(Context<D>& where, Index s) {
        const auto& p = f_.panels[s];
        const Span span(where, "broadcast", s);
        {
            const Span wait(where, "wait");
            f_.grid->row_comm().finish_sends();  // of the panels that used this memory before
        }
        if (f_.owns(p)) {
            call_.attempt([&] {
                copy_rows(where, s, v(s).top, 0);
                if (is_copied_) copy_rows(where, s, v(s).below, v(s).top.rows);
                set_unit_rows(where, p, {0, p.width}, v(s).top);
                copy<T>(where, f_.t_of(p), t(s));
            });
        }
        if (!travels_) return ready(where, s);
        // a broadcast whose sends overlap with the work that follows
        Communicator& row = f_.grid->row_comm();
        RankTree tree(row.rank(), row.size(), f_.col_axis.owner(p.first));
        const MatrixView<T, D> V(v(s).top.data, f_.rows_from(p.first).size(), p.width);
        if (tree.head >= 0) {
            call_.hear(row.receive<T>(where, V, tree.head));
            call_.hear(row.receive<T>(where, t(s), tree.head));
        }
        ready(where, s);
        // The host sends to the farthest member first. A stream sends one message after the other, and starts with the
        // rank that has the next panel.
        if (!Tuning<D>::asynchronous) std::reverse(tree.members.begin(), tree.members.end());
        for (const int member : tree.members) {
            row.start_send<T>(where, V, member, call_.note());
            row.start_send<T>(where, t(s), member, call_.note());
        }
    }
    void share(Index s) { share(ctx_, s); }
    /// Calls use(s) for every panel after `share`, from the first or from the last one on. On an asynchronous device
    /// the next panel travels while use(s) runs.
    template <class F>
    void for_each_panel(bool from_first, F use) {
        const Index count = static_cast<Index>(f_.panels.size());
        const auto panel = [&](Index i) { return from_first ? i : count - 1 - i; };
        SideWork<D> side(ctx_);
        constexpr bool ahead = Tuning<D>::asynchronous;
        if (ahead && count > 0) share(side.fork(), panel(0));
        for (Index i = 0; i < count; ++i) {
            if (!ahead) share(panel(i));
            if (ahead && i + 1 < count) share(side.fork(), panel(i + 1));
            await(panel(i));
            use(panel(i));
        }
    }
    /// Has later work on the context wait for V and T of panel s.
    void await(Index s) {
        call_.attempt([&] { ready_[s % panels_].precede(ctx_); });
    }

    /// Sets the ones on the diagonal of V and the zeros above it. V has columns `cols` of a panel, and this rank's rows
    /// from the first of `cols` on, all or the top ones.
    void set_unit_rows(Context<D>& where, const CyclicPanel& p, Range cols, MatrixView<T, D> V) {
        const Index first = p.first + cols.begin, top = f_.rows_before(first);
        f_.for_each_run({first, p.first + cols.end}, [&](Range local, Range global) {
            const Range rows{local.begin - top, local.end - top}, c{global.begin - first, global.end - first};
            set_root<T>(where, V.block(rows, c));
            set_zero<T, D>(where, V.block(rows, {c.end, V.cols}));
        });
    }

    /// C := (I − V op(T) Vᵀ) C. C is this rank's part of some columns, in the rows of V.
    void apply(VRows<const T, D> V, MatrixView<const T, D> Tf, Op op, MatrixView<T, D> C) {
        const MatrixView<T, D> W(W_.data(), Tf.cols, C.cols);
        if (C.cols == 0) return;
        const auto C1 = C.row_block({0, V.top.rows}), C2 = C.row_block({V.top.rows, C.rows});
        // W = op(T) VᵀC
        call_.attempt([&] {
            throw_if_stopped(ctx_);
            if (V.top.rows > 0) multiply_transposed<T>(ctx_, V.top, C1, W);
            multiply_transposed<T>(ctx_, V.below, C2, W, V.top.rows > 0, arithmetic_);
        });
        sum(W);
        call_.attempt([&] {
            multiply_triangle<T>(ctx_, Side::Left, Triangle::Upper, op, Tf, W);
            if (V.top.rows > 0) subtract_product<T>(ctx_, V.top, W, C1);
            subtract_product<T>(ctx_, V.below, W, C2, arithmetic_);
        });
    }
    /// Applies panel s to C as above, after `share`.
    void apply(Index s, Op op, MatrixView<T, D> C) {
        const CyclicPanel& p = f_.panels[s];
        const auto V = v(s);
        const MatrixView<const T, D> copied(V.top.data, C.rows, p.width);
        if (f_.has_whole_columns()) {
            call_.attempt([&] {
                throw_if_stopped(ctx_);
                const auto here = is_copied_ ? copied : f_.A.block(f_.rows_from(p.first), f_.local_cols(p.cols()));
                apply_panel<T>(ctx_, op, here, t(s), C, arithmetic_);
            });
        } else if (is_copied_) {
            apply({copied.row_block({0, 0}), copied}, t(s), op, C);
        } else {
            apply({V.top, V.below}, t(s), op, C);
        }
    }

    /// X := (I − V T Vᵀ) [I; 0] = [I; 0] − V M, this rank's rows of the panel's own columns of Q. M = T V₁ᵀ is upper
    /// triangular. X may overwrite the stored V.
    void form(Index s, MatrixView<T, D> X) {
        const CyclicPanel& p = f_.panels[s];
        const auto V = v(s);
        const MatrixView<T, D> M(W_.data(), p.width, p.width);
        const auto X1 = X.row_block({0, V.top.rows}), X2 = X.row_block({V.top.rows, X.rows});
        call_.attempt([&] {
            throw_if_stopped(ctx_);
            const Index top = f_.rows_before(p.first);
            set_zero(ctx_, X1);
            f_.for_each_run(p.cols(), [&](Range local, Range global) {
                set_identity<T>(ctx_, global.begin - p.first, X1.row_block({local.begin - top, local.end - top}));
            });
            multiply_transposed<T>(ctx_, V.top, X1, M);
        });
        sum(M);
        call_.attempt([&] {
            multiply_triangle<T>(ctx_, Side::Left, Triangle::Upper, Op::None, t(s), M);
            subtract_product<T>(ctx_, V.top, M, X1);
            negate<T>(ctx_, M);
            if (X2.data != V.below.data) copy<T>(ctx_, V.below, X2);
            multiply_triangle<T>(ctx_, Side::Right, Triangle::Upper, Op::None, M, X2);
        });
    }

private:
    void ready(Context<D>& where, Index s) {
        call_.attempt([&] { ready_[s % panels_].record(where); });
    }
    /// V := rows of panel s in A, from its `first` one on.
    void copy_rows(Context<D>& where, Index s, MatrixView<T, D> V, Index first) {
        const auto& p = f_.panels[s];
        const Index begin = f_.rows_before(p.first) + first;
        copy<T>(where, f_.A.block({begin, begin + V.rows}, f_.local_cols(p.cols())), V);
    }
    void sum(MatrixView<T, D> W) {
        sum_on_all<T, D>(ctx_, call_, f_.grid->col_comm(), W, {part_.data(), W.rows, W.cols});
    }

    Context<D>& ctx_;
    const Factors& f_;
    JointCall& call_;
    const Arithmetic arithmetic_;
    const bool travels_, is_copied_;  // V is sent; V is in memory_, otherwise V₂ stays in A
    Index words_, panels_;            // of V and T of a panel, and panels in memory
    Matrix<T, D> W_, part_, memory_;
    Event<D> ready_[2];  // V and T of a panel are in memory
};

}  // namespace quoin
