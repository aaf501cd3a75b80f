#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>

#include "add_value.hpp"
#include "arguments.hpp"
#include "covariant_report.hpp"
#include "estimate_text.hpp"
#include "interrupt.hpp"
#include "json_line.hpp"
#include "lyapunov_plot.hpp"
#include "lyapunov_system.hpp"
#include "on_device.hpp"
#include "output_files.hpp"
#include "program.hpp"
#include "progress_bar.hpp"
#include "series_report.hpp"

namespace quoin::cli {

namespace {

constexpr double longest_until = 100;  // of the default --time, if --until is given alone

struct LyapunovArguments {
    CommonArguments common;
    SystemArguments system;
    std::optional<double> time, until, transient, alignment;
    std::optional<Index> every;
    std::optional<Index> exponents;
    std::uint64_t seed = 1;
    ScalarKind dtype = ScalarKind::F64;
    std::string checkpoint, out, plot;
    double checkpoint_seconds = 60;
    bool covariant = false;
    SeriesArguments series;
    Index split = 0;
    double window = 0;

    CovariantOptions covariant_options() const {
        const LyapunovOptions o = options();
        return {.exponents = o.exponents,
                .time = o.time,
                .transient = o.transient,
                .alignment = o.alignment,
                .steps_per_qr = o.steps_per_qr,
                .seed = o.seed,
                .split = split,
                .qr = o.qr};
    }

    LyapunovOptions options() const {
        LyapunovOptions options = default_options(system.system());
        options.until = until.value_or(0);
        options.time = time.value_or(until ? longest_until * options.time : options.time);
        options.transient = transient.value_or(options.transient);
        options.alignment = alignment.value_or(options.alignment);
        options.steps_per_qr = every.value_or(options.steps_per_qr);
        options.exponents = exponents.value_or(options.exponents);
        options.seed = seed;
        options.qr = common.options;
        options.checkpoint = checkpoint;
        options.checkpoint_seconds = checkpoint_seconds;
        return options;
    }
};

/// Time of the segments that the exponents need: forces, tangent vectors and QR.
double evolution_seconds(const LyapunovSpectrum& f) { return f.force_seconds + f.tangent_seconds + f.qr_seconds; }

double share(double seconds, const LyapunovSpectrum& f) {
    return evolution_seconds(f) > 0 ? seconds / evolution_seconds(f) : 0;
}

double rate(const LyapunovSpectrum& f) {
    return evolution_seconds(f) > 0 ? static_cast<double>(f.reorthonormalisations) / evolution_seconds(f) : 0;
}

/// The run that a report describes.
struct RunInUse {
    std::string description;  ///< of the system
    ScalarKind dtype;         ///< of the vectors
    DeviceInUse device;
};

JsonLine report_of(const RunInUse& run, const LyapunovOptions& options, const LyapunovSpectrum& f) {
    JsonLine json;
    const auto add = [&](const std::string& key, const Estimate& estimate) {
        json.add(key.c_str(), estimate.value).add((key + "_error").c_str(), estimate.error);
        json.add((key + "_half_width").c_str(), estimate.half_width);
    };
    json.add("system", run.description).add("dimension", f.dimension).add("end", f.completed ? "completed" : "stopped");
    add_exponents(json, f.exponents);
    add("sum", f.sum);
    if (f.divergence) json.add("divergence", *f.divergence);
    add("kolmogorov_sinai", f.kolmogorov_sinai);
    add("kaplan_yorke", f.kaplan_yorke);
    json.add("positive", f.positive).add("vanishing", f.vanishing);
    if (f.energy) json.add("energy", *f.energy);
    if (f.energy_drift) json.add("energy_drift", *f.energy_drift);
    json.add("time", f.time).add("transient", options.transient).add("alignment", options.alignment);
    json.add("discarded", f.discarded).add("resolved", f.resolved);
    if (options.until > 0) json.add("until", options.until).add("reached", f.reached);
    json.add("segments", f.segments).add("steps_per_qr", f.steps_between_qr);
    json.add("seed", static_cast<std::int64_t>(options.seed)).add("method", to_string(f.method));
    json.add("dtype", to_string(run.dtype)).add("device", to_string(run.device.device));
    json.add("seconds", f.seconds).add("qr_share", share(f.qr_seconds, f));
    json.add("tangent_share", share(f.tangent_seconds, f)).add("force_share", share(f.force_seconds, f));
    json.add("reorthonormalisations_per_second", rate(f));
    return json;
}

void print_estimate(const char* name, const Estimate& estimate, const std::string& remark = "") {
    if (std::isnan(estimate.value)) {
        fmt::print("{:<14} not reached by these exponents\n", name);
    } else {
        fmt::print("{:<14} {}{}\n", name, with_errors(estimate), remark);
    }
}

void print_exponents(const LyapunovSpectrum& f) {
    constexpr std::size_t max_lines = 48, ends = 12;
    const std::size_t p = f.exponents.size();
    fmt::print("exponents      {} of {}, ± one standard error, and half the width of the 95% interval\n", p,
               f.dimension);
    for (std::size_t i = 0; i < p; ++i) {
        if (p > max_lines && i == ends) {
            fmt::print("          ...\n");
            i = p - ends;
        }
        print_exponent(i, f.exponents[i]);
    }
    const bool whole = static_cast<Index>(p) == f.dimension;
    print_estimate("sum", f.sum,
                   whole && f.divergence
                       ? fmt::format(", exactly {:.{}f} by the mean divergence", *f.divergence, decimals_of(f.sum))
                       : "");
    const auto above =
        std::count_if(f.exponents.begin(), f.exponents.end(), [](const Estimate& e) { return e.value > 0; });
    print_estimate("entropy", f.kolmogorov_sinai,
                   fmt::format(" (Kolmogorov-Sinai), {} exponent{} above 0{}", above, above == 1 ? "" : "s",
                               above == f.positive ? "" : fmt::format(", {} by three standard errors", f.positive)));
    print_estimate("dimension", f.kaplan_yorke, " (Kaplan-Yorke)");
}

/// Prints warnings that users must read before they use the results.
void print_warnings(const LyapunovOptions& options, const LyapunovSpectrum& f) {
    if (f.discarded > 0) {
        fmt::print("transient      of {:.6g} found and left out; the averages are over {:.6g}\n", f.discarded,
                   f.time - f.discarded);
    }
    if (f.segments > 0 && std::isnan(f.exponents[0].error)) {
        fmt::print("warning        too few segments for errors: a longer --time\n");
    } else if (!f.resolved) {
        fmt::print("warning        correlations last longer than 1/16 of the time: errors may be too small\n");
    }
    if (f.steps_between_qr < options.steps_per_qr) {
        fmt::print("warning        QR every {} steps instead of {}: the vectors grow too far apart\n",
                   f.steps_between_qr, options.steps_per_qr);
    }
    if (!f.reached) {
        fmt::print(
            "warning        --until {:g} was not reached: a longer --time, or a shorter --step where that is the "
            "limit\n",
            options.until);
    }
}

void print_report(const RunInUse& run, const LyapunovOptions& options, bool asked_for_device,
                  const LyapunovSpectrum& f) {
    fmt::print("{}, {} dimensions\n", run.description, f.dimension);
    if (asked_for_device) fmt::print("device         {}\n", run.device.description);
    fmt::print("averaged       over {:.6g} in {} segments{}\n", f.time, f.segments,
               f.completed ? "" : ": stopped before its end");
    if (f.segments == 0) {
        fmt::print("exponents      none yet\n");
    } else {
        print_exponents(f);
    }
    print_warnings(options, f);
    if (f.vanishing > 0) fmt::print("symmetries     make {} of all exponents 0\n", f.vanishing);
    if (f.energy_drift) fmt::print("energy         {:.8g}, drifted by {:.1e}\n", *f.energy, *f.energy_drift);
    fmt::print("time           {:.3g} s; QR {:.0f}%, tangent vectors {:.0f}%, forces {:.0f}%\n", f.seconds,
               100 * share(f.qr_seconds, f), 100 * share(f.tangent_seconds, f), 100 * share(f.force_seconds, f));
    fmt::print("QR             {} in {}, {:.3g} reorthonormalisations/s\n", to_string(f.method), to_string(run.dtype),
               rate(f));
}

/// Returns the bytes of the vectors and their copy, of R and of the workspace of their QR, and 512 MiB for the system.
template <class T, class D>
double bytes_on_gpu(const Context<D>& ctx, Index n, Index exponents, Options options) {
    const Index p = exponents > 0 ? std::min(exponents, n) : n;
    options.q = QForm::Explicit;
    return plan_qr<T>(ctx, n, p, options).workspace_bytes + sizeof(T) * static_cast<double>((2 * n + p) * p) + 0x1p29;
}

/// Calls run(ctx, system) on the device that --device names, with the vectors in T, and writes that device to `use`.
template <class T, class Run>
void with_system(const LyapunovArguments& arguments, DeviceInUse& use, Run&& run) {
    CommonArguments common = arguments.common;
    const std::string refusal = common.device == Device::Host ? "" : arguments.system.refusal_of_gpu();
    if (!refusal.empty()) {
        if (common.device == Device::Cuda) throw InvalidArgument("--device cuda: " + refusal);
        common.device = Device::Host;
    }
    const auto bytes = [&](auto& ctx) {
        return bytes_on_gpu<T>(ctx, arguments.system.make<T>(ctx)->dimension(), arguments.options().exponents,
                               common.options);
    };
    on_device(common, "the matrix of tangent vectors", bytes, [&](auto& ctx, const DeviceInUse& in_use) {
        use = in_use;
        if (!refusal.empty()) use.description = "host (" + refusal + ")";
        const auto system = arguments.system.make<T>(ctx);
        run(ctx, *system);
    });
}

/// Computes the spectrum with a progress bar, until it is done or stopped by Ctrl-C.
template <class T, class D>
LyapunovSpectrum evolve(Context<D>& ctx, TangentMap<T, D>& system, LyapunovOptions options) {
    const InterruptGuard guard;
    std::atomic<double> fraction{0};
    options.on_segment = [&](const LyapunovProgress& progress) {
        fraction = progress.fraction;
        return !interrupted();
    };
    const ProgressBar bar("evolving", [&] { return fraction.load(); });
    return lyapunov_spectrum(ctx, system, options);
}

std::string table_of_defaults() {
    std::string table = fmt::format("Defaults: {:<20} {:>8} {:>12} {:>12} {:>8}\n", "", "--time", "--transient",
                                    "--alignment", "--every");
    for (const System system : systems) {
        const LyapunovOptions o = default_options(system);
        table += fmt::format("          {:<20} {:>8} {:>12} {:>12} {:>8}\n", to_string(system), o.time, o.transient,
                             o.alignment, o.steps_per_qr);
    }
    return table;
}

void run_lyapunov(const CLI::App& command, const LyapunovArguments& arguments) {
    if (!arguments.series.file.empty()) {
        arguments.series.check(command);
        Context<Host> ctx(arguments.common.threads);
        SeriesArguments series = arguments.series;
        series.options.exponents = arguments.exponents.value_or(0);
        series.out = arguments.out;
        series.plot = arguments.plot;
        check_plot(series.plot);
        run_series(ctx, series, arguments.common.json);
        return;
    }
    if (command.count("SYSTEM") == 0) throw CLI::RequiredError("SYSTEM, or --series FILE,");
    arguments.system.check(command);
    if (arguments.until && !(*arguments.until > 0)) throw CLI::ValidationError("--until", "must be positive");
    const LyapunovOptions options = arguments.options();
    if (arguments.covariant) {
        for (const char* name : {"--until", "--checkpoint", "--plot", "--device", "--dtype"}) {
            if (command.count(name) > 0) throw CLI::ValidationError(name, "is not for --covariant");
        }
        Context<Host> ctx(arguments.common.threads);
        const auto system = arguments.system.make<double>(ctx);
        run_covariant(ctx, *system, arguments.covariant_options(),
                      {arguments.out, arguments.common.json, arguments.window});
        return;
    }
    for (const char* name : {"--split", "--window"}) {
        if (command.count(name) > 0) throw CLI::ValidationError(name, "is for --covariant");
    }
    check_plot(arguments.plot);
    std::optional<OutputDirectory> directory;
    constexpr const char* outputs[] = {"exponents.npy", "convergence.svg", "spectrum.svg", "report.json"};
    if (!arguments.out.empty()) directory.emplace(arguments.out).require(outputs);
    if (!options.checkpoint.empty()) require_writable(options.checkpoint);

    RunInUse in_use{"", arguments.dtype, {}};
    LyapunovSpectrum f;
    with_dtype(arguments.dtype, [&]<class T>(T) {
        with_system<T>(arguments, in_use.device, [&](auto& ctx, auto& system) {
            in_use.description = system.description();
            f = evolve(ctx, system, options);
        });
    });

    const JsonLine report = report_of(in_use, options, f);
    if (!arguments.plot.empty()) {
        write_plot(arguments.plot, lyapunov_convergence_svg(f));
    }
    if (directory) {
        write_npy<double>(directory->file("exponents.npy"), table_of(f.exponents).view());
        write_text(directory->file("convergence.svg"), lyapunov_convergence_svg(f));
        write_text(directory->file("spectrum.svg"), lyapunov_spectrum_svg(f));
        write_text(directory->file("report.json"), report.text() + "\n");
        directory->keep();
    }
    if (arguments.common.json) {
        report.print();
    } else {
        print_report(in_use, options, arguments.common.device != Device::Host, f);
        if (directory) fmt::print("wrote          {}: {}\n", arguments.out, fmt::join(outputs, ", "));
        if (!arguments.plot.empty()) fmt::print("wrote          {}\n", arguments.plot);
        if (!options.checkpoint.empty())
            fmt::print("checkpoint     {}: the same command goes on from it\n", options.checkpoint);
    }
    if (!f.completed) throw_if_interrupted();
}

}  // namespace

}  // namespace quoin::cli

int main(int argc, char** argv) {
    using namespace quoin::cli;
    LyapunovArguments arguments;
    Program command(
        "Lyapunov exponents of a dynamical system, by QR of its tangent vectors.\n"
        "\n"
        "The state and p tangent vectors are evolved together. Every K steps the vectors are factored, Z = QR, and Q\n"
        "takes their place. The averages of log|r_ii| over time are the exponents (Benettin et al. 1980; Shimada and\n"
        "Nagashima 1979). They are printed with standard errors and 95% intervals, their sum, the Kolmogorov-Sinai\n"
        "entropy (sum of the positive ones) and the Kaplan-Yorke dimension. A transient at the start is found and\n"
        "left out. Where the sum of all exponents is known and differs, the run fails. For a system of your own use\n"
        "quoin::tangent_map in C++ or quoin.lyapunov in Python.",
        "quoin lyapunov");
    arguments.system.add_to(command);
    const auto add_time = [&](const char* name, std::optional<double>& value, const char* description) {
        add_value(command, name, "T", value, description);
    };
    add_value(command, "--exponents", "P", arguments.exponents,
              "Compute the first P exponents; 0: all (kuramoto-sivashinsky: 12, mackey-glass: 10)");
    add_time("--time", arguments.time, "Time to average over; maps: iterations. The error falls as 1/√T");
    add_value(command, "--until", "E", arguments.until,
              "Stop as soon as the 95% interval of every exponent is at most ± E; at --time at the latest (100\n"
              "times its default where it is not given)");
    add_time("--transient", arguments.transient, "Time before, for the state to reach its attractor or equilibrium");
    add_time("--alignment", arguments.alignment,
             "Time after that in which the vectors find their directions; not averaged");
    add_value(command, "--every", "K", arguments.every,
              "Steps between two QRs, at most. Where the vectors become too parallel in K steps there are more QRs,\n"
              "and the report says so: cond(Z) is about exp((λ_1 − λ_p) K step)");
    command.add_option("--seed", arguments.seed, "Seed of the first state and vectors")->capture_default_str();
    add_value(command, "--checkpoint", "FILE", arguments.checkpoint,
              "File in which the run is saved each minute, on Ctrl-C and at its end. If it exists, the run continues\n"
              "from it, with the same bits. A longer --time continues a finished run");
    add_value(command, "--checkpoint-every", "S", arguments.checkpoint_seconds, "Seconds between two saves")
        ->capture_default_str();
    add_value(command, "--out", "DIR", arguments.out,
              "Folder for exponents.npy (value, error, half width), convergence.svg, spectrum.svg, report.json");
    add_value(command, "--plot", "FILE", arguments.plot,
              "The exponents over the time averaged (--series: the divergence), as FILE.svg or FILE.png");
    command.add_flag(
        "--covariant", arguments.covariant,
        "Covariant vectors (Ginelli et al. 2007) over --time: their local exponents, finite-time exponents and\n"
        "angles. DIR then has local.npy (exponents x segments), finite_time.npy, angles.npy (radians),\n"
        "finite_time.svg, angles.svg, report.json");
    add_value(command, "--split", "J", arguments.split,
              "With --covariant, the angle is that of the first J vectors to the others (default: the positive ones)");
    add_value(command, "--window", "T", arguments.window,
              "With --covariant, the time of a finite-time exponent (default: ten QRs)")
        ->check(CLI::NonNegativeNumber.description(""));
    arguments.series.add_to(command);
    add_dtype(
        command, arguments.dtype,
        "Type of the tangent vectors and their QR, f32 or f64; the state and the sums of log|r_ii| are in f64. In\n"
        "f32 QRs are as often as cond(Z) asks for (default: f64)");
    add_device_argument(command, arguments.common.device);
    add_common_arguments(command, arguments.common);
    command.footer(
        "Example:  quoin lyapunov lorenz63\n"
        "          quoin lyapunov lorenz96 --size 40 --forcing 8 --out spectrum\n"
        "          quoin lyapunov kuramoto-sivashinsky --length 22 --exponents 12\n"
        "          quoin lyapunov mackey-glass --tau 30\n"
        "          quoin lyapunov henon --until 1e-3\n"
        "          quoin lyapunov --series x.npy --delays 3 --lag 5 --interval 0.02 --theiler 50\n"
        "          quoin lyapunov lorenz63 --covariant --time 1000 --out vectors\n"
        "          quoin lyapunov particles --size 1000 --time 10 --checkpoint fluid.run\n"
        "          quoin lyapunov particles --size 1000 --device cuda --dtype f32 --plot fluid.png\n"
        "          quoin lyapunov kuramoto-sivashinsky --length 1400 --modes 1024 --exponents 200 --device cuda\n"
        "\n" +
        table_of_defaults() +
        "\n"
        "All systems but mackey-glass run on a GPU too; state, vectors and QR then stay in its memory.\n"
        "Ctrl-C stops the run, saves the checkpoint, reports the results so far, and exits with 130.\n"
        "--json prints report.json on one line: system, dimension, end, exponents, errors, half_widths (of the 95%\n"
        "intervals), sum, divergence (what the sum of all must be), kolmogorov_sinai, kaplan_yorke, positive\n"
        "(significantly), vanishing, energy, energy_drift, time, transient, alignment, discarded (a transient that\n"
        "was found), resolved (false: errors may be too small), until, reached, segments, steps_per_qr (in use),\n"
        "dtype, device, seconds, qr_share, tangent_share, force_share, reorthonormalisations_per_second.\n"
        "docs/apps/lyapunov.md has the mathematics and measured spectra.");
    command.callback([&] { run_lyapunov(command, arguments); });
    return command.run(argc, argv);
}
