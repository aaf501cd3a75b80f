// Memory of the device in the order of a stream, workspace, and pinned memory of the host.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <utility>

#include "cuda/runtime/device.hpp"
#include "cuda/runtime/state.hpp"

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
    /// Returns the spare memory of all pools on a device.
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

namespace {

/// The pool takes memory of the device in chunks of this size.
constexpr std::size_t pool_chunk = std::size_t(32) << 20;

/// Whether a graph captures the stream, which nothing may wait for then.
bool is_captured(cudaStream_t stream) {
    cudaStreamCaptureStatus status;
    QUOIN_CUDA_CHECK(cudaStreamIsCapturing(stream, &status));
    return status != cudaStreamCaptureStatusNone;
}

/// Returns up to `bytes` of spare memory of the queue's pool to the device. Waits: the pool can return what the stream
/// has freed, not what it will free.
void trim(detail::DeviceQueue& queue, std::uint64_t bytes) {
    std::uint64_t reserved = 0;
    QUOIN_CUDA_CHECK(cudaStreamSynchronize(queue.stream));
    QUOIN_CUDA_CHECK(cudaMemPoolGetAttribute(queue.pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
    QUOIN_CUDA_CHECK(cudaMemPoolTrimTo(queue.pool, reserved - std::min(reserved, bytes)));
}

}  // namespace

Arena::~Arena() {
    release(0, 0);
    detail::free_device(queue_, base_);
}

void* Arena::take(std::size_t bytes) {
    bytes = (bytes + 255) / 256 * 256;
    if (peak_ > std::max(size_, pool_chunk) && used_ == 0 && extra_.empty() && !is_captured(queue_.stream)) {
        // one block takes the place of the base and of earlier frames' extras. They return to the device first: the
        // pool does not join them.
        const std::size_t whole = (std::exchange(peak_, 0) + pool_chunk - 1) / pool_chunk * pool_chunk;
        detail::free_device(queue_, std::exchange(base_, nullptr));
        size_ = 0;
        try {
            trim(queue_, whole);
            base_ = static_cast<char*>(detail::allocate_device(queue_, whole));
            size_ = whole;
        } catch (const OutOfMemory&) {
            // the frame finds out whether there is memory for what it takes
        }
    }
    peak_ = std::max(peak_, used_ + extra_bytes_ + bytes);
    if (used_ + bytes <= size_) {
        void* p = base_ + used_;
        used_ += bytes;
        return p;
    }
    extra_.push_back({detail::allocate_device(queue_, bytes), bytes});
    extra_bytes_ += bytes;
    return extra_.back().data;
}

void Arena::limit(std::size_t bytes) {
    limited_ = bytes > 0;
    if (!limited_) return;
    detail::free_device(queue_, std::exchange(base_, nullptr));
    size_ = peak_ = 0;
    trim(queue_, std::numeric_limits<std::uint64_t>::max());
    base_ = static_cast<char*>(detail::allocate_device(queue_, bytes));
    size_ = bytes;
}

void Arena::release(std::size_t used, std::size_t extra) noexcept {
    while (extra_.size() > extra) {
        detail::free_device(queue_, extra_.back().data);
        extra_bytes_ -= extra_.back().bytes;
        extra_.pop_back();
    }
    used_ = used;
    // a small base grows at once, so that a second call can be captured
    if (used_ > 0 || !extra_.empty() || peak_ <= size_ || peak_ > pool_chunk) return;
    detail::free_device(queue_, std::exchange(base_, nullptr));
    size_ = 0;
    try {
        base_ = static_cast<char*>(detail::allocate_device(queue_, peak_));
        size_ = peak_;
    } catch (const Error&) {
        // the next call finds out whether there is memory for it
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

std::size_t Context<Cuda>::State::held() const {
    std::uint64_t pooled = 0;
    QUOIN_CUDA_CHECK(cudaMemPoolGetAttribute(queue_.pool, cudaMemPoolAttrReservedMemCurrent, &pooled));
    std::size_t sum = pooled + (blas_ ? cublas_workspace_bytes : 0);
    for_each_own([&](Context<Cuda>& one) { sum += one.state().held(); });
    return sum;
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

}  // namespace quoin
