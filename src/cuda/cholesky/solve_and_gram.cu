// X := A Y₁⁻¹ Y₂⁻¹ … and G := XᵀX by kernels up to 192 columns, partly by them up to 256, and over cuBLAS beyond.
// Up to 64 columns one pass fuses them (few_columns.cuh, narrow.cuh). Beyond, each factor takes a pass
// (solve_right.cuh, or solve_corrected.cuh), and G another (products/gram.cuh). If X is not wanted but G is, rows go
// through a scratch block of `scratch_rows` rows. kernel_choice.hpp says which kernel.

#include <algorithm>
#include <vector>

#include "cuda/cholesky/few_columns.cuh"
#include "cuda/cholesky/narrow.cuh"
#include "cuda/cholesky/solve_corrected.cuh"
#include "cuda/cholesky/solve_right.cuh"
#include "cuda/elements/elementwise.cuh"

#include "cuda/plain/solve_and_gram.hpp"
#include "cuda/products/gram.cuh"
#include "cuda/products/sum_parts.hpp"
#include "cuda/runtime/blas.hpp"
#include "cuda/runtime/ceil_div.cuh"
#include "cuda/tuning.hpp"

namespace quoin {
namespace {

using namespace cuda;

constexpr Index slab_rows = Tuning<Cuda>::solved_rows;

/// Rows of the scratch block: four rounds of tiles for every warp.
Index scratch_rows(Context<Cuda>& ctx) { return Index(ctx.state().kernels.multiprocessors) * solve_warps * 16 * 4; }

/// Blocks of the fused pass, and so parts.
template <class T>
int fused_grid(Index m, int n, int multiprocessors) {
    return n <= few_cols ? few_columns_grid<T>(m, n, multiprocessors) : narrow_grid<T>(m, n, multiprocessors);
}

/// The longest sum of G: the rows that one accumulator sees, then the lanes and warps of a block, and the parts, in
/// eights.
template <class T>
Index longest_sum(Index m, int n, int factors, const Context<Cuda>::State& state) {
    const GramKernel kernel = choose_gram(n, factors, scalar_kind<T>, state.kernels);
    const bool is_few = kernel == GramKernel::ThreadPerRow, is_fused = kernel < GramKernel::Slabs;
    const int multiprocessors = state.kernels.multiprocessors;
    const Index blocks = is_fused ? fused_grid<T>(m, n, multiprocessors) : GramGrid(m, n, multiprocessors).blocks;
    const Index at_a_time = is_few ? vector_size<T> : is_fused ? narrow_rows<T> : gram_rows;
    const Index accumulators = is_few ? few_threads(n) : is_fused ? narrow_warps : 1;
    const Index round = std::max<Index>(1, blocks * accumulators * at_a_time);
    const Index in_block = is_few ? 5 + few_threads(n) / 32 : narrow_warps;
    return ceil_div(m, round) * at_a_time + in_block + ceil_div(blocks, Index(sum_groups)) + sum_groups;
}

/// X := A Y₁⁻¹ Y₂⁻¹ … and G := XᵀX by one pass over A.
template <class T>
void by_one_pass(Context<Cuda>& ctx, InputView<T, Cuda> A, const Factors& Y, MatrixView<T, Cuda> X,
                 MatrixView<double, Cuda> G, CertificateView<Cuda> certificate) {
    const int n = static_cast<int>(A.cols), parts = fused_grid<T>(A.rows, n, ctx.state().kernels.multiprocessors);
    Arena::Frame frame(ctx);
    double* const sums = G.data ? frame.take<double>(parts * part_size(ceil_div(n, 8), fused_height)) : nullptr;
    const auto pass = n <= few_cols ? few_columns<T> : narrow<T>;
    pass(ctx, A, Y, X, sums, certificate.data);
    if (G.data) sum_gram_parts(ctx, fused_height, parts, sums, G);
}

/// X := A Y₁⁻¹ Y₂⁻¹ … and G := XᵀX for n <= 192, or G = AᵀA for n <= gram_max_cols. X without data: not stored; X may
/// be A. G without data: not computed; G may be a factor. If the certificate (null: none) is refused, X stays as it is
/// and G is unspecified; a bound of the factor's condition goes there. Does not wait. A is row-major only if
/// `reads_rows`, and A P by `order` (null: I) only for the kernels Columns and Corrected.
template <class T>
void by_kernels(Context<Cuda>& ctx, InputView<T, Cuda> input, const Factors& Y, MatrixView<T, Cuda> X,
                MatrixView<double, Cuda> G, CertificateView<Cuda> certificate, const Index* order = nullptr) {
    const Index m = input.rows, n = input.cols;
    if (m == 0) return G.data ? sum_gram_parts(ctx, fused_height, 0, nullptr, G) : void();
    const Kernels& kernels = ctx.state().kernels;
    if (is_fused_pass(n, Y.count, scalar_kind<T>, kernels)) return by_one_pass<T>(ctx, input, Y, X, G, certificate);
    const MatrixView<const T, Cuda> A = input.stored();
    Arena::Frame frame(ctx);
    const GramGrid grid(m, static_cast<int>(n), ctx.state().kernels.multiprocessors);
    double* const parts = G.data ? frame.take<double>(grid.parts_size()) : nullptr;
    const auto factor = [&](int i) { return MatrixView<const double, Cuda>{Y.data[i], n, n, Y.ld[i]}; };
    const bool corrected =
        choose_solve(m, n, Y.count, certificate.data, scalar_kind<T>, kernels) == SolveKernel::Corrected;
    const double corrected_condition = corrected ? max_corrected_condition(static_cast<int>(n)) : -1.0;
    void* const halves = corrected ? frame.take<char>(corrected_factor_bytes) : nullptr;
    if (corrected) corrected_factor(ctx, factor(0), halves, certificate.data);
    const auto solve = [&](MatrixView<const T, Cuda> from, MatrixView<T, Cuda> to) {
        if constexpr (std::is_same_v<T, float>) {
            if (corrected) solve_corrected(ctx, from, order, halves, to, certificate.data, corrected_condition);
        }
        for (int i = 0; i < Y.count; ++i) {
            solve_right<T>(ctx, from, i == 0 ? order : nullptr, factor(i), to, certificate.data, corrected_condition);
            from = to;
        }
    };
    if (Y.count == 0) {
        if (X.data && X.data != A.data) copy<T>(ctx, A, X);
        if (G.data) gram<T>(ctx, input, parts, grid, false);
    } else if (X.data) {
        solve(A, X);
        if (G.data) gram<T>(ctx, X, parts, grid, false);
    } else if (G.data) {
        const auto scratch = frame.matrix<T>(std::min(m, scratch_rows(ctx)), n);
        for (Index first = 0; first < m; first += scratch.rows) {
            const Range rows{first, std::min(m, first + scratch.rows)};
            const auto part = scratch.row_block({0, rows.size()});
            if (input.by_rows) load<T>(ctx, input.row_block(rows), part);
            solve(input.by_rows ? part : A.row_block(rows), part);
            // blocks without rows of this scratch block keep their part
            gram<T>(ctx, part, parts, grid, first > 0);
        }
    }
    if (G.data) sum_gram_parts(ctx, gram_height, grid.blocks, parts, G);
}

/// Whether the kernels read a row-major A: in a pass that fuses solve and product, or if X is not stored.
template <class T>
bool reads_rows(Context<Cuda>& ctx, Index n, std::size_t factors, bool stores_x) {
    const Kernels& kernels = ctx.state().kernels;
    if (!kernels.tuned || factors > max_factors) return false;
    const GramKernel kernel = choose_gram(n, static_cast<int>(factors), scalar_kind<T>, kernels);
    return kernel < GramKernel::Slabs ||
           (!stores_x && (factors == 0 ? kernel == GramKernel::Slabs : n <= max_solve_cols(scalar_kind<T>, kernels)));
}

/// Columns up to the first block's end where n columns of more than `most` are cut into equal blocks of multiples of 8.
Index first_of_blocks(Index n, Index most) {
    const Index blocks = (n + most - 1) / most;
    return ((n + blocks - 1) / blocks + 7) / 8 * 8;
}

/// G := AᵀA: the diagonal blocks by the kernels, G₁₂ = A₁ᵀA₂ over cuBLAS.
template <class T>
void gram_of(Context<Cuda>& ctx, InputView<T, Cuda> A, MatrixView<double, Cuda> G) {
    const Index n = A.cols;
    if (choose_gram(n, 0, scalar_kind<T>, ctx.state().kernels) != GramKernel::Blocks)
        return by_kernels<T>(ctx, A, {}, {}, G, {});
    const Index half = first_of_blocks(n, (n + 1) / 2);
    const Range left{0, half}, right{half, n};
    gram_of<T>(ctx, A.col_block(left), G.block(left, left));
    gram_of<T>(ctx, A.col_block(right), G.block(right, right));
    multiply_split<T>(ctx, A.stored().col_block(left), A.stored().col_block(right), false, false, G.block(left, right));
    set_zero<double>(ctx, G.block(right, left));
}

/// X := A R⁻¹ by blocks of columns, X_j = (A_j − Σ X_i R_ij) R_jj⁻¹ over i < j; `rounded` is R in T.
template <class T>
void solve_by_blocks(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<const double, Cuda> R,
                     MatrixView<const T, Cuda> rounded, MatrixView<T, Cuda> X) {
    const Index n = A.cols, width = first_of_blocks(n, max_solve_cols(scalar_kind<T>, ctx.state().kernels));
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
                return solve_corrected(ctx, from, nullptr, halves, to, certificate.data,
                                       max_corrected_condition(static_cast<int>(n)));
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
    const Kernels& kernels = ctx.state().kernels;
    if (!kernels.tuned) {
        known.u = known.solve_u = Scalar<double>::u;
        known.longest_sum = static_cast<double>(rows_of_part(ctx, m, n, n));
        return known;
    }
    // The solve refines inverses of 8×8 blocks once (factor_blocks.cuh). It is in f64, whose u is far below f32's.
    known.solves_any_triangle = !std::is_same_v<T, double>;
    if (choose_gram(n, 0, scalar_kind<T>, kernels) == GramKernel::Blocks) {
        known.u = known.solve_u = Scalar<T>::u;
        // G₁₂ by parts of `longest` rows or fewer; in f64 the kernel makes the diagonal blocks
        Index longest = rows_of_part(ctx, m, n, n);
        if (std::is_same_v<T, double>)
            longest = std::max(
                longest, longest_sum<T>(m, static_cast<int>(max_gram_cols(scalar_kind<T>, kernels)), 0, ctx.state()));
        known.longest_sum = static_cast<double>(longest);
        return known;
    }
    const int width = static_cast<int>(n);
    known.u = known.solve_u = Scalar<double>::u;
    known.longest_sum = static_cast<double>(
        std::max(longest_sum<T>(m, width, 0, ctx.state()), longest_sum<T>(m, width, max_factors, ctx.state())));
    if (n > max_solve_cols(scalar_kind<T>, kernels)) {
        known.max_condition_of_solve = max_corrected_condition(width);
        known.solve_u = Scalar<T>::u;
    }
    return known;
}

template <class T, class D>
void solve_and_gram(Context<D>& ctx, Input<T, D> input, std::span<const View<const Sum<T, D>, D>> factors, View<T, D> X,
                    View<Sum<T, D>, D> G, CertificateView<D> certificate, View<const Index, D> order) {
    const Index m = input.rows, n = input.cols;
    if (n == 0) return;
    Arena::Frame frame(ctx);
    if (input.by_rows && !reads_rows<T>(ctx, n, factors.size(), X.data)) {
        const auto copied = frame.matrix<T>(m, n);
        load<T>(ctx, input, copied);
        input = copied;
    }
    const MatrixView<const T, D> A = input.stored();
    ctx.state().add_flops(1.0 * m * n * n * (static_cast<double>(factors.size()) + (G.data ? 1 : 0)));
    const Kernels& kernels = ctx.state().kernels;
    const SolveKernel kernel =
        choose_solve(m, n, static_cast<int>(factors.size()), certificate.data, scalar_kind<T>, kernels);
    const bool reads_order = kernels.tuned && (kernel == SolveKernel::Columns || kernel == SolveKernel::Corrected);
    if (order.data && !reads_order) {
        // X := X P, unless the certificate is refused
        const auto from = frame.matrix<Index>(n, 1);
        for_each_element(ctx, n, 1, [=] __device__(Index j, Index) {
            from.data[j] = certificate.data->refused() ? j : order.data[j];
        });
        permute_columns<T, Cuda>(ctx, from, X);
        order = {};
    }
    if (!kernels.tuned) return plain::solve_and_gram<T>(ctx, A, factors, X, G, certificate);
    if (kernel < SolveKernel::Blocks) {
        Factors Y;
        for (const auto& R : factors) {
            Y.data[Y.count] = R.data;
            Y.ld[Y.count++] = R.ld;
        }
        by_kernels<T>(ctx, input, Y, X, G, certificate, order.data);
    } else if (factors.empty() && !X.data) {
        gram_of<T>(ctx, input, G);
    } else {
        const int width = static_cast<int>(n);
        void* halves = nullptr;
        if (kernel == SolveKernel::CorrectedOrBlocks) {
            halves = frame.take<char>(corrected_factor_bytes);
            corrected_factor(ctx, factors[0], halves, certificate.data);
        }
        // cuBLAS writes whatever the certificate says
        Certificate found;
        if (certificate.data) found = read_certificate(ctx, certificate);
        if (found.refused()) return;
        if (!found.factor_has(max_corrected_condition(width))) halves = nullptr;
        solve_and_gram_wide<T>(ctx, A, factors, X, G, certificate, halves);
    }
}

QUOIN_IMPLEMENT(Cuda, gram_precision, solve_and_gram)

}  // namespace quoin
