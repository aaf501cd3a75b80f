#include "lapack/pivoted.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "algorithms/one_matrix/cholesky_qr.hpp"
#include "algorithms/one_matrix/tsqr_caqr.hpp"
#include "algorithms/shared/column_scaling.hpp"
#include "lapack/in_place.hpp"
#include "lapack/tuning.hpp"

namespace quoin::lapack {

namespace {

/// Moves the columns with jpvt != 0 to the front, and returns their number. `jpvt` receives the permutation.
template <class T, class Int>
Index move_fixed_columns(MatrixView<T> A, Int* jpvt) {
    Index fixed = 0;
    for (Index j = 0; j < A.cols; ++j) {
        const bool is_fixed = jpvt[j] != 0;
        jpvt[j] = static_cast<Int>(j + 1);
        if (!is_fixed) continue;
        if (j != fixed) {
            std::swap_ranges(A.at(0, j), A.at(0, j) + A.rows, A.at(0, fixed));
            std::swap(jpvt[j], jpvt[fixed]);
        }
        ++fixed;
    }
    return fixed;
}

}  // namespace

template <class T>
Index factor_greedily(Context<Host>& ctx, const PivotedColumns<T, Host>& columns, Range steps, double tolerance,
                      T* tau) {
    const Index n = columns.A.cols, k = std::min(columns.A.rows, n),
                width = Tuning<Host>::pivoted_width(true, n, k, false, scalar_kind<T>);
    Matrix<T> F(width, n);
    for (Index first = steps.begin; first < steps.end; first += width) {
        const Index w = std::min(width, steps.end - first);
        const Index taken =
            factor_pivoted<T>(ctx, columns, first, tolerance, {tau + first, w, 1}, F.view().row_block({0, w}));
        if (taken < w) return first + taken;
    }
    return steps.end;
}

template <class T>
Matrix<T> r_of(Context<Host>& ctx, MatrixView<const T> A) {
    Matrix<T> R(A.cols, A.cols);
    const auto passes = cholesky_passes<T, Host>(ctx, CholeskyChain::OfA, false, A, {}, R.view());
    if (passes.state != CholeskyPasses<T, Host>::State::Certified) {
        tsqr_r_only<T, Host>(ctx, plan_qr<T>(ctx, A.rows, A.cols, {.method = Method::TSQR}), A, true, R.view());
    }
    return R;
}

template <class T>
double pivoted_workspace(Index m, Index n) {
    const Index k = std::min(m, n);
    return 2 * plan_in_place<T>(m, n).workspace_bytes + reflector_workspace<T>(m, n, k) + sizeof(T) * 4.0 * n * k;
}

template <class T, class Int>
const char* factor_with_pivots_in_place(Context<Host>& ctx, MatrixView<T> A, Int* jpvt, T* tau) {
    const Index m = A.rows, n = A.cols, k = std::min(m, n), fixed = std::min(m, move_fixed_columns(A, jpvt));
    ColumnScaling<T, Host> scaling(ctx, A);
    const bool is_scaled = scaling.needed(ctx, false);
    if (is_scaled) scaling.scale(ctx, A);
    const MatrixView<int> exponents = is_scaled ? scaling.exponents() : MatrixView<int>();
    const Range done{0, fixed}, rest{fixed, n};
    if (fixed > 0) {
        factor_in_place<T>(ctx, plan_in_place<T>(m, fixed), A.col_block(done), tau);
        apply_in_place<T>(ctx, Side::Left, Op::Transpose, A.col_block(done), tau, A.col_block(rest));
    }
    const auto A22 = A.block({fixed, m}, rest);
    std::vector<Index> order(n);
    std::iota(order.begin(), order.end(), Index(0));
    std::vector<T> norms(2 * n);
    column_norms<T>(ctx, A22, std::span(norms).subspan(fixed, rest.size()));
    std::copy_n(norms.begin(), n, norms.begin() + n);
    const PivotedColumns<T, Host> columns{A, {order.data(), n, 1}, {norms.data(), n, 2}, exponents};
    const bool from_r = fixed < k && pivots_of_r_pay(A22.rows, A22.cols);
    if (from_r) {
        // R has the norms of A22
        Matrix<T> R = r_of<T>(ctx, A22);
        factor_greedily<T>(ctx,
                           {R.view(), columns.order.row_block(rest), columns.norms.row_block(rest),
                            is_scaled ? exponents.row_block(rest) : exponents},
                           {0, k - fixed}, -1, tau + fixed);
        permute_columns<T>(ctx, columns.order, A);
        factor_in_place<T>(ctx, plan_in_place<T>(A22.rows, A22.cols), A22, tau + fixed);
    } else if (fixed < k) {
        factor_greedily<T>(ctx, columns, {fixed, k}, -1, tau);
    }
    const std::vector<Int> moved(jpvt, jpvt + n);
    for (Index j = 0; j < n; ++j) jpvt[j] = moved[order[j]];
    if (is_scaled) scaling.unscale(ctx, Part::Upper, A.row_block({0, k}));
    return from_r ? "pivots of R" : "greedy panels";
}

#define QUOIN_INSTANTIATE(T)                                                                               \
    template Index factor_greedily<T>(Context<Host>&, const PivotedColumns<T, Host>&, Range, double, T*);  \
    template Matrix<T> r_of<T>(Context<Host>&, MatrixView<const T>);                                       \
    template double pivoted_workspace<T>(Index, Index);                                                    \
    template const char* factor_with_pivots_in_place<T>(Context<Host>&, MatrixView<T>, std::int32_t*, T*); \
    template const char* factor_with_pivots_in_place<T>(Context<Host>&, MatrixView<T>, std::int64_t*, T*);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin::lapack
