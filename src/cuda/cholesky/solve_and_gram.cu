// `solve_and_gram` by the kernels of cholesky/solve_and_gram.cuh up to 192 columns, partly by them up to 256, and over
// cuBLAS beyond.

#include "cuda/cholesky/solve_and_gram.cuh"

#include <limits>
#include <vector>

#include "cuda/products/sum_parts.hpp"
#include "cuda/runtime/blas.hpp"
#include "cuda/tuning.hpp"

namespace quoin {
namespace {

using namespace cuda;

constexpr Index slab_rows = Tuning<Cuda>::solved_rows;

/// X := A Y₁⁻¹ Y₂⁻¹ … and G := XᵀX by the kernels, for the numbers of columns that they have.
template <class T>
void by_kernels(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, const Factors& Y, MatrixView<T, Cuda> X,
                MatrixView<double, Cuda> G, CertificateView<Cuda> certificate) {
    const int n = static_cast<int>(A.cols), processors = ctx.state().multiprocessors;
    Arena::Frame frame(ctx);
    void* work =
        frame.take<char>(tall_workspace<T>(A.rows, n, Y.count, X.data != nullptr, G.data != nullptr, processors));
    QUOIN_CUDA_CHECK(cuda::solve_and_gram(A.rows, n, A.data, A.ld, Y, X.data, X.ld, G.data, G.ld, certificate.data,
                                          work, processors, ctx.stream()));
}

/// Columns up to the first block's end where n columns of more than `most` are cut into equal blocks of multiples of 8.
Index first_of_blocks(Index n, Index most) {
    const Index blocks = (n + most - 1) / most;
    return ((n + blocks - 1) / blocks + 7) / 8 * 8;
}

/// G := AᵀA: the diagonal blocks by the kernels, G₁₂ = A₁ᵀA₂ over cuBLAS.
template <class T>
void gram_of(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<double, Cuda> G) {
    const Index n = A.cols;
    if (choose_gram(n, scalar_kind<T>) != GramKernel::Blocks) return by_kernels<T>(ctx, A, {}, {}, G, {});
    const Index half = first_of_blocks(n, (n + 1) / 2);
    const Range left{0, half}, right{half, n};
    gram_of<T>(ctx, A.col_block(left), G.block(left, left));
    gram_of<T>(ctx, A.col_block(right), G.block(right, right));
    multiply_split<T>(ctx, A.col_block(left), A.col_block(right), false, false, G.block(left, right));
    set_zero<double>(ctx, G.block(right, left));
}

/// X := A R⁻¹ by blocks of columns, X_j = (A_j − Σ X_i R_ij) R_jj⁻¹ over i < j; `rounded` is R in T.
template <class T>
void solve_by_blocks(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<const double, Cuda> R,
                     MatrixView<const T, Cuda> rounded, MatrixView<T, Cuda> X) {
    const Index n = A.cols, width = first_of_blocks(n, tall_max_cols);
    for (Index j = 0; j < n; j += width) {
        const Range before{0, j}, block{j, std::min(n, j + width)};
        const auto X_j = X.col_block(block);
        MatrixView<const T, Cuda> A_j = A.col_block(block);
        if (j > 0) {
            if (A.data != X.data) copy<T>(ctx, A_j, X_j);
            gemm<T>(ctx, Op::None, Op::None, -1, X.col_block(before), rounded.block(before, block), T(1), X_j);
            A_j = X_j;
        }
        Factors Y;
        Y.data[0] = R.at(j, j);
        Y.ld[0] = R.ld;
        Y.count = 1;
        by_kernels<T>(ctx, A_j, Y, X_j, {}, {});
    }
}

/// Solves and multiplies at any width. Factors go by blocks of columns, a single one by its halves.
template <class T>
void solve_and_gram_wide(Context<Cuda>& ctx, MatrixView<const T, Cuda> A,
                         std::span<const MatrixView<const double, Cuda>> factors, MatrixView<T, Cuda> X,
                         MatrixView<double, Cuda> G, CertificateView<Cuda> certificate, const void* halves) {
    const Index m = A.rows, n = A.cols;
    Arena::Frame frame(ctx);
    std::vector<MatrixView<const T, Cuda>> rounded;
    for (const auto& R : factors.first(halves ? 0 : factors.size())) {
        if constexpr (std::is_same_v<T, double>) {
            rounded.push_back(R);
        } else {
            const auto Y = frame.matrix<T>(n, n);
            multiply_upper<double, T>(ctx, {}, R, Y);
            rounded.push_back(Y);
        }
    }
    const auto solve = [&](MatrixView<const T, Cuda> from, MatrixView<T, Cuda> to) {
        if constexpr (std::is_same_v<T, float>) {
            if (halves) {
                QUOIN_CUDA_CHECK(solve_corrected(from.rows, static_cast<int>(n), from.data, from.ld, halves, to.data,
                                                 to.ld, certificate.data, max_corrected_condition(static_cast<int>(n)),
                                                 ctx.state().multiprocessors, ctx.stream()));
                return;
            }
        }
        for (std::size_t f = 0; f < factors.size(); ++f) {
            solve_by_blocks<T>(ctx, from, factors[f], rounded[f], to);
            from = to;
        }
    };
    if (X.data) solve(A, X);
    if (!G.data) return;
    if (X.data || factors.empty()) return gram_of<T>(ctx, X.data ? MatrixView<const T, Cuda>(X) : A, G);
    const auto slab = frame.matrix<T>(std::min(m, slab_rows), n);
    // G may be a factor
    const auto sum = frame.matrix<double>(n, n);
    for (Index i = 0; i < std::max<Index>(m, 1); i += slab_rows) {
        const Index h = std::min(slab_rows, m - i);
        solve(A.row_block({i, i + h}), slab.row_block({0, h}));
        multiply_split<T>(ctx, slab.row_block({0, h}), slab.row_block({0, h}), i > 0, true, sum);
    }
    copy<double>(ctx, sum, G);
}

}  // namespace

template <class T, class D>
GramPrecision gram_precision(Context<D>& ctx, Index m, Index n) {
    GramPrecision known{.condition_is_norm = true};
    // The solve refines inverses of 8×8 blocks once (factor_blocks.cuh). It is in f64, whose u is far below f32's.
    known.solves_any_triangle = !std::is_same_v<T, double>;
    if (choose_gram(n, scalar_kind<T>) == GramKernel::Blocks) {
        known.u = known.solve_u = Scalar<T>::u;
        // G₁₂ by parts of `longest` rows or fewer; in f64 the kernel makes the diagonal blocks
        Index longest = rows_of_part(ctx, m, n, n);
        if (std::is_same_v<T, double>)
            longest = std::max(longest, longest_sum<T>(m, tall_max_cols, ctx.state().multiprocessors));
        known.longest_sum = static_cast<double>(longest);
        return known;
    }
    const int width = static_cast<int>(n);
    known.u = known.solve_u = Scalar<double>::u;
    known.longest_sum = static_cast<double>(longest_sum<T>(m, width, ctx.state().multiprocessors));
    if (n > tall_max_cols) {
        known.max_condition_of_solve = max_corrected_condition(width);
        known.solve_u = Scalar<T>::u;
    }
    return known;
}

template <class T, class D>
void solve_and_gram(Context<D>& ctx, Input<T, D> input, std::span<const View<const Sum<T, D>, D>> factors, View<T, D> X,
                    View<Sum<T, D>, D> G, CertificateView<D> certificate) {
    const MatrixView<const T, D> A = input.stored();
    const Index m = A.rows, n = A.cols;
    if (n == 0) return;
    const SolveKernel kernel = choose_solve(m, n, static_cast<int>(factors.size()), certificate.data, scalar_kind<T>);
    if (kernel < SolveKernel::Blocks) {
        Factors Y;
        for (const auto& R : factors) {
            Y.data[Y.count] = R.data;
            Y.ld[Y.count++] = R.ld;
        }
        by_kernels<T>(ctx, A, Y, X, G, certificate);
    } else if (factors.empty() && !X.data) {
        gram_of<T>(ctx, A, G);
    } else {
        Arena::Frame frame(ctx);
        const int width = static_cast<int>(n);
        void* halves = nullptr;
        if (kernel == SolveKernel::CorrectedOrBlocks) {
            halves = frame.take<char>(corrected_factor_bytes);
            QUOIN_CUDA_CHECK(
                corrected_factor(width, factors[0].data, factors[0].ld, halves, certificate.data, ctx.stream()));
        }
        // cuBLAS writes whatever the certificate says
        Certificate found;
        if (certificate.data) found = read_certificate(ctx, certificate);
        if (found.refused()) return;
        if (!found.factor_has(max_corrected_condition(width))) halves = nullptr;
        solve_and_gram_wide<T>(ctx, A, factors, X, G, certificate, halves);
    }
    ctx.state().add_flops(1.0 * m * n * n * (static_cast<double>(factors.size()) + (G.data ? 1 : 0)));
}

QUOIN_IMPLEMENT(Cuda, gram_precision, solve_and_gram)

}  // namespace quoin
