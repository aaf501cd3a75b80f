#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lyapunov/batch_sums.hpp"

namespace quoin {

/// The state at the end of a segment on which the rest of a run depends, without the tangent vectors Q.
struct RunState {
    RunState(Index n, Index p) : x(static_cast<std::size_t>(n)), batches(p) {}

    Index segment = 0;      ///< segments done, transient included
    Index parts = 1;        ///< of a segment, with a QR each
    std::vector<double> x;  ///< n
    BatchSums batches;
    double first_energy = 0;  ///< at the end of the transient
    double seconds = 0, qr_seconds = 0, tangent_seconds = 0, force_seconds = 0;
};

/// Writes `state` and Q (n×p, empty in the transient) under `path`, which holds the old state or the new one at any
/// moment. `identity`: lines that tell the run from others, T among them. Throws UnwritableFile.
template <class T>
void save_checkpoint(const std::string& path, const std::string& identity, const RunState& state,
                     MatrixView<const T> Q);

/// Returns the state in `path`, for a run of n×p, and reads Q. Returns none if there is no such file. Throws
/// UnreadableFile if the file is not a complete checkpoint, InvalidArgument if it belongs to another run, naming the
/// first line that differs.
template <class T>
std::optional<RunState> load_checkpoint(const std::string& path, const std::string& identity, Index n, Index p,
                                        Matrix<T>& Q);

}  // namespace quoin
