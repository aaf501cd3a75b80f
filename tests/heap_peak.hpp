#pragma once

// To be included by one source of a test program: the most that its heap held, which the library takes its matrices and
// workspace from. Not with a sanitizer, which has a heap of its own.

#include <malloc.h>

#include <atomic>
#include <cstddef>

/// Bytes, at most since it was set to 0.
static std::atomic<std::size_t> max_in_use{0};
static std::size_t in_use() {
    const struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
}
#ifndef QUOIN_SANITIZED
static void note_in_use() {
    for (std::size_t now = in_use(), most = max_in_use; now > most && !max_in_use.compare_exchange_weak(most, now);) {
    }
}
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    void* const p = memalign(alignment, bytes);
    note_in_use();
    return p;
}
extern "C" void* __libc_malloc(std::size_t bytes);
/// The heap is not asked for less than a page at a time, which takes longer than the allocation.
extern "C" void* malloc(std::size_t bytes) {
    void* const p = __libc_malloc(bytes);
    if (bytes >= 4096) note_in_use();
    return p;
}
#endif
