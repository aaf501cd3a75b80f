#include "bindings.hpp"
#include "devices.hpp"
#include "options.hpp"
#include "results.hpp"

namespace quoin::python {

void bind_plan(nb::module_& module) {
    using namespace nb::literals;
    for_each_device(module, []<class D>(D, nb::module_& module) {
        module.def(
            "plan",
            [](Index m, Index n, bool single, const nb::object& method, const nb::object& q, const Where<D>& where) {
                const Options options = options_of(method, q);
                return to_dict<D>(result_of(Home<D>(where), where, 0, [&](Context<D>& ctx) {
                    return single ? plan_qr<float>(ctx, m, n, options) : plan_qr<double>(ctx, m, n, options);
                }));
            },
            "m"_a, "n"_a, "single"_a, "method"_a.none(), "q"_a.none(), "where"_a);
        module.def(
            "plan_route",
            [](Index m, Index n, bool single, const nb::object& method, const nb::object& q, const nb::object& work,
               Index right_hand_sides, double memory, double host_memory, bool files, const Where<D>& where) {
                constexpr Work works[] = {Work::Factor, Work::LeastSquares, Work::SVD, Work::SingularValues};
                RouteOptions options{.options = options_of(method, q), .work = parse_name<Work>("work", works, work)};
                options.right_hand_sides = right_hand_sides;
                if (memory > 0) options.memory = memory;
                if (host_memory > 0) options.host_memory = host_memory;
                if (files) options.files.emplace().want_q = options.options.q != QForm::None;
                return to_dict(result_of(Home<D>(where), where, 0, [&](Context<D>& ctx) {
                    return single ? plan_route<float>(ctx, m, n, options) : plan_route<double>(ctx, m, n, options);
                }));
            },
            "m"_a, "n"_a, "single"_a, "method"_a.none(), "q"_a.none(), "work"_a.none(), "right_hand_sides"_a,
            "memory"_a, "host_memory"_a, "files"_a, "where"_a);
    });
}

}  // namespace quoin::python
