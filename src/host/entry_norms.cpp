// Norms of a matrix entry by entry, and scaled copies.

#include "host/entry_norms.hpp"

#include <cmath>

#include "host/device.hpp"
#include "host/parallel.hpp"

namespace quoin {

using namespace host;

template <class T, class D>
EntryNorms entry_norms(Context<D>& ctx, View<const T, D> M) {
    const RowChunks chunks(M.rows, Tuning<Host>::short_chunk_rows);
    const auto parts = over_chunks<EntryNorms>(ctx, chunks, 20.0 * M.rows * M.cols, [&](Range rows) {
        EntryNorms norms;
        for (Index j = 0; j < M.cols; ++j) {
            for (Index i = rows.begin; i < rows.end; ++i) add_entry(norms, static_cast<double>(M(i, j)));
        }
        return norms;
    });
    return joined(parts);
}

template <class T, class D>
void scaled_copy(Context<D>& ctx, double factor, View<const T, D> A, View<T, D> B) {
    const T f = static_cast<T>(factor);
    const RowChunks chunks(A.rows, Tuning<Host>::short_chunk_rows);
    over_chunks<char>(ctx, chunks, 20.0 * A.rows * A.cols, [&](Range rows) {
        for (Index j = 0; j < A.cols; ++j) {
            for (Index i = rows.begin; i < rows.end; ++i) B(i, j) = f * A(i, j);
        }
        return char(0);
    });
}

QUOIN_IMPLEMENT(Host, entry_norms, scaled_copy)

}  // namespace quoin
