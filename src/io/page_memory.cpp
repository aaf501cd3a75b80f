// Maps memory in large pages where the system has them.

#include "io/page_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdint>
#include <utility>

#include "quoin/error.hpp"

namespace quoin::io {

namespace {

/// Returns the bytes to map for `bytes` that begin at a large page's boundary. The rest only costs addresses.
std::size_t mapped_bytes(Index bytes) { return static_cast<std::size_t>(bytes + PageMemory::large_page); }

}  // namespace

PageMemory::PageMemory(Index bytes, Pages pages) {
    void* const mapped =
        mmap(nullptr, mapped_bytes(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw OutOfMemory(fmt::format("out of memory: {} bytes asked for", bytes));
    mapped_ = mapped;
    bytes_ = bytes;
    const auto address = reinterpret_cast<std::uintptr_t>(mapped);
    data_ = static_cast<char*>(mapped) + (-address & static_cast<std::uintptr_t>(large_page - 1));
    // advice: if the system ignores it, transfers are slower
    madvise(mapped, mapped_bytes(bytes), pages == Pages::Large ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

PageMemory::~PageMemory() {
    if (mapped_) munmap(mapped_, mapped_bytes(bytes_));
}

void PageMemory::swap(PageMemory& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
}

}  // namespace quoin::io
