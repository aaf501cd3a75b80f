#pragma once

#include <string>

#include "quoin/qr.hpp"

namespace quoin::cli {

/// How much of A, Q and R in files is in memory at a time while their accuracy is measured.
struct FileAccuracyPlan {
    Index rows = 0;    ///< of A and Q
    Index cols = 0;    ///< of A and R, and of QᵀQ; the files are read once for each block of `cols` columns
    Index tile = 0;    ///< rows of one product QᵀQ
    double bytes = 0;  ///< of memory
};

/// Plans the blocks of an m×n matrix for `memory` bytes. Throws OutOfMemory, naming `who`, if not one column fits.
template <class T>
FileAccuracyPlan plan_file_accuracy(const std::string& who, Index m, Index n, double memory);

struct FileAccuracy {
    double orthogonality, residual;
};

/// Measures ‖I − QᵀQ‖_F and ‖A − QR‖_F / ‖A‖_F of .npy files, block by block, past the page cache, under a progress
/// bar.
template <class T>
FileAccuracy measure_files(Context<Host>& ctx, const std::string& A, const std::string& Q, const std::string& R,
                           const FileAccuracyPlan& plan);

}  // namespace quoin::cli
