#include "masks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "background_subtraction.hpp"
#include "output_files.hpp"
#include "quoin/error.hpp"

namespace quoin::cli {

void bench_masks(const std::string& folder, const CommonArguments& common,
                 const std::vector<std::string>& options_of_rpca) {
    const std::filesystem::path programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    std::vector<std::string> arguments = {"python3", "-c",     background_subtraction,
                                          folder,    "--rpca", (programs / "quoin-rpca").string()};
    if (common.json) arguments.push_back("--json");
    arguments.push_back("--");
    if (common.threads > 0) {
        arguments.push_back("--threads");
        arguments.push_back(std::to_string(common.threads));
    }
    arguments.insert(arguments.end(), options_of_rpca.begin(), options_of_rpca.end());
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    flush_output();
    execvp(argv[0], argv.data());
    throw UnreadableFile("python3",
                         fmt::format("{}; `quoin bench rpca` needs it, and opencv-python", std::strerror(errno)));
}

}  // namespace quoin::cli
