// Hénon's map on a GPU. A thread takes a column of X and its own copy of the state through all steps. Bound by the
// latency of one iteration.

#include "cuda/runtime/device.hpp"
#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/state.hpp"
#include "lyapunov/henon.hpp"
#include "lyapunov/same_system.hpp"

namespace quoin {
namespace {

using namespace cuda;

constexpr int henon_threads = 32;

/// x_end differs from x, because every thread reads x. Without columns, one thread advances the state alone.
template <class T>
__global__ void __launch_bounds__(henon_threads)
    henon_kernel(HenonEquations map, Index steps, const double* x, double* x_end, MatrixView<T, Cuda> X) {
    const Index j = Index(blockIdx.x) * henon_threads + threadIdx.x;
    if (j > 0 && j >= X.cols) return;
    T* const column = X.data + j * X.ld;
    double state[2] = {x[0], x[1]};
    T v[2] = {};
    if (j < X.cols) v[0] = column[0], v[1] = column[1];
    for (Index s = 0; s < steps; ++s) {
        double to[2];
        T w[2];
        map.tangent(state, v, w);
        map(state, to);
        for (int i = 0; i < 2; ++i) state[i] = to[i], v[i] = w[i];
    }
    if (j < X.cols) column[0] = v[0], column[1] = v[1];
    if (j == 0) x_end[0] = state[0], x_end[1] = state[1];
}

template <class T>
class GpuHenon final : public SameSystem<T, Cuda> {
public:
    GpuHenon(std::unique_ptr<TangentMap<>> system, HenonEquations map)
        : SameSystem<T, Cuda>(std::move(system)), map_(map) {}

    void advance(Context<Cuda>& ctx, Index steps, std::span<double> x, MatrixView<T, Cuda> X) override {
        const Span span(ctx, "advance");
        Arena::Frame frame(ctx);
        double* const end = frame.take<double>(2);
        const Index blocks = std::max<Index>(1, (X.cols + henon_threads - 1) / henon_threads);
        launch(ctx.stream(), henon_kernel<T>, {static_cast<unsigned>(blocks), henon_threads}, map_, steps, x.data(),
               end, X);
        QUOIN_CUDA_CHECK(cudaMemcpyAsync(x.data(), end, 2 * sizeof(double), cudaMemcpyDeviceToDevice, ctx.stream()));
    }

private:
    HenonEquations map_;
};

}  // namespace

template <class T>
std::unique_ptr<TangentMap<T, Cuda>> tangent_map(Context<Cuda>&, const Henon& s) {
    return std::make_unique<GpuHenon<T>>(tangent_map(s), HenonEquations{s.a, s.b});
}

#define QUOIN_INSTANTIATE(T) template std::unique_ptr<TangentMap<T, Cuda>> tangent_map<T>(Context<Cuda>&, const Henon&);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
