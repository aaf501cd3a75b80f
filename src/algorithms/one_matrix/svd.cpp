// SVD of a matrix by the SVD of its triangular factor, or without a QR factorization if it is nearly square.

#include "quoin/svd.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "algorithms/one_matrix/pivoted_qr.hpp"
#include "algorithms/one_matrix/range_scaling.hpp"
#include "algorithms/shared/copies.hpp"
#include "algorithms/shared/matrix_checks.hpp"
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

/// Computes 2^-e A = UΣVᵀ of a nearly square A, or of Aᵀ for a wide one, without a QR factorization. The values are
/// 2^e Σ.
template <class T>
SVD<T> svd_at_once(Context<Host>& ctx, InputView<T, Host> A, bool vectors, const Options& options) {
    if (options.check_finite) require_finite<T, Host>(ctx, A);
    WorkTimer<Host> timer(ctx);
    const bool wide = A.rows < A.cols;
    if (wide) {
        std::swap(A.rows, A.cols);
        A.by_rows = !A.by_rows;
    }
    Matrix<T> W = loaded<T, Host>(ctx, A);
    const Index m = A.rows, n = A.cols;
    const int e = range_exponent<T>(entry_norms<T>(ctx, W.view()).largest, Scalar<T>::safe_exponent);
    if (e != 0) scale_by_power<T, Host>(ctx, -e, W.view(), W.view());
    SVD<T> f;
    f.report.flops = 4 * number(n) * number(n) * (vectors ? 2 * number(m) + number(n) / 3 : number(m) - number(n) / 3);
    f.s.resize(n);
    if (vectors) {
        f.U = Matrix<T>(m, n);
        f.Vt = Matrix<T>(n, n);
    }
    const Span span(ctx, "SVD of A, vectors");
    small_svd<T>(ctx, W.view(), f.s, f.U.view(), f.Vt.view());
    if (vectors && wide) {
        Matrix<T> U = transposed<T, Host>(ctx, f.Vt.view());
        f.Vt = transposed<T, Host>(ctx, f.U.view());
        f.U = std::move(U);
    }
    for (T& value : f.s) value = std::scalbn(value, e);
    timer.stop();
    f.report.seconds = timer.seconds();
    return f;
}

/// Computes the SVD of Q_r R_r, A P ≈ Q_r R_r by column pivoting: R_r = U₁ΣW, U = Q_r U₁, Vᵀ = W Pᵀ. With a `max_rank`
/// k it has more columns, and the largest k values remain.
template <class T, class D>
SVD<T, D> truncated_svd(Context<D>& ctx, InputView<T, D> A, bool vectors, Options options) {
    Index& max_rank = options.pivoting->max_rank;
    const Index wanted = max_rank, most = std::min(A.rows, A.cols);
    // a multiple of 8, as products of f16 have it
    if (wanted > 0 && wanted <= most) max_rank = std::min(most, (wanted + wanted / 2 + 15) / 8 * 8);
    options.q = vectors ? QForm::Any : QForm::None;
    const QR<T, D> f = qr<T, D>(ctx, A, options);
    const Matrix<T, D> R = f.r(ctx);
    const Index r = R.rows(), k = wanted > 0 ? std::min(wanted, r) : r;
    const Options of_r{.check_finite = false};
    SVD<T, D> found = svd<T, D>(ctx, R.view(), vectors, of_r);
    found.report = f.report();
    found.s.resize(k);
    if (!vectors) return found;
    found.U = multiply_thin_q<T, D>(ctx, f, found.U.view().col_block({0, k}));
    if (k < r) found.Vt = copy_of<T, D>(ctx, std::as_const(found.Vt).view().row_block({0, k}));
    permute(ctx, inverse_of(f.permutation()), found.Vt.view());
    return found;
}

}  // namespace

template <class T, class D>
SVD<T, D> svd(Context<D>& ctx, InputView<T, D> A, bool vectors, Options options) {
    if (options.pivoting) return truncated_svd<T, D>(ctx, A, vectors, options);
    if (!vectors && !options.verify) options.q = QForm::None;
    if (vectors) require_orthonormal(options, "svd with vectors");
    if (vectors) options = for_thin_products<T>(ctx, A.rows, A.cols, options);
    if constexpr (std::is_same_v<D, Host>) {
        check_matrix<T, Host>(A.stored());
        if (options.method == Method::Auto && !options.verify && !A.empty() &&
            Tuning<Host>::svd_at_once(std::max(A.rows, A.cols), std::min(A.rows, A.cols)))
            return svd_at_once<T>(ctx, A, vectors, options);
    }
    return svd_by_qr<T, D>(ctx, A, vectors, options);
}

#define QUOIN_INSTANTIATE(T, D) template SVD<T, D> svd<T, D>(Context<D>&, InputView<T, D>, bool, Options);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
