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
    });
}

}  // namespace quoin::python
