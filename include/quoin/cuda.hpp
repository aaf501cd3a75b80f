#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "quoin/context.hpp"
#include "quoin/matrix.hpp"
#include "quoin/rows.hpp"

struct CUstream_st;

namespace quoin {

/// Memory of an NVIDIA GPU, computed on by its multiprocessors.
struct Cuda {};

/// CUDA's cudaStream_t.
using CudaStream = ::CUstream_st*;

/// The device's runtime, or a library on it, reported a failure; the message names the call.
struct DeviceFailure : Error {
    explicit DeviceFailure(const std::string& message) : Error(ErrorCode::DeviceFailure, message) {}
};

namespace detail {
/// A stream and the memory that is allocated and freed in its order.
struct DeviceQueue;
/// Allocates uninitialised device memory, aligned to 256 bytes; null for 0 bytes. Throws OutOfMemory.
void* allocate_device(DeviceQueue& queue, std::size_t bytes);
void free_device(DeviceQueue& queue, void* p) noexcept;
}  // namespace detail

/// Makes a device current for the calling thread; its destructor restores the previous one. Throws DeviceFailure if no
/// device has that number.
class CurrentDevice {
public:
    explicit CurrentDevice(int device);
    CurrentDevice(const CurrentDevice&) = delete;
    ~CurrentDevice();
    /// Returns the device that was current before.
    int before() const { return before_; }

private:
    int before_ = 0;
};

/// A stream of the current device, the libraries' handles and an arena of workspace.
///
/// Work is enqueued on the stream. A call waits for it only if it needs a number on the host; its docstring says so.
/// Results have the same bits from run to run on one kind of GPU. The arena grows at a plan's first use. Its memory and
/// the memory of destroyed matrices are reused until the context and every matrix made with it are destroyed.
///
/// `qr` waits once, at its end, for the certificate of a CholeskyQR method and for the result of the check of the
/// input. It waits more often if CholeskyQR has more than 192 columns, or needs a second pass or another method.
/// BlockedHouseholder waits at least once for each panel that is reconstructed, and for each panel that is factored on
/// the host. A panel of up to 32 columns is reconstructed from 16 384 rows on, a wider one if it has more than 16 384
/// rows in f32 or 8192 in f64.
///
/// TSQR, and CAQR of one panel, read from the triangles of the leaves whether A is finite and in range, and wait for
/// that unless check_finite is false. R alone waits in any case, and so does q = QForm::Reflectors, since LAPACK's
/// format is reconstructed.
///
/// If check_finite is false, all other calls by TSQR and CAQR do not wait, nor do calls by BlockedHouseholder without
/// reconstructed panels. Such a call, with `form_q`, `apply_q` and `r` after it, can be captured into a CUDA graph.
/// Make two calls outside the capture first, so that handles exist and the arena need not grow. Every matrix that the
/// graph makes must be destroyed before the capture ends.
template <>
class Context<Cuda> {
public:
    /// Takes the caller's stream, which must outlive the context and the matrices made with it, or, for null, a
    /// non-blocking stream of its own. Throws DeviceFailure if there is no usable GPU.
    explicit Context(CudaStream stream = nullptr);
    Context(Context&&) noexcept;
    Context& operator=(Context&&) noexcept;
    ~Context();

    CudaStream stream() const;
    /// Work enqueued on this context from now on starts after the work already on `other`, a stream of the same device.
    void follow(CudaStream other);
    /// Work enqueued on `other` from now on starts after the work already on this context.
    void precede(CudaStream other);
    /// Waits until everything enqueued so far is done. Throws DeviceFailure if any of it failed.
    void wait() const;

    /// As in `Context<Host>`; flops count when their work is enqueued.
    double flops_done() const;
    void reset_progress();
    void request_stop() noexcept;
    void clear_stop() noexcept;
    /// As in `Context<Host>`. Waits for the stream to synchronise the GPU's clock with the host's. Do not use it for
    /// calls that are captured into a graph.
    void attach(Trace* trace);
    Trace* trace() const;

    /// Quoin's own use: memory in stream order; workspace, handles, progress and stop flag.
    const std::shared_ptr<detail::DeviceQueue>& queue() const { return queue_; }
    struct State;
    State& state() { return *state_; }
    const State& state() const { return *state_; }

private:
    struct HighPriority {};
    explicit Context(HighPriority);

    std::shared_ptr<detail::DeviceQueue> queue_;
    std::unique_ptr<State> state_;
};

/// A matrix that owns device memory: column-major, ld = max(1, rows) unless it is aligned, uninitialised until written.
/// Movable, not copyable.
///
/// Its memory is allocated and freed in the order of the context's stream: work on it that was enqueued elsewhere must
/// be finished before it is destroyed. Throws InvalidArgument for a negative or overflowing size, and OutOfMemory,
/// whose message has the bytes requested and free.
template <class T>
class Matrix<T, Cuda> {
public:
    Matrix() = default;
    Matrix(const Context<Cuda>& ctx, Index rows, Index cols) : Matrix(ctx, rows, cols, rows) {}
    /// Allocates a matrix whose columns start at multiples of 16 bytes if they have 4 KiB or more. A factorization in
    /// such memory takes the same time for every number of rows. In other memory it takes up to 1.6 times as long.
    static Matrix aligned(const Context<Cuda>& ctx, Index rows, Index cols) {
        return Matrix(ctx, rows, cols, aligned_ld(rows));
    }
    static constexpr Index aligned_ld(Index rows) {
        constexpr Index vector = 16 / sizeof(T), line = 128 / sizeof(T), least = 4096 / sizeof(T);
        return rows < least || rows % vector == 0 ? rows : (rows + line - 1) / line * line;
    }
    /// Makes a matrix in memory that the caller owns and keeps alive. If it is moved into `qr`, `qr` computes in that
    /// memory.
    static Matrix over(MatrixView<T, Cuda> A) {
        Matrix borrowed;
        borrowed.data_ = A.data;
        borrowed.rows_ = A.rows;
        borrowed.cols_ = A.cols;
        borrowed.ld_ = A.ld;
        return borrowed;
    }
    Matrix(Matrix&& other) noexcept { swap(other); }
    Matrix& operator=(Matrix&& other) noexcept {
        swap(other);
        return *this;
    }
    Matrix(const Matrix&) = delete;
    Matrix& operator=(const Matrix&) = delete;
    ~Matrix() {
        if (queue_ && data_) detail::free_device(*queue_, data_);
    }

    Index rows() const { return rows_; }
    Index cols() const { return cols_; }
    Index ld() const { return ld_; }
    T* data() { return data_; }
    const T* data() const { return data_; }
    MatrixView<T, Cuda> view() { return {data_, rows_, cols_, ld()}; }
    MatrixView<const T, Cuda> view() const { return {data_, rows_, cols_, ld()}; }

private:
    Matrix(const Context<Cuda>& ctx, Index rows, Index cols, Index ld)
        : queue_(ctx.queue()),
          data_(static_cast<T*>(detail::allocate_device(*queue_, detail::checked_bytes(ld, cols, sizeof(T))))),
          rows_(rows),
          cols_(cols),
          ld_(std::max<Index>(1, ld)) {}
    void swap(Matrix& other) noexcept {
        std::swap(queue_, other.queue_);
        std::swap(data_, other.data_);
        std::swap(rows_, other.rows_);
        std::swap(cols_, other.cols_);
        std::swap(ld_, other.ld_);
    }
    std::shared_ptr<detail::DeviceQueue> queue_;  // null: the caller owns the memory
    T* data_ = nullptr;
    Index rows_ = 0;
    Index cols_ = 0;
    Index ld_ = 1;
};

/// B := A, to the device. Returns when A may be changed; B is ready for work enqueued on the context.
///
/// Pageable memory goes through pinned buffers (eight of 32 MiB), which the host fills while others are copied. Pinned
/// memory is read in place.
template <class T>
void copy_to_device(Context<Cuda>& ctx, MatrixView<const T, Host> A, MatrixView<T, Cuda> B);
/// B := A, to the host. Waits until B is complete.
template <class T>
void copy_to_host(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<T, Host> B);

template <class T>
Matrix<T, Cuda> copy_to_device(Context<Cuda>& ctx, MatrixView<const T, Host> A) {
    Matrix<T, Cuda> B(ctx, A.rows, A.cols);
    copy_to_device<T>(ctx, A, B.view());
    return B;
}
template <class T>
Matrix<T, Host> copy_to_host(Context<Cuda>& ctx, MatrixView<const T, Cuda> A) {
    Matrix<T, Host> B(A.rows, A.cols);
    copy_to_host<T>(ctx, A, B.view());
    return B;
}

/// Returns κ₁(R) itself, from R⁻¹ in double, where the host's version (least_squares.hpp) estimates it. n³/3 flops and
/// 2n² numbers of workspace. Waits.
template <class T>
double condition_estimate(Context<Cuda>& ctx, MatrixView<const T, Cuda> R);

/// Measure as in qr.hpp, on the host with copies of the operands. Wait.
template <class T>
double orthogonality(Context<Cuda>& ctx, MatrixView<const T, Cuda> Q);
template <class T>
double residual(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<const T, Cuda> Q,
                MatrixView<const T, Cuda> R);

/// Bytes of a device's memory.
struct DeviceMemory {
    std::size_t free = 0, total = 0;
};
/// Returns the memory of the context's device at this moment.
DeviceMemory device_memory(const Context<Cuda>& ctx);

/// One GPU of this machine.
struct Gpu {
    std::string name;
    int capability_major = 0, capability_minor = 0;
    DeviceMemory memory;
    std::string problem;  ///< why Quoin cannot use it, in one sentence; empty if it can
};
/// CUDA's description of this machine.
struct GpuSurvey {
    std::string driver;   ///< the CUDA version that the driver supports, "13.0"; empty without a driver
    std::string problem;  ///< why there is no GPU to list; empty otherwise
    std::vector<Gpu> gpus;
};
/// Queries the driver. Creates the device's CUDA context, which takes a fraction of a second. Throws no exception of
/// its own.
GpuSurvey survey_gpus();

}  // namespace quoin
