#pragma once

// One leaf or one tree node, sequentially, in inner blocks of ib columns: the loops over block_reflector.hpp that turn
// n columns into n/ib compact WY factors (LAPACK's geqrt, tpqrt, gemqrt and tpmqrt with block size ib).
// T is ib×n: the factor of columns [c, c + ib) stands in T(:, c : c + ib).

#include "host/block_reflector.hpp"

namespace quoin::host {

/// Elements of workspace for the functions below, with n columns in the leaf and p in C.
inline Index leaf_work(Index ib, Index n, Index p) { return factor_work(ib) + ib * ib + 2 * ib * std::max(n, p); }

/// A (m×n, m >= n) = Q R (geqrt).
template <class T>
void factor_leaf(Index m, Index n, Index ib, T* A, Index lda, T* Tf, Index ldt, T* work) {
    for (Index c = 0; c < n; c += ib) {
        const Index k = std::min(ib, n - c);
        T* A11 = A + c + c * lda;
        factor_leaf_block(m - c, k, A11, lda, Tf + c * ldt, ldt, work);
        if (c + k < n) {
            T* L = work;
            copy_unit_lower(k, A11, lda, L, k);
            apply_reflector(true, BlockReflector<T>{k, L, k, A11 + k, lda, m - c - k, Tf + c * ldt, ldt}, n - c - k,
                            A11 + k * lda, lda, A11 + k + k * lda, lda, work + k * k);
        }
    }
}

/// C (m×p) := op(Q) C for Q of `factor_leaf` (gemqrt). With `staircase`, the block at column c skips the columns of C
/// left of c: they are zero in its rows while Q is formed from an upper triangular C.
template <class T>
void apply_leaf(bool transpose, bool staircase, Index m, Index n, Index ib, const T* A, Index lda, const T* Tf,
                Index ldt, Index p, T* C, Index ldc, T* work) {
    const Index blocks = (n + ib - 1) / ib;
    for (Index b = 0; b < blocks; ++b) {
        const Index c = (transpose ? b : blocks - 1 - b) * ib, k = std::min(ib, n - c);
        const Index first = staircase ? c : 0;
        const T* A11 = A + c + c * lda;
        T* L = work;
        copy_unit_lower(k, A11, lda, L, k);
        apply_reflector(transpose, BlockReflector<T>{k, L, k, A11 + k, lda, m - c - k, Tf + c * ldt, ldt}, p - first,
                        C + c + first * ldc, ldc, C + c + k + first * ldc, ldc, work + k * k);
    }
}

/// Rows of a stacked block that columns up to `last` reach, where its last l rows end on a diagonal: l = 0 is a
/// rectangle, l = h a triangle.
inline Index stacked_rows(Index l, Index h, Index last) { return std::min(h, h - l + last); }

/// [R; B] = Q [R'; 0] (tpqrt): R n×n upper triangular, B h×n with zeros below the diagonal of its last l rows.
template <class T>
void factor_stacked(Index l, Index h, Index n, Index ib, T* R, Index ldr, T* B, Index ldb, T* Tf, Index ldt, T* work) {
    for (Index c = 0; c < n; c += ib) {
        const Index k = std::min(ib, n - c), hc = stacked_rows(l, h, c + k);
        T *R11 = R + c + c * ldr, *B1 = B + c * ldb;
        factor_stacked_block(hc, k, R11, ldr, B1, ldb, Tf + c * ldt, ldt, work);
        apply_reflector(true, BlockReflector<T>{k, nullptr, 0, B1, ldb, hc, Tf + c * ldt, ldt}, n - c - k,
                        R11 + k * ldr, ldr, B1 + k * ldb, ldb, work);
    }
}

/// [C_top; C] := op(Q) [C_top; C] for Q of `factor_stacked` (tpmqrt). C_top n×p, C h×p; staircase as in `apply_leaf`.
template <class T>
void apply_stacked(bool transpose, bool staircase, Index l, Index h, Index n, Index ib, const T* V, Index ldv,
                   const T* Tf, Index ldt, Index p, T* C_top, Index ldct, T* C, Index ldc, T* work) {
    const Index blocks = (n + ib - 1) / ib;
    for (Index b = 0; b < blocks; ++b) {
        const Index c = (transpose ? b : blocks - 1 - b) * ib, k = std::min(ib, n - c);
        const Index first = staircase ? c : 0;
        apply_reflector(
            transpose, BlockReflector<T>{k, nullptr, 0, V + c * ldv, ldv, stacked_rows(l, h, c + k), Tf + c * ldt, ldt},
            p - first, C_top + c + first * ldct, ldct, C + first * ldc, ldc, work);
    }
}

}  // namespace quoin::host
