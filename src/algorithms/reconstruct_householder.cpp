// Householder reconstruction (Ballard, Demmel, Grigori, Jacquelin, Nguyen, Solomonik 2014): Q₁ − S = L U for the top block
// of an orthonormal Q, S a diagonal of signs.

#include <array>
#include <cmath>

#include "algorithms/factorization.hpp"
#include "algorithms/instantiate.hpp"

namespace quoin {

namespace {

/// V and T are those of reflectors up to ‖(LU)⁻¹‖ times the departure of QᵀQ from I. That norm is about √n for almost
/// every Q, but may grow as 2ⁿ: beyond this multiple of √n the reflectors are computed, not reconstructed.
constexpr double inverse_norm_limit = 8;

/// A := Q₁ R₂⁻¹, then A = H R' by reflectors, and R := R' R.
template <class T, class D>
void factor_anew(Context<D>& ctx, MatrixView<T, D> A, MatrixView<const Sum<T, D>, D> R2, MatrixView<T, D> R,
                 MatrixView<T, D> Tf) {
    const Index n = A.cols;
    if (R2.data) solve_and_gram<T>(ctx, A, std::array<MatrixView<const Sum<T, D>, D>, 1>{R2}, A, {});
    factor_panel<T>(ctx, A, Tf);
    Matrix<T, D> R1(ctx, n, n);
    copy_triangle<T>(ctx, A.row_block({0, n}), R1.view());
    multiply_upper<T>(ctx, R1.view(), R, R);
}

}  // namespace

template <class T, class D>
void reconstruct_t(Context<D>& ctx, MatrixView<const T, D> LU, MatrixView<const T, D> U, MatrixView<const T, D> signs,
                   MatrixView<T, D> Tf) {
    const Index n = LU.cols;
    // Tᵀ = −L⁻¹ S Uᵀ
    transpose<T>(ctx, U, Tf);
    flip_rows<T>(ctx, signs, Tf);
    solve_triangle<T>(ctx, Triangle::UnitLower, Op::None, LU, Tf);
    Matrix<T, D> Tt(ctx, n, n);
    transpose<T>(ctx, Tf, Tt.view());
    copy_triangle<T>(ctx, Tt.view(), Tf);
    negate<T>(ctx, Tf);
}

template <class T, class D>
void reconstruct_householder(Context<D>& ctx, MatrixView<T, D> A, MatrixView<const Sum<T, D>, D> R2, MatrixView<T, D> R,
                             MatrixView<T, D> Tf) {
    using Factors = std::array<MatrixView<const Sum<T, D>, D>, 1>;
    const Index n = A.cols;
    const auto A_top = A.row_block({0, n}), A_rest = A.row_block({n, A.rows});
    Matrix<T, D> LU(ctx, n, n), U(ctx, n, n), signs(ctx, n, 1);
    // Q₁ − S = L U
    if (R2.data) {
        solve_and_gram<T>(ctx, A_top, Factors{R2}, LU.view(), {});
    } else {
        copy<T>(ctx, A_top, LU.view());
    }
    signed_lu<T>(ctx, LU.view(), signs.view());
    if (!(inverse_norm_estimate<T>(ctx, LU.view()) <= inverse_norm_limit * std::sqrt(static_cast<double>(n)))) {
        factor_anew<T, D>(ctx, A, R2, R, Tf);
        store_triangle<T>(ctx, R.col_block({0, n}), A_top);
        return;
    }
    copy_triangle<T>(ctx, LU.view(), U.view());
    reconstruct_t<T, D>(ctx, LU.view(), U.view(), signs.view(), Tf);
    // V₁ = L, V₂ = Q₂ U⁻¹ = A₂ (U R₂)⁻¹
    Matrix<Sum<T, D>, D> U_sum(ctx, n, n), UR2(ctx, n, n);
    multiply_upper<T>(ctx, {}, U.view(), U_sum.view());
    if (R2.data) multiply_upper<Sum<T, D>>(ctx, U_sum.view(), R2, UR2.view());
    solve_and_gram<T>(ctx, A_rest, Factors{R2.data ? UR2.view() : U_sum.view()}, A_rest, {});
    copy<T>(ctx, LU.view(), A_top);
    // A = Q R = (Q S)(S R)
    flip_rows<T>(ctx, signs.view(), R);
    store_triangle<T>(ctx, R.col_block({0, n}), A_top);
}

#define QUOIN_INSTANTIATE(T, D)                                                                                \
    template void reconstruct_t<T, D>(Context<D>&, MatrixView<const T, D>, MatrixView<const T, D>,             \
                                      MatrixView<const T, D>, MatrixView<T, D>);                               \
    template void reconstruct_householder<T, D>(Context<D>&, MatrixView<T, D>, MatrixView<const Sum<T, D>, D>, \
                                                MatrixView<T, D>, MatrixView<T, D>);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
