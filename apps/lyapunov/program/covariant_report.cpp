#include "covariant_report.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "estimate_text.hpp"
#include "json_line.hpp"
#include "output_files.hpp"
#include "plot/figure.hpp"
#include "quoin/io.hpp"

namespace quoin::cli {

namespace {

constexpr double degree = std::numbers::pi / 180;

double quantile(std::vector<double> values, double share) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

struct Moments {
    double mean = 0, deviation = 0;
};
Moments moments(const Matrix<double>& F, Index i) {
    Moments m;
    const double count = static_cast<double>(F.cols());
    for (Index w = 0; w < F.cols(); ++w) m.mean += F(i, w) / count;
    for (Index w = 0; w < F.cols(); ++w) m.deviation += (F(i, w) - m.mean) * (F(i, w) - m.mean);
    m.deviation = std::sqrt(m.deviation / std::max(1., count - 1));
    return m;
}

/// Densities of several samples over one abscissa, each by a histogram of 2∛n bins over the range of its n values.
std::string densities_svg(const std::vector<std::vector<double>>& samples, const std::string& abscissa) {
    struct Density {
        std::vector<double> centres, values;
    };
    std::vector<Density> densities;
    double low = samples[0][0], high = low, top = 0;
    for (const auto& sample : samples) {
        const double n = static_cast<double>(sample.size());
        const auto [least, most] = std::minmax_element(sample.begin(), sample.end());
        double first = *least, last = *most;
        if (last - first < 1e-9 * std::max(1., std::abs(first))) first -= 0.5, last += 0.5;
        const int bins = static_cast<int>(std::clamp(2 * std::cbrt(n), 8., 100.));
        const double width = (last - first) / bins;
        Density density{{}, std::vector<double>(static_cast<std::size_t>(bins), 0.)};
        for (int bin = 0; bin < bins; ++bin) density.centres.push_back(first + (bin + 0.5) * width);
        for (const double value : sample)
            density.values[static_cast<std::size_t>(std::min<double>(bins - 1, (value - first) / width))] +=
                1 / (width * n);
        low = std::min(low, first), high = std::max(high, last);
        top = std::max(top, *std::max_element(density.values.begin(), density.values.end()));
        densities.push_back(std::move(density));
    }
    plot::Figure figure(480, low, high);
    const plot::Panel panel{20, 430, 0, 1.05 * top};
    figure.axes(panel, plot::ticks(0, panel.high, 8), "density", "#333333");
    figure.name_abscissa(panel, abscissa);
    const char* const colors[] = {"#b2501e", "#3f7d3a", "#1f5fa8"};  // from the first exponent to the last
    for (std::size_t k = 0; k < densities.size(); ++k) {
        figure.curve(panel, densities[k].centres, densities[k].values, colors[3 * k / densities.size()], 1.5, 0);
    }
    return figure.svg();
}

}  // namespace

void run_covariant(Context<Host>& ctx, TangentMap<>& system, const CovariantOptions& options,
                   const CovariantOutput& output) {
    std::optional<OutputDirectory> directory;
    constexpr const char* outputs[] = {"local.npy",       "finite_time.npy", "angles.npy",
                                       "finite_time.svg", "angles.svg",      "report.json"};
    if (!output.out.empty()) directory.emplace(output.out).require(outputs);
    const CovariantLyapunov f = covariant_lyapunov(ctx, system, options);
    const Index p = f.local.rows();
    const Index segments = std::max<Index>(1, output.window > 0 ? std::lround(output.window / f.segment) : 10);
    const Matrix<double> F = finite_time_exponents(f, segments);
    std::vector<double> deviations;
    for (Index i = 0; i < p; ++i) deviations.push_back(moments(F, i).deviation);
    const double window = static_cast<double>(segments) * f.segment;
    const bool has_angles = !f.angles.empty();
    const double least = has_angles ? *std::min_element(f.angles.begin(), f.angles.end()) : 0;
    const double percentile = has_angles ? quantile(f.angles, 0.01) : 0,
                 median = has_angles ? quantile(f.angles, 0.5) : 0;

    JsonLine json;
    json.add("system", system.description()).add("dimension", system.dimension()).add("exponents", f.exponents);
    json.add("window", window).add("deviations", deviations).add("split", f.split);
    if (has_angles) json.add("least_angle", least).add("percentile_angle", percentile).add("median_angle", median);
    json.add("time", static_cast<double>(f.local.cols()) * f.segment).add("segments", f.local.cols());
    if (directory) {
        write_npy<double>(directory->file("local.npy"), f.local.view());
        write_npy<double>(directory->file("finite_time.npy"), F.view());
        write_npy<double>(directory->file("angles.npy"), f.angles);
        std::vector<std::vector<double>> samples(static_cast<std::size_t>(p));
        for (Index i = 0; i < p; ++i) {
            for (Index w = 0; w < F.cols(); ++w) samples[static_cast<std::size_t>(i)].push_back(F(i, w));
        }
        std::vector<double> degrees;
        for (const double angle : f.angles) degrees.push_back(angle / degree);
        write_text(directory->file("finite_time.svg"),
                   F.cols() > 0 ? densities_svg(samples, fmt::format("exponents over windows of {:g}", window)) : "");
        write_text(directory->file("angles.svg"), has_angles ? densities_svg({degrees}, "angle in degrees") : "");
        write_text(directory->file("report.json"), json.text() + "\n");
        directory->keep();
    }
    if (output.json) {
        json.print();
        return;
    }
    fmt::print("{}, {} dimensions\n", system.description(), system.dimension());
    fmt::print("covariant      {} vectors over {:.6g}; exponents, and their deviation over windows of {:g}\n", p,
               static_cast<double>(f.local.cols()) * f.segment, window);
    for (Index i = 0; i < p; ++i) {
        const std::size_t k = static_cast<std::size_t>(i);
        fmt::print("  {:>6}       {:>9}   {:.4f}\n", i + 1, rounded(f.exponents[k], 4), deviations[k]);
    }
    if (has_angles) {
        fmt::print(
            "angle          of the first {} to the other {}: least {:.3g}°, below {:.3g}° in 1%, median {:.3g}°\n",
            f.split, p - f.split, least / degree, percentile / degree, median / degree);
    }
    if (directory) fmt::print("wrote          {}: {}\n", output.out, fmt::join(outputs, ", "));
}

}  // namespace quoin::cli
