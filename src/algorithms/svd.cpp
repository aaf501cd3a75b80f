#include "quoin/svd.hpp"

#include "algorithms/instantiate.hpp"
#include "algorithms/small_svd.hpp"
#include "algorithms/solver_steps.hpp"

namespace quoin {
namespace {

/// A = QR of a tall A:  R = U₁ΣVᵀ,  U = Q [U₁; 0].
template <class T, class D>
SVD<T, D> svd_tall(Context<D>& ctx, MatrixView<const T, D> A, bool vectors, const Options& options) {
    const Index m = A.rows, n = A.cols;
    const QR<T, D> factorization = qr<T>(ctx, A, options);
    Matrix<T, D> R = factorization.r();
    SVD<T, D> f;
    f.s.resize(n);
    f.report = factorization.report();
    if (!vectors) {
        small_svd<T>(ctx, R.view(), f.s, {}, {});
        return f;
    }
    Matrix<T, D> U1(n, n);
    f.Vt = Matrix<T, D>(n, n);
    small_svd<T>(ctx, R.view(), f.s, U1.view(), f.Vt.view());
    f.U = Matrix<T, D>(m, n);
    copy<T>(ctx, U1.view(), f.U.view().row_block({0, n}));
    set_zero(ctx, f.U.view().row_block({n, m}));
    factorization.apply_q(ctx, Side::Left, Op::None, f.U.view());
    return f;
}

/// Aᵀ = QR of a wide A:  A = RᵀQᵀ,  Rᵀ = UΣW,  Vᵀ = [W 0] Qᵀ.
template <class T, class D>
SVD<T, D> svd_wide(Context<D>& ctx, MatrixView<const T, D> A, bool vectors, const Options& options) {
    const Index m = A.rows, n = A.cols;
    const QR<T, D> factorization = qr_of_transpose(ctx, A, options);
    const Matrix<T, D> R = factorization.r();
    Matrix<T, D> L(m, m);
    transpose<T>(ctx, R.view(), L.view());
    SVD<T, D> f;
    f.s.resize(m);
    f.report = factorization.report();
    if (!vectors) {
        small_svd<T>(ctx, L.view(), f.s, {}, {});
        return f;
    }
    Matrix<T, D> W(m, m);
    f.U = Matrix<T, D>(m, m);
    small_svd<T>(ctx, L.view(), f.s, f.U.view(), W.view());
    f.Vt = Matrix<T, D>(m, n);
    copy<T>(ctx, W.view(), f.Vt.view().col_block({0, m}));
    set_zero(ctx, f.Vt.view().col_block({m, n}));
    factorization.apply_q(ctx, Side::Right, Op::Transpose, f.Vt.view());
    return f;
}

}  // namespace

template <class T, class D>
SVD<T, D> svd(Context<D>& ctx, MatrixView<const T, D> A, bool vectors, Options options) {
    if (!vectors && !options.verify) options.q = QForm::None;
    if (vectors && options.q == QForm::None) options.q = QForm::Any;
    return A.rows >= A.cols ? svd_tall(ctx, A, vectors, options) : svd_wide(ctx, A, vectors, options);
}

#define QUOIN_INSTANTIATE(T, D) template SVD<T, D> svd<T, D>(Context<D>&, MatrixView<const T, D>, bool, Options);
QUOIN_FOR_EACH_HOST_TYPE(QUOIN_INSTANTIATE)

}  // namespace quoin
