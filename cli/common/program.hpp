#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

namespace quoin::cli {

/// The command line of a program of Quoin. Options and commands are added as to any CLI::App.
class Program : public CLI::App {
public:
    /// `name`: as a user types it, "quoin rpca".
    Program(const std::string& description, const std::string& name);

    /// Adds the command `name`, which is the program quoin-NAME in this program's folder.
    void add_program(const std::string& name, const std::string& description);

    /// Adds the command `name`, which becomes another program, its first argument. All words after that are the
    /// program's own, and so is the environment.
    CLI::App& add_launcher(const std::string& name, const std::string& description);

    /// Makes this program become quoin-mpi if it is one of several processes that mpiexec has started.
    void becomes_mpi() { becomes_mpi_ = true; }

    /// Runs the callbacks of the commands on the command line. Returns the exit code; a failure is one sentence on
    /// stderr.
    int run(int argc, char** argv);

private:
    /// Returns one sentence about an argument that no command takes, with the name that was probably meant.
    std::string unexpected() const;
    std::vector<std::string> programs_;
    std::string launcher_;
    bool becomes_mpi_ = false;
};

/// Lets waiting threads of libgomp sleep after `spins` turns (30 000: 1 ms), unless the user says otherwise. By default
/// they spin for 8 ms, and take the cores from other programs meanwhile. libgomp reads its environment when it is
/// loaded, so the program starts once more. `Program::run` calls it. A program that must do something once, or needs
/// another number of turns, calls it before `run`.
void let_waiting_threads_sleep(char** argv, int spins = 30000);

/// Returns the path of this program.
std::filesystem::path own_path();

/// "0 success, 64 malformed command line, …"
std::string exit_codes();

/// Becomes `program`, found on the PATH unless it is a path, with `words`, the first of which is its name. Returns if
/// that fails, and errno says why.
void become(const std::string& program, std::vector<std::string> words);

/// Becomes the program quoin-NAME in this program's folder, which `needed_by` needs. Throws UnreadableFile if it is not
/// installed.
[[noreturn]] void become_program(const std::string& name, std::vector<std::string> arguments,
                                 const std::string& needed_by);

}  // namespace quoin::cli
