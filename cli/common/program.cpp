#include "program.hpp"

#include <fmt/format.h>
#include <sysexits.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <system_error>

#include "describe.hpp"
#include "interrupt.hpp"
#include "quoin/error.hpp"
#include "quoin/version.hpp"

namespace quoin::cli {

namespace {

/// The list of commands shows the first line of each description; a command's own help shows all of it.
class Formatter : public CLI::Formatter {
public:
    std::string make_subcommand(const CLI::App* command) const override {
        const std::string description = command->get_description();
        return fmt::format("  {:<14}{}\n", command->get_name(), description.substr(0, description.find('\n')));
    }
    std::string make_option_usage(const CLI::Option* positional) const override {
        const std::string usage = positional->get_name() + (positional->get_expected_max() > 1 ? "..." : "");
        return positional->get_required() ? usage : "[" + usage + "]";
    }
};

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

int report(const char* message, int exit_code) {
    fmt::print(stderr, "quoin: {}\n", message);
    return exit_code;
}

std::filesystem::path own_path() { return std::filesystem::read_symlink("/proc/self/exe"); }

/// Whether mpiexec has started this process and others beside it. A process of an MPI program may start `quoin` alone.
bool is_one_of_several() {
    const char* const sizes[] = {std::getenv("OMPI_COMM_WORLD_SIZE"), std::getenv("PMI_SIZE"),
                                 std::getenv("MPI_LOCALNRANKS")};
    if (std::none_of(std::begin(sizes), std::end(sizes), [](const char* size) { return size && std::atoi(size) > 1; }))
        return false;
    std::ifstream parent(fmt::format("/proc/{}/comm", getppid()));
    std::string name;
    std::getline(parent, name);
    const char* const launchers[] = {"mpi", "orte", "prte", "hydra", "pmi", "slurmstepd"};
    return std::any_of(std::begin(launchers), std::end(launchers),
                       [&](const char* launcher) { return name.starts_with(launcher); });
}

}  // namespace

void let_waiting_threads_sleep(char** argv, int spins) {
    if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
    setenv("GOMP_SPINCOUNT", std::to_string(spins).c_str(), 1);
    execv(own_path().c_str(), argv);
}

std::string exit_codes() {
    using enum ErrorCode;
    std::string text = fmt::format("0 success, {} malformed command line", EX_USAGE);
    for (const ErrorCode code : {InvalidArgument, NonFiniteEntry, NumericalBreakdown, RankDeficient, OutOfMemory,
                                 UnreadableFile, UnwritableFile, DeviceFailure, CommunicationFailure, Interrupted}) {
        const ErrorInfo& info = error_info(code);
        text += fmt::format(",{}{} {}", code == RankDeficient ? "\n" : " ", info.exit_code, info.name);
    }
    return text;
}

void become_program(const std::string& name, std::vector<std::string> arguments, const std::string& needed_by) {
    const std::string path = own_path().parent_path() / ("quoin-" + name);
    arguments.insert(arguments.begin(), path);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::fflush(stdout);
    execv(path.c_str(), argv.data());
    throw UnreadableFile(path, fmt::format("{}; {} needs this program", std::strerror(errno), needed_by));
}

Program::Program(const std::string& description, const std::string& name) : CLI::App(description, name) {
    formatter(std::make_shared<Formatter>());
    get_formatter()->column_width(26);
    set_version_flag("--version", fmt::format("quoin {}", quoin::version()));
    add_describe_flag(*this);
}

void Program::add_program(const std::string& name, const std::string& description) {
    add_subcommand(name, description);
    programs_.push_back(name);
}

int Program::run(int argc, char** argv) {
    try {
        if (argc > 1 && std::find(programs_.begin(), programs_.end(), argv[1]) != programs_.end())
            become_program(argv[1], {argv + 2, argv + argc}, fmt::format("`quoin {}`", argv[1]));
        if (becomes_mpi_ && is_one_of_several())
            become_program("mpi", {argv + 1, argv + argc}, "quoin as one of several processes");
        let_waiting_threads_sleep(argv);
        parse(argc, argv);
        if (std::fflush(stdout) != 0) throw UnwritableFile("standard output", std::strerror(errno));
        return 0;
    } catch (const CLI::RuntimeError& e) {
        return e.get_exit_code();
    } catch (const CLI::ParseError& e) {
        if (e.get_exit_code() == 0) return exit(e);  // --help, --version
        return report((in_plain_words(e) + " (see --help)").c_str(), EX_USAGE);
    } catch (const Interrupted& e) {
        return report(e.what(), interrupted_exit_code());
    } catch (const Error& e) {
        return report(e.what(), error_info(e.code()).exit_code);
    } catch (const std::bad_alloc&) {
        return report("out of memory", error_info(ErrorCode::OutOfMemory).exit_code);
    } catch (const std::exception& e) {
        return report(e.what(), EX_SOFTWARE);
    }
}

}  // namespace quoin::cli
