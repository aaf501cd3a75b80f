#pragma once

#include <functional>
#include <string>
#include <thread>

namespace quoin::cli {

/// A bar on stderr for as long as it lives, where stderr is a terminal and the work outlasts a second.
class ProgressBar {
public:
    /// `fraction`, of work done, in [0, 1], is called from the bar's own thread, as is `rate`, which is shown behind it.
    ProgressBar(std::string label, std::function<double()> fraction, std::function<std::string()> rate = {});

private:
    std::jthread thread_;
};

}  // namespace quoin::cli
