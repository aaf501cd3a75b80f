#include "program.hpp"

#include <fmt/format.h>
#include <omp.h>
#include <sys/mman.h>
#include <sysexits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <numeric>
#include <system_error>
#include <utility>

#include "describe.hpp"
#include "interrupt.hpp"
#include "output_files.hpp"
#include "quoin/context.hpp"
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

/// Returns the error of the command line in one sentence that names the option.
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

/// Returns the number of letters to insert, delete or replace to turn `b` into `a`.
std::size_t distance(const std::string& a, const std::string& b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
        }
    }
    return row.back();
}

/// Returns ": did you mean 'factor'?" if one of `names` is close to `name`, else "".
std::string suggestion(const std::string& name, const std::vector<std::string>& names) {
    const auto closest = std::min_element(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
        return distance(name, a) < distance(name, b);
    });
    if (closest == names.end() || 3 * distance(name, *closest) > name.size() + 2) return "";
    return fmt::format(": did you mean '{}'?", *closest);
}

/// Makes `command` refuse --out ''.
void refuse_empty_out(CLI::App& command) {
    if (CLI::Option* const out = command.get_option_no_throw("--out"))
        out->check([](const std::string& path) { return path.empty() ? "'' names no file or folder" : ""; }, "");
}

int report(const char* message, int exit_code) {
    fmt::print(stderr, "quoin: {}\n", message);
    return exit_code;
}

std::string version_text() { return fmt::format("quoin {}", version()); }

/// Whether mpiexec has started this process together with others. A process of an MPI program may start `quoin` alone.
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

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// Writes the version, which needs no library. Refuses memory limits under which OpenBLAS, while it is loaded, would
/// try for ever to get its buffer of 128 MiB.
void before_libraries(int argc, char** argv, char**) {
    const auto end = [](int file, const std::string& text, int exit_code) {
        const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
        if (!written && file == STDOUT_FILENO)
            exit_code = report("standard output: the version could not be written",
                               error_info(ErrorCode::UnwritableFile).exit_code);
        _exit(exit_code);
    };
    if (argc == 2 && std::strcmp(argv[1], "--version") == 0) end(STDOUT_FILENO, version_text() + "\n", 0);
    constexpr std::size_t needed = std::size_t{160} << 20;
    void* const memory = mmap(nullptr, needed, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        end(STDERR_FILENO,
            "quoin: out of memory: libraries need 160 MiB more than the limit leaves (see `ulimit -v`)\n",
            error_info(ErrorCode::OutOfMemory).exit_code);
    }
    munmap(memory, needed);
}
/// The loader calls this once every library is in place and before any is initialised.
__attribute__((section(".preinit_array"), used)) void (*call_before_libraries)(int, char**, char**) = before_libraries;
#endif

}  // namespace

std::filesystem::path own_path() { return std::filesystem::read_symlink("/proc/self/exe"); }

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

void become(const std::string& program, std::vector<std::string> words) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    flush_output();
    execvp(program.c_str(), argv.data());
}

void become_program(const std::string& name, std::vector<std::string> arguments, const std::string& needed_by) {
    const std::string path = own_path().parent_path() / ("quoin-" + name);
    arguments.insert(arguments.begin(), path);
    become(path, std::move(arguments));
    throw UnreadableFile(path, fmt::format("{}; {} needs this program", std::strerror(errno), needed_by));
}

Program::Program(const std::string& description, const std::string& name) : CLI::App(description, name) {
    formatter(std::make_shared<Formatter>());
    get_formatter()->column_width(26);
    set_version_flag("--version", version_text());
    add_describe_flag(*this);
}

void Program::add_program(const std::string& name, const std::string& description) {
    add_subcommand(name, description);
    programs_.push_back(name);
}

CLI::App& Program::add_launcher(const std::string& name, const std::string& description) {
    launcher_ = name;
    return *add_subcommand(name, description);
}

std::string Program::unexpected() const {
    const CLI::App* command = this;
    while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
    const std::vector<std::string> rest = remaining(true);
    std::vector<std::string> names;
    if (command == this && !rest.front().starts_with("-")) {
        for (const CLI::App* known : get_subcommands([](const CLI::App*) { return true; }))
            names.push_back(known->get_name());
        return fmt::format("there is no command '{}'{}", rest.front(), suggestion(rest.front(), names));
    }
    const auto option = std::find_if(rest.begin(), rest.end(), [](const std::string& r) { return r.starts_with("-"); });
    if (option == rest.end())
        return fmt::format("{} has more arguments than it takes: '{}'", command->get_name(), rest.front());
    const std::string name = option->substr(0, option->find('='));
    for (const CLI::Option* known : command->get_options({})) {
        for (const std::string& long_name : known->get_lnames()) names.push_back("--" + long_name);
    }
    return fmt::format("{} has no option '{}'{}", command->get_name(), name, suggestion(name, names));
}

int Program::run(int argc, char** argv) {
    try {
        if (argc > 1 && std::find(programs_.begin(), programs_.end(), argv[1]) != programs_.end())
            become_program(argv[1], {argv + 2, argv + argc}, fmt::format("`quoin {}`", argv[1]));
        std::vector<std::string> words(argv + 1, argv + argc);
        if (argc > 1 && words.front() == launcher_) {
            const auto is_option = [](const std::string& word) { return word.starts_with("-") && word != "--"; };
            const auto program = std::find_if_not(words.begin() + 1, words.end(), is_option);
            if (program == words.end() || *program != "--") words.insert(program, "--");
        } else {
            if (becomes_mpi_ && is_one_of_several()) become_program("mpi", words, "quoin as one of several processes");
            let_waiting_threads_sleep(argv);
            std::signal(SIGXFSZ, SIG_IGN);  // a file beyond `ulimit -f` is an error of the write
        }
        omp_set_num_threads(Context<Host>().threads());
        for (CLI::App* command : get_subcommands([](CLI::App*) { return true; })) refuse_empty_out(*command);
        refuse_empty_out(*this);
        try {
            std::reverse(words.begin(), words.end());  // CLI11 takes the last word first
            parse(words);
        } catch (const CLI::ParseError& e) {
            if (e.get_exit_code() != 0) throw;
            exit(e);  // --help, --version
        }
        flush_output();
        return 0;
    } catch (const CLI::RuntimeError& e) {
        return e.get_exit_code();
    } catch (const CLI::ExtrasError&) {
        return report((unexpected() + " (see --help)").c_str(), EX_USAGE);
    } catch (const CLI::ParseError& e) {
        return report((in_plain_words(e) + " (see --help)").c_str(), EX_USAGE);
    } catch (const Interrupted& e) {
        return report(e.what(), interrupted_exit_code());
    } catch (const Error& e) {
        return report(e.what(), error_info(e.code()).exit_code);
    } catch (const std::bad_alloc&) {
        return report("out of memory", error_info(ErrorCode::OutOfMemory).exit_code);
    } catch (const std::exception& e) {
        const auto* const failure = dynamic_cast<const std::system_error*>(&e);  // by fmt::print
        if (failure && std::ferror(stdout))
            return report(("standard output: " + failure->code().message()).c_str(),
                          error_info(ErrorCode::UnwritableFile).exit_code);
        return report(e.what(), EX_SOFTWARE);
    }
}

}  // namespace quoin::cli
