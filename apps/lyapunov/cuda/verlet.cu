// Particles and chains on a GPU: state and tangent vectors by velocity Verlet (verlet_state.cuh, verlet_tangents.cuh).
// The state goes ahead by some steps, a launch each, and leaves the couplings of each; then one launch takes the
// vectors through all of them.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "cuda/runtime/device.hpp"
#include "cuda/runtime/state.hpp"
#include "lyapunov/central_force.hpp"
#include "lyapunov/cuda/verlet_tangents.cuh"
#include "lyapunov/same_system.hpp"

namespace quoin {
namespace {

using namespace cuda;

/// Springs between neighbours on a chain; the walls are one particle, N, at 0.
struct Springs {
    static constexpr int dimensions = 1;
    Index N;
    double beta;
    bool periodic;

    __device__ Index candidates(Index) const { return 2; }
    __device__ bool interact(const double* q, const double (&own)[1], Index i, Index k, Interaction& pair) const {
        Index j = k == 0 ? i - 1 : i + 1;
        if (j < 0 || j >= N) j = !periodic ? N : j < 0 ? N - 1 : 0;
        // V = Δ²/2 + βΔ⁴/4 of Δ = q_i − q_j: F_i = −V', α = −V''
        const double delta = own[0] - (j < N ? q[j] : 0), square = delta * delta;
        pair.partner = j;
        pair.force[0] = -delta * (1 + beta * square);
        pair.alpha = -(1 + 3 * beta * square);
        pair.meet = false;
        return true;
    }
};

/// All pairs of N particles in a periodic box, to the nearest image.
template <int D>
struct PairForces {
    static constexpr int dimensions = D;
    Index N;
    double side;
    CentralForce force;

    __device__ Index candidates(Index) const { return N; }
    __device__ bool interact(const double* q, const double (&own)[D], Index i, Index j, Interaction& pair) const {
        double square = 0;
        for (int a = 0; a < D; ++a) {
            const double x = own[a] - q[D * j + a];
            pair.r[a] = x - side * rint(x / side);
            square += pair.r[a] * pair.r[a];
        }
        if (!(square < force.cutoff * force.cutoff) || j == i) return false;
        const PairForce f = force.at(sqrt(square));
        pair.partner = j;
        for (int a = 0; a < D; ++a) pair.force[a] = f.alpha * pair.r[a];
        pair.alpha = f.alpha;
        pair.beta = f.beta;
        pair.meet = !(square > closest_pair * closest_pair);
        return true;
    }
};

template <class T, class Force>
class GpuVerlet final : public SameSystem<T, Cuda> {
public:
    /// `neighbours` that a particle is expected to have at most.
    GpuVerlet(std::unique_ptr<TangentMap<>> system, Force force, Index neighbours)
        : SameSystem<T, Cuda>(std::move(system)), force_(force), capacity_(static_cast<int>(neighbours)) {}

    void advance(Context<Cuda>& ctx, Index steps, std::span<double> x, MatrixView<T, Cuda> X) override {
        const Span span(ctx, "advance");
        for (Index done = 0; done < steps;) {
            const Index count = std::min(steps_ahead(), steps - done);
            if (advance_ahead(ctx, count, x.data(), X)) done += count;
        }
    }

private:
    static constexpr int D = Force::dimensions;
    using List = Couplings<T, D>;

    static Index bytes_of_list(Index N, Index capacity) {
        return N * (Index(sizeof(int)) * (1 + capacity) + Index(sizeof(T)) * capacity * List::values_each);
    }
    /// Steps whose couplings are kept: no number depends on it.
    Index steps_ahead() const {
        constexpr Index most = 16, bytes = Index(1) << 29;
        return std::clamp<Index>(bytes / bytes_of_list(force_.N, capacity_) - 1, 1, most);
    }

    /// `count` steps, or none, and then the lists hold more the next time.
    bool advance_ahead(Context<Cuda>& ctx, Index count, double* x, MatrixView<T, Cuda> X) {
        const Index N = force_.N, m = D * N;
        const double h = this->step();
        const cudaStream_t stream = ctx.stream();
        Arena::Frame frame(ctx);
        double* const q[2] = {frame.take<double>(m), frame.take<double>(m)};
        double* const p = frame.take<double>(m);
        Flaw* const flaw = frame.take<Flaw>(1);
        List first{.N = N};
        if (X.cols > 0) {
            first.capacity = capacity_;
            first.count = frame.take<int>((count + 1) * N);
            first.partner = frame.take<int>((count + 1) * first.entries());
            first.values = frame.take<T>((count + 1) * List::values_each * first.entries());
        }
        QUOIN_CUDA_CHECK(cudaMemsetAsync(flaw, 0xff, sizeof(Flaw), stream));
        QUOIN_CUDA_CHECK(cudaMemcpyAsync(p, x + m, m * sizeof(double), cudaMemcpyDeviceToDevice, stream));
        for (Index s = 0; s <= count; ++s) {
            List list = first;
            if (X.cols > 0) {
                list.count += s * N;
                list.partner += s * first.entries();
                list.values += s * List::values_each * first.entries();
            }
            const VerletStep step{s, N, h, s > 0, s < count, s == 0 ? x : q[(s + 1) % 2], q[s % 2], p};
            verlet_state<Force, T>(force_, step, list, flaw, stream);
        }
        const Flaw found = *ctx.state().read_back(flaw, 1);
        if (found.meeting != ~0ull) {
            const Index pair = static_cast<Index>(found.meeting) % (N * N);
            throw_overlap(pair / N, pair % N, h);
        }
        if (found.most > capacity_) {
            capacity_ = static_cast<int>(std::min<Index>(found.most + found.most / 4, N));
            return false;
        }
        // the positions that the last launch read
        QUOIN_CUDA_CHECK(cudaMemcpyAsync(x, q[(count + 1) % 2], m * sizeof(double), cudaMemcpyDeviceToDevice, stream));
        QUOIN_CUDA_CHECK(cudaMemcpyAsync(x + m, p, m * sizeof(double), cudaMemcpyDeviceToDevice, stream));
        if (X.cols > 0)
            verlet_tangents<T, D>(first, static_cast<int>(count), static_cast<T>(h), X,
                                  static_cast<std::size_t>(ctx.state().kernels.shared_bytes), stream);
        return true;
    }

    Force force_;
    int capacity_;  // entries of a row of couplings
};

template <class T, int D>
std::unique_ptr<TangentMap<T, Cuda>> fluid(const Particles& s, std::unique_ptr<TangentMap<>> system) {
    const CentralForce force(s);
    // twice the mean number of particles in a ball of the cutoff's radius, and a few more
    const double ball = (D == 2 ? 1.0 : 4.0 / 3) * std::numbers::pi * std::pow(force.cutoff, D);
    const Index neighbours = std::min<Index>(s.count, static_cast<Index>(2 * s.density * ball) + 8);
    return std::make_unique<GpuVerlet<T, PairForces<D>>>(std::move(system), PairForces<D>{s.count, box_side(s), force},
                                                         neighbours);
}

}  // namespace

template <class T>
std::unique_ptr<TangentMap<T, Cuda>> tangent_map(Context<Cuda>&, const FputBeta& s) {
    return std::make_unique<GpuVerlet<T, Springs>>(tangent_map(s), Springs{s.size, s.beta, s.periodic}, 2);
}

template <class T>
std::unique_ptr<TangentMap<T, Cuda>> tangent_map(Context<Cuda>&, const Particles& s) {
    std::unique_ptr<TangentMap<>> system = tangent_map(s);
    return s.dimensions == 2 ? fluid<T, 2>(s, std::move(system)) : fluid<T, 3>(s, std::move(system));
}

#define QUOIN_INSTANTIATE(T)                                                                       \
    template std::unique_ptr<TangentMap<T, Cuda>> tangent_map<T>(Context<Cuda>&, const FputBeta&); \
    template std::unique_ptr<TangentMap<T, Cuda>> tangent_map<T>(Context<Cuda>&, const Particles&);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
