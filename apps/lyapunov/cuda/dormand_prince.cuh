#pragma once

// Steps of length h of Dormand and Prince's method of order 5 for [x X], ẋ = f(x), Ẋ = Df(x) X, x in f64 and X (n×p) in
// T:
//
//   k_s = f(y + h Σ_{r<s} a_sr k_r),  s = 1 … 6,   y := y + h Σ b_s k_s
//
//            x  columns of X
//           ┌──┐┌──┬──┐      a block: 16 bytes of each row of X at a time, for all steps, and its own copy of x;
//   rows    │  ││  │  │      thread (t, 0): rows t, t + threads, … of x; thread (t, 1 + c): the same rows of column c.
//           └──┘└──┴──┘
//
// Each thread updates its own rows alone. The arguments of f and Df, which threads of neighbouring rows read, are
// written between two barriers. y, the argument and six k of each column lie in shared memory, 192 bytes a row in f64.
// If it is too small, they lie in the block's part of the workspace. Every block computes the same x. The first one
// stores it in x_end, which no block reads. A `Field` has `dimension()`, `at(x, i)` = f_i(x) and `product(x, v, i)` =
// (Df(x) v)_i. Bound by the latency of barriers and memory.

#include <algorithm>

#include "cuda/runtime/error.hpp"
#include "cuda/runtime/launch.hpp"
#include "quoin/cuda.hpp"

namespace quoin::cuda {

constexpr int flow_threads = 128, flow_arrays = 8;
template <class T>
constexpr int flow_cols = 16 / int(sizeof(T));

/// Returns the bytes of a block's memory.
template <class T>
std::size_t flow_bytes(Index n) {
    return static_cast<std::size_t>(flow_arrays * n) * (sizeof(double) + flow_cols<T> * sizeof(T));
}

/// Returns row i of y + h Σ_r a_{k+1,r} k_r, or for k = 6 of y + h Σ_r b_r k_r. y is the first of the arrays of n
/// numbers each.
template <int k, class T>
__device__ __forceinline__ T combine(const T* y, Index n, Index i, double h) {
    constexpr double weights[7][6] = {{},
                                      {1. / 5},
                                      {3. / 40, 9. / 40},
                                      {44. / 45, -56. / 15, 32. / 9},
                                      {19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729},
                                      {9017. / 3168, -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656},
                                      {35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784, 11. / 84}};
    T sum = y[i];
#pragma unroll
    for (int r = 0; r < k; ++r) sum += static_cast<T>(h * weights[k][r]) * y[(2 + r) * n + i];
    return sum;
}

template <class Field, class T>
__global__ void __launch_bounds__(flow_threads*(1 + flow_cols<T>))
    flow_kernel(Field field, int steps, double h, const double* x, double* x_end, MatrixView<T, Cuda> X,
                unsigned char* workspace) {
    constexpr int W = flow_cols<T>;
    extern __shared__ __align__(16) unsigned char shared[];
    const Index n = field.dimension();
    unsigned char* const memory =
        workspace ? workspace + blockIdx.x * (flow_arrays * n * (Index(sizeof(double)) + W * Index(sizeof(T))))
                  : shared;
    double* const state = reinterpret_cast<double*>(memory);
    const int c = int(threadIdx.y) - 1;
    T* const vector = reinterpret_cast<T*>(state + flow_arrays * n) + (c < 0 ? 0 : c) * flow_arrays * n;
    const auto each_row = [&](auto f) {
        for (Index i = threadIdx.x; i < n; i += blockDim.x) f(i);
    };

    for (Index first = Index(blockIdx.x) * W; first == 0 || first < X.cols; first += Index(gridDim.x) * W) {
        const bool mine = c >= 0 && first + c < X.cols;
        T* const column = X.data + (first + (c < 0 ? 0 : c)) * X.ld;
        if (c < 0) each_row([&](Index i) { state[i] = x[i]; });
        if (mine) each_row([&](Index i) { vector[i] = column[i]; });
        for (int s = 0; s < steps; ++s) {
            const auto stage = [&]<int k>() {
                // the argument, array 1, and its k, array 2 + k
                const auto argument = [&](auto* y) { each_row([&](Index i) { y[n + i] = combine<k>(y, n, i, h); }); };
                if (c < 0) argument(state);
                if (mine) argument(vector);
                __syncthreads();
                if (c < 0) each_row([&](Index i) { state[(2 + k) * n + i] = field.at(state + n, i); });
                if (mine) {
                    each_row([&](Index i) { vector[(2 + k) * n + i] = field.product(state + n, vector + n, i); });
                }
                __syncthreads();
            };
            stage.template operator()<0>();
            stage.template operator()<1>();
            stage.template operator()<2>();
            stage.template operator()<3>();
            stage.template operator()<4>();
            stage.template operator()<5>();
            const auto advance = [&](auto* y) { each_row([&](Index i) { y[i] = combine<6>(y, n, i, h); }); };
            if (c < 0) advance(state);
            if (mine) advance(vector);
        }
        if (c < 0 && first == 0) each_row([&](Index i) { x_end[i] = state[i]; });
        if (mine) each_row([&](Index i) { column[i] = vector[i]; });
    }
}

/// Returns the blocks of a launch. If they need a workspace, at most as many run as fit the device at once.
template <class T>
int flow_blocks(Index cols, bool in_shared, int multiprocessors) {
    const Index tiles = std::max<Index>(1, (cols + flow_cols<T> - 1) / flow_cols<T>);
    return static_cast<int>(std::min<Index>(tiles, in_shared ? Index(1) << 30 : Index(2) * multiprocessors));
}

/// `workspace`: `blocks` times flow_bytes; null: in shared memory. x_end is not x.
template <class Field, class T>
void flow(const Field& field, int steps, double h, const double* x, double* x_end, MatrixView<T, Cuda> X,
          unsigned char* workspace, int blocks, cudaStream_t stream) {
    const std::size_t bytes = workspace ? 0 : flow_bytes<T>(field.dimension());
    const unsigned threads = static_cast<unsigned>(std::min<Index>(flow_threads, (field.dimension() + 31) / 32 * 32));
    launch(stream, flow_kernel<Field, T>, {static_cast<unsigned>(blocks), dim3(threads, 1 + flow_cols<T>), bytes},
           field, steps, h, x, x_end, X, workspace);
}

}  // namespace quoin::cuda
