#pragma once

// Sequential compact WY mathematics on blocks that one core holds in its caches. Everything that the host does with
// reflectors, leaves, tree nodes and panels alike, is made of the three operations of this file.
//
// A block reflector is H = I − V T Vᵀ = H₁H₂…H_k, T upper triangular (k×k), in one of two shapes of V (ᵀ is ᴴ of
// complex numbers):
//
//      leaf (geqrt)           stacked (tpqrt)
//     ┌ 1       ┐  ┐         ┌ 1       ┐  ┐
//     │ v 1     │  │ top: L  │   1     │  │ top: I, not stored
//     │ v v 1   │  ┘ (k×k)   │     1   │  ┘
//     │ v v v   │  ┐         │ v v v   │  ┐
//     │ v v v   │  │ V (h×k) │ v v v   │  │ V (h×k)
//     └ v v v   ┘  ┘         └ v v v   ┘  ┘
//
// It acts on C = [C_top; C_rest], C_top k×p and C_rest h×p, which may lie in different places.

#include <algorithm>
#include <cmath>
#include <limits>

#include "host/kernels/kernels.hpp"
#include "host/tuning.hpp"
#include "quoin/scalar.hpp"

namespace quoin::host {

/// Rows that the kernels sweep at once.
template <class T>
inline constexpr Index block_rows = Tuning<Host>::block_column_bytes / sizeof(T);

/// Rows at once in the products VᵀV that T is made of. Their rounding errors are the departure of I − V T Vᵀ from an
/// orthogonal matrix, and longer chains of additions have larger ones (docs/algorithms.md, section 6).
template <class T>
inline constexpr Index gram_rows = block_rows<T> / 4;

inline constexpr Index base_width = Tuning<Host>::base_width, max_by_column = Tuning<Host>::max_by_column;

template <class T>
void fill_zero(Index m, Index n, T* A, Index lda) {
    for (Index j = 0; j < n; ++j) std::fill_n(A + j * lda, m, T(0));
}

template <class T>
void copy_block(Index m, Index n, const T* A, Index lda, T* B, Index ldb) {
    for (Index j = 0; j < n; ++j) std::copy_n(A + j * lda, m, B + j * ldb);
}

/// B := A, in cache. B is column-major.
template <class T>
void load_block(const InputView<T>& A, T* B, Index ldb) {
    if (A.by_rows) return kernels<T>().transpose(A.cols, A.rows, A.data, A.ld, B, ldb);
    copy_block(A.rows, A.cols, A.data, A.ld, B, ldb);
}

/// B := the upper triangle (trapezoid) of A, exact zeros below.
template <class T>
void copy_upper(Index m, Index n, const T* A, Index lda, T* B, Index ldb) {
    for (Index j = 0; j < n; ++j) {
        const Index top = std::min(m, j + 1);
        std::copy_n(A + j * lda, top, B + j * ldb);
        std::fill_n(B + top + j * ldb, m - top, T(0));
    }
}

/// Writes only the upper triangle (trapezoid) of B.
template <class T>
void store_upper(Index m, Index n, const T* A, Index lda, T* B, Index ldb) {
    for (Index j = 0; j < n; ++j) std::copy_n(A + j * lda, std::min(m, j + 1), B + j * ldb);
}

/// B (n×m) := Aᵀ.
template <class T>
void transpose_block(Index m, Index n, const T* A, Index lda, T* B, Index ldb) {
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) B[j + i * ldb] = conjugate(A[i + j * lda]);
    }
}

/// L := the unit lower triangle of A, with its ones and zeros.
template <class T>
void copy_unit_lower(Index n, const T* A, Index lda, T* L, Index ldl) {
    for (Index j = 0; j < n; ++j) {
        std::fill_n(L + j * ldl, j, T(0));
        L[j + j * ldl] = 1;
        std::copy_n(A + j + 1 + j * lda, n - j - 1, L + j + 1 + j * ldl);
    }
}

/// C += AᵀB over any number of rows h, in blocks of rows.
template <class T>
void inner_blocked(Index m, Index n, Index h, const T* A, Index lda, const T* B, Index ldb, T* C, Index ldc,
                   Index block = block_rows<T>) {
    for (Index i = 0; i < h; i += block) {
        kernels<T>().inner(m, n, std::min(block, h - i), A + i, lda, B + i, ldb, C, ldc);
    }
}

/// C −= A B over any number of rows m, in blocks of rows.
template <class T>
void outer_blocked(Index m, Index n, Index k, const T* A, Index lda, const T* B, Index ldb, T* C, Index ldc) {
    for (Index i = 0; i < m; i += block_rows<T>) {
        kernels<T>().outer(std::min(block_rows<T>, m - i), n, k, A + i, lda, B, ldb, C + i, ldc);
    }
}

/// The rows of a leaf or a panel if one core has all of them. RowTeam::Rows (row_team.hpp) is for several cores.
template <class T>
struct AllRows {
    static constexpr bool are_shared = false;
    static constexpr bool leads() { return true; }  ///< whether the rows at the top are this core's
    static constexpr Range own(Index h) { return {0, h}; }
    /// C (m×n, contiguous) += AᵀB over the last h rows, `at_once` rows at once. On entry C holds the sums over the rows
    /// at the top. The `others` numbers after C go from the core at the top to all cores. `work` holds m·n elements.
    static void inner(Index m, Index n, Index h, const T* A, Index lda, const T* B, Index ldb, T* C, Index at_once,
                      T* /*work*/, Index /*others*/ = 0) {
        inner_blocked(m, n, h, A, lda, B, ldb, C, m, at_once);
    }
    static Real<T> largest(Real<T> x) { return x; }
};

template <class T>
struct BlockReflector {
    Index k;     // number of reflectors
    const T* L;  // k×k unit lower triangle with its ones and zeros, or null if the top of V is I
    Index ldl;
    const T* V;  // h×k
    Index ldv;
    Index h;
    const T* Tk;  // k×k upper triangular, exact zeros below
    Index ldt;
};

/// TW := T W, or TᵀW if `transpose`. All k×p and contiguous.
template <class T>
void multiply_t(bool transpose, const BlockReflector<T>& H, Index p, const T* W, T* TW) {
    const Index k = H.k;
    fill_zero(k, p, TW, k);
    if (transpose) {
        kernels<T>().inner(k, p, k, H.Tk, H.ldt, W, k, TW, k);
    } else {
        kernels<T>().outer(k, p, k, H.Tk, H.ldt, W, k, TW, k);
        for (Index i = 0; i < k * p; ++i) TW[i] = -TW[i];
    }
}

/// W += VᵀC, with V and C including their tops.
template <class T, class Rows>
void reflector_inner(const BlockReflector<T>& H, Index p, const T* C_top, Index ldct, const T* C, Index ldc, T* W,
                     T* work, Rows& rows) {
    const Index k = H.k;
    if (rows.leads() && H.L) {
        kernels<T>().inner(k, p, k, H.L, H.ldl, C_top, ldct, W, k);
    } else if (rows.leads()) {
        for (Index j = 0; j < p; ++j) {
            for (Index i = 0; i < k; ++i) W[i + j * k] += C_top[i + j * ldct];
        }
    }
    rows.inner(k, p, H.h, H.V, H.ldv, C, ldc, W, block_rows<T>, work);
}

/// C −= V W, with V and C including their tops.
template <class T, class Rows>
void reflector_outer(const BlockReflector<T>& H, Index p, const T* W, T* C_top, Index ldct, T* C, Index ldc,
                     const Rows& rows) {
    const Index k = H.k;
    if (rows.leads() && H.L) {
        kernels<T>().outer(k, p, k, H.L, H.ldl, W, k, C_top, ldct);
    } else if (rows.leads()) {
        for (Index j = 0; j < p; ++j) {
            for (Index i = 0; i < k; ++i) C_top[i + j * ldct] -= W[i + j * k];
        }
    }
    const Range own = rows.own(H.h);
    outer_blocked(own.size(), p, k, H.V + own.begin, H.ldv, W, k, C + own.begin, ldc);
}

/// C := H C, or HᵀC: W = VᵀC, W := op(T) W, C −= V W. `work` holds 2kp elements. 4(h + k)kp flops.
template <class T, class Rows = AllRows<T>>
void apply_reflector(bool transpose, const BlockReflector<T>& H, Index p, T* C_top, Index ldct, T* C, Index ldc,
                     T* work, Rows&& rows = Rows()) {
    if (H.k == 0 || p == 0) return;
    T *W = work, *TW = work + H.k * p;
    fill_zero(H.k, p, W, H.k);
    reflector_inner(H, p, C_top, ldct, C, ldc, W, TW, rows);
    multiply_t(transpose, H, p, W, TW);
    reflector_outer(H, p, TW, C_top, ldct, C, ldc, rows);
}

/// The sums of squares between which a norm may be computed without scaling: products neither overflow nor lose bits.
template <class T>
struct SafeSquares {
    static constexpr T u = std::numeric_limits<T>::epsilon() / 2;
    static constexpr T low = std::numeric_limits<T>::min() / (u * u);
    static constexpr T high = std::numeric_limits<T>::max() * (u * u);
};

/// Computes one reflector H = I − tau [1; v][1; v]ᵀ with Hᵀ [alpha; x] = [beta; 0], beta real, and applies Hᵀ to the
/// columns right of it.
///
///     alpha_row: alpha, then the p entries to its right     x: h×1, V: the k columns before it, C: the p after it
///     top: V's row of alpha
///
/// On exit alpha = beta, x = v, and g = V(:, 0:k)ᵀ[1; v] (g += Vᵀv without `top`); returns tau (0 if x = 0 and alpha is
/// real: H = I). 4hp + 2hk flops, a sweep over [V x C] and one over [x C].
template <class T, class Rows>
T reflect_column(Index h, Index k, Index p, T* alpha_row, const T* top, Index stride, T* x, Index ldx, T* g,
                 Rows& rows) {
    static_assert(max_by_column <= reflect_width);
    // xᵀ[V x C]; then, if cores share the rows, the entries of the top that all need: alpha_row and V's row
    T sums[Rows::are_shared ? 3 * max_by_column : max_by_column] = {}, part[max_by_column];
    T* const products = sums + k;
    const auto& K = kernels<T>();
    const Index count = k + 1 + p;
    const T *c0 = alpha_row, *v0 = top;
    Index c_stride = stride, v_stride = stride;
    if constexpr (Rows::are_shared) {
        T *const c = sums + count, *const v = c + 1 + p;
        if (rows.leads()) {
            for (Index j = 0; j <= p; ++j) c[j] = alpha_row[j * stride];
            for (Index i = 0; i < k; ++i) v[i] = top[i * stride];
        }
        c0 = c, v0 = v, c_stride = v_stride = 1;
    }
    T* const V = x - k * ldx;
    rows.inner(1, count, h, x, ldx, V, ldx, sums, block_rows<T>, part, 1 + p + k);
    const Range own = rows.own(h);
    T *const x_own = x + own.begin, *const C_own = x_own + ldx;
    for (Index i = 0; i < k && v0; ++i) g[i] = conjugate(v0[i * v_stride]);
    const T alpha = c0[0];
    Real<T> beta;
    T tau, scale;
    const Real<T> squares = squared_magnitude(alpha) + real_part(products[0]);
    if (squares > SafeSquares<Real<T>>::low && squares < SafeSquares<Real<T>>::high) {
        if ((!is_complex<T> || imaginary_part(alpha) == 0) && real_part(products[0]) == 0) {
            std::fill_n(x_own, own.size(), T(0));
            return 0;
        }
        beta = -std::copysign(std::sqrt(squares), real_part(alpha));
        tau = (beta - alpha) / beta;
        scale = T(1) / (alpha - beta);
        for (Index j = -k; j <= p; ++j) products[j] *= conjugate(scale);
    } else {
        Real<T> largest = std::abs(alpha);
        for (Index i = 0; i < own.size(); ++i) largest = std::max(largest, std::abs(x_own[i]));
        largest = rows.largest(largest);
        // a zero column gives H = I; NaN, which no maximum shows, and Inf propagate
        if (largest == 0 && squares == 0) return 0;
        const int e = largest > 0 && std::isfinite(largest) ? std::ilogb(largest) : 0;
        for (Index i = 0; i < own.size(); ++i) x_own[i] = times_power_of_two(x_own[i], -e);
        T xx = 0;
        rows.inner(1, 1, h, x, ldx, x, ldx, &xx, block_rows<T>, part);
        const T scaled_alpha = times_power_of_two(alpha, -e);
        if ((!is_complex<T> || imaginary_part(alpha) == 0) && real_part(xx) == 0) {
            std::fill_n(x_own, own.size(), T(0));
            return 0;
        }
        beta = -std::copysign(std::sqrt(squared_magnitude(scaled_alpha) + real_part(xx)), real_part(scaled_alpha));
        tau = (beta - scaled_alpha) / beta;
        K.scale(own.size(), T(1) / (scaled_alpha - beta), x_own);
        scale = 1;
        beta = std::scalbn(beta, e);
        std::fill_n(sums, count, T(0));
        rows.inner(1, count, h, x, ldx, V, ldx, sums, block_rows<T>, part);
    }
    for (Index i = 0; i < k; ++i) g[i] += conjugate(sums[i]);
    // w = tauᵀ (c₀ᵀ + vᵀC);  [c₀ᵀ; C] −= [1; v] w
    for (Index j = 1; j <= p; ++j) {
        const T c = c0[j * c_stride];
        products[j] = conjugate(tau) * (c + products[j]);
        if (rows.leads()) alpha_row[j * stride] = c - products[j];
    }
    if (rows.leads()) alpha_row[0] = beta;
    K.reflect(own.size(), p, scale, x_own, products + 1, C_own, ldx);
    return tau;
}

/// Column j of T from tau_j and g = V(:, 0:j)ᵀ v_j:  T(0:j, j) = −tau T(0:j, 0:j) g,  T(j, j) = tau.
template <class T>
void extend_t(Index j, T tau, const T* g, T* Tk, Index ldt) {
    for (Index i = 0; i < j; ++i) {
        T sum = 0;
        for (Index l = i; l < j; ++l) sum += Tk[i + l * ldt] * g[l];
        Tk[i + j * ldt] = -tau * sum;
    }
    Tk[j + j * ldt] = tau;
}

/// T₁₂ = −T₁ (V₁ᵀV₂) T₂, given G = V₁ᵀV₂ (k1×k2, contiguous) and work of k1·k2 elements.
template <class T>
void join_t(Index k1, Index k2, const T* G, T* Tk, Index ldt, T* work) {
    T* T12 = Tk + k1 * ldt;
    // work = −T₁ G;  T₁₂ = work T₂ = 0 − (−work) T₂
    fill_zero(k1, k2, work, k1);
    kernels<T>().outer(k1, k2, k1, Tk, ldt, G, k1, work, k1);
    for (Index i = 0; i < k1 * k2; ++i) work[i] = -work[i];
    fill_zero(k1, k2, T12, ldt);
    kernels<T>().outer(k1, k2, k2, work, k1, Tk + k1 + k1 * ldt, ldt, T12, ldt);
}

/// Elements of `work` that the two recursive factorizations below need for n columns.
inline Index factor_work(Index n) { return 3 * n * n + 2 * n; }

/// Columns of the left part of n that do not go one by one: base_width times a power of two, which whole registers
/// hold. V, tau and R of 100×23, f64, one core of an AMD EPYC 7003 that compilers share: 15.3 us, and 22.6 by halves;
/// 100×14: 8.3 and 10.3.
inline Index left_part(Index n) {
    return base_width * static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>((n - 1) / base_width)));
}

/// A (m×n, m >= n) = H R, recursively (Elmroth and Gustavson 2000): V below the diagonal, R on and above it, T n×n
/// upper triangular with exact zeros below. 2mn² − 2n³/3 flops for V and R, mn² more for T. T and `work` are each
/// core's own.
template <class T, class Rows = AllRows<T>>
void factor_leaf_block(Index m, Index n, T* A, Index lda, T* Tk, Index ldt, T* work, Rows&& rows = Rows()) {
    const auto& K = kernels<T>();
    if (n <= Tuning<Host>::column_by_column(m)) {
        fill_zero(n, n, Tk, ldt);
        for (Index j = 0; j < n; ++j) {
            T* a = A + j + j * lda;
            // g = V(:, 0:j)ᵀ v_j, where v_j starts with its 1 in row j
            T g[max_by_column] = {};
            const T tau = reflect_column(m - j - 1, j, n - j - 1, a, A + j, lda, a + 1, lda, g, rows);
            extend_t(j, tau, g, Tk, ldt);
        }
        return;
    }
    const Index n1 = left_part(n), n2 = n - n1;
    T *A12 = A + n1 * lda, *A22 = A12 + n1, *V1 = A + n1, *T2 = Tk + n1 + n1 * ldt;
    factor_leaf_block(m, n1, A, lda, Tk, ldt, work, rows);
    // [A12; A22] := H₁ᵀ[A12; A22]
    T* L = work;
    if (rows.leads()) copy_unit_lower(n1, A, lda, L, n1);
    apply_reflector(true, BlockReflector<T>{n1, L, n1, V1, lda, m - n1, Tk, ldt}, n2, A12, lda, A22, lda,
                    work + n1 * n1, rows);
    factor_leaf_block(m - n1, n2, A22, lda, T2, ldt, work, rows);
    for (Index j = 0; j < n1; ++j) std::fill_n(Tk + n1 + j * ldt, n2, T(0));
    // V₁ᵀV₂, V₂ = [0; L₂; V₂]
    T *G = work, *L2 = work + n1 * n2;
    fill_zero(n1, n2, G, n1);
    if (rows.leads()) {
        copy_unit_lower(n2, A22, lda, L2, n2);
        K.inner(n1, n2, n2, V1, lda, L2, n2, G, n1);
    }
    rows.inner(n1, n2, m - n, V1 + n2, lda, A22 + n2, lda, G, gram_rows<T>, L2);
    join_t(n1, n2, G, Tk, ldt, work + n1 * n2);
}

/// [R; B] = H [R'; 0] for R n×n upper triangular and B h×n, recursively: V overwrites B, R' overwrites R.
/// 2hn² flops for V and R, hn² more for T.
template <class T>
void factor_stacked_block(Index h, Index n, T* R, Index ldr, T* B, Index ldb, T* Tk, Index ldt, T* work) {
    if (n <= Tuning<Host>::column_by_column(h)) {
        fill_zero(n, n, Tk, ldt);
        for (Index j = 0; j < n; ++j) {
            T g[max_by_column] = {};
            AllRows<T> rows;
            const T tau = reflect_column(h, j, n - j - 1, R + j + j * ldr, static_cast<const T*>(nullptr), ldr,
                                         B + j * ldb, ldb, g, rows);
            extend_t(j, tau, g, Tk, ldt);
        }
        return;
    }
    const Index n1 = left_part(n), n2 = n - n1;
    T *R12 = R + n1 * ldr, *R22 = R12 + n1, *B2 = B + n1 * ldb, *T2 = Tk + n1 + n1 * ldt;
    factor_stacked_block(h, n1, R, ldr, B, ldb, Tk, ldt, work);
    // [R12; B2] := H₁ᵀ[R12; B2]
    apply_reflector(true, BlockReflector<T>{n1, nullptr, 0, B, ldb, h, Tk, ldt}, n2, R12, ldr, B2, ldb, work);
    factor_stacked_block(h, n2, R22, ldr, B2, ldb, T2, ldt, work);
    for (Index j = 0; j < n1; ++j) std::fill_n(Tk + n1 + j * ldt, n2, T(0));
    T* G = work;
    fill_zero(n1, n2, G, n1);
    inner_blocked(n1, n2, h, B, ldb, B2, ldb, G, n1, gram_rows<T>);
    join_t(n1, n2, G, Tk, ldt, work + n1 * n2);
}

}  // namespace quoin::host
