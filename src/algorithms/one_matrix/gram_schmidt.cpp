// Gram-Schmidt by halves. [A₁ A₂] = [Q₁ Q₂] [R₁₁ R₁₂; 0 R₂₂]: A₁ = Q₁R₁₁, A₂ := A₂ − Q₁R₁₂, A₂ = Q₂R₂₂, with
//
//     R₁₂ = Q₁ᵀA₂         classical (Zhang, Baharouei, Wu 2020; Zhang and Wu 2021)
//     R₁₂ = L⁻¹Q₁ᵀA₂      modified, L = I + the strictly lower triangle of Q₁ᵀQ₁:
//
// (I − q_k q_kᵀ)…(I − q_1 q_1ᵀ) = I − Q₁L⁻¹Q₁ᵀ, so this is modified Gram-Schmidt of one column after the other in
// products of matrices (Björck 1967, Barlow 2019), whatever the sizes of the parts. Modified Gram-Schmidt takes L for
// each panel by itself, classical Gram-Schmidt all of a half at once. docs/algorithms.md, section 12, has the
// consequences of both.

#include "algorithms/one_matrix/gram_schmidt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "algorithms/one_matrix/cholesky_qr.hpp"
#include "algorithms/shared/copies.hpp"
#include "devices.hpp"
#include "quoin/gram_schmidt.hpp"

namespace quoin {

namespace {

/// A column that keeps this much of its norm has lost no more than half a bit to cancellation: Kahan and Parlett's
/// criterion (Parlett 1980, section 6.9) with the constant of Daniel, Gragg, Kaufman and Stewart (1976).
const double enough = std::sqrt(0.5);

/// Columns whose coefficients on other columns are together at most 1/4 need no repetition: docs/algorithms.md, section
/// 12.
constexpr double max_departure = 1.0 / 16;

/// The largest number of passes. After two passes only two kinds of columns remain: columns whose projection was
/// rounding error, and random ones that completed Q. A column that a further pass does not shorten is orthonormal.
constexpr int max_passes = 8;

}  // namespace

/// One pass over the columns from `first` on. Their coefficients are the columns of R.
template <class T, class D>
struct GramSchmidtBasis<T, D>::Task {
    /// The panels that are projected from all columns before them once more.
    enum class Repeat {
        Never,
        Shortened,  ///< if a column kept less than `enough` of its norm
        Departed,   ///< if the coefficients of all panels that were not repeated would exceed `max_departure`
        Always,
    };
    MatrixView<T, D> Q, R;
    Index first;
    Repeat repeat;
    const Done& done;
    std::vector<bool> orthonormal = {};  ///< panels that are known to be orthonormal by themselves
    double departure = 0;                ///< of the panels that were not repeated

    Range within(Range columns) const { return {columns.begin - first, columns.end - first}; }
    std::size_t panel_of(Range columns, Index width) const {
        return static_cast<std::size_t>((columns.begin - first) / width);
    }
    bool wants_repetition(const Remainders& left) {
        if (repeat == Repeat::Shortened) return left.least < enough;
        if (repeat == Repeat::Always) return true;
        const bool again = !(departure + left.departure <= max_departure);
        if (!again) departure += left.departure;
        return again;
    }
};

template <class T, class D>
GramSchmidtBasis<T, D>::GramSchmidtBasis(Context<D>& ctx, const Plan& plan, Index capacity)
    : plan_(plan), certificate_(ctx, 1, 1) {
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
void GramSchmidtBasis<T, D>::restore(Context<D>& ctx, const std::vector<Range>& panels, MatrixView<const T, D> L) {
    panels_ = panels;
    copy<T>(ctx, L, L_.view().col_block({0, L.cols}));
}

template <class T, class D>
typename GramSchmidtBasis<T, D>::Outcome GramSchmidtBasis<T, D>::orthonormalize(Context<D>& ctx, MatrixView<T, D> Q,
                                                                                MatrixView<T, D> R, Index first,
                                                                                const Done& done) {
    Outcome outcome{first};
    using Repeat = typename Task::Repeat;
    const Range next{first, Q.cols};
    if (next.size() == 0) return outcome;
    write_certificate(ctx, certificate_.view(), {});
    const auto R1 = R.col_block(next);
    const bool always = plan_.gram_schmidt().reorthogonalization == Reorthogonalization::Always;
    if (always && !modified() && !done && next.size() > plan_.panel_width) {
        in_two_passes(ctx, Q, R1, first, outcome);
        return outcome;
    }
    Task task{Q, R1, first, always ? Repeat::Always : completes() ? Repeat::Shortened : Repeat::Never, done};
    one_pass(ctx, task, outcome);
    return outcome;
}

/// Projects columns from the columns before the first, and then by halves.
template <class T, class D>
void GramSchmidtBasis<T, D>::one_pass(Context<D>& ctx, Task& task, Outcome& outcome) {
    const Range next{task.first, task.Q.cols}, before{0, task.first};
    subtract_projection(ctx, task.Q, before, task.Q.col_block(next), task.R.row_block(before),
                        task.repeat == Task::Repeat::Departed);
    by_halves(ctx, task, next, outcome);
}

/// Makes two passes. A₂ = Q R₁ + Q₁R₁₁, [Q Q₁] = [Q Q₂] [I C; 0 S]: R₁ := R₁ + C R₁₁, R₁₁ := S R₁₁.
template <class T, class D>
void GramSchmidtBasis<T, D>::in_two_passes(Context<D>& ctx, MatrixView<T, D> Q, MatrixView<T, D> R, Index first,
                                           Outcome& outcome) {
    const Index n = R.cols;
    const Done nobody;
    Matrix<T, D> second(ctx, R.rows, n);
    const auto M = second.view();
    set_zero(ctx, M);
    Task once{Q, R, first, Task::Repeat::Never, nobody}, again{Q, M, first, Task::Repeat::Departed, nobody};
    one_pass(ctx, once, outcome);
    again.orthonormal = std::move(once.orthonormal);
    one_pass(ctx, again, outcome);
    // R := R − M R₁₁ for M = [−C; I − S], which is small
    negate<T>(ctx, M);
    add_identity<T>(ctx, M.row_block({first, R.rows}));
    Arithmetic arithmetic = plan_.arithmetic;
    if (arithmetic == Arithmetic::Corrected && rounding_suffices(entry_norms<T>(ctx, M).squares, n)) {
        arithmetic = Arithmetic::FP16;
    }
    constexpr Index width = Tuning<D>::r_product_width;
    for (Index j = 0; j < n; j += width) {
        const Range cols{j, std::min(n, j + width)};
        const Matrix<T, D> R11 = copy_of<T, D>(ctx, R.block({first, first + cols.end}, cols));
        const auto subtract_from = [&](Range rows, Index from) {
            const Range inner{from, cols.end};
            subtract_product<T>(ctx, M.block(rows, inner), R11.view().row_block(inner), R.block(rows, cols),
                                arithmetic);
        };
        subtract_from({0, first}, 0);
        for (Index i = 0; i < cols.end; i += width) {
            subtract_from({first + i, first + std::min(cols.end, i + width)}, i);
        }
    }
    outcome.dependent = inspect_remainders<T>(ctx, R).zeros;
}

template <class T, class D>
void GramSchmidtBasis<T, D>::project(Context<D>& ctx, MatrixView<const T, D> Q, Range columns, MatrixView<T, D> W,
                                     MatrixView<T, D> S) const {
    subtract_projection(ctx, Q, columns, W, S, false);
}

/// Projects as `project` does. `again`: W was projected before, and S is small.
template <class T, class D>
void GramSchmidtBasis<T, D>::subtract_projection(Context<D>& ctx, MatrixView<const T, D> Q, Range columns,
                                                 MatrixView<T, D> W, MatrixView<T, D> S, bool again) const {
    const auto subtract_part = [&](Range part, const MatrixView<const T, D>* L) {
        const auto Q_part = Q.col_block(part);
        const auto S_part = S.row_block({part.begin - columns.begin, part.end - columns.begin});
        if (!L) return block_gram_schmidt_step<T>(ctx, Q_part, W, S_part, plan_.arithmetic, again);
        multiply_transposed<T>(ctx, Q_part, W, S_part);
        solve_triangle<T>(ctx, Triangle::UnitLower, Op::None, *L, S_part);
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

/// Returns false if `done` stops the pass.
template <class T, class D>
bool GramSchmidtBasis<T, D>::by_halves(Context<D>& ctx, Task& task, Range columns, Outcome& outcome) {
    const Index nb = plan_.panel_width, n = columns.size();
    if (n <= nb) {
        throw_if_stopped(ctx);
        outcome.dependent += finish_panel(ctx, task, columns);
        outcome.done = columns.end;
        return !task.done || task.done(columns);
    }
    const Range left{columns.begin, columns.begin + (n / nb + 1) / 2 * nb}, right{left.end, columns.end};
    if (!by_halves(ctx, task, left, outcome)) return false;
    subtract_projection(ctx, task.Q, left, task.Q.col_block(right), task.R.block(left, task.within(right)),
                        task.repeat == Task::Repeat::Departed);
    return by_halves(ctx, task, right, outcome);
}

/// Finishes a panel. Returns the number of its columns that depend on other columns.
template <class T, class D>
Index GramSchmidtBasis<T, D>::finish_panel(Context<D>& ctx, Task& task, Range columns) {
    const Index k = columns.begin, w = columns.size();
    const auto W = task.Q.col_block(columns), R = task.R.block({0, columns.end}, task.within(columns));
    // A_p = Q S + W,   W = Q' R'
    const bool may_repeat = task.repeat != Task::Repeat::Never;
    const auto L = modified() ? l_of(columns) : MatrixView<T, D>();
    if (task.repeat == Task::Repeat::Departed && task.orthonormal[task.panel_of(columns, plan_.panel_width)]) {
        // if ‖S‖_F² <= u, Q' = A_p − Q S is still orthonormal, and R' = I
        set_identity<T>(ctx, 0, R.row_block({k, columns.end}));
        const double departure = inspect_remainders<T>(ctx, R).departure;
        if (departure <= Scalar<T>::u) {
            task.departure += departure;
            return 0;
        }
    }
    bool certified = false;
    Remainders left = factor_panel(ctx, W, R, L, may_repeat, certified);
    if (task.repeat == Task::Repeat::Never) task.orthonormal.push_back(certified);
    if (may_repeat && task.wants_repetition(left)) {
        const auto R0 = R.row_block({0, k}), R1 = R.row_block({k, columns.end});
        const auto Q = task.Q.col_block({0, k});
        Matrix<T, D> factors(ctx, columns.end, w), minus_R1(ctx, w, w);
        const auto C = factors.view().row_block({0, k}), S = factors.view().row_block({k, columns.end});
        for (int pass = 0;; ++pass) {
            if (pass == max_passes) {
                throw NumericalBreakdown(
                    fmt::format("{}: columns {} to {} are not orthogonal to those before them after {} "
                                "passes",
                                to_string(plan_.method), k, columns.end - 1, max_passes),
                    k);
            }
            // C = QᵀQ', Q' − Q C = Q'' S;  A_p = Q (S + C R') + Q'' (S R')
            block_gram_schmidt_step<T>(ctx, Q, W, C, plan_.arithmetic, true);
            const Remainders kept = factor_panel(ctx, W, factors.view(), L, true, certified);
            copy<T>(ctx, R1, minus_R1.view());
            negate<T>(ctx, minus_R1.view());
            subtract_product<T>(ctx, C, minus_R1.view(), R0);
            multiply_upper<T>(ctx, S, R1, R1);
            if (kept.least >= enough) break;
        }
        left = inspect_remainders<T>(ctx, R);
    }
    if (modified()) add_panel(ctx, task.Q, columns);
    return left.zeros;
}

/// Factors W = Q R by itself, with Q in place of W and its factor in the last rows of R. The rows above give the
/// columns' norms. Returns the remainders that R shows, if `inspect`. `certified`: ‖I − QᵀQ‖ = O(nu) by CholeskyQR2's
/// certificate.
template <class T, class D>
Remainders GramSchmidtBasis<T, D>::factor_panel(Context<D>& ctx, MatrixView<T, D> W, MatrixView<T, D> R,
                                                MatrixView<T, D> L, bool inspect, bool& certified) {
    using State = typename CholeskyPasses<T, D>::State;
    const Index w = W.cols, k = R.rows - w;
    const auto R1 = R.row_block({k, R.rows});
    if (plan_.gram_schmidt().panel == GramSchmidtPanel::CholeskyQR2) {
        const State state = cholesky_passes<T, D>(ctx, CholeskyChain::OfA, true, W, W, R1).state;
        if (state == State::Improved) {
            // W = Q₁R₁, Q₁ = Q R₂
            Matrix<T, D> R2(ctx, R.rows, w);
            set_zero(ctx, R2.view());
            by_columns(ctx, W, R2.view(), {});
            throw_if_dependent(ctx);
            multiply_upper<T>(ctx, R2.view().row_block({k, R.rows}), R1, R1);
        }
        if (state == State::Improved || state == State::Certified) {
            const Remainders left = inspect_remainders<T>(ctx, R);
            certified = !left.dependent && state == State::Certified;
            if (!left.dependent) return left;
            // W = Q R₁ again: a Gram matrix does not see that a column depends on others
            multiply_triangle<T>(ctx, Side::Right, Triangle::Upper, Op::None, R1, W);
        }
    }
    by_columns(ctx, W, R, L);
    throw_if_dependent(ctx);
    return inspect ? inspect_remainders<T>(ctx, R) : Remainders{};
}

/// Runs modified Gram-Schmidt by halves, and at the bottom by columns. L, if it has data, receives I + the strictly
/// lower triangle of QᵀQ.
template <class T, class D>
void GramSchmidtBasis<T, D>::by_columns(Context<D>& ctx, MatrixView<T, D> W, MatrixView<T, D> R, MatrixView<T, D> L) {
    constexpr Index base = Tuning<D>::gram_schmidt_base;
    const Index w = W.cols, k = R.rows - w;
    if (w <= base) {
        orthonormalize_columns<T>(ctx, W, R, completes(), certificate_.view());
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

/// Throws if `by_columns` met a column that depends on others. What it did after that has no meaning. Waits once for a
/// panel, for on a GPU a wait takes as long as some of its columns.
template <class T, class D>
void GramSchmidtBasis<T, D>::throw_if_dependent(Context<D>& ctx) {
    const Certificate found = read_certificate(ctx, certificate_.view());
    if (found.refused())
        throw NumericalBreakdown(fmt::format("{}: column {} depends on those before it to working precision",
                                             to_string(plan_.method), found.column),
                                 found.column);
}

/// Adds a finished panel. It joins the panel before it if both are narrow: Q = [Q₁ Q₂], L = [L₁₁ 0; Q₂ᵀQ₁ L₂₂].
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
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
