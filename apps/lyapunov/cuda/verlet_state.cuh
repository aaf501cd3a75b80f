#pragma once

// One step of velocity Verlet's state for N particles under central pair forces, and DF(q) as a list of couplings.
//
//   p := p + ½h F(q)  (end of the step before),   p := p + ½h F(q),   q' := q + h p   (begin of this one)
//
// A warp owns a particle. Its lanes take the candidates in turn, and put the candidates that interact into the
// particle's row of the list in the order of the candidates (ballot), so that neither the list nor the sums depend on
// when a warp runs. The lanes' parts of F are added in a butterfly. No warp reads what another one writes, because q'
// is not q. The halves of a step are fused multiply-adds by name: left to the compiler, a half that ends a run of steps
// and one amid it would round differently.
//
// A `Force` has `dimensions`, `candidates(i)`, and `interact(q, own, i, k, pair)`. This returns whether candidate k of
// particle i, at `own`, is near, and writes `pair` if so. N candidates of 3 loads (L1, L2) and some 20 operations each;
// latency at N = 1000, 10 µs.

#include <algorithm>
#include <cmath>

#include "cuda/runtime/error.hpp"
#include "cuda/runtime/launch.hpp"

namespace quoin::cuda {

constexpr int verlet_state_threads = 128;

/// The action of a partner on particle i: F_i, and δF_i = (α + β r rᵀ)(δ_i − δ_partner).
struct Interaction {
    Index partner;  ///< N: a fixed end of the chain
    double force[3], alpha, beta, r[3];
    bool meet;  ///< nearer than particles may be
};

/// DF(q): row i has count[i] entries, entry k at k·N + i, so that neighbouring threads read neighbouring words.
template <class T, int D>
struct Couplings {
    static constexpr int values_each = D == 1 ? 1 : 2 + D;  ///< α; of more dimensions β and r

    Index N = 0;
    int capacity = 0;        ///< entries that a row can have
    int* count = nullptr;    ///< N
    int* partner = nullptr;  ///< capacity·N
    T* values = nullptr;     ///< values_each·capacity·N

    __host__ __device__ Index entries() const { return capacity * N; }
    /// Returns the list s places after this one.
    __device__ Couplings behind(Index s) const {
        return {N, capacity, count + s * N, partner + s * entries(), values + s * values_each * entries()};
    }
};

/// Errors that steps have found. All bits set: none.
struct Flaw {
    unsigned long long meeting;  ///< (s·N + i)·N + j for the first pair (i, j) that meets, in step s
    int most;                    ///< entries that a row needs, if they exceed its capacity
};

/// The launch for step s. If `ends`, it ends the step before; if `begins`, it begins step s.
struct VerletStep {
    Index s, N;
    double h;
    bool ends, begins;
    const double* q;
    double *next_q, *p;
};

template <class Force, class T>
__global__ void __launch_bounds__(verlet_state_threads)
    verlet_state_kernel(Force force, VerletStep step, Couplings<T, Force::dimensions> couplings, Flaw* flaw) {
    constexpr int D = Force::dimensions;
    const int lane = threadIdx.x % 32;
    const Index N = step.N, i = (Index(blockIdx.x) * verlet_state_threads + threadIdx.x) / 32;
    if (i >= N) return;
    double own[D], F[D] = {};
    for (int a = 0; a < D; ++a) own[a] = step.q[D * i + a];

    int found = 0;
    const Index candidates = force.candidates(i);
    for (Index first = 0; first < candidates; first += 32) {
        Interaction pair;
        const bool near = first + lane < candidates && force.interact(step.q, own, i, first + lane, pair);
        const unsigned lanes = __ballot_sync(~0u, near);
        if (near) {
            for (int a = 0; a < D; ++a) F[a] += pair.force[a];
            if (pair.meet) {
                atomicMin(&flaw->meeting, static_cast<unsigned long long>((step.s * N + i) * N + pair.partner));
            }
            const int k = found + __popc(lanes & ((1u << lane) - 1));
            if (k < couplings.capacity) {
                const Index entry = k * N + i;
                couplings.partner[entry] = static_cast<int>(pair.partner);
                couplings.values[entry] = static_cast<T>(pair.alpha);
                if constexpr (D > 1) {
                    couplings.values[couplings.entries() + entry] = static_cast<T>(pair.beta);
                    for (int a = 0; a < D; ++a) {
                        couplings.values[(2 + a) * couplings.entries() + entry] = static_cast<T>(pair.r[a]);
                    }
                }
            }
        }
        found += __popc(lanes);
    }
    if (lane == 0 && couplings.capacity > 0) {
        couplings.count[i] = min(found, couplings.capacity);
        if (found > couplings.capacity) atomicMax(&flaw->most, found);
    }
    for (int a = 0; a < D; ++a) {
        for (int distance = 16; distance > 0; distance /= 2) F[a] += __shfl_xor_sync(~0u, F[a], distance);
    }
    if (lane > 0) return;
    for (int a = 0; a < D; ++a) {
        double p = step.p[D * i + a];
        if (step.ends) p = std::fma(step.h / 2, F[a], p);
        if (step.begins) {
            p = std::fma(step.h / 2, F[a], p);
            step.next_q[D * i + a] = std::fma(step.h, p, own[a]);
        }
        step.p[D * i + a] = p;
    }
}

template <class Force, class T>
void verlet_state(const Force& force, const VerletStep& step, const Couplings<T, Force::dimensions>& couplings,
                  Flaw* flaw, cudaStream_t stream) {
    constexpr Index particles = verlet_state_threads / 32;
    launch(stream, verlet_state_kernel<Force, T>,
           {static_cast<unsigned>((step.N + particles - 1) / particles), verlet_state_threads}, force, step, couplings,
           flaw);
}

}  // namespace quoin::cuda
