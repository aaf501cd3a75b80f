#pragma once

#include <cstddef>

namespace quoin::bench {

/// Memory of the host that stays where it is while this lives, so that a GPU reads and writes it in place.
class PageLocked {
public:
    /// Where the system refuses, `locked()` is false and the memory is as it was.
    PageLocked(void* memory, std::size_t bytes);
    PageLocked(const PageLocked&) = delete;
    ~PageLocked();
    bool locked() const { return memory_ != nullptr; }

private:
    void* memory_ = nullptr;
};

}  // namespace quoin::bench
