// Householder reconstruction (Ballard, Demmel, Grigori, Jacquelin, Nguyen, Solomonik 2014) and the basis-kernel form of
// an explicit Q. Both rest on one factorization, Q₁ − S = L U of the top block of an orthonormal Q, S a diagonal of signs.

#include <array>

#include "algorithms/factorization.hpp"
#include "algorithms/instantiate.hpp"

namespace quoin {

template <class T, class D>
void reconstruct_householder(Context<D>& ctx, MatrixView<T, D> A, MatrixView<const T, D> R2, MatrixView<T, D> R,
                             MatrixView<T, D> Tf) {
    using Factors = std::array<MatrixView<const T, D>, 1>;
    const Index n = A.cols;
    const auto A_top = A.row_block({0, n}), A_rest = A.row_block({n, A.rows});
    Matrix<T, D> U(ctx, n, n), signs(ctx, n, 1);
    // Q₁ − S = L U
    if (R2.data) solve_and_gram<T>(ctx, A_top, Factors{R2}, A_top, {});
    signed_lu<T>(ctx, A_top, signs.view());
    copy_triangle<T>(ctx, A_top, U.view());
    // T = −U S L⁻ᵀ, so Tᵀ = −L⁻¹ S Uᵀ
    transpose<T>(ctx, U.view(), Tf);
    flip_rows<T>(ctx, signs.view(), Tf);
    solve_triangle<T>(ctx, Triangle::UnitLower, Op::None, A_top, Tf);
    Matrix<T, D> Tt(ctx, n, n);
    transpose<T>(ctx, Tf, Tt.view());
    copy_triangle<T>(ctx, Tt.view(), Tf);
    negate<T>(ctx, Tf);
    // V₂ = Q₂ U⁻¹ = A₂ (U R₂)⁻¹
    if (R2.data) {
        copy_triangle<T>(ctx, R2, Tt.view());
        multiply_upper<T>(ctx, U.view(), Tt.view());
        solve_and_gram<T>(ctx, A_rest, Factors{Tt.view()}, A_rest, {});
    } else {
        solve_and_gram<T>(ctx, A_rest, Factors{U.view()}, A_rest, {});
    }
    // A = Q R = (Q S)(S R)
    flip_rows<T>(ctx, signs.view(), R);
    store_triangle<T>(ctx, R.col_block({0, n}), A_top);
}

template <class T, class D>
void complete_basis(Context<D>& ctx, ExplicitQ<T, D>& basis) {
    const Index n = basis.Q.cols();
    basis.LU = Matrix<T, D>(ctx, n, n);
    basis.signs = Matrix<T, D>(ctx, n, 1);
    copy<T>(ctx, basis.Q.view().row_block({0, n}), basis.LU.view());
    signed_lu<T>(ctx, basis.LU.view(), basis.signs.view());
}

template <class T, class D>
void apply_basis(Context<D>& ctx, const ExplicitQ<T, D>& basis, Op op, MatrixView<T, D> C) {
    const Index n = basis.Q.cols();
    const auto C_top = C.row_block({0, n});
    Matrix<T, D> W(ctx, n, C.cols), SC(ctx, n, C.cols);
    if (op == Op::None) flip_rows<T>(ctx, basis.signs.view(), C_top);
    // W = YᵀC = QᵀC − S C₁
    copy<T>(ctx, C_top, SC.view());
    flip_rows<T>(ctx, basis.signs.view(), SC.view());
    multiply_transposed<T>(ctx, basis.Q.view(), C, W.view());
    subtract<T>(ctx, SC.view(), W.view());
    if (op == Op::None) {
        // W := S (LU)⁻ᵀ W
        solve_triangle<T>(ctx, Triangle::Upper, Op::Transpose, basis.LU.view(), W.view());
        solve_triangle<T>(ctx, Triangle::UnitLower, Op::Transpose, basis.LU.view(), W.view());
        flip_rows<T>(ctx, basis.signs.view(), W.view());
    } else {
        // W := (LU)⁻¹ S W
        flip_rows<T>(ctx, basis.signs.view(), W.view());
        solve_triangle<T>(ctx, Triangle::UnitLower, Op::None, basis.LU.view(), W.view());
        solve_triangle<T>(ctx, Triangle::Upper, Op::None, basis.LU.view(), W.view());
    }
    // C := C + Y W = C + Q W − [S W; 0]
    negate<T>(ctx, W.view());
    subtract_product<T>(ctx, basis.Q.view(), W.view(), C);
    flip_rows<T>(ctx, basis.signs.view(), W.view());
    negate<T>(ctx, W.view());
    subtract<T>(ctx, W.view(), C_top);
    if (op == Op::Transpose) flip_rows<T>(ctx, basis.signs.view(), C_top);
}

#define QUOIN_INSTANTIATE(T, D)                                                                               \
    template void reconstruct_householder<T, D>(Context<D>&, MatrixView<T, D>, MatrixView<const T, D>,        \
                                                MatrixView<T, D>, MatrixView<T, D>);                          \
    template void complete_basis<T, D>(Context<D>&, ExplicitQ<T, D>&);                                        \
    template void apply_basis<T, D>(Context<D>&, const ExplicitQ<T, D>&, Op, MatrixView<T, D>);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
