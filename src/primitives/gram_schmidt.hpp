#pragma once

// Gram-Schmidt: projections of many columns at a time, and a few columns among themselves.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "primitives/gram.hpp"
#include "primitives/tuning.hpp"
#include "quoin/options.hpp"

namespace quoin {

/// S := QᵀW and W := W − Q S, for columns of norms up to 2 in Q. With `again` W has been projected before: S is small,
/// and a device may round its product more coarsely where `rounding_suffices`. 4mkp flops. A GPU takes one block of Q's
/// columns after the other where the halves of all do not fit, and waits where it is `again`, the arithmetic Corrected,
/// and W has 1024 columns.
template <class T, class D>
void block_gram_schmidt_step(Context<D>& ctx, View<const T, D> Q, View<T, D> W, View<T, D> S, Arithmetic arithmetic,
                             bool again);

/// The numbers of f32 that k rounded columns of m rows take. Rows come in runs, padded to 64 each.
constexpr Index rounded_elements(Index m, Index k) {
    return (m + 64 * (m / CommonTuning::rounded_run + 1)) * ((k + 7) / 8 * 4);
}

/// Rounds the columns of A from `first` on, a multiple of 8, to the 16 bits of FP16 or BF16, in order, into `place` of
/// `rounded_elements` numbers. The columns have norms up to 2. For many projections from one Q. Only f32 on a GPU
/// rounds, unless the plan's arithmetic is Native; the generic version keeps copies, in m·k numbers.
template <class T, class D>
void round_columns(Context<D>& ctx, Arithmetic arithmetic, View<const T, D> A, Index first, T* place);
/// `block_gram_schmidt_step` with the k columns in such a place; W has at least `min_halved` rows, as k is.
template <class T, class D>
void block_gram_schmidt_step_rounded(Context<D>& ctx, const T* place, Index k, View<T, D> W, View<T, D> S,
                                     Arithmetic arithmetic);

/// Whether a product Q S with p columns may round its operands to f16, if it is subtracted from columns of norms about
/// 1. The error is 2⁻¹¹‖S‖_F, at most 8u√p for u = 2⁻²⁴ if ‖S‖_F² = `squares` is at most 2⁻²⁰p.
constexpr bool rounding_suffices(double squares, Index p) { return squares <= 0x1p-20 * static_cast<double>(p); }

/// Returns 4u√(j + 1). If the rest of a column after j projections is at most this times the column's norm, it holds
/// nothing but their rounding errors, which act independently (Higham and Mary 2019).
template <class T>
double dependence(Index j) {
    return 2.0 * std::numeric_limits<T>::epsilon() * std::sqrt(static_cast<double>(j + 1));
}

/// ±1 by the bits of i and j, mixed as splitmix64 does.
constexpr double random_sign(Index i, Index j) {
    std::uint64_t z = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ULL +
                      static_cast<std::uint64_t>(j + 1) * 0xd1b54a32d192ed03ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return (z ^ (z >> 31)) & 1 ? 1.0 : -1.0;
}

/// A (m×n) = Q R by modified Gram-Schmidt column by column, Q in place of A:
///
///     r_jj = ‖a_j‖,   q_j = a_j / r_jj,   r_jl = q_jᵀa_l,   a_l := a_l − r_jl q_j   for l > j.
///
/// R is (k + n)×n. The last n rows are written, with zeros below their diagonal. The k rows above them hold the
/// coefficients of earlier projections of A's columns, so that ‖R(:, j)‖ is the norm of the original column j. If r_jj
/// <= dependence(k + j) ‖R(:, j)‖, column j depends on the columns before it. With `complete`, r_jj = 0 then, and a
/// unit vector of random signs, `random_sign`, becomes q_j. It is not orthogonal to anything yet; on a GPU nothing is
/// projected from it, r_jl = 0. Otherwise the certificate is refused with reason Pivot and column k + j, and A and R
/// are unspecified. 2mn² flops, n + 1 passes over A. At most Tuning<D>::gram_schmidt_base columns on a GPU.
template <class T, class D>
void orthonormalize_columns(Context<D>& ctx, View<T, D> A, View<T, D> R, bool complete, CertificateView<D> certificate);

/// The rests of columns after projections with coefficients R ((k + n)×n, k rows above the triangle).
struct Remainders {
    double least = 1;  ///< min_j r_jj / ‖R(:, j)‖, 0 for a column of zeros
    double departure = 0;  ///< Σ_j (1 − (r_jj / ‖R(:, j)‖)²): ‖R D − diag(R D)‖_F², D scaling R's columns to unit norm
    Index zeros = 0;         ///< columns with r_jj = 0
    bool dependent = false;  ///< whether one has r_jj <= dependence(k + j) ‖R(:, j)‖

    /// r_jj, ‖R(:, j)‖ and the tolerance of one column.
    void count(double kept, double whole, double tolerance) {
        const double share = kept == 0 ? 0 : kept / whole;
        least = std::min(least, share);
        departure += 1 - share * share;
        zeros += kept == 0;
        dependent |= kept <= tolerance * whole;
    }
};
/// Waits for them.
template <class T, class D>
Remainders inspect_remainders(Context<D>& ctx, View<const T, D> R);

}  // namespace quoin
