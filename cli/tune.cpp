#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <memory>

#include "arguments.hpp"
#include "interrupt.hpp"
#include "json_line.hpp"
#include "machine.hpp"
#include "on_device.hpp"
#include "progress_bar.hpp"
#include "quoin/tuning.hpp"
#include "subcommands.hpp"

namespace quoin::cli {

namespace {

struct TuneArguments {
    CommonArguments common;
    bool thorough = false, show = false, reset = false;
};

/// Prints the times that differ from the built-in ones.
void print_times(const TuningTable& table) {
    const TuningTable built_in = built_in_tuning(Context<Host>());
    for (const auto& [scalar, times, usual] :
         {std::tuple("f32", &table.f32, &built_in.f32), {"f64", &table.f64, &built_in.f64}}) {
        std::string text;
        for (std::size_t i = 0; i < step_time_count; ++i) {
            const double factor = (*times)[i] / (*usual)[i];
            if (std::abs(factor - 1) > 0.02) text += fmt::format("  {} x {:.2f}\n", step_time_names()[i], factor);
        }
        fmt::print("{}: {}\n{}", scalar, text.empty() ? "the built-in times serve this machine" : "times changed",
                   text);
    }
}

/// Prints what a table changes, and what that is worth.
template <class D>
void print_table(const TuningTable& table, const std::string& path, bool json) {
    const std::vector<TunedChoice> choices = changed_choices<D>(table);
    double logs = 0;
    for (const TunedChoice& c : choices) logs += std::log(c.ratio);
    const double ratio = choices.empty() ? 1 : std::exp(logs / static_cast<double>(choices.size()));
    if (json) {
        JsonLine line;
        line.add("path", path).add("id", fmt::format("{:08x}", table.id)).add("date", table.date);
        line.add("cases", static_cast<std::int64_t>(table.cases.size()));
        line.add("changed", static_cast<std::int64_t>(choices.size()))
            .add("ratio", ratio)
            .add_known("refusal", tuning_in_use<D>().refusal)
            .print();
        return;
    }
    fmt::print("table {:08x} of {}, in {}\n", table.id, table.date, path);
    fmt::print("{} cases on {}, kernels {}{}, quoin {}\n", table.cases.size(), table.device, table.kernels,
               table.threads > 0 ? fmt::format(", {} threads", table.threads) : "", table.version);
    if constexpr (std::is_same_v<D, Host>)
        print_times(table);
    else if (choices.empty())
        fmt::print("the built-in choices serve this GPU\n");
    if (choices.empty()) return;
    fmt::print("\n{:>18} {:<5} {:<11} {:<15} {:<15} {:>5}\n", "rows x columns", "type", "Q", "built-in", "tuned",
               "ratio");
    for (const TunedChoice& c : choices)
        fmt::print("{:>18} {:<5} {:<11} {:<15} {:<15} {:>5.2f}\n",
                   fmt::format("{}x{}", c.measured.rows, c.measured.cols), to_string(c.measured.scalar),
                   to_string(c.measured.q), to_string(c.built_in), to_string(c.tuned), c.ratio);
    fmt::print(
        "\nAuto chooses another method in {} of the {} cases. There the built-in choices take {:.2f} times as long\n",
        choices.size(), table.cases.size(), ratio);
}

template <class D>
void show(const std::string& path, bool json) {
    const TuningInUse& in_use = tuning_in_use<D>();
    const std::string& refusal = in_use.refusal;
    const bool exists = !path.empty() && std::filesystem::exists(path);
    if (exists) {
        try {
            print_table<D>(load_tuning(path), path, json);
        } catch (const UnreadableFile&) {
            if (json) JsonLine().add("path", path).add_known("refusal", refusal).print();
        }
    } else if (json) {
        JsonLine().add_known("path", path).add_known("refusal", refusal).print();
    } else {
        fmt::print("no table{}\n", path.empty() ? ": HOME names no folder" : " in " + path);
    }
    if (!json) fmt::print("in use: {}{}\n", tuning_name(in_use.id), refusal.empty() ? "" : ": " + refusal);
}

template <class D>
void measure(Context<D>& ctx, const TuneArguments& arguments, const std::string& path) {
    if (path.empty()) throw InvalidArgument("HOME names no folder for the table: QUOIN_TUNING=FILE names a file");
    const std::string busy = describe_machine().busy();
    if (!busy.empty()) fmt::print(stderr, "quoin: {}\n", busy);
    std::atomic<double> fraction = 0;
    TuneOptions options;
    options.seconds = arguments.thorough ? 600 : 60;
    // smaller matrices are more cases
    options.flops = arguments.thorough ? 2e9 : 3e8;
    options.progress = [&](double done) { fraction = done; };
    TuningTable table;
    {
        const ProgressBar bar("measuring", [&] { return fraction.load(); });
        table = tune(ctx, options);
    }
    if (table.cases.empty()) throw_if_interrupted();
    save_tuning(table, path);
    print_table<D>(table, path, arguments.common.json);
    if (interrupted()) fmt::print(stderr, "quoin: the table has the cases measured before the interruption\n");
    throw_if_interrupted();
}

template <class D>
void tune_device(Context<D>& ctx, const TuneArguments& arguments) {
    const std::string path = tuning_path<D>();
    if (arguments.show) return show<D>(path, arguments.common.json);
    if (!arguments.reset) return measure(ctx, arguments, path);
    const bool removed = !path.empty() && std::filesystem::remove(path);
    if (arguments.common.json)
        JsonLine().add_known("path", path).add("removed", removed).print();
    else
        fmt::print("{} {}\n", removed ? "removed" : "there is no", path.empty() ? "table" : path);
}

void run_tune(const TuneArguments& arguments) {
    on_device(
        arguments.common, "tuning", [](const auto&) { return 0.0; },
        [&]<class D>(Context<D>& ctx, DeviceInUse&) { tune_device(ctx, arguments); });
}

}  // namespace

void add_tune(CLI::App& program) {
    auto arguments = std::make_shared<TuneArguments>();
    CLI::App& command = *program.add_subcommand(
        "tune",
        "Measure this CPU or GPU in a minute, so that Auto chooses the methods that are fastest here.\n"
        "\n"
        "On a CPU it times the methods on random shapes for which the built-in times of two methods are close, and\n"
        "fits the times of their steps. The built-in times stay unless the fitted ones choose better for shapes that\n"
        "were not fitted. On a GPU (--device cuda) it times all methods on shapes at even distances; the fastest one\n"
        "of the nearest shapes is chosen if it saves 5%.\n"
        "\n"
        "The table is in $XDG_CONFIG_HOME/quoin or ~/.config/quoin. Later runs, also of the library and in Python,\n"
        "choose by it. Ctrl-C ends the measurement, and the table has what was measured until then.");
    CLI::Option* const thorough =
        command.add_flag("--thorough", arguments->thorough, "Measure for ten minutes, and larger matrices");
    CLI::Option* const show = command.add_flag("--show", arguments->show,
                                               "Print the table, the choices that it changes, and the ratio of times\n"
                                               "measured for them; or why it is not used");
    CLI::Option* const reset = command.add_flag("--reset", arguments->reset, "Remove the table");
    show->excludes(thorough)->excludes(reset);
    reset->excludes(thorough);
    add_device_argument(command, arguments->common.device);
    add_common_arguments(command, arguments->common, /*algorithm=*/false);
    command.footer(
        "Example:  quoin tune --threads 8\n"
        "          quoin tune --device cuda\n"
        "          quoin tune --show\n"
        "          QUOIN_TUNING=off quoin plan 3000x500       by the built-in times\n"
        "          QUOIN_TUNING=mine.json quoin tune          another file, to write and to read\n\n"
        "A table belongs to one model of CPU or GPU, kernel set and version of Quoin. It changes methods, and so the\n"
        "last bits of results; a plan that was made with it gives the same bits elsewhere.");
    command.callback([arguments] { run_tune(*arguments); });
}

}  // namespace quoin::cli
