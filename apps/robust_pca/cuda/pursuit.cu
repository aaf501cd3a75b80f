// The steps of principal component pursuit. What passes over m×n matrices:
//
//   shrink_sparse     chunk kernels (cuda/elements/chunks.cuh): four matrices read, two written. Bound by memory.
//   update_multipliers_and_sparse   update_multipliers_and_sparse.cuh up to 160 columns; beyond, cuBLAS leaves X P of 2^17 rows at a
//                     time in workspace, and two chunk kernels do the rest.
//
// And n×n:
//
//   product_kernel                   C = A B for functions a(i, k) and b(k, j): a block of 32×4 threads owns 32 rows of
//                                    a column, each of its warps a quarter of the sum. Bound by latency, 2 to 3 µs for
//                                    n = 100.
//   projector_kernel                 a block a column of P, a warp every eighth entry of it, its lanes the sum.
//   jacobi_kernel, turn_rows_kernel  jacobi.cuh

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cuda/elements/chunks.cuh"
#include "cuda/elements/elementwise.cuh"
#include "cuda/runtime/blas.hpp"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/launch.hpp"
#include "robust_pca/cuda/jacobi.cuh"
#include "robust_pca/cuda/update_multipliers_and_sparse.cuh"
#include "robust_pca/pursuit.hpp"
#include "robust_pca/tuning.hpp"

namespace quoin {
namespace {

using namespace cuda;

/// (residual, multipliers) of `now` and (sparse, change, nonzeros) of `next` := Σ parts: a block for either.
__global__ void __launch_bounds__(chunk_threads)
    sum_corrections_kernel(int count, const CorrectionSums* parts, PursuitSums* now, PursuitSums* next) {
    Triple sums;
    for (int b = threadIdx.x; b < count; b += chunk_threads) {
        const double* const v = parts[b].v;
        Add()(sums, blockIdx.x == 0 ? Triple{v[0], v[1], 0} : Triple{v[2], v[3], v[4]});
    }
    sums = join_block<chunk_threads>(sums, Add());
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
        now->residual = sums.a;
        now->multipliers = sums.b;
    } else {
        next->sparse = sums.a;
        next->change = sums.b;
        next->nonzeros = sums.c;
    }
}

constexpr int product_rows_of_block = 32, product_warps = 4;

/// store(i, j, Σ_k a(i, k) b(k, j)) for every entry of an n×n matrix, z of them.
template <class A, class B, class Store>
__global__ void __launch_bounds__(product_rows_of_block* product_warps) product_kernel(int n, A a, B b, Store store) {
    __shared__ double sums[product_warps][product_rows_of_block];
    const int j = blockIdx.x, z = blockIdx.z, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int i = static_cast<int>(blockIdx.y) * product_rows_of_block + lane;
    double sum = 0;
    if (i < n) {
#pragma unroll 8
        for (int k = warp; k < n; k += product_warps) sum += a(z, i, k) * b(z, k, j);
    }
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || i >= n) return;
    for (int w = 1; w < product_warps; ++w) sum += sums[w][lane];
    store(z, i, j, sum);
}

template <class A, class B, class Store>
void small_products(Context<Cuda>& ctx, int n, int count, A a, B b, Store store) {
    const dim3 grid(static_cast<unsigned>(n), static_cast<unsigned>(ceil_div(n, product_rows_of_block)),
                    static_cast<unsigned>(count));
    launch(ctx.stream(), product_kernel<A, B, Store>, {grid, product_rows_of_block * product_warps}, n, a, b, store);
}

constexpr int projector_warps = 8;

template <class T>
__global__ void __launch_bounds__(projector_warps * 32)
    projector_kernel(int rank, MatrixView<const T, Cuda> Vt, const T* weights, MatrixView<T, Cuda> P) {
    extern __shared__ double weighted[];
    const Index i = blockIdx.x;
    for (int r = threadIdx.x; r < rank; r += projector_warps * 32) {
        weighted[r] = static_cast<double>(weights[r]) * static_cast<double>(Vt.data[r + i * Vt.ld]);
    }
    __syncthreads();
    for (Index j = threadIdx.x / 32; j < P.cols; j += projector_warps) {
        double sum = 0;
        for (int r = threadIdx.x % 32; r < rank; r += 32) {
            sum += weighted[r] * static_cast<double>(Vt.data[r + j * Vt.ld]);
        }
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        if (threadIdx.x % 32 == 0) P.data[j + i * P.ld] = static_cast<T>(sum);
    }
}

/// Computes the eigenvalues of the Gram matrix G (upper triangle) in descending order, and Vᵀ, from Vᵀ as it is on
/// entry. Returns false if the rotations do not converge.
template <class T>
bool eigenvectors_by_jacobi(Context<Cuda>& ctx, MatrixView<const double, Cuda> G, SpectrumNeeds needs,
                            std::span<double> values, MatrixView<T, Cuda> Vt) {
    const int n = static_cast<int>(G.cols);
    Arena::Frame frame(ctx);
    double *const N = frame.take<double>(n * n), *const H = frame.take<double>(n * n),
                  *const W = frame.take<double>(n * n), *const HW = frame.take<double>(n * n),
                  *const B = frame.take<double>(n * n);
    Rotation* const rotations = frame.take<Rotation>(jacobi_rotations(n));
    int* const places = frame.take<int>(n);
    struct Found {
        double values[jacobi_max_cols];
        JacobiOutcome outcome;
    };
    Found* const found = frame.take<Found>(1);
    const auto v = [=] __device__(Index i, Index k) { return static_cast<double>(Vt.data[i + k * Vt.ld]); };
    const auto g = [=] __device__(Index i, Index k) { return G.data[min(i, k) + max(i, k) * G.ld]; };
    // N = VᵀV,  H = VᵀG
    small_products(
        ctx, n, 2, [=] __device__(int, Index i, Index k) { return v(i, k); },
        [=] __device__(int z, Index k, Index j) { return z == 0 ? v(j, k) : g(k, j); },
        [=] __device__(int z, Index i, Index j, double sum) { (z == 0 ? N : H)[i + j * n] = sum; });
    // rounded to T, V is orthogonal to its u; W = (3I − N)/2 Vᵀ is to u² (Newton and Schulz)
    small_products(
        ctx, n, 2, [=] __device__(int, Index i, Index k) { return N[i + k * n]; },
        [=] __device__(int z, Index k, Index j) { return z == 0 ? v(k, j) : H[k + j * n]; },
        [=] __device__(int z, Index i, Index j, double sum) {
            (z == 0 ? W : HW)[i + j * n] = 1.5 * (z == 0 ? v(i, j) : H[i + j * n]) - 0.5 * sum;
        });
    // B = W G Wᵀ
    small_products(
        ctx, n, 1, [=] __device__(int, Index i, Index k) { return HW[i + k * n]; },
        [=] __device__(int, Index k, Index j) { return W[j + k * n]; },
        [=] __device__(int, Index i, Index j, double sum) { B[i + j * n] = sum; });
    const double tolerance =
        std::max(needs.tolerance, PursuitTuning<Cuda>::jacobi_tolerance * std::numeric_limits<T>::epsilon());
    cuda::jacobi(n, B, W, needs.threshold, tolerance, PursuitTuning<Cuda>::jacobi_smallest, rotations, found->values,
                 places, &found->outcome, Vt, ctx.stream());
    const Found* const on_host = ctx.state().read_back(found, 1);
    std::copy_n(on_host->values, n, values.begin());
    return on_host->outcome.converged != 0;
}

}  // namespace

template <>
PursuitSums read_sums(Context<Cuda>& ctx, SumsView<Cuda> sums) {
    return *ctx.state().read_back(sums.data, 1);
}

namespace {

/// Whether m_ij was observed; without a mask all are.
__device__ inline bool seen(MatrixView<const std::uint8_t, Cuda> observed, Index i, Index j) {
    return !observed.data || observed.data[i + j * observed.ld] != 0;
}

/// S' := shrink(M − L + Y/μ, threshold), X := M − S' + Y/μ; X may be L, and S' S. `out` takes the sums: sparse, change,
/// nonzeros.
template <class T, class Out>
void shrink_pass(Context<Cuda>& ctx, MatrixView<const T, Cuda> M, MatrixView<const T, Cuda> Y,
                 MatrixView<const std::uint8_t, Cuda> observed, T inverse_mu, T threshold, MatrixView<const T, Cuda> L,
                 MatrixView<const T, Cuda> S, MatrixView<T, Cuda> X, MatrixView<T, Cuda> next_S, Out out) {
    over_chunks(
        ctx, M.rows, M.cols,
        [=] __device__(Index first, Index m, Index j, Triple & sums) {
            T m_ij[chunk_pieces], y_ij[chunk_pieces], l_ij[chunk_pieces], s_ij[chunk_pieces];
#pragma unroll
            for (int piece = 0; piece < chunk_pieces; ++piece) {
                const Index i = first + piece * chunk_threads;
                if (i >= m) continue;
                m_ij[piece] = M.data[i + j * M.ld];
                y_ij[piece] = Y.data[i + j * Y.ld];
                l_ij[piece] = L.data[i + j * L.ld];
                s_ij[piece] = S.data[i + j * S.ld];
            }
#pragma unroll
            for (int piece = 0; piece < chunk_pieces; ++piece) {
                const Index i = first + piece * chunk_threads;
                if (i >= m) continue;
                const bool is_seen = seen(observed, i, j);
                const T target = m_ij[piece] + inverse_mu * y_ij[piece];
                const T shrunk = is_seen ? shrink(target - l_ij[piece], threshold) : T(0);
                const double change = static_cast<double>(shrunk - s_ij[piece]);
                Add()(sums, {fabs(static_cast<double>(shrunk)), change * change, shrunk != 0 ? 1.0 : 0.0});
                next_S.data[i + j * next_S.ld] = shrunk;
                X.data[i + j * X.ld] = is_seen ? target - shrunk : l_ij[piece];
            }
        },
        Add(), out);
}

}  // namespace

template <class T, class D>
void copy_observed(Context<D>& ctx, View<const T, D> M, View<const std::uint8_t, D> observed, View<T, D> X) {
    for_each_element(ctx, M.rows, M.cols, [=] __device__(Index i, Index j) {
        X.data[i + j * X.ld] = seen(observed, i, j) ? M.data[i + j * M.ld] : T(0);
    });
}

template <class T, class D>
void shrink_sparse(Context<D>& ctx, View<const T, D> M, View<const T, D> Y, View<const std::uint8_t, D> observed,
                   double mu, double threshold, View<T, D> L, View<T, D> S, SumsView<D> sums) {
    PursuitSums* const to = sums.data;
    shrink_pass<T>(ctx, M, Y, observed, static_cast<T>(1 / mu), static_cast<T>(threshold), L, S, L, S,
                   [=] __device__(Triple sums) {
                       to->sparse = sums.a;
                       to->change = sums.b;
                       to->nonzeros = sums.c;
                   });
}

template <class T, class D>
void gram_eigenvectors(Context<D>& ctx, View<const T, D> X, SpectrumNeeds needs, std::span<Real<T>> s, View<T, D> Vt) {
    const Index n = X.cols;
    if (n == 0) return;
    Arena::Frame frame(ctx);
    const auto G = frame.matrix<double>(n, n);
    solve_and_gram<T>(ctx, X, {}, {}, G);
    std::vector<double> squares(n);
    if (n > jacobi_max_cols || !eigenvectors_by_jacobi<T>(ctx, G, needs, squares, Vt)) {
        const auto U = frame.matrix<double>(n, n), W = frame.matrix<double>(n, n), whole = frame.matrix<double>(n, n);
        for_each_element(
            ctx, n, n, [=] __device__(Index i, Index j) { whole.data[i + j * n] = G.data[min(i, j) + max(i, j) * n]; });
        small_svd<double>(ctx, whole, squares, U, W);
        for_each_element(ctx, n, n, [=] __device__(Index i, Index j) {
            Vt.data[i + j * Vt.ld] = static_cast<T>(W.data[i + j * n]);
        });
    }
    std::transform(squares.begin(), squares.end(), s.begin(),
                   [](double square) { return static_cast<T>(std::sqrt(std::max(0.0, square))); });
}

template <class T, class D>
void right_singular_vectors(Context<D>& ctx, View<T, D> R, SpectrumNeeds needs, std::span<Real<T>> s, View<T, D> Vt) {
    if constexpr (std::is_same_v<T, float>) {
        gram_eigenvectors<T>(ctx, R, needs, s, Vt);
    } else {
        Arena::Frame frame(ctx);
        small_svd<T>(ctx, R, s, frame.matrix<T>(R.rows, R.cols), Vt);
    }
}

template <class T, class D>
void weighted_projector(Context<D>& ctx, View<const T, D> Vt, std::span<const Real<T>> weights, View<T, D> P) {
    const Index n = Vt.cols, rank = Vt.rows;
    if (n == 0) return;
    Arena::Frame frame(ctx);
    T* const on_gpu = frame.take<T>(std::max<Index>(1, rank));
    QUOIN_CUDA_CHECK(cudaMemcpyAsync(on_gpu, weights.data(), rank * sizeof(T), cudaMemcpyHostToDevice, ctx.stream()));
    const std::size_t bytes = static_cast<std::size_t>(rank) * sizeof(double);
    if (bytes <= 48 << 10) {
        launch(ctx.stream(), projector_kernel<T>, {static_cast<unsigned>(n), projector_warps * 32, bytes},
               static_cast<int>(rank), Vt, on_gpu, P);
    } else {
        const auto weighted = frame.matrix<T>(rank, n);
        for_each_element(ctx, rank, n, [=] __device__(Index i, Index j) {
            weighted.data[i + j * rank] = on_gpu[i] * Vt.data[i + j * Vt.ld];
        });
        gemm<T>(ctx, Op::Transpose, Op::None, 1, Vt, weighted, 0, P);
    }
    ctx.state().add_flops(2.0 * rank * n * n);
}

namespace {

/// Rows of a slab, if X P needs workspace.
constexpr Index slab_rows = Index(1) << 17;

/// Updates matrices of any width, slab by slab. The sums of a slab are added to the sums of earlier slabs.
template <class T>
void update_wide(Context<Cuda>& ctx, MatrixView<const T, Cuda> X, MatrixView<const T, Cuda> P, const Correction<T>& by,
                 PursuitSums* to, PursuitSums* next) {
    Arena::Frame frame(ctx);
    const auto slab = frame.matrix<T>(std::min(X.rows, slab_rows), X.cols);
    for (Index begin = 0; begin < X.rows; begin += slab_rows) {
        const Range rows{begin, std::min(X.rows, begin + slab_rows)};
        const MatrixView<T, Cuda> L = slab.row_block({0, rows.size()}), Y = by.Y.row_block(rows);
        const MatrixView<const T, Cuda> M = by.M.row_block(rows), S = by.S.row_block(rows);
        MatrixView<const std::uint8_t, Cuda> observed;
        if (by.observed.data) observed = by.observed.row_block(rows);
        const T mu = by.mu;
        gemm<T>(ctx, Op::None, Op::None, 1, X.row_block(rows), P, 0, L);
        over_chunks(
            ctx, L.rows, L.cols,
            [=] __device__(Index first, Index m, Index j, Triple & sums) {
#pragma unroll
                for (int piece = 0; piece < chunk_pieces; ++piece) {
                    const Index i = first + piece * chunk_threads;
                    if (i >= m) continue;
                    const T l = L.data[i + j * L.ld];
                    const T z = seen(observed, i, j) ? M.data[i + j * M.ld] - l - S.data[i + j * S.ld] : T(0);
                    const T y = Y.data[i + j * Y.ld] + mu * z;
                    Y.data[i + j * Y.ld] = y;
                    const double wide_z = static_cast<double>(z), wide_y = static_cast<double>(y);
                    Add()(sums, {wide_z * wide_z, wide_y * wide_y, 0});
                }
            },
            Add(),
            [=] __device__(Triple sums) {
                to->residual = (begin > 0 ? to->residual : 0) + sums.a;
                to->multipliers = (begin > 0 ? to->multipliers : 0) + sums.b;
            });
        shrink_pass<T>(ctx, M, Y, observed, by.next_inverse_mu, by.next_threshold, L, S, by.next_X.row_block(rows),
                       by.next_S.row_block(rows), [=] __device__(Triple sums) {
                           next->sparse = (begin > 0 ? next->sparse : 0) + sums.a;
                           next->change = (begin > 0 ? next->change : 0) + sums.b;
                           next->nonzeros = (begin > 0 ? next->nonzeros : 0) + sums.c;
                       });
    }
}

}  // namespace

template <class T, class D>
void update_multipliers_and_sparse(Context<D>& ctx, View<const T, D> X, View<const T, D> P, View<const T, D> M,
                                   View<const T, D> S, View<const std::uint8_t, D> observed, double mu, double next_mu,
                                   double next_threshold, View<T, D> Y, View<T, D> next_X, View<T, D> next_S,
                                   SumsView<D> sums, SumsView<D> next_sums) {
    const Index m = X.rows, n = X.cols;
    const Correction<T> by{
        M, S,      observed, static_cast<T>(mu), static_cast<T>(1 / next_mu), static_cast<T>(next_threshold),
        Y, next_X, next_S};
    if (X.empty()) {
        QUOIN_CUDA_CHECK(cudaMemsetAsync(sums.data, 0, sizeof(PursuitSums), ctx.stream()));
        QUOIN_CUDA_CHECK(cudaMemsetAsync(next_sums.data, 0, sizeof(PursuitSums), ctx.stream()));
        return;
    }
    if (n > correct_max_cols) {
        update_wide<T>(ctx, X, P, by, sums.data, next_sums.data);
    } else {
        const int blocks = correct_blocks(m, ctx.state().kernels.multiprocessors);
        Arena::Frame frame(ctx);
        CorrectionSums* const parts = frame.take<CorrectionSums>(blocks);
        cuda::update_multipliers_and_sparse<T>(ctx, X, P, by, parts);
        launch(ctx.stream(), sum_corrections_kernel, {2, chunk_threads}, blocks, parts, sums.data, next_sums.data);
    }
    ctx.state().add_flops(2.0 * m * n * n);
}

template <class T, class D>
void multiply_right(Context<D>& ctx, View<const T, D> X, View<const T, D> P, View<T, D> L) {
    gemm<T>(ctx, Op::None, Op::None, 1, X, P, 0, L);
    ctx.state().add_flops(2.0 * X.rows * X.cols * P.cols);
}

QUOIN_IMPLEMENT(Cuda, copy_observed, shrink_sparse, gram_eigenvectors, right_singular_vectors, weighted_projector,
                update_multipliers_and_sparse, multiply_right)

}  // namespace quoin
