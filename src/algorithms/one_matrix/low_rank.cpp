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
    // X P = [I W]
    set_identity<T>(ctx, 0, result.X.view().col_block(top));
    copy<T>(ctx, W.view(), result.X.view().col_block(right));
    permute(ctx, inverse_of(p), result.X.view());
    return result;
}

template <class T, class D>
CUR<T, D> cur(Context<D>& ctx, Input<T, D> A, Pivoting pivoting, bool check_finite) {
    Interpolative<T, D> by_columns = interpolative<T, D>(ctx, A, pivoting, check_finite);
    const Index m = A.rows, n = A.cols, r = by_columns.X.rows();
    Matrix<T, D> C(ctx, m, r), R(ctx, r, n);
    for (Index k = 0; k < r; ++k) {
        const Index j = by_columns.columns[k];
        load<T>(ctx, A.col_block({j, j + 1}), C.view().col_block({k, k + 1}));
    }
    const Matrix<T, D> Ct = transposed<T, D>(ctx, C.view());
    Options of_rows{.q = QForm::None, .pivoting = pivoting, .check_finite = false};
    of_rows.pivoting->max_rank = r;
    of_rows.pivoting->tolerance = of_rows.pivoting->relative_tolerance = of_rows.pivoting->relative_frobenius = 0;
    const QR<T, D> rows = qr(ctx, Ct.view(), of_rows);
    CUR<T, D> result;
    result.rows.assign(rows.permutation().begin(), rows.permutation().begin() + r);
    for (Index k = 0; k < r; ++k) {
        const Index i = result.rows[k];
        load<T>(ctx, A.row_block({i, i + 1}), R.view().row_block({k, k + 1}));
    }
    const Matrix<T, D> Rt = transposed<T, D>(ctx, R.view());
    // Uᵀ minimises ‖Rᵀ Uᵀ − Xᵀ‖
    const Matrix<T, D> Xt = transposed<T, D>(ctx, by_columns.X.view());
    result.U = transposed<T, D>(ctx, least_squares(ctx, Rt.view(), Xt.view(), {.rcond = 0}).X.view());
    result.columns = std::move(by_columns.columns);
    result.report = by_columns.report;
    return result;
}

#define QUOIN_INSTANTIATE(T, D)                                                                 \
    template Interpolative<T, D> interpolative<T, D>(Context<D>&, Input<T, D>, Pivoting, bool); \
    template CUR<T, D> cur<T, D>(Context<D>&, Input<T, D>, Pivoting, bool);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
