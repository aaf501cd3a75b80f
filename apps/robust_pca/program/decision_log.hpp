#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rpca.hpp"
#include "video/decision_plot.hpp"
#include "video/motion_mask.hpp"

namespace quoin::cli {

/// Collects the decisions of `quoin rpca`, for decisions.svg. For thresholds and the background it uses a sample of a
/// frame's entries.
class DecisionLog {
public:
    DecisionLog(const RpcaArguments& arguments, video::FrameFormat format)
        : format_(format), threshold_(arguments.threshold), motion_(arguments.masks == Masks::Motion) {}

    void begin_window(Index iterations) { decisions_.begin_window(static_cast<double>(iterations)); }
    /// Adds the backgrounds and the masks of the frames, each in order.
    template <class T>
    void add_background(std::span<const T> background) {
        const std::size_t by = step(background.size()), count = (background.size() + by - 1) / by;
        const bool first = background_.empty();
        background_.resize(count);
        double sum = 0;
        for (std::size_t k = 0; k < count; ++k) {
            const float l = static_cast<float>(background[k * by]);
            if (!first) sum += static_cast<double>(std::abs(l - background_[k]));
            background_[k] = l;
        }
        changes_.push_back(255 * sum / static_cast<double>(count));
    }
    void add_mask(std::span<const std::uint8_t> mask) {
        shares_.push_back(static_cast<double>(std::count(mask.begin(), mask.end(), 255)) /
                          static_cast<double>(mask.size()));
    }
    /// Adds the decisions on the frames since the last call, whose masks were made with `noise`.
    void settle(Index rank, const std::vector<float>& noise) {
        video::FrameDecision frame;
        frame.rank = static_cast<double>(rank);
        set_thresholds(noise, frame);
        for (std::size_t j = 0; j < shares_.size(); ++j) {
            frame.foreground = shares_[j];
            frame.change = changes_[j];
            decisions_.add(frame);
        }
        shares_.clear();
        changes_.clear();
    }
    std::string svg(const std::string& method) const {
        const double least = motion_ ? video::starting_difference(format_, 0, threshold_) : threshold_;
        return video::decisions_svg(decisions_, method, 255 * least);
    }

    /// (run_state.hpp)
    template <class State>
    void keep(State& state) {
        state(background_);
        decisions_.keep(state);
    }

private:
    void set_thresholds(const std::vector<float>& noise, video::FrameDecision& frame) const {
        std::fill_n(frame.threshold, 3, 255 * threshold_);
        if (!motion_ || noise.empty()) return;
        std::vector<float> some;
        for (std::size_t i = 0; i < noise.size(); i += step(noise.size())) some.push_back(noise[i]);
        std::sort(some.begin(), some.end());
        const double quantiles[] = {0.1, 0.5, 0.9};
        for (std::size_t q = 0; q < 3; ++q) {
            const auto sigma = static_cast<double>(
                some[static_cast<std::size_t>(quantiles[q] * static_cast<double>(some.size() - 1))]);
            frame.threshold[q] = 255 * video::starting_difference(format_, sigma, threshold_);
        }
    }
    static std::size_t step(std::size_t entries) { return std::max<std::size_t>(1, entries >> 16); }
    video::FrameFormat format_;
    double threshold_;
    bool motion_;
    std::vector<double> changes_, shares_;
    std::vector<float> background_;  // some entries of the last frame's
    video::Decisions decisions_;
};

}  // namespace quoin::cli
