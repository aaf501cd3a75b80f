#include "measure/cuda/device.hpp"

#include <fmt/format.h>

#include "cuda/runtime/blas.hpp"
#include "cuda/runtime/solver.hpp"
#include "measure/cuda/random.hpp"

namespace quoin::bench {

std::string describe_device() {
    int device = 0, runtime = 0;
    cudaDeviceProp properties{};
    QUOIN_CUDA_CHECK(cudaGetDevice(&device));
    QUOIN_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
    QUOIN_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
    const auto library = [](auto version_of) {
        int parts[3] = {};
        for (int i = 0; i < 3; ++i) version_of(static_cast<libraryPropertyType>(i), &parts[i]);
        return fmt::format("{}.{}.{}", parts[0], parts[1], parts[2]);
    };
    return fmt::format("{}, {} multiprocessors, CUDA {}.{}, cuBLAS {}, cuSOLVER {}", properties.name,
                       properties.multiProcessorCount, runtime / 1000, runtime % 1000 / 10, library(cublasGetProperty),
                       library(cusolverGetProperty));
}

std::string pci_bus_id() {
    int device = 0;
    char id[32] = {};
    QUOIN_CUDA_CHECK(cudaGetDevice(&device));
    QUOIN_CUDA_CHECK(cudaDeviceGetPCIBusId(id, sizeof id, device));
    return id;
}

namespace {

/// Least time of several runs after one.
template <class F>
double best_seconds(Context<Cuda>& ctx, F&& run) {
    seconds_of(ctx, run);
    double best = seconds_of(ctx, run);
    for (int i = 0; i < 4; ++i) best = std::min(best, seconds_of(ctx, run));
    return best;
}

}  // namespace

double measure_copy(Context<Cuda>& ctx) {
    Matrix<double, Cuda> from(ctx, Index{1} << 27, 1), to(ctx, Index{1} << 27, 1);  // 1 GiB each
    fill_normal(ctx, from);
    const double bytes = sizeof(double) * static_cast<double>(from.rows());
    return 2 * bytes / best_seconds(ctx, [&] {
               QUOIN_CUDA_CHECK(cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(bytes),
                                                cudaMemcpyDeviceToDevice, ctx.stream()));
           });
}

template <class T>
double measure_gemm(Context<Cuda>& ctx) {
    constexpr Index n = 8192;
    Matrix<T, Cuda> A(ctx, n, n), B(ctx, n, n), C(ctx, n, n);
    fill_normal(ctx, A);
    fill_normal(ctx, B);
    return 2.0 * n * n * n /
           best_seconds(ctx, [&] { cuda::gemm<T>(ctx, Op::None, Op::None, 1, A.view(), B.view(), 0, C.view()); });
}

template double measure_gemm<float>(Context<Cuda>&);
template double measure_gemm<double>(Context<Cuda>&);

}  // namespace quoin::bench
