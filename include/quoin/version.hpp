#pragma once

namespace quoin {

/// "major.minor.patch".
const char* version();

/// Compiler, kernels and BLAS of this build, for `quoin info` and bug reports.
struct BuildInfo {
    const char* compiler;
    const char* kernels;       ///< instruction set of the host kernels in use on this CPU: "avx512", "sve256", …
    const char* blas;          ///< the BLAS's own description of itself, or its name
    const char* blas_core;     ///< CPU type of the BLAS kernels in use, or ""
    const char* blas_warning;  ///< one sentence if those kernels are older than the CPU, or ""
    const char* better_core;   ///< the value of OPENBLAS_CORETYPE that selects newer kernels, or ""
};
const BuildInfo& build_info();

}  // namespace quoin
