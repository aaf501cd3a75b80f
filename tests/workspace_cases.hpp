#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "cases.hpp"
#include "devices.hpp"

/// Factorizations whose memory is measured against the plan's `workspace_bytes`, on every device.
namespace quoin::test {

struct WorkspaceCase {
    std::string name;
    Index m, n;
    Options options;
};

/// Rows a column of very tall, tall, square and wide matrices.
inline constexpr double aspects[] = {1000, 6, 1, 0.1};

/// Returns every method and form of Q that D has, for matrices of an aspect and about `entries` entries.
template <class D>
std::vector<WorkspaceCase> workspace_cases(double entries, double aspect) {
    std::vector<WorkspaceCase> cases;
    const auto rows = [&](double ratio) { return static_cast<Index>(std::sqrt(entries * ratio)) / 8 * 8 + 4; };
    const Index m = rows(aspect), n = rows(1 / aspect);
    const auto add = [&](const std::string& name, const Options& options) {
        cases.push_back({shape_name(m, n) + " " + name + " " + to_string(options.q), m, n, options});
    };
    for (const QForm q : q_forms) {
        for (const Method method : all_methods) {
            // a tree of one panel over a square matrix is no tree, and a square matrix has no certificate
            const bool fits = method == Method::TSQR ? n <= std::min<Index>(1000, Tuning<D>::max_tree_cols)
                                                     : !is_conditional(method) || m > 2 * n;
            if (fits && factors_shape(method, m, n)) add(to_string(method), with(method, q));
        }
    }
    for (const GramSchmidtCase& c : gram_schmidt_cases) {
        if (m > 2 * n) add(c.name, c.options());
    }
    for (const Pivots kind : {Pivots::Greedy, Pivots::Randomized, Pivots::Strong}) {
        for (const QForm q : {QForm::None, QForm::Explicit}) {
            Options options = with(Method::Auto, q);
            options.pivoting = Pivoting{.kind = kind};
            // every exchange of columns costs a QR of R on the host. A low rank needs few; large matrices are left out
            if (kind == Pivots::Strong) options.pivoting->max_rank = 5;
            if (kind != Pivots::Strong || (q == QForm::Explicit && std::min(m, n) <= 2000))
                add(std::string(to_string(kind)) + " pivots", options);
        }
    }
    for (const bool keep_s : {false, true}) {
        for (const FullTRoute route : {FullTRoute::Joined, FullTRoute::Recurrence}) {
            Options options = with(Method::BlockedHouseholder, QForm::Reflectors);
            options.q = FullT{.keep_s = keep_s, .route = route};
            add(std::string(to_string(route)) + (keep_s ? " T and S" : " T"), options);
        }
    }
    // columns that collide in a cache
    if (aspect == 1) cases.push_back({"2048x2048", 2048, 2048, with(Method::BlockedHouseholder, QForm::Explicit)});
    return cases;
}

}  // namespace quoin::test
