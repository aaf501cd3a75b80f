// ?geqp3rk: A P = Q [R₁₁ R₁₂; 0 R₂₂] with greedy pivots, until K columns or a norm of R₂₂ suffice, and QᵀB.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "algorithms/shared/column_scaling.hpp"
#include "lapack/abi.hpp"
#include "lapack/in_place.hpp"
#include "lapack/pivoted.hpp"
#include "lapack/tuning.hpp"

namespace quoin::lapack {

namespace {

/// The criteria that stop the factorization. Negative tolerances are not used.
struct Limits {
    Index columns;
    double absolute, relative;
};

/// R₂₂ after k columns: the largest norm of its columns, and this norm relative to the largest norm of A's columns.
template <class T>
struct Residual {
    Index k = 0;
    T largest = 0, relative = 0;
};

/// Returns the largest 2^e_j norms[j] of the columns; e_j = 0 if `exponents` has no data.
template <class T>
double largest_norm(const T* norms, MatrixView<const int> exponents, Range columns) {
    double largest = 0;
    for (Index j = columns.begin; j < columns.end; ++j) {
        const int e = exponents.data ? exponents(j, 0) : 0;
        largest = std::max(largest, std::scalbn(static_cast<double>(norms[j]), e));
    }
    return largest;
}

/// Returns the first column of A that satisfies `test`, or A.cols.
template <class T, class Test>
Index find_column(MatrixView<const T> A, Test test) {
    Index j = 0;
    while (j < A.cols && std::none_of(A.at(0, j), A.at(0, j) + A.rows, test)) ++j;
    return j;
}

/// Factors the first n columns of AB = [A B], and multiplies B by Qᵀ. Sets info if A has NaN or Inf. `from_r`: R of A
/// chooses the pivots.
template <class T, class Int>
Residual<T> factor(Context<Host>& ctx, bool from_r, MatrixView<T> AB, Index n, const Limits& limits, Int* jpiv, T* tau,
                   Int* info) {
    const Index m = AB.rows, k = std::min(m, n), most = std::min(k, limits.columns);
    const MatrixView<T> A = AB.col_block({0, n});
    const auto not_a_number = [&](Index column) {
        constexpr T nan = std::numeric_limits<T>::quiet_NaN();
        *info = static_cast<Int>(column + 1);
        return Residual<T>{0, nan, nan};
    };
    std::iota(jpiv, jpiv + n, Int(1));
    std::fill_n(tau, k, T(0));
    ColumnScaling<T, Host> scaling(ctx, A);
    const bool is_scaled = scaling.needed(ctx, false);
    std::vector<T> norms(static_cast<std::size_t>(2 * n));
    const auto find_norms = [&](MatrixView<const T> B) { column_norms<T>(ctx, B, std::span(norms).first(n)); };
    find_norms(A);
    if (!std::all_of(norms.begin(), norms.begin() + n, [](T x) { return std::isfinite(x); })) {
        const Index bad = find_column<T>(A, [](T a) { return std::isnan(a); });
        if (bad < n) return not_a_number(bad);
        const Index infinite = find_column<T>(A, [](T a) { return std::isinf(a); });
        if (infinite < n) *info = static_cast<Int>(n + infinite + 1);
    }
    // all norms are relative to 2^e
    int e = 0;
    std::vector<int> relative_exponents;
    MatrixView<int> exponents;
    if (is_scaled) {
        // A stays as it is if no column is factored
        Matrix<T> scaled = copy_of<T, Host>(ctx, A);
        scaling.scale(ctx, scaled.view());
        find_norms(scaled.view());
        const int* const all = scaling.exponents().data;
        e = *std::min_element(all, all + n);
        for (Index j = 0; j < n; ++j) e = norms[j] > 0 ? std::max(e, all[j]) : e;
        relative_exponents.assign(all, all + n);
        for (int& exponent : relative_exponents) exponent -= e;
        exponents = {relative_exponents.data(), n, 1};
    }
    const double first = largest_norm<T>(norms.data(), exponents, {0, n}),
                 absolute = std::max(0.0, std::scalbn(limits.absolute, -e));
    const auto unscaled = [&](double norm) { return static_cast<T>(std::scalbn(norm, e)); };
    if (first == 0) return {};
    if (most == 0 || first <= absolute || limits.relative >= 1) return {0, unscaled(first), 1};
    // the reflector of a column with Inf is NaN, unless it has one entry
    if (std::isinf(first) && m > 1) {
        tau[0] = std::numeric_limits<T>::quiet_NaN();
        return not_a_number(0);
    }
    const double tolerance = std::isinf(first) ? 0 : std::max(absolute, limits.relative * first);

    if (is_scaled) scaling.scale(ctx, A);
    std::copy_n(norms.begin(), n, norms.begin() + n);
    std::vector<Index> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), Index(0));
    const PivotedColumns<T, Host> columns{A, {order.data(), n, 1}, {norms.data(), n, 2}, exponents};
    Index taken = 0;
    if (from_r) {
        Matrix<T> R = r_of<T>(ctx, A);
        taken = factor_greedily<T>(ctx, {R.view(), columns.order, columns.norms, exponents}, {0, most}, tolerance, tau);
        permute_columns<T>(ctx, columns.order, A);
        factor_in_place<T>(ctx, plan_in_place<T>(m, taken), A.col_block({0, taken}), tau);
    } else {
        taken = factor_greedily<T>(ctx, columns, {0, most}, tolerance, tau);
    }
    const Range done{0, taken};
    const MatrixView<T> rest = AB.col_block({from_r ? taken : n, AB.cols});
    if (!rest.empty()) apply_in_place<T>(ctx, Side::Left, Op::Transpose, A.col_block(done), tau, rest);
    for (Index j = 0; j < n; ++j) jpiv[j] = static_cast<Int>(order[j] + 1);
    const double left = taken < k ? largest_norm<T>(norms.data(), exponents, {taken, n}) : 0;
    if (is_scaled) {
        for (Index j = 0; j < n; ++j) scaling.exponents()(j, 0) = exponents(j, 0) + e;
        scaling.unscale(ctx, Part::Upper, A.row_block(done));
        scaling.unscale(ctx, Part::All, A.block({taken, m}, {taken, n}), {taken, n});
    }
    return {taken, unscaled(left), static_cast<T>(left / first)};
}

template <class T, class Int, class Next>
void geqp3rk(const char* routine, const Next& pass_on, const Int* m_, const Int* n_, const Int* nrhs_, const Int* kmax,
             const T* abstol, const T* reltol, T* A, const Int* lda, Int* k_, T* maxc2nrmk, T* relmaxc2nrmk, Int* jpiv,
             T* tau, T* work, const Int* lwork, Int*, Int* info) {
    const Index m = *m_, n = *n_, nrhs = *nrhs_, k = std::min(m, n);
    const bool query = *lwork == -1;
    *info = m < 0                                                ? -1
            : n < 0                                              ? -2
            : nrhs < 0                                           ? -3
            : *kmax < 0                                          ? -4
            : std::isnan(*abstol)                                ? -5
            : std::isnan(*reltol)                                ? -6
            : *lda < std::max<Index>(1, m)                       ? -8
            : !query && *lwork < (k == 0 ? 1 : 3 * n + nrhs - 1) ? -15
                                                                 : 0;
    const Index optimal = k == 0 ? 1 : 2 * n + work_columns * (n + nrhs + 1);
    if (*info == 0 || *info == -15) work[0] = workspace_size<T>(optimal);
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    if (query) return;
    if (k == 0) {
        *k_ = 0;
        *maxc2nrmk = *relmaxc2nrmk = 0;
        return;
    }
    constexpr T u = std::numeric_limits<T>::epsilon() / 2, tiny = std::numeric_limits<T>::min();
    const Limits limits{*kmax, *abstol < 0 ? *abstol : std::max(*abstol, 2 * tiny),
                        *reltol < 0 ? *reltol : std::max(*reltol, u)};
    const MatrixView<T> AB(A, m, n + nrhs, *lda);
    const bool from_r = truncated_from_r_pays(m, n, limits.columns, limits.absolute >= 0 || limits.relative >= 0);
    serve(
        Call(routine, m, n, std::min(k, limits.columns)),
        truncated_pays(m, n, std::min(k, limits.columns)) || near_overflow<T>(AB),
        [&] { return pivoted_workspace<T>(m, n) + reflector_workspace<T>(m, n + nrhs, k) + sizeof(T) * 1.0 * m * n; },
        [&](Context<Host>& ctx) {
            const Residual<T> residual = factor<T>(ctx, from_r, AB, n, limits, jpiv, tau, info);
            *k_ = static_cast<Int>(residual.k);
            *maxc2nrmk = residual.largest;
            *relmaxc2nrmk = residual.relative;
            return from_r ? "pivots of R" : "greedy panels";
        },
        pass_on, info);
    work[0] = workspace_size<T>(optimal);
}

}  // namespace

#define QUOIN_GEQP3RK(T, Int, ...)                                                                                   \
    QUOIN_LAPACK_ROUTINE(                                                                                            \
        geqp3rk, geqp3rk,                                                                                            \
        (const Int* m, const Int* n, const Int* nrhs, const Int* kmax, const T* abstol, const T* reltol, T* A,       \
         const Int* lda, Int* k, T* maxc2nrmk, T* relmaxc2nrmk, Int* jpiv, T* tau, T* work, const Int* lwork,        \
         Int* iwork, Int* info),                                                                                     \
        (m, n, nrhs, kmax, abstol, reltol, A, lda, k, maxc2nrmk, relmaxc2nrmk, jpiv, tau, work, lwork, iwork, info), \
        __VA_ARGS__)
QUOIN_LAPACK_EXPORT(QUOIN_GEQP3RK)
#undef QUOIN_GEQP3RK

}  // namespace quoin::lapack
