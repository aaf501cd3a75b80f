#include "results.hpp"

#include <nanobind/stl/string.h>

namespace quoin::python {

nb::tuple to_tuple(const Report& report) {
    const auto measured = [](double x) { return x < 0 ? nb::object(nb::none()) : nb::object(nb::float_(x)); };
    return nb::make_tuple(to_string(report.method), report.fell_back, report.seconds, report.flops,
                          measured(report.gram_departure), measured(report.perturbed_condition),
                          measured(report.orthogonality), measured(report.residual));
}

nb::dict to_dict(const std::vector<PlanField>& fields) {
    nb::dict d;
    for (const auto& [name, value] : fields) {
        d[name] = std::visit(
            []<class V>(const V& v) {
                if constexpr (std::is_same_v<V, std::monostate>)
                    return nb::object(nb::none());
                else
                    return nb::object(nb::cast(v));
            },
            value);
    }
    d["dtype"] = nb::cast<std::string>(d["dtype"]) == "f32" ? "float32" : "float64";
    return d;
}

template <class D>
nb::dict to_dict(const Plan& plan) {
    const HouseholderPlan householder = plan.householder();
    nb::dict d = to_dict(plan_fields(plan));
    d["last_rows"] = householder.last_rows;
    d["last_width"] = householder.last_width;
    d["description"] = to_string(plan);
    nb::list kernels;
    for (const auto& [step, kernel] : kernels_of<D>(plan)) kernels.append(nb::make_tuple(step, kernel));
    d["kernels"] = nb::tuple(kernels);
    return d;
}

template nb::dict to_dict<Host>(const Plan&);
#ifdef QUOIN_HAVE_CUDA
template nb::dict to_dict<Cuda>(const Plan&);
#endif

nb::dict to_dict(const RoutePlan& route) {
    nb::dict d;
    d["route"] = route.name();
    d["fits"] = route.fits();
    d["memory_bytes"] = route.memory_bytes;
    d["min_bytes"] = route.min_bytes;
    d["plan"] = to_dict(plan_fields(route));
    d["description"] = to_string(route);
    return d;
}

}  // namespace quoin::python
