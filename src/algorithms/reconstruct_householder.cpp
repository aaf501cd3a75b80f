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

/// Q − S = L U, T = −U S L⁻ᵀ, V := L with S R above it, R := S R: `reconstruct_top` in single steps. False, and R as it was,
/// where ‖(LU)⁻¹‖ is beyond the limit.
template <class T, class D>
bool reconstruct_top_in_steps(Context<D>& ctx, MatrixView<const T, D> Q, double limit, MatrixView<T, D> R,
                              MatrixView<T, D> V, MatrixView<T, D> Tf, MatrixView<Sum<T, D>, D> U,
                              MatrixView<T, D> signs) {
    const Index n = Q.cols;
    copy<T>(ctx, Q, V);
    signed_lu<T>(ctx, V, signs);
    if (!(inverse_norm_estimate<T>(ctx, V) <= limit)) return false;
    Matrix<T, D> upper(ctx, n, n), Tt(ctx, n, n);
    copy_triangle<T>(ctx, V, upper.view());
    multiply_upper<T>(ctx, {}, upper.view(), U);
    // Tᵀ = −L⁻¹ S Uᵀ
    transpose<T>(ctx, upper.view(), Tf);
    flip_rows<T>(ctx, signs, Tf);
    solve_triangle<T>(ctx, Triangle::UnitLower, Op::None, V, Tf);
    transpose<T>(ctx, Tf, Tt.view());
    copy_triangle<T>(ctx, Tt.view(), Tf);
    negate<T>(ctx, Tf);
    flip_rows<T>(ctx, signs, R);
    store_triangle<T>(ctx, R, V);
    return true;
}

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
void reconstruct_householder(Context<D>& ctx, MatrixView<T, D> A, MatrixView<const Sum<T, D>, D> R2, MatrixView<T, D> R,
                             MatrixView<T, D> Tf) {
    using Factors = std::array<MatrixView<const Sum<T, D>, D>, 1>;
    const Index n = A.cols;
    const auto A_top = A.row_block({0, n}), A_rest = A.row_block({n, A.rows}), R_square = R.col_block({0, n});
    const double limit = inverse_norm_limit * std::sqrt(static_cast<double>(n));
    Matrix<T, D> top(ctx, n, n), signs(ctx, n, 1);
    Matrix<Sum<T, D>, D> U(ctx, n, n);
    Matrix<Verdict, D> verdict;
    Gate<D> gate = {};
    // Q₁ − S = L U
    Matrix<T, D> Q1;
    if (R2.data) {
        Q1 = Matrix<T, D>(ctx, n, n);
        solve_and_gram<T>(ctx, A_top, Factors{R2}, Q1.view(), {});
    }
    const MatrixView<const T, D> Q = R2.data ? Q1.view() : A_top;
    bool accepted = true;
    if (n <= Tuning<D>::most_top_cols) {
        if constexpr (Tuning<D>::most_top_cols > 0) {
            verdict = Matrix<Verdict, D>(ctx, 1, 1);
            gate = verdict.view();
            reconstruct_top<T>(ctx, Q, limit, R_square, top.view(), Tf, U.view(), signs.view(), gate);
        }
    } else {
        accepted = reconstruct_top_in_steps<T, D>(ctx, Q, limit, R_square, top.view(), Tf, U.view(), signs.view());
    }
    if (accepted) {
        // V₂ = Q₂ U⁻¹ = A₂ (U R₂)⁻¹
        Matrix<Sum<T, D>, D> UR2;
        if (R2.data) {
            UR2 = Matrix<Sum<T, D>, D>(ctx, n, n);
            multiply_upper<Sum<T, D>>(ctx, U.view(), R2, UR2.view(), gate);
        }
        solve_and_gram<T>(ctx, A_rest, Factors{R2.data ? UR2.view() : U.view()}, A_rest, {}, gate);
        if (gate.data) accepted = !read_gate(ctx, gate).closed();
    }
    if (!accepted) {
        factor_anew<T, D>(ctx, A, R2, R, Tf);
        store_triangle<T>(ctx, R_square, A_top);
        return;
    }
    // V₁ = L, and A = Q R = (Q S)(S R)
    copy<T>(ctx, top.view(), A_top);
    if (R.cols > n) flip_rows<T>(ctx, signs.view(), R.col_block({n, R.cols}));
}

#define QUOIN_INSTANTIATE(T, D)                                                                                \
    template void reconstruct_householder<T, D>(Context<D>&, MatrixView<T, D>, MatrixView<const Sum<T, D>, D>, \
                                                MatrixView<T, D>, MatrixView<T, D>);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
