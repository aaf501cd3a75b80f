// ?orhr_col: V, T and signs S with Q = (I − V T Vᵀ) [S; 0] from orthonormal columns Q (Ballard et al. 2014).

#include <array>

#include "host/device.hpp"
#include "lapack/abi.hpp"
#include "lapack/tuning.hpp"
#include "primitives/generic/reconstruct_top.hpp"

namespace quoin::lapack {

namespace {

/// Q (m×n) − [S; 0] = [L; V₂] U: L and V₂ below the diagonal of A, U on and above it; T of each nb columns.
template <class T>
void reconstruct(Context<Host>& ctx, Index nb, MatrixView<T> A, MatrixView<T> Tf, MatrixView<T> signs) {
    const Index m = A.rows, n = A.cols;
    const auto LU = A.row_block({0, n}), V2 = A.row_block({n, m});
    Matrix<T> U(n, n);
    signed_lu<T>(ctx, LU, signs);
    copy_triangle<T>(ctx, LU, U.view());
    solve_and_gram<T>(ctx, V2, std::array<MatrixView<const T>, 1>{U.view()}, V2, {});
    for (Index j = 0; j < n; j += nb) {
        const Range b{j, std::min(n, j + nb)};
        reconstruct_t<T>(ctx, LU.block(b, b), U.view().block(b, b), signs.row_block(b), Tf.block({0, b.size()}, b));
    }
}

template <class T, class Int, class Next>
void orhr_col(const char* routine, Next pass_on, const Int* m_, const Int* n_, const Int* nb_, T* A, const Int* lda,
              T* Tf, const Int* ldt, T* d, Int* info) {
    const Index m = *m_, n = *n_, nb = std::min<Index>(*nb_, n);
    *info = m < 0                           ? -1
            : n < 0 || n > m                ? -2
            : *nb_ < 1                      ? -3
            : *lda < std::max<Index>(1, m)  ? -5
            : *ldt < std::max<Index>(1, nb) ? -7
                                            : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    if (n == 0) return;
    // some references write *nb_ rows of T, which has min(nb, n)
    const Int width = static_cast<Int>(nb);
    std::get<2>(pass_on.arguments) = &width;
    serve(
        Call(routine, m, n, n), reconstruct_pays(m, n), [&] { return sizeof(T) * 4.0 * n * n; },
        [&](Context<Host>& ctx) {
            reconstruct<T>(ctx, nb, MatrixView<T>(A, m, n, *lda), MatrixView<T>(Tf, nb, n, *ldt),
                           MatrixView<T>(d, n, 1));
            return "reconstruction";
        },
        pass_on, info);
}

}  // namespace

#define QUOIN_ORHR_COL(T, Int, ...)                                                                                \
    QUOIN_LAPACK_ROUTINE(                                                                                          \
        orhr_col, orhr_col,                                                                                        \
        (const Int* m, const Int* n, const Int* nb, T* A, const Int* lda, T* Tf, const Int* ldt, T* d, Int* info), \
        (m, n, nb, A, lda, Tf, ldt, d, info), __VA_ARGS__)
QUOIN_LAPACK_EXPORT(QUOIN_ORHR_COL)
#undef QUOIN_ORHR_COL

}  // namespace quoin::lapack
