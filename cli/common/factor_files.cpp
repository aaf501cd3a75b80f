#include "factor_files.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "add_value.hpp"
#include "arguments.hpp"
#include "input_matrix.hpp"

namespace quoin::cli {

void add_factor_files(CLI::App& command, FactorFiles& files) {
    command.add_option("A", files.input, fmt::format("Matrix to factor: {}", matrix_formats))->required();
    add_value(command, "--out", "DIR", files.out, "Folder for R.npy and Q.npy, created if missing")->required();
    command.add_flag("--r-only", files.r_only, "Write R alone; Q is never computed (unless --verify needs it)");
    command.add_flag("--verify", files.verify, "Measure the residual ‖A − QR‖/‖A‖ and the orthogonality ‖I − QᵀQ‖");
}

void add_file_route(CLI::App& command, FactorFiles& files) {
    add_choice(
        command, "--second-pass", files.second_pass, {SecondPass::Auto, SecondPass::Stored, SecondPass::Recomputed},
        "How a matrix larger than --memory gets the reflectors for Q: stored (on the disk until then, as large as\n"
        "A), recomputed (2mn² flops more) or auto (default: auto)");
    command.add_flag("--restart", files.restart,
                     "Start again: delete the journal that a stopped run left in --out, with all that it had finished");
}

void print_accuracy(double residual, double orthogonality) {
    fmt::print("‖A − QR‖/‖A‖   {:.2e}\n", residual);
    fmt::print("‖I − QᵀQ‖      {:.2e}\n", orthogonality);
}

}  // namespace quoin::cli
