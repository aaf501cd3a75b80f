#pragma once

#include <nanobind/nanobind.h>

namespace quoin::python {

namespace nb = nanobind;

// Each adds its file's functions and classes to the module and, for arrays in a GPU's memory, to the submodule `cuda`.
void bind_factorization(nb::module_& module);
void bind_batches(nb::module_& module);
void bind_lstsq(nb::module_& module);
void bind_svd(nb::module_& module);
void bind_low_rank(nb::module_& module);
void bind_updates(nb::module_& module);
void bind_streams(nb::module_& module);
void bind_online_robust_pca(nb::module_& module);
void bind_robust_pca(nb::module_& module);
void bind_plan(nb::module_& module);

// For arrays on the host alone.
void bind_gram_schmidt(nb::module_& module);
/// Adds the functions for quoin.torch.
void bind_tensors(nb::module_& module);
/// Adds the functions over ranks, between which a Python object carries messages.
void bind_distributed(nb::module_& module);
void bind_lyapunov(nb::module_& module);
/// Adds the targets of quoin.jax, if JAX was found.
void bind_jax(nb::module_& module);

/// Adds the submodule `cuda`, with the functions that only a GPU has.
void bind_cuda(nb::module_& module);

}  // namespace quoin::python
