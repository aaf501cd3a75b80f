#include "series_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <optional>

#include "add_value.hpp"
#include "estimate_text.hpp"
#include "input_matrix.hpp"
#include "json_line.hpp"
#include "lyapunov_plot.hpp"
#include "output_files.hpp"
#include "quoin/io.hpp"

namespace quoin::cli {

namespace {
const std::string series_heading = "Measured series";
}

void SeriesArguments::add_to(CLI::App& command) {
    add_value(command, "--series", "FILE", file,
              "Exponents of a measured series in place of a SYSTEM: FILE has a sample a row, a component a column.\n"
              "States are made of delays. Prints the largest exponent by nearest neighbours (Rosenstein et al. 1993)\n"
              "and --exponents of the product of Jacobians (Sano and Sawada 1985). --plot draws the divergence of\n"
              "neighbours, which must rise along a line; DIR has divergence.csv, divergence.svg, exponents.npy,\n"
              "report.json")
        ->group(series_heading);
    const auto add = [&](const char* name, Index& value, const char* description) {
        add_value(command, name, "N", value, description)->group(series_heading);
    };
    add("--delays", options.delays, "Samples that make a state (3)");
    add("--lag", options.lag, "Samples between two delays (1)");
    add_value(command, "--interval", "T", options.interval, "Time between two samples (1)")->group(series_heading);
    add("--theiler", options.theiler, "Samples nearer in time are no neighbours (2·delays·lag)");
    add("--neighbours", options.neighbours, "Neighbours that a Jacobian is fitted to (4·(variables + 1))");
    add("--evolve", options.evolve, "Samples that a Jacobian spans (lag)");
    add("--horizon", options.horizon, "Samples that nearest neighbours are followed for (a tenth of the series)");
    add_reading_arguments(command, reading);
}

void SeriesArguments::check(const CLI::App& command) const {
    for (const CLI::Option* option : command.get_options()) {
        const std::string name = option->get_name();
        const bool shared = option->get_group() == series_heading || option->get_group() == reading_heading ||
                            name == "--exponents" || name == "--threads" || name == "--json" || name == "--out" ||
                            name == "--plot";
        if (option->count() > 0 && !shared) throw CLI::ValidationError(name, "is not for --series");
    }
}

void run_series(Context<Host>& ctx, const SeriesArguments& arguments, bool json) {
    const Matrix<double> rows = open_matrix(arguments.file, arguments.reading, 0).read<double>();
    Matrix<double> series(rows.cols(), rows.rows());
    transpose<double, Host>(ctx, rows.view(), series.view());
    std::optional<OutputDirectory> directory;
    constexpr const char* outputs[] = {"divergence.csv", "divergence.svg", "exponents.npy", "report.json"};
    if (!arguments.out.empty()) directory.emplace(arguments.out).require(outputs);
    const SeriesDivergence d = series_divergence(ctx, series.view(), arguments.options);
    const LyapunovSpectrum f = series_spectrum(ctx, series.view(), arguments.options);
    const double from = d.times[static_cast<std::size_t>(d.first)], to = d.times[static_cast<std::size_t>(d.last - 1)];
    JsonLine line;
    line.add("series", arguments.file).add("samples", series.cols()).add("components", series.rows());
    line.add("largest", d.exponent.value).add("largest_error", d.exponent.error);
    line.add("largest_half_width", d.exponent.half_width).add("slope_from", from).add("slope_to", to);
    add_exponents(line, f.exponents);
    line.add("kaplan_yorke", f.kaplan_yorke.value).add("resolved", f.resolved).add("time", f.time);
    line.add("skipped", f.skipped);
    if (!arguments.plot.empty()) write_plot(arguments.plot, series_divergence_svg(d));
    if (directory) {
        std::string csv = "time,mean_log_distance\n";
        for (std::size_t k = 0; k < d.times.size(); ++k) csv += fmt::format("{},{}\n", d.times[k], d.logarithms[k]);
        write_text(directory->file("divergence.csv"), csv);
        write_text(directory->file("divergence.svg"), series_divergence_svg(d));
        write_npy<double>(directory->file("exponents.npy"), table_of(f.exponents).view());
        write_text(directory->file("report.json"), line.text() + "\n");
        directory->keep();
    }
    if (json) {
        line.print();
        return;
    }
    fmt::print("{}: {} samples of {} components\n", arguments.file, series.cols(), series.rows());
    fmt::print("largest        {} by nearest neighbours, slope between {:g} and {:g}\n", with_errors(d.exponent), from,
               to);
    fmt::print(
        "exponents      of {} variables by Jacobians, ± one standard error, and half the width of the 95% interval\n",
        f.dimension);
    for (std::size_t i = 0; i < f.exponents.size() && f.segments > 0; ++i) print_exponent(i, f.exponents[i]);
    if (!std::isnan(f.kaplan_yorke.value)) fmt::print("dimension      {:.4f} (Kaplan-Yorke)\n", f.kaplan_yorke.value);
    if (f.skipped > 0) {
        fmt::print("left out       {} of {} Jacobians, which their neighbours do not determine{}\n", f.skipped,
                   f.skipped + f.segments, f.segments == 0 ? ": fewer --delays, or more --neighbours" : "");
    }
    fmt::print("bias           of noise, of neighbourhoods and of the reconstruction is in no error\n");
    if (directory) fmt::print("wrote          {}: {}\n", arguments.out, fmt::join(outputs, ", "));
    if (!arguments.plot.empty()) fmt::print("wrote          {}\n", arguments.plot);
}

}  // namespace quoin::cli
