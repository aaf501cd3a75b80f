#include <fmt/format.h>
#include <sysexits.h>

#include "program.hpp"
#include "subcommands.hpp"

int main(int argc, char** argv) {
    using namespace quoin::cli;
    Program program(
        "Quoin factors A = QR: as fast as the hardware allows, to an accuracy it measures.\n"
        "Matrices are read from .npy, .npz, Matrix Market and CSV files, also compressed (.gz), and written as .npy.\n"
        "Results go to stdout, progress and errors to stderr.",
        "quoin");
    program.require_subcommand(0, 1);
    program.becomes_mpi();
    program.footer(
        "Try:  quoin demo                          a first look, checked and compared with LAPACK\n"
        "      quoin factor A.npy --out factors    R.npy and Q.npy of your matrix\n"
        "      mpiexec -n 4 quoin factor --help    the same by several processes, each with its rows\n"
        "      quoin run python3 script.py         an unchanged program with Quoin in the place of its LAPACK\n"
        "      quoin COMMAND --help                what a command does, with an example\n\n"
        "Exit codes: " +
        exit_codes());
    add_demo(program);
    add_factor(program);
    add_lstsq(program);
    add_svd(program);
    add_plan(program);
    add_info(program);
    add_tune(program);
    add_run(program);
    program.add_program("rpca", "Robust PCA: M = L + S, a video's still background and the objects that move.");
    program.add_program("lyapunov", "Lyapunov exponents of a dynamical system, by QR of its tangent vectors.");
    program.add_program("bench", "Time Quoin against LAPACK through the same BLAS, or on a GPU against cuSOLVER.");
    program.callback([&program] {
        if (!program.get_subcommands().empty()) return;
        fmt::print(stderr, "{}", program.help());
        throw CLI::RuntimeError(EX_USAGE);
    });
    return program.run(argc, argv);
}
