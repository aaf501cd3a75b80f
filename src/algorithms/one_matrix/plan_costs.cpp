// Flops, words moved, workspace and modelled time of a plan.

#include <algorithm>
#include <cmath>
#include <map>

#include "algorithms/one_matrix/panel_layout.hpp"
#include "algorithms/one_matrix/plan.hpp"
#include "algorithms/shared/sampled_sum.hpp"
#include "primitives/tuning.hpp"

namespace quoin {

namespace {

/// Returns the number of R factors absorbed on all levels of a tree, as the primitives count them.
double absorbed(const PanelTree& tree) {
    double count = 0;
    for (Index level = 0; level < tree.levels(); ++level) count += number(tree.domains() / tree.stride(level));
    return count;
}

/// Returns the flops of Householder reconstruction of m×n: signed LU, T, V.
double reconstruction_flops(double m, double n) { return (2.0 / 3 + 1 + 1.0 / 3) * n * n * n + m * n * n; }

/// Returns the flops of Gram matrices and small steps of CholeskyQR, without its last pass. CholeskyQR2 is counted with
/// one pass, as for columns that are far from dependent.
double cholesky_flops(bool sketched, double m, double n) {
    // the triangle of a sketch of 4n rows, two Cholesky factors and a product of triangles
    if (sketched) return 2 * m * n * n + 9 * n * n * n;
    return m * n * n + 2.0 / 3 * n * n * n;
}

double factor_flops(const Plan& plan, const PanelTree& tree) {
    const double m = number(tree.rows), n = number(tree.width);
    if (!tree.lapack_panel()) return 2 * m * n * n + 2.0 / 3 * absorbed(tree) * n * n * n;
    return is_tall_panel(plan, tree.rows) ? cholesky_flops(false, m, n) + reconstruction_flops(m, n) : 3 * m * n * n;
}

double apply_flops(const PanelTree& tree, Index p) {
    const double m = number(tree.rows), n = number(tree.width);
    return (4 * m + (tree.lapack_panel() ? 0 : 2 * absorbed(tree) * n)) * n * number(p);
}

double form_flops(const PanelTree& tree) {
    const double m = number(tree.rows), n = number(tree.width);
    return 2 * m * n * n + (tree.lapack_panel() ? 0 : 2.0 / 3 * absorbed(tree) * n * n * n);
}

/// Calls f(first, tree, weight) for the plan's panels, to be added up with their weights.
template <class F>
void for_each_panel(const Plan& plan, F f) {
    const PanelColumns columns(plan);
    for_each_sampled(columns.count(), [&](Index i, double weight) {
        const Range cols = columns[i];
        f(cols.begin, tree_of(plan, plan.rows - cols.begin, cols.size()), weight);
    });
}

/// Adds the costs of the full T of panels in LAPACK's format, and of S if it is kept.
void add_full_t(Plan& plan) {
    const double m = number(plan.rows), k = number(std::min(plan.rows, plan.cols));
    const bool recurrence = plan.q.full_t->route == FullTRoute::Recurrence;
    double words = 0;
    for_each_panel(plan, [&](Index first, const PanelTree& tree, double weight) {
        const double rows = number(tree.rows), f = number(first), w = number(tree.width);
        // S of the panel, HᵀS₁ and −S₁ᵀVT; or V₁ᵀV₂ and its products with two triangles
        plan.flops += weight * (recurrence ? (rows * w + 4 * rows * f + 2 * f * w) * w : (2 * rows + f + w) * f * w);
        words += weight * (recurrence ? 3 * rows * f + 2 * rows * w : rows * (f + w));
    });
    if (plan.q.full_t->keep_s && !recurrence) {
        plan.flops += m * k * k;
        words += 2 * m * k;
    }
    plan.bytes_moved += words * bytes_of(plan.scalar);
}

/// Adds the costs of trees of batches. Every level of a tree is read, written in the batch's format, read and written as
/// Q. The columns right of a panel are read and written on every level.
void add_batches(Plan& plan) {
    const double k = number(std::min(plan.rows, plan.cols)), n = number(plan.cols);
    const bool forms = plan.q == QForm::Explicit || plan.q == QForm::Reflectors;
    const PanelColumns columns(plan);
    double words = 0, held = 0;
    for_each_sampled(columns.count(), [&](Index i, double weight) {
        const Range cols = columns[i];
        const double m = number(plan.rows - cols.begin), w = number(cols.size()), end = number(cols.end);
        double rows = 0;
        for (const BatchLevel& level : levels_of(plan.tree(), plan.rows - cols.begin, cols.size()))
            rows += number(level.rows);
        for (const double right : {n - end, k - end}) {
            plan.flops += weight * (2 * rows * w * w + 4 * rows * w * right);
            words += weight * 2 * rows * (w + right);
            if (!forms) break;
        }
        // V, and the stacks of triangles
        held += weight * (2 * rows - m) * w;
    });
    if (plan.q == QForm::Reflectors) {
        plan.flops += reconstruction_flops(number(plan.rows), k);
        words += 2 * number(plan.rows) * n;
    }
    plan.bytes_moved += words * bytes_of(plan.scalar);
    plan.workspace_bytes = (held + 4 * k * n) * bytes_of(plan.scalar);
}

/// Adds the costs of Gram-Schmidt, by the halves of gram_schmidt.cpp. Selective reorthogonalization is counted as none.
void add_gram_schmidt(Plan& plan) {
    const double m = number(plan.rows), nb = number(plan.panel_width);
    const bool modified = plan.method == Method::ModifiedGramSchmidt;
    const bool by_cholesky = plan.gram_schmidt().panel == GramSchmidtPanel::CholeskyQR2;
    // a level of the recursion: columns of a node, and the number of such nodes
    std::map<double, double> level{{number(plan.cols), 1}};
    while (!level.empty()) {
        std::map<double, double> next;
        for (const auto& [n, count] : level) {
            if (n <= nb) {
                plan.flops += count * (by_cholesky ? cholesky_flops(false, m, n) + m * n * n : 3 * m * n * n);
                plan.bytes_moved += count * 2 * m * n * bytes_of(plan.scalar);
                continue;
            }
            const double left = std::ceil(std::floor(n / nb) / 2) * nb, right = n - left;
            next[left] += count;
            next[right] += count;
            plan.flops += count * 4 * m * left * right;
            // A₂ is read twice and written for each product, Q₁ read twice
            const double products = modified ? left / nb : 1;
            plan.bytes_moved += count * (3 * m * right * products + 2 * m * left) * bytes_of(plan.scalar);
        }
        level = std::move(next);
    }
}

/// Returns the bytes of products whose operands are converted: halves of Q in two layouts, halves of the columns that
/// are projected, and sums of parts of the coefficients.
double converted_bytes(const Plan& plan) {
    const double half = number(plan.cols) / 2;
    const double one = (plan.arithmetic == Arithmetic::Corrected ? 6 : 2) * number(plan.rows) * half;
    const double most = number(CommonTuning::halves_bytes);
    return 2 * std::min(one, number(CommonTuning::shared_halves_bytes)) + std::min(one, most) +
           std::min(4 * half * half * number(plan.rows) / number(CommonTuning::corrected_run_rows), most);
}

/// Returns the columns of C in the costs of QForm::Any.
double columns_of_c(const Plan& plan) { return number(std::min<Index>(plan.cols, 16)); }

/// Returns the time of the certified R, in one pass.
double time_of_cholesky(const StepTimes& t, double m, double n) {
    return t.gram(m * n * n, m * n) + t.square(n * n * n, n * n, n);
}
/// Returns the time of the LU of a reconstruction, and of T. Its n×n steps have a fixed time, too: twice a
/// certificate's.
double time_of_lu(const StepTimes& t, double n) { return 2 * t.certificate + t.signed_lu(n * n * n, n * n); }

/// Returns the time of the panels of a plan by blocked Householder or by trees.
double time_of_panels(const Plan& plan, const StepTimes& t) {
    const bool by_trees = plan.method != Method::BlockedHouseholder, forms_q = plan.q == QForm::Explicit;
    const Index k = std::min(plan.rows, plan.cols);
    double time = 0;
    for_each_panel(plan, [&](Index first, const PanelTree& tree, double weight) {
        const double m = number(tree.rows), w = number(tree.width);
        const double nodes = by_trees ? absorbed(tree) : 0, domains = number(tree.domains());
        const double idle = by_trees && 2 * m * w * w > t.threaded_flops ? 2 * std::ceil(domains / 2) / domains : 1;
        const auto update = [&](double p) {
            if (!by_trees) return t.update(4 * m * w * p, m * p);
            return t.tree_update(4 * m * w * p, m * p) + t.node(2 * nodes * w * w * p, 0);
        };
        const double trailing = number(plan.cols - first - tree.width), trailing_q = number(k - first - tree.width);
        double one = update(trailing);
        if (by_trees) {
            one += idle * t.leaf(2 * m * w * w, m * w) + t.leaf(0, 0, (number(tree.leaf_count()) + nodes) * w) +
                   t.node(2.0 / 3 * nodes * w * w * w, nodes * w * w);
        } else if (is_tall_panel(plan, tree.rows)) {
            one += t.certificate + time_of_cholesky(t, m, w) + t.solve(m * w * w, m * w) + time_of_lu(t, w);
        } else {
            one += t.panel(3 * m * w * w, m * w, w);
        }
        if (forms_q)
            one += update(trailing_q) + idle * t.form(2 * m * w * w, m * w) + t.node(2.0 / 3 * nodes * w * w * w, 0);
        if (plan.q == QForm::Any) one += update(columns_of_c(plan));
        time += weight * one;
    });
    return time;
}

}  // namespace

double modelled_time(const Plan& plan, const StepTimes& t) {
    const double m = number(plan.rows), n = number(plan.cols);
    if (!is_cholesky(plan.method)) return t.call + t.scan * m * n + time_of_panels(plan, t);
    double time = t.call + t.certificate + time_of_cholesky(t, m, n);
    if (plan.q != QForm::None) time += t.solve(m * n * n, m * n);
    if (plan.q == QForm::Reflectors) time += time_of_lu(t, n);
    // Q's top block is factored, and C multiplied by Y and Yᵀ
    if (plan.q == QForm::Any)
        time +=
            3 * t.certificate + t.square(4 * n * n * n, 4 * n * n) + t.update(4 * m * n * columns_of_c(plan), m * n);
    return time;
}

void count_costs(Plan& plan) {
    const double m = number(plan.rows), n = number(plan.cols), k = std::min(m, n);
    const double A_bytes = m * n * bytes_of(plan.scalar), small_bytes = k * n * bytes_of(plan.scalar);
    const bool none = plan.q == QForm::None, reflectors = plan.q == QForm::Reflectors;
    if (is_cholesky(plan.method)) {
        const bool sketched = plan.method == Method::RandomizedCholeskyQR;
        plan.flops = cholesky_flops(sketched, m, n);
        if (!none) plan.flops += reflectors ? reconstruction_flops(m, n) : m * n * n;
        // reads and writes of A: Gram, or sketch, and solve and Gram; last solve
        plan.bytes_moved = (1 + (sketched ? 2 : 0) + (none ? 0 : 2)) * A_bytes;
        plan.workspace_bytes = (number(CommonTuning::row_chunks) + 4) * small_bytes;
        return;
    }
    if (is_gram_schmidt(plan.method)) {
        plan.flops = plan.bytes_moved = 0;
        if (n > 0) add_gram_schmidt(plan);
        const double nb = number(plan.panel_width);
        plan.workspace_bytes = 2 * nb * n * bytes_of(plan.scalar) + small_bytes;
        if (plan.gram_schmidt().reorthogonalization == Reorthogonalization::Always) {
            plan.flops *= 2;
            plan.bytes_moved *= 2;
            if (plan.method == Method::ClassicalGramSchmidt && n > nb) {
                // R₂, and R₂R₁
                plan.workspace_bytes += small_bytes;
                plan.flops += n * n * n / 3;
            } else {
                // every panel by itself against all columns before it
                plan.bytes_moved += m * n * (n / nb) * bytes_of(plan.scalar);
            }
        }
        if (takes_halves(plan.arithmetic)) {
            plan.workspace_bytes += converted_bytes(plan);
        }
        return;
    }
    const bool lapack_format = plan.method == Method::BlockedHouseholder;
    plan.flops = plan.bytes_moved = 0;
    if (is_tree(plan.method) && plan.tree().domain_leaves == 0) return add_batches(plan);
    const bool forms_q = plan.q == QForm::Explicit || (reflectors && !lapack_format);
    const Index columns = std::min(plan.rows, plan.cols);
    double t_bytes = 0;
    if (plan.q.full_t && lapack_format) {
        add_full_t(plan);
        t_bytes += (plan.q.full_t->route == FullTRoute::Recurrence || plan.q.full_t->keep_s ? m : k) * k *
                   bytes_of(plan.scalar);
    }
    for_each_panel(plan, [&](Index first, const PanelTree& tree, double weight) {
        const Index end = first + tree.width;
        const double panel_bytes = number(tree.rows) * number(tree.width) * bytes_of(plan.scalar);
        const double trailing_bytes = number(tree.rows) * number(plan.cols - end) * bytes_of(plan.scalar);
        // the panel is read and written; the trailing matrix is read for VᵀC, then read and written for C − V W
        const double bytes = 2 * panel_bytes + 3 * trailing_bytes;
        plan.flops += weight * (factor_flops(plan, tree) + apply_flops(tree, plan.cols - end));
        plan.bytes_moved += weight * bytes;
        if (forms_q) {
            plan.flops += weight * (form_flops(tree) + apply_flops(tree, columns - end));
            plan.bytes_moved += weight * bytes;
        }
        t_bytes += weight * number(tree.inner_block) * number(tree.t_cols()) * bytes_of(plan.scalar);
    });
    if (reflectors && !lapack_format) {
        plan.flops += reconstruction_flops(m, k);
        plan.bytes_moved += 2 * A_bytes;
    }
    if (none && plan.method == Method::TSQR && m >= n) plan.bytes_moved = A_bytes;
    plan.workspace_bytes = t_bytes + 4 * small_bytes;
    if (plan.householder().one_launch) plan.workspace_bytes += A_bytes;  // V and R in the device's own format
    if (plan.arithmetic == Arithmetic::Corrected) {
        // V twice in six bytes an element; for the columns of C that fit into halves_bytes: six bytes, sums of VᵀC, W
        const double nb = number(plan.panel_width), run = number(CommonTuning::corrected_run_rows);
        const double width = std::min(n, number(CommonTuning::halves_bytes) / (6 * m));
        plan.workspace_bytes += 12 * m * nb + width * (6 * m + 4 * nb * m / run + 14 * nb);
    }
}

}  // namespace quoin
