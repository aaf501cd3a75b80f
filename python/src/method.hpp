#pragma once

#include <nanobind/nanobind.h>

#include "quoin/lyapunov.hpp"
#include "quoin/quoin.hpp"
#include "quoin/robust_pca.hpp"

namespace quoin::python {

/// The method of that name. Throws InvalidArgument.
Method parse_method(const nanobind::object& name);

/// With that method.
Options options_of(const nanobind::object& method, bool check_finite);

}  // namespace quoin::python
