// `solve_and_gram` by the kernels of kernels/solve_and_gram.cuh up to 192 columns, partly by them up to 256, and over cuBLAS beyond.

#include "cuda/kernels/solve_and_gram.cuh"

#include <limits>
#include <vector>

#include "cuda/blas.hpp"
#include "cuda/sum_parts.hpp"
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

/// G := AᵀA.
template <class T>
void gram_of(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<double, Cuda> G) {
    if (A.cols <= gram_max_cols<T>) return by_kernels<T>(ctx, A, {}, {}, G, {});
    multiply_split<T>(ctx, A, A, false, true, G);
}

/// The same of any width: over cuBLAS, factors rounded to T, or by the halves of the only one.
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
                QUOIN_CUDA_CHECK(solve_by_halves(from.rows, static_cast<int>(n), from.data, from.ld, halves, to.data,
                                                 to.ld, certificate.data, most_condition_by_halves(static_cast<int>(n)),
                                                 ctx.state().multiprocessors, ctx.stream()));
                return;
            }
        }
        if (from.data != to.data) copy<T>(ctx, from, to);
        for (const auto& R : rounded) trsm<T>(ctx, Side::Right, Triangle::Upper, Op::None, R, to);
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
    if (n > gram_max_cols<T>) {
        known.u = known.solve_u = Scalar<T>::u;
        known.longest_sum = static_cast<double>(rows_of_part(ctx, m, n, n));
        return known;
    }
    const int width = static_cast<int>(n);
    known.u = known.solve_u = Scalar<double>::u;
    known.longest_sum = static_cast<double>(longest_sum<T>(m, width, ctx.state().multiprocessors));
    if (n > tall_max_cols) {
        known.most_condition_of_solve = most_condition_by_halves(width);
        known.solve_u = Scalar<T>::u;
    }
    return known;
}

template <class T, class D>
void solve_and_gram(Context<D>& ctx, View<const T, D> A, std::span<const View<const Sum<T, D>, D>> factors,
                    View<T, D> X, View<Sum<T, D>, D> G, CertificateView<D> certificate) {
    const Index m = A.rows, n = A.cols;
    if (n == 0) return;
    if (n <= tall_max_cols && factors.size() <= most_factors) {
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
        if (std::is_same_v<T, float> && certificate.data && factors.size() == 1 && n <= gram_max_cols<T>) {
            halves = frame.take<char>(halves_of_factor_bytes);
            QUOIN_CUDA_CHECK(
                split_factor(width, factors[0].data, factors[0].ld, halves, certificate.data, ctx.stream()));
        }
        // cuBLAS writes whatever the certificate says
        Certificate found;
        if (certificate.data) found = read_certificate(ctx, certificate);
        if (found.refused()) return;
        if (!found.factor_has(most_condition_by_halves(width))) halves = nullptr;
        solve_and_gram_wide<T>(ctx, A, factors, X, G, certificate, halves);
    }
    ctx.state().add_flops(1.0 * m * n * n * (static_cast<double>(factors.size()) + (G.data ? 1 : 0)));
}

QUOIN_IMPLEMENT(Cuda, gram_precision, solve_and_gram)

}  // namespace quoin
