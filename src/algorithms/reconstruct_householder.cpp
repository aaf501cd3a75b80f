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

/// `reconstruct_top` in single steps, for any n. Waits.
template <class T, class D>
void reconstruct_top_in_steps(Context<D>& ctx, MatrixView<const T, D> A, MatrixView<const Sum<T, D>, D> Y, double limit,
                              MatrixView<T, D> R, MatrixView<T, D> V, MatrixView<T, D> Tf, MatrixView<Sum<T, D>, D> U,
                              MatrixView<T, D> signs, Gate<D> gate) {
    using Factors = std::array<MatrixView<const Sum<T, D>, D>, 1>;
    Verdict verdict = read_gate(ctx, gate);
    if (verdict.closed()) return;
    const Index n = A.cols;
    Matrix<T, D> LU(ctx, n, n), upper(ctx, n, n);
    if (Y.data) {
        solve_and_gram<T>(ctx, A, Factors{Y}, LU.view(), {});
    } else {
        copy<T>(ctx, A, LU.view());
    }
    signed_lu<T>(ctx, LU.view(), signs);
    if (!(inverse_norm_estimate<T>(ctx, LU.view()) <= limit)) {
        verdict.close(0, Verdict::Growth, -1);
        return write_gate(ctx, gate, verdict);
    }
    copy_triangle<T>(ctx, LU.view(), upper.view());
    reconstruct_t<T, D>(ctx, LU.view(), upper.view(), signs, Tf);
    multiply_upper<T>(ctx, {}, upper.view(), U);
    flip_rows<T>(ctx, signs, R);
    copy<T>(ctx, LU.view(), V);
    store_triangle<T>(ctx, R, V);
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
void reconstruct_behind(Context<D>& ctx, MatrixView<T, D> A, MatrixView<const Sum<T, D>, D> R2, MatrixView<T, D> R,
                        MatrixView<T, D> Tf, MatrixView<T, D> signs, Gate<D> gate) {
    using Factors = std::array<MatrixView<const Sum<T, D>, D>, 1>;
    const Index n = A.cols;
    const auto V1 = A.row_block({0, n}), V2 = A.row_block({n, A.rows});
    const double limit = inverse_norm_limit * std::sqrt(static_cast<double>(n));
    Matrix<Sum<T, D>, D> U(ctx, n, n), UR2;
    // Q₁ − S = L U,  V₁ = L
    if (n > Tuning<D>::most_top_cols) {
        reconstruct_top_in_steps<T, D>(ctx, V1, R2, limit, R, V1, Tf, U.view(), signs, gate);
    } else if constexpr (Tuning<D>::most_top_cols > 0) {
        reconstruct_top<T>(ctx, V1, R2, limit, R, V1, Tf, U.view(), signs, gate);
    }
    send_for_gate(ctx, gate);
    // V₂ = Q₂ U⁻¹ = A₂ (U R₂)⁻¹
    if (R2.data) {
        UR2 = Matrix<Sum<T, D>, D>(ctx, n, n);
        multiply_upper<Sum<T, D>>(ctx, U.view(), R2, UR2.view(), gate);
    }
    solve_and_gram<T>(ctx, V2, Factors{R2.data ? UR2.view() : U.view()}, V2, {}, gate);
    drop_unit_reflectors<T>(ctx, A, R, Tf, signs, gate);
}

template <class T, class D>
void factor_anew(Context<D>& ctx, MatrixView<T, D> A, MatrixView<const Sum<T, D>, D> R2, MatrixView<T, D> R,
                 MatrixView<T, D> Tf) {
    const Index n = A.cols;
    const auto A_top = A.row_block({0, n});
    if (R2.data) solve_and_gram<T>(ctx, A, std::array<MatrixView<const Sum<T, D>, D>, 1>{R2}, A, {});
    factor_panel<T>(ctx, A, Tf);
    Matrix<T, D> R1(ctx, n, n);
    copy_triangle<T>(ctx, A_top, R1.view());
    multiply_upper<T>(ctx, R1.view(), R, R);
    store_triangle<T>(ctx, R.col_block({0, n}), A_top);
}

template <class T, class D>
CholeskyPasses<T, D> factor_by_cholesky(Context<D>& ctx, bool shifted, MatrixView<T, D> A, MatrixView<T, D> Tf,
                                        MatrixView<T, D> R, Meanwhile& meanwhile) {
    Matrix<T, D> signs(ctx, A.cols, 1);
    auto passes = cholesky_passes<T, D>(ctx, shifted, false, A, A, R, [&](auto R2, auto gate) {
        reconstruct_behind<T, D>(ctx, A, R2, R, Tf, signs.view(), gate);
        meanwhile();
    });
    if (passes.next_refused) factor_anew<T, D>(ctx, A, passes.R2.view(), R, Tf);
    return passes;
}

template <class T, class D>
void reconstruct_householder(Context<D>& ctx, MatrixView<T, D> A, MatrixView<T, D> R, MatrixView<T, D> Tf) {
    const Index n = A.cols;
    Matrix<T, D> signs(ctx, n, 1);
    Matrix<Verdict, D> verdict(ctx, 1, 1);
    write_gate(ctx, verdict.view(), {});
    reconstruct_behind<T, D>(ctx, A, {}, R.col_block({0, n}), Tf, signs.view(), verdict.view());
    if (receive_gate(ctx, verdict.view()).closed()) {
        factor_anew<T, D>(ctx, A, {}, R, Tf);
    } else {
        flip_rows<T>(ctx, signs.view(), R.col_block({n, R.cols}));
    }
}

#define QUOIN_INSTANTIATE(T, D)                                                                                      \
    template void reconstruct_t<T, D>(Context<D>&, MatrixView<const T, D>, MatrixView<const T, D>,                   \
                                      MatrixView<const T, D>, MatrixView<T, D>);                                     \
    template void reconstruct_behind<T, D>(Context<D>&, MatrixView<T, D>, MatrixView<const Sum<T, D>, D>,            \
                                           MatrixView<T, D>, MatrixView<T, D>, MatrixView<T, D>, Gate<D>);           \
    template void factor_anew<T, D>(Context<D>&, MatrixView<T, D>, MatrixView<const Sum<T, D>, D>, MatrixView<T, D>, \
                                    MatrixView<T, D>);                                                               \
    template CholeskyPasses<T, D> factor_by_cholesky<T, D>(Context<D>&, bool, MatrixView<T, D>, MatrixView<T, D>,    \
                                                           MatrixView<T, D>, Meanwhile&);                            \
    template void reconstruct_householder<T, D>(Context<D>&, MatrixView<T, D>, MatrixView<T, D>, MatrixView<T, D>);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
