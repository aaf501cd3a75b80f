#pragma once

#include "quoin/quoin.hpp"

namespace quoin::python {

/// The method of that name. Throws InvalidArgument.
Method parse_method(const char* name);

}  // namespace quoin::python
