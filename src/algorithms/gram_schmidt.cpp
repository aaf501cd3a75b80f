// Gram-Schmidt by halves. [A₁ A₂] = [Q₁ Q₂] [R₁₁ R₁₂; 0 R₂₂]: A₁ = Q₁R₁₁, A₂ := A₂ − Q₁R₁₂, A₂ = Q₂R₂₂, with
//
//     R₁₂ = Q₁ᵀA₂         classical (Zhang, Baharouei, Wu 2020; Zhang and Wu 2021)
//     R₁₂ = L⁻¹Q₁ᵀA₂      modified, L = I + the strictly lower triangle of Q₁ᵀQ₁:
//
// (I − q_k q_kᵀ)…(I − q_1 q_1ᵀ) = I − Q₁L⁻¹Q₁ᵀ, so this is modified Gram-Schmidt of one column after the other in products of
// matrices (Björck 1967, Barlow 2019), whatever the sizes of the parts. Modified Gram-Schmidt takes L for each panel by
// itself, classical Gram-Schmidt all of a half at once. docs/algorithms.md, section 12, has what follows from either.

#include "algorithms/gram_schmidt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "algorithms/solver_steps.hpp"
#include "quoin/gram_schmidt.hpp"

namespace quoin {

namespace {

/// A column that keeps this much of its norm has lost no more than half a bit to cancellation: Kahan and Parlett's criterion
/// (Parlett 1980, section 6.9) with the constant of Daniel, Gragg, Kaufman and Stewart (1976).
const double enough = std::sqrt(0.5);

/// After two passes what is left are columns whose projection was rounding error, and random ones that completed Q: each
/// further pass leaves orthonormal what it does not shorten.
constexpr int most_passes = 8;

}  // namespace

/// One call's operands.
template <class T, class D>
struct GramSchmidtBasis<T, D>::Task {
    MatrixView<T, D> Q, R;
    const Done& done;
};

template <class T, class D>
GramSchmidtBasis<T, D>::GramSchmidtBasis(Context<D>& ctx, const Plan& plan, Index capacity)
    : plan_(plan), verdict_(ctx, 1, 1) {
    reserve(ctx, capacity);
}

template <class T, class D>
void GramSchmidtBasis<T, D>::reserve(Context<D>& ctx, Index capacity) {
    if (!modified() || capacity <= L_.cols()) return;
    Matrix<T, D> L(ctx, plan_.panel_width, capacity);
    set_zero(ctx, L.view());
    copy<T>(ctx, L_.view(), L.view().col_block({0, L_.cols()}));
    L_ = std::move(L);
}

template <class T, class D>
void GramSchmidtBasis<T, D>::truncate(Index k) {
    while (!panels_.empty() && panels_.back().begin >= k) panels_.pop_back();
    if (!panels_.empty()) panels_.back().end = std::min(panels_.back().end, k);
}

template <class T, class D>
typename GramSchmidtBasis<T, D>::Outcome GramSchmidtBasis<T, D>::orthonormalize(Context<D>& ctx, MatrixView<T, D> Q,
                                                                                MatrixView<T, D> R, Index first,
                                                                                const Done& done) {
    Outcome outcome{first};
    const Range next{first, Q.cols};
    if (next.size() == 0) return outcome;
    write_gate(ctx, verdict_.view(), {});
    project(ctx, Q, {0, first}, Q.col_block(next), R.block({0, first}, next));
    by_halves(ctx, {Q, R, done}, next, outcome);
    return outcome;
}

template <class T, class D>
void GramSchmidtBasis<T, D>::project(Context<D>& ctx, MatrixView<const T, D> Q, Range columns, MatrixView<T, D> W,
                                     MatrixView<T, D> S) const {
    const auto subtract_part = [&](Range part, const MatrixView<const T, D>* L) {
        const auto Q_part = Q.col_block(part);
        const auto S_part = S.row_block({part.begin - columns.begin, part.end - columns.begin});
        multiply_transposed<T>(ctx, Q_part, W, S_part);
        if (L) solve_triangle<T>(ctx, Triangle::UnitLower, Op::None, *L, S_part);
        subtract_product<T>(ctx, Q_part, S_part, W);
    };
    if (columns.size() == 0 || W.cols == 0) return;
    if (!modified()) return subtract_part(columns, nullptr);
    for (const Range panel : panels_) {
        if (panel.begin < columns.begin || panel.end > columns.end) continue;
        const MatrixView<const T, D> L = L_.view().block({0, panel.size()}, panel);
        subtract_part(panel, &L);
    }
}

/// False where no more is wanted.
template <class T, class D>
bool GramSchmidtBasis<T, D>::by_halves(Context<D>& ctx, const Task& task, Range columns, Outcome& outcome) {
    const Index nb = plan_.panel_width, n = columns.size();
    if (n <= nb) {
        throw_if_stopped(ctx);
        outcome.dependent += finish_panel(ctx, task, columns);
        outcome.done = columns.end;
        return !task.done || task.done(columns);
    }
    const Range left{columns.begin, columns.begin + (n / nb + 1) / 2 * nb}, right{left.end, columns.end};
    if (!by_halves(ctx, task, left, outcome)) return false;
    project(ctx, task.Q, left, task.Q.col_block(right), task.R.block(left, right));
    return by_halves(ctx, task, right, outcome);
}

/// The number of its columns that depend on others.
template <class T, class D>
Index GramSchmidtBasis<T, D>::finish_panel(Context<D>& ctx, const Task& task, Range columns) {
    const Index k = columns.begin, w = columns.size();
    const auto W = task.Q.col_block(columns), R = task.R.block({0, columns.end}, columns);
    // A_p = Q S + W,   W = Q' R'
    factor_panel(ctx, W, R, modified() ? l_of(columns) : MatrixView<T, D>());
    Remainders left = completes() ? inspect_remainders<T>(ctx, R) : Remainders{};
    const bool again = plan_.reorthogonalization == Reorthogonalization::Always || (completes() && left.least < enough);
    if (again) {
        const auto R0 = R.row_block({0, k}), R1 = R.row_block({k, columns.end});
        const auto Q = task.Q.col_block({0, k});
        Matrix<T, D> factors(ctx, columns.end, w), minus_R1(ctx, w, w);
        const auto C = factors.view().row_block({0, k}), S = factors.view().row_block({k, columns.end});
        for (int pass = 0;; ++pass) {
            if (pass == most_passes) {
                throw NumericalBreakdown(
                    fmt::format("{}: columns {} to {} are not orthogonal to those before them after {} "
                                "passes",
                                to_string(plan_.method), k, columns.end - 1, most_passes),
                    k);
            }
            // C = QᵀQ', Q' − Q C = Q'' S;  A_p = Q (S + C R') + Q'' (S R')
            multiply_transposed<T>(ctx, Q, W, C);
            subtract_product<T>(ctx, Q, C, W);
            factor_panel(ctx, W, factors.view(), modified() ? l_of(columns) : MatrixView<T, D>());
            copy<T>(ctx, R1, minus_R1.view());
            negate<T>(ctx, minus_R1.view());
            subtract_product<T>(ctx, C, minus_R1.view(), R0);
            multiply_upper<T>(ctx, S, R1, R1);
            if (inspect_remainders<T>(ctx, factors.view()).least >= enough) break;
        }
        left = inspect_remainders<T>(ctx, R);
    }
    if (modified()) add_panel(ctx, task.Q, columns);
    return left.zeros;
}

/// W = Q R by itself, Q in place of W: the last rows of R; those above tell the columns' norms.
template <class T, class D>
void GramSchmidtBasis<T, D>::factor_panel(Context<D>& ctx, MatrixView<T, D> W, MatrixView<T, D> R, MatrixView<T, D> L) {
    using State = typename CholeskyPasses<T, D>::State;
    const Index w = W.cols, k = R.rows - w;
    const auto R1 = R.row_block({k, R.rows});
    if (plan_.gram_schmidt_panel == GramSchmidtPanel::CholeskyQR2) {
        const State state = cholesky_passes<T, D>(ctx, false, true, W, W, R1).state;
        if (state == State::Improved) {
            // W = Q₁R₁, Q₁ = Q R₂
            Matrix<T, D> R2(ctx, R.rows, w);
            set_zero(ctx, R2.view());
            by_columns(ctx, W, R2.view(), {});
            multiply_upper<T>(ctx, R2.view().row_block({k, R.rows}), R1, R1);
        }
        if (state == State::Improved || state == State::Certified) {
            if (!inspect_remainders<T>(ctx, R).dependent) return;
            // W = Q R₁ again: a Gram matrix does not see that a column depends on others
            multiply_triangle<T>(ctx, Side::Right, Triangle::Upper, Op::None, R1, W);
        }
    }
    by_columns(ctx, W, R, L);
}

/// Modified Gram-Schmidt by halves, and at the bottom by columns. L, if it has data, receives I + the strictly lower triangle
/// of QᵀQ.
template <class T, class D>
void GramSchmidtBasis<T, D>::by_columns(Context<D>& ctx, MatrixView<T, D> W, MatrixView<T, D> R, MatrixView<T, D> L) {
    constexpr Index base = Tuning<D>::gram_schmidt_base;
    const Index w = W.cols, k = R.rows - w;
    if (w <= base) {
        orthonormalize_columns<T>(ctx, W, R, completes(), verdict_.view());
        if (const Verdict found = read_gate(ctx, verdict_.view()); found.closed()) {
            throw NumericalBreakdown(fmt::format("{}: column {} depends on those before it to working precision",
                                                 to_string(plan_.method), found.column),
                                     found.column);
        }
        if (L.data) multiply_transposed<T>(ctx, W, W, L);
        return;
    }
    Matrix<T, D> own_l;
    if (!L.data) {
        own_l = Matrix<T, D>(ctx, w, w);
        L = own_l.view();
    }
    const Index half = (w / base + 1) / 2 * base;
    const Range l{0, half}, r{half, w};
    const auto Q1 = W.col_block(l), W2 = W.col_block(r);
    by_columns(ctx, Q1, R.block({0, k + half}, l), L.block(l, l));
    // R₂₁ = 0, R₁₂ = L₁₁⁻¹ Q₁ᵀW₂, W₂ −= Q₁R₁₂, L₂₁ = Q₂ᵀQ₁
    const auto R12 = R.block({k, k + half}, r);
    set_zero(ctx, R.block({k + half, k + w}, l));
    multiply_transposed<T>(ctx, Q1, W2, R12);
    solve_triangle<T>(ctx, Triangle::UnitLower, Op::None, L.block(l, l), R12);
    subtract_product<T>(ctx, Q1, R12, W2);
    by_columns(ctx, W2, R.col_block(r), L.block(r, r));
    multiply_transposed<T>(ctx, W2, Q1, L.block(r, l));
}

/// A panel that is done joins the one before it where both are narrow: Q = [Q₁ Q₂], L = [L₁₁ 0; Q₂ᵀQ₁ L₂₂].
template <class T, class D>
void GramSchmidtBasis<T, D>::add_panel(Context<D>& ctx, MatrixView<const T, D> Q, Range columns) {
    if (panels_.empty() || panels_.back().size() + columns.size() > plan_.panel_width) {
        panels_.push_back(columns);
        return;
    }
    Range& panel = panels_.back();
    const Index w = panel.size(), joined = w + columns.size();
    const auto L = L_.view();
    const Matrix<T, D> L22 = copy_of<T, D>(ctx, L.block({0, columns.size()}, columns));
    copy<T>(ctx, L22.view(), L.block({w, joined}, columns));
    multiply_transposed<T>(ctx, Q.col_block(columns), Q.col_block(panel), L.block({w, joined}, panel));
    panel.end = columns.end;
}

#define QUOIN_INSTANTIATE(T, D) template class GramSchmidtBasis<T, D>;
QUOIN_FOR_EACH_HOST_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
