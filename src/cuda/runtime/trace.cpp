// Spans of work on a stream, and the GPU's clock on the host's.

#include "cuda/runtime/device.hpp"
#include "cuda/runtime/state.hpp"

namespace quoin {

namespace cuda {

TraceClock::TraceClock(cudaStream_t stream, const Trace& trace) {
    QUOIN_CUDA_CHECK(cudaEventCreate(&base_));
    try {
        QUOIN_CUDA_CHECK(cudaStreamSynchronize(stream));
        // the first one makes what an event needs; the second one is reached between `before` and now
        for (int i = 0; i < 2; ++i) {
            const double before = trace.now();
            QUOIN_CUDA_CHECK(cudaEventRecord(base_, stream));
            QUOIN_CUDA_CHECK(cudaEventSynchronize(base_));
            base_time_ = (before + trace.now()) / 2;
        }
    } catch (...) {
        cudaEventDestroy(base_);
        throw;
    }
}

TraceClock::~TraceClock() { cudaEventDestroy(base_); }

double TraceClock::time_of(cudaEvent_t event) const {
    float milliseconds = 0;
    QUOIN_CUDA_CHECK(cudaEventSynchronize(event));
    QUOIN_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, base_, event));
    return base_time_ + 1e3 * static_cast<double>(milliseconds);
}

}  // namespace cuda

/// From its first event to its second one.
struct Span<Cuda>::Recording {
    Recording(Context<Cuda>& ctx, const char* name, Index step, Trace::Row row)
        : trace(*ctx.trace()), clock(ctx.state().clock), stream(ctx.stream()), span{name, row, step, {}} {
        QUOIN_CUDA_CHECK(cudaEventCreate(&begin));
        try {
            QUOIN_CUDA_CHECK(cudaEventCreate(&end));
            QUOIN_CUDA_CHECK(cudaEventRecord(begin, stream));
        } catch (...) {
            destroy();
            throw;
        }
    }
    Recording(const Recording&) = delete;
    ~Recording() { destroy(); }
    void destroy() {
        cudaEventDestroy(begin);
        if (end) cudaEventDestroy(end);
    }

    Trace& trace;
    const std::shared_ptr<const cuda::TraceClock> clock;
    const cudaStream_t stream;
    const Trace::Span span;
    cudaEvent_t begin = nullptr, end = nullptr;
};

Span<Cuda>::Span(Context<Cuda>& ctx, const char* name, Index step) : Span(ctx, name, step, ctx.state().row) {}

Span<Cuda>::Span(Context<Cuda>& ctx, const char* name, Index step, Trace::Row row) {
    if (ctx.trace()) recording_ = std::make_shared<Recording>(ctx, name, step, row);
}

Span<Cuda>::~Span() {
    if (!recording_ || cudaEventRecord(recording_->end, recording_->stream) != cudaSuccess) return;
    try {
        recording_->trace.add(recording_->span, [recording = recording_]() -> Trace::Times {
            return {recording->clock->time_of(recording->begin), recording->clock->time_of(recording->end)};
        });
    } catch (const std::bad_alloc&) {
        // the trace lacks a span
    }
}

}  // namespace quoin
