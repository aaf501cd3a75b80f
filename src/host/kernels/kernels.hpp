#pragma once

// The operations on cache-resident blocks that the host primitives are made of.
//
// All matrices are column-major; no operand may overlap an output. Every kernel is sequential, and the bits of its
// result depend on its operands alone.
//
//   inner    C += AᵀB                the matrix-vector products of a set of reflectors, Gram matrices
//                A: k×m, B: k×n, C: m×n; reduces over the long dimension k, lanes along k. AᴴB of complex numbers
//   outer    C −= A B                the rank-k updates
//                A: m×k, B: k×n, C: m×n; lanes along the long dimension m
//   solve    X := X R⁻¹, n <= solve_width columns of X at once, R upper triangular
//   scale    x := alpha x
//   reflect  x := alpha x, C −= x w  for n <= reflect_width columns of C: a reflector and its update in one sweep
//   add_groups   y(to) ±= x, 32 rows after 32 rows, each to four places: a column of a sketch
//   transpose  B := Aᵀ               row-major blocks into column-major ones
//                A: m×n, B: n×m; lanes along n
//   largest  max |x_i|, by its bits
//   gather_lanes, scatter_lanes, factor_lanes, form_lanes, apply_lanes, solve_lanes
//            A = QR, the thin Q, op(Q) C and least squares of `lanes` matrices at once, one a lane: element (i, j) of
//            all at X + (i + j·ld)·lanes, row i of tau at tau + i·lanes
//
// Both products do 2mnk flops and keep a tile of C in registers: inner 4×6 vectors of partial sums, outer 3 vectors × 8
// columns (AVX-512; see the traits of each instruction set). Each loads 10 or 11 vectors for 24 fused multiply-adds, so
// they are bound by arithmetic as long as the operands come from the L1 and L2 caches: callers keep k (inner) and m
// (outer) to blocks of `block_rows`.

#include <complex>
#include <cstdint>
#include <type_traits>

#include "quoin/matrix.hpp"
#include "quoin/scalar.hpp"

namespace quoin::host {

inline constexpr Index solve_width = 8, reflect_width = 8;

/// Additions of `inner` in a row, beyond which a sum is cut: d equal terms in one chain err by up to d/3 roundings of
/// the same sign (docs/algorithms.md, section 6). A block of `block_rows` in AVX-512's vectors is one chain.
inline constexpr Index longest_chain = 64;

/// Columns that the kernels of the lanes work on at once: of matrices of 32 rows they stay in the L1 cache while every
/// reflector passes over them.
inline constexpr Index lane_block = 8;

/// Rows of the matrices that `factor_tiny` keeps in registers.
inline constexpr Index tiny_rows = 4;

/// The bits of |x|. They are ordered as the magnitudes, with Inf and then NaN above every number, so that one pass for
/// their maximum finds the largest entry and every entry that is not finite.
template <class T>
using MagnitudeBits = std::conditional_t<std::is_same_v<T, double>, std::int64_t, std::int32_t>;

/// The four places to which `add_groups` adds 32 rows, and their signs. The places of a group do not overlap.
template <class T>
struct GroupPlaces {
    Index to[4];
    Real<T> sign[4];
};

/// Kernels that every scalar type has.
template <class T>
struct BlockKernels {
    const char* instruction_set;
    void (*inner)(Index m, Index n, Index k, const T* A, Index lda, const T* B, Index ldb, T* C, Index ldc);
    /// As inner with A = B, but only tiles that meet the upper triangle are touched: mn(n+1) flops, not 2mn².
    void (*inner_upper)(Index n, Index k, const T* A, Index lda, T* C, Index ldc);
    void (*outer)(Index m, Index n, Index k, const T* A, Index lda, const T* B, Index ldb, T* C, Index ldc);
    void (*solve)(Index m, Index n, T* X, Index ldx, const T* R, Index ldr);
    void (*scale)(Index m, T alpha, T* x);
    void (*reflect)(Index m, Index n, T alpha, T* x, const T* w, T* C, Index ldc);
    /// y(to_k + i) += sign_k row_signs_i x_i, i < 32 and k < 4, for each of `count` groups.
    void (*add_groups)(Index count, const T* x, const Real<T>* row_signs, const GroupPlaces<T>* places, T* y);
    void (*transpose)(Index m, Index n, const T* A, Index lda, T* B, Index ldb);
};

template <class T>
struct Kernels : BlockKernels<T> {
    MagnitudeBits<T> (*largest)(Index m, const T* x);
    Index lanes;
    /// X (m×n) := the matrix of each lane l, whose entry (i, j) is a[l·stride + i·row_stride + j·col_stride]; and back,
    /// zeros where i > j + diagonal.
    void (*gather_lanes)(Index m, Index n, Index ld, const T* a, Index stride, Index row_stride, Index col_stride,
                         T* X);
    void (*scatter_lanes)(Index m, Index n, Index ld, Index diagonal, const T* X, T* b, Index stride, Index row_stride,
                          Index col_stride);
    /// Columns [first, end) of X, `lane_block` at most, := V below the diagonal, R on and above it, and their entries
    /// of tau, as ?geqr2, after the columns before them. e: lane_block rows of workspace. Returns the lanes with NaN or
    /// Inf, a bit each.
    unsigned (*factor_lanes)(Index m, Index first, Index end, Index ld, T* X, T* tau, int* e);
    /// Factors `count` groups of m×n matrices in memory, n <= m <= tiny_rows, as factor_lanes does. A: dense,
    /// column-major or `by_rows`, `a_stride` apart. The outputs are dense and column-major: B := V and R, `b_stride`
    /// apart, and other := tau. If `upper`, B := R and, unless `other` is null, other := the thin Q as by form_lanes.
    /// If b_stride is 0, B receives groups in the format of the lanes with ld = m, one after another, each X followed
    /// by its tau. Returns the number of groups before the first one that factor_lanes would scale or that has NaN or
    /// Inf. That group is untouched.
    Index (*factor_tiny)(Index m, Index n, Index count, const T* A, Index a_stride, bool by_rows, bool upper, T* B,
                         Index b_stride, T* other, Index other_stride);
    /// X (m×k, k <= m) := the thin Q of its reflectors, as ?org2r.
    void (*form_lanes)(Index m, Index k, Index ld, T* X, const T* tau);
    /// C (m×p) := op(Q) C, as ?orm2r; C has the ld of X.
    void (*apply_lanes)(bool transpose, Index m, Index k, Index ld, const T* X, const T* tau, Index p, T* C);
    /// A = QR, m >= n: C (m×p) := the minimiser of ‖AX − C‖ in its first n rows, norms (p rows) := the norms of the
    /// residuals. If `shortest`, C := the X of least norm with AᵀX = C(0:n, :). condition: κ₁(R), a row. All outputs of
    /// a lane are NaN if it has NaN or Inf, numbers whose squares or quotients leave the range of T, or a κ₁ of R with
    /// unit columns of 1/rcond or more. Returns these lanes, a bit each. work: n + 1 columns.
    unsigned (*solve_lanes)(bool shortest, Index m, Index n, Index ld, const T* X, const T* tau, Index p, T* C,
                            T* norms, T* condition, double rcond, T* work);
};

/// Complex numbers have only the block kernels.
template <class R>
struct Kernels<std::complex<R>> : BlockKernels<std::complex<R>> {};

/// The best kernels this CPU runs, chosen once. QUOIN_KERNELS in the environment lowers the choice: baseline, avx2 or
/// avx512; baseline, neon or sve256 on aarch64.
template <class T>
const Kernels<T>& kernels();
template <>
const Kernels<float>& kernels<float>();
template <>
const Kernels<double>& kernels<double>();
template <>
const Kernels<std::complex<float>>& kernels<std::complex<float>>();
template <>
const Kernels<std::complex<double>>& kernels<std::complex<double>>();

}  // namespace quoin::host
