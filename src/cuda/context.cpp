#include <cstdint>
#include <cstring>
#include <limits>

#include "cuda/primitives.hpp"
#include "cuda/state.hpp"

namespace quoin {

namespace detail {

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
    if (stream) return;
    int lowest, highest;
    QUOIN_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
    QUOIN_CUDA_CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, high_priority ? highest : lowest));
    owns_stream = true;
}

DeviceQueue::~DeviceQueue() {
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
        // once more without what the pool keeps for later
        cudaGetLastError();
        QUOIN_CUDA_CHECK(cudaStreamSynchronize(queue.stream));
        QUOIN_CUDA_CHECK(cudaMemPoolTrimTo(queue.pool, 0));
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

Staging::Staging() {
    for (int b = 0; b < 2; ++b) {
        QUOIN_CUDA_CHECK(cudaHostAlloc(&buffer[b], bytes, cudaHostAllocDefault));
        QUOIN_CUDA_CHECK(cudaEventCreateWithFlags(&done[b], cudaEventDisableTiming));
    }
}

Staging::~Staging() {
    for (int b = 0; b < 2; ++b) {
        if (done[b]) cudaEventDestroy(done[b]);
        if (buffer[b]) cudaFreeHost(buffer[b]);
    }
}

}  // namespace cuda

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
void Context<Cuda>::wait() const { QUOIN_CUDA_CHECK(cudaStreamSynchronize(queue_->stream)); }

double Context<Cuda>::flops_done() const { return state_->flops_done(); }
void Context<Cuda>::reset_progress() { state_->flops -= state_->flops_done(); }
void Context<Cuda>::request_stop() noexcept { state_->stop = true; }
void Context<Cuda>::clear_stop() noexcept { state_->stop = false; }

Context<Cuda>::State::State(detail::DeviceQueue& queue) : arena(queue), queue_(queue) {
    int bytes;
    QUOIN_CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, queue.device));
    QUOIN_CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, queue.device));
    shared_bytes = static_cast<std::size_t>(bytes);
}

Context<Cuda>::State::~State() {
    side_.reset();
    if (blas_) cublasDestroy(blas_);
    if (solver_) cusolverDnDestroy(solver_);
    if (event_) cudaEventDestroy(event_);
    if (pinned_) cudaFreeHost(pinned_);
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

cuda::Staging& Context<Cuda>::State::staging() {
    if (!staging_) staging_ = std::make_unique<cuda::Staging>();
    return *staging_;
}

Context<Cuda>& Context<Cuda>::State::side() {
    if (!side_) side_.reset(new Context<Cuda>(HighPriority{}));
    return *side_;
}

void Context<Cuda>::State::order(Context<Cuda>& first, Context<Cuda>& second) {
    if (!event_) QUOIN_CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    QUOIN_CUDA_CHECK(cudaEventRecord(event_, first.stream()));
    QUOIN_CUDA_CHECK(cudaStreamWaitEvent(second.stream(), event_, 0));
}

double Context<Cuda>::State::flops_done() const {
    return flops.load(std::memory_order_relaxed) + (side_ ? side_->flops_done() : 0);
}

const void* Context<Cuda>::State::read_back_bytes(const void* p, std::size_t bytes) {
    if (bytes > pinned_bytes_) {
        if (pinned_) QUOIN_CUDA_CHECK(cudaFreeHost(pinned_));
        pinned_ = nullptr;
        pinned_bytes_ = 0;
        const std::size_t size = std::max<std::size_t>(bytes, 1 << 16);
        QUOIN_CUDA_CHECK(cudaHostAlloc(&pinned_, size, cudaHostAllocDefault));
        pinned_bytes_ = size;
    }
    if (bytes > 0) QUOIN_CUDA_CHECK(cudaMemcpyAsync(pinned_, p, bytes, cudaMemcpyDeviceToHost, queue_.stream));
    QUOIN_CUDA_CHECK(cudaStreamSynchronize(queue_.stream));
    return pinned_;
}

void throw_if_stopped(Context<Cuda>& ctx) {
    if (ctx.state().stop.load(std::memory_order_relaxed)) throw Interrupted();
}

Context<Cuda>& work_beside(Context<Cuda>& ctx) {
    Context<Cuda>& beside = ctx.state().side();
    ctx.state().order(ctx, beside);
    return beside;
}

void wait_for(Context<Cuda>& ctx, Context<Cuda>& beside) { ctx.state().order(beside, ctx); }

// ---- Transfers ---------------------------------------------------------------------------------------------------------

namespace {

/// The widest row of a two-dimensional copy that CUDA takes.
constexpr Index most_pitch = std::numeric_limits<std::int32_t>::max();

bool is_pinned(const void* p) {
    cudaPointerAttributes attributes;
    QUOIN_CUDA_CHECK(cudaPointerGetAttributes(&attributes, p));
    return attributes.type != cudaMemoryTypeUnregistered;
}

void copy_columns(void* to, Index to_ld, const void* from, Index from_ld, Index h, Index q, Index size,
                  cudaMemcpyKind kind, cudaStream_t stream) {
    if (q == 1) {
        QUOIN_CUDA_CHECK(cudaMemcpyAsync(to, from, h * size, kind, stream));
    } else {
        QUOIN_CUDA_CHECK(cudaMemcpy2DAsync(to, to_ld * size, from, from_ld * size, h * size, q, kind, stream));
    }
}

/// Calls f(rows, columns) for blocks of at most `capacity` elements, in order; single columns where a leading dimension
/// is beyond what a two-dimensional copy takes.
template <class F>
void for_each_block(Index m, Index n, Index capacity, bool single_columns, F f) {
    const Index h = std::min(m, capacity), q = single_columns ? 1 : std::max<Index>(1, capacity / h);
    for (Index j = 0; j < n; j += q) {
        for (Index i = 0; i < m; i += h) f(Range{i, std::min(m, i + h)}, Range{j, std::min(n, j + q)});
    }
}

template <class T>
void pack(MatrixView<const T> A, T* buffer) {
#pragma omp parallel for schedule(static)
    for (Index j = 0; j < A.cols; ++j) std::copy_n(A.at(0, j), A.rows, buffer + j * A.rows);
}

template <class T>
void unpack(const T* buffer, MatrixView<T> A) {
#pragma omp parallel for schedule(static)
    for (Index j = 0; j < A.cols; ++j) std::copy_n(buffer + j * A.rows, A.rows, A.at(0, j));
}

template <class T>
bool wide(Index a, Index b) {
    return std::max(a, b) * Index(sizeof(T)) > most_pitch;
}

}  // namespace

template <class T>
void copy_to_device(Context<Cuda>& ctx, MatrixView<const T, Host> A, MatrixView<T, Cuda> B) {
    if (A.empty()) return;
    const cudaStream_t stream = ctx.stream();
    const bool single = wide<T>(A.ld, B.ld);
    if (is_pinned(A.data)) {
        for_each_block(A.rows, A.cols, std::numeric_limits<Index>::max(), single, [&](Range r, Range c) {
            copy_columns(B.at(r.begin, c.begin), B.ld, A.at(r.begin, c.begin), A.ld, r.size(), c.size(), sizeof(T),
                         cudaMemcpyHostToDevice, stream);
        });
        return ctx.wait();
    }
    cuda::Staging& staging = ctx.state().staging();
    int b = 0;
    for_each_block(A.rows, A.cols, Index(cuda::Staging::bytes / sizeof(T)), single, [&](Range r, Range c) {
        T* buffer = static_cast<T*>(staging.buffer[b]);
        QUOIN_CUDA_CHECK(cudaEventSynchronize(staging.done[b]));
        pack(A.block(r, c), buffer);
        copy_columns(B.at(r.begin, c.begin), B.ld, buffer, r.size(), r.size(), c.size(), sizeof(T),
                     cudaMemcpyHostToDevice, stream);
        QUOIN_CUDA_CHECK(cudaEventRecord(staging.done[b], stream));
        b = 1 - b;
    });
}

template <class T>
void copy_to_host(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<T, Host> B) {
    if (A.empty()) return ctx.wait();
    const cudaStream_t stream = ctx.stream();
    const bool single = wide<T>(A.ld, B.ld);
    if (is_pinned(B.data)) {
        for_each_block(A.rows, A.cols, std::numeric_limits<Index>::max(), single, [&](Range r, Range c) {
            copy_columns(B.at(r.begin, c.begin), B.ld, A.at(r.begin, c.begin), A.ld, r.size(), c.size(), sizeof(T),
                         cudaMemcpyDeviceToHost, stream);
        });
        return ctx.wait();
    }
    cuda::Staging& staging = ctx.state().staging();
    MatrixView<T, Host> arriving[2];
    const auto arrive = [&](int b) {
        if (!arriving[b].data) return;
        QUOIN_CUDA_CHECK(cudaEventSynchronize(staging.done[b]));
        unpack(static_cast<const T*>(staging.buffer[b]), arriving[b]);
        arriving[b] = {};
    };
    int b = 0;
    for_each_block(A.rows, A.cols, Index(cuda::Staging::bytes / sizeof(T)), single, [&](Range r, Range c) {
        arrive(b);
        copy_columns(staging.buffer[b], r.size(), A.at(r.begin, c.begin), A.ld, r.size(), c.size(), sizeof(T),
                     cudaMemcpyDeviceToHost, stream);
        QUOIN_CUDA_CHECK(cudaEventRecord(staging.done[b], stream));
        arriving[b] = B.block(r, c);
        b = 1 - b;
    });
    arrive(b);
    arrive(1 - b);
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
    template void copy_to_device<T>(Context<Cuda>&, MatrixView<const T, Host>, MatrixView<T, Cuda>);  \
    template void copy_to_host<T>(Context<Cuda>&, MatrixView<const T, Cuda>, MatrixView<T, Host>);    \
    template double orthogonality<T>(Context<Cuda>&, MatrixView<const T, Cuda>);                      \
    template double residual<T>(Context<Cuda>&, MatrixView<const T, Cuda>, MatrixView<const T, Cuda>, \
                                MatrixView<const T, Cuda>);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
