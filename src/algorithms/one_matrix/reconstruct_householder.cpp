// Householder reconstruction (Ballard, Demmel, Grigori, Jacquelin, Nguyen, Solomonik 2014): Q₁ − S = L U for the top
// block of an orthonormal Q, S a diagonal of signs.

#include <array>

#include "algorithms/one_matrix/reconstruct_householder.hpp"
#include "algorithms/shared/copies.hpp"
#include "devices.hpp"

namespace quoin {

namespace {

/// Reconstructs reflectors of Q = Q₁R₂⁻¹ (R2 may have no data: I) with orthonormal columns, Q₁ in A. A receives V below
/// its diagonal, Tf (n×n) T; R (n×n) takes the rows' signs, given in `signs` (n×1), and goes above V. Does nothing if
/// the certificate is refused. Refuses it with reason Growth, and leaves A and R alone, if V and T would not be
/// accurate. Requests the certificate once that is decided. May wait (`reconstruct_top`).
template <class T, class D>
void reconstruct_if_certified(Context<D>& ctx, MatrixView<T, D> A, MatrixView<const Sum<T, D>, D> R2,
                              MatrixView<T, D> R, MatrixView<T, D> Tf, MatrixView<T, D> signs,
                              CertificateView<D> certificate) {
    using Factors = std::array<MatrixView<const Sum<T, D>, D>, 1>;
    const Index n = A.cols;
    const auto V1 = A.row_block({0, n});
    const double limit = max_inverse_norm(n);
    Matrix<Sum<T, D>, D> U(ctx, n, n), UR2;
    // Q₁ − S = L U,  V₁ = L
    reconstruct_top<T>(ctx, V1, R2, limit, R, V1, Tf, U.view(), signs, certificate);
    request_certificate(ctx, certificate);
    // V₂ = Q₂ U⁻¹ = A₂ (U R₂)⁻¹
    if (R2.data) {
        UR2 = Matrix<Sum<T, D>, D>(ctx, n, n);
        multiply_upper<Sum<T, D>>(ctx, U.view(), R2, UR2.view(), certificate);
    }
    // the solve includes the last rows of V₁, which are put aside, if V₂ alone would not start at a boundary of the
    // memory
    const Range before{Tuning<D>::aligned_start(A.rows, n), n};
    const auto X = A.row_block({before.begin, A.rows}), L = A.row_block(before);
    const Matrix<T, D> aside = before.size() > 0 ? copy_of<T, D>(ctx, MatrixView<const T, D>(L)) : Matrix<T, D>();
    solve_and_gram<T>(ctx, X, Factors{R2.data ? UR2.view() : U.view()}, X, {}, certificate);
    if (before.size() > 0) copy<T>(ctx, aside.view(), L);
    drop_unit_reflectors<T>(ctx, A, R, Tf, signs, certificate);
}

/// Computes reflectors after a refused reconstruction: A := Q₁ R₂⁻¹ = H R', V and T of H, and R := R' R above V.
template <class T, class D>
void factor_q_by_householder(Context<D>& ctx, MatrixView<T, D> A, MatrixView<const Sum<T, D>, D> R2, MatrixView<T, D> R,
                             MatrixView<T, D> Tf) {
    const Index n = A.cols;
    const auto A_top = A.row_block({0, n});
    if (R2.data) solve_and_gram<T>(ctx, A, std::array<MatrixView<const Sum<T, D>, D>, 1>{R2}, A, {});
    factor_panel<T>(ctx, A, Tf);
    Matrix<T, D> R1(ctx, n, n);
    copy_triangle<T>(ctx, A_top, R1.view());
    const auto square = R.col_block({0, n});
    multiply_upper<T>(ctx, R1.view(), square, square);
    multiply_triangle<T>(ctx, Side::Left, Triangle::Upper, Op::None, R1.view(), R.col_block({n, R.cols}));
    store_triangle<T>(ctx, square, A_top);
}

}  // namespace

template <class T, class D>
CholeskyPasses<T, D> factor_by_cholesky(Context<D>& ctx, CholeskyChain chain, MatrixView<T, D> A, MatrixView<T, D> Tf,
                                        MatrixView<T, D> R, OverlappedWork& overlapped) {
    Matrix<T, D> signs(ctx, A.cols, 1);
    auto passes = cholesky_passes<T, D>(ctx, chain, false, A, A, R, [&](auto R2, auto certificate) {
        reconstruct_if_certified<T, D>(ctx, A, R2, R, Tf, signs.view(), certificate);
        overlapped();
    });
    if (passes.next_refused) factor_q_by_householder<T, D>(ctx, A, passes.R2.view(), R, Tf);
    return passes;
}

template <class T, class D>
void reconstruct_householder(Context<D>& ctx, MatrixView<T, D> A, MatrixView<T, D> R, MatrixView<T, D> Tf) {
    const Index n = A.cols;
    Matrix<T, D> signs(ctx, n, 1);
    Matrix<Certificate, D> state(ctx, 1, 1);
    write_certificate(ctx, state.view(), {});
    reconstruct_if_certified<T, D>(ctx, A, {}, R.col_block({0, n}), Tf, signs.view(), state.view());
    if (receive_certificate(ctx, state.view()).refused()) {
        factor_q_by_householder<T, D>(ctx, A, {}, R, Tf);
    } else {
        flip_rows<T>(ctx, signs.view(), R.col_block({n, R.cols}));
    }
}

#define QUOIN_INSTANTIATE(T, D)                                           \
    template decltype(factor_by_cholesky<T, D>) factor_by_cholesky<T, D>; \
    template decltype(reconstruct_householder<T, D>) reconstruct_householder<T, D>;
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
