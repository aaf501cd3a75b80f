// The steps of online robust PCA on the GPU. All passes are over m×r of U and columns of m, one thread a row:
//
//   product_parts_kernel  Uᵀx: a block of 256 threads owns every (grid)-th run of 256 rows and 8 columns of U, a thread
//                         8 sums in double, which are added in a fixed tree; `sum_products_kernel` adds the blocks', a
//                         warp a column, in order.
//   elementwise_kernel    m − U c and its clipping (elementwise.cuh); separate_column and remove_projection with sums
//                         (chunks.cuh).
//   row_quantiles_kernel  medians and quantiles of the first columns: a thread a row, Batcher's network in workspace
//                         where neighbours' numbers lie side by side. Compare-exchanges go to L2.
//
// Bound by memory. A column makes 14 passes over U: 1 + 2·2 for products and clippings, 1 in separate_column, 2·2 in
// remove_projection, and 4 to rotate by way of workspace. It reads or writes 35 columns of m; each product of more than
// 8 columns of U reads its x again. For 1920×1080 in f32, 8.3 MB a column, that is 0.75 GB with r = 4, 0.25 ms at 3
// TB/s, and 6.4 GB with r = 50, 2.1 ms. A frame of 60 a second has 16.7 ms.

#include <algorithm>
#include <cmath>

#include "cuda/elements/chunks.cuh"
#include "cuda/elements/elementwise.cuh"
#include "cuda/elements/warp_sums.cuh"
#include "cuda/runtime/blas.hpp"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/launch.hpp"
#include "robust_pca/online_steps.hpp"

namespace quoin {
namespace {

using namespace cuda;

constexpr int product_threads = 256, product_warps = product_threads / 32, product_cols = 8;

/// parts[k·blocks + block] := Σ u_ik x_i over the rows of the block.
template <class T>
__global__ void __launch_bounds__(product_threads)
    product_parts_kernel(MatrixView<const T, Cuda> U, const T* x, double* parts) {
    __shared__ double of_warps[product_cols][product_warps];
    const Index first = Index(blockIdx.y) * product_cols;
    const int count = static_cast<int>(min(Index(product_cols), U.cols - first)), warp = threadIdx.x / 32;
    double sums[product_cols] = {};
    for (Index i = Index(blockIdx.x) * product_threads + threadIdx.x; i < U.rows;
         i += Index(gridDim.x) * product_threads) {
        const double x_i = static_cast<double>(x[i]);
#pragma unroll
        for (int k = 0; k < product_cols; ++k) {
            if (k < count) sums[k] += static_cast<double>(U.data[i + (first + k) * U.ld]) * x_i;
        }
    }
#pragma unroll
    for (int k = 0; k < product_cols; ++k) {
        sums[k] = warp_sum(sums[k]);
        if (threadIdx.x % 32 == 0) of_warps[k][warp] = sums[k];
    }
    __syncthreads();
    if (threadIdx.x >= count) return;
    double sum = 0;
    for (int w = 0; w < product_warps; ++w) sum += of_warps[threadIdx.x][w];
    parts[(first + threadIdx.x) * gridDim.x + blockIdx.x] = sum;
}

/// Sums the parts of column k: h_k := Σ parts unless `h` is null, and c_k += Σ parts unless `c` is null. One warp a
/// column.
__global__ void __launch_bounds__(32) sum_products_kernel(int blocks, const double* parts, double* h, double* c) {
    double sum = 0;
    for (int b = threadIdx.x; b < blocks; b += 32) sum += parts[Index(blockIdx.x) * blocks + b];
    sum = warp_sum(sum);
    if (threadIdx.x != 0) return;
    if (h) h[blockIdx.x] = sum;
    if (c) c[blockIdx.x] += sum;
}

template <class T>
void products(Context<Cuda>& ctx, MatrixView<const T, Cuda> U, const T* x, double* h, double* c) {
    if (U.empty()) return;
    const auto blocks = static_cast<unsigned>(
        std::min<Index>((U.rows + product_threads - 1) / product_threads, 8 * ctx.state().kernels.multiprocessors));
    Arena::Frame frame(ctx);
    double* const parts = frame.take<double>(U.cols * blocks);
    const dim3 grid(blocks, static_cast<unsigned>((U.cols + product_cols - 1) / product_cols));
    launch(ctx.stream(), product_parts_kernel<T>, {grid, product_threads}, U, x, parts);
    launch(ctx.stream(), sum_products_kernel, {static_cast<unsigned>(U.cols), 32}, static_cast<int>(blocks), parts, h,
           c);
    ctx.state().add_flops(2.0 * U.rows * U.cols);
}

/// Returns entry i of U c.
template <class T>
__device__ T combination(const MatrixView<const T, Cuda>& U, const double* c, Index i) {
    T low = 0;
#pragma unroll 4
    for (Index k = 0; k < U.cols; ++k) low += static_cast<T>(c[k]) * U.data[i + k * U.ld];
    return low;
}

constexpr int quantile_threads = 256;
/// Blocks of a multiprocessor, few enough that the workspace of 32 columns stays in L2.
constexpr int quantile_blocks = 4;

/// Numbers of one thread, at a distance of `apart` elements.
template <class T>
struct Numbers {
    T* data;
    Index apart;

    __device__ T& operator[](Index j) const { return data[j * apart]; }
    __device__ void sort(Index n) const { sorting_network(n, Exchange{data, apart}); }

private:
    struct Exchange {
        T* data;
        Index apart;
        constexpr void operator()(Index low, Index high) const {
            const T a = data[low * apart], b = data[high * apart];
            data[low * apart] = b < a ? b : a;
            data[high * apart] = a < b ? b : a;
        }
    };
};

/// L = the median of each row of M.
template <class T>
struct MedianOfRows {
    MatrixView<const T, Cuda> M;
    T* median;

    __device__ void begin(Index i, const Numbers<T>& mine) const {
        for (Index j = 0; j < M.cols; ++j) mine[j] = M.data[i + j * M.ld];
        mine.sort(M.cols);
        median[i] = mine[M.cols / 2];
    }
    __device__ T operator()(Index i, Index) const { return median[i]; }
};
/// L = A Vᵀ.
template <class T>
struct ProductOfFactors {
    MatrixView<const T, Cuda> A, Vt;

    __device__ void begin(Index, const Numbers<T>&) const {}
    __device__ T operator()(Index i, Index j) const {
        T low = 0;
        for (Index k = 0; k < A.cols; ++k) low += A.data[i + k * A.ld] * Vt.data[k + j * Vt.ld];
        return low;
    }
};

/// The records, but for age, by r = M − L; `at_size` and `at_change` are where the quantiles of n and n − 1 sorted
/// numbers are.
template <class T, class LowRank>
__global__ void __launch_bounds__(quantile_threads)
    row_quantiles_kernel(MatrixView<const T, Cuda> M, LowRank L, Index at_size, Index at_change, EntryRules rules,
                         T* workspace, RowRecords<T, Cuda> rows) {
    const Index threads = Index(gridDim.x) * quantile_threads, me = Index(blockIdx.x) * quantile_threads + threadIdx.x,
                n = M.cols;
    const Numbers<T> mine{workspace + me, threads};
    for (Index i = me; i < M.rows; i += threads) {
        L.begin(i, mine);
        const auto r = [&](Index j) { return M.data[i + j * M.ld] - L(i, j); };
        for (Index j = 0; j < n; ++j) mine[j] = fabs(r(j));
        mine.sort(n);
        const auto size = static_cast<float>(mine[at_size]);
        T before = r(0);
        for (Index j = 1; j < n; ++j) {
            const T now = r(j);
            mine[j - 1] = fabs(now - before);
            before = now;
        }
        mine.sort(n - 1);
        const auto change = n > 1 ? static_cast<float>(mine[at_change]) : 0.0f;
        rows.last.data[i] = before;
        rows.size.data[i] = size;
        rows.change.data[i] = change;
        const float noise = noise_of(size, change);
        rows.noise.data[i] = noise;
        rows.votes.data[i] = rules.votes<T>(n, noise, r);
    }
}

template <class T, class LowRank>
void find_quantiles(Context<Cuda>& ctx, MatrixView<const T, Cuda> M, LowRank L, EntryRules rules,
                    const RowRecords<T, Cuda>& rows) {
    const auto blocks = static_cast<unsigned>(std::min<Index>((M.rows + quantile_threads - 1) / quantile_threads,
                                                              quantile_blocks * ctx.state().kernels.multiprocessors));
    Arena::Frame frame(ctx);
    T* const workspace = frame.take<T>(Index(blocks) * quantile_threads * M.cols);
    launch(ctx.stream(), row_quantiles_kernel<T, LowRank>, {blocks, quantile_threads}, M, L, quantile_at(0.5, M.cols),
           quantile_at(0.9, M.cols - 1), rules, workspace, rows);
}

}  // namespace

template <>
std::vector<double> read_numbers(Context<Cuda>& ctx, View<const double, Cuda> numbers) {
    const double* const on_host = ctx.state().read_back(numbers.data, numbers.rows);
    return {on_host, on_host + numbers.rows};
}

template <class T, class D>
double start_from_column(Context<D>& ctx, View<const T, D> m, float guess, View<T, D> u, RowRecords<T, D> rows) {
    const double norm = std::sqrt(entry_norms<T>(ctx, m).squares);
    for_each_element(ctx, m.rows, 1, [=] __device__(Index i, Index) {
        u.data[i] = norm > 0 ? static_cast<T>(static_cast<double>(m.data[i]) / norm) : T(0);
        rows.set(i, {0, guess, guess, 0, 0, 0});
    });
    return norm;
}

template <class T, class D>
double start_from_median(Context<D>& ctx, View<const T, D> M, EntryRules rules, Index step, View<T, D> median,
                         RowRecords<T, D> rows, View<T, D> R) {
    find_quantiles<T>(ctx, M, MedianOfRows<T>{M, median.data}, rules, rows);
    for_each_element(ctx, R.rows, R.cols, [=] __device__(Index p, Index j) {
        const Index i = p * step;
        const T scale = static_cast<T>(1 / max(rows.noise.data[i], rules.min_noise)), most = static_cast<T>(outlier),
                r = scale * (M.data[i + j * M.ld] - median.data[i]);
        R.data[p + j * R.ld] = max(-most, min(r, most));
    });
    return entry_norms<T>(ctx, median).squares;
}

template <class T, class D>
void start_from_factors(Context<D>& ctx, View<const T, D> M, View<const T, D> A, View<const T, D> Vt, EntryRules rules,
                        RowRecords<T, D> rows) {
    find_quantiles<T>(ctx, M, ProductOfFactors<T>{A, Vt}, rules, rows);
}

template <class T, class D>
std::vector<double> fourth_powers(Context<D>& ctx, View<const T, D> U) {
    Arena::Frame frame(ctx);
    double* const sums = frame.take<double>(std::max<Index>(1, U.cols));
    for (Index k = 0; k < U.cols; ++k) {
        const T* const u = U.at(0, k);
        over_chunks(
            ctx, U.rows, 1,
            [=] __device__(Index first, Index m, Index, Triple & sum) {
#pragma unroll
                for (int piece = 0; piece < chunk_pieces; ++piece) {
                    const Index i = first + piece * chunk_threads;
                    if (i >= m) continue;
                    const double square = static_cast<double>(u[i]) * static_cast<double>(u[i]);
                    sum.a += square * square;
                }
            },
            Add(), [=] __device__(Triple sum) { sums[k] = sum.a; });
    }
    const double* const on_host = ctx.state().read_back(sums, U.cols);
    return {on_host, on_host + U.cols};
}

template <class T, class D>
void project_column(Context<D>& ctx, View<const T, D> U, View<const T, D> m, View<double, D> c) {
    products<T>(ctx, U, m.data, c.data, nullptr);
}

template <class T, class D>
void refine_projection(Context<D>& ctx, View<const T, D> U, View<const T, D> m, View<const float, D> noise,
                       EntryRules rules, bool leaves_out, View<T, D> work, View<double, D> c) {
    for_each_element(ctx, m.rows, 1, [=] __device__(Index i, Index) {
        work.data[i] = rules.clipped(m.data[i] - combination<T>(U, c.data, i), noise.data[i], leaves_out);
    });
    products<T>(ctx, U, work.data, nullptr, c.data);
}

template <class T, class D>
void separate_column(Context<D>& ctx, View<T, D> U, View<const double, D> c, View<const T, D> m, EntryRules rules,
                     View<const Scan, D> found, RowRecords<T, D> rows, View<T, D> l, View<T, D> s, View<T, D> e,
                     View<double, D> numbers) {
    const View<const T, D> basis = U;
    over_chunks(
        ctx, m.rows, 1,
        [=] __device__(Index first, Index height, Index, Triple & sums) {
            if (found.data->bad_row >= 0) return;
            const RowChange<T> change(c);
#pragma unroll
            for (int piece = 0; piece < chunk_pieces; ++piece) {
                const Index i = first + piece * chunk_threads;
                if (i >= height) continue;
                const T low = combination<T>(basis, c.data, i), r = m.data[i] - low;
                RowRecord<T> row = rows.get(i);
                T sparse, left;
                const Entry entry = rules.separate(r, row, sparse, left, change.possible());
                const bool replaced = entry == Entry::Replaced;
                if (replaced) change.apply(U, i, r);
                const double noise = static_cast<double>(row.noise);
                Add()(sums, {entry == Entry::Sparse ? 1.0 : 0.0, noise * noise, replaced ? 1.0 : 0.0});
                l.data[i] = replaced ? m.data[i] : low;
                s.data[i] = sparse;
                e.data[i] = left;
                rows.set(i, row);
            }
        },
        Add(),
        [=] __device__(Triple sums) {
            numbers.data[BadRow] = static_cast<double>(found.data->bad_row);
            numbers.data[SparseCount] = sums.a;
            numbers.data[NoiseSquares] = sums.b;
            numbers.data[ReplacedCount] = sums.c;
        });
    ctx.state().add_flops((2.0 * U.cols + 30) * m.rows);
}

template <class T, class D>
void take_whole_difference(Context<D>& ctx, double most, View<const T, D> r, View<const double, D> numbers,
                           View<T, D> e) {
    for_each_element(ctx, r.rows, 1, [=] __device__(Index i, Index) {
        if (numbers.data[SparseCount] > most) e.data[i] = r.data[i];
    });
}

template <class T, class D>
void remove_projection(Context<D>& ctx, View<const T, D> U, View<T, D> e, View<double, D> c, View<double, D> numbers) {
    Arena::Frame frame(ctx);
    double* const h = frame.take<double>(std::max<Index>(1, U.cols));
    for (int pass = 0; pass < 2; ++pass) {
        products<T>(ctx, U, e.data, h, c.data);
        over_chunks(
            ctx, e.rows, 1,
            [=] __device__(Index first, Index m, Index, Triple & sums) {
#pragma unroll
                for (int piece = 0; piece < chunk_pieces; ++piece) {
                    const Index i = first + piece * chunk_threads;
                    if (i >= m) continue;
                    const T left = e.data[i] - combination<T>(U, h, i);
                    e.data[i] = left;
                    sums.a += static_cast<double>(left) * static_cast<double>(left);
                }
            },
            Add(), [=] __device__(Triple sums) { numbers.data[LeftSquares] = sums.a; });
    }
    ctx.state().add_flops(4.0 * U.rows * U.cols);
}

template <class T, class D>
void rotate_basis(Context<D>& ctx, View<const T, Host> W, View<T, D> U) {
    Arena::Frame frame(ctx);
    const auto weights = frame.matrix<T>(W.rows, W.cols), rotated = frame.matrix<T>(U.rows, W.cols);
    // W is packed; CUDA has read memory that is not pinned when this returns
    QUOIN_CUDA_CHECK(cudaMemcpyAsync(weights.data, W.data, static_cast<std::size_t>(W.rows * W.cols) * sizeof(T),
                                     cudaMemcpyHostToDevice, ctx.stream()));
    gemm<T>(ctx, Op::None, Op::None, 1, U, weights, 0, rotated);
    copy<T>(ctx, rotated, U.col_block({0, W.cols}));
    ctx.state().add_flops(2.0 * U.rows * W.rows * W.cols);
}

template <class T, class D>
void column_of_bytes(Context<D>& ctx, std::span<const std::uint8_t> bytes, View<T, D> m) {
    Arena::Frame frame(ctx);
    const auto on_gpu = frame.matrix<std::uint8_t>(m.rows, 1);
    copy_to_device<std::uint8_t>(ctx, {bytes.data(), m.rows, 1}, on_gpu);
    for_each_element(ctx, m.rows, 1, [=] __device__(Index i, Index) { m.data[i] = value_of_byte<T>(on_gpu.data[i]); });
}

template <class T, class D>
void bytes_of_column(Context<D>& ctx, View<const T, D> x, std::span<std::uint8_t> bytes) {
    Arena::Frame frame(ctx);
    const auto on_gpu = frame.matrix<std::uint8_t>(x.rows, 1);
    for_each_element(ctx, x.rows, 1, [=] __device__(Index i, Index) { on_gpu.data[i] = byte_of_value(x.data[i]); });
    copy_to_host<std::uint8_t>(ctx, on_gpu, {bytes.data(), x.rows, 1});
}

QUOIN_IMPLEMENT(Cuda, start_from_column, start_from_median, start_from_factors, fourth_powers, project_column,
                refine_projection, separate_column, take_whole_difference, remove_projection, rotate_basis,
                column_of_bytes, bytes_of_column)

}  // namespace quoin
