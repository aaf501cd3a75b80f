#pragma once

#include <string>
#include <vector>

#include "arguments.hpp"

namespace quoin::cli {

/// Masks of moving objects by `quoin rpca` and by OpenCV's methods on a folder in ChangeDetection.net's layout. Becomes
/// Python with bench/rivals/background_subtraction.py, which the program holds. Throws UnreadableFile where there is no
/// python3.
[[noreturn]] void bench_masks(const std::string& folder, const CommonArguments& common,
                              const std::vector<std::string>& options_of_rpca);

}  // namespace quoin::cli
