#pragma once

// Large pages of the host's memory.

#include <cstddef>

#include "host/tuning.hpp"

namespace quoin::host {

inline constexpr std::size_t large_page = Tuning<Host>::large_page;

/// Asks the system to serve the large pages that [begin, begin + bytes) lies in as such when they are first touched: a
/// matrix of gigabytes then costs hundreds of page faults, not millions. Pages that are there stay as they are.
void prefer_large_pages(void* begin, std::size_t bytes);

}  // namespace quoin::host
