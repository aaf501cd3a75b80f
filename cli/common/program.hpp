#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace quoin::cli {

/// The command line of a program of Quoin: its options and commands are added as to any CLI::App.
class Program : public CLI::App {
public:
    /// `name`: as a user types it, "quoin rpca".
    Program(const std::string& description, const std::string& name);

    /// The command `name` is the program quoin-NAME beside this one.
    void add_program(const std::string& name, const std::string& description);

    /// As one of several processes that mpiexec has started this program is quoin-mpi.
    void becomes_mpi() { becomes_mpi_ = true; }

    /// Runs the callbacks of what the command line asks for. Returns the exit code; a failure is one sentence on stderr.
    int run(int argc, char** argv);

private:
    /// What the command line has that nothing takes, in one sentence, with the name that was meant.
    std::string unexpected() const;
    std::vector<std::string> programs_;
    bool becomes_mpi_ = false;
};

/// Threads of libgomp that wait for work spin for 8 ms, and take the cores from other programs meanwhile: here they sleep after
/// `spins` turns (30 000: 1 ms), unless the user says otherwise. libgomp reads its environment when it is loaded, so the program
/// starts once more. `Program::run` calls it; a program that must do something once, or wants other turns, calls it before that.
void let_waiting_threads_sleep(char** argv, int spins = 30000);

/// "0 success, 64 malformed command line, …"
std::string exit_codes();

/// Becomes the program quoin-NAME beside this one, which `needed_by` needs. Throws UnreadableFile where it is not installed.
[[noreturn]] void become_program(const std::string& name, std::vector<std::string> arguments,
                                 const std::string& needed_by);

}  // namespace quoin::cli
