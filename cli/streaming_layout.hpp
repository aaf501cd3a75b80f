#pragma once

#include <limits>
#include <optional>
#include <string>

#include "json_line.hpp"
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

/// What R of m×n rows, with p right-hand sides or with Q beside it, takes of a GPU's memory; nothing where that cannot be
/// streamed.
std::optional<StreamingMemory> gpu_streaming(Index m, Index n, Index p, bool with_q, std::size_t element_bytes,
                                             const Options& options);

/// Rows of a block beyond which longer ones bring nothing: 256 MiB, which travel in some 5 ms, and 8n rows, of whose flops the
/// triangle above them is an eighth.
Index enough_gpu_rows(Index n, std::size_t element_bytes);

#ifdef QUOIN_HAVE_CUDA
/// The cap on what the program allocates on the GPU: what is free there, or `given` (0: not) where that is less.
double gpu_memory_cap(const Context<Cuda>& ctx, Index given);
#endif

/// Tall matrices that no other method than TSQR was asked for can be streamed.
bool can_stream(Index m, Index n, Method method);

/// The largest blocks of at least max(n, 64) rows of an m×n matrix for which `available` bytes do, none longer than `enough` rows
/// unless memory asks for it; nothing where there are none.
std::optional<RowBlocks> largest_blocks(const StreamingMemory& streaming, Index m, Index n, double available,
                                        Index enough);

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

/// Their fields of the JSON of a stream through a GPU.
void add_stream_times(JsonLine& line, const StreamTimes& times);
/// Their lines of its report.
void print_stream_times(const StreamTimes& times);

/// R of all rows of the file, in one pass.
template <class T, class D>
StreamingR<T, D> stream_r(Context<D>& ctx, const MatrixFile& file, RowBlocks blocks, const std::string& label) {
    StreamingR<T, D> stream(ctx, file.cols());
    for_each_block(label, blocks, [&](Range rows) {
        naming_file(file.path(), rows.begin, [&] { stream.append(ctx, rows.size(), reader_of<T>(file)); });
    });
    return stream;
}

}  // namespace quoin::cli
