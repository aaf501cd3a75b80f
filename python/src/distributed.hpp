#pragma once

#include <nanobind/nanobind.h>

namespace quoin::python {

/// Adds the functions and classes for ranks, whose messages an object of Python carries.
void bind_distributed(nanobind::module_& module);

}  // namespace quoin::python
