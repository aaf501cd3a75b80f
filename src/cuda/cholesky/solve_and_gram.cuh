#pragma once

// X := A Y₁⁻¹ Y₂⁻¹ … and G := XᵀX on a stream, for n <= 192, and G of an A of f32 for n <= 256.
// Up to 64 columns one pass fuses them (few_columns.cuh, narrow.cuh). Beyond, each factor takes a pass
// (solve_right.cuh, or solve_corrected.cuh), and G another (gram.cuh). If X is not wanted but G is, rows go through a
// scratch block of `scratch_rows` rows. kernel_choice.hpp says which kernel.

#include "cuda/cholesky/few_columns.cuh"
#include "cuda/cholesky/narrow.cuh"
#include "cuda/cholesky/solve_corrected.cuh"
#include "cuda/cholesky/solve_right.cuh"
#include "cuda/products/gram.cuh"
#include "cuda/runtime/ceil_div.cuh"

namespace quoin::cuda {

/// Rows of the scratch block: four rounds of tiles for every warp.
inline Index scratch_rows(int multiprocessors) { return Index(multiprocessors) * solve_warps * 16 * 4; }

/// Blocks of the fused pass, and so parts.
template <class T>
int fused_grid(Index m, int n, int multiprocessors) {
    return choose_gram(n, scalar_kind<T>) == GramKernel::ThreadPerRow ? few_columns_grid<T>(m, n, multiprocessors)
                                                                      : narrow_grid<T>(m, n, multiprocessors);
}

/// Bytes of workspace that `solve_and_gram` below needs, 16-byte aligned: R's halves, partial Gram matrices, and the
/// scratch block.
template <class T>
Index tall_workspace(Index m, int n, int factor_count, bool want_x, bool want_g, int multiprocessors) {
    const bool corrected = choose_solve(m, n, factor_count, true, scalar_kind<T>) == SolveKernel::Corrected;
    const Index halves = corrected ? corrected_factor_bytes : 0;
    if (!want_g || n == 0) return halves;
    const int col_tiles = ceil_div(n, 8);
    if (is_fused_pass(n)) {
        return fused_grid<T>(m, n, multiprocessors) * part_size(col_tiles, fused_height) * Index(sizeof(double));
    }
    const Index parts = GramGrid(m, n, multiprocessors).parts_size();
    const Index scratch = want_x || factor_count == 0 ? 0 : std::min(m, scratch_rows(multiprocessors)) * n;
    return halves + parts * Index(sizeof(double)) + scratch * Index(sizeof(T));
}

/// The longest sum of G: the rows that one accumulator sees, then the lanes and warps of a block, and the parts, in
/// eights.
template <class T>
Index longest_sum(Index m, int n, int multiprocessors) {
    const bool is_few = choose_gram(n, scalar_kind<T>) == GramKernel::ThreadPerRow, is_fused = is_fused_pass(n);
    const Index blocks = is_fused ? fused_grid<T>(m, n, multiprocessors) : GramGrid(m, n, multiprocessors).blocks;
    const Index at_a_time = is_few ? vector_size<T> : is_fused ? narrow_rows<T> : gram_rows;
    const Index accumulators = is_few ? few_threads(n) : is_fused ? narrow_warps : 1;
    const Index round = std::max<Index>(1, blocks * accumulators * at_a_time);
    const Index in_block = is_few ? 5 + few_threads(n) / 32 : narrow_warps;
    return ceil_div(m, round) * at_a_time + in_block + ceil_div(blocks, Index(sum_groups)) + sum_groups;
}

/// 0 <= n <= 192, or gram_max_cols without factors; at most `max_factors` of them. X null: not stored; X may be A. G
/// null: not computed; G may be a factor. Where the certificate (null: none) is refused X stays as it is and G is
/// unspecified; a bound of the factor's condition goes there. Allocates nothing and does not wait.
template <class T>
cudaError_t solve_and_gram(Index m, int n, const T* A, Index lda, const Factors& factors, T* X, Index ldx, double* G,
                           Index ldg, Certificate* certificate, void* workspace, int multiprocessors,
                           cudaStream_t stream) {
    if (n == 0) return cudaSuccess;
    if (n > (factors.count == 0 ? gram_max_cols<T> : tall_max_cols) || factors.count > max_factors)
        return cudaErrorInvalidValue;
    const bool corrected =
        choose_solve(m, n, factors.count, certificate != nullptr, scalar_kind<T>) == SolveKernel::Corrected;
    double* const parts = static_cast<double*>(workspace) + (corrected ? corrected_factor_bytes / sizeof(double) : 0);
    if (m == 0) return G ? sum_gram_parts(n, fused_height, 0, parts, G, ldg, stream) : cudaSuccess;
    cudaError_t error = cudaSuccess;

    if (is_fused_pass(n)) {
        const auto pass = choose_gram(n, scalar_kind<T>) == GramKernel::ThreadPerRow ? few_columns<T> : narrow<T>;
        error = pass(m, n, A, lda, factors, X, ldx, G ? parts : nullptr, certificate, multiprocessors, stream);
        if (error != cudaSuccess || !G) return error;
        return sum_gram_parts(n, fused_height, fused_grid<T>(m, n, multiprocessors), parts, G, ldg, stream);
    }

    const GramGrid grid(m, n, multiprocessors);
    const double corrected_condition = corrected ? max_corrected_condition(n) : -1.0;
    if (corrected) error = corrected_factor(n, factors.data[0], factors.ld[0], workspace, certificate, stream);
    const auto solve = [&](Index rows, const T* from, Index ld_from, T* to, Index ld_to) {
        if constexpr (std::is_same_v<T, float>) {
            if (corrected && error == cudaSuccess)
                error = solve_corrected(rows, n, from, ld_from, workspace, to, ld_to, certificate, corrected_condition,
                                        multiprocessors, stream);
        }
        for (int f = 0; f < factors.count && error == cudaSuccess; ++f) {
            error = solve_right(rows, n, from, ld_from, factors.data[f], factors.ld[f], to, ld_to, certificate,
                                corrected_condition, multiprocessors, stream);
            from = to;
            ld_from = ld_to;
        }
        return error;
    };
    if (factors.count == 0) {
        if (X && X != A) {
            error = cudaMemcpy2DAsync(X, ldx * sizeof(T), A, lda * sizeof(T), m * sizeof(T), n,
                                      cudaMemcpyDeviceToDevice, stream);
        }
        if (error == cudaSuccess && G) error = gram(m, n, A, lda, parts, grid, false, stream);
    } else if (X) {
        if (solve(m, A, lda, X, ldx) == cudaSuccess && G) error = gram(m, n, X, ldx, parts, grid, false, stream);
    } else if (G) {
        const Index ld = std::min(m, scratch_rows(multiprocessors));
        T* const scratch = reinterpret_cast<T*>(parts + grid.parts_size());
        for (Index row = 0; row < m && error == cudaSuccess; row += ld) {
            const Index rows = std::min(ld, m - row);
            if (solve(rows, A + row, lda, scratch, ld) != cudaSuccess) break;
            // blocks without rows of this scratch block keep their part
            error = gram(rows, n, scratch, ld, parts, grid, row > 0, stream);
        }
    }
    if (error != cudaSuccess || !G) return error;
    return sum_gram_parts(n, gram_height, grid.blocks, parts, G, ldg, stream);
}

}  // namespace quoin::cuda
