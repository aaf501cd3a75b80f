// `solve_and_gram` by the kernels of kernels/solve_and_gram.cuh up to 192 columns, and over cuBLAS beyond.

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

/// X := A Y₁⁻¹ Y₂⁻¹ … and G := XᵀX over cuBLAS, of any width; factors rounded to T.
template <class T>
void solve_and_gram_wide(Context<Cuda>& ctx, MatrixView<const T, Cuda> A,
                         std::span<const MatrixView<const double, Cuda>> factors, MatrixView<T, Cuda> X,
                         MatrixView<double, Cuda> G) {
    const Index m = A.rows, n = A.cols;
    Arena::Frame frame(ctx);
    std::vector<MatrixView<const T, Cuda>> rounded;
    for (const auto& R : factors) {
        if constexpr (std::is_same_v<T, double>) {
            rounded.push_back(R);
        } else {
            const auto Y = frame.matrix<T>(n, n);
            multiply_upper<double, T>(ctx, {}, R, Y);
            rounded.push_back(Y);
        }
    }
    const auto solve = [&](MatrixView<const T, Cuda> from, MatrixView<T, Cuda> to) {
        if (from.data != to.data) copy<T>(ctx, from, to);
        for (const auto& R : rounded) trsm<T>(ctx, Side::Right, Triangle::Upper, Op::None, R, to);
    };
    if (X.data) solve(A, X);
    if (!G.data) return;
    if (X.data || factors.empty()) {
        const MatrixView<const T, Cuda> B = X.data ? MatrixView<const T, Cuda>(X) : A;
        return multiply_split<T>(ctx, B, B, false, true, G);
    }
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
    if (n <= tall_max_cols) {
        return {Scalar<double>::u,
                static_cast<double>(longest_sum<T>(m, static_cast<int>(n), ctx.state().multiprocessors))};
    }
    return {Scalar<T>::u, static_cast<double>(rows_of_part(ctx, m, n, n))};
}

template <class T, class D>
void solve_and_gram(Context<D>& ctx, View<const T, D> A, std::span<const View<const Sum<T, D>, D>> factors,
                    View<T, D> X, View<Sum<T, D>, D> G, CertificateView<D> certificate) {
    const Index m = A.rows, n = A.cols;
    if (n == 0) return;
    if (n > tall_max_cols || factors.size() > most_factors) {
        // cuBLAS writes whatever the certificate says
        if (certificate.data && read_certificate(ctx, certificate).refused()) return;
        solve_and_gram_wide<T>(ctx, A, factors, X, G);
    } else {
        Factors Y;
        for (const auto& R : factors) {
            Y.data[Y.count] = R.data;
            Y.ld[Y.count++] = R.ld;
        }
        const int width = static_cast<int>(n), processors = ctx.state().multiprocessors;
        Arena::Frame frame(ctx);
        void* work =
            frame.take<char>(tall_workspace<T>(m, width, Y.count, X.data != nullptr, G.data != nullptr, processors));
        QUOIN_CUDA_CHECK(cuda::solve_and_gram(m, width, A.data, A.ld, Y, X.data, X.ld, G.data, G.ld, certificate.data,
                                              work, processors, ctx.stream()));
    }
    ctx.state().add_flops(1.0 * m * n * n * (static_cast<double>(factors.size()) + (G.data ? 1 : 0)));
}

QUOIN_IMPLEMENT(Cuda, gram_precision, solve_and_gram)

}  // namespace quoin
