#include <fmt/format.h>
#include <sysexits.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <system_error>

#include "describe.hpp"
#include "interrupt.hpp"
#include "quoin/quoin.hpp"
#include "subcommands.hpp"

namespace {

/// The list of commands shows the first line of each description; a command's own help shows all of it.
class Formatter : public CLI::Formatter {
public:
    std::string make_subcommand(const CLI::App* command) const override {
        const std::string description = command->get_description();
        return fmt::format("  {:<10}{}\n", command->get_name(), description.substr(0, description.find('\n')));
    }
    std::string make_option_usage(const CLI::Option* positional) const override {
        const std::string usage = positional->get_name() + (positional->get_expected_max() > 1 ? "..." : "");
        return positional->get_required() ? usage : "[" + usage + "]";
    }
};

std::string exit_codes() {
    using enum quoin::ErrorCode;
    std::string text = fmt::format("0 success, {} malformed command line", EX_USAGE);
    for (const quoin::ErrorCode code : {InvalidArgument, NonFiniteEntry, NumericalBreakdown, RankDeficient, OutOfMemory,
                                        UnreadableFile, UnwritableFile, DeviceFailure, Interrupted}) {
        const quoin::ErrorInfo& info = quoin::error_info(code);
        text += fmt::format(",{}{} {}", code == RankDeficient ? "\n" : " ", info.exit_code, info.name);
    }
    return text;
}

/// What is wrong with the command line, in one sentence that names the option.
std::string in_plain_words(const CLI::ParseError& error) {
    const std::string text = error.what();
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) {
        const char* wrong = text.find("missing") != text.npos ? " needs a value" : " has more values than it takes";
        return text.substr(0, text.find(':')) + wrong;
    }
    // "Could not convert: --lambda = abc"
    const std::size_t colon = text.find(": "), equals = text.find(" = ");
    if (dynamic_cast<const CLI::ConversionError*>(&error) && colon < equals && equals != text.npos)
        return fmt::format("{}: '{}' is not a number", text.substr(colon + 2, equals - colon - 2),
                           text.substr(equals + 3));
    return text;
}

int report(quoin::ErrorCode code, const char* message) {
    fmt::print(stderr, "quoin: {}\n", message);
    return quoin::error_info(code).exit_code;
}

/// Threads of libgomp that wait for work spin for 8 ms, and take the cores from other programs meanwhile: here they sleep after
/// 0.3 ms, unless the user says otherwise. libgomp reads its environment when it is loaded, so the program starts once more.
void let_waiting_threads_sleep(char** argv) {
    if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
    setenv("GOMP_SPINCOUNT", "10000", 1);
    std::error_code none;
    execv(std::filesystem::read_symlink("/proc/self/exe", none).c_str(), argv);
}

}  // namespace

int main(int argc, char** argv) {
    using namespace quoin;
    let_waiting_threads_sleep(argv);

    CLI::App program{
        "Quoin factors A = QR: as fast as the hardware allows, to an accuracy it measures.\n"
        "Matrices are read from .npy, .npz, Matrix Market and CSV files, also compressed (.gz), and written as .npy.\n"
        "Results go to stdout, progress and errors to stderr.",
        "quoin"};
    program.set_version_flag("--version", fmt::format("quoin {}", version()));
    program.require_subcommand(0, 1);
    program.formatter(std::make_shared<Formatter>());
    program.get_formatter()->column_width(26);
    program.footer(
        "Try:  quoin demo                          a first look, checked and compared with LAPACK\n"
        "      quoin factor A.npy --out factors    R.npy and Q.npy of your matrix\n"
        "      quoin COMMAND --help                what a command does, with an example\n\n"
        "Exit codes: " +
        exit_codes());
    cli::add_demo(program);
    cli::add_factor(program);
    cli::add_lstsq(program);
    cli::add_svd(program);
    cli::add_rpca(program);
    cli::add_lyapunov(program);
    cli::add_plan(program);
    cli::add_info(program);
    cli::add_bench(program);
    cli::add_describe_flag(program);

    try {
        program.parse(argc, argv);
        if (program.get_subcommands().empty()) {
            fmt::print(stderr, "{}", program.help());
            return EX_USAGE;
        }
        if (std::fflush(stdout) != 0) throw UnwritableFile("standard output", std::strerror(errno));
        return 0;
    } catch (const CLI::ParseError& e) {
        if (e.get_exit_code() == 0) return program.exit(e);  // --help, --version
        fmt::print(stderr, "quoin: {} (see --help)\n", in_plain_words(e));
        return EX_USAGE;
    } catch (const Interrupted& e) {
        fmt::print(stderr, "quoin: {}\n", e.what());
        return cli::interrupted_exit_code();
    } catch (const Error& e) {
        return report(e.code(), e.what());
    } catch (const std::bad_alloc&) {
        return report(ErrorCode::OutOfMemory, "out of memory");
    } catch (const std::exception& e) {
        fmt::print(stderr, "quoin: {}\n", e.what());
        return EX_SOFTWARE;
    }
}
