#include <sys/mman.h>

#include <cstdlib>
#include <limits>
#include <string>

#include "quoin/matrix.hpp"

namespace quoin::detail {

namespace {
// From this size on, memory comes straight from the system in pages of 2 MiB, where it gives them: a matrix of gigabytes
// then costs hundreds of page faults, not millions.
constexpr std::size_t large_page = std::size_t(2) << 20;
constexpr std::size_t map_from = 4 * large_page;

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

[[noreturn]] void refuse(std::size_t bytes) {
    throw OutOfMemory("out of memory: " + std::to_string(bytes) + " bytes asked for");
}
}  // namespace

void* allocate_host(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    if (bytes > std::numeric_limits<std::size_t>::max() / 2) refuse(bytes);
    void* p = bytes < map_from ? std::aligned_alloc(64, round_up(bytes, 64))
                               : std::aligned_alloc(large_page, round_up(bytes, large_page));
    if (!p) refuse(bytes);
    if (bytes >= map_from) madvise(p, round_up(bytes, large_page), MADV_HUGEPAGE);
    return p;
}

void free_host(void* p) noexcept { std::free(p); }

std::size_t checked_bytes(Index rows, Index cols, std::size_t size) {
    if (rows < 0 || cols < 0) {
        throw InvalidArgument("a matrix cannot have " + std::to_string(rows) + " rows and " + std::to_string(cols) +
                              " columns");
    }
    std::size_t elements, bytes;
    if (__builtin_mul_overflow(static_cast<std::size_t>(rows), static_cast<std::size_t>(cols), &elements) ||
        __builtin_mul_overflow(elements, size, &bytes) ||
        bytes > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max())) {
        throw InvalidArgument("a matrix of " + std::to_string(rows) + " x " + std::to_string(cols) +
                              " elements is larger than any address space");
    }
    return bytes;
}

}  // namespace quoin::detail
