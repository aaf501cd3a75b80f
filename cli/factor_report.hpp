#pragma once

#include <optional>
#include <string>

#include "factor_arguments.hpp"
#include "on_device.hpp"
#include "quoin/out_of_core.hpp"
#include "quoin/streaming.hpp"
#include "row_blocks.hpp"

namespace quoin::cli {

/// What `quoin factor` did, by whichever route.
struct FactorOutcome {
    std::string method;
    std::string remark = {};  ///< on the choice of the method
    double seconds = 0;
    double gflops = 0;                 ///< 10⁹ flop/s by the standard count
    double transfer_in_seconds = -1;   ///< from the file to the GPU
    double transfer_out_seconds = -1;  ///< from the GPU to the files
    double orthogonality = -1;
    double residual = -1;
    std::optional<StreamTimes> stream = {};           ///< through a GPU
    std::optional<OutOfCoreReport> out_of_core = {};  ///< where A stayed in the host's memory, and a GPU computed
    std::optional<FilePlan> file_plan = {};           ///< on the host where it went from file to file
    FileReport file_report = {};
    std::optional<RowBlocks> blocks = {};  ///< of rows, through a GPU
    double cap = 0;                        ///< on the memory that they or the file's blocks take
    std::string written = {};              ///< paths
};

/// Prints it: lines, or with --json one object.
void print_report(const FactorArguments& arguments, const MatrixFile& file, const DeviceInUse& device,
                  const FactorOutcome& outcome);

}  // namespace quoin::cli
