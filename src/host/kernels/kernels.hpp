#pragma once

// The operations on cache-resident blocks that the host primitives and the tangent dynamics are made of.
//
// All matrices are column-major; no operand may overlap an output. Every kernel is sequential, and the bits of its
// result depend on its operands alone.
//
//   inner    C += AᵀB                the matrix-vector products of a set of reflectors, Gram matrices
//                A: k×m, B: k×n, C: m×n; reduces over the long dimension k, lanes along k
//   outer    C −= A B                the rank-k updates
//                A: m×k, B: k×n, C: m×n; lanes along the long dimension m
//   solve    X := X R⁻¹, n <= solve_width columns of X at once, R upper triangular
//   scale    x := alpha x
//   couple   F_i += Δ, F_j −= Δ, Δ = α(X_i − X_j) + β r rᵀ(X_i − X_j), for each pair (i, j) of a list: the derivative of
//            central forces times `couple_width` vectors at once
//                X, F: d rows a particle, each row the entries of all vectors, consecutive; lanes along the vectors
//
// Both products do 2mnk flops and keep a tile of C in registers: inner 4×6 vectors of partial sums, outer 3 vectors × 8
// columns (AVX-512; see the traits of each instruction set). Each loads 10 or 11 vectors for 24 fused multiply-adds, so
// they are bound by arithmetic as long as the operands come from the L1 and L2 caches: callers keep k (inner) and m
// (outer) to blocks of `block_rows`.

#include "quoin/matrix.hpp"

namespace quoin::host {

inline constexpr Index solve_width = 8;

/// Additions of `inner` in a row, beyond which a sum is cut: d equal terms in one chain err by up to d/3 roundings of the
/// same sign (docs/algorithms.md, section 6). A block of `block_rows` in AVX-512's vectors is one chain.
inline constexpr Index longest_chain = 64;

/// Vectors that `couple` takes at once: a row is one line of a cache.
template <class T>
inline constexpr Index couple_width = 64 / sizeof(T);

/// What of a pair of particles `couple` needs.
template <class T>
struct Coupling {
    Index i, j;
    T alpha, beta, r[3];  ///< r: of d components
};

template <class T>
struct Kernels {
    const char* instruction_set;
    void (*inner)(Index m, Index n, Index k, const T* A, Index lda, const T* B, Index ldb, T* C, Index ldc);
    /// As inner with A = B, but only tiles that meet the upper triangle are touched: mn(n+1) flops, not 2mn².
    void (*inner_upper)(Index n, Index k, const T* A, Index lda, T* C, Index ldc);
    void (*outer)(Index m, Index n, Index k, const T* A, Index lda, const T* B, Index ldb, T* C, Index ldc);
    void (*solve)(Index m, Index n, T* X, Index ldx, const T* R, Index ldr);
    void (*scale)(Index m, T alpha, T* x);
    /// 1 <= d <= 3.
    void (*couple)(Index count, const Coupling<T>* pairs, int d, const T* X, T* F);
};

/// The best kernels this CPU runs, chosen once. QUOIN_KERNELS=baseline|avx2|avx512 in the environment lowers the choice.
template <class T>
const Kernels<T>& kernels();

}  // namespace quoin::host
