#pragma once

// Between two thresholdings of a pursuit, for a tall X (m×n, n <= 160), P n×n:
//
//   L = X P,  Z = M − L − S,  Y += μZ,  S' := shrink(M − L + Y/μ', t'),  X' := M − S' + Y/μ'
//
// and the blocks' sums. L stays in registers. X and S are not overwritten, so that X P is L if this step turns out to
// be the last.
//
// A warp takes 16 rows at a time, whole, in registers, as tiles 16×8 (dmma.cuh; rows g and g + 8 of a tile are rows 2g
// and 2g + 1 of X, so that a lane reads and writes pairs). P lies in shared memory in double, column after column,
// padded so that a fragment's loads share no bank. Two tile columns of L are summed at a time; their M, S and Y are on
// the way meanwhile. Blocks take their rows in turn; every lane adds up its own squares, a block its lanes' in a fixed
// tree.
//
// Products are summed in f64 whatever T is, L is rounded once, the rest is done in T.
// Shared: 8k · (8k + 8) doubles, k = ⌈n/8⌉ rounded up to even: 107 KB for n = 100, 215 KB for n = 160.
// Any ld and alignment. 2mn² flops in f64; m·n elements of four matrices read, of three written. Bound by memory in
// f64; in f32, n = 100, 0.11 ms by memory and 0.04 by the tensor cores' f64 rate for 110 592 rows.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "cuda/kernel_choice.hpp"
#include "cuda/products/row_tiles.cuh"
#include "cuda/runtime/ceil_div.cuh"
#include "cuda/runtime/launch.hpp"
#include "quoin/cuda.hpp"

namespace quoin::cuda {

constexpr int correct_max_cols = 160;

/// Warps of a block, limited by its registers.
template <class T>
__host__ __device__ constexpr int correct_warps(int col_tiles) {
    return std::is_same_v<T, double> || col_tiles > 14 ? 8 : col_tiles > 6 ? 12 : 16;
}

/// Returns x moved towards 0 by t, or 0 if |x| <= t. Returns 0 for a NaN of t = ∞.
template <class T>
__device__ __forceinline__ T shrink(T x, T t) {
    return x > t ? x - t : x < -t ? x + t : T(0);
}

/// Operands in addition to X and P. Names with `next` are primed in the formulas above.
template <class T>
struct Correction {
    MatrixView<const T, Cuda> M, S;
    MatrixView<const std::uint8_t, Cuda> observed;
    T mu, next_inverse_mu, next_threshold;
    MatrixView<T, Cuda> Y, next_X, next_S;
};

/// Number of sums of a lane: ‖Z‖_F², ‖Y‖_F²; ‖S'‖₁, ‖S' − S‖_F², nonzeros of S'.
constexpr int correction_sums = 5;
struct CorrectionSums {
    double v[correction_sums] = {};
};

/// Updates the warp's 16 rows from `row` on. `whole`: all 16 exist, and pairs of them are aligned. `right`: P(2t, g)
/// and the entry below it in shared memory.
template <bool whole, int col_tiles, class T>
__device__ __forceinline__ void correct_rows(Index row, Index m, int n, const T* X, Index ldx, const double2* right,
                                             const Correction<T>& by, CorrectionSums& sums) {
    constexpr int ld = 8 * col_tiles + 8;
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const Index i = row + 2 * g;
    // rows i and i + 1 of a column, zeros beyond m
    const auto get = [&](const T* p) {
        if constexpr (whole) return *reinterpret_cast<const Pair<T>*>(p);
        Pair<T> value = {};
        if (i < m) value.v[0] = p[0];
        if (i + 1 < m) value.v[1] = p[1];
        return value;
    };
    const auto put = [&](T* p, const Pair<T>& value) {
        if constexpr (whole) {
            *reinterpret_cast<Pair<T>*>(p) = value;
        } else {
            if (i < m) p[0] = value.v[0];
            if (i + 1 < m) p[1] = value.v[1];
        }
    };
    const T* const x = X + i + 2 * t * ldx;
    Pair<T> A[col_tiles][2] = {};
#pragma unroll
    for (int k = 0; k < col_tiles; ++k) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            if (8 * k + 2 * t + e < n) A[k][e] = get(x + (8 * k + e) * ldx);
        }
    }
    Index at_m = i + 2 * t * by.M.ld, at_s = i + 2 * t * by.S.ld, at_y = i + 2 * t * by.Y.ld,
          at_next_x = i + 2 * t * by.next_X.ld, at_next_s = i + 2 * t * by.next_S.ld;
#pragma unroll 1
    for (int j = 2 * t; j < n + 2 * t; j += 8) {
        Pair<T> m_ij[2] = {}, s_ij[2] = {}, y_ij[2] = {};
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            if (j + e >= n) continue;
            m_ij[e] = get(by.M.data + at_m + e * by.M.ld);
            s_ij[e] = get(by.S.data + at_s + e * by.S.ld);
            y_ij[e] = get(by.Y.data + at_y + e * by.Y.ld);
        }
        // L_c = X_k P_kc over even and odd k
        Tile16x8 parts[2] = {};
#pragma unroll
        for (int k = 0; k < col_tiles; ++k) {
            const double2 p = right[4 * k];
            multiply_add(parts[k % 2],
                         {{widened(A[k][0].v[0]), widened(A[k][0].v[1]), widened(A[k][1].v[0]), widened(A[k][1].v[1])}},
                         {{p.x, p.y}});
        }
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            if (j + e >= n) continue;
            const Pair<T> l{
                {static_cast<T>(parts[0].v[e] + parts[1].v[e]), static_cast<T>(parts[0].v[2 + e] + parts[1].v[2 + e])}};
            Pair<T> y = y_ij[e], next_x, next_s;
            T sparse = 0, change = 0;
            int nonzeros = 0;
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const bool seen =
                    i + r < m && (!by.observed.data || by.observed.data[i + r + (j + e) * by.observed.ld]);
                const T z = seen ? m_ij[e].v[r] - l.v[r] - s_ij[e].v[r] : T(0);
                y.v[r] += by.mu * z;
                sums.v[0] += static_cast<double>(z) * static_cast<double>(z);
                sums.v[1] += static_cast<double>(y.v[r]) * static_cast<double>(y.v[r]);
                const T target = m_ij[e].v[r] + by.next_inverse_mu * y.v[r], past = target - l.v[r];
                const T shrunk = shrink(past, seen ? by.next_threshold : std::numeric_limits<T>::infinity());
                const T moved = shrunk - s_ij[e].v[r];
                sparse += fabs(shrunk);
                change += moved * moved;
                nonzeros += shrunk != 0;
                next_s.v[r] = shrunk;
                next_x.v[r] = seen ? target - shrunk : l.v[r];
            }
            sums.v[2] += static_cast<double>(sparse);
            sums.v[3] += static_cast<double>(change);
            sums.v[4] += nonzeros;
            put(by.Y.data + at_y + e * by.Y.ld, y);
            put(by.next_X.data + at_next_x + e * by.next_X.ld, next_x);
            put(by.next_S.data + at_next_s + e * by.next_S.ld, next_s);
        }
        at_m += 8 * by.M.ld;
        at_s += 8 * by.S.ld;
        at_y += 8 * by.Y.ld;
        at_next_x += 8 * by.next_X.ld;
        at_next_s += 8 * by.next_S.ld;
        right += 4 * ld;
    }
}

template <class T, int col_tiles>
__global__ void __launch_bounds__(correct_warps<T>(col_tiles) * 32, 1)
    correct_kernel(Index m, int n, const T* X, Index ldx, const T* __restrict__ P, Index ldp,
                   const __grid_constant__ Correction<T> by, CorrectionSums* parts) {
    extern __shared__ __align__(16) double correct_shared[];
    constexpr int warps = correct_warps<T>(col_tiles), width = 8 * col_tiles, ld = width + 8;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    for (int at = threadIdx.x; at < width * width; at += warps * 32) {
        const int i = at % width, j = at / width;
        correct_shared[i + j * ld] = i < n && j < n ? static_cast<double>(P[i + j * ldp]) : 0.0;
    }
    __syncthreads();
    const bool pairs = aligned_pairs(X, ldx) && aligned_pairs(by.M.data, by.M.ld) &&
                       aligned_pairs(by.S.data, by.S.ld) && aligned_pairs(by.Y.data, by.Y.ld) &&
                       aligned_pairs(by.next_X.data, by.next_X.ld) && aligned_pairs(by.next_S.data, by.next_S.ld);
    const double2* const right = reinterpret_cast<const double2*>(correct_shared + g * ld + 2 * t);
    CorrectionSums sums;
    for (Index row = (Index(warp) * gridDim.x + blockIdx.x) * 16; row < m; row += Index(gridDim.x) * warps * 16) {
        if (pairs && row + 16 <= m) {
            correct_rows<true, col_tiles>(row, m, n, X, ldx, right, by, sums);
        } else {
            correct_rows<false, col_tiles>(row, m, n, X, ldx, right, by, sums);
        }
    }
    // P is no longer needed
    __syncthreads();
    CorrectionSums* const of_warps = reinterpret_cast<CorrectionSums*>(correct_shared);
#pragma unroll
    for (int q = 0; q < correction_sums; ++q) {
        for (int step = 16; step > 0; step /= 2) sums.v[q] += __shfl_xor_sync(~0u, sums.v[q], step);
    }
    if (lane == 0) of_warps[warp] = sums;
    __syncthreads();
    if (threadIdx.x >= correction_sums) return;
    double sum = 0;
    for (int w = 0; w < warps; ++w) sum += of_warps[w].v[threadIdx.x];
    parts[blockIdx.x].v[threadIdx.x] = sum;
}

inline int correct_blocks(Index m, int multiprocessors) {
    return static_cast<int>(std::min<Index>(multiprocessors, ceil_div(m, Index(16))));
}

/// parts (one a block, `correct_blocks`) := the sums of its rows. 0 < n <= 160, m > 0.
template <class T>
void update_multipliers_and_sparse(Context<Cuda>& ctx, MatrixView<const T, Cuda> X, MatrixView<const T, Cuda> P,
                                   const Correction<T>& by, CorrectionSums* parts) {
    const int n = static_cast<int>(X.cols);
    const auto blocks = static_cast<unsigned>(correct_blocks(X.rows, ctx.state().kernels.multiprocessors));
    with_constant<1, correct_max_cols / 16>(ceil_div(n, 16), [&](auto pairs) {
        constexpr int col_tiles = 2 * pairs;
        constexpr std::size_t bytes = sizeof(double) * 8 * col_tiles * (8 * col_tiles + 8);
        launch(ctx.stream(), correct_kernel<T, col_tiles>, {blocks, correct_warps<T>(col_tiles) * 32, bytes}, X.rows, n,
               X.data, X.ld, P.data, P.ld, by, parts);
    });
}

}  // namespace quoin::cuda
