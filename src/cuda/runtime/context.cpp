// The life of a context: its own stream and its side streams, handles of libraries, progress and trace.

#include <memory>
#include <utility>

#include "cuda/runtime/blas.hpp"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/solver.hpp"
#include "cuda/runtime/staging.hpp"
#include "cuda/runtime/state.hpp"

namespace quoin {

CurrentDevice::CurrentDevice(int device) {
    const cudaError_t found = cudaGetDevice(&before_);
    if (found == cudaErrorInsufficientDriver) throw DeviceFailure(survey_gpus().problem);
    cuda::check(found, "cudaGetDevice");
    if (device == before_) return;
    const cudaError_t status = cudaSetDevice(device);
    if (status != cudaSuccess) cudaGetLastError();  // or the next call on the current device would seem to fail
    cuda::check(status, "cudaSetDevice");
}
CurrentDevice::~CurrentDevice() {
    int current = before_;
    if (cudaGetDevice(&current) == cudaSuccess && current != before_) cudaSetDevice(before_);
}

Context<Cuda>::Context(CudaStream stream)
    : queue_(std::make_shared<detail::DeviceQueue>(stream, false)), state_(std::make_unique<State>(*queue_)) {}
Context<Cuda>::Context(HighPriority)
    : queue_(std::make_shared<detail::DeviceQueue>(nullptr, true)), state_(std::make_unique<State>(*queue_)) {}
Context<Cuda>::Context(Context&&) noexcept = default;
Context<Cuda>& Context<Cuda>::operator=(Context&& other) noexcept {
    // the state's memory goes back through the queue it came from
    std::swap(state_, other.state_);
    std::swap(queue_, other.queue_);
    return *this;
}
Context<Cuda>::~Context() = default;

CudaStream Context<Cuda>::stream() const { return queue_->stream; }

double Context<Cuda>::flops_done() const { return state_->flops_done(); }
void Context<Cuda>::reset_progress() { state_->flops -= state_->flops_done(); }
void Context<Cuda>::request_stop() noexcept { state_->stop = true; }
void Context<Cuda>::clear_stop() noexcept { state_->stop = false; }

void Context<Cuda>::attach(Trace* trace) {
    state_->attach(trace, trace ? std::make_shared<const cuda::TraceClock>(stream(), *trace) : nullptr);
}
Trace* Context<Cuda>::trace() const { return state_->trace; }

const Tuning<Cuda>& tuning_of(const Context<Cuda>& ctx) { return ctx.state().tuning; }

Context<Cuda>::State::State(detail::DeviceQueue& queue) : arena(queue), tuning(Tuning<Cuda>::here()), queue_(queue) {}

Context<Cuda>::State::~State() {
    // a panel that the host has factored may be on its way from there
    if (panel_staging_.bytes() > 0) cudaStreamSynchronize(queue_.stream);
    for (auto& one : sides_) one.reset();
    lanes_.clear();
    if (blas_) cublasDestroy(blas_);
    if (solver_) cusolverDnDestroy(solver_);
    detail::free_device(queue_, counters_of_checks_);
    if (event_) cudaEventDestroy(event_);
    if (sent_) cudaEventDestroy(sent_);
}

cublasHandle_t Context<Cuda>::State::blas() {
    if (!blas_) {
        QUOIN_CUDA_CHECK(cublasCreate(&blas_));
        QUOIN_CUDA_CHECK(cublasSetStream(blas_, queue_.stream));
    }
    return blas_;
}

cusolverDnHandle_t Context<Cuda>::State::solver() {
    if (!solver_) {
        QUOIN_CUDA_CHECK(cusolverDnCreate(&solver_));
        QUOIN_CUDA_CHECK(cusolverDnSetStream(solver_, queue_.stream));
    }
    return solver_;
}

Context<Cuda>& Context<Cuda>::State::side(Trace::Row of) {
    auto& one = sides_[static_cast<int>(of) - static_cast<int>(Trace::Row::SideStream)];
    if (!one) {
        one.reset(new Context<Cuda>(HighPriority{}));
        one->state().row = of;
        one->state().attach(trace, clock);
        side_copies_out_ = side_copies_out_ || of == Trace::Row::ToHost;
        for (const auto& each : sides_) {
            if (each) each->state().side_copies_out_ = side_copies_out_;
        }
    }
    return *one;
}

Context<Cuda>& Context<Cuda>::State::lane(int i) {
    while (static_cast<int>(lanes_.size()) <= i) {
        lanes_.push_back(std::make_unique<Context<Cuda>>());
        lanes_.back()->state().of_lanes = this;
    }
    return *lanes_[i];
}

cuda::Staging& Context<Cuda>::State::staging() {
    if (!staging_) staging_ = std::make_unique<cuda::Staging>();
    return *staging_;
}

Context<Host>& Context<Cuda>::State::host() {
    if (!host_) host_ = std::make_unique<Context<Host>>();
    return *host_;
}

void* Context<Cuda>::State::staging_of_panels(std::size_t bytes) {
    if (bytes > panel_staging_.bytes()) QUOIN_CUDA_CHECK(cudaStreamSynchronize(queue_.stream));
    return panel_staging_.at_least(bytes);
}

void Context<Cuda>::State::attach(Trace* to, std::shared_ptr<const cuda::TraceClock> with) {
    trace = to;
    clock = std::move(with);
    for (const auto& one : sides_) {
        if (one) one->state().attach(trace, clock);
    }
}

double Context<Cuda>::State::flops_done() const {
    double sum = flops.load(std::memory_order_relaxed) + (host_ ? host_->flops_done() : 0);
    for_each_own([&](Context<Cuda>& one) { sum += one.flops_done(); });
    return sum;
}

template <>
void throw_if_stopped(Context<Cuda>& ctx) {
    const auto& state = ctx.state();
    const bool above = state.of_lanes && state.of_lanes->stop.load(std::memory_order_relaxed);
    if (above || state.stop.load(std::memory_order_relaxed)) throw Interrupted();
}

template <>
Context<Host>& host_context(Context<Cuda>& ctx) {
    return ctx.state().host();
}
template <>
void* pinned_staging(Context<Cuda>& ctx, std::size_t bytes) {
    return ctx.state().staging_of_panels(bytes);
}

}  // namespace quoin
