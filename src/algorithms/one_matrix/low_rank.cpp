// Interpolative and CUR decompositions by QR with column pivoting (docs/pivoting.md).

#include "quoin/low_rank.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "algorithms/one_matrix/pivoted_qr.hpp"
#include "algorithms/shared/copies.hpp"
#include "devices.hpp"
#include "quoin/least_squares.hpp"

namespace quoin {
template <class T, class D>
Interpolative<T, D> interpolative(Context<D>& ctx, Input<T, D> A, Pivoting pivoting, bool check_finite) {
    const Options options{.q = QForm::None, .pivoting = pivoting, .check_finite = check_finite};
    const QR<T, D> f = qr<T, D>(ctx, A, options);
    const Matrix<T, D> R = f.r(ctx);
    const Index n = A.cols, r = numerical_rank<T, D>(ctx, std::max(A.rows, n), R.view());
    if (check_finite && !std::isfinite(entry_norms<T>(ctx, R.view()).largest)) {
        throw NumericalBreakdown("interpolative: R overflows: scale the matrix", 0);
    }
    const std::span<const Index> p = f.permutation();
    Interpolative<T, D> result{{p.begin(), p.begin() + r}, Matrix<T, D>(ctx, r, n), f.report()};
    const Range top{0, r}, right{r, n};
    Matrix<T, D> W = copy_of<T, D>(ctx, R.view().block(top, right));
    solve_triangle<T>(ctx, Triangle::Upper, Op::None, R.view().block(top, top), W.view());
    set_zero(ctx, result.X.view());
    for (Index j = 0; j < n; ++j) {
        T* const x = result.X.view().at(0, p[j]);
        if (j < r) {
            x[j] = T(1);
        } else {
            std::copy_n(W.view().at(0, j - r), r, x);
        }
    }
    return result;
}

template <class T, class D>
CUR<T, D> cur(Context<D>& ctx, Input<T, D> A, Pivoting pivoting, bool check_finite) {
    Interpolative<T, D> by_columns = interpolative<T, D>(ctx, A, pivoting, check_finite);
    const Index m = A.rows, n = A.cols, r = by_columns.X.rows();
    Matrix<T, D> Ct(ctx, r, m), Rt(ctx, n, r);
    for (Index k = 0; k < r; ++k) {
        for (Index i = 0; i < m; ++i) Ct(k, i) = *A.at(i, by_columns.columns[k]);
    }
    Options of_rows{.q = QForm::None, .pivoting = pivoting, .check_finite = false};
    of_rows.pivoting->max_rank = r;
    of_rows.pivoting->tolerance = of_rows.pivoting->relative_tolerance = 0;
    const QR<T, D> rows = qr(ctx, std::as_const(Ct).view(), of_rows);
    CUR<T, D> result;
    result.rows.assign(rows.permutation().begin(), rows.permutation().begin() + r);
    for (Index k = 0; k < r; ++k) {
        for (Index j = 0; j < n; ++j) Rt(j, k) = *A.at(result.rows[k], j);
    }
    // Uᵀ minimises ‖Rᵀ Uᵀ − Xᵀ‖
    const Matrix<T, D> Xt = transposed<T, D>(ctx, by_columns.X.view());
    result.U = transposed<T, D>(ctx, least_squares(ctx, std::as_const(Rt).view(), Xt.view(), {.rcond = 0}).X.view());
    result.columns = std::move(by_columns.columns);
    result.report = by_columns.report;
    return result;
}

#define QUOIN_INSTANTIATE(T, D)                                                                 \
    template Interpolative<T, D> interpolative<T, D>(Context<D>&, Input<T, D>, Pivoting, bool); \
    template CUR<T, D> cur<T, D>(Context<D>&, Input<T, D>, Pivoting, bool);
// a GPU has no pivots yet
QUOIN_FOR_EACH_HOST_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
