#pragma once

#include "arguments.hpp"
#include "factor_files.hpp"
#include "quoin/io.hpp"

namespace quoin::cli {

struct FactorArguments : FactorFiles {
    CommonArguments common;
    Index gpu_memory = 0;
    int gpus = 0;
    PivotArguments pivots;
    MatrixFileOptions reading;

    /// Return the cap on the memory taken on the GPU, as given, or 0, and the cap on the host's memory while a GPU
    /// computes.
    Index memory_on_gpu() const { return gpu_memory > 0 ? gpu_memory : memory; }
    Index memory_beside_gpu() const { return gpu_memory > 0 ? memory : 0; }
};

}  // namespace quoin::cli
