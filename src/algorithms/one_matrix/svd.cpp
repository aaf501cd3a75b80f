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

/// Returns the flops of the SVD of an m×n matrix with m >= n, without QR.
double flops_at_once(double m, double n, bool vectors) { return 4 * n * n * (vectors ? 2 * m + n / 3 : m - n / 3); }

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
    f.report.flops = flops_at_once(number(m), number(n), vectors);
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

/// Returns the options of the QR for `svd`.
template <class T, class D>
Options of_qr(const Context<D>& ctx, Index m, Index n, bool vectors, Options options) {
    if (vectors) return for_thin_products<T>(ctx, m, n, options);
    if (!options.verify) options.q = QForm::None;
    return options;
}

/// Whether A is nearly square, so that there is no QR.
template <class D>
bool at_once(Index m, Index n, const Options& options) {
    if constexpr (!std::is_same_v<D, Host>) return false;
    return options.method == Method::Auto && !options.verify && m > 0 && n > 0 &&
           Tuning<Host>::svd_at_once(std::max(m, n), std::min(m, n));
}

}  // namespace

template <class T, class D>
SVD<T, D> svd(Context<D>& ctx, InputView<T, D> A, bool vectors, Options options) {
    if (options.pivoting) return truncated_svd<T, D>(ctx, A, vectors, options);
    if (vectors) require_orthonormal(options, "svd with vectors");
    options = of_qr<T>(ctx, A.rows, A.cols, vectors, options);
    if constexpr (std::is_same_v<D, Host>) {
        check_matrix<T, Host>(A.stored());
        if (at_once<D>(A.rows, A.cols, options)) return svd_at_once<T>(ctx, A, vectors, options);
    }
    return svd_by_qr<T, D>(ctx, A, vectors, options);
}

template <class T, class D>
double flops_of_svd(const Context<D>& ctx, Index m, Index n, bool vectors, Options options) {
    const Index rows = std::max(m, n), cols = std::min(m, n);
    const double p = number(rows), k = number(cols);
    if (options.pivoting) return plan_qr<T>(ctx, m, n, options).flops;
    if (at_once<D>(m, n, options)) return flops_at_once(p, k, vectors);
    const Plan plan = plan_qr<T>(ctx, rows, cols, of_qr<T>(ctx, m, n, vectors, options));
    if (!vectors) return plan.flops + 8 * k * k * k / 3;
    return plan.flops + 28 * k * k * k / 3 +
           (plan.q == QForm::Explicit ? 2 * p * k * k : 4 * p * k * k - 2 * k * k * k);
}

#define QUOIN_INSTANTIATE(T, D)                                                \
    template SVD<T, D> svd<T, D>(Context<D>&, InputView<T, D>, bool, Options); \
    template double flops_of_svd<T, D>(const Context<D>&, Index, Index, bool, Options);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
