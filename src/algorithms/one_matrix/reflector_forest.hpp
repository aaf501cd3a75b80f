#pragma once

// Q as panels of reflectors, each a reduction tree: its memory, and products with it.

#include <algorithm>
#include <span>
#include <vector>

#include "algorithms/one_matrix/panel_layout.hpp"
#include "primitives.hpp"

namespace quoin {

/// Q as a list of panels, each a reduction tree. A has V, and R above it; Tf has T in inner blocks of equal height. One
/// leaf a panel is LAPACK's format; one panel is TSQR; several of both is CAQR. Somebody else owns the memory.
template <class T, class D>
struct ForestView {
    std::span<const Panel> panels;
    MatrixView<T, D> A;
    MatrixView<T, D> Tf;

    MatrixView<T, D> panel_a(const Panel& p) const {
        return A.block({p.first, A.rows}, {p.first, p.first + p.tree.width});
    }
    MatrixView<T, D> panel_t(const Panel& p) const {
        return Tf.block({0, std::min(p.tree.inner_block, p.tree.width)}, {p.t_col, p.t_col + p.tree.t_cols()});
    }
    bool lapack_format() const {
        for (const Panel& p : panels) {
            if (!p.tree.lapack_panel()) return false;
        }
        return true;
    }
    /// Returns the panels' factors. Only for LAPACK's format.
    std::vector<PanelFactors<std::remove_const_t<T>, D>> factors() const {
        std::vector<PanelFactors<std::remove_const_t<T>, D>> all;
        all.reserve(panels.size());
        for (const Panel& p : panels) all.push_back({panel_a(p), panel_t(p), p.first});
        return all;
    }
};

/// A ForestView with its memory.
template <class T, class D>
struct ReflectorForest {
    std::vector<Panel> panels;
    Matrix<T, D> A;
    Matrix<T, D> Tf;

    ForestView<T, D> view() { return {panels, A.view(), Tf.view()}; }
    ForestView<const T, D> view() const { return {panels, A.view(), Tf.view()}; }
    MatrixView<T, D> panel_a(const Panel& p) { return view().panel_a(p); }
    MatrixView<const T, D> panel_a(const Panel& p) const { return view().panel_a(p); }
    MatrixView<T, D> panel_t(const Panel& p) { return view().panel_t(p); }
    MatrixView<const T, D> panel_t(const Panel& p) const { return view().panel_t(p); }
    bool lapack_format() const { return view().lapack_format(); }
};

/// Lays out the panels, with memory for their T factors.
template <class T, class D>
void lay_out_panels(Context<D>& ctx, const Plan& plan, ReflectorForest<T, D>& forest);

/// C := op(Q_panel) C. C has the panel's rows. `arithmetic` is for a panel in LAPACK's format, as all are on a GPU.
template <class T, class D>
void apply_tree(Context<D>& ctx, const PanelTree& tree, Op op, MatrixView<const T, D> V, MatrixView<const T, D> Tf,
                MatrixView<T, D> C, Arithmetic arithmetic = Arithmetic::Native);

/// C := op(Q) C. C has m rows. `arithmetic` is for panels in LAPACK's format.
template <class T, class D>
void apply_forest(Context<D>& ctx, ForestView<const T, D> forest, Op op, MatrixView<T, D> C,
                  Arithmetic arithmetic = Arithmetic::Native);

/// C := C op(Q) = (op(Q)ᵀ Cᵀ)ᵀ, some rows of C at a time. C has m columns. `from_left(op, B)` is B := op(Q) B.
template <class T, class D, class FromLeft>
void apply_from_right(Context<D>& ctx, Op op, MatrixView<T, D> C, FromLeft from_left) {
    const Index step = std::min<Index>(C.rows, Tuning<D>::transposed_rows);
    Matrix<T, D> Ct(ctx, C.cols, step);
    for (Index i = 0; i < C.rows; i += step) {
        const auto rows_of_c = C.row_block({i, std::min(C.rows, i + step)});
        const auto B = Ct.view().col_block({0, rows_of_c.rows});
        adjoint<T>(ctx, rows_of_c, B);
        from_left(op == Op::None ? Op::Transpose : Op::None, B);
        adjoint<T>(ctx, B, rows_of_c);
    }
}

/// Writes Q to the first min(m, columns) columns of A, in place of the reflectors. If A has more columns than the
/// panels, A's columns right of them are columns of the unit matrix on entry. `arithmetic` is for panels in LAPACK's
/// format. If E (n×n, upper triangular) has data, writes Q [E; 0] in place of Q, for one panel.
template <class T, class D>
void form_q_in_place(Context<D>& ctx, ForestView<T, D> forest, Arithmetic arithmetic = Arithmetic::Native,
                     MatrixView<const T, D> E = {});

}  // namespace quoin
