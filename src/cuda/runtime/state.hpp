#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "cuda/runtime/error.hpp"
#include "cuda/tuning.hpp"
#include "quoin/cuda.hpp"

// as in cublas_v2.h and cusolverDn.h, which take long to compile
typedef struct cublasContext* cublasHandle_t;
typedef struct cusolverDnContext* cusolverDnHandle_t;

namespace quoin {

namespace detail {

struct DeviceQueue {
    /// A null stream: one of its own, ahead of others on the device where `high_priority`.
    DeviceQueue(cudaStream_t stream, bool high_priority);
    DeviceQueue(const DeviceQueue&) = delete;
    ~DeviceQueue();

    int device = 0;
    cudaStream_t stream = nullptr;
    bool owns_stream = false;
    cudaMemPool_t pool = nullptr;
};

}  // namespace detail

namespace cuda {

/// Workspace of one context, as the host's Arena: frames nest, and what one call needed beyond the arena's size becomes
/// part of it before the next call. Memory returns in stream order: a frame may end before its work is done.
class Arena {
public:
    explicit Arena(detail::DeviceQueue& queue) : queue_(queue) {}
    Arena(const Arena&) = delete;
    ~Arena();

    class Frame {
    public:
        explicit Frame(Context<Cuda>& ctx);
        Frame(const Frame&) = delete;
        ~Frame() { arena_.release(used_, extra_); }
        /// `count` uninitialised elements, aligned to 256 bytes, for work enqueued before the frame ends.
        template <class T>
        T* take(Index count) {
            return static_cast<T*>(arena_.take(static_cast<std::size_t>(count) * sizeof(T)));
        }
        template <class T>
        MatrixView<T, Cuda> matrix(Index rows, Index cols) {
            return {take<T>(std::max<Index>(1, rows) * cols), rows, cols};
        }

    private:
        Arena& arena_;
        std::size_t used_, extra_;
    };

    bool is_limited() const { return limited_; }
    /// Whether `bytes` more can be taken within the limit. Callers that can work with less memory ask this first.
    bool has_room_for(Index bytes) const {
        return !limited_ || used_ + static_cast<std::size_t>(bytes) + (1 << 20) <= size_;
    }
    /// Limits the arena to `bytes` (0: no limit). Releases the pool's spare memory first. Call it between frames.
    void limit(std::size_t bytes);

private:
    void* take(std::size_t bytes);
    void release(std::size_t used, std::size_t extra) noexcept;

    detail::DeviceQueue& queue_;
    char* base_ = nullptr;
    struct Extra {
        void* data;
        std::size_t bytes;
    };
    std::size_t size_ = 0, used_ = 0;
    std::size_t extra_bytes_ = 0, peak_ = 0;  // the most that was used at once, extras included, since it last grew
    bool limited_ = false;
    std::vector<Extra> extra_;  // taken beyond `size_`
};

class Staging;

/// Pinned memory that grows. Nothing may be reading or writing it when it does, nor when it goes.
class Pinned {
public:
    Pinned() = default;
    Pinned(const Pinned&) = delete;
    ~Pinned();
    std::size_t bytes() const { return bytes_; }
    /// Returns at least `bytes`. Their contents are lost if there were fewer.
    void* at_least(std::size_t bytes);

private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

/// Work enqueued on `second` from now on starts after the work already on `first`.
void order(cudaEvent_t event, cudaStream_t first, cudaStream_t second);

/// Maps the GPU's clock to a trace's: a moment of a stream, and its time on the trace.
struct TraceClock {
    /// Waits for the stream.
    TraceClock(cudaStream_t stream, const Trace& trace);
    TraceClock(const TraceClock&) = delete;
    ~TraceClock();
    /// The time at which `event` was reached, on the trace. Waits for it.
    double time_of(cudaEvent_t event) const;

private:
    cudaEvent_t base_ = nullptr;
    double base_time_ = 0;
};

}  // namespace cuda

struct Context<Cuda>::State {
    explicit State(detail::DeviceQueue& queue);
    State(const State&) = delete;
    ~State();

    cuda::Arena arena;
    const Tuning<Cuda> tuning;
    const cuda::Kernels& kernels = tuning.kernels;

    cublasHandle_t blas();
    cusolverDnHandle_t solver();
    /// Returns the context of the side stream, or of the stream for moves in or out. It has handles and an arena of its
    /// own, and a higher priority on the device.
    Context<Cuda>& side(Trace::Row of);
    /// Lane i: a stream for matrices that this one's caller has several of (batch.hpp), with handles and memory of its
    /// own.
    Context<Cuda>& lane(int i);
    /// Buffers between pageable memory and this stream.
    cuda::Staging& staging();
    cuda::Staging* staging_made() const { return staging_.get(); }
    /// Returns the bytes that this stream, its side streams and its lanes hold: their pools, and cuBLAS's workspace of
    /// each handle.
    std::size_t held() const;
    /// The host's cores, for the steps that they take.
    Context<Host>& host();
    /// Pinned memory for a panel between the device and the host, the same at every call while it is large enough.
    void* staging_of_panels(std::size_t bytes);
    void attach(Trace* trace, std::shared_ptr<const cuda::TraceClock> clock);
    void order(cudaStream_t first, cudaStream_t second);
    /// `count` numbers of device memory on the host. Waits.
    template <class T>
    const T* read_back(const T* p, Index count) {
        send(p, count);
        return receive<T>();
    }
    /// Reads back in two steps. `receive` does not wait for work enqueued after `send`. One pair at a time.
    template <class T>
    void send(const T* p, Index count) {
        static_assert(sizeof(T) % 4 == 0 && alignof(T) >= 4);
        send_words(p, static_cast<std::size_t>(count) * (sizeof(T) / 4));
    }
    template <class T>
    const T* receive() {
        return static_cast<const T*>(receive_words());
    }
    /// Returns what the kernel of work(told, first, parts) writes to *told, as soon as it does; `untold` is no such
    /// answer. The kernel may have more to do. *first is ~0 and *parts 0 on the device, and the kernel leaves them so.
    template <class Work>
    unsigned long long told_by(unsigned long long untold, Work work) {
        auto* const p = static_cast<unsigned long long*>(read_back_.at_least(sizeof(untold)));
        const std::atomic_ref<unsigned long long> told(*p);
        told = untold;
        unsigned long long* const counters = counters_of_checks();
        work(p, counters, counters + 1);
        for (int looks = 1; told == untold; ++looks) {
            if (looks % looks_between_queries == 0 && stream_is_done() && told == untold)
                throw DeviceFailure("a kernel ended and left no answer");
        }
        return told;
    }

    std::atomic<double> flops{0};
    std::atomic<bool> stop{false};
    const State* of_lanes = nullptr;  ///< of a lane: the state whose lane it is, which may be asked to stop
    void add_flops(double count) { flops.fetch_add(count, std::memory_order_relaxed); }
    double flops_done() const;

    Trace* trace = nullptr;
    std::shared_ptr<const cuda::TraceClock> clock;  ///< where there is a trace
    Trace::Row row = Trace::Row::Device;            ///< of the stream

private:
    void send_words(const void* p, std::size_t count);
    const void* receive_words();
    unsigned long long* counters_of_checks();
    /// Throws where its work has failed.
    bool stream_is_done();
    static constexpr int looks_between_queries = 1 << 12;

    /// The workspace of a cuBLAS handle on Hopper. It comes from no pool.
    static constexpr std::size_t cublas_workspace_bytes = std::size_t(32) << 20;

    detail::DeviceQueue& queue_;
    cublasHandle_t blas_ = nullptr;
    cusolverDnHandle_t solver_ = nullptr;
    std::unique_ptr<cuda::Staging> staging_;
    std::unique_ptr<Context<Cuda>> sides_[3];
    std::vector<std::unique_ptr<Context<Cuda>>> lanes_;
    /// Calls work(context) for the side streams and the lanes.
    template <class Work>
    void for_each_own(const Work& work) const {
        for (const auto& one : sides_) {
            if (one) work(*one);
        }
        for (const auto& one : lanes_) work(*one);
    }
    std::unique_ptr<Context<Host>> host_;
    /// whether a side stream of this context, or of its main context, copies matrices out
    bool side_copies_out_ = false;
    cudaEvent_t event_ = nullptr, sent_ = nullptr;
    unsigned long long* counters_of_checks_ = nullptr;
    cuda::Pinned read_back_, panel_staging_;
};

inline cuda::Arena::Frame::Frame(Context<Cuda>& ctx)
    : arena_(ctx.state().arena), used_(arena_.used_), extra_(arena_.extra_.size()) {}

namespace cuda {

/// Returns `count` elements of the frame, whose bytes are zeros when the stream comes there.
template <class T>
T* zeros(Context<Cuda>& ctx, Arena::Frame& frame, Index count) {
    T* const p = frame.take<T>(count);
    QUOIN_CUDA_CHECK(cudaMemsetAsync(p, 0, static_cast<std::size_t>(count) * sizeof(T), ctx.stream()));
    return p;
}

}  // namespace cuda

}  // namespace quoin
