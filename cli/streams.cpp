#include "streams.hpp"

#include <fmt/format.h>

#include "byte_size.hpp"

namespace quoin::cli {

void print_blocks(const StreamPlan& plan) {
    fmt::print("streamed       {} blocks of {} rows, within {}\n", plan.blocks.count(), plan.blocks.block_rows,
               format_given_size(plan.memory_bytes));
}

void add_stream_times(JsonLine& line, const StreamTimes& times) {
    line.add("reading_seconds", times.reading).add("to_gpu_seconds", times.to_device);
    line.add("gpu_seconds", times.computing);
    line.add("from_gpu_seconds", times.from_device).add("writing_seconds", times.writing);
}

void print_stream_times(const StreamTimes& times) {
    fmt::print("reading        {:.3g} s, and {:.3g} s of waiting for copies to the GPU\n", times.reading,
               times.to_device);
    fmt::print("computing      {:.3g} s on the GPU, beside the reading\n", times.computing);
    if (times.writing > 0)
        fmt::print("writing        {:.3g} s, and {:.3g} s of waiting for copies from the GPU\n", times.writing,
                   times.from_device);
}

}  // namespace quoin::cli
