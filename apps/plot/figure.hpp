#pragma once

#include <fmt/format.h>

#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace quoin::plot {

/// Returns about `count` round numbers in [low, high], multiples of 1, 2 or 5 times a power of ten that is at least
/// `smallest`.
std::vector<double> ticks(double low, double high, double count, double smallest = 0);

/// Returns the text of a number, such as "0.5" or "1e-09".
inline std::string plain(double t) { return fmt::format("{:g}", t); }

/// A strip of a figure whose ordinate runs from `low` at `bottom` to `high` at `top`.
struct Panel {
    double top, bottom, low, high;
    double y(double value) const { return bottom + (value - low) / (high - low) * (top - bottom); }
};

/// An SVG figure of panels one under the other over one abscissa, [first, last].
class Figure {
public:
    static constexpr double width = 720, left = 84, right = 700;  ///< of the figure, and of its panels

    /// `smallest_tick`: 1 if the abscissa is a count.
    Figure(double height, double first, double last, double smallest_tick = 0);

    double x(double value) const { return left + (value - first_) / (last_ - first_) * (right - left); }

    /// Draws the frame, grid, ticks and the name of the ordinate; `label` is the text of a tick.
    void axes(const Panel& p, const std::vector<double>& y_ticks, const std::string& name, const char* color,
              const std::function<std::string(double)>& label = plain);
    /// Writes the name of the abscissa under the lowest panel.
    void name_abscissa(const Panel& lowest, const std::string& name);
    /// Draws a curve through the finite points, with a dot at each if there are at most `max_dots` points. It breaks
    /// where a point is not finite, and where the abscissas begin again.
    void curve(const Panel& p, const std::vector<double>& abscissas, const std::vector<double>& values,
               const char* color, double stroke = 1.8, std::size_t max_dots = 100);
    /// Fills the area between two curves, inside the panel, with a pale colour.
    void band(const Panel& p, const std::vector<double>& abscissas, const std::vector<double>& lower,
              const std::vector<double>& upper, const char* color);
    void text(double x, double y, const char* anchor, const std::string& what);

    template <class... Args>
    void out(fmt::format_string<Args...> format, Args&&... args) {
        fmt::format_to(std::back_inserter(svg_), format, std::forward<Args>(args)...);
    }

    /// Returns the text of the file.
    std::string svg() const { return svg_ + "</svg>\n"; }

private:
    double first_, last_, smallest_tick_;
    std::string svg_;
};

}  // namespace quoin::plot
