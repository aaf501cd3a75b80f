// Times of the steps of each method, for the choice of `Auto`: the built-in ones, and the user's table of `quoin tune`.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <fstream>

#include "host/kernels/kernels.hpp"
#include "host/tuning.hpp"
#include "io/tuning_file.hpp"
#include "quoin/error.hpp"

namespace quoin {
namespace {

// The times were first fitted by least squares of relative errors: R, V tau R, Q and R, and QᵀC of 90 shapes by each
// method, 9×2 to 2 000 000×3 to 5000×420, the fastest of several runs on one core of an AMD EPYC 7003 with AVX2. A
// random search from there then looked for the times whose choices of methods lose least, on 1, 2, 4 and 16 cores with
// AVX-512; the last search used 2758 cases, including all of bench/results/regret_one_team.csv. A choice depends only
// on ratios of times. CholeskyQR2 counts as one pass.

constexpr StepTimes f64_times = {.gram = {0.0169, 0.406},
                                 .solve = {0.0217, 0.0373},
                                 .square = {0.0172, 6.68, 192},
                                 .signed_lu = {0.125, 12.3},
                                 .leaf = {0.0284, 1.06, 147},
                                 .node = {0, 3.51},
                                 .form = {0.0403, 0.727},
                                 .tree_update = {0.0257, 0.759},
                                 .panel = {0.0206, 0.22, 311},
                                 .update = {0.027, 0.416},
                                 .scan = 0.58,
                                 .call = 240,
                                 .certificate = 928};
constexpr StepTimes f32_times = {.gram = {0.0208, 0.333},
                                 .solve = {0.00297, 0.0553},
                                 .square = {0.0172, 3.08, 587},
                                 .signed_lu = {0.0735, 19.6},
                                 .leaf = {0.0145, 0.742, 652},
                                 .node = {0, 0},
                                 .form = {0.0169, 0.36},
                                 .tree_update = {0.0141, 0.304},
                                 .panel = {0.0137, 0.108, 674},
                                 .update = {0.0132, 0.45},
                                 .scan = 0.475,
                                 .call = 0,
                                 .certificate = 1610};

using Times = std::array<double, step_time_count>;
Times listed(const StepTimes& times) { return std::bit_cast<Times>(times); }

/// Returns "cpu family 25, model 17, AMD EPYC" or "CPU implementer 0x41, CPU part 0xd0c" for the first CPU. Virtual
/// machines have one name for several models.
std::string cpu_name() {
    std::ifstream file("/proc/cpuinfo");
    std::string name, line;
    while (std::getline(file, line) && !line.empty()) {
        for (const std::string key : {"cpu family", "model", "model name", "CPU implementer", "CPU part"}) {
            if (!line.starts_with(key + "\t")) continue;
            name += (name.empty() ? "" : ", ") + (key == "model name" ? "" : key + " ");
            for (const char c : line.substr(std::min(line.size(), line.find(':') + 2)))
                name += c == '"' || c == '\\' || std::iscntrl(static_cast<unsigned char>(c)) ? ' ' : c;
        }
    }
    return name.empty() ? "unknown" : name;
}

/// Throws UnreadableFile unless the times are positive and near the built-in ones, which leaves no room for overflow.
void require_plausible(const Times& times, const StepTimes& built_in, const char* scalar, const std::string& path) {
    const Times usual = listed(built_in);
    for (std::size_t i = 0; i < step_time_count; ++i) {
        if (usual[i] == 0 ? times[i] == 0 : times[i] >= usual[i] / 100 && times[i] <= usual[i] * 100) continue;
        throw UnreadableFile(path, fmt::format("{} of {} is {}, which no machine has beside the built-in {}",
                                               step_time_names()[i], scalar, times[i], usual[i]));
    }
}

io::TunedDevice this_cpu() { return {cpu_name(), host::kernels<double>().instruction_set}; }

struct TimesInUse {
    TuningInUse in_use;
    StepTimes f32 = f32_times, f64 = f64_times;
};

TimesInUse read_times() {
    const io::TableInUse read = io::read_table(this_cpu, [](const TuningTable& table, const std::string& path) {
        require_plausible(table.f32, f32_times, "f32", path);
        require_plausible(table.f64, f64_times, "f64", path);
    });
    if (read.in_use.id == 0) return {read.in_use};
    return {read.in_use, std::bit_cast<StepTimes>(read.table.f32), std::bit_cast<StepTimes>(read.table.f64)};
}

TimesInUse& times_in_use() {
    static TimesInUse once = read_times();
    return once;
}

}  // namespace

const StepTimes& Tuning<Host>::built_in_step_times(ScalarKind scalar) {
    return *entry_for(scalar, &f32_times, &f64_times);
}
const StepTimes& Tuning<Host>::step_times(ScalarKind scalar) {
    return *entry_for(scalar, &times_in_use().f32, &times_in_use().f64);
}
std::uint32_t Tuning<Host>::table_id() { return times_in_use().in_use.id; }
void Tuning<Host>::read_table_again() { times_in_use() = read_times(); }

template <>
const TuningInUse& tuning_in_use<Host>() {
    return times_in_use().in_use;
}
template <>
std::string tuning_path<Host>() {
    return io::tuning_path(this_cpu());
}
template <>
TuningTable built_in_tuning(const Context<Host>& ctx) {
    TuningTable table = io::empty_tuning(this_cpu());
    table.threads = ctx.threads();
    table.f32 = listed(f32_times);
    table.f64 = listed(f64_times);
    return table;
}

}  // namespace quoin
