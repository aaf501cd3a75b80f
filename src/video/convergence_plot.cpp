#include "video/convergence_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <vector>

namespace quoin::video {
namespace {

constexpr double width = 720, left = 84, right = 700;  // of the figure, and of its panels
constexpr const char *residual_color = "#1f5fa8", *rank_color = "#b2501e";

/// A strip of the figure whose ordinate runs from `low` at `bottom` to `high` at `top`.
struct Panel {
    double top, bottom, low, high;
    double y(double value) const { return bottom + (value - low) / (high - low) * (top - bottom); }
};

/// About `count` round numbers in [low, high], multiples of 1, 2 or 5 times a power of ten that is at least `smallest`.
std::vector<double> ticks(double low, double high, double count, double smallest) {
    const double power = std::pow(10, std::floor(std::log10(std::max((high - low) / count, smallest))));
    double step = std::max(power, smallest);
    for (const double factor : {2., 5., 10.}) {
        if ((high - low) / step > count) step = factor * power;
    }
    std::vector<double> values;
    for (double k = std::ceil(low / step); k * step <= high; ++k) values.push_back(k * step + 0.0);  // and not -0
    return values;
}

class Figure {
public:
    Figure(double first, double last) : first_(first), last_(last) {}

    double x(double iteration) const { return left + (iteration - first_) / (last_ - first_) * (right - left); }

    /// Frame, grid, ticks and the name of the ordinate; `label` is the text of a tick.
    void axes(const Panel& p, const std::vector<double>& y_ticks, const std::string& name, const char* color,
              const std::function<std::string(double)>& label) {
        const std::vector<double> x_ticks = ticks(first_, last_, 10, 1);
        out("<path d=\"");
        for (const double t : x_ticks) out("M{:.1f},{:.1f}V{:.1f}", x(t), p.top, p.bottom);
        for (const double t : y_ticks) out("M{:.1f},{:.1f}H{:.1f}", left, p.y(t), right);
        out("\" stroke=\"#dddddd\" fill=\"none\"/>\n");
        out("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" stroke=\"#666666\" fill=\"none\"/>\n",
            left, p.top, right - left, p.bottom - p.top);
        for (const double t : x_ticks) text(x(t), p.bottom + 16, "middle", fmt::format("{:g}", t));
        for (const double t : y_ticks) text(left - 8, p.y(t) + 4, "end", label(t));
        out("<text transform=\"translate(24,{:.1f}) rotate(-90)\" text-anchor=\"middle\" font-size=\"14\" "
            "fill=\"{}\">{}</text>\n",
            (p.top + p.bottom) / 2, color, name);
    }

    /// A curve through the points that are finite, with a dot at each where they are few.
    void curve(const Panel& p, const std::vector<double>& iterations, const std::vector<double>& values,
               const char* color) {
        std::string path, dots;
        char move = 'M';
        for (std::size_t k = 0; k < values.size(); ++k) {
            if (!std::isfinite(values[k])) {
                move = 'M';
                continue;
            }
            if (k > 0 && iterations[k] <= iterations[k - 1]) move = 'M';
            // a point between two gaps is drawn by the round ends of nothing
            path += fmt::format("{}{:.1f},{:.1f}{}", move, x(iterations[k]), p.y(values[k]), move == 'M' ? "h0" : "");
            move = 'L';
            if (values.size() <= 100) {
                dots +=
                    fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.2\"/>", x(iterations[k]), p.y(values[k]));
            }
        }
        out("<path d=\"{}\" stroke=\"{}\" stroke-width=\"1.8\" stroke-linecap=\"round\" fill=\"none\"/>\n<g "
            "fill=\"{}\">{}</g>\n",
            path, color, color, dots);
    }

    void text(double x, double y, const char* anchor, const std::string& what) {
        out("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, what);
    }

    template <class... Args>
    void out(fmt::format_string<Args...> format, Args&&... args) {
        fmt::format_to(std::back_inserter(svg), format, std::forward<Args>(args)...);
    }

    std::string svg;

private:
    double first_, last_;
};

}  // namespace

std::string convergence_svg(std::span<const RobustPcaStep> steps, double tolerance) {
    std::vector<double> iterations, residuals, ranks;
    const double decades = tolerance > 0 ? std::log10(tolerance) : 0;
    double low = decades, high = decades, top_rank = 1, last = 2;
    for (const RobustPcaStep& step : steps) {
        iterations.push_back(static_cast<double>(step.iteration));
        last = std::max(last, iterations.back());
        ranks.push_back(static_cast<double>(step.rank));
        top_rank = std::max(top_rank, ranks.back());
        residuals.push_back(std::log10(step.residual));
        if (std::isfinite(residuals.back()))
            low = std::min(low, residuals.back()), high = std::max(high, residuals.back());
    }
    const double first = steps.empty() ? 1 : iterations.front();
    Figure figure(first, std::max(last, first + 1));
    const Panel residual{20, 250, std::floor(low - 0.2), std::max(std::ceil(high), 1 + std::floor(low - 0.2))},
        rank{286, 430, 0, 1.05 * top_rank};

    figure.out(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} 480\" width=\"{0:g}\" height=\"480\" "
        "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"#333333\">\n"
        "<rect width=\"{0:g}\" height=\"480\" fill=\"#ffffff\"/>\n",
        width);
    figure.axes(residual, ticks(residual.low, residual.high, 8, 1), "‖M − L − S‖ / ‖M‖", residual_color,
                [](double t) { return fmt::format("10<tspan dy=\"-5\" font-size=\"9\">{:g}</tspan>", t); });
    figure.axes(rank, ticks(rank.low, rank.high, 5, 1), "rank of L", rank_color,
                [](double t) { return fmt::format("{:g}", t); });
    figure.text((left + right) / 2, rank.bottom + 38, "middle", "iteration");
    if (tolerance > 0) {
        figure.out("<path d=\"M{:.1f},{:.1f}H{:.1f}\" stroke=\"#666666\" stroke-dasharray=\"5 4\"/>\n", left,
                   residual.y(decades), right);
        figure.text(left + 6, residual.y(decades) - 5, "start", fmt::format("tolerance {:g}", tolerance));
    }
    figure.curve(residual, iterations, residuals, residual_color);
    figure.curve(rank, iterations, ranks, rank_color);
    figure.out("</svg>\n");
    return figure.svg;
}

}  // namespace quoin::video
