// Blocked Householder QR of a block-cyclic matrix, right-looking and with look-ahead. A panel is a QR of rows over the ranks of its
// process column, and becomes V and T by Householder reconstruction.

#include "quoin/block_cyclic.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>

#include "algorithms/distributed.hpp"

namespace quoin {

// ---- the grid --------------------------------------------------------------------------------------------------------

namespace {

std::unique_ptr<Communicator> line_of(Communicator& comm, int first, int step, int count) {
    std::vector<int> members(count);
    for (int i = 0; i < count; ++i) members[i] = first + i * step;
    return std::make_unique<SubCommunicator>(comm, std::move(members));
}

}  // namespace

ProcessGrid::ProcessGrid(Communicator& comm, int rows, int cols) : comm_(comm), rows_(rows), cols_(cols) {
    if (rows < 1 || cols < 1 || Index{rows} * cols != comm.size()) {
        throw InvalidArgument(fmt::format("ProcessGrid: {} x {} processes are not the {} ranks of the communicator",
                                          rows, cols, comm.size()));
    }
    row_comm_ = line_of(comm, rank_at(row(), 0), 1, cols);
    col_comm_ = line_of(comm, col(), cols, rows);
}

Traffic ProcessGrid::traffic() const {
    Traffic sum;
    for (const Communicator* part : {&comm_, row_comm_.get(), col_comm_.get()}) {
        const Traffic& t = part->traffic();
        sum.messages_sent += t.messages_sent;
        sum.words_sent += t.words_sent;
        sum.messages_received += t.messages_received;
        sum.words_received += t.words_received;
    }
    return sum;
}

// ---- layouts ---------------------------------------------------------------------------------------------------------

namespace {

void check_layout(const ProcessGrid& grid, const BlockCyclic& l) {
    if (l.rows < 0 || l.cols < 0 || l.row_block < 1 || l.col_block < 1 || l.first_row < 0 ||
        l.first_row >= grid.rows() || l.first_col < 0 || l.first_col >= grid.cols()) {
        throw InvalidArgument(
            fmt::format("a {} x {} matrix in blocks of {} x {} from process ({}, {}) is no layout on {} x {} processes",
                        l.rows, l.cols, l.row_block, l.col_block, l.first_row, l.first_col, grid.rows(), grid.cols()));
    }
}

template <class T, class D>
void check_cyclic(const ProcessGrid& grid, BlockCyclicView<const T, D> A) {
    check_layout(grid, A.layout);
    check_matrix(A.local);
    const Index rows = A.layout.local_rows(grid), cols = A.layout.local_cols(grid);
    if (A.local.rows != rows || A.local.cols != cols) {
        throw InvalidArgument(fmt::format("the local part is {} x {}, and the layout gives this rank {} x {}",
                                          A.local.rows, A.local.cols, rows, cols));
    }
}

/// The ranks agree on a layout and on T; `more` is another value that must be the same.
template <class T>
void agree_on(JointCall& call, const BlockCyclic& l, const ProcessGrid& grid, JointCall::Same more) {
    call.agree({{"the number of rows", l.rows},
                {"the number of columns", l.cols},
                {"the rows of a block", l.row_block},
                {"the columns of a block", l.col_block},
                {"the first process row", l.first_row},
                {"the first process column", l.first_col},
                {"the number of process rows", grid.rows()},
                {"the number of process columns", grid.cols()},
                {"the size of an element", sizeof(T)},
                more});
}

}  // namespace

/// A panel: `width` columns from `first` on, all of one process column.
struct CyclicPanel {
    Index first = 0, width = 0;
    Range cols() const { return {first, first + width}; }
};

/// What a BlockCyclicQR is made of.
template <class T, class D>
struct BlockCyclicFactorization {
    const ProcessGrid* grid = nullptr;
    BlockCyclic layout;
    CyclicAxis row_axis, col_axis;
    std::vector<CyclicPanel> panels;
    Index width = 1;      ///< of the widest
    Matrix<T, D> memory;  ///< of A; none where that is the caller's
    MatrixView<T, D> A;   ///< V and R: this rank's part
    Matrix<T, D> Tf;      ///< width × this rank's columns of the panels: T of each, zeros below its diagonal

    Index k() const { return std::min(layout.rows, layout.cols); }
    bool owns(const CyclicPanel& p) const { return col_axis.owner(p.first) == grid->col(); }
    /// This rank's rows below row i, and its columns among the first j.
    Index rows_before(Index i) const { return row_axis.before(grid->row(), i); }
    Index cols_before(Index j) const { return col_axis.before(grid->col(), j); }
    Range local_cols(Range c) const { return {cols_before(c.begin), cols_before(c.end)}; }
    Range rows_from(Index i) const { return {rows_before(i), A.rows}; }
    MatrixView<T, D> t_of(const CyclicPanel& p) { return Tf.view().block({0, p.width}, local_cols(p.cols())); }
    MatrixView<const T, D> t_of(const CyclicPanel& p) const {
        return Tf.view().block({0, p.width}, local_cols(p.cols()));
    }

    /// f(local, global) for this rank's rows among those of `rows`, as far as they are neighbours in the matrix too.
    template <class F>
    void for_each_run(Range rows, F f) const {
        for (Index i = rows.begin; i < rows.end;) {
            const Index end = std::min(rows.end, (i / row_axis.block + 1) * row_axis.block);
            if (row_axis.owner(i) == grid->row()) f(Range{rows_before(i), rows_before(i) + end - i}, Range{i, end});
            i = end;
        }
    }

    /// all(B, j) for blocks of X above the diagonal, and square(B, j) for square blocks on it: together this rank's part of the upper
    /// trapezoid of a matrix in A's layout, X with all its columns. j: B's local columns.
    template <class U, class All, class Square>
    void for_each_block_of_r(MatrixView<U, D> X, All all, Square square) const {
        for (Index j = 0; j < layout.cols;) {
            const Index end = std::min(layout.cols, (j / col_axis.block + 1) * col_axis.block);
            if (col_axis.owner(j) == grid->col()) {
                const Index c = cols_before(j);
                const auto block = [&](Range rows, Range cols) {
                    const Range at{c + cols.begin - j, c + cols.end - j};
                    return std::pair(X.block(rows, at), at);
                };
                const auto above = block({0, rows_before(std::min(j, layout.rows))}, {j, end});
                all(above.first, above.second);
                for_each_run({j, std::min(end, layout.rows)}, [&](Range local, Range global) {
                    const auto on = block(local, global), right = block(local, {global.end, end});
                    square(on.first, on.second);
                    all(right.first, right.second);
                });
            }
            j = end;
        }
    }
};

namespace {

/// Columns of panels where nobody asks: those of blocked Householder on one process.
template <class D>
Index panel_width_for(Index k) {
    return Tuning<D>::panel_width(k, Arithmetic::Native);
}

/// Panels of `width` columns at most; where there are several process columns none goes beyond a block.
std::vector<CyclicPanel> panels_of(const BlockCyclic& layout, int process_cols, Index width) {
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

/// All but memory, for a layout that is checked; width 0: the usual one.
template <class T, class D>
void lay_out(BlockCyclicFactorization<T, D>& f, Index width) {
    f.row_axis = f.layout.row_axis(*f.grid);
    f.col_axis = f.layout.col_axis(*f.grid);
    f.panels = panels_of(f.layout, f.grid->cols(), width > 0 ? width : panel_width_for<D>(f.k()));
    for (const auto& p : f.panels) f.width = std::max(f.width, p.width);
}

void check_width(Index width) {
    if (width < 0) throw InvalidArgument(fmt::format("the width of a panel is {}", width));
}

/// V and T of panels on their way along the process rows, and products with I − V T Vᵀ.
template <class T, class D>
class CyclicReflectors {
public:
    using Factors = BlockCyclicFactorization<T, D>;
    /// For products with up to p local columns. Allocates.
    CyclicReflectors(Context<D>& ctx, const Factors& f, JointCall& call, Index p)
        : ctx_(ctx), f_(f), call_(call), panel_((f.A.rows + f.width) * f.width, 1 + (f.panels.size() > 1)) {
        W_ = Matrix<T, D>(ctx, f.width * std::max(p, f.width), 1);
        part_ = Matrix<T, D>(ctx, W_.rows(), f.grid->rows() > 1 ? 1 : 0);
        memory_ = Matrix<T, D>(ctx, panel_.first, panel_.second);
    }

    CyclicReflectors(const CyclicReflectors&) = delete;
    /// The messages must be gone before their memory is.
    ~CyclicReflectors() {
        try {
            f_.grid->row_comm().finish_sends();
        } catch (...) {
        }
    }

    /// This rank's rows of V with its ones and zeros, and T.
    MatrixView<T, D> v(Index s) {
        const auto& p = f_.panels[s];
        if (held_[s % 2].cols() > 0) return held_[s % 2].view();
        return {memory_.view().at(f_.width * f_.width, s % panel_.second), f_.rows_from(p.first).size(), p.width};
    }
    MatrixView<T, D> t(Index s) {
        const Index w = f_.panels[s].width;
        return {memory_.view().at(0, s % panel_.second), w, w};
    }

    /// The process column of panel s sends V and T along the process rows. Where `V` has columns it is this rank's V, as `v` returns it.
    void share(Index s, Matrix<T, D>&& V = {}) {
        const auto& p = f_.panels[s];
        f_.grid->row_comm().finish_sends();  // of the panels that were here
        held_[s % 2] = {};
        if (f_.owns(p)) {
            call_.attempt([&] {
                if (V.cols() > 0) {
                    held_[s % 2] = std::move(V);
                } else {
                    copy<T>(ctx_, f_.A.block(f_.rows_from(p.first), f_.local_cols(p.cols())), v(s));
                }
                set_unit_rows(p, {0, p.width}, v(s));
                copy<T>(ctx_, f_.t_of(p), t(s));
            });
        }
        // a broadcast whose sends go on beside what follows
        Communicator& row = f_.grid->row_comm();
        const RankTree tree(row.rank(), row.size(), f_.col_axis.owner(p.first));
        if (tree.head >= 0) {
            call_.hear(row.receive<T>(ctx_, v(s), tree.head));
            call_.hear(row.receive<T>(ctx_, t(s), tree.head));
        }
        for (auto member = tree.members.rbegin(); member != tree.members.rend(); ++member) {
            row.start_send<T>(ctx_, v(s), *member, call_.note());
            row.start_send<T>(ctx_, t(s), *member, call_.note());
        }
    }

    /// V (all of this rank's rows from the first of `cols` on), whose columns `cols` of a panel it has: 1 on the diagonal, 0 above.
    void set_unit_rows(const CyclicPanel& p, Range cols, MatrixView<T, D> V) {
        const Index first = p.first + cols.begin, top = f_.rows_before(first);
        f_.for_each_run({first, p.first + cols.end}, [&](Range local, Range global) {
            const Range rows{local.begin - top, local.end - top}, c{global.begin - first, global.end - first};
            set_root<T>(ctx_, V.block(rows, c));
            set_zero<T, D>(ctx_, V.block(rows, {c.end, V.cols}));
        });
    }

    /// C := (I − V op(T) Vᵀ) C, C being this rank's part of some columns, its rows those of V. Only `used` of its rows are not zeros.
    void apply(MatrixView<const T, D> V, MatrixView<const T, D> Tf, Op op, MatrixView<T, D> C, Index used) {
        Communicator& col = f_.grid->col_comm();
        const MatrixView<T, D> W(W_.data(), Tf.cols, C.cols);
        if (C.cols == 0) return;
        // W = op(T) VᵀC
        call_.attempt([&] {
            throw_if_stopped(ctx_);
            multiply_transposed<T>(ctx_, V.row_block({0, used}), C.row_block({0, used}), W);
        });
        reduce_sum<T, D>(col, ctx_, W, {part_.data(), W.rows, W.cols}, 0, call_.note());
        call_.hear(col.broadcast<T>(ctx_, W, 0, call_.note()));
        call_.attempt([&] {
            multiply_triangle<T>(ctx_, Side::Left, Triangle::Upper, op, Tf, W);
            subtract_product<T>(ctx_, V, W, C);
        });
    }
    /// The same of panel s, after `share`.
    void apply(Index s, Op op, MatrixView<T, D> C) { apply(v(s), t(s), op, C, C.rows); }

private:
    Context<D>& ctx_;
    const Factors& f_;
    JointCall& call_;
    std::pair<Index, Index> panel_;  // words of V and T, and panels in memory
    Matrix<T, D> W_, part_, memory_;
    std::array<Matrix<T, D>, 2> held_;  // V that has memory of its own
};

/// V, T and R of one panel from its explicit Q, on all ranks of a process column.
template <class T, class D>
class PanelReconstruction {
public:
    using Factors = BlockCyclicFactorization<T, D>;
    /// Q: this rank's rows. R: w×w, the same on all ranks. Tf: w×w zeros. Allocates.
    PanelReconstruction(Context<D>& ctx, const Factors& f, JointCall& call, CyclicReflectors<T, D>& reflectors,
                        const CyclicPanel& panel, MatrixView<T, D> Q, MatrixView<T, D> R, MatrixView<T, D> Tf)
        : ctx_(ctx), f_(f), call_(call), reflectors_(reflectors), panel_(panel), Q_(Q), R_(R), Tf_(Tf) {
        const Index w = panel.width;
        top_ = Matrix<T, D>(ctx, w + 1, w);
        words_ = Matrix<T, D>(ctx, 2 * w * w, 1);
        signs_ = Matrix<T, D>(ctx, w, 1);
        U_ = Matrix<S, D>(ctx, (w + 1) * w, 1);
        certificate_ = Matrix<Certificate, D>(ctx, 1, 1);
        flags_ = Matrix<T>(w, 2);
    }

    /// Q := V below its diagonal, Tf := T, R := S R. Where Q₁ − S = L U is not accurate enough, column by column.
    void reconstruct() {
        const Range all{0, panel_.width};
        if (!in_one_step(all)) by_columns(all);
    }

private:
    using S = Sum<T, D>;
    MatrixView<T, D> rows_of_q(Index i) const {
        return Q_.row_block({f_.rows_before(panel_.first + i) - f_.rows_before(panel_.first), Q_.rows});
    }
    int owner(Index i) const { return f_.row_axis.owner(panel_.first + i); }
    Matrix<T, D> unit_v(Range c) {
        Matrix<T, D> V = copy_of<T, D>(ctx_, rows_of_q(c.begin).col_block(c));
        reflectors_.set_unit_rows(panel_, c, V.view());
        return V;
    }

    /// Q₁ = H₁ [S₁; 0], H₁ᵀQ₂ = [0; Q'], Q' = H₂ [S₂; 0] and T of both, for columns `c` that are orthonormal from row c.begin on. Each column
    /// is of unit norm when it becomes a reflector, so that errors do not grow from one to the next.
    void by_columns(Range c) {
        if (c.size() == 1) {
            normalize(c);
            in_one_step(c);
            return;
        }
        const Range left{c.begin, (c.begin + c.end) / 2}, right{left.end, c.end};
        by_columns(left);
        Matrix<T, D> V;
        call_.attempt([&] { V = unit_v(left); });
        const auto C = rows_of_q(left.begin).col_block(right);
        reflectors_.apply(V.view(), Tf_.block(left, left), Op::Transpose, C, C.rows);
        by_columns(right);
        join(left, right);
    }

    /// q := q / ‖q‖
    void normalize(Range c) {
        Communicator& col = f_.grid->col_comm();
        const auto q = rows_of_q(c.begin).col_block(c);
        T norm[2] = {};
        call_.attempt([&] { column_norms<T>(ctx_, q, std::span<T>(norm, 1)); });
        reduce_entries<T>(col, host_context(ctx_), {norm, 1, 1}, {norm + 1, 1, 1}, 0, call_.note(),
                          [](T a, T b) { return std::hypot(a, b); });
        call_.hear(col.broadcast<T>(host_context(ctx_), {norm, 1, 1}, 0, call_.note()));
        call_.attempt([&] { scaled_copy<T>(ctx_, 1 / static_cast<double>(norm[0]), q, {}, q); });
    }

    /// False, and nothing is changed, where ‖(Q₁ − S)⁻¹‖ is too large.
    bool in_one_step(Range c) {
        const Index n = c.size(), rest = panel_.width - c.end;
        Communicator& col = f_.grid->col_comm();
        const int root = owner(c.begin);
        const bool is_root = col.rank() == root;
        const auto Q = rows_of_q(c.begin).col_block(c);
        const Index own = rows_of_q(c.begin).rows - rows_of_q(c.end).rows;  // among the first n
        const MatrixView<T, D> top = top_.view().block({0, n + 1}, {0, n}), message(words_.data(), n, 2 * n + rest);
        const MatrixView<S, D> U(U_.data(), n + 1, n);
        const auto signs = signs_.view().row_block({0, n});
        const auto flags = flags_.view().block({0, n}, {0, 1}), part = flags_.view().block({0, n}, {1, 2});
        const auto certificate = certificate_.view();
        call_.attempt([&] {
            set_zero(ctx_, top);
            set_zero(ctx_, U);
        });
        collect_top(c, own, top);
        const auto L = top.row_block({0, n});
        const auto R = R_.block(c, c), Tf = Tf_.block(c, c);
        if (is_root) {
            // Q₁ − S = L U,  T = −U S L⁻ᵀ,  R := S R
            call_.attempt(
                [&] {
                    write_certificate(ctx_, certificate, {});
                    const double limit = most_inverse_norm(n);
                    reconstruct_top<T>(ctx_, L, MatrixView<const S, D>(), limit, R, L, Tf, U.row_block({0, n}), signs,
                                       certificate);
                    // 1 below U: it is there
                    const bool refused = read_certificate(ctx_, certificate).refused();
                    if (refused && n == 1)
                        throw NumericalBreakdown("a panel of the QR factorization holds NaN or Inf", c.begin);
                    if (!refused) set_identity<S>(ctx_, 0, U.row_block({n, n + 1}));
                },
                JointCall::Of::All);
        }
        const int heard = col.broadcast<S>(ctx_, U, root, call_.note());
        call_.hear(heard);
        // the same decision on all ranks, whatever has failed on this one
        if (heard == 0 && entry_norms<S>(ctx_, U.row_block({n, n + 1}), {}).largest == 0) return false;
        // V₂ = Q₂ U⁻¹
        call_.attempt([&] {
            using Factors1 = std::array<MatrixView<const S, D>, 1>;
            const auto V2 = rows_of_q(c.end).col_block(c);
            solve_and_gram<T>(ctx_, V2, Factors1{U.row_block({0, n})}, V2, {});
            std::vector<T> norms(n);
            column_norms<T>(ctx_, V2, norms);
            for (Index j = 0; j < n; ++j) flags(j, 0) = norms[j] != 0;
        });
        // reflectors with v = e_j on all ranks are dropped
        reduce_entries<T>(col, host_context(ctx_), flags, part, root, call_.note(),
                          [](T a, T b) { return std::max(a, b); });
        if (is_root) {
            call_.attempt(
                [&] {
                    const MatrixView<const T> row(flags.data, 1, n);
                    start_copy_from_host<T>(ctx_, row, top.row_block({n, n + 1}));
                    finish_copies(ctx_);
                    drop_unit_reflectors<T>(ctx_, top, R, Tf, signs, certificate);
                    flip_rows<T>(ctx_, signs, R_.block(c, {c.end, panel_.width}));
                    copy<T>(ctx_, L, message.col_block({0, n}));
                    copy<T>(ctx_, Tf, message.col_block({n, 2 * n}));
                    copy<T>(ctx_, R_.block(c, {c.end, panel_.width}), message.col_block({2 * n, 2 * n + rest}));
                    ctx_.wait();
                },
                JointCall::Of::All);
        }
        call_.hear(col.broadcast<T>(ctx_, message, root, call_.note()));
        call_.attempt([&] {
            const auto V_R = message.col_block({0, n});
            copy_triangle<T>(ctx_, V_R, R);
            copy<T>(ctx_, message.col_block({n, 2 * n}), Tf);
            copy<T>(ctx_, message.col_block({2 * n, 2 * n + rest}), R_.block(c, {c.end, panel_.width}));
            const Index first = panel_.first + c.begin, local_first = f_.rows_before(first);
            f_.for_each_run({first, panel_.first + c.end}, [&](Range local, Range global) {
                copy<T>(ctx_, V_R.row_block({global.begin - first, global.end - first}),
                        Q.row_block({local.begin - local_first, local.end - local_first}));
            });
        });
        return true;
    }

    /// top := the first n rows of Q(:, c), on their root: those of other ranks are sent there.
    void collect_top(Range c, Index own, MatrixView<T, D> top) {
        Communicator& col = f_.grid->col_comm();
        const int root = owner(c.begin);
        const Index first = panel_.first + c.begin, end = panel_.first + c.end;
        const auto mine = rows_of_q(c.begin).block({0, own}, c);
        if (col.rank() != root) {
            if (own > 0) col.send<T>(ctx_, mine, root, call_.note());
            return;
        }
        for (int r = 0; r < col.size(); ++r) {
            const Index before = f_.row_axis.before(r, first), count = f_.row_axis.before(r, end) - before;
            if (count == 0) continue;
            const MatrixView<T, D> rows(words_.data(), count, c.size());
            if (r == root) {
                call_.attempt([&] { copy<T>(ctx_, mine, rows); });
            } else {
                call_.hear(col.receive<T>(ctx_, rows, r));
            }
            call_.attempt([&] {
                for (Index i = first; i < end;) {
                    const Index next = std::min(end, (i / f_.row_axis.block + 1) * f_.row_axis.block);
                    if (f_.row_axis.owner(i) == r) {
                        const Index l = f_.row_axis.before(r, i) - before;
                        copy<T>(ctx_, rows.row_block({l, l + next - i}), top.row_block({i - first, next - first}));
                    }
                    i = next;
                }
            });
        }
    }

    /// T₁₂ := −T₁ V₁ᵀV₂ T₂
    void join(Range left, Range right) {
        Communicator& col = f_.grid->col_comm();
        const auto T12 = Tf_.block(left, right);
        const Index words = left.size() * right.size();
        const MatrixView<T, D> W(words_.data(), left.size(), right.size());
        const MatrixView<T, D> part(words_.data() + words, left.size(), right.size());
        call_.attempt([&] {
            const Matrix<T, D> V1 = unit_v(left), V2 = unit_v(right);
            multiply_transposed<T>(ctx_, V1.view().row_block({V1.rows() - V2.rows(), V1.rows()}), V2.view(), W);
        });
        reduce_sum<T, D>(col, ctx_, W, part, 0, call_.note());
        call_.hear(col.broadcast<T>(ctx_, W, 0, call_.note()));
        call_.attempt([&] {
            multiply_triangle<T>(ctx_, Side::Left, Triangle::Upper, Op::None, Tf_.block(left, left), W);
            multiply_triangle<T>(ctx_, Side::Right, Triangle::Upper, Op::None, Tf_.block(right, right), W);
            negate<T>(ctx_, W);
            copy<T>(ctx_, W, T12);
        });
    }

    Context<D>& ctx_;
    const Factors& f_;
    JointCall& call_;
    CyclicReflectors<T, D>& reflectors_;
    const CyclicPanel& panel_;
    MatrixView<T, D> Q_, R_, Tf_;
    Matrix<T, D> top_, words_, signs_;
    Matrix<S, D> U_;  // and a row with a one in the first place where the step is taken
    Matrix<Certificate, D> certificate_;
    Matrix<T> flags_;
};

template <class T, class D>
class CyclicFactorizer {
public:
    /// `in_place`: A as the result.
    CyclicFactorizer(Context<D>& ctx, const ProcessGrid& grid, BlockCyclicView<const T, D> A, Index panel_width,
                     std::optional<MatrixView<T, D>> in_place = {})
        : ctx_(ctx),
          grid_(grid),
          A_(A),
          call_(host_context(ctx), grid.comm(), RankOperation::Qr),
          width_(panel_width),
          in_place_(in_place) {
        f_.grid = &grid;
        f_.layout = A.layout;
    }

    BlockCyclicFactorization<T, D> factor() {
        begin();
        scale();
        std::optional<CyclicReflectors<T, D>> reflectors;
        call_.attempt([&] {
            f_.Tf = Matrix<T, D>(ctx_, f_.width, f_.cols_before(f_.k()));
            set_zero(ctx_, f_.Tf.view());
            reflectors.emplace(ctx_, f_, call_, f_.A.cols);
        });
        call_.agree();
        const Index count = static_cast<Index>(f_.panels.size());
        if (count > 0) factor_and_share(*reflectors, 0);
        for (Index s = 0; s < count; ++s) {
            call_.attempt([&] { throw_if_stopped(ctx_); });
            const Index next = s + 1;
            const bool comes = next < count, owns = comes && f_.owns(f_.panels[next]);
            if (owns) {
                // the next panel's columns first, and V and T of that panel before the rest of the update
                update(*reflectors, s, f_.panels[next].cols());
                factor_and_share(*reflectors, next);
            }
            update(*reflectors, s, {owns ? f_.panels[next].cols().end : f_.panels[s].cols().end, f_.layout.cols});
            if (comes && !owns) reflectors->share(next);
        }
        call_.agree();
        if (chosen_.rows() > 0) {
            const auto restore = [&](Part part) {
                return [&, part](MatrixView<T, D> B, Range cols) {
                    scale_columns<T>(ctx_, exponents_.view().row_block(cols), 1, part, B);
                };
            };
            f_.for_each_block_of_r(f_.A, restore(Part::All), restore(Part::Upper));
            ctx_.wait();
        }
        return std::move(f_);
    }

private:
    void begin() {
        call_.attempt([&] {
            check_cyclic(grid_, A_);
            check_width(width_);
        });
        agree_on<T>(call_, f_.layout, grid_, {"the width of a panel", width_});
        lay_out(f_, width_);
    }

    /// A copy of A, its columns times powers of two where one is out of range.
    void scale() {
        bool scaled = false;
        call_.attempt([&] {
            exponents_ = Matrix<int, D>(ctx_, A_.local.cols, 1);
            Matrix<Scan, D> found(ctx_, 1, 1);
            scan<T>(ctx_, A_.local, Scalar<T>::safe_exponent, exponents_.view(), found.view());
            const Scan seen = read_scan(ctx_, found.view());
            if (seen.bad_row >= 0) {
                throw NonFiniteEntry(f_.row_axis.global(grid_.row(), seen.bad_row),
                                     f_.col_axis.global(grid_.col(), seen.bad_col));
            }
            scaled = seen.scaled;
            if (in_place_) {
                f_.A = *in_place_;
            } else {
                f_.memory = copy_of<T, D>(ctx_, A_.local);
                f_.A = f_.memory.view();
            }
        });
        const auto found = call_.agree({}, scaled);
        if (std::none_of(found.begin(), found.end(), [](Index flag) { return flag != 0; })) return;
        choose_exponents<T, D>(ctx_, call_, grid_.col_comm(), A_.local, chosen_, exponents_.view());
        scale_columns<T>(ctx_, exponents_.view(), -1, Part::All, f_.A);
    }

    /// A(:, cols) := HᵀA(:, cols) of panel s.
    void update(CyclicReflectors<T, D>& reflectors, Index s, Range cols) {
        const Span span(ctx_, "update", s);
        reflectors.apply(s, Op::Transpose, f_.A.block(f_.rows_from(f_.panels[s].first), f_.local_cols(cols)));
    }

    void factor_and_share(CyclicReflectors<T, D>& reflectors, Index s) {
        Matrix<T, D> V;
        if (f_.owns(f_.panels[s])) {
            // one of this process column may know of a failure that the others do not
            Index note = call_.note();
            auto& host = host_context(ctx_);
            grid_.col_comm().template all_reduce<Index>(host, {&note, 1, 1}, Reduction::Max);
            call_.hear(static_cast<int>(note));
            call_.attempt([&] { V = factor_panel(s); }, JointCall::Of::All);
        }
        reflectors.share(s, std::move(V));
    }

    /// By the ranks of the panel's process column: this rank's V, but for its ones and zeros. What one throws all throw.
    Matrix<T, D> factor_panel(Index s) {
        const Span span(ctx_, "panel", s);
        const CyclicPanel& panel = f_.panels[s];
        const Index w = panel.width;
        const auto A = f_.A.block(f_.rows_from(panel.first), f_.local_cols(panel.cols()));
        Options options;
        options.q = QForm::Explicit;
        options.check_finite = false;
        auto factors = qr<T, D>(ctx_, grid_.col_comm(), MatrixView<const T, D>(A), options);
        Matrix<T, D> R = factors.r(ctx_), Q = std::move(factors).take_q(ctx_);
        JointCall call(host_context(ctx_), grid_.col_comm(), RankOperation::Qr);
        std::optional<CyclicReflectors<T, D>> reflectors;
        std::optional<PanelReconstruction<T, D>> reconstruction;
        call.attempt([&] {
            reflectors.emplace(ctx_, f_, call, w);
            reconstruction.emplace(ctx_, f_, call, *reflectors, panel, Q.view(), R.view(), f_.t_of(panel));
        });
        call.agree();
        reconstruction->reconstruct();
        call.attempt([&] {
            copy<T>(ctx_, Q.view(), A);
            const Index top = f_.rows_before(panel.first);
            f_.for_each_run(panel.cols(), [&](Range local, Range global) {
                const Range rows{local.begin - top, local.end - top};
                const Range c{global.begin - panel.first, global.end - panel.first};
                store_triangle<T>(ctx_, R.view().block(c, c), A.block(rows, c));
                copy<T>(ctx_, R.view().block(c, {c.end, w}), A.block(rows, {c.end, w}));
            });
        });
        call.agree();
        return Q;
    }

    Context<D>& ctx_;
    const ProcessGrid& grid_;
    BlockCyclicView<const T, D> A_;
    JointCall call_;
    Index width_;
    std::optional<MatrixView<T, D>> in_place_;
    BlockCyclicFactorization<T, D> f_;
    Matrix<int, D> exponents_;
    Matrix<int> chosen_;
};

}  // namespace

// ---- the interface ---------------------------------------------------------------------------------------------------

template <class T, class D>
BlockCyclicQR<T, D>::BlockCyclicQR(std::unique_ptr<BlockCyclicFactorization<T, D>> inside)
    : inside_(std::move(inside)) {}
template <class T, class D>
BlockCyclicQR<T, D>::BlockCyclicQR(BlockCyclicQR&&) noexcept = default;
template <class T, class D>
BlockCyclicQR<T, D>& BlockCyclicQR<T, D>::operator=(BlockCyclicQR&&) noexcept = default;
template <class T, class D>
BlockCyclicQR<T, D>::~BlockCyclicQR() = default;

template <class T, class D>
const BlockCyclic& BlockCyclicQR<T, D>::layout() const {
    return inside_->layout;
}
template <class T, class D>
Index BlockCyclicQR<T, D>::panel_width() const {
    return inside_->width;
}
template <class T, class D>
MatrixView<const T, D> BlockCyclicQR<T, D>::v_and_r() const {
    return inside_->A;
}

template <class T, class D>
Matrix<T, D> BlockCyclicQR<T, D>::tau(Context<D>& ctx) const {
    const auto& f = *inside_;
    Matrix<T, D> tau(ctx, f.Tf.cols(), 1);
    for (const auto& p : f.panels) {
        if (f.owns(p)) copy_diagonal<T>(ctx, f.t_of(p), tau.view().row_block(f.local_cols(p.cols())));
    }
    return tau;
}

template <class T, class D>
Matrix<T, D> BlockCyclicQR<T, D>::r(Context<D>& ctx) const {
    const auto& f = *inside_;
    Matrix<T, D> R(ctx, f.rows_before(f.k()), f.A.cols);
    set_zero(ctx, R.view());
    const auto from = f.A;
    // the same block of A
    const auto in_a = [&](MatrixView<T, D> B, Range cols) {
        const Index row = B.data ? (B.data - R.data()) % R.ld() : 0;
        return from.block({row, row + B.rows}, cols);
    };
    f.for_each_block_of_r(
        R.view(), [&](MatrixView<T, D> B, Range cols) { copy<T>(ctx, in_a(B, cols), B); },
        [&](MatrixView<T, D> B, Range cols) { copy_triangle<T>(ctx, in_a(B, cols), B); });
    return R;
}

namespace {

/// C := op(Q) C, this rank's part, rows in A's blocks.
template <class T, class D>
void apply_all(CyclicReflectors<T, D>& reflectors, const BlockCyclicFactorization<T, D>& f, Op op, MatrixView<T, D> C) {
    const Index count = static_cast<Index>(f.panels.size());
    for (Index i = 0; i < count; ++i) {
        const Index s = op == Op::Transpose ? i : count - 1 - i;
        reflectors.share(s);
        reflectors.apply(s, op, C.row_block(f.rows_from(f.panels[s].first)));
    }
}

/// Throws InvalidArgument unless the rows of C are spread as A's.
template <class T, class D>
void check_rows_like(const BlockCyclicFactorization<T, D>& f, const char* operation, BlockCyclicView<const T, D> C) {
    check_cyclic(*f.grid, C);
    if (C.layout.rows == f.layout.rows && C.layout.row_block == f.layout.row_block &&
        C.layout.first_row == f.layout.first_row)
        return;
    throw InvalidArgument(fmt::format(
        "{}: {} rows in blocks of {} from process row {}, and A has {} in blocks of {} from {}", operation,
        C.layout.rows, C.layout.row_block, C.layout.first_row, f.layout.rows, f.layout.row_block, f.layout.first_row));
}

}  // namespace

template <class T, class D>
void BlockCyclicQR<T, D>::apply_q(Context<D>& ctx, Op op, BlockCyclicView<T, D> C) const {
    const auto& f = *inside_;
    JointCall call(host_context(ctx), f.grid->comm(), RankOperation::ApplyQ);
    std::optional<CyclicReflectors<T, D>> reflectors;
    call.attempt([&] {
        check_rows_like<T, D>(f, "apply_q", C);
        reflectors.emplace(ctx, f, call, C.local.cols);
    });
    agree_on<T>(call, C.layout, *f.grid, {"op", static_cast<Index>(op)});
    apply_all(*reflectors, f, op, C.local);
    call.agree();
}

namespace {

/// Q := the thin Q, this rank's part; or in place of V, in the first columns of f.A, where Q has no data.
template <class T, class D>
Matrix<T, D> form_cyclic_q(Context<D>& ctx, const BlockCyclicFactorization<T, D>& f, bool in_place) {
    const Index n = f.cols_before(f.k());
    JointCall call(host_context(ctx), f.grid->comm(), RankOperation::FormQ);
    std::optional<CyclicReflectors<T, D>> reflectors;
    Matrix<T, D> memory;
    call.attempt([&] {
        reflectors.emplace(ctx, f, call, n);
        if (!in_place) memory = Matrix<T, D>(ctx, f.A.rows, n);
    });
    call.agree({{"whether Q is formed in place", in_place}});
    const auto Q = in_place ? f.A.col_block({0, n}) : memory.view();
    for (Index s = static_cast<Index>(f.panels.size()) - 1; s >= 0; --s) {
        // Q(j:, j:) := H Q(j:, j:), where the panel's own columns are those of I
        const auto& p = f.panels[s];
        reflectors->share(s);
        const auto own = Q.col_block(f.local_cols(p.cols()));
        call.attempt([&] {
            set_zero(ctx, own);
            if (!f.owns(p)) return;
            f.for_each_run(p.cols(), [&](Range local, Range global) {
                set_identity<T>(ctx, global.begin - p.first, own.row_block(local));
            });
        });
        const Range below = f.rows_from(p.first);
        const Index top = f.rows_before(p.cols().end) - below.begin;
        reflectors->apply(s, Op::None, Q.block(below, {f.cols_before(p.cols().end), n}));
        reflectors->apply(reflectors->v(s), reflectors->t(s), Op::None, own.row_block(below), top);
    }
    call.agree();
    return memory;
}

}  // namespace

template <class T, class D>
Matrix<T, D> BlockCyclicQR<T, D>::form_q(Context<D>& ctx) const {
    return form_cyclic_q(ctx, *inside_, false);
}
template <class T, class D>
void BlockCyclicQR<T, D>::form_q_in_place(Context<D>& ctx) && {
    form_cyclic_q(ctx, *inside_, true);
}

template <class T, class D>
void BlockCyclicQR<T, D>::solve(Context<D>& ctx, BlockCyclicView<T, D> B) const {
    const auto& f = *inside_;
    const Index p = B.local.cols;
    JointCall call(host_context(ctx), f.grid->comm(), RankOperation::Solve);
    std::optional<CyclicReflectors<T, D>> reflectors;
    Matrix<T, D> column, X, part;
    call.attempt([&] {
        check_rows_like<T, D>(f, "solve", B);
        if (f.layout.rows < f.layout.cols) {
            throw InvalidArgument(fmt::format("solve needs at least as many rows as columns, and A is {}x{}",
                                              f.layout.rows, f.layout.cols));
        }
        reflectors.emplace(ctx, f, call, p);
        column = Matrix<T, D>(ctx, (f.A.rows + f.width) * f.width, 1);
        X = Matrix<T, D>(ctx, f.width * std::max(p, f.width), 1);
        part = Matrix<T, D>(ctx, X.rows(), 1);
    });
    agree_on<T>(call, B.layout, *f.grid, {});
    apply_all(*reflectors, f, Op::Transpose, B.local);
    Communicator &row = f.grid->row_comm(), &col = f.grid->col_comm();
    const auto sum = [&](MatrixView<T, D> S) {
        reduce_sum<T, D>(col, ctx, S, {part.data(), S.rows, S.cols}, 0, call.note());
        call.hear(col.broadcast<T>(ctx, S, 0, call.note()));
    };
    for (Index s = static_cast<Index>(f.panels.size()) - 1; s >= 0; --s) {
        const auto& panel = f.panels[s];
        const Index w = panel.width, above = f.rows_before(panel.first);
        // R(0 : j + w, s): this rank's rows above the panel, and the whole triangle below them
        const MatrixView<T, D> M(column.data(), above + w, w);
        const auto R01 = M.row_block({0, above}), R11 = M.row_block({above, above + w});
        const auto rows_of = [&](MatrixView<T, D> S, Range global) {
            return S.row_block({global.begin - panel.first, global.end - panel.first});
        };
        if (f.owns(panel)) {
            const auto A = f.A.col_block(f.local_cols(panel.cols()));
            const MatrixView<T, D> triangle(X.data(), w, w);
            call.attempt([&] {
                copy<T>(ctx, A.row_block({0, above}), R01);
                set_zero(ctx, triangle);
                f.for_each_run(panel.cols(), [&](Range local, Range global) {
                    copy<T>(ctx, A.row_block(local), rows_of(triangle, global));
                });
            });
            sum(triangle);
            call.attempt(
                [&] {
                    copy_triangle<T>(ctx, triangle, R11);
                    for (Index j = 0; j < w; ++j) {
                        if (entry_norms<T>(ctx, R11.block({j, j + 1}, {j, j + 1}), {}).largest == 0)
                            throw RankDeficient(fmt::format("R({0}, {0}) is 0", panel.first + j), 0);
                    }
                },
                JointCall::Of::All);
        }
        call.hear(row.broadcast<T>(ctx, M, f.col_axis.owner(panel.first), call.note()));
        if (p == 0) continue;
        // X₁ = R₁₁⁻¹ B₁,  B₀ := B₀ − R₀₁X₁
        const MatrixView<T, D> X1(X.data(), w, p);
        call.attempt([&] {
            throw_if_stopped(ctx);
            set_zero(ctx, X1);
            f.for_each_run(panel.cols(), [&](Range local, Range global) {
                copy<T>(ctx, B.local.row_block(local), rows_of(X1, global));
            });
        });
        sum(X1);
        call.attempt([&] {
            solve_triangle<T>(ctx, Triangle::Upper, Op::None, R11, X1);
            f.for_each_run(panel.cols(), [&](Range local, Range global) {
                copy<T>(ctx, rows_of(X1, global), B.local.row_block(local));
            });
            subtract_product<T>(ctx, R01, X1, B.local.row_block({0, above}));
        });
    }
    call.agree();
}

struct InsideCyclic {
    template <class T, class D>
    static BlockCyclicQR<T, D> hold(BlockCyclicFactorization<T, D>&& f) {
        return BlockCyclicQR<T, D>(std::make_unique<BlockCyclicFactorization<T, D>>(std::move(f)));
    }
};

template <class T, class D>
BlockCyclicQR<T, D> qr(Context<D>& ctx, const ProcessGrid& grid, BlockCyclicView<const T, D> A, Index panel_width) {
    return InsideCyclic::hold(CyclicFactorizer<T, D>(ctx, grid, A, panel_width).factor());
}

template <class T, class D>
BlockCyclicQR<T, D> qr_in_place(Context<D>& ctx, const ProcessGrid& grid, BlockCyclicView<T, D> A, Index panel_width) {
    return InsideCyclic::hold(CyclicFactorizer<T, D>(ctx, grid, A, panel_width, A.local).factor());
}

template <class T>
BlockCyclicQR<T> from_lapack(Context<Host>& ctx, const ProcessGrid& grid, BlockCyclicView<T> V_R,
                             View<const T, Host> tau, Index panel_width) {
    BlockCyclicFactorization<T, Host> f;
    f.grid = &grid;
    f.layout = V_R.layout;
    JointCall call(ctx, grid.comm(), RankOperation::FromLapack);
    call.attempt([&] {
        check_cyclic<T, Host>(grid, V_R);
        check_width(panel_width);
    });
    agree_on<T>(call, f.layout, grid, {"the width of a panel", panel_width});
    lay_out(f, panel_width);
    Matrix<T> G, part;
    call.attempt([&] {
        if (tau.rows != f.cols_before(f.k()) || tau.cols != 1) {
            throw InvalidArgument(fmt::format("from_lapack: tau is {} x {}, and this rank has {} columns of V",
                                              tau.rows, tau.cols, f.cols_before(f.k())));
        }
        f.A = V_R.local;
        f.Tf = Matrix<T>(f.width, tau.rows);
        G = Matrix<T>(f.width, f.width);
        part = Matrix<T>(f.width, f.width);
    });
    call.agree();
    std::optional<CyclicReflectors<T, Host>> reflectors;
    call.attempt([&] { reflectors.emplace(ctx, f, call, 0); });
    call.agree();
    for (std::size_t s = 0; s < f.panels.size(); ++s) {
        const CyclicPanel& p = f.panels[s];
        if (!f.owns(p)) continue;
        const Index w = p.width;
        const MatrixView<T> VtV(G.data(), w, w);
        // T⁻¹ = the upper triangle of VᵀV, tau_j⁻¹ on its diagonal (Puglisi 1992); row and column j of T are 0 where tau_j is
        call.attempt([&] {
            const auto rows = f.A.block(f.rows_from(p.first), f.local_cols(p.cols()));
            const Index top = f.rows_before(p.cols().end) - f.rows_before(p.first);
            const auto V1 = reflectors->v(static_cast<Index>(s)).row_block({0, top});
            const MatrixView<T> below(part.data(), w, w);
            copy<T>(ctx, rows.row_block({0, top}), V1);
            reflectors->set_unit_rows(p, {0, w}, V1);
            solve_and_gram<T>(ctx, V1, {}, {}, VtV);
            solve_and_gram<T>(ctx, rows.row_block({top, rows.rows}), {}, {}, below);
            add<T>(ctx, below, VtV);
        });
        reduce_sum<T, Host>(grid.col_comm(), ctx, VtV, {part.data(), w, w}, 0, call.note());
        call.hear(grid.col_comm().template broadcast<T>(ctx, VtV, 0, call.note()));
        call.attempt([&] {
            const auto Tf = f.t_of(p);
            const auto tau_p = tau.row_block(f.local_cols(p.cols()));
            set_zero(ctx, Tf);
            for (Index j = 0; j < w; ++j) {
                const bool is_unit = tau_p(j, 0) == 0;
                if (is_unit) {
                    for (Index l = 0; l < w; ++l) VtV(j, l) = 0;
                }
                VtV(j, j) = is_unit ? T(1) : 1 / tau_p(j, 0);
                Tf(j, j) = is_unit ? T(0) : T(1);
            }
            solve_triangle<T>(ctx, Triangle::Upper, Op::None, VtV, Tf);
        });
    }
    call.agree();
    return InsideCyclic::hold(std::move(f));
}

// ---- redistribution --------------------------------------------------------------------------------------------------

namespace {

/// Consecutive rows of a matrix that are consecutive on their owner too.
struct Segment {
    Range global;
    int owner = 0;
    Index local = 0;
};

std::vector<Segment> segments_of(const CyclicAxis& axis) {
    std::vector<Segment> segments;
    for (Index i = 0; i < axis.size; i += axis.block) {
        const int owner = axis.owner(i);
        segments.push_back({{i, std::min(axis.size, i + axis.block)}, owner, axis.before(owner, i)});
    }
    return segments;
}

/// Between rows in blocks over all ranks and a block-cyclic matrix. Of one rank's rows and another's part.
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
        const auto heights = call_.agree({{"the number of rows", layout.rows},
                                          {"the number of columns", layout.cols},
                                          {"the rows of a block", layout.row_block},
                                          {"the columns of a block", layout.col_block},
                                          {"the first process row", layout.first_row},
                                          {"the first process column", layout.first_col},
                                          {"the number of process rows", grid.rows()},
                                          {"the size of an element", sizeof(T)}},
                                         rows.rows);
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

    /// The part that rank a has as rows and rank b as blocks: f(rows of a, columns of a, rows of b, columns of b).
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

    /// words(a, b): of the message from rank a to rank b. pack(b, M) writes the message to rank b, unpack(a, M) reads that of rank a.
    template <class Words, class Pack, class Unpack>
    void exchange(Words words, Pack pack, Unpack unpack) {
        Communicator& comm = grid_.comm();
        const int me = comm.rank(), count = comm.size();
        Matrix<T, D> memory;
        call_.attempt([&] {
            Index most = 0;
            for (int r = 0; r < count; ++r) most = std::max({most, words(me, r), words(r, me)});
            memory = Matrix<T, D>(ctx_, most, 1);
        });
        call_.agree();
        const auto message = [&](Index size) { return memory.view().row_block({0, size}); };
        call_.attempt([&] {
            pack(me, message(words(me, me)));
            unpack(me, message(words(me, me)));
        });
        // in step t ranks whose sum is t mod P meet, the lower one sends first: no two wait for each other
        for (int t = 0; t < count; ++t) {
            const int other = (t - me + count) % count;
            if (other == me) continue;
            const auto send = [&] {
                const auto M = message(words(me, other));
                call_.attempt([&] { pack(other, M); });
                if (M.rows > 0) comm.send<T>(ctx_, M, other, call_.note());
            };
            const auto receive = [&] {
                const auto M = message(words(other, me));
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

    /// Entries that rank a has as rows and rank b as blocks.
    Index words(int a, int b) const {
        Index sum = 0;
        for_each_block(a, b, [&](Range r, Range c, Range, Range) { sum += r.size() * c.size(); });
        return sum;
    }
    /// f(block of rows, block of a message) and so on for what ranks a and b share; X has a's rows or b's part.
    template <class U, class F>
    void with_message(int a, int b, bool as_rows, MatrixView<U, D> X, MatrixView<T, D> message, F f) const {
        Index at = 0;
        for_each_block(a, b, [&](Range r, Range c, Range local_r, Range local_c) {
            const MatrixView<T, D> part(message.data + at, r.size(), c.size());
            f(as_rows ? X.block(r, c) : X.block(local_r, local_c), part);
            at += r.size() * c.size();
        });
    }

private:
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
    Redistribution<T, D> plan(ctx, grid, B.layout, rows, B.local);
    const int me = grid.comm().rank();
    plan.exchange([&](int from, int to) { return plan.words(from, to); },
                  [&](int to, MatrixView<T, D> M) {
                      plan.with_message(me, to, true, rows, M, [&](auto X, auto part) { copy<T>(ctx, X, part); });
                  },
                  [&](int from, MatrixView<T, D> M) {
                      plan.with_message(from, me, false, B.local, M, [&](auto X, auto part) { copy<T>(ctx, part, X); });
                  });
}

template <class T, class D>
void redistribute(Context<D>& ctx, const ProcessGrid& grid, std::type_identity_t<BlockCyclicView<const T, D>> A,
                  View<T, D> rows) {
    Redistribution<T, D> plan(ctx, grid, A.layout, rows, A.local);
    const int me = grid.comm().rank();
    plan.exchange([&](int from, int to) { return plan.words(to, from); },
                  [&](int to, MatrixView<T, D> M) {
                      plan.with_message(to, me, false, A.local, M, [&](auto X, auto part) { copy<T>(ctx, X, part); });
                  },
                  [&](int from, MatrixView<T, D> M) {
                      plan.with_message(me, from, true, rows, M, [&](auto X, auto part) { copy<T>(ctx, part, X); });
                  });
}

#define QUOIN_INSTANTIATE(T, D)                                                                         \
    template BlockCyclicQR<T, D> from_lapack<T>(Context<D>&, const ProcessGrid&, BlockCyclicView<T, D>, \
                                                MatrixView<const T, D>, Index);
QUOIN_FOR_EACH_HOST_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

#define QUOIN_INSTANTIATE(T, D)                                                                                       \
    template class BlockCyclicQR<T, D>;                                                                               \
    template BlockCyclicQR<T, D> qr<T, D>(Context<D>&, const ProcessGrid&, BlockCyclicView<const T, D>, Index);       \
    template BlockCyclicQR<T, D> qr_in_place<T, D>(Context<D>&, const ProcessGrid&, BlockCyclicView<T, D>, Index);    \
    template void redistribute<T, D>(Context<D>&, const ProcessGrid&, MatrixView<const T, D>, BlockCyclicView<T, D>); \
    template void redistribute<T, D>(Context<D>&, const ProcessGrid&, BlockCyclicView<const T, D>, MatrixView<T, D>);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
