#pragma once

#include <string>
#include <variant>
#include <vector>

#include "quoin/route.hpp"

namespace quoin {

/// A field of a plan, by the name that JSON and Python have for it. Sizes are numbers of rows, columns or bytes.
struct PlanField {
    const char* name;
    std::variant<std::monostate, bool, Index, double, std::string> value;  ///< std::monostate: none
};

/// Return the fields of a plan: rows, cols and dtype, and then choices and costs.
std::vector<PlanField> plan_fields(const Plan& plan);
std::vector<PlanField> plan_fields(const StreamPlan& plan);
std::vector<PlanField> plan_fields(const OutOfCorePlan& plan);
std::vector<PlanField> plan_fields(const FilePlan& plan);
/// Returns the fields of the route's plan.
std::vector<PlanField> plan_fields(const RoutePlan& route);

}  // namespace quoin
