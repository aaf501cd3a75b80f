// The extension module quoin._core, which the package quoin calls. The package checks and converts its arguments.
// Overloads distinguish dtypes.

#include "bindings.hpp"
#include "call.hpp"

namespace quoin::python {
namespace {

nb::dict info() {
    const BuildInfo& build = build_info();
    nb::dict d;
    d["version"] = version();
    d["compiler"] = build.compiler;
    d["kernels"] = build.kernels;
    d["blas"] = build.blas;
    d["blas_core"] = build.blas_core;
    d["blas_warning"] = build.blas_warning;
    d["threads"] = Context<Host>().threads();
    return d;
}

}  // namespace
}  // namespace quoin::python

NB_MODULE(_core, module) {
    using namespace quoin::python;
    nb::set_leak_warnings(false);  // a daemon thread may be in a call, with its arguments, at the end of the process
    register_errors();
#ifdef QUOIN_HAVE_CUDA
    bind_cuda(module);
#endif
    bind_factorization(module);
    bind_batches(module);
    bind_lstsq(module);
    bind_svd(module);
    bind_low_rank(module);
    bind_updates(module);
    bind_streams(module);
    bind_gram_schmidt(module);
    bind_plan(module);
    bind_tensors(module);
    bind_online_robust_pca(module);
    bind_robust_pca(module);
    bind_lyapunov(module);
    bind_distributed(module);
#ifdef QUOIN_HAVE_JAX
    bind_jax(module);
#endif
    module.def("info", &info);
    module.def("in_main_interpreter", [] { return PyInterpreterState_GetID(PyInterpreterState_Get()) == 0; });
}
