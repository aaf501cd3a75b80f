#pragma once

#include <string>

#include "json_line.hpp"
#include "naming_file.hpp"
#include "quoin/streaming.hpp"
#include "row_blocks.hpp"

namespace quoin::cli {

/// Prints the line of a command's report about how the matrix was streamed.
void print_blocks(const StreamPlan& plan);

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
