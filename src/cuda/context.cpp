#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <utility>

#include "cuda/blas.hpp"
#include "cuda/device.hpp"
#include "cuda/solver.hpp"
#include "cuda/staging.hpp"
#include "cuda/state.hpp"

namespace quoin {

namespace detail {

namespace {

/// The pools of all queues.
struct Pools {
    std::mutex mutex;
    std::vector<const DeviceQueue*> queues;
    static Pools& all() {
        static Pools& pools = *new Pools;  // contexts may go after static objects do
        return pools;
    }
    /// What they keep on a device goes back.
    void trim(int device) {
        const std::lock_guard lock(mutex);
        for (const DeviceQueue* queue : queues) {
            if (queue->device == device) QUOIN_CUDA_CHECK(cudaMemPoolTrimTo(queue->pool, 0));
        }
    }
};

}  // namespace

DeviceQueue::DeviceQueue(cudaStream_t given, bool high_priority) : stream(given) {
    QUOIN_CUDA_CHECK(cudaGetDevice(&device));
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    props.location.id = device;
    QUOIN_CUDA_CHECK(cudaMemPoolCreate(&pool, &props));
    // memory stays in the pool: the next plan takes it without asking the system
    std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
    QUOIN_CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    if (!stream) {
        int lowest, highest;
        QUOIN_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
        QUOIN_CUDA_CHECK(
            cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, high_priority ? highest : lowest));
        owns_stream = true;
    }
    Pools& pools = Pools::all();
    const std::lock_guard lock(pools.mutex);
    pools.queues.push_back(this);
}

DeviceQueue::~DeviceQueue() {
    {
        Pools& pools = Pools::all();
        const std::lock_guard lock(pools.mutex);
        std::erase(pools.queues, this);
    }
    if (owns_stream) {
        cudaStreamSynchronize(stream);
        cudaStreamDestroy(stream);
    }
    cudaMemPoolDestroy(pool);
}

void* allocate_device(DeviceQueue& queue, std::size_t bytes) {
    if (bytes == 0) return nullptr;
    void* p = nullptr;
    cudaError_t status = cudaMallocFromPoolAsync(&p, bytes, queue.pool, queue.stream);
    if (status == cudaErrorMemoryAllocation) {
        // once more without what the device's pools keep for later
        cudaGetLastError();
        QUOIN_CUDA_CHECK(cudaStreamSynchronize(queue.stream));
        Pools::all().trim(queue.device);
        status = cudaMallocFromPoolAsync(&p, bytes, queue.pool, queue.stream);
    }
    if (status == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        std::size_t free = 0, total = 0;
        QUOIN_CUDA_CHECK(cudaMemGetInfo(&free, &total));
        throw OutOfMemory("out of memory on GPU " + std::to_string(queue.device) + ": " + std::to_string(bytes) +
                          " bytes asked for, " + std::to_string(free) + " of " + std::to_string(total) + " free");
    }
    cuda::check(status, "cudaMallocFromPoolAsync");
    return p;
}

void free_device(DeviceQueue& queue, void* p) noexcept {
    if (p) cudaFreeAsync(p, queue.stream);
}

}  // namespace detail

namespace cuda {

Arena::~Arena() {
    release(0, 0);
    detail::free_device(queue_, base_);
}

void* Arena::take(std::size_t bytes) {
    bytes = (bytes + 255) / 256 * 256;
    wanted_ += bytes;
    if (used_ + bytes <= size_) {
        void* p = base_ + used_;
        used_ += bytes;
        return p;
    }
    extra_.push_back(detail::allocate_device(queue_, bytes));
    return extra_.back();
}

void Arena::limit(std::size_t bytes) {
    limited_ = bytes > 0;
    if (!limited_) return;
    detail::free_device(queue_, std::exchange(base_, nullptr));
    size_ = 0;
    QUOIN_CUDA_CHECK(cudaStreamSynchronize(queue_.stream));
    QUOIN_CUDA_CHECK(cudaMemPoolTrimTo(queue_.pool, 0));
    base_ = static_cast<char*>(detail::allocate_device(queue_, bytes));
    size_ = bytes;
}

void Arena::release(std::size_t used, std::size_t extra) noexcept {
    while (extra_.size() > extra) {
        detail::free_device(queue_, extra_.back());
        extra_.pop_back();
    }
    used_ = used;
    if (used_ == 0 && extra_.empty()) {
        if (wanted_ > size_) {
            detail::free_device(queue_, base_);
            base_ = nullptr;
            size_ = 0;
            try {
                base_ = static_cast<char*>(detail::allocate_device(queue_, wanted_));
                size_ = wanted_;
            } catch (const Error&) {
                // the next call finds out whether it can have what it needs
            }
        }
        wanted_ = 0;
    }
}

Pinned::~Pinned() {
    if (data_) cudaFreeHost(data_);
}

void* Pinned::at_least(std::size_t bytes) {
    if (bytes > bytes_) {
        if (data_) QUOIN_CUDA_CHECK(cudaFreeHost(std::exchange(data_, nullptr)));
        bytes_ = 0;
        QUOIN_CUDA_CHECK(cudaHostAlloc(&data_, bytes, cudaHostAllocDefault));
        bytes_ = bytes;
    }
    return data_;
}

}  // namespace cuda

CurrentDevice::CurrentDevice(int device) {
    cuda::check(cudaGetDevice(&before_), "cudaGetDevice");
    if (device == before_) return;
    const cudaError_t status = cudaSetDevice(device);
    if (status != cudaSuccess) cudaGetLastError();  // no failure of what follows on the device that stays current
    cuda::check(status, "cudaSetDevice");
}
CurrentDevice::~CurrentDevice() {
    int current = before_;
    if (cudaGetDevice(&current) == cudaSuccess && current != before_) cudaSetDevice(before_);
}

// ---- Context -----------------------------------------------------------------------------------------------------------

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
void Context<Cuda>::follow(CudaStream other) { state_->order(other, stream()); }
void Context<Cuda>::precede(CudaStream other) { state_->order(stream(), other); }
void Context<Cuda>::wait() const { QUOIN_CUDA_CHECK(cudaStreamSynchronize(queue_->stream)); }

double Context<Cuda>::flops_done() const { return state_->flops_done(); }
void Context<Cuda>::reset_progress() { state_->flops -= state_->flops_done(); }
void Context<Cuda>::request_stop() noexcept { state_->stop = true; }
void Context<Cuda>::clear_stop() noexcept { state_->stop = false; }

void Context<Cuda>::attach(Trace* trace) {
    state_->attach(trace, trace ? std::make_shared<const cuda::TraceClock>(stream(), *trace) : nullptr);
}
Trace* Context<Cuda>::trace() const { return state_->trace; }

Context<Cuda>::State::State(detail::DeviceQueue& queue) : arena(queue), queue_(queue) {
    int bytes;
    QUOIN_CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, queue.device));
    QUOIN_CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, queue.device));
    shared_bytes = static_cast<std::size_t>(bytes);
}

Context<Cuda>::State::~State() {
    // a panel that the host has factored may be on its way from there
    if (panel_staging_.bytes() > 0) cudaStreamSynchronize(queue_.stream);
    for (auto& one : sides_) one.reset();
    lanes_.clear();
    if (blas_) cublasDestroy(blas_);
    if (solver_) cusolverDnDestroy(solver_);
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

void Context<Cuda>::State::order(cudaStream_t first, cudaStream_t second) {
    if (!event_) QUOIN_CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    QUOIN_CUDA_CHECK(cudaEventRecord(event_, first));
    QUOIN_CUDA_CHECK(cudaStreamWaitEvent(second, event_, 0));
}

std::size_t Context<Cuda>::State::held() const {
    std::uint64_t pooled = 0;
    QUOIN_CUDA_CHECK(cudaMemPoolGetAttribute(queue_.pool, cudaMemPoolAttrReservedMemCurrent, &pooled));
    std::size_t sum = pooled + (blas_ ? cublas_workspace_bytes : 0);
    for_each_own([&](Context<Cuda>& one) { sum += one.state().held(); });
    return sum;
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

// ---- Time ---------------------------------------------------------------------------------------------------------------

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

// ---- Order ----------------------------------------------------------------------------------------------------------------

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

// ---- Memory ------------------------------------------------------------------------------------------------------------

template <>
Context<Host>& host_context(Context<Cuda>& ctx) {
    return ctx.state().host();
}
template <>
void* pinned_staging(Context<Cuda>& ctx, std::size_t bytes) {
    return ctx.state().staging_of_panels(bytes);
}

template <>
MemoryInUse memory_in_use(Context<Cuda>& ctx) {
    const double own = static_cast<double>(ctx.state().held());
    return {own, static_cast<double>(device_memory(ctx).free) + own};
}

template <>
void limit_workspace(Context<Cuda>& ctx, double bytes) {
    ctx.state().arena.limit(static_cast<std::size_t>(std::max(0.0, bytes)));
}

DeviceMemory device_memory(const Context<Cuda>&) {
    DeviceMemory memory;
    QUOIN_CUDA_CHECK(cudaMemGetInfo(&memory.free, &memory.total));
    return memory;
}

// ---- Measurements ------------------------------------------------------------------------------------------------------

template <class T>
double orthogonality(Context<Cuda>& ctx, MatrixView<const T, Cuda> Q) {
    Context<Host> host;
    return orthogonality<T>(host, copy_to_host<T>(ctx, Q).view());
}

template <class T>
double residual(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<const T, Cuda> Q,
                MatrixView<const T, Cuda> R) {
    Context<Host> host;
    return residual<T>(host, copy_to_host<T>(ctx, A).view(), copy_to_host<T>(ctx, Q).view(),
                       copy_to_host<T>(ctx, R).view());
}

#define QUOIN_INSTANTIATE(T)                                                                          \
    template double orthogonality<T>(Context<Cuda>&, MatrixView<const T, Cuda>);                      \
    template double residual<T>(Context<Cuda>&, MatrixView<const T, Cuda>, MatrixView<const T, Cuda>, \
                                MatrixView<const T, Cuda>);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
