// Allocation of matrices: alignment, large pages, sizes that overflow.

#include "host/memory.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include "host/tuning.hpp"
#include "quoin/matrix.hpp"

namespace quoin {

namespace host {

void prefer_large_pages(void* begin, std::size_t bytes) {
    const auto first = reinterpret_cast<std::uintptr_t>(begin) & ~(large_page - 1);
    const auto last = (reinterpret_cast<std::uintptr_t>(begin) + bytes + large_page - 1) & ~(large_page - 1);
    madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

}  // namespace host

namespace detail {

namespace {
using host::large_page;
constexpr std::size_t map_from = Tuning<Host>::mapped_from_pages * large_page;

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

[[noreturn]] void refuse(std::size_t bytes) {
    throw OutOfMemory("out of memory: " + std::to_string(bytes) + " bytes asked for");
}

bool on_large_page(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % large_page == 0; }
/// The pointer that malloc returned, stored just before memory that does not begin a large page.
void*& origin_of(void* p) { return static_cast<void**>(p)[-1]; }

/// Returns memory at a multiple of 64 bytes that does not begin a large page, or null if there is none. malloc reuses
/// blocks from lists for each thread, and aligned_alloc cuts every block anew; this takes a fifth off the time of a
/// factorization of microseconds.
void* allocate_small(std::size_t bytes) {
    void* const origin = std::malloc(bytes + 128);
    if (!origin) return nullptr;
    // malloc's multiples of 16 leave room in front
    auto begin = (reinterpret_cast<std::uintptr_t>(origin) / 64 + 1) * 64;
    if (begin % large_page == 0) begin += 64;
    void* const p = reinterpret_cast<void*>(begin);
    origin_of(p) = origin;
    return p;
}
}  // namespace

void* allocate_host(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    if (bytes > std::numeric_limits<std::size_t>::max() / 2) refuse(bytes);
    void* const p =
        bytes < map_from ? allocate_small(bytes) : std::aligned_alloc(large_page, round_up(bytes, large_page));
    if (!p) refuse(bytes);
    if (bytes >= map_from) host::prefer_large_pages(p, bytes);
    return p;
}

void free_host(void* p) noexcept { std::free(p && !on_large_page(p) ? origin_of(p) : p); }

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
                              " elements has more bytes than 64 bits count");
    }
    return bytes;
}

}  // namespace detail

}  // namespace quoin
