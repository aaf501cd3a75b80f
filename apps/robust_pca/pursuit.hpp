#pragma once

// Principal component pursuit: M = L + S, multipliers Y; `observed` is 0 where M is unknown; without data M is known
// everywhere. Only robust PCA has these steps.

#include <cstdint>
#include <span>

#include "primitives/context.hpp"

namespace quoin {

/// Sums that the passes of one iteration compute. They stay in the memory of their device, so that the host reads them
/// once.
struct PursuitSums {
    double sparse = 0;       ///< ‖S‖₁ over the observed entries
    double change = 0;       ///< ‖S − S'‖_F² for S' the S before
    double nonzeros = 0;     ///< of S among them
    double residual = 0;     ///< ‖Z‖_F² over the observed entries
    double multipliers = 0;  ///< ‖Y‖_F²

    void add(const PursuitSums& part) {
        sparse += part.sparse;
        change += part.change;
        nonzeros += part.nonzeros;
        residual += part.residual;
        multipliers += part.multipliers;
    }
};
/// A 1×1 view of them in D's memory.
template <class D>
using SumsView = MatrixView<PursuitSums, D>;
/// Copies the sums to the host. Waits.
template <class D>
PursuitSums read_sums(Context<D>& ctx, SumsView<D> sums);

/// X := M where observed, 0 elsewhere.
template <class T, class D>
void copy_observed(Context<D>& ctx, View<const T, D> M, View<const std::uint8_t, D> observed, View<T, D> X);

/// S := shrink(M − L + Y/μ, threshold), X := M − S + Y/μ in place of L, in one pass. Where not observed S := 0 and X :=
/// L. Sums: sparse, change, nonzeros.
template <class T, class D>
void shrink_sparse(Context<D>& ctx, View<const T, D> M, View<const T, D> Y, View<const std::uint8_t, D> observed,
                   double mu, double threshold, View<T, D> L, View<T, D> S, SumsView<D> sums);

/// Accuracy that a device must reach if it finds Σ and V by iteration. Other devices find all to u.
struct SpectrumNeeds {
    double threshold = 0;  ///< finds Σ above it and their V; below, only that Σ is below and V orthogonal
    double tolerance = 0;  ///< of X V (I − threshold Σ⁻¹)₊ Vᵀ entry by entry of V, over ‖X‖; at least u
};

/// Computes s and Vᵀ (n×n) of X (m×n) from XᵀX = VΣ²Vᵀ, summed and decomposed in double. mn² flops. Waits.
///
/// A GPU iterates up to 128 columns by Jacobi rotations (cuda/jacobi.cuh), from the orthogonal Vᵀ on entry: σ and X
/// V f(Σ) Vᵀ are right to u‖X‖ of T or √u‖X‖ of double, whichever is more, or to the needs. Beyond, or where rotations
/// do not converge, it takes `small_svd` of XᵀX.
template <class T, class D>
void gram_eigenvectors(Context<D>& ctx, View<const T, D> X, SpectrumNeeds needs, std::span<Real<T>> s, View<T, D> Vt);
/// Computes s and Vᵀ of an n×n R, which is lost, s to u‖R‖; needs and Vᵀ on entry as above. A GPU takes
/// `gram_eigenvectors` of R in f32, whose products are exact in double: √u of double is below u of f32; in f64
/// `small_svd`. Waits.
template <class T, class D>
void right_singular_vectors(Context<D>& ctx, View<T, D> R, SpectrumNeeds needs, std::span<Real<T>> s, View<T, D> Vt);

/// P := V diag(weights) Vᵀ for Vᵀ r×n. 2rn² flops. A GPU sums in double up to 6144 rows of Vᵀ.
template <class T, class D>
void weighted_projector(Context<D>& ctx, View<const T, D> Vt, std::span<const Real<T>> weights, View<T, D> P);

// A device has one of two ways to end a step, as its `PursuitTuning<D>::keeps_last_step` says: without it
// `update_low_rank_and_multipliers`, with it `update_multipliers_and_sparse`, and `multiply_right` at the end.

/// L := X P in place of X, Z = M − L − S, Y += μ Z where observed. P is symmetric. 2mn² flops, one pass.
/// Sums: residual, multipliers.
template <class T, class D>
void update_low_rank_and_multipliers(Context<D>& ctx, View<const T, D> P, View<const T, D> M, View<const T, D> S,
                                     View<const std::uint8_t, D> observed, double mu, View<T, D> X, View<T, D> Y,
                                     SumsView<D> sums);

/// `update_low_rank_and_multipliers` and the next iteration's `shrink_sparse`, which leave X and S as they are: L = X
/// P, Z = M − L − S, Y += μ Z, S' := shrink(M − L + Y/μ', t'), X' := M − S' + Y/μ', primes being `next`. P is
/// symmetric. The sums of the former go to `sums`, of the latter to `next_sums`. One pass on a GPU, with products in
/// double up to 160 columns and sums in double.
template <class T, class D>
void update_multipliers_and_sparse(Context<D>& ctx, View<const T, D> X, View<const T, D> P, View<const T, D> M,
                                   View<const T, D> S, View<const std::uint8_t, D> observed, double mu, double next_mu,
                                   double next_threshold, View<T, D> Y, View<T, D> next_X, View<T, D> next_S,
                                   SumsView<D> sums, SumsView<D> next_sums);

/// L := X P for a symmetric P (n×n). L is not X.
template <class T, class D>
void multiply_right(Context<D>& ctx, View<const T, D> X, View<const T, D> P, View<T, D> L);

}  // namespace quoin
