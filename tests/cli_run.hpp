#pragma once

// To run the program `quoin` as a user runs it: arguments in; files, stdout, stderr and exit code out.

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "quoin/quoin.hpp"

extern char** environ;

namespace quoin::test {

namespace fs = std::filesystem;
using testing::Test;

inline constexpr int usage_error = 64;

inline int exit_code_of(ErrorCode code) { return error_info(code).exit_code; }

inline std::string contents(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

inline std::vector<std::string> names_in(const fs::path& directory) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
}

struct Outcome {
    int exit_code = -1;  ///< 128 + signal if a signal ended it
    std::string out, err;
    long peak_kib = 0;
};

/// A run of the program in the current folder, its output in files beside that folder.
class Process {
public:
    /// `out`: an open file that takes the place of stdout; `in`: a file that is read as stdin.
    explicit Process(std::vector<std::string> arguments, int out = -1, const std::string& in = "/dev/null")
        : Process(quoin_path(), std::move(arguments), out, in) {}
    /// A run of another program.
    Process(const std::string& program, std::vector<std::string> arguments, int out = -1,
            const std::string& in = "/dev/null") {
        arguments.insert(arguments.begin(), program);
        std::vector<char*> argv;
        for (std::string& argument : arguments) argv.push_back(argument.data());
        argv.push_back(nullptr);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 0, in.c_str(), O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions, 1, "../out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (out >= 0) posix_spawn_file_actions_adddup2(&actions, out, 1);
        posix_spawn_file_actions_addopen(&actions, 2, "../err", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (const int error = posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ))
            throw std::runtime_error(fmt::format("cannot run {}: {}", program, std::strerror(error)));
        posix_spawn_file_actions_destroy(&actions);
    }

    static const std::string& quoin_path() {
        static const std::string path = (fs::read_symlink("/proc/self/exe").parent_path() / "quoin").string();
        return path;
    }

    void send(int signal) const { kill(pid_, signal); }

    /// Returns the processes that it has started, such as the ranks of mpiexec.
    std::vector<pid_t> children() const {
        std::vector<pid_t> found;
        std::error_code gone;
        for (const auto& task : fs::directory_iterator(fmt::format("/proc/{}/task", pid_), gone)) {
            std::istringstream pids(contents(task.path() / "children"));
            found.insert(found.end(), std::istream_iterator<pid_t>(pids), {});
        }
        return found;
    }

    /// Returns once the program has its handler of `signal`, which would end it before: at the start of a computation.
    void wait_until_caught(int signal) const {
        const std::string status = "/proc/" + std::to_string(pid_) + "/status", key = "SigCgt:";
        for (int tries = 0; tries < 60000; ++tries) {
            const std::string text = contents(status);
            const std::size_t at = text.find(key);
            if (at == std::string::npos) return;  // it has ended
            if (std::stoull(text.substr(at + key.size()), nullptr, 16) >> (signal - 1) & 1) return;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }

    /// Returns once the program has used `seconds` of processor time, however busy the machine is, or has ended.
    void wait_until_used(double seconds) const {
        const std::string stat = "/proc/" + std::to_string(pid_) + "/stat";
        for (int tries = 0; tries < 60000; ++tries) {
            // PID (NAME) STATE and 10 numbers, then the ticks of the user's and of the system's time
            const std::string text = contents(stat);
            std::istringstream rest(text.substr(std::min(text.size(), text.rfind(')') + 1)));
            std::string state, skipped;
            double user = 0, system = 0;
            rest >> state;
            for (int i = 0; i < 10; ++i) rest >> skipped;
            rest >> user >> system;
            if (!rest || state == "Z" || user + system >= seconds * static_cast<double>(sysconf(_SC_CLK_TCK))) return;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }

    Outcome wait() {
        Outcome outcome;
        int status = 0;
        struct rusage usage {};
        wait4(pid_, &status, 0, &usage);
        outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        outcome.peak_kib = usage.ru_maxrss;
        outcome.out = contents("../out");
        outcome.err = contents("../err");
        return outcome;
    }

private:
    pid_t pid_ = 0;
};

inline Outcome quoin_run(std::vector<std::string> arguments) { return Process(std::move(arguments)).wait(); }

/// "a b c" as arguments; `in` is read as stdin.
inline Outcome quoin_run(const std::string& line, const std::string& in = "/dev/null") {
    std::istringstream words(line);
    return Process({std::istream_iterator<std::string>(words), {}}, -1, in).wait();
}

/// Keys of a flat JSON object on one line, in order.
inline std::vector<std::string> json_keys(const std::string& line) {
    static const std::regex key("\"([^\"]*)\": ");
    std::vector<std::string> keys;
    for (auto it = std::sregex_iterator(line.begin(), line.end(), key); it != std::sregex_iterator(); ++it)
        keys.push_back((*it)[1]);
    return keys;
}

/// The value of one key, as written.
inline std::string json_value(const std::string& line, const std::string& key) {
    std::smatch match;
    const std::regex pattern("\"" + key + "\": (\"[^\"]*\"|\\[[^\\]]*\\]|[^,}]*)");
    if (!std::regex_search(line, match, pattern)) return "no key " + key;
    return match[1];
}

inline double json_number(const std::string& line, const std::string& key) { return std::stod(json_value(line, key)); }

inline std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

/// One sentence on stderr, nothing on stdout, and every fragment named in it.
inline void expect_error(const Outcome& outcome, int exit_code, std::initializer_list<std::string> fragments) {
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(lines_of(outcome.err).size(), 1u) << outcome.err;
    EXPECT_EQ(outcome.err.rfind("quoin: ", 0), 0u) << outcome.err;
    for (const std::string& fragment : fragments)
        EXPECT_NE(outcome.err.find(fragment), std::string::npos) << outcome.err;
}

template <class T>
void save(const std::string& path, const Matrix<T>& A) {
    write_npy<T>(path, A.view());
}

template <class T>
Matrix<T> load(const std::string& path) {
    return MatrixFile(path).read<T>();
}

/// Each test works in an empty folder of its own.
class Cli : public Test {
protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "quoin-cli-XXXXXX").string();
        // threads that wait asleep: what runs beside this program then slows it less
        setenv("OMP_NUM_THREADS", "2", 1);
        setenv("OMP_WAIT_POLICY", "passive", 1);
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        root_ = name;
        fs::create_directory(root_ / "work");
        fs::current_path(root_ / "work");
    }
    void TearDown() override {
        fs::current_path("/");
        fs::remove_all(root_);
    }

private:
    fs::path root_;
};

}  // namespace quoin::test
