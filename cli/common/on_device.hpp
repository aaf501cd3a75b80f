#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "arguments.hpp"
#include "interrupt.hpp"
#include "json_line.hpp"
#include "quoin/io.hpp"
#include "stopwatch.hpp"
#include "tracing.hpp"
#ifdef QUOIN_HAVE_CUDA
#include <optional>

#include "quoin/cuda.hpp"
#endif

namespace quoin::cli {

/// The device that a command runs on.
struct DeviceInUse {
    Device device = Device::Host;  ///< Host or Cuda
    std::string description;       ///< of the device, and the reason for it if needed
    double start_up_seconds = -1;  ///< of CUDA, its libraries and kernels; -1 on the host
};

/// Adds the end of a report's JSON: device and, on a GPU, the times that the time of the computation does not include.
void add_device(JsonLine& line, const DeviceInUse& device, double transfer_in_seconds, double transfer_out_seconds);
/// Prints the lines of a report with the same content, if --device was given.
void print_device(const CommonArguments& arguments, const DeviceInUse& device, double transfer_in_seconds,
                  double transfer_out_seconds);

/// Waits for the work on a GPU.
inline void wait(Context<Host>&) {}
/// Returns A in host memory: A itself, or a copy.
template <class T>
const Matrix<T>& on_host(Context<Host>&, const Matrix<T>& A) {
    return A;
}
/// Returns a view of A in host memory: A itself, or a copy in `storage`.
template <class T>
MatrixView<const T> on_host(Context<Host>&, MatrixView<const T> A, Matrix<T>&) {
    return A;
}
/// Moves A to the device of the context.
template <class T>
Matrix<T> to_device(Context<Host>&, Matrix<T>&& A) {
    return std::move(A);
}
/// Calls `work(A)` for a small matrix A as wide as the command's matrix, before the command's work, because CUDA loads
/// its libraries and kernels at their first use, which takes longer than most computations. Adds the time to `use`.
/// Does nothing on the host.
template <class T, class Work>
void load_kernels(Context<Host>&, Index, Index, DeviceInUse&, Work&&) {}
#ifdef QUOIN_HAVE_CUDA
inline void wait(Context<Cuda>& ctx) { ctx.wait(); }
template <class T>
Matrix<T> on_host(Context<Cuda>& ctx, const Matrix<T, Cuda>& A) {
    return copy_to_host<T>(ctx, A.view());
}
template <class T>
MatrixView<const T> on_host(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, Matrix<T>& storage) {
    storage = copy_to_host<T>(ctx, A);
    return std::as_const(storage).view();
}
template <class T>
Matrix<T, Cuda> to_device(Context<Cuda>& ctx, Matrix<T>&& A) {
    auto on_gpu = Matrix<T, Cuda>::aligned(ctx, A.rows(), A.cols());
    copy_to_device<T>(ctx, std::as_const(A).view(), on_gpu.view());
    return on_gpu;
}
template <class T, class Work>
void load_kernels(Context<Cuda>& ctx, Index m, Index n, DeviceInUse& use, Work&& work) {
    const Stopwatch watch;
    // at most 512 columns and eight times as many rows, or the transpose of that
    const Index k = std::min<Index>({m, n, 512});
    Matrix<T> A(std::min(m, m < n ? k : 8 * k), std::min(n, m < n ? 8 * k : k));
    std::fill_n(A.data(), A.rows() * A.cols(), T(0));
    for (Index i = 0; i < std::min(A.rows(), A.cols()); ++i) A(i, i) = 1;
    Trace* const trace = ctx.trace();
    ctx.attach(nullptr);
    const Matrix<T, Cuda> on_gpu = copy_to_device<T>(ctx, std::as_const(A).view());
    work(on_gpu.view());
    ctx.wait();
    ctx.attach(trace);
    use.start_up_seconds += watch.seconds();
}
#endif

/// Returns `options` for `small`, a matrix that stands for a larger one: its rank is at most min(m, n).
template <class T, class D>
Options options_for(MatrixView<const T, D> small, Options options) {
    if (auto& pivoting = options.pivoting) pivoting->max_rank = std::min({pivoting->max_rank, small.rows, small.cols});
    return options;
}

/// "A.npy: a 1000000 x 192 f32 matrix".
std::string matrix_in_words(const MatrixFile& file);

/// Throws Error (DeviceFailure): --device cuda, and `why` there is no GPU for it.
[[noreturn]] void refuse_gpu(const std::string& why);

#ifdef QUOIN_HAVE_CUDA
/// Opens the GPU that CUDA counts first. Returns nothing if --device auto finds no GPU; `use` then says so.
std::optional<Context<Cuda>> open_gpu(const CommonArguments& arguments, DeviceInUse& use);
/// Whether the GPU has `bytes` free, as --device auto needs to know. Throws OutOfMemory for --device cuda.
bool fits_gpu(const CommonArguments& arguments, const Context<Cuda>& ctx, const std::string& what, double bytes,
              DeviceInUse& use);
#endif

/// Calls `run(ctx, in_use)` with a context of the device that --device selects. Ctrl-C stops the context.
/// `bytes_on_gpu(ctx)` is the memory that `what` takes on the GPU.
template <class BytesOnGpu, class Run>
void on_device(const CommonArguments& arguments, [[maybe_unused]] const std::string& what,
               [[maybe_unused]] BytesOnGpu&& bytes_on_gpu, Run&& run) {
    DeviceInUse use;
    use.description = "host";
    if (arguments.device != Device::Host) {
#ifdef QUOIN_HAVE_CUDA
        std::optional<Context<Cuda>> gpu = open_gpu(arguments, use);
        if (gpu && fits_gpu(arguments, *gpu, what, bytes_on_gpu(*gpu), use)) {
            const InterruptGuard guard(*gpu);
            const Tracing tracing(*gpu, arguments.trace);
            run(*gpu, use);
            return tracing.write();
        }
#else
        const char* why = "Quoin was built without CUDA";
        if (arguments.device == Device::Cuda) refuse_gpu(why);
        use.description = fmt::format("host ({})", why);
#endif
    }
    Context<Host> ctx = make_context(arguments);
    const InterruptGuard guard(ctx);
    const Tracing tracing(ctx, arguments.trace);
    run(ctx, use);
    tracing.write();
}

}  // namespace quoin::cli
