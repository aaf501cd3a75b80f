#include "measure/machine_limits.hpp"

#include <cblas.h>
#include <omp.h>

#include <algorithm>
#include <vector>

#include "host/kernels/kernels.hpp"
#include "measure/medians.hpp"
#include "random_matrix.hpp"
#include "rivals/in_precision.hpp"
#include "stopwatch.hpp"

namespace quoin::cli {

namespace {

/// Least time of six runs.
template <class F>
double best_seconds(F&& run) {
    const auto timed = [&] {
        const Stopwatch watch;
        run();
        return watch.seconds();
    };
    return fastest_of({timed}, /*repeat=*/4).front();
}

template <class T>
double measure_gemm() {
    const int n = omp_get_max_threads() <= 4 ? 1024 : 2048;  // large enough for all cores
    const Matrix<T> A = normal_matrix<T>(n, n, 1), B = normal_matrix<T>(n, n, 2);
    Matrix<T> C(n, n);
    constexpr auto gemm = bench::in_precision<T>(cblas_sgemm, cblas_dgemm);
    return 2.0 * n * n * n / best_seconds([&] {
               gemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, A.data(), n, B.data(), n, 0, C.data(), n);
           });
}

/// flop/s of Quoin's own products on blocks that stay in each core's cache: nothing here multiplies faster.
template <class T>
double measure_kernels() {
    constexpr Index m = 240, n = 48, k = 96, repeats = 2000;
    const int threads = omp_get_max_threads();
    const Matrix<T> A = normal_matrix<T>(m, k, 1), B = normal_matrix<T>(k, n, 2);
    std::vector<Matrix<T>> C(threads);
    for (Matrix<T>& of_thread : C) of_thread = normal_matrix<T>(m, n, 3);
    const double seconds = best_seconds([&] {
#pragma omp parallel for num_threads(threads) schedule(static, 1)
        for (int t = 0; t < threads; ++t) {
            for (Index r = 0; r < repeats; ++r) {
                host::kernels<T>().outer(m, n, k, A.data(), m, B.data(), k, C[t].data(), m);
            }
        }
    });
    return 2.0 * m * n * k * repeats * threads / seconds;
}

double measure_copy() {
    Matrix<double> from(Index{1} << 25, 1), to(Index{1} << 25, 1);  // 256 MiB each, beyond any cache
    const std::size_t bytes = sizeof(double) << 25;
    copy_in_parallel(from.data(), to.data(), bytes);  // every page of both is there
    return 2.0 * static_cast<double>(bytes) / best_seconds([&] { copy_in_parallel(to.data(), from.data(), bytes); });
}

}  // namespace

MachineLimits measure_machine_limits(bool f32, bool f64) {
    MachineLimits limits;
    if (f32) limits.arithmetic_f32 = std::max(limits.gemm_f32 = measure_gemm<float>(), measure_kernels<float>());
    if (f64) limits.arithmetic_f64 = std::max(limits.gemm_f64 = measure_gemm<double>(), measure_kernels<double>());
    limits.copy = measure_copy();
    return limits;
}

}  // namespace quoin::cli
