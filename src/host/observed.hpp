#pragma once

// Passes over a matrix some of whose entries are not observed, cut into chunks of rows.

#include <algorithm>
#include <cmath>
#include <vector>

#include "host/parallel.hpp"
#include "primitives/elements.hpp"

namespace quoin::host {

/// f(chunk) for each chunk of rows, by the threads; the values are added in the order of the chunks.
template <class Value, class F>
std::vector<Value> over_chunks(Context<Host>& ctx, const RowChunks& chunks, double flops, F f) {
    std::vector<Value> values(chunks.count);
    for_tasks(team(ctx, flops), chunks.count, [&](Index c) { values[c] = f(chunks[c]); });
    return values;
}

/// Whether m_ij was observed; without a mask all are.
inline bool seen(MatrixView<const std::uint8_t> observed, Index i, Index j) {
    return !observed.data || observed(i, j) != 0;
}

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
