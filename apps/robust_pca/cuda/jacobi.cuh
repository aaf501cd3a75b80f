#pragma once

// Computes the eigenvalues of a symmetric B (n×n, n <= 128), which at best is nearly diagonal, by two-sided Jacobi
// rotations in the parallel order of a round robin, in one block. A second kernel applies the rotations to the rows of
// V, one warp a row.
//
// A sweep is N − 1 steps, N = n or n + 1 and at least 6, each with h = N/2 rotations of disjoint pairs (p_k, q_k):
//
//   p_k = s + k mod N − 1,  q_k = s − k mod N − 1,  q_0 = N − 1       in step s
//
// B is in shared memory with both triangles, and its diagonal separately. A step turns every 2×2 block (pair k, pair
// l), k < l, from both sides. One thread owns the block and its mirror image, at positions that never change. The pairs
// of the next step lie in the blocks (0, 1), (k, k + 2) and (h − 2, h − 1). The first warps own these blocks and find
// the next rotations as soon as they have turned them, while the other warps turn the rest. So a step has one barrier.
//
// An angle is computed in f32. It leaves 1e-7 of b_pq, and c² + s² = 1 in f64. A pair is not turned if b_pq is at most
// `smallest` times the bound below. Blocks of two pairs that do not turn are not touched.
//
// The sweeps end once |b_ij| <= max(tolerance √(β max(b_ii, b_jj)), uβ/2) for all i < j. β is the largest b_ii on
// entry, and u belongs to f64; a Gram matrix is not known to uβ/2. An entry b_ij moves V diag(f) Vᵀ, f = (1 − τ/σ)₊, at
// the place i, j by b_ij (f_i − f_j)/(σ_i² − σ_j²), at most b_ij/(σ_i(σ_i + σ_j)) for σ_i >= σ_j. So it moves X V
// diag(f) Vᵀ by at most tolerance ‖X‖, for every τ. If τ = `threshold` is known, f is 0 for σ below it, and this part
// of B need not be diagonal. It is enough that every |b_ij| <= (τ² − max(b_ii, b_jj))/n there, because then by
// Gershgorin's theorem none of its eigenvalues is above τ². Its pairs are turned all the same. Otherwise every rotation
// of (i, k), i above, would return a remaining b_jk to b_ij.
//
// Shared memory: N(N + 1) doubles and 5 KB, 137 KB for n = 128. A block takes 12 shared accesses of 8 bytes, and a step
// h² · 48 bytes, 0.5 µs for n = 100. These accesses bound the time.

#include <cfloat>

#include "cuda/arch/sm80_dmma.cuh"
#include "cuda/runtime/launch.hpp"
#include "quoin/cuda.hpp"

namespace quoin::cuda {

constexpr int jacobi_max_cols = 128, jacobi_threads = 512, jacobi_leaders = 64, jacobi_most_sweeps = 30;
constexpr int jacobi_units = 5;  ///< blocks of a thread: h(h − 3)/2 for h = 64, over 448
static_assert(jacobi_units * (jacobi_threads - jacobi_leaders) >= jacobi_leaders * (jacobi_leaders - 3) / 2);

struct JacobiOutcome {
    int sweeps = 0;
    int converged = 0;
};

__host__ __device__ constexpr int jacobi_order(int n) { return n < 6 ? 6 : n + n % 2; }
__host__ __device__ constexpr int jacobi_steps(int n) { return jacobi_order(n) - 1; }
/// Number of pairs that one step turns.
__host__ __device__ constexpr int jacobi_pairs(int n) { return jacobi_order(n) / 2; }
/// Largest number of rotations (c, s) of all sweeps together.
constexpr Index jacobi_rotations(int n) { return Index(jacobi_most_sweeps) * jacobi_steps(n) * jacobi_pairs(n); }

/// Rows p and q of pair k in step s of a round of `steps` steps.
__host__ __device__ inline int jacobi_p(int k, int s, int steps) {
    const int p = s + k;
    return p < steps ? p : p - steps;
}
__host__ __device__ inline int jacobi_q(int k, int s, int steps) {
    const int q = s - k;
    return k == 0 ? steps : q < 0 ? q + steps : q;
}

/// Block (k, l) of leader number i. It contains pair i of the next step, in row q_k and column p_l except at the ends.
struct LeaderBlock {
    int k, l;
    bool at_p, at_q;  ///< the pair's place in the block: row p_k (else q_k), column q_l (else p_l)
};
__host__ __device__ inline LeaderBlock leader_block(int i, int h) {
    if (i == 0) return {0, 1, false, false};
    if (i == 1) return {0, 2, true, false};
    if (i == h - 1) return {h - 2, h - 1, false, true};
    return {i - 1, i + 1, false, false};
}
/// Sets (k, l) to the e-th of the other blocks, column by column. Returns false if there are at most e of them.
__host__ __device__ inline bool follower_block(int e, int h, int& k, int& l) {
    for (l = 2; l < h; ++l) {
        const int far = l - 2, near = l <= h - 2 ? 1 : 0;
        if (e < far + near) {
            k = e < far ? e : l - 1;
            return true;
        }
        e -= far + near;
    }
    return false;
}

struct alignas(16) Rotation {
    double c, s;
};

/// 1/√x and x/y to about 1e-7.
__host__ __device__ inline float inverse_root(float x) {
#ifdef __CUDA_ARCH__
    return rsqrtf(x);
#else
    return 1 / sqrtf(x);
#endif
}
__host__ __device__ inline float quotient(float x, float y) {
#ifdef __CUDA_ARCH__
    return __fdividef(x, y);
#else
    return x / y;
#endif
}

/// Returns J = [c s; −s c] such that JᵀBJ is diagonal to 1e-7 of b, for B = [a b; b d].
__host__ __device__ inline Rotation rotation_of(double a, double b, double d) {
    // t² + 2ζt − 1 = 0, ζ = (d − a)/2b, |t| <= 1
    const float half = static_cast<float>(0.5 * (d - a)), off = static_cast<float>(b);
    const bool steep = fabsf(off) > fabsf(half);
    const float ratio = quotient(steep ? half : off, steep ? off : half);  // ζ or 1/ζ
    const float square = 1 + ratio * ratio, root = square * inverse_root(square);
    float t = quotient(steep ? copysignf(1, ratio) : ratio, steep ? fabsf(ratio) + root : 1 + root);
    // 0/0, where both are too small for f32
    if (!(fabsf(t) <= 1)) t = 0;
    const double tangent = t, x = 1 + tangent * tangent;
    // c = 1/√x: y (1 + e/2 + 3e²/8), e = 1 − x y²
    const double y = inverse_root(static_cast<float>(x)), e = 1 - x * y * y;
    const double c = y + y * e * (0.5 + 0.375 * e);
    return {c, c * tangent};
}

/// Turns one pair. Updates its diagonal entries a and d, and returns the new b.
__host__ __device__ inline double turn_pair(Rotation r, double b, double& a, double& d) {
    const double gap = d - a, delta = r.s * (2 * r.c * b - r.s * gap);
    a -= delta;
    d += delta;
    return r.c * (r.c * b - r.s * gap) - r.s * r.s * b;
}

/// E := JᵀEJ' for a 2×2 block E.
__host__ __device__ inline void turn_block(Rotation row, Rotation col, double (&e)[2][2]) {
    double f[2][2];
    for (int j = 0; j < 2; ++j) {
        f[0][j] = row.c * e[0][j] - row.s * e[1][j];
        f[1][j] = row.s * e[0][j] + row.c * e[1][j];
    }
    for (int i = 0; i < 2; ++i) {
        e[i][0] = col.c * f[i][0] - col.s * f[i][1];
        e[i][1] = col.s * f[i][0] + col.c * f[i][1];
    }
}

/// Bounds on the remaining b_ij.
struct JacobiBound {
    double factor, floor;
    /// Whether b is small compared with the diagonal entries a and d.
    __host__ __device__ bool holds(double b, double a, double d) const {
        return b * b <= fmax(factor * fmax(a, d), floor);
    }
};

/// Whether the eigenvalues of n rows with off-diagonal entries b and diagonal entries a and d stay below `bound`.
__host__ __device__ inline bool stays_below(double bound, double b, double a, double d, int n) {
    return n * fabs(b) <= bound - fmax(a, d);
}

__device__ inline double* entry(double* B, int ld, int i, int j) { return B + i + j * ld; }

__global__ void __launch_bounds__(jacobi_threads, 1)
    jacobi_kernel(int n, const double* B, double threshold, double tolerance, double smallest, Rotation* rotations,
                  double* values, int* places, JacobiOutcome* outcome) {
    extern __shared__ __align__(16) double jacobi_shared[];
    __shared__ double diagonal[jacobi_max_cols];
    __shared__ Rotation turning[2][jacobi_leaders];
    const int N = jacobi_order(n), steps = N - 1, h = N / 2, ld = N + 1, x = threadIdx.x;
    double* const S = jacobi_shared;

    if (x < n) diagonal[x] = B[x + Index(x) * n];
    if (!__syncthreads_and(x >= n || fabs(diagonal[x]) <= DBL_MAX)) {
        if (x < n) places[x] = x;
        if (x == 0) *outcome = {};
        return;
    }
    double top = 0;
    for (int i = 0; i < n; ++i) top = fmax(top, diagonal[i]);
    const int exponent = top > 0 ? ilogb(top) : 0;
    __syncthreads();
    for (int at = x; at < N * N; at += jacobi_threads) {
        const int i = at % N, j = at / N;
        const double b = i < n && j < n ? scalbn(B[min(i, j) + Index(max(i, j)) * n], -exponent) : 0.0;
        *entry(S, ld, i, j) = b;
        if (i == j) diagonal[i] = b;
    }
    top = scalbn(top, -exponent);
    const double known = DBL_EPSILON / 4 * top, part = smallest * smallest;
    const double dropped = scalbn(threshold * threshold, -exponent);
    const JacobiBound done{tolerance * tolerance * top, known * known}, still{part * done.factor, part * done.floor};
    // positions that never change
    int pair_k[jacobi_units], pair_l[jacobi_units], count = 0;
    const LeaderBlock mine = leader_block(min(x, h - 1), h);
    if (x >= jacobi_leaders) {
#pragma unroll
        for (int u = 0; u < jacobi_units; ++u) {
            const int e = x - jacobi_leaders + u * (jacobi_threads - jacobi_leaders);
            if (follower_block(e, h, pair_k[u], pair_l[u])) count = u + 1;
        }
    }
    __syncthreads();

    // finds the rotation of pair i = (p, q), turns its own entries and publishes the rotation
    const auto turn = [&](int i, int p, int q, double b, int slot, Index step) {
        double a = diagonal[p], d = diagonal[q];
        Rotation r = {1, 0};
        if (!still.holds(b, a, d)) {
            r = rotation_of(a, b, d);
            b = turn_pair(r, b, a, d);
            diagonal[p] = a;
            diagonal[q] = d;
        }
        turning[slot][i] = r;
        rotations[step * h + i] = r;
        return b;
    };
    const auto load = [&](double(&e)[2][2], int pk, int qk, int pl, int ql) {
        e[0][0] = *entry(S, ld, pk, pl);
        e[1][0] = *entry(S, ld, qk, pl);
        e[0][1] = *entry(S, ld, pk, ql);
        e[1][1] = *entry(S, ld, qk, ql);
    };
    const auto store = [&](const double(&e)[2][2], int pk, int qk, int pl, int ql) {
        *entry(S, ld, pk, pl) = *entry(S, ld, pl, pk) = e[0][0];
        *entry(S, ld, qk, pl) = *entry(S, ld, pl, qk) = e[1][0];
        *entry(S, ld, pk, ql) = *entry(S, ld, ql, pk) = e[0][1];
        *entry(S, ld, qk, ql) = *entry(S, ld, ql, qk) = e[1][1];
    };

    bool converged = false;
    int sweep = 0;
    for (;; ++sweep) {
        bool large = false;
        for (int at = x; at < n * n; at += jacobi_threads) {
            const int i = at % n, j = at / n;
            if (i >= j) continue;
            const double b = *entry(S, ld, i, j), a = diagonal[i], d = diagonal[j];
            large = large || !(done.holds(b, a, d) || stays_below(dropped, b, a, d, n));
        }
        converged = !__syncthreads_or(large);
        if (converged || sweep == jacobi_most_sweeps) break;
        const Index first = Index(sweep) * steps;
        if (x < h) {
            const int p = jacobi_p(x, 0, steps), q = jacobi_q(x, 0, steps);
            const double b = turn(x, p, q, *entry(S, ld, p, q), 0, first);
            *entry(S, ld, p, q) = *entry(S, ld, q, p) = b;
        }
        __syncthreads();
        for (int s = 0; s < steps; ++s) {
            const int slot = s % 2;
            if (x < h) {
                const int pk = jacobi_p(mine.k, s, steps), qk = jacobi_q(mine.k, s, steps);
                const int pl = jacobi_p(mine.l, s, steps), ql = jacobi_q(mine.l, s, steps);
                double e[2][2];
                load(e, pk, qk, pl, ql);
                turn_block(turning[slot][mine.k], turning[slot][mine.l], e);
                if (s + 1 < steps) {
                    // p of the next pair belongs to pair l now, and q to pair k
                    const double b = mine.at_q ? e[1][1] : mine.at_p ? e[0][0] : e[1][0];
                    const double turned = turn(x, mine.at_q ? ql : pl, mine.at_p ? pk : qk, b, 1 - slot, first + s + 1);
                    if (mine.at_q) {
                        e[1][1] = turned;
                    } else if (mine.at_p) {
                        e[0][0] = turned;
                    } else {
                        e[1][0] = turned;
                    }
                }
                store(e, pk, qk, pl, ql);
            } else if (x >= jacobi_leaders) {
#pragma unroll
                for (int u = 0; u < jacobi_units; ++u) {
                    if (u >= count) continue;
                    const Rotation row = turning[slot][pair_k[u]], col = turning[slot][pair_l[u]];
                    if (row.s == 0 && col.s == 0) continue;
                    const int pk = jacobi_p(pair_k[u], s, steps), qk = jacobi_q(pair_k[u], s, steps);
                    const int pl = jacobi_p(pair_l[u], s, steps), ql = jacobi_q(pair_l[u], s, steps);
                    double e[2][2];
                    load(e, pk, qk, pl, ql);
                    turn_block(row, col, e);
                    store(e, pk, qk, pl, ql);
                }
            }
            __syncthreads();
        }
    }

    if (x < n) {
        // in descending order
        const double value = diagonal[x];
        int place = 0;
        for (int i = 0; i < n; ++i) place += diagonal[i] > value || (diagonal[i] == value && i < x);
        values[place] = scalbn(value, exponent);
        places[x] = place;
    }
    if (x == 0) *outcome = {sweep, converged};
}

/// Multiplies row i of V, given as column i of W = Vᵀ, by all rotations, and writes column i of the new Vᵀ, its entries
/// in the order of the values. Lane l holds the pairs 2l and 2l + 1. From one step to the next every p moves one pair
/// down and every q one up.
template <class T>
__global__ void __launch_bounds__(32)
    turn_rows_kernel(int n, const double* W, const Rotation* rotations, const int* places, const JacobiOutcome* outcome,
                     T* Vt, Index ldvt) {
    constexpr int batch = 8;
    const int i = blockIdx.x, first = 2 * threadIdx.x, steps = jacobi_steps(n), h = jacobi_pairs(n);
    const int total = outcome->sweeps * steps;
    const auto at = [&](int x) { return x < n ? W[x + Index(i) * n] : 0.0; };
    double p[2], q[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        const int k = first + e;
        p[e] = k < h ? at(k) : 0;
        q[e] = k < h ? at(steps - k) : 0;
    }
    for (int begin = 0; begin < total; begin += batch) {
        Rotation r[batch][2];
#pragma unroll
        for (int s = 0; s < batch; ++s) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const bool inside = begin + s < total && first + e < h;
                r[s][e] = inside ? rotations[Index(begin + s) * h + first + e] : Rotation{1, 0};
            }
        }
#pragma unroll
        for (int s = 0; s < batch; ++s) {
            if (begin + s >= total) break;
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const double a = p[e];
                p[e] = r[s][e].c * a - r[s][e].s * q[e];
                q[e] = r[s][e].s * a + r[s][e].c * q[e];
            }
            const double below = __shfl_down_sync(~0u, p[0], 1), above = __shfl_up_sync(~0u, q[1], 1);
            const double p0 = first == h - 1 ? q[0] : p[1], p1 = first + 1 == h - 1 ? q[1] : below;
            q[1] = first == 0 ? p[0] : q[0];
            if (first > 0) q[0] = above;
            p[0] = p0;
            p[1] = p1;
        }
    }
    // whole sweeps: every pair is where it was
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        const int k = first + e;
        if (k >= h) continue;
        if (k < n) Vt[places[k] + i * ldvt] = static_cast<T>(p[e]);
        if (steps - k < n) Vt[places[steps - k] + i * ldvt] = static_cast<T>(q[e]);
    }
}

/// Computes the eigenvalues of B (upper triangle, ld = n) in descending order, and Vᵀ := (V J)ᵀ in their order for V =
/// Wᵀ (ld = n) and BJ = J diag(values), which holds only nearly below threshold². `places` and `rotations` are
/// workspace. 0 < n <= 128. The caller must discard the result unless the outcome is `converged`.
template <class T>
void jacobi(int n, const double* B, const double* W, double threshold, double tolerance, double smallest,
            Rotation* rotations, double* values, int* places, JacobiOutcome* outcome, MatrixView<T, Cuda> Vt,
            cudaStream_t stream) {
    const std::size_t N = jacobi_order(n);
    launch(stream, jacobi_kernel, {1, jacobi_threads, sizeof(double) * N * (N + 1)}, n, B, threshold, tolerance,
           smallest, rotations, values, places, outcome);
    launch(stream, turn_rows_kernel<T>, {static_cast<unsigned>(n), 32}, n, W, rotations, places, outcome, Vt.data,
           Vt.ld);
}

}  // namespace quoin::cuda
