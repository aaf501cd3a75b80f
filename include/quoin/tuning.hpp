#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quoin/context.hpp"
#include "quoin/options.hpp"

namespace quoin {

/// The methods that a tuning table compares, in the order of `TunedCase::seconds`.
inline constexpr std::array<Method, 4> tuned_methods = {Method::CholeskyQR2, Method::BlockedHouseholder, Method::TSQR,
                                                        Method::CAQR};

/// Measured times of the methods that `Auto` compares for an m×n matrix and a form of Q.
struct TunedCase {
    Index rows = 0, cols = 0;
    ScalarKind scalar = ScalarKind::F64;
    QForm q = QForm::Any;
    std::array<double, 4> seconds = {};  ///< by `tuned_methods`; 0: not compared
};

/// The number of times in a table, and their names, "gram.flop" for one.
inline constexpr std::size_t step_time_count = 34;
std::span<const std::string> step_time_names();

/// The measurements by which `Auto` chooses on one device. On a CPU it takes the method of least time by the times of
/// its steps (`docs/algorithms.md`, section 13), on a GPU the fastest one of the cases nearby (`docs/tuning.md`).
struct TuningTable {
    std::string version;  ///< of the library
    std::string device, kernels;
    int threads = 0;   ///< in the measurements; the table serves any number of threads
    std::string date;  ///< "2026-11-30"
    /// ns of one core, by step_time_names; threaded_flops in flops. A CPU's table that is used has times within a
    /// factor of 100 of the built-in ones. A GPU's has zeros.
    std::array<double, step_time_count> f32 = {}, f64 = {};
    std::vector<TunedCase> cases;
    std::uint32_t id = 0;  ///< CRC-32 of the file; set by load_tuning and save_tuning
};

/// Returns a table for the context's device, today, without cases: a CPU's with the built-in times.
template <class D>
TuningTable built_in_tuning(const Context<D>& ctx);

/// Extent of a measurement.
struct TuneOptions {
    double seconds = 60;  ///< about; measuring ends then
    double flops = 5e8;   ///< of the largest cases: mn min(m, n)
    /// Rows and columns to measure; empty: on a CPU shapes at random for which the built-in times of two methods are
    /// close, on a GPU shapes at even distances.
    std::vector<std::pair<Index, Index>> shapes = {};
    std::function<void(double)> progress = {};  ///< called with the fraction done, if set
};
/// Measures the context's device, a CPU with the context's threads, and returns a table fitted to it.
///
/// Times every method that `Auto` compares, the fastest of several alternating runs. `request_stop` ends the
/// measurement, and the table is fitted to the cases measured so far. Shapes that are not given take at most 0.5 GB of
/// memory on a CPU, and 6 GB on a GPU.
///
///     Context<Host> ctx;
///     TuningTable table = tune(ctx);
///     save_tuning(table, tuning_path());
template <class D>
TuningTable tune(Context<D>& ctx, const TuneOptions& options = {});

/// Fits the times of a CPU's table to its cases.
///
/// Minimises the sum over the cases of the time that the choice loses to the best method, as a share of the best time,
/// plus 0.3 times the squares of log(time / built-in time). The choice by modelled times is smoothed over 7%. The
/// built-in times stay unless fits to seven eighths of the shapes save time on the remaining ones, by two standard
/// errors. A least-squares fit of the times themselves chooses worse: the model of a step is less exact than the
/// differences of methods (docs/notes/tried.md).
void fit_tuning(TuningTable& table);

/// A case for which a table and the built-in choice differ.
struct TunedChoice {
    TunedCase measured;
    Method built_in, tuned;
    double ratio;  ///< of their times, `built_in` over `tuned`
};
/// Returns these cases among the own ones of a table for the device D.
template <class D = Host>
std::vector<TunedChoice> changed_choices(const TuningTable& table);

/// Writes the table as JSON. Creates the folders of `path`. Sets table.id. Throws UnwritableFile.
void save_tuning(TuningTable& table, const std::string& path);
/// Reads a table. Throws UnreadableFile if there is none, or if it is damaged or changed by hand.
TuningTable load_tuning(const std::string& path);

/// Returns where the table of this CPU or of the current GPU is: $QUOIN_TUNING unless that is "off", otherwise in
/// $XDG_CONFIG_HOME/quoin or ~/.config/quoin by the names of device and kernels. "" if the environment names no folder.
template <class D = Host>
std::string tuning_path();

/// Returns "built-in" for 0, and otherwise the id's eight hexadecimal digits.
std::string tuning_name(std::uint32_t id);

/// The table in use.
struct TuningInUse {
    std::uint32_t id = 0;  ///< 0: built-in
    std::string date;
    std::string refusal;  ///< why the file at tuning_path() is not used, in one sentence; "" if there is no reason
};
/// Returns what the first plan of this process for the device found. Reads the file if there was no plan yet.
template <class D = Host>
const TuningInUse& tuning_in_use();

}  // namespace quoin
