#include "progress_bar.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace quoin::cli {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

namespace {

void draw(const std::string& label, double fraction, const std::string& rate, double elapsed_seconds) {
    constexpr int width = 30;
    const int filled = static_cast<int>(width * fraction);
    std::string left = "";
    if (fraction > 0.02) left = fmt::format("{:.0f} s left", elapsed_seconds * (1 - fraction) / fraction);
    fmt::print(stderr, "\r\x1b[K{} [{:#>{}}{:->{}}] {:3.0f}%  {}{}{}", label, "", filled, "", width - filled,
               100 * fraction, rate, rate.empty() || left.empty() ? "" : ", ", left);
}

}  // namespace

ProgressBar::ProgressBar(std::string label, std::function<double()> fraction, std::function<std::string()> rate) {
    if (!isatty(STDERR_FILENO)) return;
    thread_ = std::jthread(
        [label = std::move(label), fraction = std::move(fraction), rate = std::move(rate)](std::stop_token stop) {
            std::mutex mutex;
            std::condition_variable_any wake;
            std::unique_lock lock(mutex);
            const auto stopped_after = [&](Clock::duration time) {
                return wake.wait_for(lock, stop, time, [&] { return stop.stop_requested(); });
            };

            const Clock::time_point start = Clock::now();
            if (stopped_after(1s)) return;
            do {
                const std::chrono::duration<double> elapsed = Clock::now() - start;
                draw(label, std::clamp(fraction(), 0.0, 1.0), rate ? rate() : "", elapsed.count());
            } while (!stopped_after(200ms));
            fmt::print(stderr, "\r\x1b[K");
        });
}

}  // namespace quoin::cli
