#pragma once

// The steps that the solvers share around a QR factorization.

#include <fmt/format.h>

#include "algorithms/one_matrix/factorization.hpp"
#include "algorithms/one_matrix/plan.hpp"
#include "algorithms/shared/matrix_checks.hpp"
#include "devices.hpp"
#include "quoin/qr.hpp"

namespace quoin {

/// Returns `options` for products with the thin Q of an m×n matrix, or of its transpose if m < n: explicit Q if
/// Cholesky QR makes it.
template <class T, class D>
Options for_thin_products(const Context<D>& ctx, Index m, Index n, Options options) {
    if (options.q == QForm::None) options.q = QForm::Any;
    if (!Tuning<D>::reflectors_are_any_form || options.q != QForm::Any) return options;
    Options of_thin = options;
    of_thin.q = QForm::Explicit;
    return is_cholesky(plan_qr<T>(ctx, std::max(m, n), std::min(m, n), of_thin).method) ? of_thin : options;
}

/// Throws InvalidArgument if `what` needs an orthonormal Q and Gram-Schmidt without reorthogonalization makes Q.
inline void require_orthonormal(Method method, Reorthogonalization reorthogonalization, const char* what) {
    if (!is_gram_schmidt(method) || reorthogonalization != Reorthogonalization::Off) return;
    throw InvalidArgument(fmt::format(
        "{} needs an orthonormal Q. That of {} without reorthogonalization is far from it if κ(A) is large: ask "
        "for reorthogonalization, or for another method",
        what, to_string(method)));
}
inline void require_orthonormal(const Options& options, const char* what) {
    require_orthonormal(options.method, options.method.reorthogonalization(), what);
}
inline void require_orthonormal(const Plan& plan, const char* what) {
    require_orthonormal(plan.method, plan.gram_schmidt().reorthogonalization, what);
}

/// Throws InvalidArgument if `o` has pivoting: only `qr` offers it.
template <class OptionsOrPlan>
void require_unpivoted(const OptionsOrPlan& o, const char* what) {
    if (o.pivoting) throw InvalidArgument(fmt::format("{} has no pivoting: leave the option out", what));
}

/// Throws InvalidArgument if `options` chooses the signs of R: only `qr` of one matrix offers it.
inline void require_any_signs(const Options& options, const char* what) {
    if (!options.positive_diagonal) return;
    throw InvalidArgument(fmt::format("{} takes the signs of R as they come: leave positive_diagonal out", what));
}

/// Factors Aᵀ = QR. The entries of A are checked under their own indices.
template <class T, class D>
QR<T, D> qr_of_transpose(Context<D>& ctx, InputView<T, D> A, Options options) {
    if (options.check_finite) require_finite<T, D>(ctx, A);
    options.check_finite = false;
    if (A.by_rows) return qr<T, D>(ctx, A.stored(), options);
    const Plan plan = plan_qr<T>(ctx, A.cols, A.rows, options);
    return qr<T, D>(ctx, transposed<T, D>(ctx, A.stored()), plan);
}

/// Returns Q₁W for the thin Q₁. W (k×p) is lost.
template <class T, class D>
Matrix<T, D> multiply_thin_q(Context<D>& ctx, const QR<T, D>& factorization, MatrixView<T, D> W) {
    const Index m = factorization.rows(), k = W.rows;
    Matrix<T, D> X(ctx, m, W.cols);
    if (const auto* basis = Inside::of(factorization).explicit_q()) {
        // 0 − Q₁(−W)
        set_zero(ctx, X.view());
        negate<T>(ctx, W);
        subtract_product<T>(ctx, basis->Q.view(), W, X.view());
    } else {
        // Q [W; 0]
        copy<T>(ctx, W, X.view().row_block({0, k}));
        set_zero(ctx, X.view().row_block({k, m}));
        factorization.apply_q(ctx, Side::Left, Op::None, X.view());
    }
    return X;
}

}  // namespace quoin
