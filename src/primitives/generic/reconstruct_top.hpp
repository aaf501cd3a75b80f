#pragma once

// The top block of Householder reconstruction, by a signed LU and products of triangles.

#include <array>

#include "primitives.hpp"

namespace quoin {

/// T = −U S L⁻ᵀ of Q₁ − S = L U: LU holds L below its diagonal, U the upper triangle with zeros below, all n×n. U is
/// lost.
template <class T, class D>
void reconstruct_t(Context<D>& ctx, View<const T, D> LU, View<T, D> U, View<const T, D> signs, View<T, D> Tf) {
    // Tᵀ = −L⁻¹ S Uᵀ
    adjoint<T>(ctx, U, Tf);
    flip_rows<T>(ctx, signs, Tf);
    solve_triangle<T>(ctx, Triangle::UnitLower, Op::None, LU, Tf);
    adjoint<T>(ctx, Tf, U);
    copy_triangle<T>(ctx, U, Tf);
    negate<T>(ctx, Tf);
}

/// `reconstruct_top` in single steps, for any n. Waits.
template <class T, class D>
void reconstruct_top_in_steps(Context<D>& ctx, View<const T, D> A, View<const Sum<T, D>, D> Y, double limit,
                              View<T, D> R, View<T, D> V, View<T, D> Tf, View<Sum<T, D>, D> U, View<T, D> signs,
                              CertificateView<D> certificate) {
    using Factors = std::array<View<const Sum<T, D>, D>, 1>;
    Certificate state = read_certificate(ctx, certificate);
    if (state.refused()) return;
    const Index n = A.cols;
    Matrix<T, D> LU(ctx, n, n), upper(ctx, n, n);
    if (Y.data) {
        solve_and_gram<T>(ctx, A, Factors{Y}, LU.view(), {}, certificate);
    } else {
        copy<T>(ctx, A, LU.view());
    }
    signed_lu<T>(ctx, LU.view(), signs);
    const double growth = inverse_norm_estimate<T>(ctx, LU.view());
    state.factor_condition = -1;
    if (!(growth <= limit)) state.refuse(0, Certificate::Growth, -1);
    write_certificate(ctx, certificate, state);
    if (state.refused()) return;
    copy_triangle<T>(ctx, LU.view(), upper.view());
    multiply_upper<T, Sum<T, D>>(ctx, {}, upper.view(), U);
    reconstruct_t<T>(ctx, LU.view(), upper.view(), signs, Tf);
    flip_rows<T>(ctx, signs, R);
    copy<T>(ctx, LU.view(), V);
    store_triangle<T>(ctx, R, V);
}

}  // namespace quoin
