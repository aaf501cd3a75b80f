#include "gpu_stream.hpp"

#include <fmt/format.h>

namespace quoin::cli {

void add_stream_times(JsonLine& line, const StreamTimes& times) {
    line.add("reading_seconds", times.reading).add("to_gpu_seconds", times.to_gpu);
    line.add("gpu_seconds", times.computing);
    line.add("from_gpu_seconds", times.from_gpu).add("writing_seconds", times.writing);
}

void print_stream_times(const StreamTimes& times) {
    fmt::print("reading        {:.3g} s, and {:.3g} s of waiting for copies to the GPU\n", times.reading, times.to_gpu);
    fmt::print("computing      {:.3g} s on the GPU, beside the reading\n", times.computing);
    if (times.writing > 0)
        fmt::print("writing        {:.3g} s, and {:.3g} s of waiting for copies from the GPU\n", times.writing,
                   times.from_gpu);
}

StreamingMemory gpu_streaming_r_memory(Index n, Index p, std::size_t element_bytes) {
    const double width = static_cast<double>(element_bytes) * static_cast<double>(n + p);
    // two blocks, and the rows that are factored with the triangle above them
    return {8 * width * static_cast<double>(n + p), 3.5 * width, 0};
}

StreamingMemory gpu_streaming_qr_memory(Index n, std::size_t element_bytes) {
    const double width = static_cast<double>(element_bytes) * static_cast<double>(n);
    // two blocks, the factorization of one, and its rows of Q; for every block an R, and its part of the stack of them
    return {8 * width * static_cast<double>(n), 4.5 * width, 3.5 * width * static_cast<double>(n)};
}

Index enough_gpu_rows(Index n, std::size_t element_bytes) {
    return std::max(8 * n, (Index{256} << 20) / (n * static_cast<Index>(element_bytes)));
}

#ifdef QUOIN_HAVE_CUDA
double gpu_memory_cap(const Context<Cuda>& ctx, Index given) {
    const double free = static_cast<double>(device_memory(ctx).free);
    return given > 0 ? std::min(free, static_cast<double>(given)) : free;
}
#endif

}  // namespace quoin::cli
