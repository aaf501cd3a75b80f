#include "lapack/in_place.hpp"

#include "algorithms/one_matrix/blocked_householder.hpp"
#include "algorithms/one_matrix/full_t.hpp"
#include "algorithms/shared/column_scaling.hpp"
#include "devices.hpp"
#include "lapack/tuning.hpp"

namespace quoin::lapack {

namespace {

/// Panels of `width` columns in LAPACK's format over min(m, n) columns.
std::vector<Panel> lapack_panels(Index m, Index n, Index width) { return panels_of(householder_plan(m, n, width)); }

/// T of every panel of V, rebuilt from tau.
template <class T>
Matrix<T> rebuild_t(Context<Host>& ctx, std::span<const Panel> panels, MatrixView<const T> V, const T* tau) {
    const Index k = V.cols;
    Matrix<T> Tf(panels.empty() ? 0 : panels.front().tree.width, k);
    const ForestView<const T, Host> reflectors{panels, V, {}};
    const ForestView<T, Host> factors{panels, {}, Tf.view()};
    const MatrixView<const T> taus(tau, k, 1);
    for (const Panel& panel : panels) {
        compact_wy<T>(ctx, reflectors.panel_a(panel), taus.row_block({panel.first, panel.first + panel.tree.width}),
                      factors.panel_t(panel));
    }
    return Tf;
}

/// A copy of Tf with zeros below the diagonals of its blocks. In a caller's T any values may be there.
template <class T>
Matrix<T> upper_factors(Index nb, MatrixView<const T> Tf) {
    Matrix<T> upper(Tf.rows, Tf.cols);
    for (Index j = 0; j < Tf.cols; ++j) {
        const Index top = j % nb + 1;
        std::copy_n(Tf.at(0, j), top, upper.view().at(0, j));
        std::fill_n(upper.view().at(top, j), Tf.rows - top, T(0));
    }
    return upper;
}

/// C := op(Q) C or C := C op(Q). Columns of C, or rows, that are out of range are scaled by powers of two.
template <class T>
void apply_panels(Context<Host>& ctx, Side side, Op op, ForestView<const T, Host> forest, MatrixView<T> C) {
    const auto from_left = [&](Op op_left, MatrixView<T> B) {
        const ColumnsInRange<T, Host> range(ctx, B);
        apply_forest<T, Host>(ctx, forest, op_left, B);
        range.unscale(ctx, B, {0, B.cols});
    };
    if (side == Side::Left) return from_left(op, C);
    apply_from_right(ctx, op, C, from_left);
}

}  // namespace

template <class T>
Plan plan_in_place(Index m, Index n, Index nb) {
    Options options;
    if (nb > 0) options.method = BlockedHouseholder{nb};
    options.q = QForm::Reflectors;
    options.check_finite = false;
    Plan plan = plan_qr<T>(Context<Host>(1), m, n, options);
    if (plan.method == Method::CholeskyQR2) {
        // one tall panel, which CholeskyQR2 factors first, too
        plan.method = Method::BlockedHouseholder;
        plan.inner_block = plan.panel_width;
        HouseholderPlan panels{.reconstruct_rows = Tuning<Host>::reconstruct_rows(plan.panel_width, scalar_kind<T>)};
        panels.tree = plan.tree();
        plan.choices = panels;
    }
    return plan;
}

template <class T>
double reflector_workspace(Index rows, Index cols, Index k) {
    // T, and the partial sums of VᵀV or VᵀC that a panel takes; the transposed strip of C
    const double width = panel_width(rows, k);
    return sizeof(T) * (width * k + Tuning<Host>::row_chunks * width * std::max(width, 1.0 * cols) +
                        1.0 * Tuning<Host>::transposed_rows * rows);
}

template <class T>
const char* factor_in_place(Context<Host>& ctx, const Plan& plan, MatrixView<T> A, MatrixView<T> Tf) {
    ColumnScaling<T, Host> scaling(ctx, A);
    const bool scaled = scaling.needed(ctx, false);
    if (scaled) scaling.scale(ctx, A);
    factor_blocked_householder(ctx, plan, ForestView<T, Host>{panels_of(plan), A, Tf});
    if (scaled) scaling.unscale(ctx, Part::Upper, A.row_block({0, std::min(A.rows, A.cols)}));
    return plan.panel_width >= A.cols && is_tall_panel(plan, A.rows) ? "one panel, by reconstruction" : "householder";
}

template <class T>
const char* factor_in_place(Context<Host>& ctx, Index nb, MatrixView<T> A, MatrixView<T> Tf) {
    const Index k = std::min(A.rows, A.cols);
    const Plan plan = plan_in_place<T>(A.rows, A.cols, nb);
    if (nb < k || is_tall_panel(plan, A.rows)) return factor_in_place<T>(ctx, plan, A, Tf);
    const Plan narrow = plan_in_place<T>(A.rows, A.cols);
    if (narrow.panel_width == k) return factor_in_place<T>(ctx, narrow, A, Tf);
    // one T of several panels
    Matrix<T> panels_t(narrow.panel_width, k);
    factor_in_place<T>(ctx, narrow, A, panels_t.view());
    join_t<T, Host>(ctx, ForestView<const T, Host>{panels_of(narrow), A, panels_t.view()}, Tf.row_block({0, k}));
    return "householder, T joined";
}

template <class T>
const char* factor_in_place(Context<Host>& ctx, const Plan& plan, MatrixView<T> A, T* tau) {
    const Index nb = plan.panel_width;
    Matrix<T> Tf(nb, std::min(A.rows, A.cols));
    const char* method = factor_in_place<T>(ctx, plan, A, Tf.view());
    for (Index j = 0; j < Tf.cols(); ++j) tau[j] = Tf(j % nb, j);
    return method;
}

template <class T>
void form_q_in_place(Context<Host>& ctx, Index k, MatrixView<T> A, const T* tau) {
    const Index m = A.rows, n = A.cols;
    const auto panels = lapack_panels(m, k, panel_width(m, k));
    Matrix<T> Tf = rebuild_t<T>(ctx, panels, A.col_block({0, k}), tau);
    set_identity<T>(ctx, -k, A.col_block({k, n}));
    quoin::form_q_in_place(ctx, ForestView<T, Host>{panels, A, Tf.view()});
}

template <class T>
void form_q_in_place(Context<Host>& ctx, Index nb, MatrixView<T> A, MatrixView<const T> Tf) {
    const auto panels = lapack_panels(A.rows, A.cols, nb);
    Matrix<T> upper = upper_factors<T>(nb, Tf);
    quoin::form_q_in_place(ctx, ForestView<T, Host>{panels, A, upper.view()});
}

template <class T>
void apply_in_place(Context<Host>& ctx, Side side, Op op, MatrixView<const T> V, const T* tau, MatrixView<T> C) {
    const auto panels = lapack_panels(V.rows, V.cols, panel_width(V.rows, V.cols));
    const Matrix<T> Tf = rebuild_t<T>(ctx, panels, V, tau);
    apply_panels<T>(ctx, side, op, {panels, V, Tf.view()}, C);
}

template <class T>
void apply_in_place(Context<Host>& ctx, Side side, Op op, Index nb, MatrixView<const T> V, MatrixView<const T> Tf,
                    MatrixView<T> C) {
    const auto panels = lapack_panels(V.rows, V.cols, nb);
    const Matrix<T> upper = upper_factors<T>(nb, Tf);
    apply_panels<T>(ctx, side, op, {panels, V, upper.view()}, C);
}

#define QUOIN_INSTANTIATE(T)                                                                                   \
    template Plan plan_in_place<T>(Index, Index, Index);                                                       \
    template double reflector_workspace<T>(Index, Index, Index);                                               \
    template const char* factor_in_place<T>(Context<Host>&, const Plan&, MatrixView<T>, T*);                   \
    template const char* factor_in_place<T>(Context<Host>&, const Plan&, MatrixView<T>, MatrixView<T>);        \
    template void form_q_in_place<T>(Context<Host>&, Index, MatrixView<T>, const T*);                          \
    template void form_q_in_place<T>(Context<Host>&, Index, MatrixView<T>, MatrixView<const T>);               \
    template void apply_in_place<T>(Context<Host>&, Side, Op, MatrixView<const T>, const T*, MatrixView<T>);   \
    template const char* factor_in_place<T>(Context<Host>&, Index, MatrixView<T>, MatrixView<T>);              \
    template void apply_in_place<T>(Context<Host>&, Side, Op, Index, MatrixView<const T>, MatrixView<const T>, \
                                    MatrixView<T>);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin::lapack
