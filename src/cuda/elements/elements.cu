// Element-wise primitives. Each is one kernel of elementwise.cuh, but for these:
//
//   scan       a block owns 256·16 rows of one column and adds the largest magnitude's bits to the column's maximum;
//              the block that comes last draws the conclusions, and looks for the row of an entry that is not finite. 1
//              read of A. Bound by memory. norm_exponents of f32 the same with sums of squares, in double.
//   norms      a block a column, sums of squares in double; a few columns by cuBLAS's nrm2.
//   transpose  a block owns a 32×32 tile, read and written along columns through (32×33) shared elements. 1 read and
//              1 write. Bound by memory.

#include <algorithm>
#include <type_traits>

#include "cuda/elements/elementwise.cuh"
#include "cuda/elements/warp_sums.cuh"
#include "cuda/runtime/blas.hpp"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/launch.hpp"
#include "primitives/generic/norm_exponents.hpp"

namespace quoin {
namespace {

using namespace cuda;

/// Returns the bits of |x|. As integers they are in the order of the magnitudes, with Inf and then NaN above every
/// number.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned int>;

__host__ __device__ constexpr Bits<double> infinity_bits(double) { return 0x7ff0000000000000ull; }
__host__ __device__ constexpr Bits<float> infinity_bits(float) { return 0x7f800000u; }
__device__ Bits<double> magnitude_bits(double x) {
    return static_cast<Bits<double>>(__double_as_longlong(x)) & 0x7fffffffffffffffull;
}
__device__ Bits<float> magnitude_bits(float x) { return __float_as_uint(x) & 0x7fffffffu; }
__device__ double magnitude(Bits<double> bits) { return __longlong_as_double(static_cast<long long>(bits)); }
__device__ float magnitude(Bits<float> bits) { return __uint_as_float(bits); }

constexpr int scan_threads = 256, scan_rows = scan_threads * 16;

template <class B>
__device__ B block_max(B value) {
    __shared__ B warps[scan_threads / 32];
    value = warp_max(value);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    for (int w = 0; w < scan_threads / 32; ++w) value = max(value, warps[w]);
    return value;
}

/// The first row of a column whose entry is not finite, or A.rows. One block, which block_max may have left before.
template <class T>
__device__ Index first_bad_row(const MatrixView<const T, Cuda>& A, Index col) {
    Index row = A.rows;
    if (col < A.cols) {
        for (Index i = threadIdx.x; i < A.rows && row == A.rows; i += scan_threads) {
            if (magnitude_bits(A.data[i + col * A.ld]) >= infinity_bits(T())) row = i;
        }
    }
    __syncthreads();
    return -block_max(-row);
}

/// Whether all other blocks of the grid have called this before; then their writes can be read. `blocks_done` is 0
/// before the launch.
__device__ bool is_last_block(unsigned* blocks_done) {
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(blocks_done, 1u) + 1 == gridDim.x * gridDim.y;
        __threadfence();
    }
    __syncthreads();
    return last;
}

/// Exponents from the largest magnitudes, the first entry that is not finite, and whether to scale. One block.
template <class T>
__device__ void conclude_scan(const MatrixView<const T, Cuda>& A, const volatile Bits<T>* largest, int safe,
                              int* exponents, Scan* found) {
    const int n = static_cast<int>(A.cols);
    int first = n, beyond = 0;
    for (int j = threadIdx.x; j < n; j += scan_threads) {
        const Bits<T> top = largest[j];
        const bool finite = top < infinity_bits(T());
        if (!finite) first = min(first, j);
        exponents[j] = finite && top > 0 ? ilogb(magnitude(top)) : 0;
        beyond = max(beyond, abs(exponents[j]));
    }
    // block_max may be called again once every thread has read its result
    const int bad_col = -block_max(-first);
    __syncthreads();
    const bool scaled = bad_col == n && block_max(beyond) > safe;
    const Index bad_row = first_bad_row(A, bad_col);
    if (!scaled) {
        for (int j = threadIdx.x; j < n; j += scan_threads) exponents[j] = 0;
    }
    if (threadIdx.x == 0) *found = bad_col < n ? Scan{bad_row, bad_col, false} : Scan{-1, -1, scaled};
}

/// largest and blocks_done are 0 on entry.
template <class T>
__global__ void __launch_bounds__(scan_threads)
    scan_kernel(MatrixView<const T, Cuda> A, Index count, Bits<T>* largest, unsigned* blocks_done, int safe,
                int* exponents, Scan* found) {
    for (Index j = blockIdx.y; j < A.cols; j += gridDim.y) {
        for (Index s = blockIdx.x; s < count; s += gridDim.x) {
            const Index end = min(A.rows, (s + 1) * scan_rows);
            Bits<T> top = 0;
            for (Index i = s * scan_rows + threadIdx.x; i < end; i += scan_threads) {
                top = max(top, magnitude_bits(A.data[i + j * A.ld]));
            }
            top = block_max(top);
            if (threadIdx.x == 0) atomicMax(&largest[j], top);
            __syncthreads();
        }
    }
    if (is_last_block(blocks_done)) conclude_scan(A, largest, safe, exponents, found);
}

/// Parts of a column whose squares are summed by themselves.
constexpr Index max_norm_parts = 32;

/// Exponents of the norms from the sums of the parts, in order, and the first entry that is not finite. One block.
__device__ void conclude_norms(const MatrixView<const float, Cuda>& A, Index count, const volatile double* squares,
                               int* exponents, Scan* found) {
    const int n = static_cast<int>(A.cols);
    int first = n;
    for (int j = threadIdx.x; j < n; j += scan_threads) {
        double square = 0;
        for (Index s = 0; s < count; ++s) square += squares[j * count + s];
        const bool finite = square < INFINITY;
        if (!finite) first = min(first, j);
        exponents[j] = finite && square > 0 ? ilogb(sqrt(square)) : 0;
    }
    if (!found) return;
    const int bad_col = -block_max(-first);
    const Scan scan{first_bad_row(A, bad_col), bad_col, false};
    if (threadIdx.x == 0) *found = bad_col < n ? scan : Scan{};
}

/// A block sums the squares of `rows` rows of a column in a fixed tree; the last one concludes. blocks_done is 0 on
/// entry. Bound by memory.
__global__ void __launch_bounds__(scan_threads)
    norm_exponents_kernel(MatrixView<const float, Cuda> A, Index count, Index rows, double* squares,
                          unsigned* blocks_done, int* exponents, Scan* found) {
    __shared__ double warps[scan_threads / 32];
    const Index first = blockIdx.x * rows, end = min(A.rows, first + rows);
    for (Index j = blockIdx.y; j < A.cols; j += gridDim.y) {
        double square = 0;
#pragma unroll 8
        for (Index i = first + threadIdx.x; i < end; i += scan_threads) {
            const double a = static_cast<double>(A.data[i + j * A.ld]);
            square += a * a;
        }
        square = warp_sum(square);
        if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = square;
        __syncthreads();
        square = 0;
        for (int w = 0; w < scan_threads / 32; ++w) square += warps[w];
        if (threadIdx.x == 0) squares[j * count + blockIdx.x] = square;
        __syncthreads();
    }
    if (is_last_block(blocks_done)) conclude_norms(A, count, squares, exponents, found);
}

/// Blocks that share a column's rows.
constexpr Index scale_blocks = 16;

/// A column of exponent 0 costs its blocks one read.
template <class T>
__global__ void __launch_bounds__(scan_threads)
    scale_columns_kernel(MatrixView<T, Cuda> A, bool upper, const int* exponents, int sign) {
    for (Index j = blockIdx.y; j < A.cols; j += gridDim.y) {
        const int e = sign * exponents[j];
        const Index end = upper ? min(A.rows, j + 1) : A.rows;
        if (e == 0) continue;
        const T power = scalbn(T(1), e);
        const bool is_number = scalbn(power, -e) == T(1);
        constexpr int batch = 8;
        const Index step = Index(gridDim.x) * scan_threads;
        T* const column = A.data + j * A.ld;
        for (Index first = Index(blockIdx.x) * scan_threads + threadIdx.x; first < end; first += batch * step) {
            // reads before writes, which might be of the same entries as far as the compiler knows
            T a[batch];
#pragma unroll
            for (int x = 0; x < batch; ++x) a[x] = first + x * step < end ? column[first + x * step] : T(0);
#pragma unroll
            for (int x = 0; x < batch; ++x) {
                if (first + x * step < end) column[first + x * step] = is_number ? a[x] * power : scalbn(a[x], e);
            }
        }
    }
}

/// A block owns a column. Rescales the squares of a column of f64 if they would over- or underflow.
template <class T>
__global__ void __launch_bounds__(scan_threads) column_norms_kernel(MatrixView<const T, Cuda> A, T* norms) {
    __shared__ double warps[scan_threads / 32];
    for (Index j = blockIdx.x; j < A.cols; j += gridDim.x) {
        const T* const a = A.data + j * A.ld;
        const auto sum_of_squares = [&](int e) {
            double square = 0;
            for (Index i = threadIdx.x; i < A.rows; i += scan_threads) {
                const double a_i = static_cast<double>(a[i]), x = e == 0 ? a_i : scalbn(a_i, -e);
                square += x * x;
            }
            square = warp_sum(square);
            __syncthreads();
            if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = square;
            __syncthreads();
            square = 0;
            for (const double x : warps) square += x;
            return square;
        };
        int e = 0;
        double square = sum_of_squares(0);
        if (sizeof(T) == 8 && !(square > smallest_square<double> && square < largest_square<double>)&&!isnan(square)) {
            Bits<T> top = 0;
            for (Index i = threadIdx.x; i < A.rows; i += scan_threads) top = max(top, magnitude_bits(a[i]));
            __syncthreads();
            top = block_max(top);
            e = top > 0 && top < infinity_bits(T()) ? ilogb(magnitude(top)) : 0;
            square = sum_of_squares(e);
        }
        if (threadIdx.x == 0) norms[j] = static_cast<T>(scalbn(sqrt(square), e));
    }
}
/// Up to this number of columns, cuBLAS's nrm2 is faster: it has many blocks a column.
constexpr Index few_norms = 16;

constexpr int tile = 32, tile_rows = 8;

template <class T>
__global__ void __launch_bounds__(tile* tile_rows)
    transpose_tiles_kernel(MatrixView<const T, Cuda> A, MatrixView<T, Cuda> B) {
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

template <class T, class D>
void scan(Context<D>& ctx, Input<T, D> input, int safe, View<int, D> exponents, View<Scan, D> found) {
    Arena::Frame frame(ctx);
    if (input.by_rows) {
        const auto copied = frame.matrix<T>(input.rows, input.cols);
        load<T>(ctx, input, copied);
        input = copied;
    }
    const MatrixView<const T, D> A = input.stored();
    const Index n = A.cols, count = (A.rows + scan_rows - 1) / scan_rows;
    auto* const largest = frame.take<Bits<T>>(n + 1);  // and a counter of blocks
    QUOIN_CUDA_CHECK(cudaMemsetAsync(largest, 0, static_cast<std::size_t>(n + 1) * sizeof(Bits<T>), ctx.stream()));
    const dim3 grid(static_cast<unsigned>(std::clamp<Index>(count, 1, 1 << 15)),
                    static_cast<unsigned>(std::clamp<Index>(n, 1, 65535)));
    launch(ctx.stream(), scan_kernel<T>, {grid, scan_threads}, A, count, largest,
           reinterpret_cast<unsigned*>(largest + n), safe, exponents.data, found.data);
}

template <>
void norm_exponents<float>(Context<Cuda>& ctx, MatrixView<const float, Cuda> A, MatrixView<int, Cuda> exponents,
                           MatrixView<Scan, Cuda> found) {
    const Index n = A.cols, count = std::clamp<Index>((A.rows + scan_rows - 1) / scan_rows, 1, max_norm_parts);
    Arena::Frame frame(ctx);
    auto* const squares = frame.take<double>(n * count);
    auto* const blocks_done = frame.take<unsigned>(1);
    QUOIN_CUDA_CHECK(cudaMemsetAsync(blocks_done, 0, sizeof(unsigned), ctx.stream()));
    const dim3 grid(static_cast<unsigned>(count), static_cast<unsigned>(std::clamp<Index>(n, 1, 65535)));
    launch(ctx.stream(), norm_exponents_kernel, {grid, scan_threads}, A, count, (A.rows + count - 1) / count, squares,
           blocks_done, exponents.data, found.data);
}

template <>
Scan read_scan(Context<Cuda>& ctx, MatrixView<const Scan, Cuda> found) {
    return *ctx.state().read_back(found.data, 1);
}

template <class T, class D>
void scale_columns(Context<D>& ctx, View<const int, D> exponents, int sign, Part part, View<T, D> A) {
    if (A.empty()) return;
    const dim3 grid(static_cast<unsigned>(std::min<Index>((A.rows + scan_threads - 1) / scan_threads, scale_blocks)),
                    static_cast<unsigned>(std::min<Index>(A.cols, 65535)));
    launch(ctx.stream(), scale_columns_kernel<T>, {grid, scan_threads}, A, part == Part::Upper, exponents.data, sign);
}

template <class T, class D>
void copy(Context<D>& ctx, View<const T, D> A, View<T, D> B) {
    for_each_element(ctx, A.rows, A.cols,
                     [=] __device__(Index i, Index j) { B.data[i + j * B.ld] = A.data[i + j * A.ld]; });
}

template <class T, class D>
void transpose(Context<D>& ctx, View<const T, D> A, View<T, D> B) {
    if (A.empty()) return;
    const dim3 grid(static_cast<unsigned>((A.rows + tile - 1) / tile),
                    static_cast<unsigned>(std::min<Index>((A.cols + tile - 1) / tile, 65535)));
    launch(ctx.stream(), transpose_tiles_kernel<T>, {grid, tile * tile_rows}, A, B);
}

template <class T, class D>
void copy_triangle(Context<D>& ctx, View<const T, D> A, View<T, D> R) {
    for_each_element(ctx, R.rows, R.cols,
                     [=] __device__(Index i, Index j) { R.data[i + j * R.ld] = i <= j ? A.data[i + j * A.ld] : T(0); });
}

template <class T, class D>
void set_identity(Context<D>& ctx, Index first_col, View<T, D> A) {
    for_each_element(ctx, A.rows, A.cols,
                     [=] __device__(Index i, Index j) { A.data[i + j * A.ld] = i == j - first_col ? T(1) : T(0); });
}

template <class T, class D>
void set_root(Context<D>& ctx, View<T, D> A) {
    for_each_element(ctx, std::min(A.rows, A.cols), A.cols, [=] __device__(Index i, Index j) {
        if (i <= j) A.data[i + j * A.ld] = i == j ? T(1) : T(0);
    });
}

template <class T, class D>
void store_triangle(Context<D>& ctx, View<const T, D> R, View<T, D> A) {
    for_each_element(ctx, R.rows, R.cols, [=] __device__(Index i, Index j) {
        if (i <= j) A.data[i + j * A.ld] = R.data[i + j * R.ld];
    });
}

template <class T, class D>
void copy_diagonal(Context<D>& ctx, View<const T, D> A, View<T, D> d) {
    for_each_element(ctx, d.rows, 1, [=] __device__(Index i, Index) { d.data[i] = A.data[i + i * A.ld]; });
}

template <class T, class D>
void diagonal_signs(Context<D>& ctx, View<const T, D> A, View<T, D> s) {
    for_each_element(ctx, s.rows, 1,
                     [=] __device__(Index i, Index) { s.data[i] = A.data[i + i * A.ld] < 0 ? T(-1) : T(1); });
}

template <class T, class D>
void add_identity(Context<D>& ctx, View<T, D> A) {
    for_each_element(ctx, std::min(A.rows, A.cols), 1,
                     [=] __device__(Index i, Index) { A.data[i + i * A.ld] += T(1); });
}

template <class T, class D>
void negate(Context<D>& ctx, View<T, D> A) {
    for_each_element(ctx, A.rows, A.cols,
                     [=] __device__(Index i, Index j) { A.data[i + j * A.ld] = -A.data[i + j * A.ld]; });
}

template <class T, class D>
void add(Context<D>& ctx, View<const T, D> A, View<T, D> B) {
    for_each_element(ctx, A.rows, A.cols,
                     [=] __device__(Index i, Index j) { B.data[i + j * B.ld] += A.data[i + j * A.ld]; });
}

template <class T, class D>
void pack_triangle(Context<D>& ctx, View<const T, D> R, View<T, D> p) {
    for_each_element(ctx, R.rows, R.cols, [=] __device__(Index i, Index j) {
        if (i <= j) p.data[packed_column(R.rows, j) + i] = R.data[i + j * R.ld];
    });
}

template <class T, class D>
void unpack_triangle(Context<D>& ctx, View<const T, D> p, View<T, D> R) {
    for_each_element(ctx, R.rows, R.cols, [=] __device__(Index i, Index j) {
        if (i <= j) R.data[i + j * R.ld] = p.data[packed_column(R.rows, j) + i];
    });
}

template <class T, class D>
void subtract(Context<D>& ctx, View<const T, D> A, View<T, D> B) {
    for_each_element(ctx, A.rows, A.cols,
                     [=] __device__(Index i, Index j) { B.data[i + j * B.ld] -= A.data[i + j * A.ld]; });
}

template <class T, class D>
void flip_rows(Context<D>& ctx, View<const T, D> signs, View<T, D> A) {
    for_each_element(ctx, A.rows, A.cols, [=] __device__(Index i, Index j) { A.data[i + j * A.ld] *= signs.data[i]; });
}

template <class T, class D>
void flip_columns(Context<D>& ctx, View<const T, D> signs, View<T, D> A) {
    for_each_element(ctx, A.rows, A.cols, [=] __device__(Index i, Index j) { A.data[i + j * A.ld] *= signs.data[j]; });
}

template <class T, class D>
void column_norms(Context<D>& ctx, View<const T, D> A, std::span<Real<T>> norms) {
    std::fill(norms.begin(), norms.end(), T(0));
    if (A.empty()) return;
    Arena::Frame frame(ctx);
    const MatrixView<T, D> found = frame.matrix<T>(A.cols, 1);
    write_column_norms<T>(ctx, A, found);
    std::copy_n(ctx.state().read_back(found.data, A.cols), A.cols, norms.begin());
}

template <class T, class D>
void write_column_norms(Context<D>& ctx, View<const T, D> A, View<Real<T>, D> norms) {
    if (A.cols == 0) return;
    if (A.rows > 0 && A.cols <= few_norms) {
        const ScalarsOnDevice results(ctx.state().blas());
        for (Index j = 0; j < A.cols; ++j) nrm2<T>(ctx, A.rows, A.at(0, j), norms.data + j);
        return;
    }
    const auto blocks = static_cast<unsigned>(std::min<Index>(A.cols, 1 << 20));
    launch(ctx.stream(), column_norms_kernel<T>, {blocks, scan_threads}, A, norms.data);
}

template <class T, class D>
bool equal(Context<D>& ctx, View<const T, D> A, View<const T, D> B) {
    Arena::Frame frame(ctx);
    int* differ = frame.take<int>(1);
    QUOIN_CUDA_CHECK(cudaMemsetAsync(differ, 0, sizeof(int), ctx.stream()));
    for_each_element(ctx, A.rows, A.cols, [=] __device__(Index i, Index j) {
        if (!(A.data[i + j * A.ld] == B.data[i + j * B.ld])) atomicExch(differ, 1);
    });
    return *ctx.state().read_back(differ, 1) == 0;
}

QUOIN_IMPLEMENT(Cuda, scan, scale_columns, copy, transpose, copy_triangle, set_identity, store_triangle, copy_diagonal,
                diagonal_signs, add_identity, negate, add, subtract, flip_rows)
QUOIN_IMPLEMENT(Cuda, set_root, flip_columns, pack_triangle, unpack_triangle, column_norms, write_column_norms, equal)
template decltype(norm_exponents<double, Cuda>) norm_exponents<double, Cuda>;
template decltype(copy<std::uint8_t, Cuda>) copy<std::uint8_t, Cuda>;
template decltype(copy<int, Cuda>) copy<int, Cuda>;
template decltype(copy<Index, Cuda>) copy<Index, Cuda>;
template decltype(transpose<std::uint8_t, Cuda>) transpose<std::uint8_t, Cuda>;

}  // namespace quoin
