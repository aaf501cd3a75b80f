#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "algorithms/factorization.hpp"
#include "devices.hpp"

namespace quoin {

const char* to_string(Method method) {
    switch (method) {
        case Method::Auto: return "auto";
        case Method::BlockedHouseholder: return "householder";
        case Method::TSQR: return "tsqr";
        case Method::CAQR: return "caqr";
        case Method::CholeskyQR2: return "cholesky-qr2";
        case Method::ShiftedCholeskyQR3: return "shifted-cholesky-qr3";
        case Method::ModifiedGramSchmidt: return "mgs";
        case Method::ClassicalGramSchmidt: return "cgs";
    }
    return "";
}

std::span<const Method> every_method() {
    static constexpr Method methods[] = {Method::Auto,
                                         Method::BlockedHouseholder,
                                         Method::TSQR,
                                         Method::CAQR,
                                         Method::CholeskyQR2,
                                         Method::ShiftedCholeskyQR3,
                                         Method::ModifiedGramSchmidt,
                                         Method::ClassicalGramSchmidt};
    return methods;
}

const char* to_string(QForm q) {
    switch (q) {
        case QForm::Any: return "any";
        case QForm::None: return "none";
        case QForm::Explicit: return "explicit";
        case QForm::Reflectors: return "reflectors";
    }
    return "";
}

const char* to_string(CompactWY compact_wy) { return compact_wy == CompactWY::Full ? "full" : "panels"; }

const char* to_string(FullTRoute route) {
    switch (route) {
        case FullTRoute::Auto: return "auto";
        case FullTRoute::Recurrence: return "recurrence";
        case FullTRoute::Joined: return "joined";
    }
    return "";
}

const char* to_string(Arithmetic arithmetic) {
    switch (arithmetic) {
        case Arithmetic::Auto: return "auto";
        case Arithmetic::Native: return "native";
        case Arithmetic::TF32: return "tf32";
        case Arithmetic::FP16: return "fp16";
        case Arithmetic::BF16: return "bf16";
        case Arithmetic::Corrected: return "corrected";
    }
    return "";
}

const char* to_string(Reorthogonalization reorthogonalization) {
    switch (reorthogonalization) {
        case Reorthogonalization::Off: return "off";
        case Reorthogonalization::Selective: return "selective";
        case Reorthogonalization::Always: return "always";
    }
    return "";
}

const char* to_string(GramSchmidtPanel panel) {
    switch (panel) {
        case GramSchmidtPanel::Auto: return "auto";
        case GramSchmidtPanel::MGS: return "mgs";
        case GramSchmidtPanel::CholeskyQR2: return "cholesky-qr2";
    }
    return "";
}

const char* to_string(PanelDevice panel) {
    switch (panel) {
        case PanelDevice::Auto: return "auto";
        case PanelDevice::Device: return "device";
        case PanelDevice::Host: return "host";
    }
    return "";
}

namespace {

void check(Index m, Index n, const Options& options) {
    const auto refuse = [](const std::string& why) { throw InvalidArgument(why); };
    if (options.panel_width < 0)
        refuse(fmt::format("panel_width must not be negative, and is {}", options.panel_width));
    if (options.leaf_rows < 0) refuse(fmt::format("leaf_rows must not be negative, and is {}", options.leaf_rows));
    if (options.fan_in < 0 || options.fan_in == 1) {
        refuse(fmt::format("fan_in must be at least 2 (or 0: Quoin chooses), and is {}", options.fan_in));
    }
    const bool full = options.compact_wy == CompactWY::Full;
    if (full && (options.q == QForm::None || options.q == QForm::Explicit)) {
        refuse(fmt::format("compact_wy full keeps Q as reflectors, and q is {}", to_string(options.q)));
    }
    if (!full && (options.keep_s || options.full_t != FullTRoute::Auto)) {
        refuse(fmt::format("{} belongs to compact_wy full", options.keep_s ? "keep_s" : "full_t"));
    }
    const bool explicit_alone = is_gram_schmidt(options.method);
    if (explicit_alone && (full || options.q == QForm::Reflectors)) {
        refuse(fmt::format(
            "{} holds Q explicitly and has no reflectors: q is any, explicit or none, and compact_wy panels",
            to_string(options.method)));
    }
    if (!explicit_alone && (options.reorthogonalization != Reorthogonalization::Off ||
                            options.gram_schmidt_panel != GramSchmidtPanel::Auto)) {
        refuse(fmt::format(
            "{} belongs to mgs and cgs, and the method is {}",
            options.reorthogonalization != Reorthogonalization::Off ? "reorthogonalization" : "gram_schmidt_panel",
            to_string(options.method)));
    }
    if (options.method == Method::ModifiedGramSchmidt && options.gram_schmidt_panel == GramSchmidtPanel::CholeskyQR2) {
        refuse("gram_schmidt_panel cholesky-qr2 belongs to cgs: the panels of mgs are made by mgs");
    }
    if ((is_cholesky(options.method) || explicit_alone) && m < n) {
        refuse(fmt::format("{} needs at least as many rows as columns, and A is {} x {}", to_string(options.method), m,
                           n));
    }
    if (options.method == Method::TSQR && options.panel_width > 0 && options.panel_width < std::min(m, n)) {
        refuse(fmt::format("tsqr has one panel of min(m, n) = {} columns; panel_width {} asks for caqr", std::min(m, n),
                           options.panel_width));
    }
}

template <class D>
void require_tree(const char* what, Index width) {
    if (width <= Tuning<D>::most_tree_cols) return;
    throw InvalidArgument(
        fmt::format("{} is {}, and trees on this device are at most {} columns wide: use caqr with "
                    "narrower panels",
                    what, width, Tuning<D>::most_tree_cols));
}

template <class D>
Method choose_method(Index m, Index n, const Options& options) {
    if (options.method != Method::Auto) return options.method;
    // a tree's options ask for a tree
    if (options.tree != TreeShape::Auto || options.fan_in > 0 || options.leaf_rows > 0) {
        const bool one_panel = n <= Tuning<D>::one_tree_cols && (options.panel_width == 0 || options.panel_width >= n);
        return m >= n && one_panel ? Method::TSQR : Method::CAQR;
    }
    if (options.panel == PanelDevice::Host) return Method::BlockedHouseholder;
    const bool tall = n > 0 && m >= Tuning<D>::tall_aspect * n && n <= Tuning<D>::tall_cols;
    const bool by_panels = options.q == QForm::Reflectors && !Tuning<D>::one_panel(m, n);
    if (!tall || by_panels || options.panel_width > 0) return Method::BlockedHouseholder;
    const bool by_tree = options.q == QForm::None && Tuning<D>::r_only_by_tree && n <= Tuning<D>::one_tree_cols;
    return by_tree ? Method::TSQR : Method::CholeskyQR2;
}

/// Of the large products: the updates of the planned panels, or the projections of classical Gram-Schmidt.
template <class T, class D>
Arithmetic choose_arithmetic(const Plan& plan, Arithmetic wanted) {
    const bool on_device = Tuning<D>::corrected_products && std::is_same_v<T, float>;
    const bool by_cgs = plan.method == Method::ClassicalGramSchmidt;
    const bool corrected =
        on_device && (by_cgs || (plan.method == Method::BlockedHouseholder && plan.compact_wy == CompactWY::Panels));
    const bool possible = wanted == Arithmetic::Corrected ? corrected : on_device && by_cgs;
    if (wanted != Arithmetic::Auto && wanted != Arithmetic::Native && !possible) {
        throw InvalidArgument(
            fmt::format("arithmetic {} is for f32 on a GPU by cgs{}, and this is {} by {}{}{}", to_string(wanted),
                        wanted == Arithmetic::Corrected ? " or householder with compact_wy panels" : "",
                        Scalar<T>::name, to_string(plan.method), Tuning<D>::corrected_products ? "" : " on the host",
                        plan.compact_wy == CompactWY::Full ? " with compact_wy full" : ""));
    }
    if (wanted != Arithmetic::Auto) return wanted;
    return corrected && Tuning<D>::corrected_pays(plan.rows, plan.cols) ? Arithmetic::Corrected : Arithmetic::Native;
}

/// Of products with Q.
template <class T, class D>
Arithmetic choose_products(const Plan& plan, Arithmetic wanted) {
    const bool possible = Tuning<D>::corrected_products && std::is_same_v<T, float> && !is_gram_schmidt(plan.method);
    const bool asked = wanted == Arithmetic::Auto || wanted == Arithmetic::Corrected;
    return possible && asked ? Arithmetic::Corrected : Arithmetic::Native;
}

/// leaf_rows, domain_leaves and fan_in of the trees over panels of `width` columns.
template <class D>
void choose_tree(Plan& plan, Index width, const Options& options) {
    const Index m = plan.rows;
    if (options.leaf_rows > 0) {
        if (options.leaf_rows < width) {
            throw InvalidArgument(
                fmt::format("leaf_rows must be at least the panel's width {}, and is {}", width, options.leaf_rows));
        }
        plan.leaf_rows = std::min(options.leaf_rows, std::max(m, width));
    } else {
        plan.leaf_rows = Tuning<D>::leaf_rows(width, plan.element_bytes);
    }
    const Index leaves = std::max<Index>(1, (m + plan.leaf_rows - 1) / plan.leaf_rows);
    // the stride of a level, up to leaves·fan_in, is an Index
    const Index most_fan_in = std::min(std::max<Index>(2, leaves), std::numeric_limits<Index>::max() / leaves);
    plan.fan_in = options.fan_in > 0                ? std::min(options.fan_in, most_fan_in)
                  : options.tree == TreeShape::Quad ? 4
                  : options.tree == TreeShape::Auto ? Tuning<D>::fan_in(width)
                                                    : 2;
    if (options.fan_in == 0 && options.tree == TreeShape::Flat) {
        plan.domain_leaves = leaves;
    } else if (options.fan_in == 0 && options.tree == TreeShape::Auto) {
        plan.domain_leaves = Tuning<D>::domain_leaves(leaves);
    } else {
        plan.domain_leaves = 1;
    }
    // a domain has at least as many rows as the panel columns
    plan.domain_leaves = std::max(plan.domain_leaves, (width + plan.leaf_rows - 1) / plan.leaf_rows);
}

template <class D>
void choose_gram_schmidt(Plan& plan, const Options& options) {
    const Index n = std::max<Index>(1, plan.cols);
    plan.reorthogonalization = options.reorthogonalization;
    plan.gram_schmidt_panel = plan.method == Method::ModifiedGramSchmidt             ? GramSchmidtPanel::MGS
                              : options.gram_schmidt_panel != GramSchmidtPanel::Auto ? options.gram_schmidt_panel
                                                                                     : Tuning<D>::gram_schmidt_panel;
    const Index width = options.panel_width > 0 ? options.panel_width : Tuning<D>::gram_schmidt_width(plan.method);
    plan.panel_width = plan.inner_block = std::min(width, n);
}

}  // namespace

template <class T, class D>
Plan plan_qr(const Context<D>&, Index m, Index n, Options options) {
    detail::checked_bytes(m, n, sizeof(T));
    check(m, n, options);
    const Index k = std::min(m, n);
    const bool one_t = options.compact_wy == CompactWY::Full;
    if (one_t) options.q = QForm::Reflectors;
    Plan plan;
    plan.rows = m;
    plan.cols = n;
    plan.element_bytes = sizeof(T);
    plan.q = options.q;
    plan.compact_wy = options.compact_wy;
    plan.keep_s = options.keep_s;
    plan.full_t = one_t && options.full_t == FullTRoute::Auto
                      ? (options.keep_s ? FullTRoute::Recurrence : Tuning<D>::full_t(m, k))
                      : options.full_t;
    plan.check_finite = options.check_finite;
    plan.verify = options.verify;
    plan.method = choose_method<D>(m, n, options);
    if (options.panel == PanelDevice::Host && plan.method != Method::BlockedHouseholder) {
        throw InvalidArgument(
            fmt::format("panel host belongs to method householder, and the method is {}", to_string(plan.method)));
    }
    plan.panel = options.panel == PanelDevice::Auto ? Tuning<D>::panel : options.panel;
    if (std::is_same_v<D, Host> || plan.method != Method::BlockedHouseholder) plan.panel = PanelDevice::Device;
    const bool on_host = plan.panel == PanelDevice::Host;
    const bool extends_t = one_t && plan.full_t == FullTRoute::Recurrence;
    const bool one_tree = n <= Tuning<D>::one_tree_cols;
    if (options.method == Method::Auto && is_cholesky(plan.method)) {
        plan.fallback = one_tree ? Method::TSQR : Method::CAQR;
    }

    plan.arithmetic = choose_arithmetic<T, D>(plan, options.arithmetic);
    plan.products = choose_products<T, D>(plan, options.arithmetic);
    const Index full = std::max<Index>(1, k);
    Index tree_width = full;
    switch (plan.method) {
        case Method::BlockedHouseholder:
            plan.panel_width = std::min(full, options.panel_width > 0 ? options.panel_width
                                              : on_host               ? Tuning<D>::host_panel_width(k)
                                                        : Tuning<D>::panel_width(k, plan.arithmetic, extends_t));
            plan.inner_block = plan.panel_width;
            plan.reconstruct_rows = on_host ? 0 : Tuning<D>::reconstruct_rows(plan.panel_width);
            tree_width = std::min(plan.panel_width, Tuning<D>::one_tree_cols);
            break;
        case Method::CAQR:
            plan.panel_width = std::min(full, options.panel_width > 0 ? options.panel_width : Tuning<D>::tree_width);
            require_tree<D>("panel_width", plan.panel_width);
            plan.inner_block = Tuning<D>::inner_block(plan.panel_width);
            tree_width = plan.panel_width;
            break;
        case Method::ModifiedGramSchmidt:
        case Method::ClassicalGramSchmidt:
            choose_gram_schmidt<D>(plan, options);
            count_costs(plan);
            return plan;
        case Method::TSQR:
            require_tree<D>("the number of columns of tsqr", full);
            plan.panel_width = full;
            plan.inner_block = Tuning<D>::inner_block(full);
            break;
        default:
            plan.panel_width = tree_width = one_tree ? full : Tuning<D>::tree_width;
            plan.inner_block = Tuning<D>::inner_block(plan.panel_width);
    }
    choose_tree<D>(plan, tree_width, options);
    count_costs(plan);
    return plan;
}

std::string to_string(const Plan& plan) {
    std::string text = fmt::format("{} x {} {}: {}", plan.rows, plan.cols, plan.element_bytes == 4 ? "f32" : "f64",
                                   to_string(plan.method));
    if (plan.fallback != Method::Auto) text += fmt::format(" (falls back to {})", to_string(plan.fallback));
    text += fmt::format(", Q {}\n", to_string(plan.q));
    if (is_gram_schmidt(plan.method)) {
        text += fmt::format("panels of {} columns by {}, reorthogonalization {}\n", plan.panel_width,
                            to_string(plan.gram_schmidt_panel), to_string(plan.reorthogonalization));
    } else if (!is_cholesky(plan.method) || plan.fallback != Method::Auto) {
        text += fmt::format("panels of {} columns, T of {} columns\n", plan.panel_width, plan.inner_block);
    }
    if (plan.method == Method::TSQR || plan.method == Method::CAQR || plan.fallback == Method::TSQR) {
        text += fmt::format("trees: leaves of {} rows, domains of {} leaves, fan-in {}\n", plan.leaf_rows,
                            plan.domain_leaves, plan.fan_in);
    }
    if (plan.panel == PanelDevice::Host) text += "panels factored on the host, beside the updates on the GPU\n";
    if (plan.method == Method::BlockedHouseholder && plan.reconstruct_rows > 0 && plan.rows >= plan.reconstruct_rows) {
        text += fmt::format("panels of {} rows or more by Householder reconstruction\n", plan.reconstruct_rows);
    }
    if (plan.arithmetic == Arithmetic::Corrected) {
        text += "large products by three products of f16 for one of f32\n";
    } else if (plan.arithmetic != Arithmetic::Native) {
        text += fmt::format("large products in {}, with sums in f32\n", to_string(plan.arithmetic));
    }
    if (plan.compact_wy == CompactWY::Full) {
        text += fmt::format("one T for all columns, {}{}\n",
                            plan.full_t == FullTRoute::Joined ? "joined from the panels'" : "by recurrence",
                            plan.keep_s ? ", and S = V Tᵀ" : "");
    }
    text += fmt::format("{:.3g} GFLOP, {:.3g} GB moved, {:.3g} MB of workspace", plan.flops / 1e9,
                        plan.bytes_moved / 1e9, plan.workspace_bytes / 1e6);
    return text;
}

#define QUOIN_INSTANTIATE(T, D) template Plan plan_qr<T, D>(const Context<D>&, Index, Index, Options);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
