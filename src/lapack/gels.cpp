// ?gels, ?gelst and ?getsls: least squares and minimum norm solutions with a matrix of full rank.

#include <algorithm>

#include "lapack/abi.hpp"
#include "lapack/in_place.hpp"
#include "lapack/solver_scaling.hpp"
#include "lapack/tuning.hpp"

namespace quoin::lapack {

namespace {

/// Factors F (tall) = Q R in place, by a plan for F. Then replaces B, which has F's rows, by the minimiser X of ‖F X −
/// B‖ or the X of least norm with FᵀX = B. Returns the first j (one-based) with R_jj = 0, or 0 if X is complete.
template <class T>
Index solve(Context<Host>& ctx, const Plan& plan, bool transposed, MatrixView<T> F, MatrixView<T> B) {
    const Index n = F.cols, nb = plan.panel_width;
    Matrix<T> Tf(nb, n);
    factor_in_place<T>(ctx, plan, F, Tf.view());
    const auto R = F.row_block({0, n}), B_top = B.row_block({0, n});
    // QᵀB = [C₁; C₂],   R X = C₁
    if (!transposed) apply_in_place<T>(ctx, Side::Left, Op::Transpose, nb, F, Tf.view(), B);
    for (Index j = 0; j < n; ++j) {
        if (R(j, j) == 0) return j + 1;
    }
    solve_triangle<T>(ctx, Triangle::Upper, transposed ? Op::Transpose : Op::None, R, B_top);
    // Rᵀ Y = B,   X = Q [Y; 0]
    if (transposed) {
        set_zero<T>(ctx, B.row_block({n, B.rows}));
        apply_in_place<T>(ctx, Side::Left, Op::None, nb, F, Tf.view(), B);
    }
    return 0;
}

/// Solves min ‖op(A) X − B‖ for a tall op(A), and op(A) X = B with the X of least norm for a wide op(A). B has max(m,
/// n) rows. A becomes its QR factorization, or its LQ factorization for m < n. `plan` is for the tall one of A and Aᵀ.
/// Returns info.
template <class T>
Index solve_scaled(Context<Host>& ctx, const Plan& plan, bool transposed, MatrixView<T> A, MatrixView<T> B) {
    const bool wide = A.rows < A.cols;
    const auto right_side = B.row_block({0, transposed ? A.cols : A.rows});
    const auto scaled = scale_problem<T>(ctx, A, right_side);
    if (!scaled) {
        set_zero<T>(ctx, B);
        return 0;
    }
    Index info;
    if (wide) {
        // Aᵀ = Q R:   A = Rᵀ Qᵀ
        through_transpose<T>(ctx, A, [&](MatrixView<T> At) { info = solve<T>(ctx, plan, !transposed, At, B); });
    } else {
        info = solve<T>(ctx, plan, transposed, A, B);
    }
    if (info == 0) scaled->unscale(ctx, B.row_block({0, transposed ? A.rows : A.cols}));
    return info;
}

/// Sizes of `work`.
struct Sizes {
    Index least, wanted;
};

inline Sizes gels_sizes(Index m, Index n, Index nrhs) {
    const Index k = std::min(m, n), columns = std::max(k, nrhs);
    return {std::max<Index>(1, k + columns), std::max<Index>(1, k + columns * work_columns)};
}
inline Sizes gelst_sizes(Index m, Index n, Index nrhs) {
    const Index least = gels_sizes(m, n, nrhs).least;
    return {least, least * work_columns};
}
inline Sizes getsls_sizes(Index m, Index n, Index nrhs) {
    const Index k = std::min(m, n);
    if (k == 0 || nrhs == 0) return {1, 1};
    // T of ?geqr or ?gelq of the least size, and their least work; some references need n for ?gelq
    return {k + 5 + std::max(k, nrhs), k + 5 + std::max(n, nrhs)};
}

template <Sizes (*sizes)(Index m, Index n, Index nrhs), class T, class Int, class Next>
void gels(const char* routine, const Next& pass_on, const char* trans, const Int* m_, const Int* n_, const Int* nrhs_,
          T* A, const Int* lda, T* B, const Int* ldb, T* work, const Int* lwork, Int* info) {
    const Index m = *m_, n = *n_, nrhs = *nrhs_, k = std::min(m, n);
    const bool transposed = is(trans, 'T'), query = *lwork == -1 || (*lwork == -2 && sizes == getsls_sizes);
    *info = !transposed && !is(trans, 'N')      ? -1
            : m < 0                             ? -2
            : n < 0                             ? -3
            : nrhs < 0                          ? -4
            : *lda < std::max<Index>(1, m)      ? -6
            : *ldb < std::max<Index>({1, m, n}) ? -8
                                                : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    const auto [least, wanted] = sizes(m, n, nrhs);
    work[0] = workspace_size<T>(wanted);
    if (!query && *lwork < least) {
        *info = -10;
        return report_illegal<Int>(routine, 10);
    }
    if (query) return;
    const MatrixView<T> AA(A, m, n, *lda), BB(B, std::max(m, n), nrhs, *ldb);
    if (k == 0 || nrhs == 0) {
        Context<Host> ctx{1};
        return set_zero<T>(ctx, BB);
    }
    const Index rows = BB.rows;
    Plan plan;
    serve(
        Call(routine, m, n, nrhs), factor_pays(m, n),
        [&] {
            plan = plan_in_place<T>(rows, k);
            return plan.workspace_bytes + reflector_workspace<T>(rows, nrhs, k) + (m < n ? sizeof(T) * 1.0 * m * n : 0);
        },
        [&](Context<Host>& ctx) {
            *info = static_cast<Int>(solve_scaled<T>(ctx, plan, transposed, AA, BB));
            return m < n ? "transposed" : "householder";
        },
        pass_on, info);
    if (*info == 0) work[0] = workspace_size<T>(wanted);
}

}  // namespace

#define QUOIN_GELS_AS(T, Int, name, ...)                                                                              \
    QUOIN_LAPACK_ROUTINE(name, gels<name##_sizes>,                                                                    \
                         (const char* trans, const Int* m, const Int* n, const Int* nrhs, T* A, const Int* lda, T* B, \
                          const Int* ldb, T* work, const Int* lwork, Int* info),                                      \
                         (trans, m, n, nrhs, A, lda, B, ldb, work, lwork, info), __VA_ARGS__)
#define QUOIN_GELS(T, Int, ...)               \
    QUOIN_GELS_AS(T, Int, gels, __VA_ARGS__)  \
    QUOIN_GELS_AS(T, Int, gelst, __VA_ARGS__) \
    QUOIN_GELS_AS(T, Int, getsls, __VA_ARGS__)
QUOIN_LAPACK_EXPORT(QUOIN_GELS)
#undef QUOIN_GELS
#undef QUOIN_GELS_AS

}  // namespace quoin::lapack
