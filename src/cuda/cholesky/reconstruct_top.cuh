#pragma once

// The n×n part of Householder reconstruction (Ballard et al. 2014), n <= 128, by one block of ⌈n/16⌉ warps:
//
//     Q = A Y⁻¹,  Q − S = L U,  T = −U S L⁻ᵀ,  V := L,  R := S R above it
//
// Warp w holds the rows 16w … of Q as 16×8 tiles (sm80_dmma.cuh). Step k is one of Gauss and Jordan in place, by blocks
// of 8 and without pivoting, so that (Q − S)⁻¹ is there at the end, and on the way block row k of U and of L⁻¹ and
// block column k of L were:
//
//           k
//      ┌────┬───────┐    Q_kk − S_k = L_kk U_kk, s_k = −sgn of the pivot;  W = (Q_kk − S_k)⁻¹ by one warp (block_lu.cuh)
//      │    │       │    P = Q(k, :), but P(:, k) = I;  N = −Q(:, k) W, but N(k, :) = W
//    k ├────┼───────┤    Q(k, :) = Q(:, k) := 0,  Q += N P
//      │    │       │    L(:, k) = −N L_kk below the diagonal;  P := L_kk⁻¹ P, which is L⁻¹(k, :) before the diagonal
//      └────┴───────┘    and U(k, :) from there on
//
// A warp's rows of N stay in its registers; P lies in shared memory, and W. The warp that holds block row k + 1
// updates it, publishes P and inverts. The other warps meanwhile update their rows, and half of them turn the last P
// into L⁻¹ and U. Beyond n Q is 0, and so Q − S the identity.
//
// Shared: P and two 8×8 blocks for every step, 145 KB for n = 128; Y's blocks (factor_blocks.cuh) lie in P's place
// before. 2n³ flops for the elimination, n³ for Q, n³/3 for T, in f64: bound by the tensor cores of one multiprocessor,
// and by the latency of n reciprocals one after the other.

#include "cuda/arch/sm80_dmma.cuh"
#include "cuda/cholesky/block_lu.cuh"
#include "cuda/cholesky/factor_blocks.cuh"
#include "cuda/elements/warp_sums.cuh"
#include "cuda/kernel_choice.hpp"
#include "cuda/runtime/ceil_div.cuh"
#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/state.hpp"
#include "primitives.hpp"

namespace quoin::cuda {

/// All n×n; Y may be null: Q = A then. L is scratch. V may be A.
template <class T>
struct TopOperands {
    int n;
    const T* A;
    Index lda;
    const double* Y;
    Index ldy;
    T* R;
    Index ldr;
    T* V;
    Index ldv;
    T* Tf;
    Index ldt;
    double* U;
    Index ldu;
    T* L;
    Index ldl;
    T* signs;
    double limit;
    Certificate* certificate;
};

template <int col_tiles>
struct TopShared {
    static constexpr int panel = 8 * col_tiles * 8;
    double P[col_tiles][panel];        ///< column x: 8 numbers
    double diagonal[col_tiles][8][8];  ///< U_kk, and L_kk⁻¹ strictly below
    double L[col_tiles][8][8];         ///< L_kk strictly below the diagonal, zeros elsewhere
    double W[8][8];                    ///< of this step, column by column
    double signs[8 * col_tiles];
    double squares[col_tiles / 2];
};

constexpr int top_threads(int col_tiles) { return 16 * col_tiles; }

template <class T, int col_tiles>
__global__ void __launch_bounds__(top_threads(col_tiles), 1) reconstruct_top_kernel(TopOperands<T> p) {
    extern __shared__ __align__(16) unsigned char memory[];
    if (p.certificate->refused()) return;
    auto& shared = *reinterpret_cast<TopShared<col_tiles>*>(memory);
    constexpr int warps = col_tiles / 2;
    const int n = p.n, warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int steps = ceil_div(n, 8);
    const auto row = [&](int e) { return 16 * warp + g + e / 2 * 8; };
    const auto col = [&](int c, int e) { return 8 * c + 2 * t + e % 2; };

    Tile16x8 Q[col_tiles];
#pragma unroll
    for (int c = 0; c < col_tiles; ++c) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int i = row(e), j = col(c, e);
            Q[c].v[e] = i < n && j < n ? static_cast<double>(p.A[i + j * p.lda]) : 0.0;
        }
    }
    if (p.Y) {
        static_assert(factor_block_count(col_tiles) * 64 * sizeof(double) <= sizeof(shared.P));
        double* const blocks = shared.P[0];
        load_factor<col_tiles, top_threads(col_tiles)>(blocks, n, p.Y, p.ldy);
        solve_rows(Q, blocks);
        __syncthreads();
    }

    // by the warp that holds block row k: P, W and all of the diagonal block
    const auto publish = [&](int k) {
        const bool lower_half = k % 2;
#pragma unroll
        for (int c = 0; c < col_tiles; ++c) {
            double(&v)[4] = Q[c].v;
            double* const to = reinterpret_cast<double*>(unit_of(shared.P[k], 8 * c + 2 * t, g / 2)) + g % 2;
            to[0] = lower_half ? v[2] : v[0];
            to[8] = lower_half ? v[3] : v[1];
            v[0] = lower_half ? v[0] : 0.0;
            v[1] = lower_half ? v[1] : 0.0;
            v[2] = lower_half ? 0.0 : v[2];
            v[3] = lower_half ? 0.0 : v[3];
        }
        __syncwarp();
        const int r = lane / 8, j = lane % 8;
        double a[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            double& p_ij = reinterpret_cast<double*>(unit_of(shared.P[k], 8 * k + j, (r + 4 * h) / 2))[r % 2];
            a[h] = p_ij;
            p_ij = r + 4 * h == j ? 1.0 : 0.0;
        }
        const double sign = invert_signed_block(a, shared.L[k], shared.diagonal[k]);
        if (lane < 8) shared.signs[8 * k + lane] = sign;
#pragma unroll
        for (int h = 0; h < 2; ++h) shared.W[j][r + 4 * h] = a[h];
    };
    // ptxas 13.0 makes "0 or Q" a predicate of the product that adds to Q, and that the wrong way round: it must not
    // see the 0
    const double zero = n > top_max_cols ? 1.0 : 0.0;
    if (warp == 0) publish(0);
#pragma unroll 1
    for (int k = 0; k < steps; ++k) {
        const bool has_row_k = warp == k / 2;
        // Q(:, k), and Q := 0 there; −I in block row k
        Tile16x8 column = {};
#pragma unroll
        for (int c = 0; c < col_tiles; ++c) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                column.v[e] = c == k ? Q[c].v[e] : column.v[e];
                Q[c].v[e] = c == k ? zero : Q[c].v[e];
            }
        }
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            if (has_row_k && e / 2 == k % 2) column.v[e] = g == 2 * t + e % 2 ? -1.0 : 0.0;
        }
        __syncthreads();
        // N = −Q(:, k) W,  Q += N P
        const double2 w = *reinterpret_cast<const double2*>(&shared.W[g][2 * t]);
        Tile16x8 N = {};
        multiply_add(N, as_left_operand(-column), {{w.x, w.y}});
        const Tile16x8 left = as_left_operand(N);
#pragma unroll
        for (int c = 0; c < col_tiles; ++c) {
            const double2 right = *unit_of(shared.P[k], 8 * c + g, t);
            multiply_add(Q[c], left, {{right.x, right.y}});
        }
        __syncthreads();
        const int next = k + 1 < steps ? (k + 1) / 2 : 0;
        if (k + 1 < steps && warp == next) publish(k + 1);
        // L(:, k) = −N L_kk, + the part of N itself
        Tile16x8 L = -N;
        multiply_add(L, as_left_operand(-N), {{shared.L[k][2 * t][g], shared.L[k][2 * t + 1][g]}});
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int i = row(e), j = col(k, e);
            if (i >= 8 * k + 8 && i < n) p.L[i + j * p.ldl] = static_cast<T>(L.v[e]);
        }
        if ((next < warps / 2) != (warp < warps / 2)) {
            // P(:, x) := L_kk⁻¹ P(:, x)
            const int x = threadIdx.x % (8 * col_tiles);
            double b[8], c[8];
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                const double2 pair = *unit_of(shared.P[k], x, q);
                b[2 * q] = c[2 * q] = pair.x;
                b[2 * q + 1] = c[2 * q + 1] = pair.y;
            }
#pragma unroll
            for (int i = 1; i < 8; ++i) {
#pragma unroll
                for (int l = 0; l < i; ++l) c[i] += shared.diagonal[k][i][l] * b[l];
            }
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                if (x / 8 == k) c[i] = shared.diagonal[k][i][x % 8];
            }
#pragma unroll
            for (int q = 0; q < 4; ++q) *unit_of(shared.P[k], x, q) = {c[2 * q], c[2 * q + 1]};
        }
    }

    // ‖(Q − S)⁻¹‖_F²
    double square = 0;
#pragma unroll
    for (int c = 0; c < col_tiles; ++c) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            if (row(e) < n && col(c, e) < n) square += Q[c].v[e] * Q[c].v[e];
        }
    }
    square = warp_sum(square);
    if (lane == 0) shared.squares[warp] = square;
    __syncthreads();
    square = 0;
    for (int w = 0; w < warps; ++w) square += shared.squares[w];
    if (!(square <= p.limit * p.limit)) {
        if (threadIdx.x == 0) p.certificate->refuse(p.certificate->step, Certificate::Growth, -1);
        return;
    }
    if (threadIdx.x == 0) p.certificate->factor_condition = -1;

    const auto in_panel = [&](int i, int j) {
        return reinterpret_cast<const double*>(unit_of(shared.P[i / 8], j, i % 8 / 2))[i % 2];
    };
    // T(:, j) = −U S W(j, :)ᵀ,  W = L⁻¹, by tile columns, a long and a short one a warp
    for (int half = 0; half < 2; ++half) {
        const int c = half ? col_tiles - 1 - warp : warp;
        if (c >= steps) continue;
        Tile16x8 D[warps] = {};
        for (int b = 0; b <= c; ++b) {
            // the lanes' columns, so that they read from different banks
            const int l0 = 8 * b + t % 2 + t / 2 * 4, l1 = l0 + 2, j = 8 * c + g;
            const auto w = [&](int l) { return l < j ? in_panel(j, l) : l == j ? 1.0 : 0.0; };
            const Tile8x8 right{{-shared.signs[l0] * w(l0), -shared.signs[l1] * w(l1)}};
            const double* const u0 = reinterpret_cast<const double*>(unit_of(shared.P[0], l0, g / 2)) + g % 2;
            const double* const u1 = reinterpret_cast<const double*>(unit_of(shared.P[0], l1, g / 2)) + g % 2;
#pragma unroll
            for (int r = 0; r < warps; ++r) {
                if (2 * r > b) continue;
                const int i = 16 * r + g, top = 2 * r * shared.panel, bottom = top + shared.panel;
                multiply_add(D[r],
                             {{i <= l0 ? u0[top] : 0.0, i + 8 <= l0 ? u0[bottom] : 0.0, i <= l1 ? u1[top] : 0.0,
                               i + 8 <= l1 ? u1[bottom] : 0.0}},
                             right);
            }
        }
#pragma unroll
        for (int r = 0; r < warps; ++r) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int i = 16 * r + g + e / 2 * 8, j = col(c, e);
                if (i < n && j < n) p.Tf[i + j * p.ldt] = i <= j ? static_cast<T>(D[r].v[e]) : T(0);
            }
        }
    }
    if (threadIdx.x < n) p.signs[threadIdx.x] = static_cast<T>(shared.signs[threadIdx.x]);
    // a thread reads its entries of several columns before it writes: all these trips to memory take the time of one
    constexpr int chunks = col_tiles / 4, batch = 8;
    for (int j0 = warp; j0 < n; j0 += batch * warps) {
        T found[batch][chunks];
        const auto for_each = [&](auto f) {
#pragma unroll
            for (int h = 0; h < batch; ++h) {
#pragma unroll
                for (int c = 0; c < chunks; ++c) {
                    const int i = 32 * c + lane, j = j0 + h * warps;
                    if (i < n && j < n) f(i, j, found[h][c]);
                }
            }
        };
        for_each([&](int i, int j, T& x) { x = i <= j ? p.R[i + j * p.ldr] : p.L[i + j * p.ldl]; });
        for_each([&](int i, int j, T x) {
            if (i <= j) {
                x *= static_cast<T>(shared.signs[i]);
                p.R[i + j * p.ldr] = x;
                p.U[i + j * p.ldu] = in_panel(i, j);
            } else if (i / 8 == j / 8) {
                x = static_cast<T>(shared.L[j / 8][i % 8][j % 8]);
            }
            p.V[i + j * p.ldv] = x;
        });
    }
}

/// 0 < n <= 128. Does not wait.
template <class T>
void reconstruct_top(Context<Cuda>& ctx, const TopOperands<T>& operands) {
    with_constant<1, 4>(ceil_div(operands.n, 32), [&](auto fours) {
        constexpr int col_tiles = 4 * fours;
        launch(ctx.stream(), reconstruct_top_kernel<T, col_tiles>,
               {1, top_threads(col_tiles), sizeof(TopShared<col_tiles>)}, operands);
    });
}

}  // namespace quoin::cuda
