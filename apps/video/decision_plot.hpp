#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace quoin::video {

/// Decisions of a separation about one frame. Levels are grey levels, of 255.
struct FrameDecision {
    double rank = 0;        ///< of the background
    double threshold[3]{};  ///< quantiles 10%, 50% and 90% over the entries of the least difference that starts a mask
    double foreground = 0;  ///< share of the mask
    double change = 0;      ///< mean change of the background since the frame before
};

/// Decisions of all frames, or if they are many, of every second, fourth, … one.
class Decisions {
public:
    void add(const FrameDecision& frame);
    /// Begins a window with the next frame. Its pursuit ended after `iterations` iterations.
    void begin_window(double iterations);

    double frames() const { return static_cast<double>(count_); }
    const std::vector<FrameDecision>& kept() const { return kept_; }
    double stride() const { return static_cast<double>(stride_); }
    struct Window {
        double first = 0, iterations = 0;
    };
    const std::vector<Window>& windows() const { return windows_; }

    /// Calls state(x) for every member x.
    template <class State>
    void keep(State& state) {
        state(count_);
        state(stride_);
        state(kept_);
        state(windows_);
    }

private:
    std::size_t count_ = 0, stride_ = 1;
    std::vector<FrameDecision> kept_;
    std::vector<Window> windows_;
};

/// Draws panels over the frames: rank, threshold of the mask, foreground and change of the background, with a dashed
/// line at each seam of two windows, as a self-contained SVG file. `method` is the line above them. `min_threshold`,
/// in grey levels, is drawn if it is not 0.
std::string decisions_svg(const Decisions& decisions, const std::string& method, double min_threshold);

}  // namespace quoin::video
