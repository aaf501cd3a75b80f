#include "video/decision_plot.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plot/figure.hpp"

namespace quoin::video {
namespace {

constexpr std::size_t max_frames = 4096, max_seams = 60;
constexpr const char *of_rank = "#b2501e", *of_threshold = "#1f5fa8", *of_foreground = "#2b7a3d",
                     *of_change = "#6b4c9a";

template <class Value>
std::vector<double> values_of(const Decisions& decisions, Value value) {
    std::vector<double> values;
    for (const FrameDecision& frame : decisions.kept()) values.push_back(value(frame));
    return values;
}

double largest(const std::vector<double>& values, double otherwise) {
    double most = 0;
    for (const double value : values)
        if (std::isfinite(value)) most = std::max(most, value);
    return most > 0 ? most : otherwise;
}

}  // namespace

void Decisions::add(const FrameDecision& frame) {
    if (count_++ % stride_ != 0) return;
    kept_.push_back(frame);
    if (kept_.size() < max_frames) return;
    for (std::size_t i = 0; 2 * i < kept_.size(); ++i) kept_[i] = kept_[2 * i];
    kept_.resize((kept_.size() + 1) / 2);
    stride_ *= 2;
}

void Decisions::begin_window(double iterations) {
    if (windows_.size() <= max_seams) windows_.push_back({frames(), iterations});
}

std::string decisions_svg(const Decisions& decisions, const std::string& method, double min_threshold) {
    std::vector<double> frames;
    for (std::size_t i = 0; i < decisions.kept().size(); ++i)
        frames.push_back(static_cast<double>(i) * decisions.stride());
    plot::Figure figure(712, 0, std::max(1.0, decisions.frames() - 1), /*smallest_tick=*/1);
    figure.text(figure.left, 20, "start", method);

    const std::vector<Decisions::Window>& windows = decisions.windows();
    const bool draws_seams = windows.size() > 1 && windows.size() <= max_seams;
    const auto panel = [&](double top, double high) { return plot::Panel{top, top + 120, 0, 1.08 * high}; };
    const auto draw = [&](const plot::Panel& p, const char* name, const char* color, const char* unit,
                          double smallest_tick = 0) {
        figure.axes(p, plot::ticks(p.low, p.high, 5, smallest_tick), name, color,
                    [&](double t) { return fmt::format("{:g}{}", t, unit); });
        for (std::size_t k = 1; draws_seams && k < windows.size(); ++k)
            figure.out("<path d=\"M{0:.1f},{1:.1f}V{2:.1f}\" stroke=\"#888888\" stroke-dasharray=\"3 3\"/>\n",
                       figure.x(windows[k].first - 0.5), p.top, p.bottom);
    };

    // what belongs to a window breaks at the seams
    const auto draw_by_window = [&](const plot::Panel& p, const std::vector<double>& values, const char* color,
                                    double stroke) {
        std::vector<double> xs, ys;
        std::size_t next = 1;
        for (std::size_t i = 0; i < frames.size(); ++i) {
            while (next < windows.size() && windows[next].first <= frames[i]) {
                xs.push_back(frames[i]);
                ys.push_back(std::numeric_limits<double>::quiet_NaN());
                ++next;
            }
            xs.push_back(frames[i]);
            ys.push_back(values[i]);
        }
        figure.curve(p, xs, ys, color, stroke, 0);
    };

    const std::vector<double> ranks = values_of(decisions, [](const FrameDecision& f) { return f.rank; });
    const plot::Panel rank = panel(36, std::max(2.0, largest(ranks, 2)));
    draw(rank, "rank of L", of_rank, "", 1);
    for (std::size_t k = 0; k < windows.size() && windows.size() <= 8; ++k)
        figure.text(figure.x(windows[k].first) + 6, rank.bottom - 6, "start",
                    fmt::format("{:g} iterations", windows[k].iterations));
    draw_by_window(rank, ranks, of_rank, 1.8);

    double most = min_threshold;
    std::vector<double> thresholds[3];
    for (std::size_t q = 0; q < 3; ++q) {
        thresholds[q] = values_of(decisions, [q](const FrameDecision& f) { return f.threshold[q]; });
        most = std::max(most, largest(thresholds[q], 1));
    }
    const plot::Panel threshold = panel(204, most);
    draw(threshold, "threshold", of_threshold, "");
    figure.text(figure.right, threshold.top - 6, "end",
                "grey levels that 10%, 50% and 90% of the entries must differ by");
    if (min_threshold > 0)
        figure.out("<path d=\"M{:.1f},{:.1f}H{:.1f}\" stroke=\"#666666\" stroke-dasharray=\"5 4\"/>\n", figure.left,
                   threshold.y(min_threshold), figure.right);
    for (std::size_t q = 0; q < 3; ++q) draw_by_window(threshold, thresholds[q], of_threshold, q == 1 ? 2.2 : 1.0);

    const std::vector<double> shares = values_of(decisions, [](const FrameDecision& f) { return 100 * f.foreground; });
    const plot::Panel foreground = panel(372, largest(shares, 1));
    draw(foreground, "foreground", of_foreground, "%");
    figure.curve(foreground, frames, shares, of_foreground, 1.8, 0);

    const std::vector<double> changes = values_of(decisions, [](const FrameDecision& f) { return f.change; });
    const plot::Panel change = panel(540, largest(changes, 1));
    draw(change, "change of L", of_change, "");
    figure.text(figure.right, change.top - 6, "end", "mean grey levels from frame to frame");
    figure.curve(change, frames, changes, of_change, 1.8, 0);
    figure.name_abscissa(change, draws_seams ? "frame (dashed: seams of windows)" : "frame");
    return figure.svg();
}

}  // namespace quoin::video
