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

}  // namespace quoin::python
