#pragma once

// Helpers of studies on either device: the device's context, the time of some work there, random matrices, and the
// library that Quoin is compared with.

#include <ctime>

#include "algorithms/shared/copies.hpp"
#include "on_device.hpp"
#include "random_matrix.hpp"
#include "rivals/reference_lapack.hpp"
#include "stopwatch.hpp"
#include "studies.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "measure/cuda/device.hpp"
#include "measure/cuda/random.hpp"
#include "rivals/cusolver_qr.hpp"
#endif

namespace quoin::cli {

/// Calls `run(ctx, description)` with a context of the device that the command line names, and the device in words.
template <class Run>
void on_either_device(const BenchArguments& arguments, Run&& run) {
    const auto bytes_on_gpu = [](const auto&) { return 0.0; };  // too large cases are skipped
    on_device(arguments.common, "the study", bytes_on_gpu, [&]<class D>(Context<D>& ctx, const DeviceInUse&) {
        if constexpr (std::is_same_v<D, Host>) {
            warn_about_host();
            run(ctx, describe_host(ctx));
        } else {
#ifdef QUOIN_HAVE_CUDA
            run(ctx, bench::describe_device());
#endif
        }
    });
}

/// Returns the seconds that the calling thread spent on a core.
inline double thread_seconds() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
/// Returns the seconds of work on the context's device. With one thread, only time while the thread has its core
/// counts, and so no other program's, unless the work is shorter than the clock's own time.
template <class Work>
double seconds_of(Context<Host>& ctx, Work&& work) {
    const double busy = thread_seconds();
    const Stopwatch watch;
    work();
    const double seconds = watch.seconds();
    return ctx.threads() == 1 && seconds > 1e-4 ? std::min(seconds, thread_seconds() - busy) : seconds;
}
/// Returns a matrix of independent standard normal numbers in the memory of the context's device.
template <class T>
Matrix<T> normal_matrix(Context<Host>&, Index rows, Index cols) {
    return normal_matrix<T>(rows, cols);
}
/// The routines of LAPACK, by cuSOLVER on a GPU. A and C are as `ReferenceLapack` and `bench::CusolverQR` have them.
template <class T, class D>
struct Rival {
    static constexpr const char* name = "lapack";
    Rival(Context<D>&, Index m, Index n) : lapack(m, n) {}
    void geqrf(Context<D>&, MatrixView<T> A) { lapack.geqrf(A); }
    void orgqr(Context<D>&, MatrixView<T> A) { lapack.orgqr(A); }
    void ormqr(Context<D>&, MatrixView<const T> A, MatrixView<T> C) { lapack.ormqr(A, C); }
    ReferenceLapack<T> lapack;
};
#ifdef QUOIN_HAVE_CUDA
using bench::seconds_of;
template <class T>
Matrix<T, Cuda> normal_matrix(Context<Cuda>& ctx, Index rows, Index cols) {
    Matrix<T, Cuda> A(ctx, rows, cols);
    bench::fill_normal(ctx, A);
    return A;
}
template <class T>
struct Rival<T, Cuda> : bench::CusolverQR<T> {
    static constexpr const char* name = "cusolver";
    using bench::CusolverQR<T>::CusolverQR;
};
#endif

}  // namespace quoin::cli
