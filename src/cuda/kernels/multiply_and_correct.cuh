#pragma once

// L := X P in place of X, Z = M − L − S, Y += μZ, ‖Z‖_F² and ‖Y‖_F² of the blocks, for a tall X (m×n, n <= 160), P n×n.
//
// A warp takes 16 rows at a time, whole, as tiles 16×8 of doubles in registers (dmma.cuh; rows g and g + 8 of a tile are rows
// 2g and 2g + 1 of X, so that a lane reads and writes pairs). P lies in shared memory in double, column after column, padded
// so that a fragment's loads share no bank. Two tile columns of L are summed at a time; their M, S and Y are on the way
// meanwhile. Blocks take their rows in turn; every lane adds up its own squares, a block its lanes' in a fixed tree.
//
// Products are summed in f64 whatever T is, L is rounded once, the rest is done in T.
// Shared: 8k · (8k + 8) doubles, k = ⌈n/8⌉ rounded up to even: 107 KB for n = 100, 215 KB for n = 160.
// Any ld and alignment. 2mn² flops in f64; m·n elements of four matrices read, of two written. Bound by memory in f64; in
// f32, n = 100, 0.09 ms by memory and 0.04 by the tensor cores' f64 rate for 110 592 rows.

#include <algorithm>
#include <cstdint>

#include "cuda/kernels/solve_right.cuh"
#include "quoin/cuda.hpp"

namespace quoin::cuda {

constexpr int correct_max_cols = 160;

template <class T>
__host__ __device__ constexpr int correct_warps(int col_tiles) {
    return sizeof(T) == 4 && col_tiles <= 14 ? 12 : 8;
}

/// What Y and the sums need beside X and P.
template <class T>
struct Correction {
    MatrixView<const T, Cuda> M, S;
    MatrixView<const std::uint8_t, Cuda> observed;
    T mu;
    MatrixView<T, Cuda> Y;
};

template <class T, int col_tiles>
__global__ void __launch_bounds__(correct_warps<T>(col_tiles) * 32, 1)
    correct_kernel(Index m, int n, T* X, Index ldx, const T* __restrict__ P, Index ldp, Correction<T> by,
                   double2* parts) {
    extern __shared__ __align__(16) double correct_shared[];
    constexpr int warps = correct_warps<T>(col_tiles), width = 8 * col_tiles, ld = width + 8;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    for (int at = threadIdx.x; at < width * width; at += warps * 32) {
        const int i = at % width, j = at / width;
        correct_shared[i + j * ld] = i < n && j < n ? static_cast<double>(P[i + j * ldp]) : 0.0;
    }
    __syncthreads();
    const bool pairs_x = aligned_pairs(X, ldx);
    const bool pairs =
        aligned_pairs(by.M.data, by.M.ld) && aligned_pairs(by.S.data, by.S.ld) && aligned_pairs(by.Y.data, by.Y.ld);
    // P(8k + 2t, 8c + g) and the one below it
    const double2* const mine = reinterpret_cast<const double2*>(correct_shared + g * ld + 2 * t);

    double residual = 0, multipliers = 0;
    for (Index row = (Index(warp) * gridDim.x + blockIdx.x) * 16; row < m; row += Index(gridDim.x) * warps * 16) {
        const Index valid = m - row, i = row + 2 * g;
        const bool whole = valid >= 16;
        Tile16x8 A[col_tiles];
        load_rows(A, X + row, ldx, n, valid, pairs_x);
#pragma unroll
        for (int k = 0; k < col_tiles; ++k) A[k] = as_left_operand(A[k]);
#pragma unroll 1
        for (int c = 0; 8 * c < n; c += 2) {
            Pair<T> m_ij[2][2] = {}, s_ij[2][2] = {}, y_ij[2][2] = {};
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int j = 8 * (c + e / 2) + 2 * t + e % 2;
                if (j >= n) continue;
                const auto get = [&](const T* p, Index ld) {
                    p += i + j * ld;
                    if (pairs && whole) return *reinterpret_cast<const Pair<T>*>(p);
                    Pair<T> value = {};
                    if (2 * g < valid) value.v[0] = p[0];
                    if (2 * g + 1 < valid) value.v[1] = p[1];
                    return value;
                };
                m_ij[e / 2][e % 2] = get(by.M.data, by.M.ld);
                s_ij[e / 2][e % 2] = get(by.S.data, by.S.ld);
                y_ij[e / 2][e % 2] = get(by.Y.data, by.Y.ld);
            }
            Tile16x8 L[2] = {};
            const double2* const right = mine + c * 4 * ld;
#pragma unroll
            for (int k = 0; k < col_tiles; ++k) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const double2 p = right[e * 4 * ld + 4 * k];
                    // L_c += X_k P_kc
                    multiply_add(L[e], A[k], {{p.x, p.y}});
                }
            }
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int j = 8 * (c + e / 2) + 2 * t + e % 2;
                if (j >= n) continue;
                const Pair<T> l{{static_cast<T>(L[e / 2].v[e % 2]), static_cast<T>(L[e / 2].v[2 + e % 2])}};
                Pair<T> y = y_ij[e / 2][e % 2];
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const bool seen =
                        2 * g + r < valid && (!by.observed.data || by.observed.data[i + r + j * by.observed.ld]);
                    const T z = seen ? m_ij[e / 2][e % 2].v[r] - l.v[r] - s_ij[e / 2][e % 2].v[r] : T(0);
                    y.v[r] += by.mu * z;
                    residual += static_cast<double>(z) * static_cast<double>(z);
                    multipliers += static_cast<double>(y.v[r]) * static_cast<double>(y.v[r]);
                }
                T *const to_x = X + i + j * ldx, *const to_y = by.Y.data + i + j * by.Y.ld;
                if (pairs && pairs_x && whole) {
                    *reinterpret_cast<Pair<T>*>(to_x) = l;
                    *reinterpret_cast<Pair<T>*>(to_y) = y;
                } else {
#pragma unroll
                    for (int r = 0; r < 2; ++r) {
                        if (2 * g + r >= valid) continue;
                        to_x[r] = l.v[r];
                        to_y[r] = y.v[r];
                    }
                }
            }
        }
    }
    // P is no longer needed
    __syncthreads();
    double2* const sums = reinterpret_cast<double2*>(correct_shared);
    for (int step = 16; step > 0; step /= 2) {
        residual += __shfl_xor_sync(~0u, residual, step);
        multipliers += __shfl_xor_sync(~0u, multipliers, step);
    }
    if (lane == 0) sums[warp] = {residual, multipliers};
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int w = 1; w < warps; ++w) {
        residual += sums[w].x;
        multipliers += sums[w].y;
    }
    parts[blockIdx.x] = {residual, multipliers};
}

inline int correct_blocks(Index m, int multiprocessors) {
    return static_cast<int>(std::min<Index>(multiprocessors, ceil_div(m, Index(16))));
}

/// parts (one a block, `correct_blocks`) := (‖Z‖_F², ‖Y‖_F²) of its rows. 0 < n <= 160, m > 0.
template <class T>
cudaError_t multiply_and_correct(Index m, int n, T* X, Index ldx, const T* P, Index ldp, const Correction<T>& by,
                                 double2* parts, int multiprocessors, cudaStream_t stream) {
    const auto launch = [&]<int col_tiles>() {
        constexpr int bytes = 8 * col_tiles * (8 * col_tiles + 8) * int(sizeof(double));
        const cudaError_t error =
            cudaFuncSetAttribute(correct_kernel<T, col_tiles>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        if (error != cudaSuccess) return error;
        correct_kernel<T, col_tiles>
            <<<correct_blocks(m, multiprocessors), correct_warps<T>(col_tiles) * 32, bytes, stream>>>(m, n, X, ldx, P,
                                                                                                      ldp, by, parts);
        return cudaGetLastError();
    };
    switch (ceil_div(n, 16)) {
        case 1: return launch.template operator()<2>();
        case 2: return launch.template operator()<4>();
        case 3: return launch.template operator()<6>();
        case 4: return launch.template operator()<8>();
        case 5: return launch.template operator()<10>();
        case 6: return launch.template operator()<12>();
        case 7: return launch.template operator()<14>();
        case 8: return launch.template operator()<16>();
        case 9: return launch.template operator()<18>();
        case 10: return launch.template operator()<20>();
        default: return cudaErrorInvalidValue;
    }
}

}  // namespace quoin::cuda
