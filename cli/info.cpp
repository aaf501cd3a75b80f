#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>

#include "arguments.hpp"
#include "byte_size.hpp"
#include "json_line.hpp"
#include "machine.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "quoin/cuda.hpp"
#endif
#include "quoin/tuning.hpp"
#include "subcommands.hpp"

namespace quoin::cli {

namespace {

std::string caches_for_a_person(const Machine& machine) {
    std::string text;
    for (const Cache& cache : machine.caches)
        text += fmt::format("{}L{} {}{}", text.empty() ? "" : ", ", cache.level,
                            format_byte_size(static_cast<double>(cache.bytes)),
                            cache.shared_by > 1 ? fmt::format(" shared by {}", cache.shared_by) : "");
    return text.empty() ? "unknown" : text;
}

#ifdef QUOIN_HAVE_CUDA
std::string gpu_for_a_person(const Gpu& gpu) {
    if (!gpu.problem.empty())
        return fmt::format("{}, not usable: {}", gpu.name.empty() ? "a GPU" : gpu.name, gpu.problem);
    return fmt::format("{}, sm_{}{}, {} free of {}", gpu.name, gpu.capability_major, gpu.capability_minor,
                       format_byte_size(static_cast<double>(gpu.memory.free)),
                       format_byte_size(static_cast<double>(gpu.memory.total)));
}

void print_gpus() {
    const GpuSurvey survey = survey_gpus();
    fmt::print("CUDA driver    {}\n", survey.driver.empty() ? "none" : "for CUDA " + survey.driver);
    if (survey.gpus.empty())
        fmt::print("GPU            none usable{}\n", survey.problem.empty() ? "" : ": " + survey.problem);
    for (const Gpu& gpu : survey.gpus) fmt::print("GPU            {}\n", gpu_for_a_person(gpu));
}

void add_gpus(JsonLine& line) {
    const GpuSurvey survey = survey_gpus();
    line.add_known("cuda_driver", survey.driver).add("gpus", static_cast<std::int64_t>(survey.gpus.size()));
    for (std::size_t i = 0; i < survey.gpus.size(); ++i) {
        const Gpu& gpu = survey.gpus[i];
        const auto key = [&](const char* what) { return fmt::format("gpu{}_{}", i, what); };
        line.add(key("name").c_str(), gpu.name).add(key("usable").c_str(), gpu.problem.empty());
        line.add(key("memory_bytes").c_str(), static_cast<std::int64_t>(gpu.memory.total));
        line.add(key("memory_free_bytes").c_str(), static_cast<std::int64_t>(gpu.memory.free));
    }
}
#else
void print_gpus() { fmt::print("GPU            none usable: Quoin was built without CUDA\n"); }
void add_gpus(JsonLine& line) { line.add_null("cuda_driver").add("gpus", 0); }
#endif

void run_info(const CommonArguments& arguments) {
    const Machine machine = describe_machine();
    const BuildInfo& build = build_info();
    const Context<Host> ctx(arguments.threads);
    const std::string warning = build.blas_warning;
    const TuningInUse& tuning = tuning_in_use();
    if (arguments.json) {
        JsonLine line;
        line.add("version", version()).add("compiler", build.compiler).add("cpu", machine.cpu);
        line.add("cores", machine.cores).add("physical_cores", machine.physical_cores).add("threads", ctx.threads());
        line.add("cpu_quota", machine.cpu_quota);
        for (const Cache& cache : machine.caches) line.add(fmt::format("l{}_bytes", cache.level).c_str(), cache.bytes);
        line.add("memory_bytes", machine.memory_bytes).add("memory_available_bytes", machine.memory_available_bytes);
        line.add("kernels", build.kernels).add("blas", build.blas).add("blas_core", build.blas_core);
        line.add_known("blas_warning", warning);
        line.add("tuning", tuning_name(tuning.id)).add_known("tuning_refusal", tuning.refusal);
        add_gpus(line);
        line.print();
        return;
    }
    fmt::print("quoin          {}, {}\n", version(), build.compiler);
    fmt::print("CPU            {}\n", machine.cpu);
    fmt::print("cores          {} usable{}{}\n", machine.cores,
               machine.physical_cores > 0 ? fmt::format(", {} physical", machine.physical_cores) : "",
               std::isfinite(machine.cpu_quota) ? fmt::format(", a CPU quota of {}", machine.cpu_quota) : "");
    fmt::print("threads        {}\n", ctx.threads());
    fmt::print("caches         {}\n", caches_for_a_person(machine));
    fmt::print("memory         {}, {} available\n", format_byte_size(static_cast<double>(machine.memory_bytes)),
               format_byte_size(static_cast<double>(machine.memory_available_bytes)));
    fmt::print("kernels        {}\n", build.kernels);
    fmt::print("BLAS           {}{}\n", build.blas,
               *build.blas_core != '\0' ? fmt::format(", kernels for {}", build.blas_core) : "");
    if (!warning.empty()) fmt::print("warning        {}\n", warning);
    fmt::print("tuning         {}{}\n", tuning_name(tuning.id),
               tuning.id != 0           ? " of " + tuning.date
               : tuning.refusal.empty() ? ""
                                        : ": " + tuning.refusal);
    print_gpus();
}

}  // namespace

void add_info(CLI::App& program) {
    auto arguments = std::make_shared<CommonArguments>();
    CLI::App& command = *program.add_subcommand(
        "info",
        "Describe the machine, the BLAS in use and the GPUs.\n\n"
        "CPU, cores, caches, memory, the instruction set of Quoin's kernels, and the BLAS, with a warning where its\n"
        "kernels are older than the CPU; the table of `quoin tune` in use; the CUDA driver, and every GPU with its\n"
        "memory, or why it cannot be used.");
    add_common_arguments(command, *arguments, /*algorithm=*/false);
    command.footer(
        "Example:  quoin info --json\n\n"
        "Put its output into a bug report. Sizes are in bytes (--json) or powers of 1024.");
    command.callback([arguments] { run_info(*arguments); });
}

}  // namespace quoin::cli
