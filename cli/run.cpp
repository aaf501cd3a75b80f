// Starts another program with libquoin_lapack.so preloaded.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "program.hpp"
#include "quoin/error.hpp"
#include "subcommands.hpp"

namespace quoin::cli {

namespace {

/// Returns the path of the drop-in: of an installation, of a build folder, or of Python's package.
std::string drop_in() {
    const std::filesystem::path folder = own_path().parent_path().parent_path();
    const char* const name = "libquoin_lapack.so";
    for (const auto& path : {folder / QUOIN_LIBDIR / name, folder / "lib" / name, folder / name}) {
        if (std::filesystem::exists(path)) return path;
    }
    throw UnreadableFile(folder / QUOIN_LIBDIR / name,
                         "`quoin run` needs this drop-in for LAPACK (QUOIN_BUILD_LAPACK=ON)");
}

struct RunArguments {
    std::vector<std::string> words;
    bool report = false;
};

[[noreturn]] void run(const RunArguments& arguments) {
    const char* const before = std::getenv("LD_PRELOAD");  // a sanitizer's runtime must be the first
    setenv("LD_PRELOAD", ((before && *before ? before + std::string(" ") : "") + drop_in()).c_str(), 1);
    if (arguments.report) setenv("QUOIN_REPORT", std::to_string(getpid()).c_str(), 1);  // the program keeps this number
    become(arguments.words.front(), arguments.words);
    throw UnreadableFile(arguments.words.front(), std::strerror(errno));
}

}  // namespace

void add_run(Program& program) {
    auto arguments = std::make_shared<RunArguments>();
    CLI::App& command = program.add_launcher(
        "run",
        "Run a program with Quoin in the place of its LAPACK.\n\n"
        "PROGRAM and the processes that it starts have libquoin_lapack.so preloaded (LD_PRELOAD): their calls of\n"
        "LAPACK for QR, least squares and SVD, as those of NumPy and SciPy, go to Quoin where it is faster.");
    command.add_option("PROGRAM", arguments->words, "A program and its arguments")->required();
    command.add_flag(
        "--report", arguments->report,
        "Print to stderr, when a process ends, how many calls of each routine Quoin computed and passed on");
    command.footer(
        "Example:  quoin run python3 script.py\n"
        "          quoin run --report python3 -c 'import numpy as np; np.linalg.qr(np.ones((9999, 99)))'\n\n"
        "Options of `quoin run` come before PROGRAM. A static program, and one with the rights of another user, keep "
        "their LAPACK.");
    command.callback([arguments] { run(*arguments); });
}

}  // namespace quoin::cli
