#pragma once

// CholeskyQR under a certificate: its limits, its chains of Gram passes, and sums over ranks.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "primitives.hpp"
#include "primitives/tuning.hpp"

namespace quoin {

/// Throws NumericalBreakdown. `column` is where CholeskyQR broke down, or −1.
[[noreturn]] inline void report_breakdown(Method method, Index column) {
    if (column >= 0) {
        throw NumericalBreakdown(
            fmt::format("{}: column {} depends numerically on those before it", to_string(method), column), column);
    }
    throw NumericalBreakdown(
        fmt::format("{}: the matrix is too ill-conditioned for a certified answer", to_string(method)), 0);
}

/// The limit of ‖I − G‖_F before the last Cholesky step. Up to it every singular value of Q₁ is in [√½, √(3/2)], so
/// that this step leaves ‖I − QᵀQ‖ = O(nu), whatever the first step did.
inline constexpr double max_final_departure = 0.5;

/// Returns the limit of κ(R₁D). A is overwritten by Q₁ = A R₁⁻¹ only below it: κ(R₁D)²u < 16n, D scaling columns to
/// unit norm. κ₂(AD)²u is about O(1) then, since κ is about √n κ₂. The Gram matrix is known to a small multiple of its
/// u, so that ‖Q₁‖² = 1 + O(κ₂²u) is O(1), and A = Q₁ R₁ is accurate to O(nu), certificate or not. A solve with a
/// larger u has the same bound with its u.
inline double max_gram_condition(Index n, const GramPrecision& known) {
    return std::sqrt(16 * static_cast<double>(n) / std::max(known.u, known.solve_u));
}

/// The limit of ‖(R D)⁻¹‖₂², D scaling R's columns to unit norm. Up to it one Cholesky step leaves ‖I − QᵀQ‖ = O(nu)
/// whatever went before. D G D has eigenvalues of at least 1/8 then.
inline constexpr double max_final_inverse_square = 8;

/// The limit of n γ ‖(R D)⁻¹‖₂², and so of ‖I − Q₁ᵀQ₁‖₂ for the exact Q₁ = A R⁻¹, if G chooses pivots. The norms of
/// columns that remain are known to √(1 ± 0.2) then.
inline constexpr double max_pivoting_departure = 0.2;

/// Decides whether A R⁻¹ is final, R from a first Gram matrix, E the error of that matrix and its factor, |D E D| <= γ:
///     ‖I − QᵀQ‖_F <= n γ ‖(R D)⁻¹‖₂²
/// It is if the last factor is at most `max_final_inverse_square`, or if the bound is nu/2.
class OnePass {
public:
    /// `pivots`: the Gram matrix chooses pivots. A certificate of the demands, or of a second pass that they allow,
    /// proves these, too.
    OnePass(Index m, Index n, const GramPrecision& known, double u, bool pivots = false)
        : n_(static_cast<double>(n)),
          gamma_((known.longest_sum + n_ + 1) * known.u),
          condition_is_norm_(known.condition_is_norm),
          pivots_(pivots),
          max_inverse_square_(std::max(max_final_inverse_square, u / 2 / gamma_)),
          max_condition_(max_gram_condition(n, known)) {
        // κ_F² = n ‖(R D)⁻¹‖_F²
        if (pivots && condition_is_norm_)
            max_condition_ = std::min(max_condition_, std::sqrt(max_pivoting_departure / gamma_));
        demands_.max_condition = max_condition_;
        if (!condition_is_norm_) {
            demands_.min_eigenvalue = 1 / max_inverse_square_;
            return;
        }
        // if random numbers need a second pass, an attempt to do without is not worth its wait
        is_tried_ = CommonTuning::norm_proves_one_pass(m, n, max_inverse_square_);
        if (!is_tried_) return;
        // D G D has eigenvalues λ of the sum n, and Σ 1/λ = κ_F²/n. So ‖(R D)⁻¹‖₂² <= κ_F²/n − (n − 1)²/n
        demands_.max_condition =
            std::min({max_condition_, known.max_condition_of_solve, std::sqrt(n_ * (max_inverse_square_ + n_ - 2))});
    }
    /// Whether `demands` require more than a second pass needs.
    bool is_tried() const { return is_tried_; }
    const GramDemands& demands() const { return demands_; }
    /// Whether a refused certificate allows a second pass: A = Q₁ R will be accurate.
    bool allows_second(const Certificate& found) const {
        return (found.reason == Certificate::Eigenvalue && !pivots_) ||
               (found.reason == Certificate::Condition && found.condition < max_condition_);
    }
    /// Whether pivots can be proved.
    bool proves_pivots() const { return n_ * gamma_ * max_inverse_square_ <= max_pivoting_departure; }
    /// Returns a bound of ‖I − QᵀQ‖_F if the demands are met.
    double departure(const Certificate& found) const {
        const double bound = condition_is_norm_ ? found.condition * found.condition / n_ - n_ + 2 : max_inverse_square_;
        return n_ * gamma_ * bound;
    }

private:
    double n_, gamma_;
    bool condition_is_norm_, pivots_, is_tried_ = true;
    double max_inverse_square_, max_condition_;
    GramDemands demands_;
};

enum class CholeskyChain {
    OfA,
    Sketched,  ///< of A R₀⁻¹, R₀ the triangle of a sketch of A, whose entries are finite and in range; Q1 has data
    /// Starts with A. If the first Gram matrix refuses A, goes on with a sketch of A; if the certificate fails and
    /// nothing follows, with a sketch of Q₁. Both only if A is tall enough.
    SketchedIfRefused,
    /// As SketchedIfRefused, for a matrix that is finite and in range: if it is Unusable, it has columns of zeros.
    SketchedIfRefusedOrZero,
};

/// The result of the Gram passes.
template <class T, class D>
struct CholeskyPasses {
    enum class State {
        Certified,  ///< R is final, and Q₁ R₂⁻¹ (or Q₁, if R₂ is empty) is orthonormal to O(nu); A holds Q₁, if stored
        Refused,   ///< the first Gram matrix refused: A is unchanged
        Improved,  ///< the certificate failed: A = Q₁ R holds with a better conditioned Q₁ (if stored)
        Unusable,  ///< A's entries are not finite, or too large or small to be squared: A is unchanged
    };
    State state = State::Refused;
    bool next_refused = false;        ///< certified, but the next step refused
    bool sketched = false;            ///< the result of a chain after a sketch
    Index column = -1;                ///< the column that broke down
    double gram_departure = -1;       ///< ‖I − Q₁ᵀQ₁‖_F, or a bound if one pass sufficed
    double perturbed_condition = -1;  ///< κ₁(R D) of the sketch, if A was perturbed
    Matrix<Sum<T, D>, D> R2;
};
/// The work that follows a chain that went through, given R₂, before the host waits. It may refuse the certificate with
/// reason Growth, and calls `request_certificate` when that is decided.
template <class T, class D>
using NextStep = std::function<void(MatrixView<const Sum<T, D>, D> R2, CertificateView<D> certificate)>;

/// The demands of a chain on its sketch.
struct SketchDemands {
    double max_condition = 0;  ///< κ₁(R D), D scaling R's columns to unit norm
    double perturbation = 0;   ///< δ that perturbs an R beyond that, relative to ‖r_j‖; 0: refuse R
};

/// The sum over the ranks that follows in a chain of passes. "If" and "Unless": the certificate of the last sum
/// decides.
enum class NextSum { Sketch, Gram, GramIfRefused, GramUnlessRefused, None };

/// Sums for an A with the rows of one of several ranks. `factor`: G, of these rows, becomes the Cholesky factor of the
/// sum of the ranks' G, and `certificate` the result of `factor_gram` for that sum, equal on all ranks, unless it is
/// refused already. `next` is the sum after this one. `levels` additions in a row make the sum; `rows` are the rows of
/// all ranks.
template <class T, class D>
struct GramOverRanks {
    std::function<void(MatrixView<Sum<T, D>, D> G, GramDemands demands, CertificateView<D> certificate, NextSum next)>
        factor;
    /// Runs `factor_sketch` on the sum of the ranks' B, equal on all ranks. `rank` is the seed of this rank's sketch.
    std::function<void(MatrixView<Sum<T, D>, D> B, SketchDemands demands, MatrixView<Sum<T, D>, D> R,
                       CertificateView<D> certificate)>
        factor_sketch;
    Index rank = 0, rows = 0, levels = 0;
};

/// Computes R (n×n) of a sketch B = Q R, or of [R; δD⁻¹] if κ₁(R D) is larger than demanded. The certificate records
/// the latter.
template <class T, class D>
void factor_sketch(Context<D>& ctx, Matrix<Sum<T, D>, D>&& B, SketchDemands demands, MatrixView<Sum<T, D>, D> R,
                   CertificateView<D> certificate);

/// Makes the passes over A. Q1 (A, or without data: nothing is stored then) receives Q₁, and R (n×n) the factor. With
/// `last` the last pass is made too, so that Q1 is Q and R₂ empty. Without it, if one pass suffices, Q₁ is A itself,
/// and R₂ is R. Waits once, or twice if one pass turned out not to suffice; `next` is called twice then, and its first
/// result is discarded. With an `order` (n×1), A is in Q1 and `chain` is OfA: `order` receives pivots P of AᵀA, and
/// A P is factored. If the certificate does not prove the pivots, the state is Refused and A is unchanged.
template <class T, class D>
CholeskyPasses<T, D> cholesky_passes(Context<D>& ctx, CholeskyChain chain, bool last, InputView<T, D> A,
                                     MatrixView<T, D> Q1, MatrixView<T, D> R, const NextStep<T, D>& next = {},
                                     const GramOverRanks<T, D>& over_ranks = {}, MatrixView<Index, D> order = {});

}  // namespace quoin
