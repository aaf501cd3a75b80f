// A (m×n) = QR, one column at a time, one pass over the trailing matrix a column.
//
// With x = A(j:m, j), α = x₀, σ = ‖x(1:)‖², β = −sign(α) √(α² + σ): v = x / (α − β) with v₀ = 1, τ = (β − α) / β and
//
//     w_c = τ vᵀ A(j:m, c) = τ (A(j, c) + y_c / (α − β)),   y_c = x(1:)ᵀ A(j+1:m, c),   A(j:m, c) −= v w_c.
//
// The inner products of column j + 1 with the columns on its right need no pass of their own: they are summed row by
// row during the update by column j. Two kernels a column:
//
//     finish_products_kernel     y and σ from their parts, α, β, τ, w      a warp owns a column c
//     update_and_project_kernel  A −= v w, and the parts of the next y     a block owns a tile of rows and a run of
//                                columns
//
// A thread holds `rows_a_thread` rows of v and of the next x in registers. It loads its rows of `columns_at_once`
// columns before it stores any, to keep enough bytes in flight; a warp's loads are consecutive rows of one column.
// Column j + 1 leaves its update in x (two vectors, in turn), which every block needs and one writes; as v it returns
// to A in the next launch. Parts are summed over the threads of a block in shared memory (8 warps × 128 columns, 4 or 8
// KiB), over blocks by finish_products_kernel, always in the same order. Rows past m and columns past n are masked; any
// ld.
//
// 4 flops, one element read and one written for each element of the trailing matrix a column: bound by memory (on an
// H100 1 000 000 × 192 runs at 86% of its copy rate in f32 and at 90% in f64). If the trailing matrix is small, the two
// launches bound the time: 5 µs a column.

#include <algorithm>

#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/state.hpp"
#include "rivals/blas2_qr.hpp"

namespace quoin::bench {

namespace {

constexpr int threads = 256, warps = threads / 32, max_columns = 128;

template <class T>
struct Reflector {
    T beta, scale;  ///< scale = 1 / (α − β)
};

template <class T>
__device__ T sum_of_warp(T value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(~0u, value, offset);
    return value;
}

/// y_c = Σ_tile parts(tile, c) for c = j … n − 1, y_j = σ; then β, τ, w. A(:, c) is updated by all columns before j.
template <class T>
__global__ void __launch_bounds__(threads)
    finish_products_kernel(Index j, Index n, const T* A, Index ld, const T* x, const T* parts, Index tiles,
                           Reflector<T>* reflector, T* tau, T* w) {
    const Index c = j + Index(blockIdx.x) * warps + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (c >= n) return;
    T sigma = 0, y = 0;
#pragma unroll 4
    for (Index tile = lane; tile < tiles; tile += 32) {
        sigma += parts[tile + j * tiles];
        y += parts[tile + c * tiles];
    }
    sigma = sum_of_warp(sigma);
    y = sum_of_warp(y);
    if (lane != 0) return;
    const T alpha = x[j];
    const T beta = sigma == 0 ? alpha : -copysign(sqrt(alpha * alpha + sigma), alpha);
    const T scale = sigma == 0 ? T(0) : 1 / (alpha - beta);
    const T tau_j = sigma == 0 ? T(0) : (beta - alpha) / beta;
    if (c == j) {
        *reflector = {beta, scale};
        tau[j] = tau_j;
    } else {
        w[c] = tau_j * (A[j + c * ld] + scale * y);
    }
}

/// Step j: v = scale · x becomes column j of A, A(j:m, j+1:n) −= v w. With `project`, x_next := A(:, j+1) and
/// parts(tile, c) := Σ x_next(i) A(i, c) over the rows i > j + 1 of the tile, c > j. Step −1 only
/// projects. Tiles above row j have nothing to do and no block.
template <class T, int rows_a_thread, int columns_at_once>
__global__ void __launch_bounds__(threads)
    update_and_project_kernel(Index m, Index j, Index n, bool project, T* A, Index ld, const T* x, T* x_next,
                              const Reflector<T>* reflector, const T* w, T* parts, Index first_tile,
                              Index columns_a_block) {
    __shared__ T sums[warps][max_columns];
    const Index first_row = (first_tile + blockIdx.x) * threads * rows_a_thread + threadIdx.x;
    const auto row = [&](int r) { return first_row + Index(r) * threads; };
    const Index next = j + 1;
    const bool first_run = blockIdx.y == 0;

    T v[rows_a_thread], x1[rows_a_thread] = {};
    const T scale = j < 0 ? T(0) : reflector->scale;
#pragma unroll
    for (int r = 0; r < rows_a_thread; ++r) {
        const Index i = row(r);
        v[r] = j >= 0 && i > j && i < m ? scale * x[i] : T(i == j);
        if (first_run && j >= 0 && i >= j && i < m) A[i + j * ld] = i == j ? reflector->beta : v[r];
    }
    T sigma = 0;
    if (project) {
        const T w_next = j < 0 ? T(0) : w[next];
#pragma unroll
        for (int r = 0; r < rows_a_thread; ++r) {
            const Index i = row(r);
            if (i >= m || i < next) continue;
            const T value = A[i + next * ld] - v[r] * w_next;
            if (first_run) x_next[i] = value;
            if (i > next) x1[r] = value;
            sigma += x1[r] * x1[r];
        }
        // the row of R that column j leaves in column j + 1
#pragma unroll
        for (int r = 0; r < rows_a_thread; ++r) {
            if (first_run && j >= 0 && row(r) == j) A[j + next * ld] -= w_next;
        }
    }

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const Index begin = next + (project ? 1 : 0) + Index(blockIdx.y) * columns_a_block;
    const int count = static_cast<int>(min(columns_a_block, n - begin));
    for (int c = 0; c < count; c += columns_at_once) {
        T a[columns_at_once][rows_a_thread], w_c[columns_at_once];
        const auto within = [&](int q, Index i) { return i >= j && i < m && c + q < count; };
#pragma unroll
        for (int q = 0; q < columns_at_once; ++q) {
            w_c[q] = j >= 0 && c + q < count ? w[begin + c + q] : T(0);
#pragma unroll
            for (int r = 0; r < rows_a_thread; ++r)
                a[q][r] = within(q, row(r)) ? A[row(r) + (begin + c + q) * ld] : T(0);
        }
#pragma unroll
        for (int q = 0; q < columns_at_once; ++q) {
            T y = 0;
#pragma unroll
            for (int r = 0; r < rows_a_thread; ++r) {
                a[q][r] -= v[r] * w_c[q];
                if (j >= 0 && within(q, row(r))) A[row(r) + (begin + c + q) * ld] = a[q][r];
                y += x1[r] * a[q][r];
            }
            if (!project) continue;
            y = sum_of_warp(y);
            if (lane == 0 && c + q < count) sums[warp][c + q] = y;
        }
    }
    if (!project) return;

    const auto add_up = [&](Index c, int at) {
        T sum = 0;
        for (int of_warp = 0; of_warp < warps; ++of_warp) sum += sums[of_warp][at];
        parts[blockIdx.x + c * gridDim.x] = sum;
    };
    __syncthreads();
    if (threadIdx.x < count) add_up(begin + threadIdx.x, threadIdx.x);
    if (!first_run) return;
    __syncthreads();
    sigma = sum_of_warp(sigma);
    if (lane == 0) sums[warp][0] = sigma;
    __syncthreads();
    if (threadIdx.x == 0) add_up(next, 0);
}

/// Low tiles fill the multiprocessors where the matrix is low; a high tile has fewer parts to add. Measured on an H100.
Index rows_a_tile(Index m) { return m < 65536 ? 2 * threads : 8 * threads; }

Index tiles_of(Index m) { return std::max<Index>(1, (m + rows_a_tile(m) - 1) / rows_a_tile(m)); }

}  // namespace

template <class T>
struct Blas2QR<T>::Graph {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    ~Graph() {
        if (executable) cudaGraphExecDestroy(executable);
        if (graph) cudaGraphDestroy(graph);
    }
};

template <class T>
Blas2QR<T>::Blas2QR(Context<Cuda>& ctx, MatrixView<T, Cuda> A)
    : tau_(ctx, std::min(A.rows, A.cols), 1),
      x_(ctx, A.rows, 2),
      w_(ctx, A.cols, 1),
      parts_(ctx, tiles_of(A.rows), A.cols),
      reflector_(ctx, sizeof(Reflector<T>) / sizeof(T), 1),
      graph_(new Graph) {
    if (A.empty()) return;
    ctx.wait();
    QUOIN_CUDA_CHECK(cudaStreamBeginCapture(ctx.stream(), cudaStreamCaptureModeThreadLocal));
    enqueue(ctx, A);
    QUOIN_CUDA_CHECK(cudaStreamEndCapture(ctx.stream(), &graph_->graph));
    QUOIN_CUDA_CHECK(cudaGraphInstantiate(&graph_->executable, graph_->graph, 0));
    QUOIN_CUDA_CHECK(cudaGraphUpload(graph_->executable, ctx.stream()));
}

template <class T>
Blas2QR<T>::~Blas2QR() = default;

template <class T>
void Blas2QR<T>::geqrf(Context<Cuda>& ctx) {
    if (graph_->executable) QUOIN_CUDA_CHECK(cudaGraphLaunch(graph_->executable, ctx.stream()));
}

template <class T>
void Blas2QR<T>::enqueue(Context<Cuda>& ctx, MatrixView<T, Cuda> A) {
    const Index m = A.rows, n = A.cols, k = std::min(m, n);
    auto* reflector = reinterpret_cast<Reflector<T>*>(reflector_.data());
    const auto kernel =
        rows_a_tile(m) == 2 * threads ? update_and_project_kernel<T, 2, 4> : update_and_project_kernel<T, 8, 1>;
    for (Index j = -1; j < k; ++j) {
        const bool project = j + 1 < k;
        const Index columns = n - (j + 1) - (project ? 1 : 0);
        const Index first_tile = std::max<Index>(j, 0) / rows_a_tile(m), tiles = tiles_of(m) - first_tile;
        // four blocks a multiprocessor, if that leaves each at least four columns
        const Index runs_wanted = (4 * ctx.state().kernels.multiprocessors + tiles - 1) / tiles;
        const Index columns_a_block =
            std::clamp<Index>((columns + runs_wanted - 1) / runs_wanted, 4, Index{max_columns});
        const dim3 grid(static_cast<unsigned>(tiles),
                        static_cast<unsigned>(std::max<Index>(1, (columns + columns_a_block - 1) / columns_a_block)));
        const T* x = x_.data() + (j & 1) * m;
        T* x_next = x_.data() + ((j + 1) & 1) * m;
        cuda::launch(ctx.stream(), kernel, {grid, threads}, m, j, n, project, A.data, A.ld, x, x_next, reflector,
                     w_.data(), parts_.data(), first_tile, columns_a_block);
        if (!project) break;
        const Index remaining = n - (j + 1);
        cuda::launch(ctx.stream(), finish_products_kernel<T>,
                     {static_cast<unsigned>((remaining + warps - 1) / warps), threads}, j + 1, n, A.data, A.ld, x_next,
                     parts_.data(), tiles, reflector, tau_.data(), w_.data());
    }
}

template class Blas2QR<float>;
template class Blas2QR<double>;

}  // namespace quoin::bench
