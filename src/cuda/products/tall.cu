// Tall matrices times small ones: products of f32 with few columns by products/gram.cuh and
// products/subtract_product.cuh, the rest by cuBLAS. Sums over rows by cuBLAS are split: A is cut into runs of h rows.
// If they are few, or the product is wide, they go into C one after the other. Otherwise one batched GEMM makes the n×p
// product of each run, and `sum_parts` adds them in order, in double.
//
//   sum_parts  threads for all multiprocessors, but no more an element of C than there are parts, and 32 at most, in
//              blocks of 1024: thread (e, s) of `slices` adds the parts s, s + slices, … of element e; the sums of an
//              element are then added in order of s. 8 KiB shared. Reads every part once. Bound by memory.

#include <type_traits>

#include "cuda/elements/elementwise.cuh"
#include "cuda/kernel_choice.hpp"
#include "cuda/products/gram.cuh"
#include "cuda/products/products_by_halves.hpp"
#include "cuda/products/subtract_product.cuh"
#include "cuda/products/sum_parts.hpp"
#include "cuda/runtime/blas.hpp"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/launch.hpp"
#include "cuda/tuning.hpp"

namespace quoin {
namespace {

using namespace cuda;

constexpr int sum_threads = 1024;

/// C := Σ parts (+ C where `accumulate`); strictly below the diagonal 0 where `upper`.
template <class T, class TC>
__global__ void __launch_bounds__(sum_threads)
    sum_parts_kernel(Index count, int slices, const T* parts, bool accumulate, bool upper, MatrixView<TC, Cuda> C) {
    __shared__ double sums[sum_threads];
    const Index size = C.rows * C.cols;
    const int width = sum_threads / slices, e = threadIdx.x % width, s = threadIdx.x / width;
    for (Index first = Index(blockIdx.x) * width; first < size; first += Index(gridDim.x) * width) {
        const Index at = first + e;
        double sum = 0;
        if (at < size) {
            for (Index c = s; c < count; c += slices) sum += static_cast<double>(parts[at + c * size]);
        }
        sums[threadIdx.x] = sum;
        __syncthreads();
        if (s == 0 && at < size) {
            const Index i = at % C.rows, j = at / C.rows;
            TC& c_ij = C.data[i + j * C.ld];
            double total = accumulate ? static_cast<double>(c_ij) : 0;
            for (int slice = 0; slice < slices; ++slice) total += sums[slice * width + e];
            c_ij = upper && i > j ? TC(0) : static_cast<TC>(total);
        }
        __syncthreads();
    }
}

}  // namespace

template <class T, class TC>
void cuda::sum_parts(Context<Cuda>& ctx, Index count, const T* parts, bool accumulate, bool upper,
                     MatrixView<TC, Cuda> C) {
    const Index size = C.rows * C.cols, threads = Index(ctx.state().kernels.multiprocessors) * 2048;
    int slices = 1;
    while (slices < 32 && slices < count && size * slices < threads) slices *= 2;
    const Index width = sum_threads / slices;
    const auto blocks = static_cast<unsigned>(std::clamp<Index>((size + width - 1) / width, 1, 1 << 20));
    launch(ctx.stream(), sum_parts_kernel<T, TC>, {blocks, sum_threads}, count, slices, parts, accumulate, upper, C);
}

Index cuda::rows_of_part(Context<Cuda>& ctx, Index m, Index n, Index p) {
    const Index tiles = ((n + 63) / 64) * ((p + 63) / 64);
    const Index wanted = m * tiles / (2 * ctx.state().kernels.multiprocessors);
    return (std::clamp<Index>(wanted, Tuning<Cuda>::min_part_rows, Tuning<Cuda>::max_part_rows) + 63) / 64 * 64;
}

namespace {

/// The parts follow each other where there are few, and where each has tiles of 128×128 for all multiprocessors.
bool one_by_one(Context<Cuda>& ctx, Index count, Index n, Index p) {
    return count <= Tuning<Cuda>::few_parts || n * p >= Index(ctx.state().kernels.multiprocessors) * 128 * 128;
}

}  // namespace

template <class T, class TC>
void cuda::multiply_split(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<const T, Cuda> B, bool accumulate,
                          bool upper, MatrixView<TC, Cuda> C) {
    const Index n = A.cols, p = B.cols, h = rows_of_part(ctx, A.rows, n, p);
    if (C.empty()) return;
    const Index whole = A.rows / h, rest = A.rows - whole * h, count = whole + (rest > 0 ? 1 : 0);
    if constexpr (std::is_same_v<T, TC>) {
        if (one_by_one(ctx, count, n, p) && !upper) {
            for (Index i = 0; i < std::max<Index>(A.rows, 1); i += h) {
                const Range rows{i, std::min(A.rows, i + h)};
                gemm<T>(ctx, Op::Transpose, Op::None, 1, A.row_block(rows), B.row_block(rows),
                        accumulate || i > 0 ? T(1) : T(0), C);
            }
            return;
        }
    }
    Arena::Frame frame(ctx);
    T* parts = frame.take<T>(count * n * p);
    gemm_of_rows<T>(ctx, whole, h, A, B, parts);
    if (rest > 0) {
        gemm_of_rows<T>(ctx, 1, rest, A.row_block({whole * h, A.rows}), B.row_block({whole * h, A.rows}),
                        parts + whole * n * p);
    }
    sum_parts<T>(ctx, count, parts, accumulate, upper, C);
}

namespace {

/// Products of f32 while it lives round their operands to TF32, where asked to.
class TensorMath {
public:
    TensorMath(Context<Cuda>& ctx, bool tf32) : blas_(tf32 ? ctx.state().blas() : nullptr) {
        if (blas_) check(cublasSetMathMode(blas_, CUBLAS_TF32_TENSOR_OP_MATH), "cublasSetMathMode");
    }
    TensorMath(const TensorMath&) = delete;
    ~TensorMath() {
        if (blas_) cublasSetMathMode(blas_, CUBLAS_DEFAULT_MATH);
    }

private:
    cublasHandle_t blas_;
};

/// C := AᵀB (+ C where `accumulate`), products exact and sums in f64.
void multiply_few(Context<Cuda>& ctx, MatrixView<const float, Cuda> A, MatrixView<const float, Cuda> B,
                  MatrixView<float, Cuda> C, bool accumulate) {
    const CrossGrid grid(A.rows, static_cast<int>(A.cols), static_cast<int>(B.cols),
                         ctx.state().kernels.multiprocessors);
    Arena::Frame frame(ctx);
    double* const parts = frame.take<double>(grid.parts_size());
    gram_of_two(ctx, A, B, grid, parts);
    sum_product_parts(ctx, grid.width, grid.groups, grid.blocks, parts, accumulate, C);
}

}  // namespace

template <class T, class D>
void multiply_transposed(Context<D>& ctx, View<const T, D> A, View<const T, D> B, View<T, D> C, bool accumulate,
                         Arithmetic arithmetic) {
    ctx.state().add_flops(2.0 * A.rows * A.cols * B.cols);
    if constexpr (std::is_same_v<T, float>) {
        switch (choose_inner_product(A.rows, A.cols, B.cols, scalar_kind<T>, arithmetic, ctx.state().kernels)) {
            case ProductKernel::Halves: return multiply_transposed_by_halves(ctx, arithmetic, A, B, C, accumulate);
            case ProductKernel::FewColumns: return multiply_few(ctx, A, B, C, accumulate);
            case ProductKernel::Library: break;
        }
    }
    const TensorMath math(ctx, arithmetic == study::TF32);
    multiply_split<T>(ctx, A, B, accumulate, false, C);
}

template <class T, class D>
void subtract_product(Context<D>& ctx, View<const T, D> A, View<const T, D> B, View<T, D> C, Arithmetic arithmetic) {
    ctx.state().add_flops(2.0 * C.rows * C.cols * A.cols);
    if constexpr (std::is_same_v<T, float>) {
        switch (choose_subtracted_product(C.rows, A.cols, C.cols, scalar_kind<T>, arithmetic, ctx.state().kernels)) {
            case ProductKernel::Halves: return subtract_product_by_halves(ctx, arithmetic, A, B, C);
            case ProductKernel::FewColumns: return cuda::subtract_product(ctx, A, B, C);
            case ProductKernel::Library: break;
        }
    }
    const TensorMath math(ctx, arithmetic == study::TF32);
    gemm<T>(ctx, Op::None, Op::None, -1, A, B, 1, C);
}

template <class T, class D>
void block_gram_schmidt_step(Context<D>& ctx, View<const T, D> Q, View<T, D> W, View<T, D> S, Arithmetic arithmetic,
                             bool again) {
    Index done = 0;  // columns of Q
    if constexpr (std::is_same_v<T, float>) {
        // as many at a time as there is room for the halves of
        const ProductKernel kernel =
            choose_inner_product(W.rows, Q.cols, W.cols, scalar_kind<T>, arithmetic, ctx.state().kernels);
        Index width = kernel == ProductKernel::Halves ? Q.cols : 0;
        while (done < Q.cols && width >= Tuning<Cuda>::min_halved) {
            const Range cols{done, std::min(Q.cols, done + width)};
            if (project_by_halves(ctx, arithmetic, again, Q.col_block(cols), W, S.row_block(cols))) {
                done = cols.end;
            } else {
                width = width / 2 / 8 * 8;
            }
        }
        ctx.state().add_flops(4.0 * W.rows * done * W.cols);
    }
    const Range rest{done, Q.cols};
    if (rest.size() == 0) return;
    multiply_transposed<T>(ctx, Q.col_block(rest), W, S.row_block(rest), false, arithmetic);
    subtract_product<T>(ctx, Q.col_block(rest), S.row_block(rest), W, arithmetic);
}

template void cuda::sum_parts<double, double>(Context<Cuda>&, Index, const double*, bool, bool,
                                              MatrixView<double, Cuda>);
template void cuda::sum_parts<float, float>(Context<Cuda>&, Index, const float*, bool, bool, MatrixView<float, Cuda>);

template void cuda::multiply_split<float, double>(Context<Cuda>&, MatrixView<const float, Cuda>,
                                                  MatrixView<const float, Cuda>, bool, bool, MatrixView<double, Cuda>);
template void cuda::multiply_split<double, double>(Context<Cuda>&, MatrixView<const double, Cuda>,
                                                   MatrixView<const double, Cuda>, bool, bool,
                                                   MatrixView<double, Cuda>);
QUOIN_IMPLEMENT(Cuda, multiply_transposed, subtract_product, block_gram_schmidt_step)

}  // namespace quoin
