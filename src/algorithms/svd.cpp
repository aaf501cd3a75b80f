#include "quoin/svd.hpp"

#include "algorithms/instantiate.hpp"
#include "algorithms/solver_steps.hpp"

namespace quoin {
namespace {

/// A = QR of a tall A:  R = U₁ΣVᵀ,  U = Q U₁.
template <class T, class D>
SVD<T, D> svd_tall(Context<D>& ctx, MatrixView<const T, D> A, bool vectors, const Options& options) {
    const Index n = A.cols;
    WorkTimer<D> timer(ctx);
    const QR<T, D> factorization = qr<T, D>(ctx, A, options);
    timer.stop();
    Matrix<T, D> R = factorization.r(ctx);
    SVD<T, D> f;
    f.s.resize(n);
    f.report = completed(factorization.report(), timer);
    const Span span(ctx, "SVD of R, vectors");
    if (!vectors) {
        small_svd<T>(ctx, R.view(), f.s, {}, {});
        return f;
    }
    Matrix<T, D> U1(ctx, n, n);
    f.Vt = Matrix<T, D>(ctx, n, n);
    small_svd<T>(ctx, R.view(), f.s, U1.view(), f.Vt.view());
    f.U = multiply_thin_q<T, D>(ctx, factorization, U1.view());
    return f;
}

/// Aᵀ = QR of a wide A:  A = RᵀQᵀ,  Rᵀ = UΣW,  V = Q Wᵀ.
template <class T, class D>
SVD<T, D> svd_wide(Context<D>& ctx, MatrixView<const T, D> A, bool vectors, const Options& options) {
    const Index m = A.rows;
    WorkTimer<D> timer(ctx);
    const QR<T, D> factorization = qr_of_transpose(ctx, A, options);
    timer.stop();
    const Matrix<T, D> R = factorization.r(ctx);
    Matrix<T, D> L = transposed<T, D>(ctx, R.view());
    SVD<T, D> f;
    f.s.resize(m);
    f.report = completed(factorization.report(), timer);
    const Span span(ctx, "SVD of R, vectors");
    if (!vectors) {
        small_svd<T>(ctx, L.view(), f.s, {}, {});
        return f;
    }
    Matrix<T, D> W(ctx, m, m);
    f.U = Matrix<T, D>(ctx, m, m);
    small_svd<T>(ctx, L.view(), f.s, f.U.view(), W.view());
    transpose<T>(ctx, W.view(), L.view());
    const Matrix<T, D> V = multiply_thin_q<T, D>(ctx, factorization, L.view());
    f.Vt = transposed<T, D>(ctx, V.view());
    return f;
}

}  // namespace

template <class T, class D>
SVD<T, D> svd(Context<D>& ctx, MatrixView<const T, D> A, bool vectors, Options options) {
    if (!vectors && !options.verify) options.q = QForm::None;
    if (vectors) require_orthonormal(options, "svd with vectors");
    if (vectors && options.q == QForm::None) options.q = QForm::Any;
    return A.rows >= A.cols ? svd_tall(ctx, A, vectors, options) : svd_wide(ctx, A, vectors, options);
}

#define QUOIN_INSTANTIATE(T, D) template SVD<T, D> svd<T, D>(Context<D>&, MatrixView<const T, D>, bool, Options);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
