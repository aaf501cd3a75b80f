// Error-corrected products (kernels/split_halves.cuh) over cuBLAS's f16 GEMM with sums in f32.
//
// The tensor cores cut sums off where they should round, so that the error of a long one grows with its length and not
// with the length's root: VᵀC is added in runs of `run_rows`, and those in double by `sum_parts`. C − V W is short enough.

#include "cuda/split_products.hpp"

#include <algorithm>
#include <cmath>

#include "cuda/blas.hpp"
#include "cuda/kernels/split_halves.cuh"
#include "cuda/sum_parts.hpp"

namespace quoin::cuda {

namespace {

constexpr Index run_rows = 384;
/// Columns of C are taken at a time while their halves fit into so many bytes.
constexpr Index most_bytes = Index(1) << 30;

dim3 grid_of(Index rows, Index cols) {
    return dim3(static_cast<unsigned>(std::clamp<Index>((rows + element_threads - 1) / element_threads, 1, 1 << 20)),
                static_cast<unsigned>(std::clamp<Index>(cols, 1, 65535)));
}

template <bool unit_lower>
void launch_split_parts(Context<Cuda>& ctx, MatrixView<const float, Cuda> A, Index h, LowSlot low,
                        const unsigned* largest, __half* out) {
    const Index padded = (A.rows + h - 1) / h * h;
    split_parts<unit_lower>
        <<<grid_of(padded / 2, A.cols), element_threads, 0, ctx.stream()>>>(A, h, padded, low, largest, out);
    check_launch("split_parts");
}

/// As kernels/split_halves.cuh scales its entries, −1/s² for the update.
__global__ void scale_of_update(const unsigned* largest, float* alpha_beta) {
    alpha_beta[0] = -scalbnf(1.0f, -exponent_of_scale(largest) - split_exponent);
    alpha_beta[1] = 1;
}

}  // namespace

void apply_by_halves(Context<Cuda>& ctx, Op op, MatrixView<const float, Cuda> V, MatrixView<const float, Cuda> Tf,
                     MatrixView<float, Cuda> C) {
    const Index m = V.rows, k = V.cols, runs = (m + run_rows - 1) / run_rows, depth = 3 * run_rows;
    const Index ldv = (m + 7) / 8 * 8, ld_runs = runs * depth;
    const Index width = std::clamp<Index>(most_bytes / (ld_runs * Index(sizeof(__half))) / 128 * 128, 128, C.cols);
    const cublasHandle_t blas = ctx.state().blas();
    Arena::Frame frame(ctx);
    __half *const V_runs = frame.take<__half>(ld_runs * k), *const V_sides = frame.take<__half>(ldv * 3 * k);
    __half *const C_runs = frame.take<__half>(ld_runs * width), *const TW_sides = frame.take<__half>(3 * k * width);
    float* const parts = frame.take<float>(runs * k * width);
    const auto W_all = frame.matrix<float>(k, width), TW_all = frame.matrix<float>(k, width);
    unsigned* const largest = frame.take<unsigned>(1);
    float* const alpha_beta = frame.take<float>(2);

    launch_split_parts<true>(ctx, V, run_rows, LowSlot::First, nullptr, V_runs);
    split_sides<true><<<grid_of(m, k), element_threads, 0, ctx.stream()>>>(V, LowSlot::First, V_sides, ldv);
    check_launch("split_sides");
    for (Index j = 0; j < C.cols; j += width) {
        const Index p = std::min(width, C.cols - j);
        const auto C_j = C.col_block({j, j + p});
        const auto W = W_all.col_block({0, p}), TW = TW_all.col_block({0, p});
        // W = s² VᵀC
        launch_split_parts<false>(ctx, C_j, run_rows, LowSlot::Second, nullptr, C_runs);
        const float one = 1, zero = 0;
        check(cublasGemmStridedBatchedEx_64(blas, CUBLAS_OP_T, CUBLAS_OP_N, k, p, depth, &one, V_runs, CUDA_R_16F,
                                            ld_runs, depth, C_runs, CUDA_R_16F, ld_runs, depth, &zero, parts,
                                            CUDA_R_32F, k, k * p, runs, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
              "gemmStridedBatchedEx");
        sum_parts<float, float>(ctx, runs, parts, false, false, W);
        // W := op(T) W / s²
        gemm<float>(ctx, op, Op::None, std::ldexp(1.0f, -2 * split_exponent), Tf, W, 0, TW);
        QUOIN_CUDA_CHECK(cudaMemsetAsync(largest, 0, sizeof(unsigned), ctx.stream()));
        const unsigned blocks = static_cast<unsigned>(8 * ctx.state().multiprocessors);
        largest_bits<<<blocks, element_threads, 0, ctx.stream()>>>(k * p, TW.data, largest);
        check_launch("largest_bits");
        launch_split_parts<false>(ctx, TW, k, LowSlot::Second, largest, TW_sides);
        scale_of_update<<<1, 1, 0, ctx.stream()>>>(largest, alpha_beta);
        check_launch("scale_of_update");
        // C −= V W
        check(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE), "cublasSetPointerMode");
        const cublasStatus_t status = cublasGemmEx_64(
            blas, CUBLAS_OP_N, CUBLAS_OP_N, m, p, 3 * k, alpha_beta, V_sides, CUDA_R_16F, ldv, TW_sides, CUDA_R_16F,
            3 * k, alpha_beta + 1, C_j.data, CUDA_R_32F, C_j.ld, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
        check(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_HOST), "cublasSetPointerMode");
        check(status, "gemmEx");
    }
    ctx.state().add_flops(4.0 * m * k * C.cols);
}

}  // namespace quoin::cuda
