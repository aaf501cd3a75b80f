#pragma once

#include <functional>
#include <string>
#include <thread>

namespace quoin::cli {

/// A bar on stderr for as long as it lives, if stderr is a terminal and the work outlasts a second.
class ProgressBar {
public:
    /// `fraction` returns the fraction of work done, in [0, 1]. `rate` returns text that is shown after it. The bar's
    /// own thread calls both.
    ProgressBar(std::string label, std::function<double()> fraction, std::function<std::string()> rate = {});

private:
    std::jthread thread_;
};

}  // namespace quoin::cli
