#include "plot/figure.hpp"

#include <algorithm>
#include <cmath>

namespace quoin::plot {

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

Figure::Figure(double height, double first, double last, double smallest_tick)
    : first_(first), last_(last), smallest_tick_(smallest_tick) {
    out("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" height=\"{1:g}\" "
        "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"#333333\">\n"
        "<rect width=\"{0:g}\" height=\"{1:g}\" fill=\"#ffffff\"/>\n",
        width, height);
}

void Figure::axes(const Panel& p, const std::vector<double>& y_ticks, const std::string& name, const char* color,
                  const std::function<std::string(double)>& label) {
    const std::vector<double> x_ticks = ticks(first_, last_, 10, smallest_tick_);
    out("<path d=\"");
    for (const double t : x_ticks) out("M{:.1f},{:.1f}V{:.1f}", x(t), p.top, p.bottom);
    for (const double t : y_ticks) out("M{:.1f},{:.1f}H{:.1f}", left, p.y(t), right);
    out("\" stroke=\"#dddddd\" fill=\"none\"/>\n");
    out("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" stroke=\"#666666\" fill=\"none\"/>\n", left,
        p.top, right - left, p.bottom - p.top);
    for (const double t : x_ticks) text(x(t), p.bottom + 16, "middle", plain(t));
    for (const double t : y_ticks) text(left - 8, p.y(t) + 4, "end", label(t));
    out("<text transform=\"translate(24,{:.1f}) rotate(-90)\" text-anchor=\"middle\" font-size=\"14\" "
        "fill=\"{}\">{}</text>\n",
        (p.top + p.bottom) / 2, color, name);
}

void Figure::name_abscissa(const Panel& lowest, const std::string& name) {
    text((left + right) / 2, lowest.bottom + 38, "middle", name);
}

void Figure::curve(const Panel& p, const std::vector<double>& abscissas, const std::vector<double>& values,
                   const char* color, double stroke, std::size_t max_dots) {
    std::string path, dots;
    char move = 'M';
    for (std::size_t k = 0; k < values.size(); ++k) {
        if (!std::isfinite(values[k])) {
            move = 'M';
            continue;
        }
        if (k > 0 && abscissas[k] <= abscissas[k - 1]) move = 'M';
        // an isolated point is a line of length 0 with round caps
        path += fmt::format("{}{:.1f},{:.1f}{}", move, x(abscissas[k]), p.y(values[k]), move == 'M' ? "h0" : "");
        move = 'L';
        if (values.size() <= max_dots) {
            dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.2\"/>", x(abscissas[k]), p.y(values[k]));
        }
    }
    out("<path d=\"{}\" stroke=\"{}\" stroke-width=\"{:g}\" stroke-linecap=\"round\" fill=\"none\"/>\n<g "
        "fill=\"{}\">{}</g>\n",
        path, color, stroke, color, dots);
}

void Figure::band(const Panel& p, const std::vector<double>& abscissas, const std::vector<double>& lower,
                  const std::vector<double>& upper, const char* color) {
    std::string there, back;
    for (std::size_t k = 0; k < abscissas.size(); ++k) {
        const auto point = [&](char command, double value) {
            return fmt::format("{}{:.1f},{:.1f}", command, x(abscissas[k]), p.y(std::clamp(value, p.low, p.high)));
        };
        there += point(k == 0 ? 'M' : 'L', lower[k]);
        back = point('L', upper[k]) + back;
    }
    out("<path d=\"{}{}Z\" fill=\"{}\" fill-opacity=\"0.2\"/>\n", there, back, color);
}

void Figure::text(double x, double y, const char* anchor, const std::string& what) {
    out("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, what);
}

}  // namespace quoin::plot
