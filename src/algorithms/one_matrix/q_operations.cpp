// The operations of a factorization, on either holder of Q.

#include <fmt/format.h>

#include <algorithm>

#include "algorithms/one_matrix/factorization.hpp"
#include "algorithms/shared/column_scaling.hpp"
#include "algorithms/shared/matrix_checks.hpp"
#include "devices.hpp"

namespace quoin {

template <class T, class D>
Index QR<T, D>::rows() const {
    return inside_->plan.rows;
}
template <class T, class D>
Index QR<T, D>::cols() const {
    return inside_->plan.cols;
}
template <class T, class D>
std::span<const Index> QR<T, D>::permutation() const {
    return inside_->order;
}
template <class T, class D>
const Plan& QR<T, D>::plan() const {
    return inside_->plan;
}
template <class T, class D>
const Report& QR<T, D>::report() const {
    return inside_->report;
}

namespace {

/// Returns the arithmetic of a product of op(Q), in blocks of `width` reflectors, with p columns.
template <class D>
Arithmetic product_arithmetic(const Plan& plan, Index width, Index p) {
    const bool pays = Tuning<D>::corrected_product_pays(plan.rows, width, p);
    return pays && plan.products == Arithmetic::Corrected ? Arithmetic::Corrected : Arithmetic::Native;
}
/// Returns the arithmetic of a product of op(Q(r, c)) with p columns.
template <class D>
Arithmetic block_arithmetic(const Plan& plan, Range r, Range c, Index p) {
    const bool pays = Tuning<D>::corrected_block_pays(r.size(), c.size(), std::min(plan.rows, plan.cols), p);
    return pays && plan.products == Arithmetic::Corrected ? Arithmetic::Corrected : Arithmetic::Native;
}

/// Returns Q D for the signs D of the first columns, or Q if there are none.
template <class T, class D>
Matrix<T, D> flipped(Context<D>& ctx, const Matrix<T, D>& signs, Matrix<T, D>&& Q) {
    if (signs.data()) flip_columns<T>(ctx, signs.view(), Q.view());
    return std::move(Q);
}

}  // namespace

template <class T, class D>
MatrixView<T, D> Factorization<T, D>::r() {
    if (ReflectorQ<T, D>* q = reflectors()) return q->forest.A.view().row_block({0, k()});
    if (ExplicitQ<T, D>* q = explicit_q()) return q->R.view();
    if (TreeQ<T, D>* q = tree_q()) return q->R.view();
    if (RAlone<T, D>* alone = std::get_if<RAlone<T, D>>(&holder)) return alone->R.view();
    return {};
}

template <class T, class D>
FullWY<T, D> Factorization<T, D>::full_wy() const {
    const Index k = this->k();
    FullWY<T, D> wy;
    if (!reflectors() || k == 0) return wy;
    const auto& [forest, full_t] = *reflectors();
    if (!forest.lapack_format() || (full_t.rows() == 0 && forest.panels.size() > 1)) return wy;
    wy.V = forest.A.view().col_block({0, k});
    wy.Tf = full_t.rows() > 0 ? full_t.view().row_block({0, k}) : forest.panel_t(forest.panels.front());
    if (full_t.rows() > 0 && plan.q.full_t->keep_s) wy.S = full_t.view();
    return wy;
}

template <class T, class D>
void Factorization<T, D>::require_q(const char* operation) const {
    if (plan.q == QForm::None) {
        throw InvalidArgument(
            fmt::format("{} needs Q, and the factorization was asked for R alone (q = none)", operation));
    }
    require_held(operation);
}

template <class T, class D>
void Factorization<T, D>::require_held(const char* operation) const {
    if (std::holds_alternative<std::monostate>(holder)) {
        throw InvalidArgument(fmt::format("{} of a factorization whose factors were taken", operation));
    }
}

template <class T, class D>
Matrix<T, D> QR<T, D>::r(Context<D>& ctx) const {
    inside_->require_held("r");
    Matrix<T, D> R(ctx, inside_->k(), cols());
    if (const auto* small = inside_->small_q()) {
        small->batch->unpack(ctx, Factor::R, one_member, one_of(R.view()));
    } else {
        copy_triangle<T>(ctx, inside_->r(), R.view());
    }
    if (inside_->signs.data()) flip_triangle<T, D>(ctx, inside_->signs.view(), R.view());
    return R;
}

template <class T, class D>
void QR<T, D>::apply_q(Context<D>& ctx, Side side, Op op, MatrixView<T, D> C) const {
    inside_->require_q("apply_q");
    check_matrix(MatrixView<const T, D>(C));
    const Index m = rows(), touched = side == Side::Left ? C.rows : C.cols;
    if (touched != m) {
        throw InvalidArgument(fmt::format("apply_q: C is {} x {}, and Q is {} x {}", C.rows, C.cols, m, m));
    }
    if (C.empty() || inside_->k() == 0) return;
    const Span span(ctx, "apply Q");
    const auto wy = inside_->full_wy();
    const auto unsigned_from_left = [&](Op op_left, MatrixView<T, D> B) {
        if (const auto* basis = inside_->explicit_q()) {
            return apply_basis<T, D>(ctx, basis->Q.view(), basis->kernel(ctx), op_left, B);
        }
        if (const auto* small = inside_->small_q(); small && SmallBatch<T, D>::applies_alone(m, B.cols)) {
            return small->batch->apply_q(ctx, op_left, one_member, one_of(MatrixView<const T, D>(B)), one_of(B));
        }
        if (const auto* tree = inside_->tree_q()) return tree->apply_q(ctx, op_left, B);
        const Index width = wy.V.data ? wy.V.cols : inside_->plan.panel_width;
        const Arithmetic arithmetic = product_arithmetic<D>(inside_->plan, width, B.cols);
        const UnitColumns<T, D> unit(ctx, arithmetic, B);
        if (wy.V.data) {
            apply_full_wy<T, D>(ctx, wy, op_left, B, arithmetic);
        } else {
            apply_forest<T, D>(ctx, inside_->reflectors(ctx)->forest.view(), op_left, B, arithmetic);
        }
        unit.restore(ctx, B);
    };
    const auto from_left = [&](Op op_left, MatrixView<T, D> B) {
        const auto signs = std::as_const(inside_->signs).view();
        const auto flip = [&] { flip_rows<T>(ctx, signs, B.row_block({0, signs.rows})); };
        if (signs.data && op_left == Op::None) flip();
        unsigned_from_left(op_left, B);
        if (signs.data && op_left == Op::Transpose) flip();
    };
    if (side == Side::Left) return from_left(op, C);
    apply_from_right(ctx, op, C, from_left);
}

template <class T, class D>
Matrix<T, D> QR<T, D>::form_q(Context<D>& ctx) const {
    inside_->require_q("form_q");
    if (const auto* basis = inside_->explicit_q()) return copy_of<T, D>(ctx, basis->Q.view());
    if (const auto* small = inside_->small_q()) {
        Matrix<T, D> Q(ctx, rows(), std::min(rows(), cols()));
        small->batch->form_q(ctx, one_member, one_of(Q.view()));
        return flipped(ctx, inside_->signs, std::move(Q));
    }
    if (const auto* tree = inside_->tree_q()) {
        Matrix<T, D> Q(ctx, rows(), inside_->k());
        tree->form_q(ctx, Q.view());
        return flipped(ctx, inside_->signs, std::move(Q));
    }
    const ReflectorForest<T, D>& held = inside_->reflectors()->forest;
    ReflectorForest<T, D> forest;
    forest.panels = held.panels;
    forest.A = copy_of<T, D>(ctx, held.A.view().col_block({0, inside_->k()}));
    forest.Tf = copy_of<T, D>(ctx, held.Tf.view());
    form_q_in_place(ctx, forest.view(), inside_->plan.arithmetic);
    return flipped(ctx, inside_->signs, std::move(forest.A));
}

template <class T, class D>
Matrix<T, D> QR<T, D>::take_q(Context<D>& ctx) && {
    inside_->require_q("take_q");
    Matrix<T, D> Q;
    if (auto* basis = inside_->explicit_q()) {
        Q = std::move(basis->Q);
    } else if (auto* small = inside_->small_q(); small && small->memory.rows() > 0 && cols() <= rows()) {
        Q = std::move(small->memory);
        small->batch->form_q(ctx, one_member, one_of(Q.view()));
        Q = flipped(ctx, inside_->signs, std::move(Q));
    } else if (small || inside_->tree_q() || cols() > inside_->k()) {
        Q = form_q(ctx);
    } else {
        auto& forest = inside_->reflectors()->forest;
        form_q_in_place(ctx, forest.view(), inside_->plan.arithmetic);
        Q = flipped(ctx, inside_->signs, std::move(forest.A));
    }
    inside_->holder.template emplace<std::monostate>();
    return Q;
}

template <class T, class D>
ThinQR<T, D> QR<T, D>::take_thin(Context<D>& ctx) && {
    auto& holder = inside_->holder;
    ThinQR<T, D> thin;
    if (auto* alone = std::get_if<RAlone<T, D>>(&holder)) {
        thin.R = std::move(alone->R);
    } else if (auto* basis = inside_->explicit_q()) {
        thin = {std::move(basis->Q), std::move(basis->R)};
    } else {
        thin.R = r(ctx);
        thin.Q = std::move(*this).take_q(ctx);
    }
    holder.template emplace<std::monostate>();
    return thin;
}

namespace {

template <class T, class D>
void check_block(const QR<T, D>& f, const char* operation, Range r, Range c) {
    const Index m = f.rows();
    if (r.begin < 0 || r.end > m || r.size() < 0 || c.begin < 0 || c.end > m || c.size() < 0) {
        throw InvalidArgument(fmt::format("{}: rows [{}, {}) and columns [{}, {}) do not lie in the {} x {} Q",
                                          operation, r.begin, r.end, c.begin, c.end, m, m));
    }
}

}  // namespace

template <class T, class D>
Matrix<T, D> QR<T, D>::q_block(Context<D>& ctx, Range r, Range c) const {
    inside_->require_q("q_block");
    check_block(*this, "q_block", r, c);
    const Index m = rows();
    Matrix<T, D> B(ctx, r.size(), c.size());
    if (B.view().empty()) return B;
    const Span span(ctx, "block of Q");
    if (const auto* basis = inside_->explicit_q(); basis && c.end <= basis->Q.cols()) {
        copy<T>(ctx, std::as_const(basis->Q).view().block(r, c), B.view());
        return B;
    }
    if (const auto wy = inside_->full_wy(); wy.V.data && !inside_->signs.data()) {
        const Arithmetic arithmetic = block_arithmetic<D>(inside_->plan, r, c, std::min(r.size(), c.size()));
        form_full_wy_block<T, D>(ctx, wy, r, c, B.view(), arithmetic);
        return B;
    }
    // Q E_c restricted to the rows r, or (Qᵀ E_r)ᵀ restricted to the columns c: whichever has fewer columns
    const bool by_cols = c.size() <= r.size();
    const Range unit = by_cols ? c : r;
    Matrix<T, D> E(ctx, m, unit.size());
    set_identity<T>(ctx, -unit.begin, E.view());
    apply_q(ctx, Side::Left, by_cols ? Op::None : Op::Transpose, E.view());
    if (by_cols) {
        copy<T>(ctx, E.view().row_block(r), B.view());
    } else {
        adjoint<T>(ctx, E.view().row_block(c), B.view());
    }
    return B;
}

template <class T, class D>
Matrix<T, D> QR<T, D>::apply_q_block(Context<D>& ctx, Op op, Range r, Range c, MatrixView<const T, D> C) const {
    inside_->require_q("apply_q_block");
    check_block(*this, "apply_q_block", r, c);
    check_matrix(C);
    const Range from = op == Op::None ? c : r, to = op == Op::None ? r : c;
    if (C.rows != from.size()) {
        throw InvalidArgument(fmt::format("apply_q_block: C is {} x {}, and op(Q(rows, cols)) is {} x {}", C.rows,
                                          C.cols, to.size(), from.size()));
    }
    Matrix<T, D> B(ctx, to.size(), C.cols);
    if (B.view().empty()) return B;
    const Span span(ctx, "apply block of Q");
    if (const auto wy = inside_->full_wy(); wy.V.data && !inside_->signs.data()) {
        const Arithmetic arithmetic = block_arithmetic<D>(inside_->plan, r, c, C.cols);
        if (arithmetic == Arithmetic::Native) {
            apply_full_wy_block<T, D>(ctx, wy, op, r, c, C, B.view(), arithmetic);
            return B;
        }
        Matrix<T, D> CD = copy_of(ctx, C);
        const UnitColumns<T, D> unit(ctx, arithmetic, CD.view());
        apply_full_wy_block<T, D>(ctx, wy, op, r, c, CD.view(), B.view(), arithmetic);
        unit.restore(ctx, B.view());
        return B;
    }
    // the rows `to` of op(Q) [0; C; 0]
    Matrix<T, D> E(ctx, rows(), C.cols);
    set_zero(ctx, E.view());
    copy<T>(ctx, C, E.view().row_block(from));
    apply_q(ctx, Side::Left, op, E.view());
    copy<T>(ctx, E.view().row_block(to), B.view());
    return B;
}

#define QUOIN_INSTANTIATE(T, D)          \
    template struct Factorization<T, D>; \
    template class QR<T, D>;
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
