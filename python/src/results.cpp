#include "results.hpp"

#include <nanobind/stl/string.h>

namespace quoin::python {

nb::dict to_dict(const Report& report) {
    const auto measured = [](double x) { return x < 0 ? nb::object(nb::none()) : nb::object(nb::float_(x)); };
    nb::dict d;
    d["method"] = to_string(report.method);
    d["fell_back"] = report.fell_back;
    d["seconds"] = report.seconds;
    d["flops"] = report.flops;
    d["gram_departure"] = measured(report.gram_departure);
    d["perturbed_condition"] = measured(report.perturbed_condition);
    d["orthogonality"] = measured(report.orthogonality);
    d["residual"] = measured(report.residual);
    return d;
}

template <class D>
nb::dict to_dict(const Plan& plan) {
    nb::dict d;
    d["rows"] = plan.rows;
    d["cols"] = plan.cols;
    d["dtype"] = plan.element_bytes == 4 ? "float32" : "float64";
    d["method"] = to_string(plan.method);
    d["fallback"] =
        plan.fallback == Method::Auto ? nb::object(nb::none()) : nb::object(nb::str(to_string(plan.fallback)));
    d["q"] = to_string(plan.q);
    d["panel_width"] = plan.panel_width;
    d["last_rows"] = plan.last_rows;
    d["last_width"] = plan.last_width;
    d["leaf_rows"] = plan.leaf_rows;
    d["fan_in"] = plan.fan_in;
    d["batched_rows"] = plan.batched_rows;
    d["workspace_bytes"] = plan.workspace_bytes;
    d["flops"] = plan.flops;
    d["bytes_moved"] = plan.bytes_moved;
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

}  // namespace quoin::python
