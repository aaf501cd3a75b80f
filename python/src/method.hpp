#pragma once

#include <nanobind/nanobind.h>

#include "quoin/quoin.hpp"

namespace quoin::python {

/// The method of that name. Throws InvalidArgument.
Method parse_method(const nanobind::object& name);

}  // namespace quoin::python
