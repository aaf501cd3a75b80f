// `quoin bench rpca`: a script that the program holds, run by python3.

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "background_subtraction.hpp"
#include "program.hpp"
#include "quoin/error.hpp"
#include "studies.hpp"

namespace quoin::cli {

void bench_masks(const BenchArguments& arguments) {
    const std::filesystem::path programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    std::vector<std::string> words = {"python3",        "-c",     background_subtraction,
                                      arguments.folder, "--rpca", (programs / "quoin-rpca").string()};
    if (arguments.common.json) words.push_back("--json");
    words.push_back("--");
    if (arguments.common.threads > 0)
        words.insert(words.end(), {"--threads", std::to_string(arguments.common.threads)});
    words.insert(words.end(), arguments.rpca_options.begin(), arguments.rpca_options.end());
    become("python3", std::move(words));
    throw UnreadableFile("python3",
                         fmt::format("{}; `quoin bench rpca` needs it, and opencv-python", std::strerror(errno)));
}

}  // namespace quoin::cli
