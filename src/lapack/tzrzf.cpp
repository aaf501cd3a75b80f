// ?tzrzf and ?ormrz: A = [R 0] Z of an upper trapezoid A = [A₁ A₂], and products with Z.
//
// With the reversal J of k elements this is a triangle on a rectangle, as of ?tpqrt:
//
//     [J A₁ᵀ J; A₂ᵀ J] = Q [J Rᵀ J; 0],    Zᵀ = [J 0; 0 I] Q [J 0; 0 I]

#include "lapack/trapezoid.hpp"

#include "lapack/abi.hpp"
#include "lapack/in_place.hpp"
#include "lapack/stacked.hpp"
#include "lapack/tuning.hpp"
#include "primitives.hpp"

namespace quoin::lapack {

namespace {

/// A := A J
template <class T>
void reverse_columns(MatrixView<T> A) {
    for (Index i = 0, j = A.cols - 1; i < j; ++i, --j) std::swap_ranges(A.at(0, i), A.at(0, i) + A.rows, A.at(0, j));
}
/// A := J A
template <class T>
void reverse_rows(MatrixView<T> A) {
    for (Index j = 0; j < A.cols; ++j) std::reverse(A.at(0, j), A.at(0, j) + A.rows);
}

/// Q's reflectors for k of Z with vectors of l entries.
Stack stack_of(Index k, Index l) { return {l, k, std::min(k, panel_width(l, k)), l}; }

}  // namespace

template <class T>
void factor_trapezoid(Context<Host>& ctx, MatrixView<T> A, T* tau) {
    const Index m = A.rows;
    const auto A2 = A.col_block({m, A.cols});
    const Stack stack = stack_of(m, A2.cols);
    Matrix<T> R(m, m), V(A2.cols, m), Tf(stack.nb, m);
    const auto for_triangle = [&](auto move) {
        for (Index j = 0; j < m; ++j) {
            for (Index i = 0; i <= j; ++i) move(A(i, j), R(m - 1 - j, m - 1 - i));
        }
    };
    for_triangle([](T& a, T& r) { r = a; });
    transpose<T>(ctx, A2, V.view());
    reverse_columns(V.view());
    factor_stacked<T>(ctx, stack, R.view(), V.view(), Tf.view());
    for_triangle([](T& a, T& r) { a = r; });
    for (Index j = 0; j < m; ++j) tau[m - 1 - j] = Tf(j % stack.nb, j);
    reverse_columns(V.view());
    transpose<T>(ctx, V.view(), A2);
}

template <class T>
void apply_trapezoid(Context<Host>& ctx, Side side, Op op, MatrixView<const T> V_rows, const T* tau, MatrixView<T> C) {
    const Index k = V_rows.rows, l = V_rows.cols, order = side == Side::Left ? C.rows : C.cols;
    const Stack stack = stack_of(k, l);
    Matrix<T> V = transposed<T, Host>(ctx, V_rows), Tf(stack.nb, k), G(stack.nb, stack.nb), taus(k, 1);
    reverse_columns(V.view());
    std::reverse_copy(tau, tau + k, taus.data());
    for (Index first = 0; first < k; first += stack.nb) {
        const Range panel{first, std::min(k, first + stack.nb)}, width{0, panel.size()};
        const auto V_panel = V.view().col_block(panel);
        // the unit vectors on top of V are orthogonal
        multiply_transposed<T>(ctx, V_panel, V_panel, G.view().block(width, width));
        compact_wy_from_gram<T>(ctx, G.view().block(width, width), taus.view().row_block(panel),
                                Tf.view().block(width, panel));
    }
    const auto part = [&](Range r) { return side == Side::Left ? C.row_block(r) : C.col_block(r); };
    const auto top = part({0, k});
    const auto reverse_top = [&] { side == Side::Left ? reverse_rows(top) : reverse_columns(top); };
    reverse_top();
    apply_stacked<T>(ctx, side, op == Op::None ? Op::Transpose : Op::None, stack, V.view(), Tf.view(), top,
                     part({order - l, order}));
    reverse_top();
}

template <class T>
double trapezoid_workspace(Index k, Index l, Index p) {
    return sizeof(T) * 1.0 * k * (k + l) + stacked_workspace<T>(stack_of(k, l), std::max(k, p));
}

namespace {

template <class T, class Int, class Next>
void tzrzf(const char* routine, const Next& pass_on, const Int* m_, const Int* n_, T* A, const Int* lda, T* tau,
           T* work, const Int* lwork, Int* info) {
    const Index m = *m_, n = *n_, l = n - m;
    const bool query = *lwork == -1, nothing = m == 0 || l == 0;
    *info = m < 0                                                      ? -1
            : n < m                                                    ? -2
            : *lda < std::max<Index>(1, m)                             ? -4
            : !query && *lwork < (nothing ? 1 : std::max<Index>(1, m)) ? -7
                                                                       : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    const T wanted = workspace_size<T>(nothing ? 1 : m * work_columns);
    if (!query && nothing) std::fill_n(tau, m, T(0));
    if (!query && !nothing) {
        const MatrixView<T> AA(A, m, n, *lda);
        serve(
            Call(routine, m, n),
            trapezoid_pays(m, l) || near_overflow<T>(AA, [&](Index j) { return std::min(j + 1, m); }),
            [&] { return trapezoid_workspace<T>(m, l, 0); },
            [&](Context<Host>& ctx) {
                factor_trapezoid<T>(ctx, AA, tau);
                return "transposed";
            },
            pass_on, info);
    }
    work[0] = wanted;
}

template <class T, class Int, class Next>
void ormrz(const char* routine, const Next& pass_on, const char* side, const char* trans, const Int* m_, const Int* n_,
           const Int* k_, const Int* l_, const T* A, const Int* lda, const T* tau, T* C, const Int* ldc, T* work,
           const Int* lwork, Int* info) {
    const Index m = *m_, n = *n_, k = *k_, l = *l_;
    const bool left = is(side, 'L'), query = *lwork == -1;
    const Index order = left ? m : n, others = std::max<Index>(1, left ? n : m);
    const int illegal = illegal_in_product(side, trans, m, n, k, order);
    *info = illegal != 0                   ? illegal
            : l < 0 || l > order           ? -6
            : *lda < std::max<Index>(1, k) ? -8
            : *ldc < std::max<Index>(1, m) ? -11
            : !query && *lwork < others    ? -13
                                           : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    const bool nothing = m == 0 || n == 0 || k == 0;
    const T wanted = m == 0 || n == 0 ? T(1) : workspace_size<T>(others * work_columns + t_size);
    if (!query && !nothing) {
        const MatrixView<T> CC(C, m, n, *ldc);
        if (l == 0 || k + l > order) {
            // ?tzrzf returns tau = 0 for l = 0, and no vectors that reach into the first k rows
            if (pass_on.next) {
                pass_on();
            } else if (l > 0) {
                *info = -6;
                return report_illegal<Int>(routine, 6);
            }
        } else {
            serve(
                Call(routine, m, n, k), trapezoid_apply_pays(l, others, k) || near_overflow<T>(CC),
                [&] { return trapezoid_workspace<T>(k, l, others); },
                [&](Context<Host>& ctx) {
                    const Index first = *lda * (order - l);
                    apply_trapezoid<T>(ctx, side_of(side), op_of(trans), {A + first, k, l, *lda}, tau, CC);
                    return "transposed";
                },
                pass_on, info);
        }
    }
    work[0] = wanted;
}

}  // namespace

#define QUOIN_TZRZF(T, Int, ...)                                                                                  \
    QUOIN_LAPACK_ROUTINE(                                                                                         \
        tzrzf, tzrzf,                                                                                             \
        (const Int* m, const Int* n, T* A, const Int* lda, T* tau, T* work, const Int* lwork, Int* info),         \
        (m, n, A, lda, tau, work, lwork, info), __VA_ARGS__)                                                      \
    QUOIN_LAPACK_ROUTINE(                                                                                         \
        ormrz, ormrz,                                                                                             \
        (const char* side, const char* trans, const Int* m, const Int* n, const Int* k, const Int* l, const T* A, \
         const Int* lda, const T* tau, T* C, const Int* ldc, T* work, const Int* lwork, Int* info),               \
        (side, trans, m, n, k, l, A, lda, tau, C, ldc, work, lwork, info), __VA_ARGS__)
QUOIN_LAPACK_EXPORT(QUOIN_TZRZF)
#undef QUOIN_TZRZF

#define QUOIN_INSTANTIATE(T)                                                                                  \
    template void factor_trapezoid<T>(Context<Host>&, MatrixView<T>, T*);                                     \
    template void apply_trapezoid<T>(Context<Host>&, Side, Op, MatrixView<const T>, const T*, MatrixView<T>); \
    template double trapezoid_workspace<T>(Index, Index, Index);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin::lapack
