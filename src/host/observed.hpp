#pragma once

// Passes over a matrix some of whose entries are not observed, cut into chunks of rows.

#include <vector>

#include "host/parallel.hpp"

namespace quoin::host {

/// f(chunk) for each chunk of rows, by the threads; the values are added in the order of the chunks.
template <class Value, class F>
std::vector<Value> over_chunks(Context<Host>& ctx, const RowChunks& chunks, double flops, F f) {
    std::vector<Value> values(chunks.count);
#pragma omp parallel for schedule(dynamic, 1) num_threads(team(ctx, flops))
    for (Index c = 0; c < chunks.count; ++c) values[c] = f(chunks[c]);
    return values;
}

/// Whether m_ij was observed; without a mask all are.
inline bool seen(MatrixView<const std::uint8_t> observed, Index i, Index j) {
    return !observed.data || observed(i, j) != 0;
}

}  // namespace quoin::host
