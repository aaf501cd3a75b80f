// Copies between the host's memory and the device. Pinned memory is read and written in place. The host's cores copy
// pageable memory to and from a bounded pool of pinned buffers. Pinning it instead would take a tenth of a second or
// more for a GiB in pages of 4 KiB, six times the time of its way over the bus, and would keep all of it from the
// system.

#include "cuda/runtime/staging.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "cuda/runtime/device.hpp"
#include "cuda/runtime/state.hpp"

namespace quoin {

namespace cuda {

namespace {

/// The widest row of a two-dimensional copy that CUDA takes.
constexpr Index max_pitch = std::numeric_limits<std::int32_t>::max();

bool is_pinned(const void* p) {
    cudaPointerAttributes attributes;
    QUOIN_CUDA_CHECK(cudaPointerGetAttributes(&attributes, p));
    return attributes.type != cudaMemoryTypeUnregistered;
}

/// h×q elements between pinned memory and the device.
template <class T>
void enqueue_copy(T* to, Index to_ld, const T* from, Index from_ld, Index h, Index q, cudaMemcpyKind kind,
                  cudaStream_t stream) {
    const Index size = sizeof(T);
    if (h == 0) return;
    if (to_ld == h && from_ld == h) {
        QUOIN_CUDA_CHECK(cudaMemcpyAsync(to, from, h * q * size, kind, stream));
        return;
    }
    if (q > 1 && std::max(to_ld, from_ld) * size <= max_pitch) {
        QUOIN_CUDA_CHECK(cudaMemcpy2DAsync(to, to_ld * size, from, from_ld * size, h * size, q, kind, stream));
        return;
    }
    for (Index j = 0; j < q; ++j) {
        QUOIN_CUDA_CHECK(cudaMemcpyAsync(to + j * to_ld, from + j * from_ld, h * size, kind, stream));
    }
}
template <class T>
void enqueue_copy_in(MatrixView<const T> from, MatrixView<T, Cuda> to, cudaStream_t stream) {
    enqueue_copy(to.data, to.ld, from.data, from.ld, to.rows, to.cols, cudaMemcpyHostToDevice, stream);
}
template <class T>
void enqueue_copy_out(MatrixView<const T, Cuda> from, MatrixView<T> to, cudaStream_t stream) {
    enqueue_copy(to.data, to.ld, from.data, from.ld, to.rows, to.cols, cudaMemcpyDeviceToHost, stream);
}

/// Calls f(rows, columns) for blocks of at most `capacity` elements, in order.
template <class F>
void for_each_block(Index m, Index n, Index capacity, F f) {
    const Index h = std::min(m, capacity), q = std::max<Index>(1, capacity / h);
    for (Index j = 0; j < n; j += q) {
        for (Index i = 0; i < m; i += h) f(Range{i, std::min(m, i + h)}, Range{j, std::min(n, j + q)});
    }
}

/// B := A in host memory, by all threads.
template <class T>
void copy_in_parallel(MatrixView<const T> A, MatrixView<T> B) {
    constexpr Index piece = Tuning<Cuda>::staging_piece;
#pragma omp parallel for collapse(2) schedule(static) if (A.rows * A.cols > piece)
    for (Index j = 0; j < A.cols; ++j) {
        for (Index i = 0; i < A.rows; i += piece) {
            std::copy_n(A.at(i, j), std::min(piece, A.rows - i), B.at(i, j));
        }
    }
}

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

/// The first two buffers in turn, each of at least `elements`, filled by the caller and on their way to the device.
template <class T>
class Departures {
public:
    Departures(Context<Cuda>& ctx, Index elements)
        : stream_(ctx.stream()),
          staging_(ctx.state().staging()),
          bytes_(static_cast<std::size_t>(elements) * sizeof(T)) {}

    /// A free buffer for an h×q block, its columns next to each other.
    MatrixView<T> next(Index h, Index q) {
        Staging::Buffer& buffer = staging_.buffer(b_, bytes_);
        buffer.wait();
        return buffer.block<T>(h, q);
    }
    void send(MatrixView<const T> block, MatrixView<T, Cuda> B) {
        enqueue_copy_in<T>(block, B, stream_);
        QUOIN_CUDA_CHECK(cudaEventRecord(staging_.buffer(b_, bytes_).used, stream_));
        b_ = 1 - b_;
    }

private:
    cudaStream_t stream_;
    Staging& staging_;
    const std::size_t bytes_;
    int b_ = 0;
};

/// Copies from the device. Calls `take(block, rows, columns)` for a block once it has arrived, while the next one is on
/// its way.
template <class T>
class Arrivals {
public:
    using Take = std::function<void(MatrixView<const T>, Range, Range)>;
    Arrivals(Context<Cuda>& ctx, Index elements, Take take)
        : stream_(ctx.stream()),
          staging_(ctx.state().staging()),
          bytes_(static_cast<std::size_t>(elements) * sizeof(T)),
          take_(std::move(take)) {}

    void fetch(MatrixView<const T, Cuda> A, Range rows, Range columns) {
        arrive(b_);
        Staging::Buffer& buffer = staging_.buffer(b_, bytes_);
        QUOIN_CUDA_CHECK(cudaStreamWaitEvent(stream_, buffer.used, 0));
        enqueue_copy_out<T>(A.block(rows, columns), buffer.block<T>(rows.size(), columns.size()), stream_);
        QUOIN_CUDA_CHECK(cudaEventRecord(buffer.used, stream_));
        expected_[b_] = {rows, columns};
        b_ = 1 - b_;
    }
    void finish() {
        arrive(b_);
        arrive(1 - b_);
    }

private:
    struct Block {
        Range rows, columns;
    };
    void arrive(int b) {
        const Block block = std::exchange(expected_[b], {});
        if (block.rows.size() == 0) return;
        Staging::Buffer& buffer = staging_.buffer(b, bytes_);
        buffer.wait();
        take_(buffer.block<T>(block.rows.size(), block.columns.size()), block.rows, block.columns);
    }

    cudaStream_t stream_;
    Staging& staging_;
    const std::size_t bytes_;
    Take take_;
    Block expected_[2];
    int b_ = 0;
};

/// Bytes of a piece that the caller fills or empties.
template <class T>
constexpr Index staged_elements = Tuning<Cuda>::passed_bytes / Index(sizeof(T));

/// Rows of n elements that travel together.
template <class T>
Index staged_rows(Index n) {
    return std::max<Index>(1, staged_elements<T> / std::max<Index>(1, n));
}

}  // namespace

Staging::Staging() {
    try {
        QUOIN_CUDA_CHECK(cudaStreamCreateWithFlags(&host_, cudaStreamNonBlocking));
        QUOIN_CUDA_CHECK(cudaEventCreateWithFlags(&begun_, cudaEventDisableTiming));
        for (Buffer& buffer : buffers_) {
            QUOIN_CUDA_CHECK(cudaEventCreateWithFlags(&buffer.filled, cudaEventDisableTiming));
            QUOIN_CUDA_CHECK(cudaEventCreateWithFlags(&buffer.used, cudaEventDisableTiming));
        }
    } catch (...) {
        release();
        throw;
    }
}

Staging::~Staging() {
    cudaStreamSynchronize(host_);
    for (const Buffer& buffer : buffers_) {
        cudaEventSynchronize(buffer.filled);
        cudaEventSynchronize(buffer.used);
    }
    release();
}

void Staging::release() noexcept {
    for (Buffer& buffer : buffers_) {
        if (buffer.filled) cudaEventDestroy(buffer.filled);
        if (buffer.used) cudaEventDestroy(buffer.used);
        if (buffer.memory.rows() > 0) cudaHostUnregister(buffer.memory.data());
    }
    if (begun_) cudaEventDestroy(begun_);
    if (host_) cudaStreamDestroy(host_);
}

Staging::Buffer& Staging::buffer(int b, std::size_t least) {
    Buffer& buffer = buffers_[b];
    if (static_cast<std::size_t>(buffer.memory.rows()) >= least && buffer.memory.rows() > 0) return buffer;
    if (buffer.memory.rows() > 0) {
        buffer.wait();
        QUOIN_CUDA_CHECK(cudaHostUnregister(buffer.memory.data()));
        buffer.memory = {};
    }
    // large pages touched by all cores are pinned in a tenth of the time that cudaHostAlloc takes
    Matrix<std::byte> memory(static_cast<Index>(std::max(least, bytes)), 1);
    constexpr Index page = 4096;
#pragma omp parallel for schedule(static)
    for (Index i = 0; i < memory.rows(); i += page) memory.data()[i] = std::byte(0);
    QUOIN_CUDA_CHECK(cudaHostRegister(memory.data(), static_cast<std::size_t>(memory.rows()), cudaHostRegisterDefault));
    buffer.memory = std::move(memory);
    return buffer;
}

void Staging::pin_all() {
    for (int b = 0; b < count; ++b) buffer(b, bytes);
}

template <class T>
void Staging::in(cudaStream_t stream, MatrixView<const T> A, MatrixView<T, Cuda> B) {
    pin_all();
    order(begun_, stream, host_);
    for_each_block(A.rows, A.cols, Index(bytes / sizeof(T)), [&](Range r, Range c) {
        Buffer& buffer = next();
        const MatrixView<T> staged = buffer.block<T>(r.size(), c.size());
        QUOIN_CUDA_CHECK(cudaStreamWaitEvent(host_, buffer.used, 0));
        HostCopy<T>::enqueue(host_, A.block(r, c), staged);
        order(buffer.filled, host_, stream);
        enqueue_copy_in<T>(staged, B.block(r, c), stream);
        QUOIN_CUDA_CHECK(cudaEventRecord(buffer.used, stream));
    });
}

template <class T>
void Staging::out(cudaStream_t stream, MatrixView<const T, Cuda> A, MatrixView<T> B) {
    pin_all();
    for_each_block(A.rows, A.cols, Index(bytes / sizeof(T)), [&](Range r, Range c) {
        Buffer& buffer = next();
        const MatrixView<T> staged = buffer.block<T>(r.size(), c.size());
        QUOIN_CUDA_CHECK(cudaStreamWaitEvent(stream, buffer.used, 0));
        enqueue_copy_out<T>(A.block(r, c), staged, stream);
        order(buffer.filled, stream, host_);
        HostCopy<T>::enqueue(host_, staged, B.block(r, c));
        QUOIN_CUDA_CHECK(cudaEventRecord(buffer.used, host_));
    });
}

void Staging::finish(cudaStream_t stream) { order(begun_, host_, stream); }

}  // namespace cuda

using namespace cuda;

// ---- The caller waits -----------------------------------------------------------------------------------------------

template <class T>
void copy_to_device(Context<Cuda>& ctx, MatrixView<const T, Host> A, MatrixView<T, Cuda> B) {
    if (A.empty()) return;
    const Span span(ctx, "copy in", -1, Trace::Row::ToDevice);
    if (is_pinned(A.data)) {
        enqueue_copy_in<T>(A, B, ctx.stream());
        return ctx.wait();
    }
    Departures<T> departures(ctx, staged_elements<T>);
    for_each_block(A.rows, A.cols, staged_elements<T>, [&](Range r, Range c) {
        const MatrixView<T> block = departures.next(r.size(), c.size());
        copy_in_parallel<T>(A.block(r, c), block);
        departures.send(block, B.block(r, c));
    });
}

template <class T>
void copy_to_host(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<T, Host> B) {
    if (A.empty()) return ctx.wait();
    const Span span(ctx, "copy out", -1, Trace::Row::ToHost);
    if (is_pinned(B.data)) {
        enqueue_copy_out<T>(A, B, ctx.stream());
        return ctx.wait();
    }
    Arrivals<T> arrivals(ctx, staged_elements<T>, [&](MatrixView<const T> block, Range r, Range c) {
        copy_in_parallel<T>(block, B.block(r, c));
    });
    for_each_block(A.rows, A.cols, staged_elements<T>, [&](Range r, Range c) { arrivals.fetch(A, r, c); });
    arrivals.finish();
}

template <class T, class D>
void copy_rows_to_device(Context<D>& ctx, const RowReader<T>& read, View<T, D> B) {
    const Span span(ctx, "copy in", -1, Trace::Row::ToDevice);
    const Index step = staged_rows<T>(B.cols);
    Departures<T> departures(ctx, step * B.cols);
    for (Index i = 0; i < B.rows; i += step) {
        const Range rows{i, std::min(B.rows, i + step)};
        const MatrixView<T> block = departures.next(rows.size(), B.cols);
        read(rows, block);
        departures.send(block, B.row_block(rows));
    }
}

template <class T, class D>
void copy_rows_to_host(Context<D>& ctx, View<const T, D> A, const RowWriter<T>& write) {
    const Span span(ctx, "copy out", -1, Trace::Row::ToHost);
    const Index step = staged_rows<T>(A.cols);
    Arrivals<T> arrivals(ctx, step * A.cols, [&](MatrixView<const T> block, Range rows, Range) { write(rows, block); });
    for (Index i = 0; i < A.rows; i += step) arrivals.fetch(A, {i, std::min(A.rows, i + step)}, {0, A.cols});
    arrivals.finish();
    ctx.wait();
}

// ---- Nobody waits ---------------------------------------------------------------------------------------------------

template <>
Context<Cuda>& copy_in_stream(Context<Cuda>& ctx) {
    return ctx.state().side(Trace::Row::ToDevice);
}
template <>
Context<Cuda>& copy_out_stream(Context<Cuda>& ctx) {
    return ctx.state().side(Trace::Row::ToHost);
}

template <>
void finish_copies(Context<Cuda>& ctx) {
    if (Staging* const staging = ctx.state().staging_made()) staging->finish(ctx.stream());
}

// Pinned memory is copied in pieces: a panel's decision, a few bytes on another stream, would wait for the end of one
// large copy.

template <class T, class D>
void start_copy_from_host(Context<D>& ctx, View<const T, Host> A, View<T, D> B) {
    if (A.empty()) return;
    if (!is_pinned(A.data)) return ctx.state().staging().template in<T>(ctx.stream(), A, B);
    for_each_block(A.rows, A.cols, Index(Staging::bytes / sizeof(T)),
                   [&](Range r, Range c) { enqueue_copy_in<T>(A.block(r, c), B.block(r, c), ctx.stream()); });
}

template <class T, class D>
void start_copy_to_host(Context<D>& ctx, View<const T, D> A, View<T, Host> B) {
    if (A.empty()) return;
    if (!is_pinned(B.data)) return ctx.state().staging().template out<T>(ctx.stream(), A, B);
    for_each_block(A.rows, A.cols, Index(Staging::bytes / sizeof(T)),
                   [&](Range r, Range c) { enqueue_copy_out<T>(A.block(r, c), B.block(r, c), ctx.stream()); });
}

#define QUOIN_INSTANTIATE(T)                                                                         \
    template void copy_to_device<T>(Context<Cuda>&, MatrixView<const T, Host>, MatrixView<T, Cuda>); \
    template void copy_to_host<T>(Context<Cuda>&, MatrixView<const T, Cuda>, MatrixView<T, Host>);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
QUOIN_INSTANTIATE(std::uint8_t)
#undef QUOIN_INSTANTIATE
QUOIN_IMPLEMENT(Cuda, start_copy_from_host, start_copy_to_host, copy_rows_to_device, copy_rows_to_host)
template decltype(start_copy_from_host<int, Cuda>) start_copy_from_host<int, Cuda>;
template decltype(start_copy_to_host<int, Cuda>) start_copy_to_host<int, Cuda>;
template decltype(start_copy_from_host<Index, Cuda>) start_copy_from_host<Index, Cuda>;
template decltype(start_copy_to_host<Index, Cuda>) start_copy_to_host<Index, Cuda>;

}  // namespace quoin
