#pragma once

// Small matrices of one shape, factored with greedy pivots one after the other in memory of the batch.

#include <numeric>

#include "algorithms/one_matrix/factorization.hpp"
#include "algorithms/one_matrix/panel_layout.hpp"
#include "algorithms/one_matrix/pivoted_qr.hpp"
#include "devices.hpp"
#include "quoin/batch.hpp"

namespace quoin {

/// The reflectors, R, permutations and ranks of matrices of one shape. Each has the bits that `qr` gives it.
template <class T, class D>
class PivotedBatch {
public:
    /// Whether the matrices of `plan` are factored here.
    static bool fits(const Plan& plan) {
        if constexpr (std::is_same_v<D, Host>) {
            return plan.pivoting && plan.pivoting->kind == Pivots::Greedy && !plan.pivoting->chosen_first &&
                   !plan.pivoting->has_limit() && !plan.q.full_t && !plan.verify && plan.rows * plan.cols > 0 &&
                   Tuning<Host>::reflects_at_once(plan.rows, plan.cols, sizeof(T));
        }
        return false;
    }
    PivotedBatch(Context<D>& ctx, const Plan& plan, Index count)
        : plan_(plan),
          V_R_(ctx, plan.rows, plan.cols, count),
          tau_(ctx, std::min(plan.rows, plan.cols), count),
          order_(static_cast<std::size_t>(plan.cols * count)),
          ranks_(static_cast<std::size_t>(count)) {}

    /// Receives the matrices.
    Batch<T, D>& matrices() { return V_R_; }
    /// Factors the matrices. Returns false, with the matrices unchanged, if an entry is not finite, or the columns of a
    /// matrix have to be scaled.
    bool factor(Context<D>& ctx) requires std::is_same_v<D, Host> {
        const Index m = plan_.rows, n = plan_.cols, k = tau_.rows(), count = tau_.cols();
        const MatrixView<T> all(V_R_[0].data, m, n * count);
        Matrix<int> exponents(n * count, 1);
        Scan found;
        scan<T>(ctx, all, Scalar<T>::safe_exponent, exponents.view(), {&found, 1, 1});
        if (found.bad_row >= 0 || found.scaled) return false;
        Matrix<Real<T>> norms(n * count, 2);
        const auto computed = norms.view().col_block({1, 2});
        write_column_norms<T>(ctx, all, computed);
        copy<Real<T>>(ctx, computed, norms.view().col_block({0, 1}));
        const std::vector<Panel> panels = panels_of(plan_);
        for_each_matrix(ctx, count, plan_.flops, Memory::Kept, [&](Context<Host>& mine, Index i) {
            const Range columns{i * n, (i + 1) * n};
            const MatrixView<Index> order(order_.data() + columns.begin, n, 1);
            std::iota(order.data, order.data + n, Index(0));
            for (const Panel& panel : panels) {
                const Range here{panel.first, panel.first + panel.tree.width};
                factor_pivoted<T>(mine, {V_R_[i], order, norms.view().row_block(columns)}, panel.first, -1,
                                  tau_.view().block(here, {i, i + 1}), {});
            }
            ranks_[i] = numerical_rank<T, Host>(mine, std::max(m, n), V_R_[i].row_block({0, k}));
        });
        return true;
    }

    Matrix<T, D> r(Context<D>& ctx, Index i) const {
        Matrix<T, D> R(ctx, tau_.rows(), plan_.cols);
        copy_triangle<T>(ctx, V_R_[i].row_block({0, tau_.rows()}), R.view());
        return R;
    }
    std::span<const Index> permutation(Index i) const {
        return std::span(order_).subspan(static_cast<std::size_t>(i * plan_.cols), plan_.cols);
    }
    Report report(Index i) const {
        Report report;
        report.method = plan_.method;
        report.flops = plan_.flops;
        report.rank = ranks_[i];
        return report;
    }
    /// Returns the factorization of matrix i by itself.
    QR<T, D> one(Context<D>& ctx, Index i) const {
        QR<T, D> f = of_reflectors<T, D>(ctx, plan_, copy_of<T, D>(ctx, V_R_[i]), tau_.view().col_block({i, i + 1}));
        Inside::of(f).report = report(i);
        const auto order = permutation(i);
        Inside::of(f).order.assign(order.begin(), order.end());
        return f;
    }

private:
    Plan plan_;
    Batch<T, D> V_R_;
    Matrix<T, D> tau_;  // a column for each matrix
    std::vector<Index> order_, ranks_;
};

}  // namespace quoin
