#include "factor_report.hpp"

#include <fmt/format.h>

#include "byte_size.hpp"
#include "input_matrix.hpp"
#include "json_line.hpp"
#include "streams.hpp"

namespace quoin::cli {

namespace {

void add_file_route(JsonLine& line, const FactorOutcome& outcome) {
    const FilePlan& plan = *outcome.file_plan;
    const FileReport& report = outcome.file_report;
    line.add("blocks", plan.blocks).add("block", plan.block);
    line.add("first_step", report.first_step).add("steps", plan.steps());
    line.add("bytes_read", report.bytes_read).add("bytes_written", report.bytes_written);
    line.add("read_seconds", report.read_seconds).add("write_seconds", report.write_seconds);
    if (plan.device_memory_bytes == 0) return;
    line.add("gpu_memory_bytes", report.device_memory_bytes);
    line.add("bytes_to_gpu", report.bytes_to_device).add("bytes_from_gpu", report.bytes_from_device);
}

void print_file_route(const FactorOutcome& outcome) {
    const FilePlan& plan = *outcome.file_plan;
    const FileReport& report = outcome.file_report;
    const std::string choices = to_string(plan);
    fmt::print("streamed       {}, within {}\n", choices.substr(0, choices.find('\n')), format_given_size(outcome.cap));
    fmt::print("files          {} read", format_byte_size(report.bytes_read));
    if (report.read_seconds > 0) fmt::print(" at {}", format_byte_rate(report.bytes_read / report.read_seconds));
    fmt::print(", {} written", format_byte_size(report.bytes_written));
    if (report.write_seconds > 0) fmt::print(" at {}", format_byte_rate(report.bytes_written / report.write_seconds));
    fmt::print("\n");
    if (plan.device_memory_bytes == 0) return;
    fmt::print("moved          {} to the GPU, {} from it\nGPU's memory   {} taken\n",
               format_byte_size(report.bytes_to_device), format_byte_size(report.bytes_from_device),
               format_byte_size(report.device_memory_bytes));
}

void print_json(const FactorArguments& arguments, const MatrixFile& file, const DeviceInUse& device,
                const FactorOutcome& outcome) {
    JsonLine line;
    line.add("rows", file.rows()).add("cols", file.cols());
    line.add("dtype", to_string(file.dtype())).add("method", outcome.method);
    line.add("seconds", outcome.seconds).add("gflops", outcome.gflops);
    add_device(line, device, outcome.transfer_in_seconds, outcome.transfer_out_seconds);
    if (outcome.stream) add_stream_times(line, *outcome.stream);
    if (outcome.out_of_core) {
        line.add("gpu_memory_bytes", outcome.out_of_core->memory_bytes);
        line.add("bytes_to_gpu", outcome.out_of_core->bytes_in).add("bytes_from_gpu", outcome.out_of_core->bytes_out);
        line.add_measured("hidden", outcome.out_of_core->hidden);
    }
    if (outcome.file_plan) add_file_route(line, outcome);
    if (outcome.rank >= 0)
        line.add("rank", outcome.rank)
            .add("dependent", std::vector<double>(outcome.dependent.begin(), outcome.dependent.end()));
    if (arguments.verify)
        line.add_measured("residual", outcome.residual).add_measured("orthogonality", outcome.orthogonality);
    line.print();
}

}  // namespace

void print_report(const FactorArguments& arguments, const MatrixFile& file, const DeviceInUse& device,
                  const FactorOutcome& outcome) {
    if (arguments.common.json) return print_json(arguments, file, device, outcome);
    fmt::print("{}: {} x {} {}\n", file.path(), file.rows(), file.cols(), to_string(file.dtype()));
    fmt::print("method         {}{}\n", outcome.method, outcome.remark);
    if (outcome.rank >= 0) fmt::print("rank           {}{}\n", outcome.rank, outcome.decided);
    if (!outcome.dependent.empty())
        fmt::print("dependent      columns {} (zero-based): they depend on the other ones\n",
                   named_columns(outcome.dependent, file.column_names()));
    if (outcome.streamed) print_blocks(*outcome.streamed);
    if (outcome.file_plan) print_file_route(outcome);
    print_device(arguments.common, device, outcome.transfer_in_seconds, outcome.transfer_out_seconds);
    if (outcome.stream) print_stream_times(*outcome.stream);
    fmt::print("time           {:.3g} s, {:.3g} GFLOP/s\n", outcome.seconds, outcome.gflops);
    if (outcome.out_of_core) {
        const OutOfCoreReport& report = *outcome.out_of_core;
        fmt::print(
            "moved          {} to the GPU, {} from it{}\n", format_byte_size(report.bytes_in),
            format_byte_size(report.bytes_out),
            report.hidden < 0 ? "" : fmt::format(", {:.0f}% of the time beside computation", 100 * report.hidden));
        fmt::print("GPU's memory   {} taken\n", format_byte_size(report.memory_bytes));
    }
    if (arguments.verify) print_accuracy(outcome.residual, outcome.orthogonality);
    fmt::print("wrote          {}\n", outcome.written);
}

}  // namespace quoin::cli
