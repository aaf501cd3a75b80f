#pragma once

#include "quoin/qr.hpp"

namespace quoin {

/// Q (m×k, orthonormal columns) and R (k×n, upper trapezoidal) of a matrix A = QR, as the updates read them: thin (k <=
/// min(m, n)) or square (k = m). Entries of R below its diagonal are not used.
template <class T, class D = Host>
struct ExplicitFactors {
    InputView<T, D> Q, R;

    ExplicitFactors(InputView<T, D> Q_, InputView<T, D> R_) : Q(Q_), R(R_) {}
    ExplicitFactors(const ThinQR<T, D>& f) : Q(f.Q.view()), R(f.R.view()) {}
};
/// ExplicitFactors as a parameter whose T and D are deduced elsewhere.
template <class T, class D>
using Explicit = std::type_identity_t<ExplicitFactors<T, D>>;

/// Each of these returns Q' and R' of A', a matrix that differs from A = QR in p rows, in p columns, or by a matrix of
/// rank p. A square Q gives a square Q'. A thin one gives a thin Q', whose columns are as few as A' allows.
///
/// R' has exact zeros below its diagonal. The method is in `docs/updates.md`: orthogonal transformations of windows of
/// about 2p neighbouring columns of Q and rows of R.
///
/// An update adds O((n + p)u) to ‖I − QᵀQ‖ and O((n + p)u) (‖A‖ + ‖A'‖) to ‖A − QR‖, for every finite input, with
/// ‖U‖‖V‖ for ‖A'‖ in `update`. Rows are deleted by means of Q, so that this holds even if R' is singular.
///
/// Takes about 8mnp flops, 16mnp for `update`, and 8mnp more in `insert_columns`, `update` and `delete_rows`, which
/// project columns from Q.
///
/// Throw InvalidArgument for shapes that do not fit, and NonFiniteEntry for NaN or Inf unless `check_finite` is false.
///
///     ThinQR<double> f = qr(ctx, A.view(), {.q = QForm::Explicit}).take_thin(ctx);
///     f = delete_rows<double>(ctx, f, {0, 1});           // the oldest row of a window
///     f = insert_rows<double>(ctx, f, m - 1, v.view());  // a new one at its end

/// A' = [A(:, 0:at) U A(:, at:n)], U m×p.
template <class T, class D>
ThinQR<T, D> insert_columns(Context<D>& ctx, Explicit<T, D> f, Index at, Input<T, D> U, bool check_finite = true);
/// A' = A without the given columns.
template <class T, class D>
ThinQR<T, D> delete_columns(Context<D>& ctx, Explicit<T, D> f, Range columns, bool check_finite = true);
/// A' = [A(0:at, :); V; A(at:m, :)], V p×n.
template <class T, class D>
ThinQR<T, D> insert_rows(Context<D>& ctx, Explicit<T, D> f, Index at, Input<T, D> V, bool check_finite = true);
/// A' = A without the given rows.
template <class T, class D>
ThinQR<T, D> delete_rows(Context<D>& ctx, Explicit<T, D> f, Range rows, bool check_finite = true);
/// A' = A + U Vᵀ, U m×p and V n×p. To replace p columns, U has the differences and V unit vectors; rows likewise.
template <class T, class D>
ThinQR<T, D> update(Context<D>& ctx, Explicit<T, D> f, Input<T, D> U, Input<T, D> V, bool check_finite = true);

}  // namespace quoin
