#include "cuda/plain/householder.hpp"

#include <vector>

#include "cuda/runtime/solver.hpp"
#include "cuda/runtime/state.hpp"

namespace quoin::cuda::plain {

template <class T>
void factor(Context<Cuda>& ctx, MatrixView<T, Cuda> A, T* tau) {
    if (A.empty()) return;
    constexpr cudaDataType type = std::is_same_v<T, double> ? CUDA_R_64F : CUDA_R_32F;
    const SolverParameters parameters;
    const cusolverDnHandle_t solver = ctx.state().solver();
    std::size_t on_device = 0, on_host = 0;
    QUOIN_CUDA_CHECK(cusolverDnXgeqrf_bufferSize(solver, parameters, A.rows, A.cols, type, A.data, A.ld, type, tau,
                                                 type, &on_device, &on_host));
    Arena::Frame frame(ctx);
    char* const work = frame.take<char>(static_cast<Index>(on_device));
    std::vector<char> host_work(on_host);
    QUOIN_CUDA_CHECK(cusolverDnXgeqrf(solver, parameters, A.rows, A.cols, type, A.data, A.ld, type, tau, type, work,
                                      on_device, host_work.data(), on_host, frame.take<int>(1)));
}

template void factor<float>(Context<Cuda>&, MatrixView<float, Cuda>, float*);
template void factor<double>(Context<Cuda>&, MatrixView<double, Cuda>, double*);

}  // namespace quoin::cuda::plain
