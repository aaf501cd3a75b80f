// Lorenz's systems on a GPU, by the host's method of order 5 (dormand_prince.cuh).

#include "cuda/runtime/device.hpp"
#include "cuda/runtime/state.hpp"
#include "lyapunov/cuda/dormand_prince.cuh"
#include "lyapunov/same_system.hpp"

namespace quoin {
namespace {

using namespace cuda;

struct Lorenz63Rows {
    Lorenz63 s;
    __host__ __device__ Index dimension() const { return 3; }
    __device__ double at(const double* x, Index i) const {
        if (i == 0) return s.sigma * (x[1] - x[0]);
        if (i == 1) return x[0] * (s.rho - x[2]) - x[1];
        return x[0] * x[1] - s.beta * x[2];
    }
    template <class T>
    __device__ T product(const double* x, const T* v, Index i) const {
        if (i == 0) return T(s.sigma) * (v[1] - v[0]);
        if (i == 1) return v[0] * T(s.rho - x[2]) - T(x[0]) * v[2] - v[1];
        return v[0] * T(x[1]) + T(x[0]) * v[1] - T(s.beta) * v[2];
    }
};

struct Lorenz96Rows {
    Lorenz96 s;
    __host__ __device__ Index dimension() const { return s.size; }
    /// i + by modulo N, for −2 <= by <= 1.
    __device__ Index at_ring(Index i, int by) const {
        const Index j = i + by;
        return j < 0 ? j + s.size : j < s.size ? j : j - s.size;
    }
    __device__ double at(const double* x, Index i) const {
        return (x[at_ring(i, 1)] - x[at_ring(i, -2)]) * x[at_ring(i, -1)] - x[i] + s.forcing;
    }
    template <class T>
    __device__ T product(const double* x, const T* v, Index i) const {
        const Index a = at_ring(i, -2), b = at_ring(i, -1), c = at_ring(i, 1);
        return (v[c] - v[a]) * T(x[b]) + T(x[c] - x[a]) * v[b] - v[i];
    }
};

template <class T, class Field>
class GpuFlow final : public SameSystem<T, Cuda> {
public:
    GpuFlow(std::unique_ptr<TangentMap<>> system, Field field)
        : SameSystem<T, Cuda>(std::move(system)), field_(field) {}

    void advance(Context<Cuda>& ctx, Index steps, std::span<double> x, MatrixView<T, Cuda> X) override {
        const Span span(ctx, "advance");
        const Index n = field_.dimension();
        const std::size_t bytes = flow_bytes<T>(n);
        const bool in_shared = bytes <= static_cast<std::size_t>(ctx.state().kernels.shared_bytes);
        const int blocks = flow_blocks<T>(X.cols, in_shared, ctx.state().kernels.multiprocessors);
        Arena::Frame frame(ctx);
        double* const end = frame.take<double>(n);
        unsigned char* const workspace =
            in_shared ? nullptr : frame.take<unsigned char>(static_cast<Index>(bytes) * blocks);
        constexpr Index most = 1 << 20;  // steps that an int counts, several times over
        for (Index done = 0; done < steps; done += most) {
            const int count = static_cast<int>(std::min(most, steps - done));
            flow<Field, T>(field_, count, this->step(), x.data(), end, X, workspace, blocks, ctx.stream());
            QUOIN_CUDA_CHECK(cudaMemcpyAsync(x.data(), end, static_cast<std::size_t>(n) * sizeof(double),
                                             cudaMemcpyDeviceToDevice, ctx.stream()));
        }
    }

private:
    Field field_;
};

}  // namespace

template <class T>
std::unique_ptr<TangentMap<T, Cuda>> tangent_map(Context<Cuda>&, const Lorenz63& s) {
    return std::make_unique<GpuFlow<T, Lorenz63Rows>>(tangent_map(s), Lorenz63Rows{s});
}

template <class T>
std::unique_ptr<TangentMap<T, Cuda>> tangent_map(Context<Cuda>&, const Lorenz96& s) {
    return std::make_unique<GpuFlow<T, Lorenz96Rows>>(tangent_map(s), Lorenz96Rows{s});
}

#define QUOIN_INSTANTIATE(T)                                                                       \
    template std::unique_ptr<TangentMap<T, Cuda>> tangent_map<T>(Context<Cuda>&, const Lorenz63&); \
    template std::unique_ptr<TangentMap<T, Cuda>> tangent_map<T>(Context<Cuda>&, const Lorenz96&);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
