// Chooses a plan for a matrix: refusals, sizes of each method, the choice of Auto, and the plan's text.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "algorithms/one_matrix/measured_cases.hpp"
#include "algorithms/one_matrix/panel_layout.hpp"
#include "algorithms/one_matrix/plan.hpp"
#include "devices.hpp"
#include "quoin/study.hpp"
#include "quoin/tuning.hpp"

namespace quoin {

namespace {

/// How a plan is chosen beyond its options.
struct Choice {
    bool panels_on_host = false;
    bool built_in = false;  ///< `Auto` compares the built-in times, whatever table the user has
};

template <class D>
void require_tree(const char* what, Index width) {
    if (width <= Tuning<D>::max_tree_cols) return;
    throw InvalidArgument(
        fmt::format("{} is {}, and trees on this device are at most {} columns wide: use caqr with "
                    "narrower panels",
                    what, width, Tuning<D>::max_tree_cols));
}

/// Throws InvalidArgument for the first row of the table that applies to these options and the method chosen for them.
template <class T, class D>
void refuse_what_cannot_be(Index m, Index n, const Options& o, Method method) {
    const Index panel_width = o.method.panel_width();
    const TreeOptions tree = o.method.tree();
    const bool by_gram_schmidt = is_gram_schmidt(method), by_cgs = method == Method::ClassicalGramSchmidt;
    const bool has_halves = corrected_products<T, D>;
    const bool corrected = o.arithmetic == Arithmetic::Corrected;
    const bool rounded = !corrected && o.arithmetic != Arithmetic::Auto && o.arithmetic != Arithmetic::Native;
    const struct {
        bool applies;
        const char* why;
    } refusals[] = {
        {panel_width < 0, "panel_width must not be negative, and is {panel_width}"},
        {tree.leaf_rows < 0, "leaf_rows must not be negative, and is {leaf_rows}"},
        {tree.fan_in < 0 || tree.fan_in == 1, "fan_in must be at least 2 (or 0: Quoin chooses), and is {fan_in}"},
        {by_gram_schmidt && o.q == QForm::Reflectors,
         "{method} holds Q explicitly and has no reflectors: q is any, explicit or none"},
        {m < n && (is_cholesky(method) || by_gram_schmidt),
         "{method} needs at least as many rows as columns, and A is {m} x {n}"},
        {n > Tuning<D>::max_sketch_cols && method == Method::RandomizedCholeskyQR,
         "{method} on this device has at most {max_sketch_cols} columns, and A is {m} x {n}"},
        {rounded && !(has_halves && by_cgs),
         "arithmetic {arithmetic} is for f32 on a GPU by cgs, and this is {type} by {method}{device}"},
        {corrected && !(has_halves && (by_cgs || (method == Method::BlockedHouseholder && !o.q.full_t))),
         "arithmetic corrected is for f32 on a GPU by cgs, or by householder without a full T, and this is {type} by "
         "{method}{device}"},
    };
    for (const auto& [applies, why] : refusals) {
        if (!applies) continue;
        throw InvalidArgument(
            fmt::format(fmt::runtime(why), fmt::arg("m", m), fmt::arg("n", n), fmt::arg("method", to_string(method)),
                        fmt::arg("panel_width", panel_width), fmt::arg("leaf_rows", tree.leaf_rows),
                        fmt::arg("fan_in", tree.fan_in), fmt::arg("max_sketch_cols", Tuning<D>::max_sketch_cols),
                        fmt::arg("arithmetic", to_string(o.arithmetic)), fmt::arg("type", to_string(scalar_kind<T>)),
                        fmt::arg("device", Tuning<D>::corrected_products ? "" : " on the host")));
    }
}

/// Returns the arithmetic of the large products: the updates of the planned panels, or the projections of classical
/// Gram-Schmidt.
template <class T, class D>
Arithmetic choose_arithmetic(const Tuning<D>& tuning, const Plan& plan, Arithmetic wanted) {
    if (wanted != Arithmetic::Auto) return wanted;
    const Index m = plan.rows, n = plan.cols;
    const bool pays = (plan.method == Method::ClassicalGramSchmidt && tuning.corrected_projections_pay(m, n)) ||
                      (plan.method == Method::BlockedHouseholder && !plan.q.full_t && tuning.corrected_pays(m, n));
    return corrected_products<T, D> && pays ? Arithmetic::Corrected : Arithmetic::Native;
}

/// Returns the arithmetic of products with Q.
template <class T, class D>
Arithmetic choose_products(const Plan& plan, Arithmetic wanted) {
    const bool possible = corrected_products<T, D> && !is_gram_schmidt(plan.method);
    const bool asked = wanted == Arithmetic::Auto || wanted == Arithmetic::Corrected;
    return possible && asked ? Arithmetic::Corrected : Arithmetic::Native;
}

/// Throws InvalidArgument unless one launch factors rows×width matrices, `what` of a tree of batches.
template <class T, class D>
void require_batch(const char* what, const char* option, Index rows, Index width) {
    if (SmallBatch<T, D>::fits(rows, width, Arithmetic::Auto)) return;
    throw InvalidArgument(
        fmt::format("on a GPU one launch factors all {} of a tree, and none holds {} x {}: choose a smaller {}", what,
                    rows, width, option));
}

/// Chooses leaf_rows, domain_leaves and fan_in of the trees over panels of `width` columns.
template <class T, class D>
TreePlan choose_tree(const Tuning<D>& tuning, const Plan& plan, Index width, const TreeOptions& tree) {
    const Index m = plan.rows;
    TreePlan chosen;
    if (tree.leaf_rows > 0) {
        if (tree.leaf_rows < width) {
            throw InvalidArgument(
                fmt::format("leaf_rows must be at least the panel's width {}, and is {}", width, tree.leaf_rows));
        }
        chosen.leaf_rows = std::min(tree.leaf_rows, std::max(m, width));
    } else {
        chosen.leaf_rows = tuning.leaf_rows(m, width, plan.scalar);
    }
    const Index leaves = std::max<Index>(1, (m + chosen.leaf_rows - 1) / chosen.leaf_rows);
    // rows of the level above the leaves of a tree of batches
    const Index above = std::max<Index>(1, m / chosen.leaf_rows * width + m % chosen.leaf_rows);
    const bool is_flat = tree.fan_in == flat_tree && !Tuning<D>::has_batched_trees;
    if (is_flat) {
        chosen.fan_in = 2;
    } else if (tree.fan_in > 0) {
        // the stride of a level, up to leaves·fan_in, is an Index
        chosen.fan_in = std::min({tree.fan_in, std::max<Index>(2, leaves), std::numeric_limits<Index>::max() / leaves});
    } else {
        chosen.fan_in = tuning.fan_in(above, width, plan.scalar);
    }
    if constexpr (Tuning<D>::has_batched_trees) {
        require_batch<T, D>("leaves", "leaf_rows", chosen.leaf_rows, width);
        require_batch<T, D>("nodes of a level", "fan_in", std::min(above, chosen.fan_in * width), width);
    } else {
        chosen.domain_leaves = is_flat ? leaves : tree.fan_in > 0 ? 1 : tuning.domain_leaves(leaves);
        // a domain has at least as many rows as the panel columns
        chosen.domain_leaves = std::max(chosen.domain_leaves, (width + chosen.leaf_rows - 1) / chosen.leaf_rows);
    }
    return chosen;
}

template <class D>
void choose_gram_schmidt(const Tuning<D>& tuning, Plan& plan, const MethodOptions& given) {
    const Index n = std::max<Index>(1, plan.cols);
    const GramSchmidtPanel panel = plan.method == Method::ModifiedGramSchmidt ? GramSchmidtPanel::MGS
                                   : given.panel() == GramSchmidtPanel::Auto  ? Tuning<D>::gram_schmidt_panel
                                                                              : given.panel();
    plan.choices = GramSchmidtPlan{given.reorthogonalization(), panel};
    const Index width = given.panel_width() > 0 ? given.panel_width() : tuning.gram_schmidt_width(plan.method);
    plan.panel_width = plan.inner_block = std::min(width, n);
}

/// Chooses the width of the last panels, which one launch factors. They follow panels with too many rows for that.
template <class D>
void choose_last_panels(const Tuning<D>& tuning, const Plan& plan, HouseholderPlan& chosen) {
    const Index rows = tuning.max_rows_in_strips(plan.scalar), before = plan.rows - rows,
                k = std::min(plan.rows, plan.cols);
    if (rows == 0 || before <= 0 || before >= k) return;
    chosen.last_rows = rows;
    chosen.last_width = std::min(k - before, Tuning<D>::last_panel_width);
}

/// Plans everything but the choice of the method and the costs.
template <class T, class D>
Plan laid_out(const Tuning<D>& tuning, Index m, Index n, const Options& options, Method method, bool panels_on_host) {
    const Index panel_width = options.method.panel_width();
    const Index k = std::min(m, n);
    Plan plan;
    plan.rows = m;
    plan.cols = n;
    plan.scalar = scalar_kind<T>;
    plan.q = options.q;
    plan.method = method;
    refuse_what_cannot_be<T, D>(m, n, options, plan.method);
    if (auto& full_t = plan.q.full_t; full_t && full_t->route == FullTRoute::Auto) {
        full_t->route = full_t->keep_s ? FullTRoute::Recurrence : tuning.full_t(m, k);
    }
    plan.check_finite = options.check_finite;
    plan.positive_diagonal = options.positive_diagonal;
    plan.verify = options.verify;
    const bool extends_t = plan.q.full_t && plan.q.full_t->route == FullTRoute::Recurrence;
    const bool by_tsqr = n <= Tuning<D>::max_tree_cols;
    plan.arithmetic = choose_arithmetic<T>(tuning, plan, options.arithmetic);
    plan.products = choose_products<T, D>(plan, options.arithmetic);
    const Index full = std::max<Index>(1, k);
    const auto trees = [&](Index width) { return choose_tree<T>(tuning, plan, width, options.method.tree()); };
    switch (plan.method) {
        case Method::BlockedHouseholder: {
            HouseholderPlan chosen;
            chosen.panels_on_host = panels_on_host && Tuning<D>::asynchronous;
            plan.panel_width = std::min(full, panel_width > 0 ? panel_width
                                              : chosen.panels_on_host
                                                  ? tuning.host_panel_width(k)
                                                  : tuning.panel_width(m, k, plan.scalar, plan.arithmetic, extends_t));
            if (panel_width == 0 && !chosen.panels_on_host && !extends_t) choose_last_panels(tuning, plan, chosen);
            plan.inner_block = std::max(plan.panel_width, chosen.last_width);
            chosen.one_launch = panel_width == 0 && !panels_on_host && !plan.q.full_t &&
                                SmallBatch<T, D>::pays_alone(m, n, options.arithmetic);
            chosen.reconstruct_rows =
                chosen.panels_on_host ? 0 : tuning.reconstruct_rows(plan.panel_width, plan.scalar);
            chosen.tree = trees(std::min(plan.panel_width, Tuning<D>::max_tree_cols));
            plan.choices = chosen;
            break;
        }
        case Method::CAQR:
            plan.panel_width = std::min(full, panel_width > 0 ? panel_width : Tuning<D>::tree_width);
            require_tree<D>("panel_width", plan.panel_width);
            plan.inner_block = tuning.inner_block(plan.panel_width);
            plan.choices = trees(plan.panel_width);
            break;
        case Method::ModifiedGramSchmidt:
        case Method::ClassicalGramSchmidt: choose_gram_schmidt(tuning, plan, options.method); return plan;
        case Method::TSQR:
            require_tree<D>("the number of columns of tsqr", full);
            plan.panel_width = full;
            plan.inner_block = tuning.inner_block(full);
            plan.choices = trees(full);
            break;
        default: {
            plan.panel_width = by_tsqr ? full : Tuning<D>::tree_width;
            plan.inner_block = tuning.inner_block(plan.panel_width);
            const bool falls_back = options.method == Method::Auto;
            plan.choices = CholeskyPlan{!falls_back ? Method::Auto
                                        : by_tsqr   ? Method::TSQR
                                                    : Method::CAQR,
                                        trees(plan.panel_width)};
        }
    }
    return plan;
}

/// Returns the plan of least modelled time among the methods that `Auto` compares.
template <class T, class D>
Plan cheapest_plan(const Tuning<D>& tuning, Index m, Index n, const Options& options, Choice choice) {
    const std::span<const Method> methods = compared_methods<D>(m, n, scalar_kind<T>, options.q);
    if (methods.size() == 1) return laid_out<T>(tuning, m, n, options, methods[0], choice.panels_on_host);
    const StepTimes& times =
        choice.built_in ? tuning.built_in_step_times(scalar_kind<T>) : tuning.step_times(scalar_kind<T>);
    Plan best;
    double least = std::numeric_limits<double>::infinity();
    for (const Method method : methods) {
        Plan plan = laid_out<T>(tuning, m, n, options, method, choice.panels_on_host);
        const double time = modelled_time(plan, times);
        if (time < least) {
            least = time;
            best = std::move(plan);
        }
    }
    best.tuning = choice.built_in ? 0 : tuning.table_id();
    return best;
}

/// Returns the plan of the method that the tuning names for the shape.
template <class T, class D>
Plan plan_by_shape(const Tuning<D>& tuning, Index m, Index n, const Options& options, Choice choice) {
    Options formed = options;
    Method method = Method::TSQR;
    if (options.q != QForm::Any || options.q.full_t || !Tuning<D>::tree_is_any_form(m, n)) {
        formed.q.form = held_form<D>(options.q.form, Method::BlockedHouseholder);
        const bool by_gram = (formed.q.full_t || !tuning.cluster_pays(m, n, scalar_kind<T>, formed.q.form)) &&
                             (formed.q == QForm::Reflectors ? tuning.reconstruction_pays(m, n, scalar_kind<T>)
                                                            : tuning.tall(m, n, scalar_kind<T>));
        // trees have no full T
        const Method tall = formed.q.full_t ? Method::CholeskyQR2 : tuning.tall_method(n, scalar_kind<T>);
        method = by_gram ? tall : Method::BlockedHouseholder;
    }
    return laid_out<T>(tuning, m, n, formed, method, choice.panels_on_host);
}

template <class T, class D>
Plan chosen_plan(const Tuning<D>& tuning, Index m, Index n, const Options& options, Choice choice) {
    const auto by = [&](Method method) { return laid_out<T>(tuning, m, n, options, method, choice.panels_on_host); };
    if (options.method != Method::Auto) return by(options.method);
    const auto [panel_width, tree] = std::get<Auto>(options.method);
    if (tree.fan_in > 0 || tree.leaf_rows > 0) {
        const bool fits_tsqr = n <= Tuning<D>::max_tree_cols && (panel_width == 0 || panel_width >= n);
        return by(m >= n && fits_tsqr ? Method::TSQR : Method::CAQR);
    }
    if (panel_width > 0 || n == 0) return by(Method::BlockedHouseholder);
    if constexpr (Tuning<D>::has_step_times) {
        return cheapest_plan<T>(tuning, m, n, options, choice);
    } else {
        Plan plan = plan_by_shape<T>(tuning, m, n, options, choice);
        if (choice.built_in || choice.panels_on_host || options.pivoting || options.q.full_t ||
            options.arithmetic != Arithmetic::Auto)
            return plan;
        const TuningTable& measured = Tuning<D>::table_in_use();
        if (measured.id == 0 || !(tuning.kernels == Tuning<D>::here().kernels)) return plan;
        const Method fastest = nearest_choice(measured.cases, m, n, scalar_kind<T>, options.q.form, plan.method);
        const bool is_possible = fastest == Method::TSQR          ? n <= Tuning<D>::max_tree_cols
                                 : fastest == Method::CholeskyQR2 ? m >= n
                                                                  : true;
        if (fastest != plan.method && is_possible) {
            Options formed = options;
            formed.q.form = held_form<D>(options.q.form, fastest);
            plan = laid_out<T>(tuning, m, n, formed, fastest, choice.panels_on_host);
        }
        plan.tuning = measured.id;
        return plan;
    }
}

/// Throws InvalidArgument for the first row of the table that applies to the options of pivoting.
void refuse_pivoting(Index m, Index n, const Options& o) {
    const Pivoting& p = *o.pivoting;
    const Index k = std::min(m, n);
    const struct {
        bool applies;
        const char* why;
    } refusals[] = {
        {o.method != Method::Auto && o.method != Method::BlockedHouseholder,
         "pivoting is by householder (or auto), and the method is {method}"},
        {o.q.full_t && o.q.full_t->route == FullTRoute::Recurrence,
         "the full T of a pivoted factorization is joined, not by recurrence"},
        {p.max_rank < 0 || p.max_rank > k,
         "the rank asked for must be from 1 to min(m, n) = {k}, or 0 for no limit, and is {max_rank}"},
        {!(p.tolerance >= 0), "a tolerance must not be negative or NaN, and is {tolerance}"},
        {!(p.relative_tolerance >= 0), "a relative tolerance must not be negative or NaN, and is {relative_tolerance}"},
        {!(p.relative_frobenius >= 0),
         "a tolerance relative to ‖A‖_F must not be negative or NaN, and is {relative_frobenius}"},
        {p.kind != Pivots::Auto && p.kind != Pivots::Randomized && p.seed != 0,
         "a seed belongs to randomized pivots, and the pivots are {pivots}"},
        {!(p.strong_bound > 1), "a bound of strong pivots must be above 1, and is {strong_bound}"},
    };
    for (const auto& [applies, why] : refusals) {
        if (!applies) continue;
        throw InvalidArgument(fmt::format(
            fmt::runtime(why), fmt::arg("method", to_string(o.method)), fmt::arg("k", k),
            fmt::arg("max_rank", p.max_rank), fmt::arg("tolerance", p.tolerance),
            fmt::arg("relative_tolerance", p.relative_tolerance), fmt::arg("relative_frobenius", p.relative_frobenius),
            fmt::arg("pivots", to_string(p.kind)), fmt::arg("strong_bound", p.strong_bound)));
    }
}

/// Plans a QR with column pivoting, but for its costs.
template <class T, class D>
Plan pivoted_plan(const Tuning<D>& tuning, Index m, Index n, Options options) {
    refuse_pivoting(m, n, options);
    PivotPlan pivoting{*options.pivoting};
    const Index most = pivoting.max_rank > 0 ? pivoting.max_rank : std::min(m, n);
    const bool has_shape = options.method.panel_width() > 0 || !(options.method.tree() == TreeOptions{});
    if (pivoting.kind == Pivots::Auto) {
        const bool is_seeded = pivoting.seed != 0;
        pivoting.kind = tuning.greedy_pays(std::min(m, n)) && !is_seeded ? Pivots::Greedy : Pivots::Randomized;
    }
    const bool r_alone = options.q == QForm::None;
    // a few columns and their rows of R take at most 4mn max_rank flops, and R of A up to 2mn²
    const bool stops_early = pivoting.kind == Pivots::Randomized && most <= n / 4;
    pivoting.chosen_first = options.method == Method::Auto && !has_shape && n > 0 && n <= Tuning<D>::max_sketch_cols &&
                            (r_alone ? !stops_early : !pivoting.has_limit()) &&
                            m >= tuning.pivots_first_aspect(r_alone) * n;
    if (!pivoting.chosen_first) {
        const bool greedy = pivoting.kind == Pivots::Greedy;
        const Index given = options.method.panel_width();
        const Index width = given > 0 || pivoting.kind == Pivots::Strong
                                ? given
                                : tuning.pivoted_width(greedy, n, most, pivoting.max_rank > 0, scalar_kind<T>);
        options.method = BlockedHouseholder{width, options.method.tree()};
        if (options.q.full_t) options.q.full_t->route = FullTRoute::Joined;
    }
    Plan plan = chosen_plan<T>(tuning, m, n, options, {});
    plan.pivoting = pivoting;
    return plan;
}

template <class T, class D>
Plan plan_of(const Tuning<D>& tuning, Index m, Index n, const Options& options, Choice choice) {
    detail::checked_bytes(m, n, sizeof(T));
    Plan plan =
        options.pivoting ? pivoted_plan<T>(tuning, m, n, options) : chosen_plan<T>(tuning, m, n, options, choice);
    count_costs(plan);
    plan.workspace_bytes = workspace_bytes<T>(tuning, plan);
    return plan;
}

}  // namespace

template <class T, class D>
Plan plan_for(const Tuning<D>& tuning, Index m, Index n, const Options& options, bool built_in) {
    return plan_of<T>(tuning, m, n, options, {.built_in = built_in});
}

template <class T, class D>
Plan plan_qr(const Context<D>& ctx, Index m, Index n, Options options) {
    return plan_for<T>(tuning_of(ctx), m, n, options);
}

template <class T, class D>
Plan study::plan_with_panels_on_host(const Context<D>& ctx, Index m, Index n, Options options) {
    const bool by_tsqr = options.method == Method::CAQR;
    if ((by_tsqr || options.method == Method::Auto) && options.method.tree() == TreeOptions{})
        options.method = BlockedHouseholder{options.method.panel_width()};
    if (options.method != Method::BlockedHouseholder) {
        throw InvalidArgument(fmt::format(
            "panels on the host are by householder, or by caqr without options of trees, and the method is {}",
            to_string(options.method)));
    }
    Plan plan = plan_of<T>(tuning_of(ctx), m, n, options, {.panels_on_host = true});
    HouseholderPlan& chosen = std::get<HouseholderPlan>(plan.choices);
    if (by_tsqr && chosen.panels_on_host) chosen.reconstruct_rows = 1;
    return plan;
}

namespace {

/// Returns the choices of type C, or their defaults.
template <class C, class Choices>
C choices_of(const Choices& choices) {
    const C* const chosen = std::get_if<C>(&choices);
    return chosen ? *chosen : C();
}

}  // namespace

HouseholderPlan Plan::householder() const { return choices_of<HouseholderPlan>(choices); }
GramSchmidtPlan Plan::gram_schmidt() const { return choices_of<GramSchmidtPlan>(choices); }
Method Plan::fallback() const { return choices_of<CholeskyPlan>(choices).fallback; }
TreePlan Plan::tree() const {
    if (const auto* chosen = std::get_if<TreePlan>(&choices)) return *chosen;
    const auto* cholesky = std::get_if<CholeskyPlan>(&choices);
    return cholesky ? cholesky->tree : householder().tree;
}

std::string to_string(const Plan& plan) {
    const HouseholderPlan householder = plan.householder();
    const TreePlan tree = plan.tree();
    const Method fallback = plan.fallback();
    std::string text =
        fmt::format("{} x {} {}: {}", plan.rows, plan.cols, to_string(plan.scalar), to_string(plan.method));
    if (fallback != Method::Auto) text += fmt::format(" (falls back to {})", to_string(fallback));
    text += fmt::format(", Q {}\n", to_string(plan.q));
    if (householder.one_launch)
        text += "one launch factors the whole matrix; V, T and large products with Q go by panels:\n";
    if (is_gram_schmidt(plan.method)) {
        text += fmt::format("panels of {} columns by {}, reorthogonalization {}\n", plan.panel_width,
                            to_string(plan.gram_schmidt().panel), to_string(plan.gram_schmidt().reorthogonalization));
    } else if (!is_cholesky(plan.method) || fallback != Method::Auto) {
        text += fmt::format("panels of {} columns", plan.panel_width);
        if (householder.last_width > 0) {
            text += fmt::format(", of {} where {} rows are left", householder.last_width, householder.last_rows);
        }
        text += plan.inner_block > 0 ? fmt::format(", T of {} columns\n", plan.inner_block) : "\n";
    }
    if (is_tree(plan.method) || is_tree(fallback)) {
        text +=
            fmt::format("trees{}: leaves of {} rows, ", tree.domain_leaves > 0 ? "" : " of batches", tree.leaf_rows);
        if (tree.domain_leaves > 0) text += fmt::format("domains of {} leaves, ", tree.domain_leaves);
        text += fmt::format("fan-in {}\n", tree.fan_in);
    }
    if (const auto& pivoting = plan.pivoting) {
        text += fmt::format("{} pivots{}", to_string(pivoting->kind),
                            !pivoting->chosen_first ? ""
                            : plan.q == QForm::None ? " of R, after the factorization"
                                                    : ", chosen before the factorization");
        if (pivoting->max_rank > 0) text += fmt::format(", at most {} columns", pivoting->max_rank);
        if (pivoting->tolerance > 0) text += fmt::format(", columns above {:.3g}", pivoting->tolerance);
        if (pivoting->relative_tolerance > 0)
            text += fmt::format(", columns above {:.3g} of the largest", pivoting->relative_tolerance);
        if (pivoting->relative_frobenius > 0)
            text += fmt::format(", until {:.3g} of the Frobenius norm is left", pivoting->relative_frobenius);
        text += "\n";
    }
    if (householder.panels_on_host) text += "panels factored on the host, beside the updates on the GPU\n";
    if (is_tall_panel(plan, plan.rows)) {
        text += fmt::format("panels of {} rows or more by Householder reconstruction\n", householder.reconstruct_rows);
    }
    if (plan.arithmetic == Arithmetic::Corrected) {
        text += "large products by three products of f16 for one of f32\n";
    } else if (plan.arithmetic != Arithmetic::Native) {
        text += fmt::format("large products in {}, with sums in f32\n", to_string(plan.arithmetic));
    }
    if (const auto& full_t = plan.q.full_t) {
        text += fmt::format("one T for all columns, {}{}\n",
                            full_t->route == FullTRoute::Joined ? "joined from the panels'" : "by recurrence",
                            full_t->keep_s ? ", and S = V Tᵀ" : "");
    }
    if (plan.tuning != 0) text += fmt::format("method by the times of table {}\n", tuning_name(plan.tuning));
    text += fmt::format("{:.3g} GFLOP, {:.3g} GB moved, {:.3g} MB of workspace", plan.flops / 1e9,
                        plan.bytes_moved / 1e9, plan.workspace_bytes / 1e6);
    return text;
}

#define QUOIN_INSTANTIATE(T, D)                                                         \
    template Plan plan_for<T, D>(const Tuning<D>&, Index, Index, const Options&, bool); \
    template Plan plan_qr<T, D>(const Context<D>&, Index, Index, Options);              \
    template Plan study::plan_with_panels_on_host<T, D>(const Context<D>&, Index, Index, Options);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
