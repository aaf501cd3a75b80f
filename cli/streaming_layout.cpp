#include "streaming_layout.hpp"

#include <fmt/format.h>

#include <cmath>

#include "byte_size.hpp"
#include "memory_cap.hpp"

namespace quoin::cli {

double StreamingMemory::bytes(Index m, Index block_rows) const {
    return fixed + a_row * static_cast<double>(block_rows) +
           a_block * std::ceil(static_cast<double>(m) / static_cast<double>(block_rows));
}

StreamingMemory streaming_r_memory(Index n, Index p, std::size_t element_bytes) {
    const double width = static_cast<double>(element_bytes) * static_cast<double>(n + p);
    // the rows read, and those that are factored with the triangles above them
    return {8 * width * static_cast<double>(n + p), 3 * width, 0};
}

std::optional<StreamingMemory> gpu_streaming(Index m, Index n, Index p, bool with_q, std::size_t element_bytes,
                                             const Options& options) {
    if (options.q.full_t || !can_stream(m, n, options.method)) return {};
    const double width = static_cast<double>(element_bytes) * static_cast<double>(n + p);
    const double triangle = width * static_cast<double>(n + p);
    // two blocks, the copy of one that is factored, and its T, a quarter of that; with Q its rows too, and for every
    // block an R and its part of the stack of them
    return with_q ? StreamingMemory{8 * triangle, 4.5 * width, 3.5 * triangle}
                  : StreamingMemory{8 * triangle, 3.5 * width, 0};
}

Index enough_gpu_rows(Index n, std::size_t element_bytes) {
    return std::max(8 * n, (Index{256} << 20) / (std::max<Index>(1, n) * static_cast<Index>(element_bytes)));
}

#ifdef QUOIN_HAVE_CUDA
double gpu_memory_cap(const Context<Cuda>& ctx, Index given) {
    const double free = static_cast<double>(device_memory(ctx).free);
    return given > 0 ? std::min(free, static_cast<double>(given)) : free;
}
#endif

bool can_stream(Index m, Index n, Method method) {
    return m > n && n > 0 && (method == Method::Auto || method == Method::TSQR);
}

Index StreamingMemory::cheapest_rows(Index m, Index n) const {
    // f(b) = a_row b + a_block m/b is least at b² = a_block m / a_row, and only grows from there on
    const Index lowest = std::min(m, std::max<Index>(n, 64));
    return std::clamp(static_cast<Index>(std::sqrt(a_block * static_cast<double>(m) / a_row)), lowest, m);
}

double min_bytes(const MatrixFile& file, double in_memory, const std::optional<StreamingMemory>& streaming) {
    if (!streaming) return in_memory;
    const Index m = file.rows();
    return std::min(in_memory, streaming->bytes(m, streaming->cheapest_rows(m, file.cols())));
}

std::optional<RowBlocks> largest_blocks(const StreamingMemory& streaming, Index m, Index n, double available,
                                        Index enough) {
    const Index cheapest = streaming.cheapest_rows(m, n);
    if (streaming.bytes(m, cheapest) > available) return std::nullopt;
    Index fits = cheapest, too_many = std::max(cheapest, std::min(m, enough)) + 1;
    while (too_many - fits > 1) {
        const Index b = fits + (too_many - fits) / 2;
        (streaming.bytes(m, b) <= available ? fits : too_many) = b;
    }
    return RowBlocks{m, fits};
}

std::optional<RowBlocks> choose_blocks(const MatrixFile& file, double cap, double in_memory,
                                       const std::optional<StreamingMemory>& streaming, Index enough) {
    const Index m = file.rows();
    const double available = cap - reader_bytes(file);
    if (in_memory <= available) return std::nullopt;

    if (streaming) {
        if (const auto blocks = largest_blocks(*streaming, m, file.cols(), available, enough)) return blocks;
    }
    refuse_memory_cap(file.path(), cap, min_bytes(file, in_memory, streaming) + reader_bytes(file),
                      fmt::format("for a {} x {} {} matrix", m, file.cols(), to_string(file.dtype())));
}

void print_blocks(const RowBlocks& blocks, double cap) {
    fmt::print("streamed       {} blocks of {} rows, within {}\n", blocks.count(), blocks.block_rows,
               format_given_size(cap));
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
