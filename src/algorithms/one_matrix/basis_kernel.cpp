// The m×m Q around an explicit thin Q. With Q₁ = −W R_q, Y = Q − [W; 0] and H = I − Y (I + R_q)⁻ᵀ Yᵀ:
//
//     Yᵀ[W; 0] = (Q₁ − W)ᵀ W = −(I + R_q)ᵀ,     H [W; 0] = [W; 0] + Y = Q,     HᵀH = I.

#include "algorithms/one_matrix/basis_kernel.hpp"
#include "algorithms/one_matrix/blocked_householder.hpp"
#include "devices.hpp"

namespace quoin {

template <class T, class D>
BasisKernel<T, D> basis_kernel_of(Context<D>& ctx, MatrixView<const T, D> Q) {
    const Index n = Q.cols;
    BasisKernel<T, D> made;
    Options options;
    options.method = Method::BlockedHouseholder;
    const Plan small = plan_qr<T>(ctx, n, n, options);
    lay_out_panels(ctx, small, made.W);
    made.W.A = Matrix<T, D>(ctx, n, n);
    copy<T>(ctx, Q.row_block({0, n}), made.W.A.view());
    factor_blocked_householder(ctx, small, made.W.view());
    // Q₁ = W' R' = (W' Σ)(Σ R') with Σ = sgn diag(R'), so W = −W' Σ and R_q = Σ R'
    made.signs = Matrix<T, D>(ctx, n, 1);
    made.K = Matrix<T, D>(ctx, n, n);
    diagonal_signs<T>(ctx, made.W.A.view(), made.signs.view());
    copy_triangle<T>(ctx, made.W.A.view(), made.K.view());
    flip_rows<T>(ctx, made.signs.view(), made.K.view());
    add_identity<T>(ctx, made.K.view());
    negate<T>(ctx, made.signs.view());
    return made;
}

namespace {

/// C := W C, or C := WᵀC. C has n rows.
template <class T, class D>
void apply_w(Context<D>& ctx, const BasisKernel<T, D>& kernel, Op op, MatrixView<T, D> C) {
    if (op == Op::None) flip_rows<T>(ctx, kernel.signs.view(), C);
    apply_forest<T, D>(ctx, kernel.W.view(), op, C);
    if (op == Op::Transpose) flip_rows<T>(ctx, kernel.signs.view(), C);
}

}  // namespace

template <class T, class D>
void apply_basis(Context<D>& ctx, MatrixView<const T, D> Q, const BasisKernel<T, D>& kernel, Op op,
                 MatrixView<T, D> C) {
    const Index n = Q.cols;
    const auto C_top = C.row_block({0, n});
    if (op == Op::None) apply_w<T, D>(ctx, kernel, Op::None, C_top);
    // Z = YᵀC = QᵀC − WᵀC₁
    Matrix<T, D> Z(ctx, n, C.cols), WC(ctx, n, C.cols);
    copy<T>(ctx, C_top, WC.view());
    apply_w<T, D>(ctx, kernel, Op::Transpose, WC.view());
    multiply_transposed<T>(ctx, Q, C, Z.view());
    subtract<T>(ctx, WC.view(), Z.view());
    // Z := (I + R_q)⁻ᵀ Z for H, (I + R_q)⁻¹ Z for Hᵀ
    solve_triangle<T>(ctx, Triangle::Upper, op == Op::None ? Op::Transpose : Op::None, kernel.K.view(), Z.view());
    // C := C − Y Z = C − Q Z + [W Z; 0]
    subtract_product<T>(ctx, Q, Z.view(), C);
    apply_w<T, D>(ctx, kernel, Op::None, Z.view());
    negate<T>(ctx, Z.view());
    subtract<T>(ctx, Z.view(), C_top);
    if (op == Op::Transpose) apply_w<T, D>(ctx, kernel, Op::Transpose, C_top);
}

#define QUOIN_INSTANTIATE(T, D)                                                                        \
    template decltype(basis_kernel_of<T, D>) basis_kernel_of<T, D>;                                    \
    template void apply_basis<T, D>(Context<D>&, MatrixView<const T, D>, const BasisKernel<T, D>&, Op, \
                                    MatrixView<T, D>);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
