// Flops, words moved, workspace and modelled time of a plan.

#include <algorithm>
#include <cmath>
#include <map>

#include "algorithms/one_matrix/panel_layout.hpp"
#include "algorithms/one_matrix/pivoted_qr.hpp"
#include "algorithms/one_matrix/plan.hpp"
#include "algorithms/shared/sampled_sum.hpp"
#include "devices.hpp"
#include "primitives/kernel_workspace.hpp"

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

/// Adds the costs of trees of batches. Every level of a tree is read, written in the batch's format, read and written
/// as Q. The columns right of a panel are read and written on every level.
void add_batches(Plan& plan) {
    const double k = number(std::min(plan.rows, plan.cols)), n = number(plan.cols);
    const bool forms = plan.q == QForm::Explicit || plan.q == QForm::Reflectors;
    const PanelColumns columns(plan);
    double words = 0;
    for_each_sampled(columns.count(), [&](Index i, double weight) {
        const Range cols = columns[i];
        const double w = number(cols.size()), end = number(cols.end);
        double rows = 0;
        for (const BatchLevel& level : levels_of(plan.tree(), plan.rows - cols.begin, cols.size()))
            rows += number(level.rows);
        for (const double right : {n - end, k - end}) {
            plan.flops += weight * (2 * rows * w * w + 4 * rows * w * right);
            words += weight * 2 * rows * (w + right);
            if (!forms) break;
        }
    });
    if (plan.q == QForm::Reflectors) {
        plan.flops += reconstruction_flops(number(plan.rows), k);
        words += 2 * number(plan.rows) * n;
    }
    plan.bytes_moved += words * bytes_of(plan.scalar);
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
    const double A_bytes = m * n * bytes_of(plan.scalar);
    const bool none = plan.q == QForm::None, reflectors = plan.q == QForm::Reflectors;
    if (is_cholesky(plan.method)) {
        const bool sketched = plan.method == Method::RandomizedCholeskyQR;
        plan.flops = cholesky_flops(sketched, m, n);
        if (!none) plan.flops += reflectors ? reconstruction_flops(m, n) : m * n * n;
        // reads and writes of A: Gram, or sketch, and solve and Gram; last solve
        plan.bytes_moved = (1 + (sketched ? 2 : 0) + (none ? 0 : 2)) * A_bytes;
        return;
    }
    if (is_gram_schmidt(plan.method)) {
        plan.flops = plan.bytes_moved = 0;
        if (n > 0) add_gram_schmidt(plan);
        const double nb = number(plan.panel_width);
        if (plan.gram_schmidt().reorthogonalization == Reorthogonalization::Always) {
            plan.flops *= 2;
            plan.bytes_moved *= 2;
            if (plan.method == Method::ClassicalGramSchmidt && n > nb) {
                // R₂R₁
                plan.flops += n * n * n / 3;
            } else {
                // every panel by itself against all columns before it
                plan.bytes_moved += m * n * (n / nb) * bytes_of(plan.scalar);
            }
        }
        return;
    }
    const bool lapack_format = plan.method == Method::BlockedHouseholder;
    plan.flops = plan.bytes_moved = 0;
    if (is_tree(plan.method) && plan.tree().domain_leaves == 0) return add_batches(plan);
    const bool forms_q = plan.q == QForm::Explicit || (reflectors && !lapack_format);
    const Index columns = std::min(plan.rows, plan.cols);
    if (plan.q.full_t && lapack_format) add_full_t(plan);
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
    });
    if (reflectors && !lapack_format) {
        plan.flops += reconstruction_flops(m, k);
        plan.bytes_moved += 2 * A_bytes;
    }
    if (none && plan.method == Method::TSQR && m >= n) plan.bytes_moved = A_bytes;
}

namespace {

/// The workspace of a plan in entries of T: the matrices that the factorization makes beyond A, and the arena that the
/// primitives share. What one thread has in its caches is left out.
template <class T, class D>
class Workspace {
public:
    Workspace(const Tuning<D>& tuning, const Plan& plan)
        : kernel_{tuning},
          plan_(plan),
          m_(number(plan.rows)),
          n_(number(plan.cols)),
          k_(std::min(m_, n_)),
          nb_(number(plan.panel_width)),
          square_(held(k_ * n_)) {}

    double entries() const {
        if constexpr (on_host) {
            if (plan_.pivoting) return with_pivots();
            if (is_cholesky(plan_.method)) return by_cholesky();
            if (is_tree(plan_.method)) return by_trees();
        } else {
            if (plan_.pivoting) return with_pivots_on_gpu();
            if (is_cholesky(plan_.method)) return by_cholesky_on_gpu();
            if (is_tree(plan_.method)) return by_batches();
        }
        if (is_gram_schmidt(plan_.method)) return by_gram_schmidt();
        // V and R in the device's own format
        return plan_.householder().one_launch ? m_ * n_ + results(k_) : by_panels(k_);
    }

private:
    static constexpr bool on_host = !Tuning<D>::asynchronous;
    static constexpr double sum = double(sizeof(Sum<T, D>)) / sizeof(T);  // entries that a sum over rows takes

    bool forms_q() const { return plan_.q == QForm::Explicit; }
    bool reflectors() const { return plan_.q == QForm::Reflectors; }
    /// The entries of a matrix, in whole pages of the host if it is large.
    static double held(double entries) {
        if constexpr (on_host) {
            const double page = number(Tuning<D>::large_page) / sizeof(T);
            if (entries >= page * number(Tuning<D>::mapped_from_pages)) return page * std::ceil(entries / page);
        }
        return entries;
    }
    /// Partial sums of AᵀB on the host, for n columns of A, in chunks of at least `least` rows, and p of B.
    double partial_sums(Index least, double n, double p) const {
        return std::ceil(m_ / number(kernel_.tuning.rows_of_chunk(plan_.rows, std::max<Index>(1, least)))) * n * p;
    }
    /// Partial sums of a product of n and p columns.
    double partial_sums(double n, double p) const {
        return partial_sums(std::max(Tuning<D>::chunk_rows, static_cast<Index>(n)), n, p);
    }
    /// R and the thin Q of r columns, if they do not stay in A.
    double results(double r) const {
        const bool with_r = plan_.q == QForm::None || forms_q();
        return (with_r ? held(r * n_) : 0) + (forms_q() && m_ < n_ ? held(m_ * r) : 0);
    }

    /// Panels in LAPACK's format, and R of `rows` rows.
    double by_panels(double rows) const {
        const double width = number(std::max(plan_.panel_width, plan_.householder().last_width));
        double full_t = 0, arena = arena_of_panels(width);
        if (plan_.q.full_t) {
            const auto [keep_s, route] = *plan_.q.full_t;
            const double Tf = held(k_ * k_), with_s = held(m_ * k_);
            if (route == FullTRoute::Recurrence && width < k_) {
                full_t = with_s + (!keep_s && m_ > k_ ? Tf : 0);
            } else if (keep_s || width < k_) {
                full_t = Tf + (keep_s ? with_s : 0);
                arena = std::max(arena, arena_of_joined_t());
            }
        }
        return held(width * k_) + results(rows) + full_t + held(arena);
    }
    /// VᵀV of panels whose T are joined, and the steps to S.
    double arena_of_joined_t() const {
        const bool keep_s = plan_.q.full_t->keep_s;
        if constexpr (on_host) {
            return std::max(partial_sums(k_, number(Tuning<D>::wy_block)), keep_s ? k_ * k_ : 0);
        } else {
            // triangles that are multiplied are copied by parts, with the columns beside them
            double part = k_;
            while (part > number(Tuning<D>::copied_width)) part /= 2;
            const Index right = std::min(plan_.cols, Tuning<D>::wy_block), left = std::min(plan_.cols, 2 * right);
            const double sums = kernel_.inner_product(plan_.rows, left, right, plan_.scalar, Arithmetic::Native);
            return std::max({sums / sizeof(T), (k_ + number(right)) * number(right), keep_s ? (m_ + part) * part : 0});
        }
    }
    /// Updates by panels of `width` columns; on a GPU the next panel beside them.
    double arena_of_panels(double width) const {
        if constexpr (on_host) {
            const bool collide = kernel_.tuning.columns_collide(plan_.rows * Index{sizeof(T)});
            return collide ? number(kernel_.tuning.rows_apart(plan_.rows, sizeof(T))) * width : 0;
        } else {
            const double panel = kernel_.panel(plan_.rows, static_cast<Index>(width), plan_.scalar) / sizeof(T);
            if (plan_.q.full_t && plan_.q.full_t->route == FullTRoute::Recurrence) return panel + (m_ + n_) * width;
            const auto& pivoting = plan_.pivoting;
            // greedy pivots update nothing before Q is formed
            const Index updated = pivoting && pivoting->kind == Pivots::Greedy ? 0 : plan_.cols;
            double update = 0;
            const PanelColumns columns(plan_);
            for_each_sampled(columns.count(), [&](Index i, double) {
                const Range here = columns[i];
                const auto add = [&](Index cols) {
                    update = std::max(update, kernel_.update(plan_.rows - here.begin, here.size(), cols, plan_.scalar,
                                                             plan_.arithmetic));
                };
                // the next panel's columns first, without pivots
                const Index next = pivoting || i + 1 == columns.count() ? 0 : columns[i + 1].size();
                if (here.end < updated) {
                    add(next);
                    add(updated - here.end - next);
                }
                if (forms_q()) add(static_cast<Index>(k_) - here.end);
            });
            return panel + update / sizeof(T);
        }
    }

    double by_trees() const {
        double Tf = 0;
        for_each_panel(plan_, [&](Index, const PanelTree& tree, double weight) {
            Tf += weight * number(tree.inner_block) * number(tree.t_cols());
        });
        const PanelTree tree = tree_of(plan_, plan_.rows, std::min(plan_.panel_width, static_cast<Index>(k_)));
        const double leaf = number(std::min(tree.leaf_rows, tree.rows)) * nb_;
        // a leaf of the thread, and to form Q two, before the first is returned
        const double work = nb_ * nb_ + 2 * number(tree.inner_block) * nb_, factor = work + leaf,
                     form = work + 2 * leaf;
        if (plan_.q == QForm::None && nb_ >= n_)
            return held(Tf) + held(number(tree.domains()) * nb_ * n_) + square_ + held(factor);
        const bool forms = forms_q() || reflectors();
        const double factored = held(Tf) + held(factor + (forms ? form : 0));
        if (!reflectors()) return results(k_) + factored;
        return square_ + std::max(factored, reconstruction() + std::max(held(form), held(k_ * k_)));
    }

    double by_batches() const {
        const bool forms = forms_q() || reflectors(), one_panel = plan_.panel_width >= plan_.cols;
        double V = 0, most = 0, form_stack = 0;
        const PanelColumns columns(plan_);
        for_each_sampled(columns.count(), [&](Index i, double weight) {
            const Range cols = columns[i];
            const double w = number(cols.size());
            double in_batches = 0, above = 0;  // rows of V, and of the triangles one above the other
            for (const BatchLevel& level : levels_of(plan_.tree(), plan_.rows - cols.begin, cols.size())) {
                in_batches += number(level.count() * level.each);
                if (level.rows < plan_.rows - cols.begin) above += number(level.rows);
            }
            // R alone keeps V of a panel until its update
            const double panel = plan_.q == QForm::None && one_panel ? 0 : in_batches * w;
            V = plan_.q == QForm::None ? panel : V + weight * panel;
            most = std::max(most, V + above * std::max(2 * w, n_ - number(cols.end)));
            if (forms) form_stack = std::max(form_stack, above * std::max(w, k_ - number(cols.end)));
        });
        const double wide_q = forms_q() && m_ < n_ ? m_ * k_ : 0;
        return square_ + std::max({most, V + form_stack, wide_q, reflectors() ? reconstruction() : 0});
    }

    /// T and U, an LU and its triangle; on the host a copy of that, whose condition is estimated.
    double reconstruction() const { return (on_host ? 5 : 3 + sum) * held(k_ * k_); }

    double by_cholesky() const {
        // R, and the triangles of two passes
        const double matrices = (1 + 2 * sum) * square_;
        double later = reflectors() ? reconstruction() : 0, arena = partial_sums(plan_.cols, n_, n_);
        if (plan_.method == Method::RandomizedCholeskyQR) {
            later = std::max(later, sum * held(std::min(m_, 4 * n_) * n_));
            const double chunk = number(kernel_.tuning.sketch_chunk_rows(plan_.rows, plan_.cols));
            if (m_ >= 4 * n_) arena = std::max(arena, std::ceil(m_ / chunk) * 4 * n_ * n_);
        }
        return matrices + later + held(arena);
    }

    double by_cholesky_on_gpu() const {
        const bool sketched = plan_.method == Method::RandomizedCholeskyQR;
        const bool stores_q = sketched || plan_.q != QForm::None;
        const Index m = plan_.rows, n = plan_.cols;
        const bool one_pass = !sketched && CommonTuning::norm_proves_one_pass(m, n);
        // R, T, and the triangles of the passes
        const double matrices = (1 + (reflectors() ? 1 : 0) + (one_pass ? 1 : 2) * sum) * square_;
        const double solution = one_pass && !stores_q ? 0 : kernel_.gram_of_solution(m, n, plan_.scalar, stores_q);
        const double arena = std::max({kernel_.cholesky(n, sketched), kernel_.gram(m, n, plan_.scalar), solution});
        // U, an LU, its triangle and Tᵀ
        const double later = reflectors() ? (3 + sum) * square_ : 0;
        const double sketch = !sketched ? 0 : sum * std::min(m_, 4 * n_) * n_ + kernel_.sketch(m, n) / sizeof(T);
        return matrices + std::max(later + arena / sizeof(T), sketch);
    }

    double by_gram_schmidt() const {
        const bool modified = plan_.method == Method::ModifiedGramSchmidt;
        const auto again = plan_.gram_schmidt().reorthogonalization;
        // R; L; coefficients of a panel
        double matrices = square_ + (modified ? nb_ * n_ : 0) + (again != Reorthogonalization::Off ? nb_ * n_ : 0);
        // R₂, and columns of R₁
        if (again == Reorthogonalization::Always && !modified && n_ > nb_)
            matrices += square_ + held(n_ * std::min(n_, number(CommonTuning::r_product_width)));
        return matrices + held(projections());
    }
    /// Projections of the right halves of the columns from the left ones, on a GPU on all levels.
    double projections() const {
        const bool modified = plan_.method == Method::ModifiedGramSchmidt;
        const auto left_of = [&](double n) { return std::ceil(std::floor(n / std::max(1.0, nb_)) / 2) * nb_; };
        if constexpr (on_host) {
            return modified ? partial_sums(nb_, n_) : partial_sums(left_of(n_), n_ - left_of(n_));
        } else {
            double most = 0;
            for (double n = n_; n > nb_; n = left_of(n)) {
                const Index m = plan_.rows, right = static_cast<Index>(n - left_of(n)),
                            left = modified ? plan_.panel_width : static_cast<Index>(left_of(n));
                most = std::max(most, modified ? kernel_.inner_product(m, left, right, plan_.scalar, Arithmetic::Native)
                                               : kernel_.projection(m, left, right, plan_.scalar, plan_.arithmetic));
            }
            return most / sizeof(T);
        }
    }

    double with_pivots() const {
        const PivotPlan& pivoting = *plan_.pivoting;
        const bool strong = pivoting.kind == Pivots::Strong;
        if (pivoting.chosen_first) {
            Plan without = plan_;
            without.pivoting.reset();
            // the pivots of R, or of a sketch of 4n rows, while the arena keeps its sums
            double chosen = (strong ? 4 : 2) * square_;
            if (pivoting.kind == Pivots::Randomized && plan_.q != QForm::None) chosen = 4 * sum * square_;
            return Workspace(kernel_.tuning, without).entries() + chosen;
        }
        const double Tf = held(pivoted_width() * k_);
        double chosen = 0;
        if (strong) {
            const double sums = kernel_.tuning.tall(plan_.rows, plan_.cols, plan_.scalar)
                                    ? 3 * square_ + held(partial_sums(plan_.cols, n_, n_))
                                    : held(m_ * n_) + square_;
            chosen = std::max({sums, 3 * square_, last_rows()});
        } else if (pivoting.kind == Pivots::Greedy) {
            chosen = held(nb_ * n_);
        } else {
            chosen = sketches(std::max(held(partial_sums(pivoted_width() + 8, n_)), last_rows()));
        }
        return std::max(by_panels(most_pivots()), Tf + chosen);
    }
    double most_pivots() const { return plan_.pivoting->max_rank > 0 ? number(plan_.pivoting->max_rank) : k_; }
    double pivoted_width() const { return std::min(nb_, most_pivots()); }
    /// A sketch of the columns, the random signs, and the larger of what makes it and of its updates with `later`.
    double sketches(double later) const {
        const Index rows = static_cast<Index>(pivoted_width()) + 8, signs = sign_rows<D>(plan_.rows, rows);
        double sums = signs == plan_.rows ? 0 : sum;  // of E A
        if constexpr (on_host) {
            const double chunk = number(kernel_.tuning.sketch_chunk_rows(plan_.rows, plan_.cols));
            if (sums > 0) sums += std::ceil(m_ / chunk);
        } else if (sums > 1) {
            sums += 1;
        }
        const double made = held(sums * number(signs) * n_), updates = held(number(rows) * n_);
        return held(number(signs * rows)) + updates + std::max(made, updates + later);
    }
    /// R of the rows of the last panel, from V and V T.
    double last_rows() const { return 2 * held(m_ * pivoted_width()); }

    double with_pivots_on_gpu() const {
        const PivotPlan& pivoting = *plan_.pivoting;
        const double Tf = nb_ * k_;
        if (pivoting.chosen_first) {
            // R of A, a copy, and the factorization of it
            if (plan_.q == QForm::None) return std::max(r_alone(), 4 * square_);
            Plan without = plan_;
            without.pivoting.reset();
            const double sketch = 2 * sum * std::min(m_, 4 * n_) * n_;
            return std::max(Workspace(kernel_.tuning, without).entries(),
                            pivoting.kind == Pivots::Randomized ? sketch : r_alone() + square_);
        }
        double chosen = 0;
        if (pivoting.kind == Pivots::Strong) {
            chosen = r_alone();
        } else if (pivoting.kind == Pivots::Greedy) {
            chosen = nb_ * n_;
        } else {
            const Index rows = static_cast<Index>(pivoted_width()) + 8;
            const double product =
                sign_rows<D>(plan_.rows, rows) < plan_.rows
                    ? 0
                    : kernel_.inner_product(plan_.rows, rows, plan_.cols, plan_.scalar, plan_.arithmetic);
            // the arena keeps the larger of its products
            return Tf + std::max(product / sizeof(T), arena_of_panels(nb_)) +
                   std::max(sketches(last_rows()), results(most_pivots()));
        }
        return std::max(by_panels(most_pivots()), Tf + chosen);
    }
    /// R of A alone. A is only read: without CholeskyQR2 it is copied.
    double r_alone() const {
        Plan alone = plan_;
        alone.pivoting.reset();
        alone.q = QForm::None;
        const bool tall = kernel_.tuning.tall(plan_.rows, plan_.cols, plan_.scalar);
        alone.method = tall ? Method::CholeskyQR2 : Method::BlockedHouseholder;
        return Workspace(kernel_.tuning, alone).entries() + (tall ? 0 : m_ * n_);
    }

    const KernelWorkspace<D> kernel_;
    const Plan& plan_;
    double m_, n_, k_, nb_;
    double square_;  // R
};

}  // namespace

template <class T, class D>
double workspace_bytes(const Tuning<D>& tuning, const Plan& plan) {
    return sizeof(T) * Workspace<T, D>(tuning, plan).entries();
}

#define QUOIN_INSTANTIATE(T, D) template double workspace_bytes<T, D>(const Tuning<D>&, const Plan&);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
