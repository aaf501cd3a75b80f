// Costs of QR over ranks, from the counts of docs/algorithms.md, section 15, and of the primitives' contracts.

#include <fmt/format.h>

#include "algorithms/ranks/distributed.hpp"

namespace quoin {

template <class T, class D>
RankPlan plan_ranks(const Context<D>& ctx, Index m, Index n, int ranks, Options options) {
    if (ranks < 1) throw InvalidArgument(fmt::format("the number of ranks must be at least 1, and is {}", ranks));
    require_offered(options);
    RankPlan plan;
    plan.method = plan_over_ranks<T>(ctx, m, n, options).method;
    plan.rows = (m + ranks - 1) / ranks;
    if (m / ranks < n) {
        throw InvalidArgument(
            fmt::format("a rank of {} has {} of {} rows, fewer than the {} columns", ranks, m / ranks, m, n));
    }
    Options on_rank = options;
    on_rank.method = plan.method;
    const Plan local = plan_qr<T>(ctx, plan.rows, n, on_rank);

    const double L = number(rank_levels(ranks)), cube = number(n) * number(n) * number(n);
    const double triangle = number(packed_size(n, n)) * sizeof(T), square = number(n) * number(n) * sizeof(T);
    const double agreement = number(JointCall::agreement_words(ranks)) * sizeof(Index);
    const double rows = number(plan.rows) * number(n) * sizeof(T);
    // A and perhaps a copy, the factorization, R, two messages
    const bool only_read = options.q == QForm::None && plan.method != Method::RandomizedCholeskyQR;
    plan.memory_bytes = (only_read ? 1 : 2) * rows + local.workspace_bytes + square + 2 * triangle;
    plan.flops = local.flops;
    // the ranks agree twice, and on the columns' scales before a sketch
    const bool sketched = plan.method == Method::RandomizedCholeskyQR;
    plan.messages = (sketched ? 6 : 4) * L;
    plan.bytes = plan.messages * agreement;
    if (is_cholesky(plan.method)) {
        plan.messages += 2 * L;
        plan.bytes += L * (2 * triangle + certificate_size * sizeof(T));
        if (!sketched) return plan;
        // sketches up, their triangle down
        const double sketch = number(sketch_rows(n)) * number(n) * sizeof(T);
        plan.memory_bytes += 2 * sketch;
        plan.messages += 2 * L;
        plan.bytes += L * (sketch + triangle + certificate_size * sizeof(T));
        return plan;
    }
    // triangles up, and a note down; to form Q the ranks agree twice more, and triangles go down
    const bool forms = options.q == QForm::Explicit;
    plan.messages += forms ? 7 * L : 2 * L;
    plan.bytes += L * triangle + (forms ? L * (triangle + 4 * agreement) : 0);
    plan.flops += (forms ? 2 : 1) * L * 2 / 3 * cube;
    plan.memory_bytes += L * (2 * square + 3 * number(n) * number(local.inner_block) * sizeof(T));
    return plan;
}

#define QUOIN_INSTANTIATE(T, D) template RankPlan plan_ranks<T, D>(const Context<D>&, Index, Index, int, Options);
QUOIN_FOR_EACH_HOST_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
