// Element-wise primitives. Each is one kernel of elementwise.cuh, but for the two with a shape of their own:
//
//   scan       a block owns 256·16 rows of one column and leaves the largest magnitude's bits; a second kernel, a block
//              a column, takes the maximum over those. 1 read of A. Bound by memory.
//   transpose  a block owns a 32×32 tile, read and written along columns through (32×33) shared elements. 1 read and
//              1 write. Bound by memory.

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "cuda/elementwise.cuh"
#include "cuda/primitives.hpp"

namespace quoin {
namespace {

using namespace cuda;

/// The bits of |x|, whose order is that of the magnitudes, with Inf and then NaN above every number.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned int>;

__host__ __device__ constexpr Bits<double> infinity_bits(double) { return 0x7ff0000000000000ull; }
__host__ __device__ constexpr Bits<float> infinity_bits(float) { return 0x7f800000u; }
__device__ Bits<double> magnitude_bits(double x) {
    return static_cast<Bits<double>>(__double_as_longlong(x)) & 0x7fffffffffffffffull;
}
__device__ Bits<float> magnitude_bits(float x) { return __float_as_uint(x) & 0x7fffffffu; }

constexpr int scan_threads = 256, scan_rows = scan_threads * 16;

template <class B>
__device__ B block_max(B value) {
    __shared__ B warps[scan_threads / 32];
    for (int step = 16; step > 0; step /= 2) value = max(value, __shfl_xor_sync(~0u, value, step));
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    for (int w = 0; w < scan_threads / 32; ++w) value = max(value, warps[w]);
    return value;
}

template <class T>
__global__ void __launch_bounds__(scan_threads)
    largest_of_rows(MatrixView<const T, Cuda> A, Index count, Bits<T>* parts) {
    for (Index j = blockIdx.y; j < A.cols; j += gridDim.y) {
        for (Index s = blockIdx.x; s < count; s += gridDim.x) {
            const Index end = min(A.rows, (s + 1) * scan_rows);
            Bits<T> top = 0;
            for (Index i = s * scan_rows + threadIdx.x; i < end; i += scan_threads) {
                top = max(top, magnitude_bits(A.data[i + j * A.ld]));
            }
            top = block_max(top);
            if (threadIdx.x == 0) parts[s + j * count] = top;
            __syncthreads();
        }
    }
}

template <class T>
__global__ void __launch_bounds__(scan_threads)
    largest_of_columns(Index n, Index count, const Bits<T>* parts, Bits<T>* largest) {
    for (Index j = blockIdx.x; j < n; j += gridDim.x) {
        Bits<T> top = 0;
        for (Index s = threadIdx.x; s < count; s += scan_threads) top = max(top, parts[s + j * count]);
        top = block_max(top);
        if (threadIdx.x == 0) largest[j] = top;
        __syncthreads();
    }
}

/// first := the first row of the column x that is not finite, m if none. One block.
template <class T>
__global__ void __launch_bounds__(scan_threads) first_not_finite(Index m, const T* x, Index* first) {
    Index found = m;
    for (Index i = threadIdx.x; i < m && found == m; i += scan_threads) {
        if (magnitude_bits(x[i]) >= infinity_bits(T())) found = i;
    }
    found = -block_max(-found);
    if (threadIdx.x == 0) *first = found;
}

constexpr int tile = 32, tile_rows = 8;

template <class T>
__global__ void __launch_bounds__(tile* tile_rows) transpose_tiles(MatrixView<const T, Cuda> A, MatrixView<T, Cuda> B) {
    __shared__ T shared[tile][tile + 1];
    const int x = threadIdx.x % tile, y = threadIdx.x / tile;
    const Index i0 = Index(blockIdx.x) * tile;
    for (Index j0 = Index(blockIdx.y) * tile; j0 < A.cols; j0 += Index(gridDim.y) * tile) {
        for (int j = y; j < tile; j += tile_rows) {
            if (i0 + x < A.rows && j0 + j < A.cols) shared[j][x] = A.data[i0 + x + (j0 + j) * A.ld];
        }
        __syncthreads();
        for (int i = y; i < tile; i += tile_rows) {
            if (j0 + x < A.cols && i0 + i < A.rows) B.data[j0 + x + (i0 + i) * B.ld] = shared[x][i];
        }
        __syncthreads();
    }
}

}  // namespace

template <class T>
Scan scan(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, std::span<int> column_exponents) {
    const Index n = A.cols, count = (A.rows + scan_rows - 1) / scan_rows;
    Scan result;
    result.largest_exponent = std::numeric_limits<int>::min();
    result.smallest_column_exponent = std::numeric_limits<int>::max();
    std::fill(column_exponents.begin(), column_exponents.end(), 0);
    if (A.empty()) return result;
    Arena::Frame frame(ctx);
    Bits<T>*parts = frame.take<Bits<T>>(count * n), *largest = frame.take<Bits<T>>(n);
    Index* first = frame.take<Index>(1);
    const dim3 grid(static_cast<unsigned>(std::min<Index>(count, 1 << 20)),
                    static_cast<unsigned>(std::min<Index>(n, 65535)));
    largest_of_rows<T><<<grid, scan_threads, 0, ctx.stream()>>>(A, count, parts);
    check_launch("largest_of_rows");
    largest_of_columns<T><<<static_cast<unsigned>(std::min<Index>(n, 1 << 20)), scan_threads, 0, ctx.stream()>>>(
        n, count, parts, largest);
    check_launch("largest_of_columns");
    const Bits<T>* found = ctx.state().read_back(largest, n);
    for (Index j = 0; j < n; ++j) {
        const Bits<T> top = found[j];
        if (top >= infinity_bits(T()) && result.bad_col < 0) result.bad_col = j;
        if (top == 0 || top >= infinity_bits(T())) continue;
        column_exponents[j] = std::ilogb(std::bit_cast<T>(top));
        result.zero = false;
        result.largest_exponent = std::max(result.largest_exponent, column_exponents[j]);
        result.smallest_column_exponent = std::min(result.smallest_column_exponent, column_exponents[j]);
    }
    if (result.bad_col >= 0) {
        first_not_finite<T><<<1, scan_threads, 0, ctx.stream()>>>(A.rows, A.at(0, result.bad_col), first);
        check_launch("first_not_finite");
        result.bad_row = *ctx.state().read_back(first, 1);
    }
    return result;
}

template <class T>
void scale_columns(Context<Cuda>& ctx, std::span<const int> exponents, int sign, Part part, MatrixView<T, Cuda> A) {
    if (A.empty()) return;
    Arena::Frame frame(ctx);
    int* e = frame.take<int>(A.cols);
    QUOIN_CUDA_CHECK(cudaMemcpyAsync(e, exponents.data(), A.cols * sizeof(int), cudaMemcpyHostToDevice, ctx.stream()));
    ctx.wait();
    const bool all = part == Part::All;
    for_each_element(ctx, all ? A.rows : std::min(A.rows, A.cols), A.cols, [=] __device__(Index i, Index j) {
        if (all || i <= j) A.data[i + j * A.ld] = scalbn(A.data[i + j * A.ld], sign * e[j]);
    });
}

template <class T>
void copy(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<T, Cuda> B) {
    for_each_element(ctx, A.rows, A.cols,
                     [=] __device__(Index i, Index j) { B.data[i + j * B.ld] = A.data[i + j * A.ld]; });
}

template <class T>
void transpose(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<T, Cuda> B) {
    if (A.empty()) return;
    const dim3 grid(static_cast<unsigned>((A.rows + tile - 1) / tile),
                    static_cast<unsigned>(std::min<Index>((A.cols + tile - 1) / tile, 65535)));
    transpose_tiles<T><<<grid, tile * tile_rows, 0, ctx.stream()>>>(A, B);
    check_launch("transpose_tiles");
}

template <class T>
void copy_triangle(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<T, Cuda> R) {
    for_each_element(ctx, R.rows, R.cols,
                     [=] __device__(Index i, Index j) { R.data[i + j * R.ld] = i <= j ? A.data[i + j * A.ld] : T(0); });
}

template <class T>
void set_identity(Context<Cuda>& ctx, Index first_col, MatrixView<T, Cuda> A) {
    for_each_element(ctx, A.rows, A.cols,
                     [=] __device__(Index i, Index j) { A.data[i + j * A.ld] = i == j - first_col ? T(1) : T(0); });
}

template <class T>
void store_triangle(Context<Cuda>& ctx, MatrixView<const T, Cuda> R, MatrixView<T, Cuda> A) {
    for_each_element(ctx, R.rows, R.cols, [=] __device__(Index i, Index j) {
        if (i <= j) A.data[i + j * A.ld] = R.data[i + j * R.ld];
    });
}

template <class T>
void copy_diagonal(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<T, Cuda> d) {
    for_each_element(ctx, d.rows, 1, [=] __device__(Index i, Index) { d.data[i] = A.data[i + i * A.ld]; });
}

template <class T>
void diagonal_signs(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<T, Cuda> s) {
    for_each_element(ctx, s.rows, 1,
                     [=] __device__(Index i, Index) { s.data[i] = A.data[i + i * A.ld] < 0 ? T(-1) : T(1); });
}

template <class T>
void add_identity(Context<Cuda>& ctx, MatrixView<T, Cuda> A) {
    for_each_element(ctx, std::min(A.rows, A.cols), 1,
                     [=] __device__(Index i, Index) { A.data[i + i * A.ld] += T(1); });
}

template <class T>
void negate(Context<Cuda>& ctx, MatrixView<T, Cuda> A) {
    for_each_element(ctx, A.rows, A.cols,
                     [=] __device__(Index i, Index j) { A.data[i + j * A.ld] = -A.data[i + j * A.ld]; });
}

template <class T>
void subtract(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<T, Cuda> B) {
    for_each_element(ctx, A.rows, A.cols,
                     [=] __device__(Index i, Index j) { B.data[i + j * B.ld] -= A.data[i + j * A.ld]; });
}

template <class T>
void flip_rows(Context<Cuda>& ctx, MatrixView<const T, Cuda> signs, MatrixView<T, Cuda> A) {
    for_each_element(ctx, A.rows, A.cols, [=] __device__(Index i, Index j) { A.data[i + j * A.ld] *= signs.data[i]; });
}

#define QUOIN_INSTANTIATE(T)                                                                              \
    template Scan scan<T>(Context<Cuda>&, MatrixView<const T, Cuda>, std::span<int>);                     \
    template void scale_columns<T>(Context<Cuda>&, std::span<const int>, int, Part, MatrixView<T, Cuda>); \
    template void copy<T>(Context<Cuda>&, MatrixView<const T, Cuda>, MatrixView<T, Cuda>);                \
    template void transpose<T>(Context<Cuda>&, MatrixView<const T, Cuda>, MatrixView<T, Cuda>);           \
    template void copy_triangle<T>(Context<Cuda>&, MatrixView<const T, Cuda>, MatrixView<T, Cuda>);       \
    template void set_identity<T>(Context<Cuda>&, Index, MatrixView<T, Cuda>);                            \
    template void store_triangle<T>(Context<Cuda>&, MatrixView<const T, Cuda>, MatrixView<T, Cuda>);      \
    template void copy_diagonal<T>(Context<Cuda>&, MatrixView<const T, Cuda>, MatrixView<T, Cuda>);       \
    template void diagonal_signs<T>(Context<Cuda>&, MatrixView<const T, Cuda>, MatrixView<T, Cuda>);      \
    template void add_identity<T>(Context<Cuda>&, MatrixView<T, Cuda>);                                   \
    template void negate<T>(Context<Cuda>&, MatrixView<T, Cuda>);                                         \
    template void subtract<T>(Context<Cuda>&, MatrixView<const T, Cuda>, MatrixView<T, Cuda>);            \
    template void flip_rows<T>(Context<Cuda>&, MatrixView<const T, Cuda>, MatrixView<T, Cuda>);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
