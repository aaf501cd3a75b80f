#pragma once

// The sums of `entry_norms`, entry by entry and chunk by chunk.

#include <algorithm>
#include <cmath>
#include <vector>

#include "primitives/elements.hpp"

namespace quoin::host {

inline void add_entry(EntryNorms& norms, double entry) {
    const double x = std::abs(entry);
    norms.squares += x * x;
    norms.sum += x;
    norms.largest = std::max(norms.largest, x);
}
inline EntryNorms joined(const std::vector<EntryNorms>& parts) {
    EntryNorms norms;
    for (const EntryNorms& part : parts) {
        norms.squares += part.squares;
        norms.sum += part.sum;
        norms.largest = std::max(norms.largest, part.largest);
    }
    return norms;
}

}  // namespace quoin::host
