// What comes from the host's memory and goes back to it, on streams of their own. Pinned memory is read and written in place.
// Pageable memory is copied to and from a bounded pool of pinned buffers by the host's cores: to pin it would cost a GiB a tenth
// of a second or more in pages of 4 KiB, as long as six times its way over the bus, and take all of it from the system.

#include "cuda/staged_copies.hpp"

#include <memory>

#include "cuda/device.hpp"
#include "cuda/host_blocks.hpp"
#include "cuda/state.hpp"

namespace quoin {

namespace cuda {

namespace {

template <class T>
struct HostCopy {
    MatrixView<const T> from;
    MatrixView<T> to;

    static void enqueue(cudaStream_t stream, MatrixView<const T> from, MatrixView<T> to) {
        auto copy = std::make_unique<HostCopy>(HostCopy{from, to});
        QUOIN_CUDA_CHECK(cudaLaunchHostFunc(
            stream,
            [](void* data) {
                const std::unique_ptr<HostCopy> self(static_cast<HostCopy*>(data));
                copy_in_parallel<T>(self->from, self->to);
            },
            copy.get()));
        copy.release();  // its own from now on
    }
};

}  // namespace

StagedCopies::StagedCopies() : memory_(static_cast<Index>(bytes), count) {
    try {
        // large pages touched by all cores are pinned in a tenth of the time that cudaHostAlloc takes
        constexpr Index page = 4096;
#pragma omp parallel for schedule(static)
        for (Index i = 0; i < memory_.rows() * count; i += page) memory_.data()[i] = std::byte(0);
        QUOIN_CUDA_CHECK(cudaHostRegister(memory_.data(), count * bytes, cudaHostRegisterDefault));
        pinned_ = true;
        QUOIN_CUDA_CHECK(cudaStreamCreateWithFlags(&host_, cudaStreamNonBlocking));
        QUOIN_CUDA_CHECK(cudaEventCreateWithFlags(&begun_, cudaEventDisableTiming));
        for (Buffer& buffer : buffers_) {
            buffer.data = memory_.data() + (&buffer - buffers_) * static_cast<std::ptrdiff_t>(bytes);
            QUOIN_CUDA_CHECK(cudaEventCreateWithFlags(&buffer.filled, cudaEventDisableTiming));
            QUOIN_CUDA_CHECK(cudaEventCreateWithFlags(&buffer.emptied, cudaEventDisableTiming));
        }
    } catch (...) {
        release();
        throw;
    }
}

StagedCopies::~StagedCopies() {
    cudaStreamSynchronize(host_);
    for (const Buffer& buffer : buffers_) {
        cudaEventSynchronize(buffer.filled);
        cudaEventSynchronize(buffer.emptied);
    }
    release();
}

void StagedCopies::release() noexcept {
    for (const Buffer& buffer : buffers_) {
        if (buffer.filled) cudaEventDestroy(buffer.filled);
        if (buffer.emptied) cudaEventDestroy(buffer.emptied);
    }
    if (pinned_) cudaHostUnregister(memory_.data());
    if (begun_) cudaEventDestroy(begun_);
    if (host_) cudaStreamDestroy(host_);
}

void StagedCopies::order(cudaEvent_t event, cudaStream_t first, cudaStream_t second) {
    QUOIN_CUDA_CHECK(cudaEventRecord(event, first));
    QUOIN_CUDA_CHECK(cudaStreamWaitEvent(second, event, 0));
}

template <class T>
void StagedCopies::in(cudaStream_t stream, MatrixView<const T> A, MatrixView<T, Cuda> B) {
    order(begun_, stream, host_);
    for_each_block(A.rows, A.cols, Index(bytes / sizeof(T)), [&](Range r, Range c) {
        Buffer& buffer = next();
        const MatrixView<T> staged(reinterpret_cast<T*>(buffer.data), r.size(), c.size());
        QUOIN_CUDA_CHECK(cudaStreamWaitEvent(host_, buffer.emptied, 0));
        HostCopy<T>::enqueue(host_, A.block(r, c), staged);
        order(buffer.filled, host_, stream);
        enqueue_copy(B.at(r.begin, c.begin), B.ld, staged.data, staged.ld, r.size(), c.size(), cudaMemcpyHostToDevice,
                     stream);
        QUOIN_CUDA_CHECK(cudaEventRecord(buffer.emptied, stream));
    });
}

template <class T>
void StagedCopies::out(cudaStream_t stream, MatrixView<const T, Cuda> A, MatrixView<T> B) {
    for_each_block(A.rows, A.cols, Index(bytes / sizeof(T)), [&](Range r, Range c) {
        Buffer& buffer = next();
        const MatrixView<T> staged(reinterpret_cast<T*>(buffer.data), r.size(), c.size());
        QUOIN_CUDA_CHECK(cudaStreamWaitEvent(stream, buffer.emptied, 0));
        enqueue_copy(staged.data, staged.ld, A.at(r.begin, c.begin), A.ld, r.size(), c.size(), cudaMemcpyDeviceToHost,
                     stream);
        order(buffer.filled, stream, host_);
        HostCopy<T>::enqueue(host_, staged, B.block(r, c));
        QUOIN_CUDA_CHECK(cudaEventRecord(buffer.emptied, host_));
    });
}

void StagedCopies::finish(cudaStream_t stream) { order(begun_, host_, stream); }

}  // namespace cuda

template <>
Context<Cuda>& copy_in_stream(Context<Cuda>& ctx) {
    return ctx.state().beside(Trace::Row::ToDevice);
}
template <>
Context<Cuda>& copy_out_stream(Context<Cuda>& ctx) {
    return ctx.state().beside(Trace::Row::ToHost);
}

template <>
void finish_copies(Context<Cuda>& ctx) {
    if (cuda::StagedCopies* const copies = ctx.state().staged_copies_made()) copies->finish(ctx.stream());
}

namespace {

/// Between pinned memory and the device, in pieces: the few bytes that a panel's decisions take over the bus, on another stream,
/// would wait for one large copy to end.
template <class T>
void copy_in_pieces(T* to, Index to_ld, const T* from, Index from_ld, Index h, Index q, cudaMemcpyKind kind,
                    cudaStream_t stream) {
    cuda::for_each_block(h, q, Index(cuda::StagedCopies::bytes / sizeof(T)), [&](Range r, Range c) {
        cuda::enqueue_copy(to + r.begin + c.begin * to_ld, to_ld, from + r.begin + c.begin * from_ld, from_ld, r.size(),
                           c.size(), kind, stream);
    });
}

}  // namespace

template <class T, class D>
void start_copy_from_host(Context<D>& ctx, View<const T, Host> A, View<T, D> B) {
    if (A.empty()) return;
    if (!cuda::is_pinned(A.data)) return ctx.state().staged_copies().template in<T>(ctx.stream(), A, B);
    copy_in_pieces(B.data, B.ld, A.data, A.ld, A.rows, A.cols, cudaMemcpyHostToDevice, ctx.stream());
}

template <class T, class D>
void start_copy_to_host(Context<D>& ctx, View<const T, D> A, View<T, Host> B) {
    if (A.empty()) return;
    if (!cuda::is_pinned(B.data)) return ctx.state().staged_copies().template out<T>(ctx.stream(), A, B);
    copy_in_pieces(B.data, B.ld, A.data, A.ld, A.rows, A.cols, cudaMemcpyDeviceToHost, ctx.stream());
}

QUOIN_IMPLEMENT(Cuda, start_copy_from_host, start_copy_to_host)
template decltype(start_copy_from_host<int, Cuda>) start_copy_from_host<int, Cuda>;
template decltype(start_copy_to_host<int, Cuda>) start_copy_to_host<int, Cuda>;

}  // namespace quoin
