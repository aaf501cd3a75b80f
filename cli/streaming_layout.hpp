#pragma once

#include <limits>
#include <optional>
#include <string>

#include "naming_file.hpp"
#include "quoin/streaming.hpp"
#include "row_blocks.hpp"

namespace quoin::cli {

/// Memory that a streamed factorization of m×n rows takes with b rows a block: fixed + a_row·b + a_block·m/b, in bytes.
struct StreamingMemory {
    double fixed = 0;
    double a_row = 0;
    double a_block = 0;  ///< of every block, for as long as Q is wanted: its node of the tree

    double bytes(Index m, Index block_rows) const;
    /// Rows of the blocks, at least max(n, 64), with which it is least.
    Index cheapest_rows(Index m, Index n) const;
};

/// R alone, of `n` columns and `p` right-hand sides.
StreamingMemory streaming_r_memory(Index n, Index p, std::size_t element_bytes);

/// Tall matrices that no other method than TSQR was asked for can be streamed.
bool can_stream(Index m, Index n, Method method);

/// The largest blocks of at least max(n, 64) rows of an m×n matrix for which `available` bytes do, none longer than `enough` rows
/// unless memory asks for it; nothing where there are none.
std::optional<RowBlocks> largest_blocks(const StreamingMemory& streaming, Index m, Index n, double available,
                                        Index enough = std::numeric_limits<Index>::max());

/// How to factor the matrix of `file` under `cap` bytes: nothing where `in_memory` bytes fit the cap, otherwise the
/// `largest_blocks` that `streaming` (nothing: not possible) allows. Throws OutOfMemory, with the smallest cap that works,
/// where neither fits.
std::optional<RowBlocks> choose_blocks(const MatrixFile& file, double cap, double in_memory,
                                       const std::optional<StreamingMemory>& streaming,
                                       Index enough = std::numeric_limits<Index>::max());

/// The least that `choose_blocks` can do with.
double least_bytes(const MatrixFile& file, double in_memory, const std::optional<StreamingMemory>& streaming);

/// The line of a command's report that says how the matrix was streamed.
void print_blocks(const RowBlocks& blocks, double cap);

/// R of all rows of the file, in one pass.
template <class T>
StreamingR<T> stream_r(Context<Host>& ctx, const MatrixFile& file, RowBlocks blocks, const std::string& label) {
    StreamingR<T> stream(ctx, file.cols());
    BlockReader<T> reader(file, blocks);
    for_each_block(label, blocks, Order::Forward, [&](Range rows) {
        const MatrixView<const T> A = reader.read(rows);
        naming_file(file.path(), rows.begin, [&] { stream.append(ctx, A); });
    });
    return stream;
}

}  // namespace quoin::cli
