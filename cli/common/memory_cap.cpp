#include "memory_cap.hpp"

#include <fmt/format.h>

#include "byte_size.hpp"
#include "machine.hpp"
#include "quoin/error.hpp"

namespace quoin::cli {

void add_memory_argument(CLI::App& command, Index& bytes) {
    add_byte_size_argument(
        command, "--memory", bytes,
        "Most memory to allocate for matrices, such as 2GiB, 1.5GiB, 800MB or plain bytes\n"
        "(default: three quarters of what is available; factor and lstsq on a GPU: what is free there)");
}

void add_gpu_memory_argument(CLI::App& command, Index& bytes) {
    add_byte_size_argument(
        command, "--gpu-memory", bytes,
        "Most memory of the GPU to use. A larger matrix stays in the host's memory, which --memory then caps, or in\n"
        "its file, and is copied block by block (default: nine tenths of what is free)");
}

double memory_cap(Index given) {
    return given > 0 ? static_cast<double>(given)
                     : 0.75 * static_cast<double>(describe_machine().memory_available_bytes);
}

void refuse_memory_cap(const std::string& path, double cap, double bytes, const std::string& why) {
    throw OutOfMemory(fmt::format("{}: {} of memory is too little {}; the smallest cap that works is --memory {}", path,
                                  format_given_size(cap), why, byte_size_argument(bytes)));
}

}  // namespace quoin::cli
