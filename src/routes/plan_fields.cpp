#include "quoin/plan_fields.hpp"

#include "algorithms/one_matrix/panel_layout.hpp"
#include "algorithms/one_matrix/plan.hpp"
#include "quoin/tuning.hpp"

namespace quoin {

namespace {

std::vector<PlanField> with_shape(Index rows, Index cols, ScalarKind scalar, std::vector<PlanField> fields) {
    fields.insert(fields.begin(), {{"rows", rows}, {"cols", cols}, {"dtype", to_string(scalar)}});
    return fields;
}

}  // namespace

std::vector<PlanField> plan_fields(const Plan& plan) {
    const TreePlan tree = plan.tree();
    const GramSchmidtPlan gram_schmidt = plan.gram_schmidt();
    const FullT full_t = plan.q.full_t.value_or(FullT{});
    PlanField fallback{"fallback", {}};
    if (plan.fallback() != Method::Auto) fallback.value = to_string(plan.fallback());
    return with_shape(plan.rows, plan.cols, plan.scalar,
                      {{"method", to_string(plan.method)},
                       fallback,
                       {"q", to_string(plan.q)},
                       {"pivots", plan.pivoting ? to_string(plan.pivoting->kind) : "none"},
                       {"panel_width", plan.panel_width},
                       {"inner_block", plan.inner_block},
                       {"compact_wy", plan.q.full_t ? "full" : "panels"},
                       {"keep_s", full_t.keep_s},
                       {"full_t", to_string(full_t.route)},
                       {"arithmetic", to_string(plan.arithmetic)},
                       {"reorthogonalization", to_string(gram_schmidt.reorthogonalization)},
                       {"gram_schmidt_panel", to_string(gram_schmidt.panel)},
                       {"leaf_rows", tree.leaf_rows},
                       {"domain_leaves", tree.domain_leaves},
                       {"fan_in", tree.fan_in},
                       {"reconstruct_rows", plan.householder().reconstruct_rows},
                       {"tuning", tuning_name(plan.tuning)},
                       {"workspace_bytes", plan.workspace_bytes},
                       {"flops", plan.flops},
                       {"bytes_moved", plan.bytes_moved}});
}

std::vector<PlanField> plan_fields(const StreamPlan& plan) {
    return with_shape(plan.blocks.rows, plan.cols, plan.scalar,
                      {{"method", "streaming-tsqr"},
                       {"gpu_memory_bytes", static_cast<Index>(plan.memory_bytes)},
                       {"blocks", plan.blocks.count()},
                       {"block", plan.blocks.block_rows},
                       {"bytes_to_gpu", plan.bytes_in},
                       {"bytes_from_gpu", plan.bytes_out},
                       {"flops", plan.flops},
                       {"seconds_of_copies", plan.seconds}});
}

std::vector<PlanField> plan_fields(const OutOfCorePlan& plan) {
    return with_shape(plan.rows, plan.cols, plan.scalar,
                      {{"method", to_string(plan.method)},
                       {"arithmetic", to_string(plan.arithmetic)},
                       {"reorthogonalize", plan.reorthogonalize},
                       {"gpu_memory_bytes", plan.memory_bytes},
                       {"block", plan.block},
                       {"bytes_to_gpu", plan.bytes_in},
                       {"bytes_from_gpu", plan.bytes_out},
                       {"flops", plan.flops},
                       {"predicted_seconds", plan.seconds}});
}

std::vector<PlanField> plan_fields(const FilePlan& plan) {
    return with_shape(plan.rows, plan.cols, plan.scalar,
                      {{"method", plan.route == FileRoute::RowBlocks ? "streaming-tsqr" : "left-looking"},
                       {"blocks", plan.blocks},
                       {"block", plan.block},
                       {"stored", plan.stored},
                       {"memory_bytes", plan.memory_bytes},
                       {"disk_bytes", plan.disk_bytes},
                       {"bytes_read", plan.bytes_read},
                       {"bytes_written", plan.bytes_written},
                       {"flops", plan.flops}});
}

}  // namespace quoin
