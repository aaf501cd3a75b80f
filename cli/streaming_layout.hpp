#pragma once

#include <limits>
#include <optional>
#include <string>

#include "json_line.hpp"
#include "naming_file.hpp"
#include "quoin/streaming.hpp"
#include "row_blocks.hpp"

namespace quoin::cli {

/// Memory of a streamed factorization of an m×n matrix with b rows a block: fixed + a_row·b + a_block·m/b, in bytes.
struct StreamingMemory {
    double fixed = 0;
    double a_row = 0;
    double a_block = 0;  ///< node of the tree that every block has, if Q is wanted

    double bytes(Index m, Index block_rows) const;
    /// Returns the rows of the blocks, at least max(n, 64), that need the least memory.
    Index cheapest_rows(Index m, Index n) const;
};

/// Returns the memory for R alone, of `n` columns and `p` right-hand sides.
StreamingMemory streaming_r_memory(Index n, Index p, std::size_t element_bytes);

/// Returns the GPU memory for R of an m×n matrix, with p right-hand sides or with Q. Returns nothing if this cannot be
/// streamed.
std::optional<StreamingMemory> gpu_streaming(Index m, Index n, Index p, bool with_q, std::size_t element_bytes,
                                             const Options& options);

/// Returns the rows of a block beyond which longer blocks gain nothing: 256 MiB, which travel in some 5 ms, and at
/// least 8n rows, so that the triangle above them takes at most an eighth of the flops.
Index enough_gpu_rows(Index n, std::size_t element_bytes);

#ifdef QUOIN_HAVE_CUDA
/// Returns the cap on the program's allocations on the GPU: its free memory, or `given` if it is less and not 0.
double gpu_memory_cap(const Context<Cuda>& ctx, Index given);
#endif

/// Whether a matrix can be streamed. It must be tall, and the method TSQR or Auto.
bool can_stream(Index m, Index n, Method method);

/// Returns the largest blocks of at least max(n, 64) rows of an m×n matrix that fit `available` bytes. They have at
/// most `enough` rows, unless longer blocks need less memory. Returns nothing if no blocks fit.
std::optional<RowBlocks> largest_blocks(const StreamingMemory& streaming, Index m, Index n, double available,
                                        Index enough);

/// Returns how to factor the matrix of `file` under `cap` bytes: nothing if `in_memory` bytes fit the cap, otherwise
/// the `largest_blocks` that `streaming` (nothing: not possible) allows. Throws OutOfMemory, with the smallest cap that
/// works, if neither fits.
std::optional<RowBlocks> choose_blocks(const MatrixFile& file, double cap, double in_memory,
                                       const std::optional<StreamingMemory>& streaming,
                                       Index enough = std::numeric_limits<Index>::max());

/// Returns the least memory that `choose_blocks` accepts.
double min_bytes(const MatrixFile& file, double in_memory, const std::optional<StreamingMemory>& streaming);

/// Prints the line of a command's report about how the matrix was streamed.
void print_blocks(const RowBlocks& blocks, double cap);

/// Adds the times of a stream through a GPU to JSON.
void add_stream_times(JsonLine& line, const StreamTimes& times);
/// Prints the times of a stream through a GPU.
void print_stream_times(const StreamTimes& times);

/// Returns R of all rows of the file, in one pass.
template <class T, class D>
StreamingR<T, D> stream_r(Context<D>& ctx, const MatrixFile& file, RowBlocks blocks, const std::string& label) {
    StreamingR<T, D> stream(ctx, file.cols());
    for_each_block(label, blocks, [&](Range rows) {
        naming_file(file.path(), rows.begin, [&] { stream.append(ctx, rows.size(), reader_of<T>(file)); });
    });
    return stream;
}

}  // namespace quoin::cli
