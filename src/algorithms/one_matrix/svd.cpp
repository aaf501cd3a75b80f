// SVD of a matrix by the SVD of its triangular factor.

#include "quoin/svd.hpp"

#include "algorithms/one_matrix/pivoted_qr.hpp"
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

/// Computes the SVD of Q_r R_r, where A P ≈ Q_r R_r is a QR with column pivoting: R_r = U₁ΣW, U = Q_r U₁, Vᵀ = W Pᵀ.
template <class T, class D>
SVD<T, D> truncated_svd(Context<D>& ctx, InputView<T, D> A, bool vectors, Options options) {
    options.q = vectors ? QForm::Any : QForm::None;
    const QR<T, D> f = qr<T, D>(ctx, A, options);
    const Matrix<T, D> R = f.r(ctx);
    options.pivoting.reset();
    options.verify = options.check_finite = false;
    options.method = Method::Auto;
    SVD<T, D> of_r = svd<T, D>(ctx, R.view(), vectors, options);
    of_r.report = f.report();
    if (!vectors) return of_r;
    of_r.U = multiply_thin_q<T, D>(ctx, f, of_r.U.view());
    std::vector<Index> back(f.permutation().size());
    for (std::size_t j = 0; j < back.size(); ++j) back[f.permutation()[j]] = static_cast<Index>(j);
    if constexpr (Tuning<D>::has_pivoting) permute(ctx, back, of_r.Vt.view());
    return of_r;
}

}  // namespace

template <class T, class D>
SVD<T, D> svd(Context<D>& ctx, InputView<T, D> A, bool vectors, Options options) {
    if (options.pivoting) return truncated_svd<T, D>(ctx, A, vectors, options);
    if (!vectors && !options.verify) options.q = QForm::None;
    if (vectors) require_orthonormal(options, "svd with vectors");
    if (vectors) options = for_thin_products<T>(ctx, A.rows, A.cols, options);
    return svd_by_qr<T, D>(ctx, A, vectors, options);
}

#define QUOIN_INSTANTIATE(T, D) template SVD<T, D> svd<T, D>(Context<D>&, InputView<T, D>, bool, Options);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
