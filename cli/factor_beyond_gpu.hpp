#pragma once

#include <fmt/format.h>

#include "byte_size.hpp"
#include "factor_outputs.hpp"
#include "factor_report.hpp"
#include "naming_file.hpp"
#include "row_blocks.hpp"
#include "stopwatch.hpp"

namespace quoin::cli {

/// Factors A in the host's memory, with Q in its place, and R. Blocks of them are on the GPU.
template <class T>
FactorOutcome factor_beyond_gpu(Context<Cuda>& ctx, const MatrixFile& file, const FactorArguments& arguments,
                                const OutOfCoreRoute& route, FactorOutputs<T>& outputs) {
    const Index n = file.cols(), k = std::min(file.rows(), n);
    Context<Host> host = make_context(arguments.common);
    FactorOutcome outcome;
    Stopwatch watch;
    Matrix<T> A = read_matrix<T>(host, file), R(k, n);
    outcome.transfer_in_seconds = watch.seconds();
    std::fill_n(R.data(), k * n, T(0));
    ctx.reset_progress();
    {
        const ProgressBar bar("factoring", [&] { return ctx.flops_done() / route.plan.flops; });
        naming_file(file.path(), 0,
                    [&] { outcome.out_of_core = qr_out_of_core<T, Cuda>(ctx, A.view(), R.view(), route.options); });
    }
    outcome.seconds = outcome.out_of_core->seconds;
    outcome.method = route.plan.method == OutOfCoreMethod::Householder ? "householder" : "cgs";
    outcome.remark = fmt::format(" out of core: {} of the GPU's memory, {} columns at a time",
                                 format_byte_size(route.options.memory_bytes), route.plan.block);
    watch = {};
    const MatrixView<const T> Q = std::as_const(A).view().col_block({0, k});
    write_matrix<T>(host, *outputs.r, "R.npy", std::as_const(R).view());
    if (outputs.q) write_matrix<T>(host, *outputs.q, "Q.npy", Q);
    outcome.transfer_out_seconds = watch.seconds();
    if (arguments.verify) {
        const Matrix<T> original = read_matrix<T>(host, file);
        outcome.orthogonality = orthogonality<T>(host, Q);
        outcome.residual = residual<T>(host, original.view(), Q, std::as_const(R).view());
    }
    return outcome;
}

}  // namespace quoin::cli
