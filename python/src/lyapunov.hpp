#pragma once

#include <nanobind/nanobind.h>

namespace quoin::python {

/// Adds the function `lyapunov` for systems whose motion and tangent products are Python's.
void bind_lyapunov(nanobind::module_& module);

}  // namespace quoin::python
