#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>

#include "byte_size.hpp"
#include "factor_outputs.hpp"
#include "factor_report.hpp"
#include "file_route.hpp"
#include "memory_cap.hpp"
#include "naming_file.hpp"
#include "row_blocks.hpp"
#include "stopwatch.hpp"

namespace quoin::cli {

/// Returns the options for a matrix that does not fit a GPU's memory.
inline OutOfCoreOptions out_of_core_options(const FactorArguments& arguments, double cap) {
    const Options& given = arguments.common.options;
    const bool by_householder = given.method == Method::Auto || given.method == Method::BlockedHouseholder;
    if (!by_householder && given.method != Method::ClassicalGramSchmidt)
        throw CLI::ValidationError("--method",
                                   fmt::format("{} needs the whole matrix in the GPU's memory, which it does "
                                               "not fit: take householder or cgs",
                                               to_string(given.method)));
    if (given.q.full_t)
        throw CLI::ValidationError("--compact-wy",
                                   "full needs the whole matrix in the GPU's memory, which it does not fit");
    OutOfCoreOptions options;
    options.method = by_householder ? OutOfCoreMethod::Householder : OutOfCoreMethod::Recursive;
    options.arithmetic = given.arithmetic;
    options.reorthogonalize = given.method.reorthogonalization() != Reorthogonalization::Off;
    options.check_finite = given.check_finite;
    options.memory_bytes = cap;
    return options;
}

/// Returns the memory to use on a GPU, libraries and kernels included.
inline double asked_of_gpu(const FactorArguments& arguments, double gpu_cap) {
    return arguments.memory_on_gpu() > 0 ? gpu_cap : 0.9 * gpu_cap;
}

/// Returns `plan()`. If it refuses the GPU's memory, the error names the file and the options.
template <class F>
auto planned_within_gpu(const std::string& path, F plan) {
    try {
        return plan();
    } catch (const OutOfMemory& refusal) {
        throw OutOfMemory(fmt::format("{}: --gpu-memory, or --memory alone: {}", path, refusal.what()));
    }
}

/// Factors A in the host's memory, with Q in its place, and R. Blocks of them are on the GPU.
template <class T>
FactorOutcome factor_beyond_gpu(Context<Cuda>& ctx, const MatrixFile& file, const FactorArguments& arguments,
                                double gpu_cap, FactorOutputs<T>& outputs) {
    const Index m = file.rows(), n = file.cols(), k = std::min(m, n);
    const OutOfCoreOptions options = out_of_core_options(arguments, asked_of_gpu(arguments, gpu_cap));
    const OutOfCorePlan plan =
        planned_within_gpu(file.path(), [&] { return plan_out_of_core<T, Cuda>(m, n, options); });
    const double bytes = bytes_beside_gpu<T>({file.rows(), file.cols()}, arguments.verify),
                 cap = memory_cap(arguments.memory_beside_gpu());
    if (bytes > cap) refuse_memory_cap(file.path(), cap, bytes, "for A and R, whose blocks a GPU is to factor");
    Context<Host> host = make_context(arguments.common);
    FactorOutcome outcome;
    Stopwatch watch;
    Matrix<T> A = read_matrix<T>(host, file), R(k, n);
    outcome.transfer_in_seconds = watch.seconds();
    std::fill_n(R.data(), k * n, T(0));
    ctx.reset_progress();
    {
        const ProgressBar bar("factoring", [&] { return ctx.flops_done() / plan.flops; });
        naming_file(file.path(), 0,
                    [&] { outcome.out_of_core = qr_out_of_core<T, Cuda>(ctx, A.view(), R.view(), options); });
    }
    outcome.seconds = outcome.out_of_core->seconds;
    outcome.method = plan.method == OutOfCoreMethod::Householder ? "householder" : "cgs";
    outcome.remark = fmt::format(" out of core: {} of the GPU's memory, {} columns at a time",
                                 format_byte_size(options.memory_bytes), plan.block);
    watch = {};
    const MatrixView<const T> Q = std::as_const(A).view().col_block({0, k});
    write_matrix<T>(host, outputs.r, "R.npy", std::as_const(R).view());
    if (outputs.q) write_matrix<T>(host, *outputs.q, "Q.npy", Q);
    outcome.transfer_out_seconds = watch.seconds();
    if (arguments.verify) {
        const Matrix<T> original = read_matrix<T>(host, file);
        outcome.orthogonality = orthogonality<T>(host, Q);
        outcome.residual = residual<T>(host, original.view(), Q, std::as_const(R).view());
    }
    return outcome;
}

/// Returns how A goes from file to file by way of host and GPU if it does not fit the host's memory either. Returns
/// nothing if A fits, or cannot be factored from file to file.
template <class T>
std::optional<FileOptions> files_beside_gpu(const FactorArguments& arguments, const MatrixFile& file, double gpu_cap) {
    const double cap = memory_cap(arguments.memory_beside_gpu());
    if (bytes_beside_gpu<T>({file.rows(), file.cols()}, arguments.verify) <= cap || !file.streams())
        return std::nullopt;
    const OutOfCoreOptions beyond = out_of_core_options(arguments, asked_of_gpu(arguments, gpu_cap));
    if (beyond.method != OutOfCoreMethod::Householder) return std::nullopt;
    FileOptions options = arguments.file_options(cap);
    options.device_memory = beyond.memory_bytes;
    options.arithmetic = beyond.arithmetic;
    const auto planned = [&](const FileOptions& o) {
        return planned_within_gpu(file.path(), [&] { return plan_file_qr<T, Cuda>(file.rows(), file.cols(), o); });
    };
    file_plan_within<T>(planned, file.path(), {file.rows(), file.cols()}, options);
    return options;
}

}  // namespace quoin::cli
