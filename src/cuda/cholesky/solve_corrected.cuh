#pragma once

// X := A R⁻¹ for a tall A of f32 (m×n, 64 < n <= 256) and an upper triangular R, well-conditioned but for the scales of
// its columns; X may be A. Three products of f16 stand for one (halves.cuh), in blocks of 64 columns:
//
//   X_i = A_i W_i,  A_j := A_j − X_i R_ij  for j > i;    W_i = R_ii⁻¹, made in f64
//
// A and R are scaled by D of powers of two, which leave X as it is: the columns of RD, and so of AD, have norms from
// 1/2 to 1. With κ = κ_F(RD), |w| <= ‖(RD)⁻¹‖_F = κ/‖RD‖_F <= 2κ/√n.
//
// Error: |A − X R| <= ε (|X||R| + |A_i||W_i||R_ii|), ε of some u. So ‖XR − A‖ <= ε κ ‖A‖, and XᵀX, I in exact
// arithmetic, departs from I by ε κ. κ >= n for every R: up to max_corrected_condition that is what the last pass of
// CholeskyQR2 leaves, whose factor has κ <= √3 n.
//
// A block a multiprocessor, of two or three warpgroups; each owns 64 rows at a time, whole, in registers. R lies in
// shared memory as right operands, 16 KB for every 64×64 block: 3 blocks (n <= 128), 6 (192) or 10. Up to 192 columns
// 120 KB more have the rows that follow: they come (cp.async) while these are multiplied. 3mn² flops in f16 and up to a
// third more, m·n elements read, m·n written: bound by memory. Any ld and alignment. Rows beyond m and columns beyond n
// are zeros, R is continued by the identity.
//
// corrected_factor makes the operands, a block for every 64 rows of R, and one more bounds κ where it is not known.
// With Z = RD of unit columns, Z = Δ (I − N) for Δ its diagonal, and ν = ‖N‖_F < 1: ‖Z⁻¹‖_F <= ‖I + N (I − N)⁻¹‖_F /
// min z_jj <= (√n + ν/(1 − ν)) / min z_jj, and
//
//   κ_F(Z) = √n ‖Z⁻¹‖_F <= (n + √n ν/(1 − ν)) / min z_jj
//
// which is less than 2n for factors near a diagonal matrix: R₂ of a second pass, and U R₂ of reflectors, unless the top
// of Q is large.

#include <algorithm>

#include "cuda/arch/sm80_copy_async.cuh"
#include "cuda/arch/sm90_wgmma.cuh"
#include "cuda/elements/warp_sums.cuh"
#include "cuda/kernel_choice.hpp"
#include "cuda/products/halves.cuh"
#include "cuda/products/row_tiles.cuh"
#include "cuda/runtime/ceil_div.cuh"
#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/state.hpp"
#include "primitives.hpp"

namespace quoin::cuda {

/// κ_F(RD) up to which X is as accurate and as orthonormal as CholeskyQR2 leaves it.
__host__ __device__ constexpr double max_corrected_condition(int n) { return 2.0 * n; }

struct SingleTile16x8 {
    float v[4];
};

/// R of `squares` blocks of 64 columns as right operands.
template <int squares>
struct CorrectedFactor {
    static constexpr int side = corrected::image_cols, half = side * side, cols = side * squares;
    static constexpr int above = squares * (squares - 1) / 2, count = squares + above;
    /// Powers of two that scale A and X, W, and R to operands. |a|, |x| and |r| are at most 2, and |w| is at most 4√n.
    static constexpr float of_x = 0x1p13f, of_w = 0x1p9f, of_r = 0x1p13f;

    /// hi and lo of W_0, … and of the R_ij above the diagonal, row after row.
    alignas(corrected::tile_alignment) __half images[count][2 * half];
    float scale[cols];  ///< D

    /// The number of R_ij, i < j.
    static __device__ constexpr int place(int i, int j) { return squares + i * (2 * squares - i - 1) / 2 + j - i - 1; }
};

constexpr int corrected_factor_threads = 256;

/// Inverts an upper triangular 64×64 block in place, and overwrites the entries below its diagonal. By all threads.
__device__ __forceinline__ void invert_square(double (&S)[64 * 65]) {
    constexpr int ld = 65;
    // 16×16 on the diagonal: R y = e_column
    const int column = threadIdx.x % 16, first = threadIdx.x / 16 % 4 * 16;
    const bool takes_part = threadIdx.x < 64;
    double* const D = S + first * (ld + 1);
    double y[16];
    if (takes_part) {
#pragma unroll
        for (int row = 15; row >= 0; --row) {
            double sum = row == column ? 1.0 : 0.0;
#pragma unroll
            for (int l = row + 1; l < 16; ++l) sum -= D[row + l * ld] * y[l];
            y[row] = row > column ? 0.0 : sum / D[row + row * ld];
        }
    }
    __syncthreads();
    if (takes_part) {
#pragma unroll
        for (int row = 0; row < 16; ++row) D[row + column * ld] = y[row];
    }
    // W₁₂ = −W₁ R₁₂ W₂ of 16 and then 32 columns; R₁₂ W₂ meanwhile below the diagonal. Four entries of a column a
    // thread.
    const auto join = [&]<int k>() {
        const auto for_each = [&](auto f) {
            __syncthreads();
            if (const int x = threadIdx.x; x < 8 * k)
                f(S + x / (k * k / 4) * 2 * k * (ld + 1), x % (k / 4) * 4, x / (k / 4) % k);
        };
        for_each([&](double* B, int r, int c) {
            double sum[4] = {};
            for (int l = 0; l <= c; ++l) {
#pragma unroll
                for (int e = 0; e < 4; ++e) sum[e] += B[r + e + (k + l) * ld] * B[k + l + (k + c) * ld];
            }
#pragma unroll
            for (int e = 0; e < 4; ++e) B[k + r + e + c * ld] = sum[e];
        });
        for_each([&](double* B, int r, int c) {
            double sum[4] = {};
            for (int l = r; l < k; ++l) {
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    if (l >= r + e) sum[e] -= B[r + e + l * ld] * B[k + l + c * ld];
                }
            }
#pragma unroll
            for (int e = 0; e < 4; ++e) B[r + e + (k + c) * ld] = sum[e];
        });
    };
    join.template operator()<16>();
    join.template operator()<32>();
    __syncthreads();
}

/// R, and the sizes of its columns, shared by a block of 256 threads.
template <int squares>
struct FactorColumns {
    static constexpr int side = corrected::image_cols, cols = side * squares, warps = corrected_factor_threads / 32;
    double norms[cols], weights[cols];  ///< ‖r_j‖, and ‖r_j‖/r_jj
    union {
        double diagonal[side * (side + 1)];  ///< R_ii, then W_i, column-major
        double parts[2][warps];
    };
};

/// f(column, its entries that this lane has: rows lane, lane + 32, …) for all columns of a warp, from `first` on;
/// columns beyond n are zeros.
template <int squares, class Work>
__device__ __forceinline__ void for_each_column(int first, int n, const double* __restrict__ R, Index ldr, Work f) {
    using Columns = FactorColumns<squares>;
#pragma unroll 4
    for (int j = first + threadIdx.x / 32; j < Columns::cols; j += Columns::warps) {
        double r[Columns::cols / 32];
#pragma unroll
        for (int x = 0; x < Columns::cols / 32; ++x) {
            const int i = threadIdx.x % 32 + 32 * x;
            r[x] = i <= j && j < n ? R[i + j * ldr] : 0.0;
        }
        f(j, r);
    }
}

/// A bound of κ_F(RD), infinite where there is none. By all threads; one of them has it.
template <int squares>
__device__ __forceinline__ double bound_condition(FactorColumns<squares>& s, int n, const double* __restrict__ R,
                                                  Index ldr) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    // 1/|z_jj|
    double square = 0, most = 0;
    for (int j = threadIdx.x; j < n; j += corrected_factor_threads) {
        s.weights[j] = s.norms[j] / R[j + j * ldr];
        most = fmax(most, fabs(s.weights[j]));
    }
    __syncthreads();
    for_each_column<squares>(0, n, R, ldr, [&](int j, const auto& r) {
        if (j >= n) return;
        double sum = 0;
#pragma unroll
        for (int x = 0; x < 2 * squares; ++x) {
            // −n_ij = z_ij / z_ii
            const int i = lane + 32 * x;
            const double entry = i < j ? r[x] * s.weights[i] : 0.0;
            sum += entry * entry;
        }
        square += sum / (s.norms[j] * s.norms[j]);
    });
    square = warp_sum(square);
    most = warp_max(most);
    if (lane == 0) s.parts[0][warp] = square, s.parts[1][warp] = most;
    __syncthreads();
    for (int w = 1; w < s.warps && threadIdx.x == 0; ++w) {
        square += s.parts[0][w];
        most = fmax(most, s.parts[1][w]);
    }
    const double nu = sqrt(square);
    return nu < 1 ? (n + sqrt(double(n)) * nu / (1 - nu)) * most : INFINITY;
}

template <int squares>
__global__ void __launch_bounds__(corrected_factor_threads)
    corrected_factor_kernel(int n, const double* __restrict__ R, Index ldr, CorrectedFactor<squares>* halves,
                            Certificate* certificate) {
    using Factor = CorrectedFactor<squares>;
    constexpr int threads = corrected_factor_threads, side = Factor::side, cols = Factor::cols;
    __shared__ FactorColumns<squares> s;
    if (certificate->refused()) return;
    const int row_block = blockIdx.x, lane = threadIdx.x % 32;
    const bool bounds = row_block == squares;
    for_each_column<squares>(bounds ? 0 : side * row_block, n, R, ldr, [&](int j, const auto& r) {
        double square = 0;
#pragma unroll
        for (int x = 0; x < cols / 32; ++x) square += r[x] * r[x];
        square = warp_sum(square);
        if (lane == 0) s.norms[j] = sqrt(square);
    });
    __syncthreads();
    if (bounds) {
        const double condition = bound_condition(s, n, R, ldr), known = certificate->factor_condition;
        if (threadIdx.x == 0 && !(known >= 0 && known <= condition)) certificate->factor_condition = condition;
        return;
    }
    const auto scale_of = [&](int j) {
        const double norm = s.norms[j];
        return norm > 0 && norm < INFINITY ? static_cast<float>(scalbn(1.0, -(ilogb(norm) + 1))) : 1.0f;
    };
    for (int j = side * row_block + threadIdx.x; j < side * (row_block + 1); j += threads)
        halves->scale[j] = scale_of(j);
    // image `at`: 8 entries of column j, row 8·group + i being scale entry(i)
    const auto put = [&](int at, int j, int group, float scale, auto entry) {
        unsigned hi[4], lo[4];
#pragma unroll
        for (int e = 0; e < 4; ++e)
            halves_of_pair(scale * float(entry(2 * e)), scale * float(entry(2 * e + 1)), hi[e], lo[e]);
        corrected::store_group(halves->images[at], Factor::half, j, group, hi, lo);
    };
    const double* const strip = R + side * row_block;
#pragma unroll 4
    for (int col = threadIdx.x / 32; col < side; col += threads / 32) {
        const int j = side * row_block + col;
#pragma unroll
        for (int x = 0; x < side / 32; ++x) {
            const int row = lane + 32 * x;
            s.diagonal[row + col * (side + 1)] = row <= col && j < n ? strip[row + j * ldr] * scale_of(j)
                                                 : row == col        ? 1.0
                                                                     : 0.0;
        }
    }
    __syncthreads();
    invert_square(s.diagonal);
    for (int x = threadIdx.x; x < side * 8; x += threads) {
        const int j = x / 8, row = x % 8 * 8;
        put(row_block, j, x % 8, Factor::of_w,
            [&](int i) { return row + i <= j ? s.diagonal[row + i + j * (side + 1)] : 0.0; });
    }
#pragma unroll 2
    for (int x = threadIdx.x; x < (squares - 1 - row_block) * side * 8; x += threads) {
        const int right = x / 8, j = side * (row_block + 1) + right;
        const double* const from = strip + x % 8 * 8 + j * ldr;
        const float d = j < n ? scale_of(j) : 0.0f;
        double r[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) r[e] = j < n ? from[e] : 0.0;
        put(Factor::place(row_block, row_block + 1) + right / side, right % side, x % 8, Factor::of_r,
            [&](int e) { return r[e] * d; });
    }
}

/// 64 columns of a warp's 16 rows as left operands.
struct HalvesOfRows {
    unsigned hi[4][4], lo[4][4];

    __device__ __forceinline__ explicit HalvesOfRows(const SingleTile16x8* X) {
#pragma unroll
        for (int x = 0; x < 8; ++x) {
#pragma unroll
            for (int h = 0; h < 2; ++h)
                halves_of_pair(X[x].v[2 * h], X[x].v[2 * h + 1], hi[x / 2][x % 2 * 2 + h], lo[x / 2][x % 2 * 2 + h]);
        }
#pragma unroll
        for (int x = 0; x < 16; ++x) {
            corrected::settle(hi[x / 4][x % 4]);
            corrected::settle(lo[x / 4][x % 4]);
        }
    }
};

/// D := A B, lo·hi + hi·lo + hi·hi, with sums that start from zero, B by its image.
template <class Factor>
__device__ __forceinline__ void multiply_by_image(float (&D)[32], const HalvesOfRows& A, const __half* image) {
    const std::uint64_t B = corrected::descriptor(image);
    corrected::begin_products();
#pragma unroll
    for (int step = 0; step < 4; ++step) {
        const std::uint64_t hi = B + 2 * step, lo = hi + (Factor::half * sizeof(__half) >> 4);
        if (step == 0) {
            corrected::multiply(D, A.lo[step], hi);
        } else {
            corrected::multiply_add(D, A.lo[step], hi);
        }
        corrected::multiply_add(D, A.hi[step], lo);
        corrected::multiply_add(D, A.hi[step], hi);
    }
    corrected::commit_products();
    corrected::wait_for_products();
#pragma unroll
    for (int x = 0; x < 32; ++x) corrected::settle(D[x]);
}
/// C := C + factor D
__device__ __forceinline__ void add_scaled(SingleTile16x8* C, float factor, const float (&D)[32]) {
#pragma unroll
    for (int x = 0; x < 32; ++x) C[x / 4].v[x % 4] = fma(factor, D[x], C[x / 4].v[x % 4]);
}

/// X := X R⁻¹ for the warpgroup's 64 rows, times of_x.
template <int squares>
__device__ __forceinline__ void solve_rows(SingleTile16x8 (&X)[8 * squares], const CorrectedFactor<squares>& s) {
    using Factor = CorrectedFactor<squares>;
    constexpr float from_w = 1 / Factor::of_w, from_r = -1 / Factor::of_r;
    float D[32];
#pragma unroll
    for (int i = 0; i < squares; ++i) {
        SingleTile16x8* const X_i = X + 8 * i;
        multiply_by_image<Factor>(D, HalvesOfRows(X_i), s.images[i]);
#pragma unroll
        for (int t = 0; t < 8; ++t) X_i[t] = {};
        add_scaled(X_i, from_w, D);
        if (i + 1 == squares) break;
        const HalvesOfRows left(X_i);
#pragma unroll
        for (int j = i + 1; j < squares; ++j) {
            multiply_by_image<Factor>(D, left, s.images[Factor::place(i, j)]);
            add_scaled(X + 8 * j, from_r, D);
        }
    }
}

/// A block's shared memory.
template <int squares>
struct SolveCorrected {
    static constexpr int warpgroups = squares == 2 ? 3 : 2, threads = warpgroups * corrected::warpgroup;
    /// Whether shared memory has room for the next rows, with columns so far apart that pairs of rows touch each bank
    /// once.
    static constexpr bool is_staged = squares <= 3;
    static constexpr int rows_ld = 20, cols = CorrectedFactor<squares>::cols;

    CorrectedFactor<squares> factor;
    Mailbox arrived;
    alignas(16) float rows[is_staged ? threads / 32 : 1][cols * rows_ld];  ///< of A: a warp's next 16, column-major
};

template <int squares>
__global__ void __launch_bounds__(SolveCorrected<squares>::threads, 1)
    solve_corrected_kernel(Index m, int n, const float* A, Index lda, const Index* order,
                           const CorrectedFactor<squares>* factor, float* X, Index ldx, const Certificate* certificate,
                           double max_condition) {
    if (certificate->refused() || !certificate->factor_has(max_condition)) return;
    using Solve = SolveCorrected<squares>;
    auto& s = corrected::aligned_shared<Solve>();
    if (threadIdx.x == 0) {
        constexpr unsigned bytes = sizeof(CorrectedFactor<squares>);
        s.arrived.open();
        s.arrived.expect(bytes);
        s.arrived.copy(&s.factor, factor, bytes);
    }
    __syncthreads();
    constexpr int groups = Solve::warpgroups, rows = 64;
    constexpr float of_x = CorrectedFactor<squares>::of_x;
    const int group = threadIdx.x / corrected::warpgroup, in_group = threadIdx.x % corrected::warpgroup / 32 * 16;
    const float2* const scale = reinterpret_cast<const float2*>(s.factor.scale) + threadIdx.x % 4;
    const bool pairs_a = aligned_pairs(A, lda), pairs_x = aligned_pairs(X, ldx);
    const Index step = Index(gridDim.x) * groups * rows;
    // neighbouring rows to one block where there are many, to as many blocks as possible where there are few
    Index row = (m > step ? Index(blockIdx.x) * groups + group : Index(group) * gridDim.x + blockIdx.x) * rows;
    float* const next = s.rows[Solve::is_staged ? threadIdx.x / 32 : 0];
    const int lane = threadIdx.x % 32;
    const auto fetch = [&]<int bytes>(Index first) {
        constexpr int width = bytes / int(sizeof(float)), pieces = 16 / width;
        for (int p = lane; p < n * pieces; p += 32) {
            const int j = p / pieces, i = p % pieces * width;
            copy_async<bytes>(next + j * Solve::rows_ld + i, A + first + i + (order ? order[j] : j) * lda,
                              m - (first + i));
        }
    };
    const bool aligned = aligned_16(A, lda);
    const auto fetch_rows = [&](Index first) {
        if (first < m) aligned ? fetch.template operator()<16>(first) : fetch.template operator()<4>(first);
        commit_copies();
    };
    if constexpr (Solve::is_staged) {
        for (int x = lane; x < Solve::cols * Solve::rows_ld; x += 32) next[x] = 0;
        __syncwarp();
        if (row < m) fetch_rows(row + in_group);
    }
    s.arrived.receive(0);
    for (; row < m; row += step) {
        const Index mine = row + in_group;
        SingleTile16x8 tile[8 * squares];
        const auto put = [&](int j, float x0, float x1, float y0, float y1) {
            const float x = of_x * scale[4 * j].x, y = of_x * scale[4 * j].y;
            tile[j] = {{x0 * x, y0 * y, x1 * x, y1 * y}};
        };
        if constexpr (Solve::is_staged) {
            wait_for_copies<0>();
            __syncwarp();
            const float* const from = next + lane / 4 * 2 + lane % 4 * 2 * Solve::rows_ld;
#pragma unroll
            for (int j = 0; j < 8 * squares; ++j) {
                const float2 x = *reinterpret_cast<const float2*>(from + 8 * j * Solve::rows_ld),
                             y = *reinterpret_cast<const float2*>(from + (8 * j + 1) * Solve::rows_ld);
                put(j, x.x, x.y, y.x, y.y);
            }
            __syncwarp();
            if (row + step < m) fetch_rows(mine + step);
        } else {
            load_rows<8 * squares>(A + mine, lda, n, m - mine, pairs_a, [&](int j, const LanePairs<float>& a) {
                put(j, a.of_col[0].v[0], a.of_col[0].v[1], a.of_col[1].v[0], a.of_col[1].v[1]);
            });
        }
        solve_rows(tile, s.factor);
#pragma unroll
        for (int x = 0; x < 32 * squares; ++x) tile[x / 4].v[x % 4] *= 1 / of_x;
        store_rows(tile, X + mine, ldx, n, m - mine, pairs_x);
    }
}

/// Bytes that `corrected_factor` writes, at a multiple of 16.
constexpr Index corrected_factor_bytes = sizeof(CorrectedFactor<4>);

/// Splits R into operands, and sets the certificate's condition if that is unknown or a smaller bound is found. Does
/// nothing if the certificate is refused.
inline void corrected_factor(Context<Cuda>& ctx, MatrixView<const double, Cuda> R, void* halves,
                             Certificate* certificate) {
    const int n = static_cast<int>(R.cols);
    with_constant<2, 4>(ceil_div(n, corrected::image_cols), [&](auto squares) {
        launch(ctx.stream(), corrected_factor_kernel<squares>, {squares + 1, corrected_factor_threads}, n, R.data, R.ld,
               static_cast<CorrectedFactor<squares>*>(halves), certificate);
    });
}

/// X := A P R⁻¹ for P of `order`, or I if that is null; with it n <= 192. X is left as it is where the certificate is
/// refused, or its factor may have a larger condition.
inline void solve_corrected(Context<Cuda>& ctx, MatrixView<const float, Cuda> A, const Index* order, const void* halves,
                            MatrixView<float, Cuda> X, const Certificate* certificate, double max_condition) {
    const int n = static_cast<int>(A.cols);
    with_constant<2, 4>(ceil_div(n, corrected::image_cols), [&](auto squares) {
        using Solve = SolveCorrected<squares>;
        const auto blocks =
            static_cast<unsigned>(std::min<Index>(ctx.state().kernels.multiprocessors, ceil_div(A.rows, Index(64))));
        launch(ctx.stream(), solve_corrected_kernel<squares>,
               {blocks, Solve::threads, corrected::aligned_shared_bytes<Solve>}, A.rows, n, A.data, A.ld, order,
               static_cast<const CorrectedFactor<squares>*>(halves), X.data, X.ld, certificate, max_condition);
    });
}

}  // namespace quoin::cuda
