#include "lyapunov_plot.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "output_files.hpp"
#include "plot/figure.hpp"
#include "plot/png.hpp"

namespace quoin::cli {

namespace {

constexpr const char *positive_color = "#b2501e", *zero_color = "#3f7d3a", *negative_color = "#1f5fa8";

/// Returns the colors of the exponents. Zero are those within three standard errors of 0 and, of a whole spectrum, as
/// many of the smallest as symmetries make zero.
std::vector<const char*> colors_of(const LyapunovSpectrum& spectrum) {
    std::vector<double> sizes;
    for (const Estimate& exponent : spectrum.exponents) sizes.push_back(std::abs(exponent.value));
    const auto known = static_cast<std::size_t>(spectrum.vanishing);
    double zero = -1;
    if (static_cast<Index>(sizes.size()) == spectrum.dimension && known > 0 && !std::isnan(sizes[0])) {
        std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(known - 1), sizes.end());
        zero = sizes[known - 1];
    }
    std::vector<const char*> colors;
    for (const auto& [value, error, half_width] : spectrum.exponents) {
        const bool vanishes = std::abs(value) <= std::max(zero, 3 * error);
        colors.push_back(vanishes ? zero_color : value > 0 ? positive_color : negative_color);
    }
    return colors;
}

/// Returns a panel whose range covers the finite values and 0.
plot::Panel panel_of(double top, double bottom, const std::vector<double>& values) {
    double low = 0, high = 0;
    for (const double value : values) {
        if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
    }
    const double margin = high > low ? 0.05 * (high - low) : 1;
    return {top, bottom, low - margin, high + margin};
}

void zero_line(plot::Figure& figure, const plot::Panel& panel) {
    figure.out("<path d=\"M{:.1f},{:.1f}H{:.1f}\" stroke=\"#666666\"/>\n", figure.left, panel.y(0), figure.right);
}

/// The 95% intervals of the averages of exponent i, from sixteen batches on.
void band(plot::Figure& figure, const plot::Panel& panel, const LyapunovSpectrum& spectrum, Index i,
          const char* color) {
    const Index G = static_cast<Index>(spectrum.times.size()), first = 15, points = 32;
    if (G <= first) return;
    std::vector<double> times, lower, upper;
    for (Index k = 0; k <= points; ++k) {
        const Index b = first + k * (G - 1 - first) / points;
        const double value = spectrum.averages(i, b), h = half_width_after(spectrum, i, b);
        times.push_back(spectrum.times[static_cast<std::size_t>(b)]);
        lower.push_back(std::isfinite(h) ? value - h : value);
        upper.push_back(std::isfinite(h) ? value + h : value);
    }
    figure.band(panel, times, lower, upper, color);
}

}  // namespace

std::string lyapunov_convergence_svg(const LyapunovSpectrum& spectrum) {
    const Index p = static_cast<Index>(spectrum.exponents.size()), most = 64;
    // the first batches scatter too much to scale the figure
    const std::size_t first = spectrum.times.size() / 20;
    std::vector<double> all;
    for (std::size_t b = first; b < spectrum.times.size(); ++b) {
        for (Index i = 0; i < p; ++i) all.push_back(spectrum.averages(i, static_cast<Index>(b)));
    }
    plot::Figure figure(480, 0, spectrum.times.empty() ? 1 : spectrum.times.back());
    const plot::Panel panel = panel_of(20, 430, all);
    figure.axes(panel, plot::ticks(panel.low, panel.high, 10), "Lyapunov exponents", "#333333");
    zero_line(figure, panel);
    figure.name_abscissa(panel, "time averaged over");
    std::vector<Index> shown;
    for (Index c = 0, curves = std::min(p, most); c < curves; ++c)
        shown.push_back(curves > 1 ? c * (p - 1) / (curves - 1) : 0);
    const std::vector<const char*> colors = colors_of(spectrum);
    for (const Index i : shown) band(figure, panel, spectrum, i, colors[static_cast<std::size_t>(i)]);
    for (const Index i : shown) {
        std::vector<double> values;
        for (std::size_t b = 0; b < spectrum.times.size(); ++b) {
            const double value = spectrum.averages(i, static_cast<Index>(b));
            values.push_back(panel.low <= value && value <= panel.high ? value
                                                                       : std::numeric_limits<double>::quiet_NaN());
        }
        figure.curve(panel, spectrum.times, values, colors[static_cast<std::size_t>(i)], 1.2, 2);
    }
    return figure.svg();
}

std::string lyapunov_spectrum_svg(const LyapunovSpectrum& spectrum) {
    std::vector<double> index, values, sums;
    std::vector<double> parts[3];
    const double gap = std::numeric_limits<double>::quiet_NaN();
    double sum = 0;
    constexpr const char *colors[] = {positive_color, zero_color, negative_color},
                         *names[] = {"above 0", "at 0", "below 0"};
    const std::vector<const char*> color = colors_of(spectrum);
    for (std::size_t i = 0; i < color.size(); ++i) {
        const double value = spectrum.exponents[i].value;
        index.push_back(static_cast<double>(i + 1));
        values.push_back(value);
        sums.push_back(sum += value);
        for (int c = 0; c < 3; ++c) parts[c].push_back(color[i] == colors[c] ? value : gap);
    }
    plot::Figure figure(480, 0, index.back() + 1, /*smallest_tick=*/1);
    const plot::Panel top = panel_of(20, 250, values), bottom = panel_of(286, 430, sums);
    figure.axes(top, plot::ticks(top.low, top.high, 8), "λᵢ", "#333333");
    figure.axes(bottom, plot::ticks(bottom.low, bottom.high, 5), "λ₁ + … + λᵢ", "#333333");
    zero_line(figure, top);
    zero_line(figure, bottom);
    figure.name_abscissa(bottom, "i");
    for (int c = 0; c < 3; ++c) {
        figure.curve(top, index, parts[c], colors[c], 1.8, 1000);
        figure.text(figure.right - 12, top.top + 18 * (c + 1), "end",
                    fmt::format("<tspan fill=\"{}\">{} exponents {}</tspan>", colors[c],
                                std::count(color.begin(), color.end(), colors[c]), names[c]));
    }
    figure.curve(bottom, index, sums, "#333333", 1.8, 100);
    return figure.svg();
}

std::string series_divergence_svg(const SeriesDivergence& divergence) {
    const std::vector<double>&times = divergence.times, &y = divergence.logarithms;
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const double value : y) {
        if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
    }
    if (!(high > low)) low = -1, high = 1;
    const double margin = 0.05 * (high - low);
    plot::Figure figure(480, 0, times.back());
    const plot::Panel panel{20, 430, low - margin, high + margin};
    figure.axes(panel, plot::ticks(panel.low, panel.high, 10), "mean log-distance of neighbours", "#333333");
    figure.name_abscissa(panel, "time");
    figure.curve(panel, times, y, negative_color, 1.8, 100);
    // the line of the slope, through the middle of the range that it is of
    const std::size_t first = static_cast<std::size_t>(divergence.first),
                      last = static_cast<std::size_t>(divergence.last);
    double time = 0, value = 0;
    for (std::size_t k = first; k < last; ++k) {
        time += times[k] / static_cast<double>(last - first);
        value += y[k] / static_cast<double>(last - first);
    }
    const double slope = divergence.exponent.value, half = times[last - 1] - times[first];
    std::vector<double> abscissas, line;
    for (const double t : {std::max(0., time - half), std::min(times.back(), time + half)}) {
        abscissas.push_back(t);
        line.push_back(std::clamp(value + slope * (t - time), panel.low, panel.high));
    }
    figure.curve(panel, abscissas, line, positive_color, 1.8, 0);
    figure.text(figure.right - 12, panel.bottom - 12, "end",
                fmt::format("slope {:.4g} ± {:.2g} between {:g} and {:g}", slope, divergence.exponent.half_width,
                            times[first], times[last - 1]));
    return figure.svg();
}

void check_plot(const std::string& path) {
    if (path.empty()) return;
    if (!path.ends_with(".svg") && !path.ends_with(".png")) {
        throw CLI::ValidationError("--plot", "'" + path + "' must end in .svg or .png");
    }
    if (path.ends_with(".png") && !plot::has_png()) {
        throw InvalidArgument(path + ": this quoin was built without librsvg and draws .svg only");
    }
    require_writable(path);
}

void write_plot(const std::string& path, const std::string& svg) {
    write_text(path, path.ends_with(".png") ? plot::png(svg) : svg);
}

Matrix<double> table_of(const std::vector<Estimate>& exponents) {
    Matrix<double> table(static_cast<Index>(exponents.size()), 3);
    for (Index i = 0; i < table.rows(); ++i) {
        const Estimate& exponent = exponents[static_cast<std::size_t>(i)];
        table(i, 0) = exponent.value, table(i, 1) = exponent.error, table(i, 2) = exponent.half_width;
    }
    return table;
}

}  // namespace quoin::cli
