#pragma once

#include <optional>
#include <string>
#include <vector>

#include "factor_arguments.hpp"
#include "on_device.hpp"
#include "quoin/out_of_core.hpp"
#include "quoin/route.hpp"
#include "quoin/streaming.hpp"

namespace quoin::cli {

/// The outcome of `quoin factor`, by any route.
struct FactorOutcome {
    std::string method;
    std::string remark = {};  ///< on the choice of the method
    double seconds = 0;
    double gflops = 0;                 ///< 10⁹ flop/s by the standard count
    double transfer_in_seconds = -1;   ///< from the file to the GPU
    double transfer_out_seconds = -1;  ///< from the GPU to the files
    double orthogonality = -1;
    double residual = -1;
    Index rank = -1;                                  ///< with pivoting
    std::vector<Index> dependent = {};                ///< columns of A beyond the rank, in order
    std::string decided = {};                         ///< on the rank
    std::optional<StreamTimes> stream = {};           ///< through a GPU
    std::optional<OutOfCoreReport> out_of_core = {};  ///< if A stayed in the host's memory, and a GPU computed
    std::optional<FilePlan> file_plan = {};           ///< on the host, if A went from file to file
    FileReport file_report = {};
    std::optional<StreamPlan> streamed = {};  ///< by blocks of rows through a GPU
    double cap = 0;                           ///< on the memory of the file's blocks
    std::string written = {};                 ///< paths
};

/// Prints the outcome as lines, or with --json as one object.
void print_report(const FactorArguments& arguments, const MatrixFile& file, const DeviceInUse& device,
                  const FactorOutcome& outcome);

}  // namespace quoin::cli
