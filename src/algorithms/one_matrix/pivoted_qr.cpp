// QR with column pivoting (docs/pivoting.md).
//
// Greedy: panels of LAPACK's ?geqp3 with the norms of Drmač and Bujanović (2008). Randomized (Martinsson,
// Quintana-Ortí, Heavner and van de Geijn 2017; Duersch and Gu 2017): with Y = S A of few rows, a step is
//
//     Y P = Q_s [S₁₁ S₁₂; 0 S₂₂]      greedy; its first columns are the pivots of the panel
//     A P = H [R₁₁ R₁₂; 0 A₂₂]        an unpivoted panel, and its update
//     Y := [S₁₂ − S₁₁ R₁₁⁻¹ R₁₂; S₂₂]  equal to Q_sᵀ S H [0; A₂₂], a sketch of A₂₂
//
// If a column of Y shrinks, it loses as many digits. If a pivot has lost half of them, the next Y is computed from A₂₂
// itself.
//
// Strong (Gu and Eisenstat 1996): greedy pivots of R of A, then swaps of two columns while they increase |det R₁₁|
// enough.

#include "algorithms/one_matrix/pivoted_qr.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "algorithms/one_matrix/blocked_householder.hpp"
#include "algorithms/shared/copies.hpp"
#include "algorithms/shared/side_work.hpp"
#include "devices.hpp"
#include "quoin/qr.hpp"

namespace quoin {

namespace {

/// Rows of the sketch beyond the pivots that it chooses (Duersch and Gu 2017).
constexpr Index oversampling = 8;

/// Copies numbers from the host. Waits.
template <class T, class D>
Matrix<T, D> on_device(Context<D>& ctx, const std::vector<T>& numbers) {
    return device_copy_of<T, D>(ctx, {numbers.data(), static_cast<Index>(numbers.size()), 1});
}
template <class D>
Matrix<Index, D> identity_order(Context<D>& ctx, Index n) {
    std::vector<Index> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), Index(0));
    return on_device(ctx, order);
}
template <class T, class D>
std::vector<T> on_host(Context<D>& ctx, MatrixView<const T, D> x) {
    const Matrix<T, Host> copied = host_copy_of<T, D>(ctx, x);
    return {copied.data(), copied.data() + x.rows};
}
/// Views n numbers in a column as a row.
template <class T, class D>
MatrixView<T, D> as_row(MatrixView<T, D> x) {
    return {x.data, 1, x.rows, 1};
}

/// Returns R of A.
template <class T, class D>
Matrix<T, D> r_alone_of(Context<D>& ctx, MatrixView<const T, D> A) {
    return qr<T, D>(ctx, A, Options{.q = QForm::None, .check_finite = false}).r(ctx);
}

/// 2^-exponent R of A, on the host.
template <class T>
struct ScaledR {
    Matrix<T> R;
    int exponent = 0;
};
/// Returns R of A without the scaling of its columns by `exponents`. Columns that are smaller than the largest by more
/// than T's range become zero.
template <class T, class D>
ScaledR<T> unscaled_r_of(Context<D>& ctx, MatrixView<const T, D> A, MatrixView<const int, D> exponents) {
    ScaledR<T> scaled{host_copy_of<T, D>(ctx, r_alone_of(ctx, A).view())};
    if (!exponents.data || A.cols == 0) return scaled;
    const std::vector<int> e = on_host<int, D>(ctx, exponents);
    scaled.exponent = *std::max_element(e.begin(), e.end());
    for (Index j = 0; j < A.cols; ++j) {
        for (Index i = 0; i < scaled.R.rows(); ++i) {
            scaled.R(i, j) = std::scalbn(scaled.R(i, j), e[j] - scaled.exponent);
        }
    }
    return scaled;
}

/// A permutation, and the number of its columns that count.
struct RankedOrder {
    std::vector<Index> order;
    Index rank = 0;
};

/// The norms that the columns of A P − QR may have: none above `column`, or all together at most `frobenius`.
struct Tolerance {
    double column = -1, frobenius = -1;

    Tolerance() = default;
    /// `norms` has the norms of the columns of 2^-e A.
    Tolerance(const Pivoting& pivoting, const std::vector<double>& norms, int e)
        : column(pivoting.relative_tolerance * *std::max_element(norms.begin(), norms.end())),
          frobenius(pivoting.relative_frobenius > 0 ? pivoting.relative_frobenius * length(norms) : -1) {
        column = std::max(column, std::scalbn(pivoting.tolerance, -e));
    }
    bool allows(const std::vector<double>& norms) const {
        return std::all_of(norms.begin(), norms.end(), [&](double x) { return x <= column; }) ||
               (frobenius >= 0 && length(norms) <= frobenius);
    }

private:
    static double length(const std::vector<double>& norms) {
        return std::accumulate(norms.begin(), norms.end(), 0.0, [](double a, double b) { return std::hypot(a, b); });
    }
};

/// Returns the least number of rows of R, all of whose columns' norms below them are allowed.
template <class T>
Index rows_above(MatrixView<const T> R, const Tolerance& tolerance) {
    std::vector<double> left(static_cast<std::size_t>(R.cols));
    for (Index i = R.rows - 1; i >= 0; --i) {
        for (Index j = i; j < R.cols; ++j) left[j] = std::hypot(left[j], static_cast<double>(R(i, j)));
        if (!tolerance.allows(left)) return i + 1;
    }
    return 0;
}

/// Returns the columns i of R₁₁ and j of [R₁₂; R₂₂] whose exchange multiplies |det R₁₁| most, and that factor:
/// √(w_ij² + (ω_i γ_j)²), with W = R₁₁⁻¹ R₁₂, the norms ω_i of the rows of R₁₁⁻¹, and the norms γ_j of the columns of
/// R₂₂ (Gu and Eisenstat 1996, Lemma 3.1). 2r²n flops.
template <class T>
std::tuple<Index, Index, double> best_exchange(Context<Host>& ctx, MatrixView<const T> R, Index r) {
    const Range top{0, r}, right{r, R.cols};
    Matrix<T> W = copy_of<T, Host>(ctx, R.block(top, right)), inverse(r, r);
    set_identity<T>(ctx, 0, inverse.view());
    solve_triangle<T>(ctx, Triangle::Upper, Op::None, R.block(top, top), W.view());
    solve_triangle<T>(ctx, Triangle::Upper, Op::None, R.block(top, top), inverse.view());
    std::vector<T> omega(static_cast<std::size_t>(r)), gamma(static_cast<std::size_t>(right.size()));
    column_norms<T>(ctx, transposed<T, Host>(ctx, inverse.view()).view(), omega);
    column_norms<T>(ctx, R.block({r, R.rows}, right), gamma);
    std::tuple<Index, Index, double> best{0, 0, 0};
    for (Index j = 0; j < right.size(); ++j) {
        for (Index i = 0; i < r; ++i) {
            const double factor =
                std::hypot(static_cast<double>(W(i, j)), static_cast<double>(omega[i]) * static_cast<double>(gamma[j]));
            if (factor > std::get<2>(best)) best = {i, r + j, factor};
        }
    }
    return best;
}

/// Returns Pivots::Strong of A: greedy ones of its R, and exchanges until none multiplies |det R₁₁| by more than the
/// bound, where R₁₁ has as many columns as the limits leave, or as the rank. An exchange costs one QR of R.
template <class T, class D>
RankedOrder strong_pivots(Context<D>& device, const PivotPlan& pivoting, MatrixView<const T, D> A,
                          MatrixView<const int, D> exponents) {
    const Span span(device, "strong pivots");
    Context<Host>& ctx = host_context(device);
    Options options{.q = QForm::None, .pivoting = Pivoting{.kind = Pivots::Greedy}, .check_finite = false};
    const ScaledR<T> given = unscaled_r_of<T, D>(device, A, exponents);
    const QR<T, Host> greedy = qr(ctx, given.R.view(), options);
    options.pivoting.reset();
    RankedOrder found{{greedy.permutation().begin(), greedy.permutation().end()}, greedy.report().rank};
    Matrix<T> R = greedy.r(ctx);
    if (pivoting.max_rank > 0) found.rank = std::min(found.rank, pivoting.max_rank);
    if (pivoting.has_tolerance() && R.cols() > 0) {
        std::vector<T> norms(static_cast<std::size_t>(R.cols()));
        column_norms<T>(ctx, R.view(), norms);
        const Tolerance tolerance(pivoting, {norms.begin(), norms.end()}, given.exponent);
        found.rank = std::min(found.rank, rows_above<T>(R.view(), tolerance));
    }
    const Index r = found.rank;
    while (r > 0 && r < R.cols()) {
        throw_if_stopped(device);
        const auto [i, j, factor] = best_exchange<T>(ctx, R.view(), r);
        if (!(factor > pivoting.strong_bound)) break;
        std::swap(found.order[i], found.order[j]);
        std::swap_ranges(R.view().at(0, i), R.view().at(0, i) + R.rows(), R.view().at(0, j));
        R = qr(ctx, std::as_const(R).view(), options).r(ctx);
    }
    return found;
}

template <class T, class D>
class PivotedFactorizer {
public:
    PivotedFactorizer(Context<D>& ctx, const Plan& plan, ReflectorForest<T, D>& forest, MatrixView<int, D> exponents)
        : ctx_(ctx),
          plan_(plan),
          pivoting_(*plan.pivoting),
          forest_(forest),
          A_(forest.A.view()),
          exponents_(exponents),
          order_(identity_order(ctx, A_.cols)),
          most_(pivoting_.max_rank > 0 ? pivoting_.max_rank : std::min(A_.rows, A_.cols)) {
        lay_out_panels(ctx, plan, forest);
    }

    Index factor() {
        if (pivoting_.kind == Pivots::Strong) return ended(by_strong_pivots());
        if (pivoting_.has_tolerance() && A_.cols > 0) {
            const std::vector<double> norms = without_scaling(norms_of(A_), 0);
            tolerance_ = Tolerance(pivoting_, norms, 0);
            if (tolerance_.allows(norms)) return ended(0);
        }
        return ended(pivoting_.kind == Pivots::Greedy ? by_norms() : by_sketch());
    }

    std::vector<Index> order() { return on_host<Index, D>(ctx_, order_.view()); }

private:
    static void cut(Panel& panel, Index rank) { panel.tree.width = std::min(panel.tree.width, rank - panel.first); }
    /// Drops the panels from column `rank` on. Returns `rank`.
    Index ended(Index rank) {
        auto& panels = forest_.panels;
        while (!panels.empty() && panels.back().first >= rank) panels.pop_back();
        if (!panels.empty()) cut(panels.back(), rank);
        return rank;
    }

    std::vector<Real<T>> norms_of(MatrixView<const T, D> A) {
        std::vector<Real<T>> norms(static_cast<std::size_t>(A.cols));
        column_norms<T>(ctx_, A, norms);
        return norms;
    }
    /// Returns the norms of the columns from `first` on before their scaling.
    std::vector<double> without_scaling(const std::vector<Real<T>>& norms, Index first) {
        std::vector<double> all(norms.begin(), norms.end());
        if (!exponents_.data || norms.empty()) return all;
        const auto e = on_host<int, D>(ctx_, exponents_.row_block({first, A_.cols}));
        for (std::size_t j = 0; j < all.size(); ++j) all[j] = std::scalbn(all[j], e[j]);
        return all;
    }

    /// norms := the norms of A, twice, as `factor_pivoted` needs them.
    void set_norms(MatrixView<const T, D> A, MatrixView<Real<T>, D> norms) {
        write_column_norms<T>(ctx_, A, norms.col_block({0, 1}));
        copy<Real<T>>(ctx_, norms.col_block({0, 1}), norms.col_block({1, 2}));
    }

    Index by_norms() {
        Matrix<Real<T>, D> norms(ctx_, A_.cols, 2);
        set_norms(A_, norms.view());
        Matrix<T, D> F(ctx_, plan_.panel_width, A_.cols), tau(ctx_, plan_.panel_width, 1);
        Index rank = 0;
        for (Panel& panel : forest_.panels) {
            throw_if_stopped(ctx_);
            const Span span(ctx_, "pivoted panel", panel.first);
            cut(panel, most_);
            const Index width = panel.tree.width;
            if (width <= 0) break;
            Index taken =
                factor_pivoted<T>(ctx_, {A_, order_.view(), norms.view(), exponents_}, panel.first, tolerance_.column,
                                  tau.view().row_block({0, width}), F.view().row_block({0, width}));
            if (tolerance_.frobenius >= 0) taken = columns_above_tolerance(panel.first, taken);
            rank = panel.first + taken;
            cut(panel, rank);
            compact_wy<T>(ctx_, forest_.panel_a(panel), tau.view().row_block({0, taken}), forest_.panel_t(panel));
            if (taken < width) break;
        }
        return rank;
    }

    Index by_sketch() {
        const Index m = A_.rows, n = A_.cols, rows = std::min(plan_.panel_width, most_) + oversampling;
        Matrix<T, D> G(ctx_, sign_rows<D>(m, rows), rows), memory(ctx_, rows, n);
        set_random_signs<T>(ctx_, pivoting_.seed, G.view());
        Matrix<Real<T>, D> norms_of_Y(ctx_, n, 2), computed_norms(ctx_, n, 1);
        const Matrix<Index, D> identity = identity_order(ctx_, n);
        Matrix<Index, D> order_of_Y(ctx_, n, 1);
        Matrix<T, D> kept(ctx_, plan_.panel_width, 2);
        const MatrixView<T> kept_on_host{
            static_cast<T*>(pinned_staging(ctx_, 2 * static_cast<std::size_t>(plan_.panel_width) * sizeof(T))),
            plan_.panel_width, 2};
        SideWork beside(ctx_);  // reads `kept`
        bool is_lost = true;
        for (std::size_t s = 0; s < forest_.panels.size(); ++s) {
            throw_if_stopped(ctx_);
            Panel& panel = forest_.panels[s];
            cut(panel, most_);
            const Index first = panel.first, width = panel.tree.width, end = first + width;
            if (width <= 0) break;
            const Range rest{first, n};
            const auto Y = memory.view().col_block(rest);
            const auto norms = norms_of_Y.view().row_block(rest);
            const auto computed = computed_norms.view().row_block(rest);  // norms of Y when it was computed from A
            if (is_lost) {
                const Span span(ctx_, "sketch", s);
                make_sketch(G.view(), A_.block({first, m}, rest), Y);
            }
            set_norms(Y, norms);
            if (is_lost) copy<Real<T>>(ctx_, norms.col_block({0, 1}), computed);
            const auto order = order_of_Y.view().row_block({0, Y.cols});
            copy<Index>(ctx_, identity.view().row_block({0, Y.cols}), order);
            choose({Y, order, norms, exponents_.data ? exponents_.row_block(rest) : exponents_}, first, width,
                   computed);
            const Range here{first, end}, right{end, n};
            const bool is_last = end == most_;
            Context<D>& side = beside.fork();
            if (!is_last) {
                // the digits of the pivots of Y come to the host while A is updated
                copy_diagonal<T>(side, Y, kept.view().block({0, width}, {0, 1}));
                copy<T>(side, computed.row_block({0, width}), kept.view().block({0, width}, {1, 2}));
                start_copy_to_host<T>(side, kept.view(), kept_on_host);
            }
            factor_panel_and_update(s, is_last && !pivoting_.has_tolerance());
            if (pivoting_.has_tolerance()) {
                const Index rank = first + columns_above_tolerance(first, width);
                if (rank < end) return rank;
            }
            if (is_last) continue;
            side.wait();
            is_lost = has_lost(kept_on_host.row_block({0, width}));
            if (is_lost) continue;
            // S₁₂ −= (S₁₁ R₁₁⁻¹) R₁₂
            const Span span(ctx_, "sketch", s);
            Matrix<T, D> X(ctx_, width, width), Xt(ctx_, width, width);
            copy_triangle<T>(ctx_, Y.block({0, width}, {0, width}), X.view());
            adjoint<T>(ctx_, X.view(), Xt.view());
            solve_triangle<T>(ctx_, Triangle::Upper, Op::Transpose, A_.block(here, here), Xt.view());
            adjoint<T>(ctx_, Xt.view(), X.view());
            subtract_product<T>(ctx_, X.view(), A_.block(here, right), Y.block({0, width}, {width, Y.cols}));
        }
        return most_;
    }

    /// Y := S A₂₂, S = Gᵀ or Gᵀ E (sign_rows).
    void make_sketch(MatrixView<const T, D> G, MatrixView<const T, D> A22, MatrixView<T, D> Y) {
        if (G.rows == A_.rows) {
            const auto last = G.row_block({A_.rows - A22.rows, A_.rows});
            return multiply_transposed<T>(ctx_, last, A22, Y, false, plan_.arithmetic);
        }
        using S = Sum<T, D>;
        Matrix<S, D> E_A22(ctx_, G.rows, A22.cols);
        sketch<T>(ctx_, A22, static_cast<Index>(pivoting_.seed), E_A22.view());
        if constexpr (std::is_same_v<S, T>) {
            multiply_transposed<T>(ctx_, G, E_A22.view(), Y);
        } else {
            Matrix<T, D> rounded(ctx_, G.rows, A22.cols);
            const Matrix<double, D> ones = on_device<double, D>(ctx_, std::vector<double>(A22.cols, 1.0));
            multiply_columns<S, T>(ctx_, E_A22.view(), ones.view(), rounded.view());
            multiply_transposed<T>(ctx_, G, rounded.view(), Y);
        }
    }

    Index by_strong_pivots() {
        const auto [order, rank] = strong_pivots<T, D>(ctx_, pivoting_, A_, exponents_);
        const Matrix<Index, D> moved = on_device<Index, D>(ctx_, order);
        permute_columns<T>(ctx_, moved.view(), A_);
        permute_columns<Index>(ctx_, moved.view(), as_row(order_.view()));
        if (exponents_.data) permute_columns<int>(ctx_, moved.view(), as_row(exponents_));
        const Index end = pivoting_.has_limit() ? rank : most_;
        for (std::size_t s = 0; s < forest_.panels.size() && forest_.panels[s].first < end; ++s) {
            throw_if_stopped(ctx_);
            Panel& panel = forest_.panels[s];
            cut(panel, end);
            factor_panel_and_update(s, panel.first + panel.tree.width == end);
        }
        return end;
    }

    /// Factors panel s and updates the columns right of it: if it `is_last`, only their rows of R.
    void factor_panel_and_update(std::size_t s, bool is_last) {
        const Panel& panel = forest_.panels[s];
        const MatrixView<T, D> C = A_.block({panel.first, A_.rows}, {panel.first + panel.tree.width, A_.cols});
        OverlappedWork nothing;
        factor_one_panel<T, D>(ctx_, plan_, s, forest_.panel_a(panel), forest_.panel_t(panel), nothing);
        if (C.cols == 0) return;
        const Span span(ctx_, "update", s);
        // halves of C for one product alone take longer than both products of the fused update
        if (is_last && !takes_halves(plan_.arithmetic)) return update_rows_of_r(panel, C);
        apply_panel<T>(ctx_, Op::Transpose, forest_.panel_a(panel), forest_.panel_t(panel), C, plan_.arithmetic);
    }

    /// Chooses the pivots of a panel in a sketch Y, and moves the columns of A and of `computed`. Y.order is the
    /// identity on entry.
    void choose(const PivotedColumns<T, D>& Y, Index first, Index width, MatrixView<Real<T>, D> computed) {
        const Span span(ctx_, "pivots", first);
        const Range rest{first, A_.cols};
        pivot_sketch<T>(ctx_, Y, width);
        const Span moving(ctx_, "permutation", first);
        permute_columns<T>(ctx_, Y.order, A_.col_block(rest), 2 * width);
        permute_columns<Index>(ctx_, Y.order, as_row(order_.view().row_block(rest)), 2 * width);
        permute_columns<Real<T>>(ctx_, Y.order, as_row(computed), 2 * width);
    }

    /// Whether a pivot of Y has lost half of its digits: its norm now, and when Y was computed, is in a row of `norms`.
    static bool has_lost(MatrixView<const T> norms) {
        const T kept = static_cast<T>(std::sqrt(Scalar<T>::u));
        for (Index k = 0; k < norms.rows; ++k) {
            if (!(std::abs(norms(k, 0)) > kept * norms(k, 1))) return true;
        }
        return false;
    }

    /// The rows of R in C := HᵀC: C₁ − V₁ (V T)ᵀC. 2mnb flops.
    void update_rows_of_r(const Panel& panel, MatrixView<T, D> C) {
        const Index w = panel.tree.width;
        Matrix<T, D> V = copy_of<T, D>(ctx_, forest_.panel_a(panel));
        Matrix<T, D> VT(ctx_, C.rows, w), W(ctx_, w, C.cols);
        set_root<T>(ctx_, V.view());
        copy<T>(ctx_, V.view(), VT.view());
        multiply_triangle<T>(ctx_, Side::Right, Triangle::Upper, Op::None, forest_.panel_t(panel), VT.view());
        multiply_transposed<T>(ctx_, VT.view(), C, W.view(), false, plan_.arithmetic);
        subtract_product<T>(ctx_, V.view().row_block({0, w}), W.view(), C.row_block({0, w}));
    }

    /// Returns the least i, up to w, such that the tolerance allows the norms of the columns of [R(i:w, :); A₂₂].
    Index columns_above_tolerance(Index first, Index w) {
        const Index m = A_.rows, n = A_.cols, end = first + w;
        const Range rows{first, end};
        std::vector<Real<T>> below(static_cast<std::size_t>(w));
        const std::vector<Real<T>> trailing = norms_of(A_.block({end, m}, {end, n}));
        below.insert(below.end(), trailing.begin(), trailing.end());
        std::vector<double> norms = without_scaling(below, first);
        if (!tolerance_.allows(norms)) return w;
        Matrix<T, D> copied(ctx_, w, n - first);
        copy_triangle<T>(ctx_, A_.block(rows, {first, n}), copied.view());
        const Matrix<T, Host> R = host_copy_of<T, D>(ctx_, copied.view());
        const std::vector<int> e =
            exponents_.data ? on_host<int, D>(ctx_, exponents_.row_block({first, n})) : std::vector<int>(norms.size());
        for (Index i = w - 1; i >= 0; --i) {
            for (Index j = 0; j < n - first; ++j)
                norms[j] = std::hypot(norms[j], std::scalbn(static_cast<double>(std::abs(R(i, j))), e[j]));
            if (!tolerance_.allows(norms)) return i + 1;
        }
        return 0;
    }

    Context<D>& ctx_;
    const Plan& plan_;
    const PivotPlan& pivoting_;
    ReflectorForest<T, D>& forest_;
    MatrixView<T, D> A_;
    MatrixView<int, D> exponents_;
    Matrix<Index, D> order_;
    const Index most_;
    Tolerance tolerance_;
};

/// Returns the pivots of B, a sketch or a triangle.
template <class T, class D>
std::vector<Index> pivots_of_small(Context<D>& ctx, Pivoting pivoting, Matrix<T, D>&& B, MatrixView<int, D> exponents) {
    Options options;
    options.method = BlockedHouseholder{};
    options.pivoting = pivoting;
    const Plan plan = plan_qr<T>(ctx, B.rows(), B.cols(), options);
    ReflectorForest<T, D> forest;
    forest.A = std::move(B);
    std::vector<Index> order;
    factor_with_pivots(ctx, plan, forest, exponents, order);
    return order;
}

}  // namespace

template <class T, class D>
Index factor_with_pivots(Context<D>& ctx, const Plan& plan, ReflectorForest<T, D>& forest, MatrixView<int, D> exponents,
                         std::vector<Index>& order) {
    PivotedFactorizer<T, D> factorizer(ctx, plan, forest, exponents);
    const Index rank = factorizer.factor();
    order = factorizer.order();
    return rank;
}

template <class T, class D>
std::vector<Index> pivots_of(Context<D>& ctx, const PivotPlan& pivoting, MatrixView<const T, D> A,
                             MatrixView<const int, D> exponents) {
    if (pivoting.kind == Pivots::Strong) return strong_pivots<T, D>(ctx, pivoting, A, exponents).order;
    const Index m = A.rows, n = A.cols;
    Matrix<int, D> moved;
    if (exponents.data) {
        moved = Matrix<int, D>(ctx, n, 1);
        copy<int>(ctx, exponents, moved.view());
    }
    const MatrixView<int, D> e = exponents.data ? moved.view() : MatrixView<int, D>();
    if (pivoting.kind == Pivots::Greedy) {
        return pivots_of_small<T, D>(ctx, {.kind = Pivots::Greedy}, r_alone_of(ctx, A), e);
    }
    const Span span(ctx, "pivots of a sketch");
    Matrix<Sum<T, D>, D> B(ctx, std::min(m, sketch_rows(n)), n);
    sketch<T>(ctx, A, static_cast<Index>(pivoting.seed), B.view());
    return pivots_of_small<Sum<T, D>, D>(ctx, {}, std::move(B), e);
}

template <class T, class D>
Index numerical_rank(Context<D>& ctx, Index larger, MatrixView<const T, D> R) {
    const Index k = std::min(R.rows, R.cols);
    MatrixView<const T, Host> d;  // 1×k
    Matrix<T, Host> copied;
    if constexpr (std::is_same_v<D, Host>) {
        d = {R.data, 1, k, R.ld + 1};
    } else {
        Matrix<T, D> diagonal(ctx, k, 1);
        copy_diagonal<T>(ctx, R, diagonal.view());
        copied = host_copy_of<T, D>(ctx, diagonal.view());
        d = {copied.data(), 1, k, 1};
    }
    double largest = 0;
    for (Index j = 0; j < k; ++j) largest = std::max(largest, static_cast<double>(std::abs(d(0, j))));
    const double least = static_cast<double>(larger) * Scalar<T>::u * largest;
    Index rank = 0;
    for (Index j = 0; j < k; ++j) rank += std::abs(d(0, j)) > least;
    return rank;
}

std::vector<Index> inverse_of(std::span<const Index> order) {
    std::vector<Index> inverse(order.size());
    for (std::size_t j = 0; j < order.size(); ++j) inverse[order[j]] = static_cast<Index>(j);
    return inverse;
}

template <class T, class D>
void permute(Context<D>& ctx, const std::vector<Index>& order, MatrixView<T, D> A) {
    permute_columns<T>(ctx, on_device(ctx, order).view(), A);
}

#define QUOIN_INSTANTIATE(T, D)                                           \
    template decltype(factor_with_pivots<T, D>) factor_with_pivots<T, D>; \
    template decltype(pivots_of<T, D>) pivots_of<T, D>;                   \
    template decltype(numerical_rank<T, D>) numerical_rank<T, D>;         \
    template decltype(permute<T, D>) permute<T, D>;
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
