#pragma once

// Chains of Gram steps and the triangles that come of them: Cholesky QR and Householder reconstruction.

#include <limits>
#include <span>

#include "primitives/context.hpp"

namespace quoin {

/// The state of a chain of Gram steps. Steps write it where they run, so that a whole chain is enqueued on a GPU and
/// its result is read once. The first demand that is not met refuses the certificate; later steps then do nothing.
struct Certificate {
    enum Reason : int {
        Valid,
        Unusable,    ///< a column's square sum is not finite, or within u² of over- or underflow
        Trace,       ///< ‖Q‖_F² is too large
        Departure,   ///< ‖I − QᵀQ‖_F is too large
        Pivot,       ///< a pivot is not positive and finite
        Condition,   ///< κ(R D) is too large
        Eigenvalue,  ///< the smallest eigenvalue of D G D is too small
        Growth,      ///< ‖(Q₁ − S)⁻¹‖ is too large
    };
    Reason reason = Valid;
    int step = 0;           ///< that refused it
    Index column = -1;      ///< where the reason names one
    double departure = -1;  ///< ‖I − G‖_F of the last Gram matrix
    double condition = -1;  ///< κ(R D), where a step demanded it
    /// κ_F(R D) of the factor that X := A R⁻¹ takes next, or a bound of it; −1 where it is not known, as on the host.
    double factor_condition = -1;

    /// The sketched matrix is numerically rank-deficient. R is the factor of a slightly perturbed sketch, and the
    /// caller must perturb A in the same way.
    bool perturbed = false;

    constexpr bool refused() const { return reason != Valid; }
    constexpr bool factor_has(double max_condition) const {
        return factor_condition >= 0 && factor_condition <= max_condition;
    }
    constexpr void refuse(int step_, Reason reason_, Index column_) {
        step = step_;
        reason = reason_;
        column = column_;
    }
};
/// A 1×1 view of a certificate in D's memory, which step 0 makes valid; one without data is always valid.
template <class D>
using CertificateView = MatrixView<Certificate, D>;
/// Returns the certificate of the steps so far. Waits for them.
template <class D>
Certificate read_certificate(Context<D>& ctx, CertificateView<D> certificate);
/// Requests a copy of the certificate now, to be received later without waiting for steps enqueued in between. One
/// request at a time; a read of the same certificate in between does no harm.
template <class D>
void request_certificate(Context<D>& ctx, CertificateView<D> certificate);
template <class D>
Certificate receive_certificate(Context<D>& ctx, CertificateView<D> certificate);
/// Sets what the steps will find.
template <class D>
void write_certificate(Context<D>& ctx, CertificateView<D> certificate, Certificate state);

/// A certificate as numbers (certificate_size×1), for a message, and back.
inline constexpr Index certificate_size = 7;
template <class T, class D>
void pack_certificate(Context<D>& ctx, CertificateView<D> certificate, View<T, D> numbers);
template <class T, class D>
void unpack_certificate(Context<D>& ctx, View<const T, D> numbers, CertificateView<D> certificate);
/// On either device: numbers[i] of a certificate, and the certificate.
template <class T>
constexpr void write_numbers(const Certificate& c, T* numbers) {
    numbers[0] = static_cast<T>(c.reason);
    numbers[1] = static_cast<T>(c.step);
    numbers[2] = static_cast<T>(c.column);
    numbers[3] = static_cast<T>(c.departure);
    numbers[4] = static_cast<T>(c.condition);
    numbers[5] = static_cast<T>(c.factor_condition);
    numbers[6] = static_cast<T>(c.perturbed);
}
template <class T>
constexpr Certificate read_numbers(const T* numbers) {
    return {static_cast<Certificate::Reason>(static_cast<int>(numbers[0])),
            static_cast<int>(numbers[1]),
            static_cast<Index>(numbers[2]),
            numbers[3],
            numbers[4],
            numbers[5],
            numbers[6] != 0};
}

/// How well `solve_and_gram` knows G: |G − XᵀX| <= γ |X|ᵀ|X| entry by entry, γ = longest_sum · u.
struct GramPrecision {
    double u = 0;                    ///< unit roundoff of its products and sums
    double longest_sum = 1;          ///< additions in a row
    bool condition_is_norm = false;  ///< `factor_gram` finds κ_F(R D), not an estimate of κ₁
    /// κ_F(R D) up to which A R⁻¹ of one factor is as orthonormal as κ_F² u of the Gram matrix allows.
    double max_condition_of_solve = std::numeric_limits<double>::infinity();
    double solve_u = u;  ///< unit roundoff of A R⁻¹ beyond
    /// Whether |A − X R| = O(u) |X||R|, X = A R⁻¹, for every R, not only while u κ² of its diagonal blocks is O(1).
    bool solves_any_triangle = true;
};
template <class T, class D>
GramPrecision gram_precision(Context<D>& ctx, Index m, Index n);

/// X := A P Y₁⁻¹ Y₂⁻¹ … (each n×n upper triangular; none: X = A P), row block by row block in cache. X may be A, or
/// null data: nothing is stored then. P is `order` (n×1), or I if that has no data. With an order X is A, and there
/// are a factor and a certificate. Where G has data, G := XᵀX (upper triangle, zeros below); it is written after
/// the last use of the factors and may be one of them. With a refused certificate X stays as it is and G is
/// unspecified. mn² flops a factor, mn² for G. A GPU waits where there are factors, a certificate and more than 192
/// columns; it may leave a bound of the factor's condition in the certificate.
template <class T, class D>
void solve_and_gram(Context<D>& ctx, Input<T, D> A, std::span<const View<const Sum<T, D>, D>> factors, View<T, D> X,
                    View<Sum<T, D>, D> G, CertificateView<D> certificate = {}, View<const Index, D> order = {});

/// Between these, squares of T and sums of them keep all their bits.
template <class T>
inline constexpr double smallest_square = std::numeric_limits<T>::min() /
                                          (std::numeric_limits<T>::epsilon() * std::numeric_limits<T>::epsilon() / 4);
template <class T>
inline constexpr double largest_square = std::numeric_limits<T>::max() * (std::numeric_limits<T>::epsilon() / 2);

/// The demands of one step of a chain on its Gram matrix G, in this order, after a diagonal of usable squares of T.
struct GramDemands {
    static constexpr double any = std::numeric_limits<double>::infinity();
    int step = 0;  ///< 0 begins a chain: the certificate is valid, whatever it was
    double max_trace = any;
    double max_departure = any;  ///< ‖I − G‖_F
    double max_condition = any;  ///< κ(R D), D scaling R's columns to unit norm
    double min_eigenvalue = 0;   ///< λ, of D G D: G − λ diag(G) has a Cholesky factor

    constexpr bool asks_condition() const { return max_condition < any; }
};

/// G (upper triangle) = RᵀR if `demands` are met. Where they are not the certificate is refused, and R is unspecified,
/// zeros below its diagonal or not, unless κ or the eigenvalue alone was at fault. Does nothing with a refused
/// certificate. R may be G. n³/3 flops, as much more for a condition, and for an eigenvalue.
///
/// κ(R D) is κ₁ or an estimate of it from below (Hager 1984, Higham 1988) on the host, and κ_F from (R D)⁻¹ itself on a
/// GPU: all of them lie between κ₂ and nκ₂.
template <class T, class D>
void factor_gram(Context<D>& ctx, View<Sum<T, D>, D> G, GramDemands demands, View<Sum<T, D>, D> R,
                 CertificateView<D> certificate);

/// to := S R for upper triangular S and R, zeros below them; S without data: to := R. `to` may be R. Nothing with a
/// refused certificate. n³/3 flops. T and P are T or Sum<T, D>; a GPU sums in double and rounds once, and waits where
/// there is a certificate and more than 256 columns.
template <class T, class P = T, class D>
void multiply_upper(Context<D>& ctx, View<const T, D> S, View<const T, D> R, View<P, D> to,
                    CertificateView<D> certificate = {});

/// For the top block Q = A Y⁻¹ of orthonormal columns (Y upper triangular, or without data: Q = A): Q − diag(signs) = L
/// U, T = −U S L⁻ᵀ, V := L (V may be A), R := S R, written above L as well. All n×n, U without zeros below. The
/// condition of U Y, the factor of the solve that follows, is not known. Refuses the certificate (Growth), and leaves V
/// and R as they were, where ‖(Q − S)⁻¹‖ > limit: the Frobenius norm in one step on a GPU up to 128 columns, an
/// estimate of the 1-norm elsewhere (generic/reconstruct_top.hpp), which waits.
template <class T, class D>
void reconstruct_top(Context<D>& ctx, View<const T, D> A, View<const Sum<T, D>, D> Y, double limit, View<T, D> R,
                     View<T, D> V, View<T, D> Tf, View<Sum<T, D>, D> U, View<T, D> signs,
                     CertificateView<D> certificate);

/// Every reflector of V (m×n, below the diagonal of A) with v = e_j exactly, which is I − 2e_je_jᵀ, becomes I: row and
/// column j of Tf := 0, signs_j := −signs_j, and row j of R (n×n) and of A's upper triangle := minus itself. The other
/// reflectors have 0 in row j or act before: Q loses the sign of its column j alone. Nothing with a refused
/// certificate.
template <class T, class D>
void drop_unit_reflectors(Context<D>& ctx, View<T, D> A, View<T, D> R, View<T, D> Tf, View<T, D> signs,
                          CertificateView<D> certificate);

}  // namespace quoin
