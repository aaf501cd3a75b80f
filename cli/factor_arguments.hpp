#pragma once

#include "arguments.hpp"
#include "factor_files.hpp"
#include "quoin/file_qr.hpp"
#include "quoin/io.hpp"

namespace quoin::cli {

struct FactorArguments : FactorFiles {
    CommonArguments common;
    Index memory = 0;
    SecondPass second_pass = SecondPass::Auto;
    bool restart = false;
    Index gpu_memory = 0;
    int gpus = 0;
    MatrixFileOptions reading;

    /// The cap on what is taken there, as it was given, or 0; and that on what stays in the host's memory meanwhile.
    Index memory_on_gpu() const { return gpu_memory > 0 ? gpu_memory : memory; }
    Index memory_beside_gpu() const { return gpu_memory > 0 ? memory : 0; }

    /// From file to file within `cap` bytes.
    FileOptions file_options(double cap) const {
        FileOptions options;
        options.memory = cap;
        options.want_q = !r_only || verify;
        options.second_pass = second_pass;
        options.restart = restart;
        return options;
    }
};

}  // namespace quoin::cli
