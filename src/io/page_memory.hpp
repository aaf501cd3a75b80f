#pragma once

#include "quoin/matrix.hpp"

namespace quoin::io {

/// Memory for transfers, straight from the system: what the heap gives may have been touched in other pages before. A disk moves
/// several times as fast into a large page as into 512 of 4 KiB (8 GB/s against 2.7 measured).
class PageMemory {
public:
    enum class Pages { Small, Large };
    static constexpr Index large_page = Index{2} << 20;

    PageMemory() = default;
    /// From a large page's boundary on; in large pages where the system has them. Throws OutOfMemory.
    PageMemory(Index bytes, Pages pages);
    PageMemory(PageMemory&& other) noexcept { swap(other); }
    PageMemory& operator=(PageMemory&& other) noexcept {
        swap(other);
        return *this;
    }
    ~PageMemory();

    char* data() { return data_; }
    Index size() const { return bytes_; }

private:
    void swap(PageMemory& other) noexcept;

    char* data_ = nullptr;
    Index bytes_ = 0;
    void* mapped_ = nullptr;
};

}  // namespace quoin::io
