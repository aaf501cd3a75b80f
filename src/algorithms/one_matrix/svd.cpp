// SVD of a matrix by the SVD of its triangular factor.

#include "quoin/svd.hpp"

#include "algorithms/one_matrix/range_scaling.hpp"
#include "devices.hpp"

namespace quoin {
namespace {

/// Computes the SVD by QR. Tall A: 2^-e A = QR, R = U₁ΣVᵀ, U = Q U₁. Wide A: 2^-e Aᵀ = QR, Rᵀ = UΣW, V = Q Wᵀ. The
/// values are 2^e Σ.
template <class T, class D>
SVD<T, D> svd_by_qr(Context<D>& ctx, InputView<T, D> A, bool vectors, const Options& options) {
    const bool tall = A.rows >= A.cols;
    const Index k = std::min(A.rows, A.cols);
    QRInRange<T, D> factored(ctx, A, options);
    Matrix<T, D> L = tall ? std::move(factored.R) : transposed<T, D>(ctx, factored.R.view());
    SVD<T, D> f;
    f.s.resize(k);
    f.report = factored.report;
    const Span span(ctx, "SVD of R, vectors");
    if (!vectors) {
        small_svd<T>(ctx, L.view(), f.s, {}, {});
    } else {
        Matrix<T, D> left(ctx, k, k), right(ctx, k, k);
        small_svd<T>(ctx, L.view(), f.s, left.view(), right.view());
        if (tall) {
            f.U = multiply_thin_q<T, D>(ctx, factored.factors, left.view());
            f.Vt = std::move(right);
        } else {
            transpose<T>(ctx, right.view(), L.view());
            const Matrix<T, D> V = multiply_thin_q<T, D>(ctx, factored.factors, L.view());
            f.U = std::move(left);
            f.Vt = transposed<T, D>(ctx, V.view());
        }
    }
    for (T& value : f.s) value = std::scalbn(value, factored.exponent);
    return f;
}

}  // namespace

template <class T, class D>
SVD<T, D> svd(Context<D>& ctx, InputView<T, D> A, bool vectors, Options options) {
    require_unpivoted(options, "svd");
    if (!vectors && !options.verify) options.q = QForm::None;
    if (vectors) require_orthonormal(options, "svd with vectors");
    if (vectors) options = for_thin_products<T>(ctx, A.rows, A.cols, options);
    return svd_by_qr<T, D>(ctx, A, vectors, options);
}

#define QUOIN_INSTANTIATE(T, D) template SVD<T, D> svd<T, D>(Context<D>&, InputView<T, D>, bool, Options);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
