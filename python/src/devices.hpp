#pragma once

// The one file that names the devices of the module.

#include <string>

#include "arrays.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "gpu_ranks.hpp"
#endif

namespace quoin::python {

/// Calls `bind(D(), module of D)` for every device D.
template <class Bind>
void for_each_device(nb::module_& module, Bind bind) {
    bind(Host(), module);
#ifdef QUOIN_HAVE_CUDA
    nb::module_ cuda = nb::cast<nb::module_>(module.attr("cuda"));
    bind(Cuda(), cuda);
#endif
}

/// Calls `bind(T(), D(), module of D, suffix of T's classes)` for every scalar T and device D.
template <class Bind>
void for_each_type(nb::module_& module, Bind bind) {
    for_each_device(module, [&](auto device, nb::module_& its) {
        bind(double(), device, its, std::string("64"));
        bind(float(), device, its, std::string("32"));
    });
}

}  // namespace quoin::python
