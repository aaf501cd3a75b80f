#pragma once

// Arrays in a GPU's memory: on which context a call computes, in whose memory its results lie.

#include <atomic>
#include <cstdint>
#include <string>

#include "arrays.hpp"
#include "quoin/cuda.hpp"

namespace quoin::python {

/// One call's device and the caller's stream there: work starts behind what is enqueued on it, and what the caller enqueues
/// afterwards starts behind the work. Results are the caller's own arrays.
struct CudaCall {
    int device = 0;
    std::uintptr_t stream = 0;
    bool synchronise =
        false;  ///< the caller's library has no stream to order: results are complete when the call returns
    /// empty(shape, dtype, zeros) -> (array, its DLPack capsule): a new array whose memory is that of `shape` in C order. None:
    /// arguments come from the host's memory, results go there, and no stream of the caller's is asked for.
    nb::object empty;
    /// Its last two dimensions, if it has two, are swapped already: they are the matrices, in Fortran order.
    bool swapped = false;

    bool from_host() const { return empty.is_none(); }
};

template <>
struct WhereOf<Cuda> {
    using Type = CudaCall;
};

inline const CudaCall& where_for(const CudaCall& call, Index, Index) { return call; }

/// A context and the lock by which threads take turns with it. What is made in its stream's order, a factorization's memory
/// above all, is used and given back in that order alone, by whichever thread.
class CudaWorker {
public:
    explicit CudaWorker(int device);
    ~CudaWorker();

    /// `work(ctx)` between the caller's work on its stream and what follows there. The calling thread is `caller`.
    template <class Work>
    void run(const CudaCall& call, std::thread::id caller, Work&& work) {
        const Turn turn(*this, caller);
        const auto caller_stream = reinterpret_cast<CudaStream>(call.stream);
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
    /// Whether `thread` is in `run`: then a handler of a signal asks, or a callback.
    bool used_by(std::thread::id thread) const { return user_ == thread; }
    /// The device that was current before `run`, for the thread that is in it.
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
    std::optional<Context<Cuda>> ctx_;
    std::mutex mutex_;
    std::atomic<std::thread::id> user_{};
    int callers_device_ = 0;
};

/// The calling thread's worker of the device, or a new one where a handler of a signal interrupts it.
std::shared_ptr<CudaWorker> worker_of_thread(int device);

template <>
struct Home<Cuda> {
    explicit Home(const CudaCall& call) : worker(worker_of_thread(call.device)) {}
    std::shared_ptr<CudaWorker> worker;
};

template <class Work>
void run_released(const Home<Cuda>& home, const CudaCall& call, double flops, Work&& work) {
    constexpr double flops_without_signals = 1e12;  // some tens of milliseconds

    const auto caller = std::this_thread::get_id();
    if (home.worker->used_by(caller)) {
        throw InvalidArgument(
            "a signal handler or a callback cannot use an object of the thread and the GPU whose call it interrupts");
    }
    watch_signals(
        flops >= flops_without_signals, [&] { home.worker->run(call, caller, work); },
        [&] { home.worker->request_stop(); });
}

template <>
struct CallersCode<Cuda> {
    explicit CallersCode(const Home<Cuda>& home) : current(home.worker->callers_device()) {}
    const CurrentDevice current;
};

/// B := A; A is column-major or row-major.
template <class T>
void load(Context<Cuda>& ctx, const StridedMatrix<T, Cuda>& A, MatrixView<T, Cuda> B) {
    if (B.empty()) return;
    if (A.column_major()) {
        copy<T>(ctx, A.view(), B);
    } else if (A.row_major()) {
        transpose<T>(ctx, A.transposed().view(), B);
    } else {
        throw InvalidArgument("an array in a GPU's memory must have its rows or its columns next to each other");
    }
}
template <class T>
Matrix<T, Cuda> copy_of(Context<Cuda>& ctx, const StridedMatrix<T, Cuda>& A) {
    Matrix<T, Cuda> B(ctx, A.rows, A.cols);
    load<T>(ctx, A, B.view());
    return B;
}

template <class T>
Matrix<T, Cuda> placed(Context<Cuda>& ctx, Matrix<T>&& A) {
    return copy_to_device<T>(ctx, std::as_const(A).view());
}

/// A new array of the caller's with the memory of `shape` in C order, whose last two dimensions are column-major matrices, transposed.
template <class T>
class CudaArray {
public:
    CudaArray(const CudaCall& call, const std::vector<std::size_t>& shape, bool zeros = false)
        : swapped_(call.swapped && shape.size() > 1) {
        nb::list lengths;
        for (const std::size_t length : shape) lengths.append(length);
        const auto made = nb::cast<nb::tuple>(
            call.empty(nb::tuple(lengths), std::is_same_v<T, float> ? "float32" : "float64", zeros));
        array_ = made[0];
        memory_ = nb::cast<nb::ndarray<T, nb::device::cuda>>(made[1]);
    }
    MatrixView<T, Cuda> matrix(Index b, Index rows, Index cols) const {
        return {memory_.data() + b * rows * cols, rows, cols};
    }
    /// The matrices.
    nb::object matrices() const { return with(true); }
    /// Each matrix transposed.
    nb::object transposed() const { return with(false); }
    nb::object reshaped(const nb::tuple& shape) const { return array_.attr("reshape")(shape); }
    const nb::object& vector() const { return array_; }

private:
    nb::object with(bool swapped) const { return swapped == swapped_ ? array_ : array_.attr("swapaxes")(-2, -1); }

    bool swapped_;
    nb::object array_;
    nb::ndarray<T, nb::device::cuda> memory_;
};

/// As on the host, in the caller's memory from the start.
template <class T>
class BatchResult<T, Cuda> {
public:
    BatchResult(const CudaCall& call, const std::vector<std::size_t>& batch, Index count, Index rows, Index cols,
                Index given_rows)
        : batch_(batch), count_(count), rows_(rows), cols_(cols), memory_(call, shape(), given_rows < rows) {}
    /// Memory for an m x n matrix that becomes the result, if it fits and work in it takes no longer; otherwise a matrix without any.
    Matrix<T, Cuda> work(Index m, Index n) {
        const bool serves = m == rows_ && n == cols_ && Matrix<T, Cuda>::aligned_ld(m) == m;
        return serves ? Matrix<T, Cuda>::over(memory_.matrix(0, rows_, cols_)) : Matrix<T, Cuda>();
    }
    BatchView<T, Cuda> all(Index rows) {
        return {memory_.matrix(0, rows_, cols_).data, rows, cols_, std::max<Index>(1, rows_), rows_ * cols_, count_};
    }
    void put(Context<Cuda>& ctx, Matrix<T, Cuda>&& M) {
        const auto to = memory_.matrix(0, rows_, cols_);
        if (M.data() != to.data) copy<T>(ctx, std::as_const(M).view(), to.row_block({0, M.rows()}));
    }
    void put(Context<Cuda>& ctx, quoin::Batch<T, Cuda>&& batch) {
        const Matrix<T, Cuda> M = std::move(batch).take();
        copy<T>(ctx, M.view(), memory_.matrix(0, rows_, cols_ * count_));
    }
    nb::object take() { return memory_.matrices(); }
    nb::object take_transposed() { return memory_.transposed(); }
    nb::object take_vectors() {
        nb::list lengths;
        for (const std::size_t length : batch_) lengths.append(length);
        lengths.append(rows_);
        return memory_.reshaped(nb::tuple(lengths));
    }

private:
    std::vector<std::size_t> shape() const {
        std::vector<std::size_t> all(batch_);
        all.insert(all.end(), {static_cast<std::size_t>(cols_), static_cast<std::size_t>(rows_)});
        return all;
    }
    std::vector<std::size_t> batch_;
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
CudaArray<T> array_of_columns(const Home<Cuda>& home, const CudaCall& call, const Matrix<T, Cuda>& M) {
    const std::size_t rows = M.rows(), cols = M.cols();
    CudaArray<T> out(call, {cols, rows});
    run_released(home, call, 0, [&](Context<Cuda>& ctx) { copy<T>(ctx, M.view(), out.matrix(0, M.rows(), M.cols())); });
    return out;
}
template <class T>
nb::object to_array(const Home<Cuda>& home, const CudaCall& call, Matrix<T, Cuda>&& M) {
    if (call.from_host()) return to_numpy(to_host(home, call, M));
    return array_of_columns(home, call, M).matrices();
}
template <class T>
nb::object to_array(const Home<Cuda>&, const CudaCall&, Matrix<T>&& M) {
    return to_numpy(std::move(M));
}
template <class T>
nb::object to_array_transposed(const Home<Cuda>& home, const CudaCall& call, Matrix<T, Cuda>&& M) {
    return array_of_columns(home, call, M).transposed();
}
template <class T>
nb::object to_vector(const Home<Cuda>& home, const CudaCall& call, Matrix<T, Cuda>&& x) {
    const CudaArray<T> out(call, {static_cast<std::size_t>(x.rows())});
    run_released(home, call, 0,
                 [&](Context<Cuda>& ctx) { copy<T>(ctx, std::as_const(x).view(), out.matrix(0, x.rows(), 1)); });
    return out.vector();
}
template <class T>
nb::object to_vector(const Home<Cuda>& home, const CudaCall& call, const std::vector<T>& x) {
    if (call.from_host()) return to_vector(Home<Host>(0), 0, x);
    const CudaArray<T> out(call, {x.size()});
    const MatrixView<const T> column(x.data(), static_cast<Index>(x.size()), 1);
    run_released(home, call, 0,
                 [&](Context<Cuda>& ctx) { copy_to_device<T>(ctx, column, out.matrix(0, column.rows, 1)); });
    return out.vector();
}

}  // namespace quoin::python
