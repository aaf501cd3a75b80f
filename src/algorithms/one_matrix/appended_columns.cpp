// Gram-Schmidt of columns that a caller appends over time: the class GramSchmidt.

#include <fmt/format.h>

#include <algorithm>

#include "algorithms/one_matrix/gram_schmidt.hpp"
#include "algorithms/one_matrix/plan.hpp"
#include "algorithms/shared/column_scaling.hpp"
#include "algorithms/shared/copies.hpp"
#include "quoin/gram_schmidt.hpp"

namespace quoin {

namespace {

template <class T, class D>
Plan plan_basis(Context<D>& ctx, Index m, Index capacity, Options options) {
    if (m < 0 || capacity < 0) {
        throw InvalidArgument(
            fmt::format("GramSchmidt: m and capacity must not be negative, and are {} and {}", m, capacity));
    }
    if (options.method == Method::Auto)
        options.method = ClassicalGramSchmidt{options.method.panel_width(), Reorthogonalization::Always};
    if (!is_gram_schmidt(options.method)) {
        throw InvalidArgument(
            fmt::format("GramSchmidt: the method must be mgs or cgs, and is {}", to_string(options.method)));
    }
    options.q = QForm::Explicit;
    // the width of a panel must not depend on how many columns there will be
    return plan_qr<T, D>(ctx, m, m, options);
}

}  // namespace

template <class T, class D>
struct GramSchmidt<T, D>::Impl {
    Impl(Context<D>& ctx, Plan plan_) : plan(plan_), basis(ctx, plan_, 0), Q(ctx, plan_.rows, 0) {}

    /// Provides memory for k columns, and keeps the present ones.
    void reserve(Context<D>& ctx, Index k) {
        if (k <= Q.cols()) return;
        Matrix<T, D> new_Q(ctx, plan.rows, k), new_R(ctx, k, k);
        set_zero(ctx, new_R.view());
        const Range kept{0, cols};
        copy<T>(ctx, Q.view().col_block(kept), new_Q.view().col_block(kept));
        copy<T>(ctx, R.view().block(kept, kept), new_R.view().block(kept, kept));
        Q = std::move(new_Q);
        R = std::move(new_R);
        basis.reserve(ctx, k);
    }
    void truncate(Index k) {
        cols = k;
        basis.truncate(k);
    }

    Plan plan;
    GramSchmidtBasis<T, D> basis;
    Matrix<T, D> Q, R;
    Index cols = 0;
};

template <class T, class D>
GramSchmidt<T, D>::GramSchmidt(Context<D>& ctx, Index m, Index capacity, Options options)
    : impl_(detail::own<Impl>(ctx, plan_basis<T, D>(ctx, m, capacity, options))) {
    impl_->reserve(ctx, std::min(m, capacity));
}
template <class T, class D>
GramSchmidt<T, D>::GramSchmidt(Context<D>& ctx, const State& state)
    : GramSchmidt(ctx, state.Q.rows(), state.Q.cols(), state.options) {
    Impl& f = *impl_;
    const Index k = state.Q.cols();
    const bool modified = f.plan.method == Method::ModifiedGramSchmidt;
    Index done = 0;
    bool fits = k <= rows() && state.R.rows() == k && state.R.cols() == k && state.L.cols() == (modified ? k : 0) &&
                (state.L.cols() == 0 || state.L.rows() == f.plan.panel_width);
    for (const Range& panel : state.panels) {
        fits = fits && panel.begin == done && panel.size() > 0 && panel.size() <= f.plan.panel_width;
        done = panel.end;
    }
    if (!fits || done != state.L.cols()) {
        throw InvalidArgument("GramSchmidt: the sizes of the state do not fit each other");
    }
    f.cols = k;
    copy<T>(ctx, state.Q.view(), f.Q.view().col_block({0, k}));
    copy<T>(ctx, state.R.view(), f.R.view().block({0, k}, {0, k}));
    f.basis.restore(ctx, state.panels, state.L.view());
}

template <class T, class D>
typename GramSchmidt<T, D>::State GramSchmidt<T, D>::state(Context<D>& ctx) const {
    const Impl& f = *impl_;
    State state;
    if (f.plan.method == Method::ModifiedGramSchmidt) {
        state.options.method = ModifiedGramSchmidt{f.plan.panel_width, f.plan.gram_schmidt().reorthogonalization};
    } else {
        state.options.method = ClassicalGramSchmidt{f.plan.panel_width, f.plan.gram_schmidt().reorthogonalization,
                                                    f.plan.gram_schmidt().panel};
    }
    state.options.arithmetic = f.plan.arithmetic;
    state.options.check_finite = f.plan.check_finite;
    state.Q = copy_of<T, D>(ctx, q());
    state.R = copy_of<T, D>(ctx, r());
    state.L = copy_of<T, D>(ctx, f.basis.l(cols()));
    state.panels = f.basis.panels();
    return state;
}

template <class T, class D>
void GramSchmidt<T, D>::append(Context<D>& ctx, MatrixView<const T, D> A, const OnColumns& on_columns) {
    Impl& f = *impl_;
    const Index m = rows(), k = cols(), p = A.cols;
    if (A.rows != m || p > m - k) {
        throw InvalidArgument(
            fmt::format("append: A is {} x {}, and at most {} columns of {} rows fit behind the "
                        "{} that Q has",
                        A.rows, p, m - k, m, k));
    }
    if (p == 0) return;
    if (k + p > f.Q.cols()) f.reserve(ctx, std::min(m, std::max(k + p, 2 * f.Q.cols())));
    const Range all{0, k + p}, next{k, k + p};
    const auto Q = f.Q.view().col_block(all), R = f.R.view().block(all, all);
    copy<T>(ctx, A, Q.col_block(next));
    set_zero(ctx, R.col_block(next));
    const ColumnsInRange<T, D> scaling(ctx, Q.col_block(next), f.plan.arithmetic, f.plan.check_finite);
    const auto finish = [&](Range columns) {
        f.cols = columns.end;
        scaling.unscale(ctx, R.col_block(columns), {columns.begin - k, columns.end - k});
    };
    try {
        if (on_columns) {
            f.basis.orthonormalize(ctx, Q, R, k, [&](Range columns) {
                finish(columns);
                return on_columns(columns);
            });
        } else {
            f.basis.orthonormalize(ctx, Q, R, k);
            finish(next);
        }
    } catch (...) {
        f.truncate(k);
        throw;
    }
}

template <class T, class D>
Matrix<T, D> GramSchmidt<T, D>::orthogonalize(Context<D>& ctx, MatrixView<T, D> V) const {
    const Impl& f = *impl_;
    if (V.rows != rows()) {
        throw InvalidArgument(
            fmt::format("orthogonalize: V has {} rows, and the columns of Q have {}", V.rows, rows()));
    }
    Matrix<T, D> H(ctx, cols(), V.cols);
    if (V.cols == 0) return H;
    const ColumnsInRange<T, D> scaling(ctx, V, f.plan.arithmetic, f.plan.check_finite);
    f.basis.project(ctx, q(), {0, cols()}, V, H.view());
    if (f.plan.gram_schmidt().reorthogonalization != Reorthogonalization::Off && cols() > 0) {
        // H := H + C,   V := V − Q C
        Matrix<T, D> C(ctx, cols(), V.cols);
        f.basis.project(ctx, q(), {0, cols()}, V, C.view());
        negate<T>(ctx, C.view());
        subtract<T>(ctx, C.view(), H.view());
    }
    scaling.unscale(ctx, V, {0, V.cols});
    scaling.unscale(ctx, H.view(), {0, V.cols});
    return H;
}

template <class T, class D>
void GramSchmidt<T, D>::truncate(Index k) {
    if (k < 0 || k > cols()) {
        throw InvalidArgument(fmt::format("truncate: {} columns cannot be kept of {}", k, cols()));
    }
    impl_->truncate(k);
}

template <class T, class D>
Index GramSchmidt<T, D>::rows() const {
    return impl_->plan.rows;
}
template <class T, class D>
Index GramSchmidt<T, D>::cols() const {
    return impl_->cols;
}
template <class T, class D>
MatrixView<const T, D> GramSchmidt<T, D>::q() const {
    return std::as_const(impl_->Q).view().col_block({0, cols()});
}
template <class T, class D>
MatrixView<const T, D> GramSchmidt<T, D>::r() const {
    return std::as_const(impl_->R).view().block({0, cols()}, {0, cols()});
}
template <class T, class D>
const Plan& GramSchmidt<T, D>::plan() const {
    return impl_->plan;
}

#define QUOIN_INSTANTIATE(T, D) template class GramSchmidt<T, D>;
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
