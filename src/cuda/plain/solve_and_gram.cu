#include "cuda/plain/solve_and_gram.hpp"

#include <algorithm>

#include "cuda/elements/elementwise.cuh"
#include "cuda/products/sum_parts.hpp"
#include "cuda/runtime/blas.hpp"
#include "cuda/tuning.hpp"

namespace quoin::cuda::plain {

template <class T>
void solve_and_gram(Context<Cuda>& ctx, MatrixView<const T, Cuda> A,
                    std::span<const MatrixView<const double, Cuda>> factors, MatrixView<T, Cuda> X,
                    MatrixView<double, Cuda> G, CertificateView<Cuda> certificate) {
    if (certificate.data && read_certificate(ctx, certificate).refused()) return;
    const Index m = A.rows, n = A.cols, step = Tuning<Cuda>::solved_rows;
    Arena::Frame frame(ctx);
    const auto memory = frame.matrix<double>(std::min(m, step), n), sum = frame.matrix<double>(n, n);
    for (Index first = 0; first < std::max<Index>(m, 1); first += step) {
        const Range rows{first, std::min(m, first + step)};
        const auto S = memory.row_block({0, rows.size()});
        const auto from = A.row_block(rows);
        for_each_element(ctx, S.rows, n, [=] __device__(Index i, Index j) {
            S.data[i + j * S.ld] = static_cast<double>(from.data[i + j * from.ld]);
        });
        for (const auto& R : factors) trsm<double>(ctx, Side::Right, Triangle::Upper, Op::None, R, S);
        // G is XᵀX of the rounded X
        const auto to = X.data ? X.row_block(rows) : X;
        for_each_element(ctx, S.rows, n, [=] __device__(Index i, Index j) {
            double& x = S.data[i + j * S.ld];
            x = static_cast<T>(x);
            if (to.data) to.data[i + j * to.ld] = static_cast<T>(x);
        });
        if (G.data) multiply_split<double, double>(ctx, S, S, first > 0, true, sum);
    }
    if (G.data) copy<double>(ctx, sum, G);
}

template decltype(solve_and_gram<float>) solve_and_gram<float>;
template decltype(solve_and_gram<double>) solve_and_gram<double>;

}  // namespace quoin::cuda::plain
