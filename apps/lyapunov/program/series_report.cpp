#include "series_report.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "input_matrix.hpp"
#include "json_line.hpp"

namespace quoin::cli {

namespace {
const std::string series_heading = "Measured series";
}

void SeriesArguments::add_to(CLI::App& command) {
    command
        .add_option(
            "--series", file,
            "Exponents of a measured series in place of a SYSTEM: FILE has a sample a row, a component a column.\n"
            "States are made of delays. Prints the largest exponent by nearest neighbours (Rosenstein et al. 1993)\n"
            "and --exponents of the product of Jacobians (Sano and Sawada 1985)")
        ->group(series_heading)
        ->type_name("FILE");
    const auto add = [&](const char* name, Index& value, const char* description) {
        command.add_option(name, value, description)->group(series_heading)->type_name("N");
    };
    add("--delays", options.delays, "Samples that make a state (3)");
    add("--lag", options.lag, "Samples between two delays (1)");
    command.add_option("--interval", options.interval, "Time between two samples (1)")
        ->group(series_heading)
        ->type_name("T");
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
                            name == "--exponents" || name == "--threads" || name == "--json";
        if (option->count() > 0 && !shared) throw CLI::ValidationError(name, "is not for --series");
    }
}

void run_series(Context<Host>& ctx, const SeriesArguments& arguments, bool json) {
    const Matrix<double> rows = open_matrix(arguments.file, arguments.reading, 0).read<double>();
    Matrix<double> series(rows.cols(), rows.rows());
    transpose<double, Host>(ctx, rows.view(), series.view());
    const SeriesDivergence d = series_divergence(ctx, series.view(), arguments.options);
    const LyapunovSpectrum f = series_spectrum(ctx, series.view(), arguments.options);
    const double from = d.times[static_cast<std::size_t>(d.first)], to = d.times[static_cast<std::size_t>(d.last - 1)];
    if (json) {
        std::vector<double> values, errors, half_widths;
        for (const Estimate& e : f.exponents) {
            values.push_back(e.value), errors.push_back(e.error), half_widths.push_back(e.half_width);
        }
        JsonLine line;
        line.add("series", arguments.file).add("samples", series.cols()).add("components", series.rows());
        line.add("largest", d.exponent.value).add("largest_error", d.exponent.error);
        line.add("largest_half_width", d.exponent.half_width).add("slope_from", from).add("slope_to", to);
        line.add("exponents", values).add("errors", errors).add("half_widths", half_widths);
        line.add("kaplan_yorke", f.kaplan_yorke.value).add("resolved", f.resolved).add("time", f.time);
        line.print();
        return;
    }
    fmt::print("{}: {} samples of {} components\n", arguments.file, series.cols(), series.rows());
    fmt::print("largest        {:.4f} ± {:.4f} (95%: ± {:.4f}) by nearest neighbours, slope between {:g} and {:g}\n",
               d.exponent.value, d.exponent.error, d.exponent.half_width, from, to);
    fmt::print(
        "exponents      of {} variables by Jacobians, ± one standard error, and half the width of the 95% interval\n",
        f.dimension);
    for (std::size_t i = 0; i < f.exponents.size(); ++i) {
        const Estimate& e = f.exponents[i];
        fmt::print("  {:>6}       {:>9.4f} ± {:.4f}   95%: ± {:.4f}\n", i + 1, e.value, e.error, e.half_width);
    }
    fmt::print("dimension      {:.4f} (Kaplan-Yorke)\n", f.kaplan_yorke.value);
    fmt::print("bias           of noise, of neighbourhoods and of the reconstruction is in no error\n");
}

}  // namespace quoin::cli
