#pragma once

#include <algorithm>
#include <functional>

#include "quoin/context.hpp"

namespace quoin {

namespace detail {
template <class T>
struct NoRows : MatrixView<const T, Host> {
    NoRows() = default;
};
}  // namespace detail

/// Rows in the host's memory as a parameter of functions for another device D. If D is the host, nothing converts to
/// this type.
template <class T, class D>
using HostRows = std::conditional_t<std::is_same_v<D, Host>, detail::NoRows<T>, MatrixView<const T, Host>>;

/// Rows 0 … rows cut into blocks of `block_rows`, the last one shorter.
struct RowBlocks {
    Index rows = 0;
    Index block_rows = 1;

    Index count() const { return (rows + block_rows - 1) / block_rows; }
    Range block(Index i) const { return {i * block_rows, std::min(rows, (i + 1) * block_rows)}; }
};

/// Fills the block (column-major; pinned if it goes to a GPU) with the given rows of a matrix, every column.
template <class T>
using RowReader = std::function<void(Range rows, MatrixView<T, Host> block)>;
/// Receives the given rows. The block is reused after the call returns.
template <class T>
using RowWriter = std::function<void(Range rows, MatrixView<const T, Host> block)>;

/// B := a matrix that `read` supplies by blocks of rows, in order. On a GPU blocks have 16 MiB, and one is read while
/// the previous one is copied. On the host they have 64 MiB and are read in place. A block has at least one row.
/// Returns when the last block has been read; B is ready for work enqueued on the context. An exception of `read` ends
/// the copy.
///
///     copy_rows_to_device<float>(ctx, [&](Range r, auto block) { file.read_rows<float>(r, block); }, A.view());
template <class T, class D>
void copy_rows_to_device(Context<D>& ctx, const RowReader<T>& read, View<T, D> B);
/// Copies A by blocks of rows: `write` takes one block of rows after the other, while the next one is copied. Waits.
template <class T, class D>
void copy_rows_to_host(Context<D>& ctx, View<const T, D> A, const RowWriter<T>& write);

}  // namespace quoin
