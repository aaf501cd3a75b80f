#pragma once

// Helpers of studies on either device: the device's context, the time of some work there, random matrices, and LAPACK's
// routines one matrix after the other.

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "studies.hpp"
#include "interrupt.hpp"
#include "machine.hpp"
#include "random_matrix.hpp"
#include "rivals/reference_lapack.hpp"
#include "stopwatch.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "rivals/cusolver_qr.hpp"
#include "measure/cuda/device.hpp"
#include "measure/cuda/random.hpp"
#endif

namespace quoin::cli {

/// run(ctx, machine) with a context of the device that the command line names, and the machine in words.
template <class Run>
void on_either_device(const BenchArguments& arguments, Run&& run) {
    if (!arguments.on_device()) {
        Context<Host> ctx = make_context(arguments.common);
        const InterruptGuard guard(ctx);
        const Machine machine = describe_machine();
        if (const std::string warning = machine.busy(); !warning.empty()) fmt::print(stderr, "quoin: {}\n", warning);
        return run(ctx, fmt::format("{}, {} threads, {}", machine.cpu, ctx.threads(), build_info().blas));
    }
#ifdef QUOIN_HAVE_CUDA
    Context<Cuda> ctx = device_context();
    const InterruptGuard guard(ctx);
    run(ctx, bench::describe_device());
#endif
}

/// Returns the seconds that the calling thread spent on a core.
inline double thread_seconds() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
/// Returns the seconds of work on the context's device. With one thread that is the time in which the thread had its
/// core, so that other programs do not count, unless the work is shorter than the clock's own time.
template <class Work>
double seconds_of(Context<Host>& ctx, Work&& work) {
    const double busy = thread_seconds();
    const Stopwatch watch;
    work();
    const double seconds = watch.seconds();
    return ctx.threads() == 1 && seconds > 1e-4 ? std::min(seconds, thread_seconds() - busy) : seconds;
}
/// Standard normal entries.
template <class T>
void fill(Context<Host>&, Matrix<T>& A) {
    fill_normal(A, /*seed=*/1);
}
template <class T, class D>
Matrix<T, D> copied(Context<D>& ctx, const Matrix<T, D>& A) {
    Matrix<T, D> B(ctx, A.rows(), A.cols());
    copy<T>(ctx, A.view(), B.view());
    return B;
}
/// LAPACK, a matrix after the other.
template <class T, class D>
class Loop;
template <class T>
class Loop<T, Host> {
public:
    static constexpr const char* name = "lapack";
    Loop(Context<Host>&, BatchSpec spec) : lapack_(spec.shape.rows, spec.shape.cols), count_(spec.count) {}
    void geqrf(Context<Host>&, BatchView<T> A) {
        for (Index b = 0; b < count_; ++b) lapack_.geqrf({A.data(b), A.rows(b), A.cols(b)});
    }
    void orgqr(Context<Host>&, BatchView<T> A) {
        // with the last tau: as much work
        for (Index b = 0; b < count_; ++b) lapack_.orgqr({A.data(b), A.rows(b), A.cols(b)});
    }

private:
    ReferenceLapack<T> lapack_;
    Index count_;
};
#ifdef QUOIN_HAVE_CUDA
using bench::seconds_of;
template <class T>
void fill(Context<Cuda>& ctx, Matrix<T, Cuda>& A) {
    bench::fill_normal(ctx, A);
}
template <class T>
class Loop<T, Cuda> {
public:
    static constexpr const char* name = "cusolver";
    Loop(Context<Cuda>& ctx, BatchSpec spec) : cusolver_(ctx, spec.shape.rows, spec.shape.cols), count_(spec.count) {}
    void geqrf(Context<Cuda>& ctx, BatchView<T, Cuda> A) {
        for (Index b = 0; b < count_; ++b) {
            auto one = Matrix<T, Cuda>::over({A.data(b), A.rows(b), A.cols(b)});
            cusolver_.geqrf(ctx, one);
        }
    }
    void orgqr(Context<Cuda>& ctx, BatchView<T, Cuda> A) {
        for (Index b = 0; b < count_; ++b) {
            auto one = Matrix<T, Cuda>::over({A.data(b), A.rows(b), A.cols(b)});
            cusolver_.orgqr(ctx, one);
        }
    }

private:
    bench::CusolverQR<T> cusolver_;
    Index count_;
};
#endif

}  // namespace quoin::cli
