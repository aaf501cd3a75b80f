#include "options.hpp"

namespace quoin::python {

Method parse_method(const nb::object& name) { return parse_name("method", every_method(), name); }

Options options_of(const nb::object& method, bool check_finite) {
    Options options;
    options.method = parse_method(method);
    options.check_finite = check_finite;
    return options;
}

Options options_of(const nb::object& method, const nb::object& q, bool check_finite, bool verify) {
    constexpr QForm forms[] = {QForm::Any, QForm::None, QForm::Explicit, QForm::Reflectors};
    Options options = options_of(method, check_finite);
    options.q = parse_name<QForm>("q", forms, q);
    options.verify = verify;
    return options;
}

std::optional<Pivoting> pivoting_of(const nb::object& given) {
    if (given.is_none()) return {};
    constexpr Pivots kinds[] = {Pivots::Auto, Pivots::Greedy, Pivots::Randomized, Pivots::Strong};
    return Pivoting{.kind = parse_name<Pivots>("pivoting", kinds, given[0]),
                    .max_rank = nb::cast<Index>(given[1]),
                    .relative_tolerance = nb::cast<double>(given[2]),
                    .relative_frobenius = nb::cast<double>(given[3])};
}

}  // namespace quoin::python
