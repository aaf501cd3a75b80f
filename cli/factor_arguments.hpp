#pragma once

#include "arguments.hpp"
#include "factor_files.hpp"
#include "quoin/io.hpp"

namespace quoin::cli {

struct FactorArguments : FactorFiles {
    CommonArguments common;
    Index gpu_memory = 0;
    int gpus = 0;
    MatrixFileOptions reading;

    /// The cap on what is taken there, as it was given, or 0; and that on what stays in the host's memory meanwhile.
    Index memory_on_gpu() const { return gpu_memory > 0 ? gpu_memory : memory; }
    Index memory_beside_gpu() const { return gpu_memory > 0 ? memory : 0; }
};

}  // namespace quoin::cli
