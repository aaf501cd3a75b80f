#include "papers/reduction_strategies.hpp"

#include "cuda/kernel_choice.hpp"
#include "cuda/runtime/launch.hpp"
#include "quoin/error.hpp"

namespace quoin::bench {

namespace {

/// Threads of a block that shares columns; with a thread a row there is one for each.
constexpr int update_threads = 64;
template <int rows, Reduction reduction>
constexpr int threads_of = reduction == Reduction::SharedParallel ? rows : update_threads;

/// Applies the reflectors with row `threadIdx.x` of C in registers.
template <int rows, int cols>
__device__ void apply_by_rows(const float* v, const float* tau, float* C) {
    __shared__ float product[rows];
    const int i = threadIdx.x;
    float c[cols];
#pragma unroll
    for (int j = 0; j < cols; ++j) c[j] = C[i + j * rows];
    for (int k = 0; k < cols; ++k) {
        const float v_i = v[i + k * rows], t = tau[k];
#pragma unroll
        for (int j = 0; j < cols; ++j) {
            product[i] = v_i * c[j];
            for (int half = rows / 2; half > 0; half /= 2) {
                __syncthreads();
                if (i < half) product[i] += product[i + half];
            }
            __syncthreads();
            c[j] -= t * product[0] * v_i;
            __syncthreads();
        }
    }
#pragma unroll
    for (int j = 0; j < cols; ++j) C[i + j * rows] = c[j];
}

/// Applies the reflectors to a transposed C in shared memory, whose columns are summed at once.
template <int rows, int cols>
__device__ void apply_combined(const float* v, const float* tau, float* C) {
    constexpr int size = rows * cols;
    __shared__ float c[size], product[size];
    for (int e = threadIdx.x; e < size; e += update_threads) c[e % rows * cols + e / rows] = C[e];
    __syncthreads();
    for (int k = 0; k < cols; ++k) {
        for (int e = threadIdx.x; e < size; e += update_threads) product[e] = v[e / cols + k * rows] * c[e];
        for (int left = size / 2; left >= cols; left /= 2) {
            __syncthreads();
            for (int e = threadIdx.x; e < left; e += update_threads) product[e] += product[e + left];
        }
        __syncthreads();
        for (int e = threadIdx.x; e < size; e += update_threads)
            c[e] -= tau[k] * product[e % cols] * v[e / cols + k * rows];
        __syncthreads();
    }
    for (int e = threadIdx.x; e < size; e += update_threads) C[e] = c[e % rows * cols + e / rows];
}

/// Applies the reflectors with column `threadIdx.x % cols` shared among threads, each of which sums its rows: of C in
/// shared memory or in registers.
template <int rows, int cols, Reduction reduction>
__device__ void apply_by_columns(const float* v, const float* tau, float* C) {
    constexpr int parts = update_threads / cols, own = rows / parts, ld = rows + 1;
    constexpr bool in_registers = reduction != Reduction::SharedSerial,
                   transposed = reduction == Reduction::RegistersTransposed;
    __shared__ float c[transposed ? 1 : cols * ld], sums[2][update_threads];
    const int j = threadIdx.x % cols, part = threadIdx.x / cols;
    if (!transposed) {
        for (int e = threadIdx.x; e < rows * cols; e += update_threads) c[e % rows + e / rows * ld] = C[e];
        __syncthreads();
    }
    float a[own];
#pragma unroll
    for (int l = 0; l < own && in_registers; ++l) {
        const int i = part + l * parts;
        a[l] = transposed ? C[i * cols + j] : c[i + j * ld];
    }
    for (int k = 0; k < cols; ++k) {
        const float* const v_k = v + k * rows;
        float sum = 0;
#pragma unroll
        for (int l = 0; l < own; ++l) {
            const int i = part + l * parts;
            sum += v_k[i] * (in_registers ? a[l] : c[i + j * ld]);
        }
        float* const sums_k = sums[k % 2];
        sums_k[threadIdx.x] = sum;
        __syncthreads();
        sum = 0;
#pragma unroll
        for (int p = 0; p < parts; ++p) sum += sums_k[j + p * cols];
        sum *= tau[k];
#pragma unroll
        for (int l = 0; l < own; ++l) {
            const int i = part + l * parts;
            (in_registers ? a[l] : c[i + j * ld]) -= sum * v_k[i];
        }
    }
#pragma unroll
    for (int l = 0; l < own && in_registers; ++l) {
        const int i = part + l * parts;
        (transposed ? C[i * cols + j] : c[i + j * ld]) = a[l];
    }
    if (transposed) return;
    __syncthreads();
    for (int e = threadIdx.x; e < rows * cols; e += update_threads) C[e] = c[e % rows + e / rows * ld];
}

template <int rows, int cols, Reduction reduction>
__global__ void __launch_bounds__(threads_of<rows, reduction>)
    apply_qt_h_kernel(const float* V, const float* tau, float* C) {
    __shared__ float v[rows * cols];
    constexpr int size = rows * cols;
    const Index b = blockIdx.x;
    for (int e = threadIdx.x; e < size; e += threads_of<rows, reduction>) v[e] = V[b * size + e];
    __syncthreads();
    if constexpr (reduction == Reduction::SharedParallel) {
        apply_by_rows<rows, cols>(v, tau + b * cols, C + b * size);
    } else if constexpr (reduction == Reduction::SharedCombined) {
        apply_combined<rows, cols>(v, tau + b * cols, C + b * size);
    } else {
        apply_by_columns<rows, cols, reduction>(v, tau + b * cols, C + b * size);
    }
}

template <int rows, int cols, Reduction reduction>
void launch_update(Context<Cuda>& ctx, Index count, const float* V, const float* tau, float* C) {
    if constexpr (rows * cols <= 4096) {
        cuda::launch(ctx.stream(), apply_qt_h_kernel<rows, cols, reduction>,
                     {static_cast<unsigned>(count), threads_of<rows, reduction>}, V, tau, C);
    }
}

constexpr int block_rows[] = {32, 64, 128, 256}, block_cols[] = {4, 8, 16, 32};
/// Returns the place of x in a list, or −1.
template <class List>
int place_of(int x, const List& list) {
    return cuda::first_row(list, [&](int listed) { return listed == x; });
}

}  // namespace

const char* to_string(Reduction reduction) {
    switch (reduction) {
        case Reduction::SharedParallel: return "shared parallel";
        case Reduction::SharedSerial: return "shared serial";
        case Reduction::SharedCombined: return "shared combined";
        case Reduction::Registers: return "registers serial";
        case Reduction::RegistersTransposed: break;
    }
    return "registers transposed";
}

void apply_block_reflectors(Context<Cuda>& ctx, Reduction reduction, UpdateBlock block, Index count, const float* V,
                            const float* tau, float* C) {
    const int row = place_of(block.rows, block_rows), col = place_of(block.cols, block_cols);
    if (row < 0 || col < 0) throw InvalidArgument("apply_block_reflectors: there is no kernel for this block");
    cuda::with_row<std::size(block_rows)>(row, [&](auto r) {
        cuda::with_row<std::size(block_cols)>(col, [&](auto c) {
            cuda::with_row<reductions.size()>(static_cast<int>(reduction), [&](auto how) {
                launch_update<block_rows[r], block_cols[c], reductions[how]>(ctx, count, V, tau, C);
            });
        });
    });
}

}  // namespace quoin::bench
