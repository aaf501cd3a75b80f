#include "lapack/stacked.hpp"

#include <vector>

#include "algorithms/shared/column_scaling.hpp"
#include "host/leaf.hpp"
#include "host/parallel.hpp"
#include "lapack/abi.hpp"
#include "lapack/in_place.hpp"
#include "lapack/tuning.hpp"

namespace quoin::lapack {

namespace {

using namespace host;

/// V of one leaf with zeros below the diagonal of its last l rows: a copy of its own where it has such rows.
template <class T>
struct Trapezoid {
    Trapezoid(Arena::Frame& frame, const Stack& stack, MatrixView<T> V) : stack_(stack), V_(V), view(V) {
        if (stack.l == 0) return;
        using Value = std::remove_const_t<T>;
        const Index n = stack.n;
        MatrixView<Value> copy(frame.take<Value>(stack.rows * n), stack.rows, n);
        for (Index j = 0; j < n; ++j) {
            const Index h = height(j);
            std::copy_n(V.at(0, j), h, copy.at(0, j));
            std::fill_n(copy.at(h, j), stack.rows - h, Value(0));
        }
        view = copy;
    }
    void store() const {
        if (stack_.l == 0) return;
        for (Index j = 0; j < stack_.n; ++j) std::copy_n(view.at(0, j), height(j), V_.at(0, j));
    }

private:
    Index height(Index j) const { return stacked_rows(stack_.l, stack_.rows, j + 1); }
    const Stack& stack_;
    MatrixView<T> V_;

public:
    MatrixView<T> view;
};

/// Columns [c nb, …) of leaf t's reflectors.
template <class T>
BlockReflector<T> block_of(const Stack& s, Index t, Index c, MatrixView<const T> V, MatrixView<const T> Tf) {
    const Index first = c * s.nb, k = std::min(s.nb, s.n - first);
    const Range rows = s.leaf(t);
    return {k,
            nullptr,
            0,
            V.at(rows.begin, first),
            V.ld,
            stacked_rows(s.l, rows.size(), first + k),
            Tf.at(0, t * s.n + first),
            Tf.ld};
}

Index block_count(const Stack& s) { return (s.n + s.nb - 1) / s.nb; }

/// Returns block_of with T copied to `to` (nb×nb) and zeros below its diagonal. In a caller's T any values may be
/// there.
template <class T>
BlockReflector<T> upper_block_of(const Stack& s, Index t, Index c, MatrixView<const T> V, MatrixView<const T> Tf,
                                 T* to) {
    BlockReflector<T> H = block_of(s, t, c, V, Tf);
    copy_upper(H.k, H.k, H.Tk, H.ldt, to, H.k);
    H.Tk = to;
    H.ldt = H.k;
    return H;
}

/// Returns the elements of workspace of `apply_block` for p columns.
Index block_work(Index nb, Index p) { return nb * (nb + 2 * p); }

/// [C_top; C](:, columns) := op(H) [C_top; C](:, columns) for block c of leaf t.
template <class T>
void apply_block(bool transpose, const Stack& s, Index t, Index c, MatrixView<const T> V, MatrixView<const T> Tf,
                 Range columns, MatrixView<T> C_top, MatrixView<T> C, T* work) {
    apply_reflector(transpose, upper_block_of(s, t, c, V, Tf, work), columns.size(), C_top.at(c * s.nb, columns.begin),
                    C_top.ld, C.at(s.leaf(t).begin, columns.begin), C.ld, work + s.nb * s.nb);
}

/// Columns of C that one task takes through all leaves: fewer where there are few, so that there are several tasks.
Index tile_for(Index p) { return p > 4 * tile_cols ? tile_cols : tile_cols / 2; }

/// Applies one leaf of many rows to few columns of C: VᵀC and C − V W by chunks of rows.
template <class T>
void apply_tall_leaf(Context<Host>& ctx, Op op, const Stack& s, Index t, MatrixView<const T> V, MatrixView<const T> Tf,
                     MatrixView<T> C_top, MatrixView<T> C) {
    const Index p = C.cols, blocks = block_count(s);
    const RowChunks chunks(s.leaf(t).size(), tall_leaf_chunk);
    Arena::Frame frame(ctx.state().arena);
    T *parts = frame.take<T>(chunks.count * s.nb * p), *W = frame.take<T>(s.nb * p), *TW = frame.take<T>(s.nb * p),
      *upper = frame.take<T>(s.nb * s.nb);
    T* C_leaf = C.at(s.leaf(t).begin, 0);
    for (Index b = 0; b < blocks; ++b) {
        const Index c = op == Op::Transpose ? b : blocks - 1 - b;
        const BlockReflector<T> H = upper_block_of(s, t, c, V, Tf, upper);
        const Index k = H.k;
        const double flops = 2.0 * H.h * k * p;
        // W = C_top + VᵀC;  W := op(T) W
        for_tasks(team(ctx, flops), chunks.count, [&](Index i) {
            const Range r = chunks[i];
            T* part = parts + i * k * p;
            std::fill_n(part, k * p, T(0));
            inner_blocked(k, p, r.size(), H.V + r.begin, H.ldv, C_leaf + r.begin, C.ld, part, k);
        });
        sum_parts(ctx, k, p, chunks.count, parts, W, k);
        T* top = C_top.at(c * s.nb, 0);
        for (Index j = 0; j < p; ++j) {
            for (Index i = 0; i < k; ++i) W[i + j * k] += top[i + j * C_top.ld];
        }
        multiply_t(op == Op::Transpose, H, p, W, TW);
        // [C_top; C] −= [I; V] W
        for (Index j = 0; j < p; ++j) {
            for (Index i = 0; i < k; ++i) top[i + j * C_top.ld] -= TW[i + j * k];
        }
        for_tasks(team(ctx, flops), chunks.count, [&](Index i) {
            const Range r = chunks[i];
            outer_blocked(r.size(), p, k, H.V + r.begin, H.ldv, TW, k, C_leaf + r.begin, C.ld);
        });
        ctx.state().add_flops(2 * flops);
    }
}

template <class T>
void apply_in_range(Context<Host>& ctx, Op op, const Stack& s, MatrixView<const T> V, MatrixView<const T> Tf,
                    MatrixView<T> C_top, MatrixView<T> C) {
    const Index p = C.cols, leaves = s.leaves();
    const auto leaf_at = [&](Index i) { return op == Op::Transpose ? i : leaves - 1 - i; };
    if (s.l == 0 && s.leaf_rows >= tall_leaf_rows && p <= 4 * tile_cols) {
        for (Index i = 0; i < leaves; ++i) apply_tall_leaf<T>(ctx, op, s, leaf_at(i), V, Tf, C_top, C);
        return;
    }
    const Index tile = tile_for(p), tiles = (p + tile - 1) / tile, blocks = block_count(s);
    const double flops = 4.0 * s.rows * s.n * p;
    Arena::Frame frame(ctx.state().arena);
    const Trapezoid<const T> full(frame, s, V);
    const Team threads = team(ctx, flops);
    ThreadBuffers<T> buffers(frame, threads, block_work(s.nb, tile));
    for_tasks(threads, tiles, [&](Index j) {
        const Range columns{j * tile, std::min(p, (j + 1) * tile)};
        for (Index i = 0; i < leaves; ++i) {
            for (Index b = 0; b < blocks; ++b) {
                const Index c = op == Op::Transpose ? b : blocks - 1 - b;
                apply_block<T>(op == Op::Transpose, s, leaf_at(i), c, full.view, Tf, columns, C_top, C, buffers.mine());
            }
        }
    });
    ctx.state().add_flops(flops);
}

/// [C_top; C] := op(Q) [C_top; C], with columns that are out of range scaled by powers of two.
template <class T>
void apply_from_left(Context<Host>& ctx, Op op, const Stack& s, MatrixView<const T> V, MatrixView<const T> Tf,
                     MatrixView<T> C_top, MatrixView<T> C) {
    ColumnScaling<T, Host> scaling(ctx, Part::All, C_top, C);
    const bool scaled = scaling.needed(ctx, false);
    for (const auto& part : {C_top, C}) {
        if (scaled) scaling.scale(ctx, part);
    }
    apply_in_range<T>(ctx, op, s, V, Tf, C_top, C);
    for (const auto& part : {C_top, C}) {
        if (scaled) scaling.unscale(ctx, Part::All, part);
    }
}

}  // namespace

/// Block c of leaf t is factored when the blocks above it and left of it are, and updates the columns right of it.
/// Blocks on one antidiagonal t + c may be done at once, together with blocks that wait only for these.
template <class T>
void factor_stacked(Context<Host>& ctx, const Stack& s, MatrixView<T> R, MatrixView<T> B, MatrixView<T> Tf) {
    if (s.rows == 0 || s.n == 0) return;
    struct Task {
        Index t, c;     // the block that updates; c = −1: none
        Range columns;  // that the block updates
        bool factors;   // whether `columns` are factored then
    };
    const Index leaves = s.leaves(), blocks = block_count(s), n = s.n, nb = s.nb;
    Arena::Frame frame(ctx.state().arena);
    const Trapezoid<T> trapezoid(frame, s, B);
    const MatrixView<T> V = trapezoid.view;
    // [R; B] D has the same V
    ColumnScaling<T, Host> scaling(ctx, Part::Upper, R, V);
    const bool scaled = scaling.needed(ctx, false);
    if (scaled) {
        scaling.scale_triangle(ctx, R);
        scaling.scale(ctx, V);
    }
    std::vector<Task> tasks;
    for (Index d = -1; d < leaves + blocks - 2; ++d) {
        tasks.clear();
        if (d + 1 < leaves) tasks.push_back({d + 1, -1, {0, std::min(nb, n)}, true});
        double flops = 0;
        const Index c_first = std::max<Index>(0, d - leaves + 1), c_last = std::min(d, blocks - 2);
        for (Index c = c_first; c <= c_last; ++c) {
            tasks.push_back({d - c, c, {(c + 1) * nb, std::min(n, (c + 2) * nb)}, true});
            flops += 4.0 * s.leaf_rows * nb * (n - (c + 1) * nb);
        }
        for (Index c = c_first; c <= c_last; ++c) {
            for (Index j = (c + 2) * nb; j < n; j += tile_cols) {
                tasks.push_back({d - c, c, {j, std::min(n, j + tile_cols)}, false});
            }
        }
        // one block's leaves wait for each other
        const Team threads = blocks == 1 ? Team(ctx, 1) : team(ctx, flops);
        Arena::Frame step(ctx.state().arena);
        ThreadBuffers<T> buffers(step, threads, std::max(factor_work(nb), block_work(nb, std::max(nb, tile_cols))));
        for_tasks(threads, static_cast<Index>(tasks.size()), [&](Index i) {
            const Task& task = tasks[i];
            T* work = buffers.mine();
            if (task.c >= 0) apply_block<T>(true, s, task.t, task.c, V, Tf, task.columns, R, V, work);
            if (!task.factors) return;
            const Index first = task.columns.begin, k = task.columns.size();
            const Range rows = s.leaf(task.t);
            factor_stacked_block(stacked_rows(s.l, rows.size(), first + k), k, R.at(first, first), R.ld,
                                 V.at(rows.begin, first), V.ld, Tf.at(0, task.t * n + first), Tf.ld, work);
        });
        ctx.state().add_flops(flops);
    }
    if (scaled) scaling.unscale(ctx, Part::Upper, R);
    trapezoid.store();
}

template <class T>
void apply_stacked(Context<Host>& ctx, Side side, Op op, const Stack& s, MatrixView<const T> V, MatrixView<const T> Tf,
                   MatrixView<T> C_top, MatrixView<T> C) {
    if (s.rows == 0 || s.n == 0 || C.empty()) return;
    if (side == Side::Left) return apply_from_left<T>(ctx, op, s, V, Tf, C_top, C);
    // [C_top C] op(Q) = (op(Q)ᵀ [C_topᵀ; Cᵀ])ᵀ, some rows at a time
    const Index step = std::min<Index>(C.rows, 4 * tile_cols);
    Matrix<T> strip(s.n + s.rows, step);
    for (Index i = 0; i < C.rows; i += step) {
        const Range rows{i, std::min(C.rows, i + step)};
        const auto B = strip.view().col_block({0, rows.size()});
        const auto B_top = B.row_block({0, s.n}), B_rest = B.row_block({s.n, B.rows});
        transpose<T>(ctx, C_top.row_block(rows), B_top);
        transpose<T>(ctx, C.row_block(rows), B_rest);
        apply_from_left<T>(ctx, op == Op::None ? Op::Transpose : Op::None, s, V, Tf, B_top, B_rest);
        transpose<T>(ctx, B_top, C_top.row_block(rows));
        transpose<T>(ctx, B_rest, C.row_block(rows));
    }
}

template <class T>
void form_stacked(Context<Host>& ctx, const Stack& s, MatrixView<T> V, MatrixView<const T> Tf, MatrixView<T> E) {
    const Index n = s.n, tile = tile_for(n), tiles = (n + tile - 1) / tile;
    set_identity<T>(ctx, 0, E);
    Stack one = s;
    Arena::Frame frame(ctx.state().arena);
    const Team threads = team(ctx, 2.0 * std::min(s.rows, s.leaf_rows) * n * n);
    ThreadBuffers<T> buffers(frame, threads, block_work(s.nb, tile));
    Matrix<T> V_leaf(std::min(s.rows, s.leaf_rows), n);
    for (Index t = s.leaves() - 1; t >= 0; --t) {
        const auto Q = V.row_block(s.leaf(t));
        one.rows = Q.rows;
        const auto V_t = V_leaf.view().row_block({0, Q.rows});
        const auto T_t = Tf.col_block({t * n, (t + 1) * n});
        copy<T>(ctx, Q, V_t);
        const double flops = 2.0 * Q.rows * n * n;
        // [E; Q] := H [E; 0]; block c finds zeros left of column c nb
        for_tasks(threads, tiles, [&](Index j) {
            const Range columns{j * tile, std::min(n, (j + 1) * tile)};
            fill_zero(Q.rows, columns.size(), Q.at(0, columns.begin), Q.ld);
            for (Index c = (columns.end - 1) / s.nb; c >= 0; --c) {
                apply_block<T>(false, one, 0, c, V_t, T_t, {std::max(columns.begin, c * s.nb), columns.end}, E, Q,
                               buffers.mine());
            }
        });
        ctx.state().add_flops(flops);
    }
}

namespace {

/// A matrix in row blocks: its first rows, in LAPACK's format, and the stack of the others.
struct RowBlocks {
    RowBlocks(Index m, Index n, Index mb, Index nb)
        : first(mb > n && mb < m ? mb : m), stack{m - first, n, nb, std::max<Index>(1, mb - n)}, end(m) {}
    Index first;
    Stack stack;
    Index end;

    template <class T>
    MatrixView<T> top(MatrixView<T> A) const {
        return A.row_block({0, first});
    }
    template <class T>
    MatrixView<T> rest(MatrixView<T> A) const {
        return A.row_block({first, end});
    }
    template <class T>
    MatrixView<T> top_t(MatrixView<T> Tf) const {
        return Tf.col_block({0, stack.n});
    }
    template <class T>
    MatrixView<T> rest_t(MatrixView<T> Tf) const {
        return Tf.col_block({stack.n, Tf.cols});
    }
    const char* method() const { return stack.rows > 0 ? "row blocks" : "blocked"; }
};

}  // namespace

template <class T>
const char* factor_row_blocks(Context<Host>& ctx, Index mb, Index nb, MatrixView<T> A, MatrixView<T> Tf) {
    const RowBlocks blocks(A.rows, A.cols, mb, nb);
    const char* method = factor_in_place<T>(ctx, nb, blocks.top(A), blocks.top_t(Tf));
    if (blocks.stack.rows == 0) return method;
    factor_stacked<T>(ctx, blocks.stack, A.row_block({0, A.cols}), blocks.rest(A), blocks.rest_t(Tf));
    return blocks.method();
}

template <class T>
const char* apply_row_blocks(Context<Host>& ctx, Side side, Op op, Index mb, Index nb, MatrixView<const T> V,
                             MatrixView<const T> Tf, MatrixView<T> C) {
    const RowBlocks blocks(V.rows, V.cols, mb, nb);
    const bool left = side == Side::Left;
    const auto part = [&](Range r) { return left ? C.row_block(r) : C.col_block(r); };
    const auto first = [&] {
        apply_in_place<T>(ctx, side, op, nb, blocks.top(V), blocks.top_t(Tf), part({0, blocks.first}));
    };
    const auto stacked = [&] {
        apply_stacked<T>(ctx, side, op, blocks.stack, blocks.rest(V), blocks.rest_t(Tf), part({0, V.cols}),
                         part({blocks.first, V.rows}));
    };
    // QᵀC and C Q begin with the first block
    if (left == (op == Op::Transpose)) {
        first();
        stacked();
    } else {
        stacked();
        first();
    }
    return blocks.method();
}

template <class T>
const char* form_row_blocks(Context<Host>& ctx, Index mb, Index nb, MatrixView<T> A, MatrixView<const T> Tf) {
    const RowBlocks blocks(A.rows, A.cols, mb, nb);
    const Index n = A.cols;
    const auto top = blocks.top(A);
    if (blocks.stack.rows == 0) {
        form_q_in_place<T>(ctx, nb, A, Tf);
    } else {
        const Matrix<T> V = copy_of<T, Host>(ctx, top);
        Matrix<T> E(n, n);
        form_stacked<T>(ctx, blocks.stack, blocks.rest(A), blocks.rest_t(Tf), E.view());
        // Q₁ = Q_first [E; 0]
        copy<T>(ctx, E.view(), top.row_block({0, n}));
        const auto below = top.row_block({n, top.rows});
        fill_zero(below.rows, n, below.data, below.ld);
        apply_in_place<T>(ctx, Side::Left, Op::None, nb, V.view(), blocks.top_t(Tf), top);
    }
    return blocks.method();
}

template <class T>
double stacked_workspace(const Stack& s, Index p) {
    // V with its zeros, or a leaf of it; each thread's work; the strip of C, and 64 partial sums of VᵀC
    const double n = s.n, nb = s.nb, leaf = std::min(s.rows, s.leaf_rows), columns = std::min<Index>(p, 4 * tile_cols);
    const double threads = s.nb < s.n ? lapack::threads() : 1;
    return sizeof(T) * (leaf * n + threads * nb * (3 * nb + 2 * tile_cols) + 4 * tile_cols * (n + s.rows) +
                        (Tuning<Host>::row_chunks + 2) * nb * columns);
}

template <class T>
double row_blocks_workspace(Index m, Index n, Index mb, Index nb, Index p) {
    return plan_in_place<T>(m, n).workspace_bytes + reflector_workspace<T>(m, p, n) +
           stacked_workspace<T>(RowBlocks(m, n, mb, nb).stack, p);
}

#define QUOIN_INSTANTIATE(T)                                                                                         \
    template void factor_stacked<T>(Context<Host>&, const Stack&, MatrixView<T>, MatrixView<T>, MatrixView<T>);      \
    template void apply_stacked<T>(Context<Host>&, Side, Op, const Stack&, MatrixView<const T>, MatrixView<const T>, \
                                   MatrixView<T>, MatrixView<T>);                                                    \
    template void form_stacked<T>(Context<Host>&, const Stack&, MatrixView<T>, MatrixView<const T>, MatrixView<T>);  \
    template const char* factor_row_blocks<T>(Context<Host>&, Index, Index, MatrixView<T>, MatrixView<T>);           \
    template const char* apply_row_blocks<T>(Context<Host>&, Side, Op, Index, Index, MatrixView<const T>,            \
                                             MatrixView<const T>, MatrixView<T>);                                    \
    template const char* form_row_blocks<T>(Context<Host>&, Index, Index, MatrixView<T>, MatrixView<const T>);       \
    template double row_blocks_workspace<T>(Index, Index, Index, Index, Index);                                      \
    template double stacked_workspace<T>(const Stack&, Index);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin::lapack
