// Q = I − V T Vᵀ with one T for all columns (Schreiber and Van Loan 1989): joins the panels' T, and multiplies with
// blocks of Q without forming Q. Triangles are multiplied as triangles, and the zeros of V not at all.

#include "algorithms/one_matrix/full_t.hpp"
#include "algorithms/shared/copies.hpp"
#include "devices.hpp"

namespace quoin {

namespace {

/// V or S: the entries on and below the diagonal of an m×k array.
template <class T, class D>
struct Trapezoid {
    MatrixView<const T, D> A;
    Triangle triangle = Triangle::UnitLower;  // V; Lower: S
};

/// Calls `step(J)` for blocks J of the columns [begin, end).
template <class D, class Step>
void for_each_block(Index begin, Index end, Step step) {
    for (Index j = begin; j < end; j += Tuning<D>::wy_block) step(Range{j, std::min(end, j + Tuning<D>::wy_block)});
}

/// W := V(rows, 0:q)ᵀ C for the q rows of W, q <= rows.end.
template <class T, class D>
void inner(Context<D>& ctx, Arithmetic arithmetic, const Trapezoid<T, D>& V, Range rows, MatrixView<const T, D> C,
           MatrixView<T, D> W) {
    const Index q = W.rows, dense = std::min(rows.begin, q);
    if (dense > 0) {
        multiply_transposed<T>(ctx, V.A.block(rows, {0, dense}), C, W.row_block({0, dense}), false, arithmetic);
    }
    for_each_block<D>(dense, q, [&](Range J) {
        // W_J = L_JᵀC_J + V_JᵀC, where V_J starts with the triangle L_J
        const Range below{J.end, rows.end};
        const auto W_J = W.row_block(J);
        copy<T>(ctx, C.row_block({J.begin - rows.begin, J.end - rows.begin}), W_J);
        multiply_triangle<T>(ctx, Side::Left, V.triangle, Op::Transpose, V.A.block(J, J), W_J);
        if (below.size() == 0) return;
        multiply_transposed<T>(ctx, V.A.block(below, J), C.row_block({J.end - rows.begin, C.rows}), W_J, true,
                               arithmetic);
    });
}

/// B := B − V(rows, 0:q) W for the q rows of W, q <= rows.end; W is lost.
template <class T, class D>
void outer(Context<D>& ctx, Arithmetic arithmetic, const Trapezoid<T, D>& V, Range rows, MatrixView<T, D> W,
           MatrixView<T, D> B) {
    const Index q = W.rows, dense = std::min(rows.begin, q);
    if (dense > 0) subtract_product<T>(ctx, V.A.block(rows, {0, dense}), W.row_block({0, dense}), B, arithmetic);
    for_each_block<D>(dense, q, [&](Range J) {
        const Range below{J.end, rows.end};
        const auto W_J = W.row_block(J);
        if (below.size() > 0) {
            subtract_product<T>(ctx, V.A.block(below, J), W_J, B.row_block({J.end - rows.begin, B.rows}), arithmetic);
        }
        multiply_triangle<T>(ctx, Side::Left, V.triangle, Op::None, V.A.block(J, J), W_J);
        subtract<T>(ctx, W_J, B.row_block({J.begin - rows.begin, J.end - rows.begin}));
    });
}

/// W := V(rows, 0:q)ᵀ for the q rows of W, q <= rows.end.
template <class T, class D>
void transpose_rows(Context<D>& ctx, const Trapezoid<T, D>& V, Range rows, MatrixView<T, D> W) {
    const Index q = W.rows, dense = std::min(rows.begin, q);
    adjoint<T>(ctx, V.A.block(rows, {0, dense}), W.row_block({0, dense}));
    if (dense == q) return;
    const auto corner = V.A.block(rows, {dense, q});
    if (V.triangle == Triangle::UnitLower) {
        Matrix<T, D> L = copy_of(ctx, corner);
        set_root<T>(ctx, L.view());
        adjoint<T>(ctx, L.view(), W.row_block({dense, q}));
    } else {
        Matrix<T, D> U(ctx, corner.cols, corner.rows);
        adjoint<T>(ctx, corner, U.view());
        copy_triangle<T>(ctx, U.view(), W.row_block({dense, q}));
    }
}

/// op(Q(r, c)) = op(I(r, c)) − X Y Zᵀ. X has rows `to` and Z rows `from` of V or S. Without S, Y = op(T(0:a, 0:b)).
template <class T, class D>
class BlockOfQ {
public:
    BlockOfQ(const FullWY<T, D>& wy, Op op, Range r, Range c, Arithmetic arithmetic)
        : to(op == Op::None ? r : c),
          from(op == Op::None ? c : r),
          Tf_(wy.Tf),
          op_(op),
          arithmetic_(arithmetic),
          with_s_(wy.S.data) {
        const Trapezoid<T, D> V{wy.V, Triangle::UnitLower}, S{wy.S, Triangle::Lower};
        X_ = with_s_ && op == Op::Transpose ? S : V;
        Z_ = with_s_ && op == Op::None ? S : V;
        b_ = std::min(wy.V.cols, c.end);
        l_ = std::min(b_, r.end);  // T(0:a, 0:b) has zeros below row min(a, b)
    }
    const Range to, from;

    /// B := B − X Y Zᵀ C; B may be C.
    void subtract_from(Context<D>& ctx, MatrixView<const T, D> C, MatrixView<T, D> B) const {
        if (l_ == 0 || C.empty() || B.empty()) return;
        Matrix<T, D> W(ctx, rows_of_w(), C.cols);
        inner<T, D>(ctx, arithmetic_, Z_, from, C, W.view().row_block(rows_before()));
        finish(ctx, W.view(), B);
    }
    /// B := op(Q(r, c)).
    void form(Context<D>& ctx, MatrixView<T, D> B) const {
        set_identity<T>(ctx, to.begin - from.begin, B);
        if (l_ == 0 || B.empty()) return;
        Matrix<T, D> W(ctx, rows_of_w(), from.size());
        transpose_rows<T, D>(ctx, Z_, from, W.view().row_block(rows_before()));
        finish(ctx, W.view(), B);
    }

private:
    Index rows_of_w() const { return with_s_ ? l_ : b_; }
    Range rows_before() const { return {0, with_s_ || op_ == Op::Transpose ? l_ : b_}; }
    Range rows_behind() const { return {0, with_s_ || op_ == Op::None ? l_ : b_}; }

    /// W := Y W, B := B − X W.
    void finish(Context<D>& ctx, MatrixView<T, D> W, MatrixView<T, D> B) const {
        if (!with_s_) multiply_by_t(ctx, W);
        outer<T, D>(ctx, arithmetic_, X_, to, W.row_block(rows_behind()), B);
    }
    void multiply_by_t(Context<D>& ctx, MatrixView<T, D> W) const {
        const Range head{0, l_}, tail{l_, b_};
        const auto T11 = Tf_.block(head, head), T12 = Tf_.block(head, tail);
        const auto W1 = W.row_block(head), W2 = W.row_block(tail);
        if (op_ == Op::Transpose) {
            if (tail.size() > 0) multiply_transposed<T>(ctx, T12, W1, W2);
            multiply_triangle<T>(ctx, Side::Left, Triangle::Upper, Op::Transpose, T11, W1);
        } else {
            multiply_triangle<T>(ctx, Side::Left, Triangle::Upper, Op::None, T11, W1);
            if (tail.size() == 0) return;
            negate<T>(ctx, W2);
            subtract_product<T>(ctx, T12, W2, W1);
        }
    }

    Trapezoid<T, D> X_, Z_;
    MatrixView<const T, D> Tf_;
    Op op_;
    Arithmetic arithmetic_;
    bool with_s_;
    Index b_, l_;
};

/// Joins T of the panels [first, last). Their own T are on its diagonal.
template <class T, class D>
void join_panels(Context<D>& ctx, ForestView<const T, D> forest, Index first, Index last, MatrixView<T, D> Tf) {
    if (last - first < 2) return;
    const auto begin_of = [&](Index s) {
        return s < static_cast<Index>(forest.panels.size()) ? forest.panels[s].first : Tf.cols;
    };
    // halves, but on the right at most a block: T₁₂ and the workspace of V₁ᵀV₂ are no wider
    Index middle = (first + last) / 2;
    while (begin_of(last) - begin_of(middle) > Tuning<D>::wy_block && middle + 1 < last) ++middle;
    join_panels(ctx, forest, first, middle, Tf);
    join_panels(ctx, forest, middle, last, Tf);
    const Range left{begin_of(first), begin_of(middle)}, right{left.end, begin_of(last)};
    join_two<T, D>(ctx, forest.A, left, right, Tf);
}

}  // namespace

template <class T, class D>
void join_two(Context<D>& ctx, MatrixView<const T, D> V, Range left, Range right, MatrixView<T, D> Tf) {
    const Range below{right.end, V.rows};
    const auto T12 = Tf.block(left, right);
    // T₁₂ = −T₁ (V₁ᵀV₂) T₂ with V₂ = [0; L₂; V₂]
    adjoint<T>(ctx, V.block(right, left), T12);
    multiply_triangle<T>(ctx, Side::Right, Triangle::UnitLower, Op::None, V.block(right, right), T12);
    if (below.size() > 0) multiply_transposed<T>(ctx, V.block(below, left), V.block(below, right), T12, true);
    multiply_triangle<T>(ctx, Side::Left, Triangle::Upper, Op::None, Tf.block(left, left), T12);
    multiply_triangle<T>(ctx, Side::Right, Triangle::Upper, Op::None, Tf.block(right, right), T12);
    negate<T>(ctx, T12);
}

template <class T, class D>
void join_t(Context<D>& ctx, ForestView<const T, D> forest, MatrixView<T, D> Tf) {
    set_zero(ctx, Tf);
    for (const Panel& panel : forest.panels) {
        const Range here{panel.first, panel.first + panel.tree.width};
        copy_triangle<T>(ctx, forest.panel_t(panel), Tf.block(here, here));
    }
    join_panels<T, D>(ctx, forest, 0, static_cast<Index>(forest.panels.size()), Tf);
}

template <class T, class D>
void apply_full_wy(Context<D>& ctx, const FullWY<T, D>& wy, Op op, MatrixView<T, D> C, Arithmetic arithmetic) {
    const Range all{0, C.rows};
    // with T, operands are converted to halves once for two products, with S for each
    if (wy.S.data && arithmetic == Arithmetic::Native) {
        return BlockOfQ<T, D>(wy, op, all, all, arithmetic).subtract_from(ctx, C, C);
    }
    // a diagonal block of T is the T of its columns, so products with narrow blocks leave out the zeros of V
    const Index k = wy.V.cols, width = Tuning<D>::wy_block, count = (k + width - 1) / width;
    Matrix<T, D> upper;  // S lies below a diagonal block of T
    if (wy.S.data) upper = Matrix<T, D>(ctx, std::min(k, width), std::min(k, width));
    for (Index s = 0; s < count; ++s) {
        throw_if_stopped(ctx);
        const Index first = (op == Op::Transpose ? s : count - 1 - s) * width;
        const Range J{first, std::min(k, first + width)}, rows{first, C.rows};
        MatrixView<const T, D> T_J = wy.Tf.block(J, J);
        if (wy.S.data) {
            const auto to = upper.view().block({0, J.size()}, {0, J.size()});
            copy_triangle<T>(ctx, T_J, to);
            T_J = to;
        }
        apply_panel<T>(ctx, op, wy.V.block(rows, J), T_J, C.row_block(rows), arithmetic);
    }
}

template <class T, class D>
void apply_full_wy_block(Context<D>& ctx, const FullWY<T, D>& wy, Op op, Range r, Range c, MatrixView<const T, D> C,
                         MatrixView<T, D> B, Arithmetic arithmetic) {
    const BlockOfQ<T, D> Q(wy, op, r, c, arithmetic);
    // B = op(I(r, c)) C
    set_zero(ctx, B);
    const Range common{std::max(r.begin, c.begin), std::min(r.end, c.end)};
    if (common.size() > 0) {
        copy<T>(ctx, C.row_block({common.begin - Q.from.begin, common.end - Q.from.begin}),
                B.row_block({common.begin - Q.to.begin, common.end - Q.to.begin}));
    }
    Q.subtract_from(ctx, C, B);
}

template <class T, class D>
void form_full_wy_block(Context<D>& ctx, const FullWY<T, D>& wy, Range r, Range c, MatrixView<T, D> B,
                        Arithmetic arithmetic) {
    // or its transpose, whichever has less to multiply by T
    if (r.size() < c.size()) {
        Matrix<T, D> Bt(ctx, c.size(), r.size());
        BlockOfQ<T, D>(wy, Op::Transpose, r, c, arithmetic).form(ctx, Bt.view());
        adjoint<T>(ctx, Bt.view(), B);
    } else {
        BlockOfQ<T, D>(wy, Op::None, r, c, arithmetic).form(ctx, B);
    }
}

#define QUOIN_INSTANTIATE(T, D)                                                                              \
    template void join_two<T, D>(Context<D>&, MatrixView<const T, D>, Range, Range, MatrixView<T, D>);       \
    template void join_t<T, D>(Context<D>&, ForestView<const T, D>, MatrixView<T, D>);                       \
    template void apply_full_wy<T, D>(Context<D>&, const FullWY<T, D>&, Op, MatrixView<T, D>, Arithmetic);   \
    template void apply_full_wy_block<T, D>(Context<D>&, const FullWY<T, D>&, Op, Range, Range,              \
                                            MatrixView<const T, D>, MatrixView<T, D>, Arithmetic);           \
    template void form_full_wy_block<T, D>(Context<D>&, const FullWY<T, D>&, Range, Range, MatrixView<T, D>, \
                                           Arithmetic);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
