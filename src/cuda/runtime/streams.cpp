// Order and time of work on streams, by events.

#include "cuda/runtime/device.hpp"
#include "cuda/runtime/state.hpp"

namespace quoin {

void cuda::order(cudaEvent_t event, cudaStream_t first, cudaStream_t second) {
    QUOIN_CUDA_CHECK(cudaEventRecord(event, first));
    QUOIN_CUDA_CHECK(cudaStreamWaitEvent(second, event, 0));
}

void Context<Cuda>::State::order(cudaStream_t first, cudaStream_t second) {
    if (first == second) return;
    if (!event_) QUOIN_CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    cuda::order(event_, first, second);
}

void Context<Cuda>::follow(CudaStream other) { state_->order(other, stream()); }
void Context<Cuda>::precede(CudaStream other) { state_->order(stream(), other); }
void Context<Cuda>::wait() const { QUOIN_CUDA_CHECK(cudaStreamSynchronize(queue_->stream)); }

template <>
Context<Cuda>& side_stream(Context<Cuda>& ctx) {
    Context<Cuda>& side = ctx.state().side(Trace::Row::SideStream);
    side.follow(ctx.stream());
    return side;
}

template <>
void wait_for(Context<Cuda>& ctx, Context<Cuda>& side) {
    ctx.follow(side.stream());
}

Event<Cuda>::~Event() {
    if (event_) cudaEventDestroy(event_);
}

void Event<Cuda>::record(Context<Cuda>& ctx) {
    if (!event_) QUOIN_CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    QUOIN_CUDA_CHECK(cudaEventRecord(event_, ctx.stream()));
    recorded_on_ = ctx.stream();
}

void Event<Cuda>::precede(Context<Cuda>& ctx) const {
    // a stream is in order by itself, and one that is captured into a graph must not wait for a moment outside of it
    if (event_ && ctx.stream() != recorded_on_) QUOIN_CUDA_CHECK(cudaStreamWaitEvent(ctx.stream(), event_, 0));
}

void Event<Cuda>::wait() const {
    if (event_) QUOIN_CUDA_CHECK(cudaEventSynchronize(event_));
}

WorkTimer<Cuda>::WorkTimer(Context<Cuda>& ctx) : stream_(ctx.stream()) {
    QUOIN_CUDA_CHECK(cudaEventCreate(&start_));
    QUOIN_CUDA_CHECK(cudaEventCreate(&stop_));
    QUOIN_CUDA_CHECK(cudaEventRecord(start_, stream_));
}

WorkTimer<Cuda>::~WorkTimer() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
}

void WorkTimer<Cuda>::stop() { QUOIN_CUDA_CHECK(cudaEventRecord(stop_, stream_)); }

double WorkTimer<Cuda>::seconds() const {
    float milliseconds = 0;
    QUOIN_CUDA_CHECK(cudaEventSynchronize(stop_));
    QUOIN_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start_, stop_));
    return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace quoin
