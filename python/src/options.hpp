#pragma once

#include <nanobind/stl/string.h>

#include <optional>
#include <span>
#include <string>

#include "call.hpp"

namespace quoin::python {

/// Returns the value of `all` that the caller names. Throws InvalidArgument if there is none.
template <class E>
E parse_name(const char* option, std::span<const E> all, const nb::object& name) {
    std::string names;
    for (const E& one : all) {
        if (nb::isinstance<nb::str>(name) && name.equal(nb::str(to_string(one)))) return one;
        names += (&one == &all.front() ? "'" : &one == &all.back() ? "' or '" : "', '") + std::string(to_string(one));
    }
    throw InvalidArgument(std::string(option) + " must be " + names + "', and is " +
                          nb::cast<std::string>(nb::module_::import_("quoin._arguments").attr("shown")(name)));
}

/// Returns the method called `name`. Throws InvalidArgument if there is none.
Method parse_method(const nb::object& name);

/// Returns options with the method called `method`.
Options options_of(const nb::object& method, bool check_finite);
/// Returns options with the method called `method` and the form of Q called `q`.
Options options_of(const nb::object& method, const nb::object& q, bool check_finite = true, bool verify = false);

/// Returns the column pivoting that (kind, rank, rtol, rtol_frobenius) describes: 0 is no limit. Nothing for None.
std::optional<Pivoting> pivoting_of(const nb::object& given);

/// Returns the progress of work of `flops(ctx)`, told to `callback`, a function or None.
template <class D, class Flops>
Progress progress_of(const nb::object& callback, const Where<D>& where, Flops&& flops) {
    return {callback, callback.is_none() ? 1 : result_of(Home<D>(where), where, 0, flops)};
}

}  // namespace quoin::python
