#pragma once

// Arrays in a GPU's memory: the context on which a call computes, and the memory of its results.

#include <atomic>
#include <cstdint>

#include "arrays.hpp"
#include "quoin/cuda.hpp"

namespace quoin::python {

/// One call's device and the caller's stream there. The call's work starts after the work already on that stream, and
/// later work on the stream starts after the call's work. Results are the caller's own arrays.
struct CudaCall {
    int device = 0;
    std::uintptr_t stream = 0;
    bool synchronise =
        false;  ///< the caller's library has no stream to order: results are complete when the call returns
    /// empty(shape, dtype, zeros, swapped) -> (array, memory): a new array that fills `shape` in C order. Either its
    /// last two dimensions are swapped afterwards if `swapped`, and `memory` is its address. Or its library has no
    /// views, and `memory` is its DLPack capsule. With None, arguments come from the host's memory, results go there,
    /// and the caller has no stream.
    nb::object empty;

    bool from_host() const { return empty.is_none(); }
    /// Whether the caller's stream is the device's default stream, by either of its names.
    bool on_default_stream() const { return !from_host() && stream <= default_stream; }
    CudaStream callers_stream() const {
        return reinterpret_cast<CudaStream>(on_default_stream() ? default_stream : stream);
    }
    static constexpr std::uintptr_t default_stream = 1;  // cudaStreamLegacy
};

template <>
struct WhereOf<Cuda> {
    using Type = CudaCall;
};

inline const CudaCall& where_for(const CudaCall& call, Index, Index) { return call; }

/// A context, and the lock that lets threads take turns with it. Memory made in the order of its stream, such as a
/// factorization's, is used and given back in that order only, by any thread.
class CudaWorker {
public:
    /// Makes a worker for the device's default stream, which lives as long as the device, or for its own stream.
    CudaWorker(int device, bool on_default_stream);
    ~CudaWorker();

    /// Runs `work(ctx)` after the work already on the caller's stream and before later work there. The calling thread
    /// is `caller`.
    template <class Work>
    void run(const CudaCall& call, std::thread::id caller, Work&& work) {
        const Turn turn(*this, caller);
        const CudaStream caller_stream = call.callers_stream();
        ctx_->clear_stop();
        if (!call.from_host()) ctx_->follow(caller_stream);
        const auto settle = [&] {
            if (!call.from_host()) ctx_->precede(caller_stream);
            if (call.synchronise) ctx_->wait();
        };
        try {
            work(*ctx_);
        } catch (...) {
            settle();
            throw;
        }
        settle();
    }
    void request_stop() noexcept { ctx_->request_stop(); }
    int device() const { return device_; }
    bool on_default_stream() const { return on_default_stream_; }
    /// Whether `thread` is in `run`. If it is the calling thread, the call comes from a signal handler or a callback.
    bool used_by(std::thread::id thread) const { return user_ == thread; }
    /// Returns the device that was current before `run` for the thread in it.
    int callers_device() const { return callers_device_; }

private:
    /// One thread's turn, on the worker's device.
    struct Turn {
        Turn(CudaWorker& worker, std::thread::id caller)
            : lock(worker.mutex_), current(worker.device_), user(worker.user_) {
            user = caller;
            worker.callers_device_ = current.before();
        }
        ~Turn() { user = std::thread::id(); }
        const std::lock_guard<std::mutex> lock;
        const CurrentDevice current;
        std::atomic<std::thread::id>& user;
    };

    const int device_;
    const bool on_default_stream_;
    std::optional<Context<Cuda>> ctx_;
    std::mutex mutex_;
    std::atomic<std::thread::id> user_{};
    int callers_device_ = 0;
};

/// Returns the calling thread's worker for calls like this one, or a new worker if a signal handler interrupts that
/// one. Calls on the default stream have a worker on that stream, which needs no events between two streams.
std::shared_ptr<CudaWorker> worker_of_thread(const CudaCall& call);

template <>
struct Home<Cuda> {
    explicit Home(const CudaCall& call) : worker(worker_of_thread(call)) {}
    std::shared_ptr<CudaWorker> worker;
};

template <class Work>
void run_released(const Home<Cuda>& home, const CudaCall& call, double flops, Work&& work,
                  const Progress& progress = {}) {
    constexpr double flops_without_signals = 1e12;  // some tens of milliseconds

    const auto caller = std::this_thread::get_id();
    if (home.worker->used_by(caller)) {
        throw InvalidArgument(
            "a signal handler or a callback cannot use an object of the thread and the GPU whose call it interrupts");
    }
    watch_signals(
        flops >= flops_without_signals, [&] { home.worker->run(call, caller, work); },
        [&] { home.worker->request_stop(); }, [] {});
    progress.tell(progress.flops);  // a GPU's flops are counted when they are enqueued
}

template <>
struct CallersCode<Cuda> {
    explicit CallersCode(const Home<Cuda>& home) : current(home.worker->callers_device()) {}
    const CurrentDevice current;
};

template <class T>
Matrix<T, Cuda> placed(Context<Cuda>& ctx, Matrix<T>&& A) {
    return copy_to_device<T>(ctx, std::as_const(A).view());
}

/// A new array of the caller's library. It has column-major rows×cols matrices, one for each index in `batch`, in the
/// form `as`.
template <class T>
class CudaArray {
public:
    CudaArray(const CudaCall& call, const std::vector<std::size_t>& batch, Index rows, Index cols, As as,
              bool zeros = false) {
        nb::list shape;
        for (const std::size_t length : batch) shape.append(length);
        if (as != As::Vector) shape.append(cols);
        shape.append(rows);
        const auto made = nb::cast<nb::tuple>(call.empty(nb::tuple(shape), numpy_name<T>, zeros, as == As::Matrix));
        array_ = made[0];
        if (nb::isinstance<nb::int_>(made[1])) {
            data_ = reinterpret_cast<T*>(nb::cast<std::uintptr_t>(made[1]));
        } else {
            data_ = nb::cast<nb::ndarray<T, nb::device::cuda>>(made[1]).data();
            swaps_ = as == As::Matrix;
        }
    }
    MatrixView<T, Cuda> matrix(Index rows, Index cols) const { return {data_, rows, cols}; }
    /// Returns the array. Call it once the entries are written.
    nb::object array() const { return swaps_ ? nb::object(array_.attr("mT")) : array_; }

private:
    nb::object array_;
    T* data_ = nullptr;
    bool swaps_ = false;
};

/// One result of a batch, as on the host, but in the caller's memory from the start.
template <class T>
class BatchResult<T, Cuda> {
public:
    BatchResult(const CudaCall& call, const std::vector<std::size_t>& batch, Index count, Index rows, Index cols,
                Index given_rows, As as = As::Matrix)
        : count_(count), rows_(rows), cols_(cols), memory_(call, batch, rows, cols, as, given_rows < rows) {}
    MatrixView<T, Cuda> matrix(Index rows) { return memory_.matrix(rows_, cols_).row_block({0, rows}); }
    BatchView<T, Cuda> all(Index rows) {
        return {memory_.matrix(rows_, cols_).data, rows, cols_, std::max<Index>(1, rows_), rows_ * cols_, count_};
    }
    void put(Context<Cuda>& ctx, Matrix<T, Cuda>&& M) {
        const auto to = memory_.matrix(rows_, cols_);
        if (M.data() != to.data) copy<T>(ctx, std::as_const(M).view(), to.row_block({0, M.rows()}));
    }
    void put(Context<Cuda>& ctx, quoin::Batch<T, Cuda>&& batch) {
        const Matrix<T, Cuda> M = std::move(batch).take();
        copy<T>(ctx, M.view(), memory_.matrix(rows_, cols_ * count_));
    }
    nb::object take() { return memory_.array(); }

private:
    Index count_, rows_, cols_;
    CudaArray<T> memory_;
};

template <class T>
Matrix<T> to_host(const Home<Cuda>& home, const CudaCall& call, const Matrix<T, Cuda>& M) {
    Matrix<T> there;
    run_released(home, call, 0, [&](Context<Cuda>& ctx) { there = copy_to_host<T>(ctx, M.view()); });
    return there;
}
template <class T>
nb::object array_of(const Home<Cuda>& home, const CudaCall& call, const Matrix<T, Cuda>& M, As as) {
    const CudaArray<T> out(call, {}, M.rows(), M.cols(), as);
    run_released(home, call, 0, [&](Context<Cuda>& ctx) { copy<T>(ctx, M.view(), out.matrix(M.rows(), M.cols())); });
    return out.array();
}
template <class T>
nb::object to_array(const Home<Cuda>& home, const CudaCall& call, Matrix<T, Cuda>&& M, As as = As::Matrix) {
    if (call.from_host()) return to_numpy(to_host(home, call, M), as);
    return array_of<T>(home, call, M, as);
}
template <class T>
nb::object to_array(const Home<Cuda>&, const CudaCall&, Matrix<T>&& M, As as = As::Matrix) {
    return to_numpy(std::move(M), as);
}
template <class T>
nb::object to_vector(const Home<Cuda>& home, const CudaCall& call, const std::vector<T>& x) {
    if (call.from_host()) return to_vector(Home<Host>(0), 0, x);
    const MatrixView<const T> column(x.data(), static_cast<Index>(x.size()), 1);
    const CudaArray<T> out(call, {}, column.rows, 1, As::Vector);
    run_released(home, call, 0,
                 [&](Context<Cuda>& ctx) { copy_to_device<T>(ctx, column, out.matrix(column.rows, 1)); });
    return out.array();
}

}  // namespace quoin::python
