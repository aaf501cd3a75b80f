// The steps of a plan, and the kernels that a device chooses for them.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "algorithms/one_matrix/panel_layout.hpp"
#include "devices.hpp"
#include "primitives/kernel_names.hpp"

namespace quoin {

namespace {

/// Collects the steps of a plan on D.
template <class D>
class KernelUses {
public:
    KernelUses(const Tuning<D>& tuning, const Plan& plan)
        : names_{tuning}, plan_(plan), m_(plan.rows), n_(plan.cols), k_(std::min(m_, n_)), scalar_(plan.scalar) {}

    std::vector<KernelUse> found() && {
        if (k_ == 0) return {};
        switch (plan_.method) {
            case Method::BlockedHouseholder: add_householder(); break;
            case Method::TSQR:
            case Method::CAQR: add_tree(plan_.method); break;
            case Method::ModifiedGramSchmidt:
            case Method::ClassicalGramSchmidt: add_gram_schmidt(); break;
            case Method::RandomizedCholeskyQR: add("S A, a sketch of A", names_.sketch()); [[fallthrough]];
            default: add_cholesky(m_, n_, plan_.q == QForm::Reflectors);
        }
        if (plan_.fallback() != Method::Auto) add_tree(plan_.fallback());
        return std::move(uses_);
    }

private:
    void add(std::string step, std::string kernel) { uses_.push_back({std::move(step), std::move(kernel)}); }

    void add_cholesky(Index m, Index n, bool reconstructs) {
        add(fmt::format("AᵀA of {} columns", n), names_.gram(n, scalar_));
        add("its Cholesky factor", names_.cholesky(n));
        add("A R⁻¹", names_.solve(m, n, scalar_));
        if (reconstructs) add("V and T from its top", names_.reconstruction(n));
    }
    void add_update(Index m, Range panel) {
        const Index p = n_ - panel.end;
        if (p == 0) return;
        add(fmt::format("update of {} columns by {} reflectors of {} rows", p, panel.size(), m),
            names_.update(m, panel.size(), p, scalar_, plan_.arithmetic));
    }
    /// Adds each kernel of the panels once, with the rows of the first and the last panel that it factors.
    void add_panels() {
        const PanelColumns panels(plan_);
        const auto rows = [&](Index i) { return m_ - panels[i].begin; };
        const auto kernel = [&](Index i) {
            return is_tall_panel(plan_, rows(i)) ? "" : names_.panel(rows(i), panels[i].size(), scalar_);
        };
        for (Index first = 0; first < panels.count();) {
            const std::string here = kernel(first);
            // panels lose rows from left to right: panels of one kernel follow each other
            Index last = first, other = panels.count();
            while (other - last > 1) {
                const Index middle = last + (other - last) / 2;
                (kernel(middle) == here ? last : other) = middle;
            }
            const std::string step = first == last ? fmt::format("panel of {} rows", rows(first))
                                                   : fmt::format("panels of {} to {} rows", rows(first), rows(last));
            add(step, here.empty() ? "by Householder reconstruction:" : here);
            if (here.empty()) {
                const Index most = names_.tuning.max_top_cols(rows(first), scalar_);
                add_cholesky(rows(first), std::min(panels[first].size(), most), true);
            }
            add_update(rows(first), panels[first]);
            first = other;
        }
    }
    void add_householder() {
        if (plan_.householder().one_launch) {
            add(fmt::format("the whole {} x {} matrix", m_, n_), names_.batch(m_, n_, scalar_, BatchOf::Matrices));
        } else {
            add_panels();
        }
    }
    void add_tree(Method method) {
        const TreePlan tree = plan_.tree();
        const Index width = method == Method::TSQR ? k_ : std::min(k_, plan_.panel_width);
        if constexpr (Tuning<D>::has_batched_trees) {
            const std::vector<BatchLevel> levels = levels_of(tree, m_, width);
            for (const BatchLevel& level : levels) {
                add(fmt::format("{} of {} rows, {} columns", &level == &levels[0] ? "leaves" : "nodes", level.each,
                                width),
                    names_.batch(level.each, width, scalar_, level.of));
            }
        } else {
            add(fmt::format("leaves of {} rows, {} columns", tree.leaf_rows, width),
                names_.leaf(std::min(tree.leaf_rows, m_), width));
            if (m_ > tree.leaf_rows * tree.domain_leaves)
                add(fmt::format("nodes of {} triangles", tree.fan_in), names_.node(tree.fan_in, width));
        }
    }
    void add_gram_schmidt() {
        const Index width = std::min(plan_.panel_width, n_), p = n_ - width;
        if (plan_.gram_schmidt().panel == GramSchmidtPanel::CholeskyQR2) {
            add_cholesky(m_, width, false);
        } else {
            add(fmt::format("panels of {} columns", width), names_.orthonormalization());
        }
        if (p == 0) return;
        add(fmt::format("QᵀW of {} and {} columns", width, p),
            names_.inner_product(m_, width, p, scalar_, plan_.arithmetic));
        add("W − Q S", names_.subtracted_product(m_, width, p, scalar_, plan_.arithmetic));
    }

    const KernelNames<D> names_;
    const Plan& plan_;
    Index m_, n_, k_;
    ScalarKind scalar_;
    std::vector<KernelUse> uses_;
};

}  // namespace

template <class D>
std::vector<KernelUse> kernels_of(const Plan& plan) {
    return KernelUses<D>(Tuning<D>::here(), plan).found();
}

#define QUOIN_INSTANTIATE(D) template std::vector<KernelUse> kernels_of<D>(const Plan&);
QUOIN_FOR_EACH_DEVICE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
