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

std::optional<StreamingMemory> gpu_streaming(Index m, Index n, Index p, bool with_q, std::size_t element_bytes,
                                             const Options& options) {
    if (options.full_t || !can_stream(m, n, options.method)) return {};
    const double width = static_cast<double>(element_bytes) * static_cast<double>(n + p);
    const double triangle = width * static_cast<double>(n + p);
    // two blocks, the copy of one that is factored, and its T, a quarter of that; with Q its rows too, and for every block an R
    // and its part of the stack of them
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

}  // namespace quoin::cli
