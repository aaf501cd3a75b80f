#pragma once

#include <cstdint>
#include <functional>

#include "quoin/qr.hpp"

namespace quoin {

/// Methods to compute M = L + S. All alternate between a shrinkage of S and a singular-value threshold of L.
enum class Pursuit {
    InexactAlm,             ///< augmented Lagrange multipliers with growing μ (Lin, Chen and Ma 2010)
    AlternatingDirections,  ///< constant μ (Yuan and Yang 2009), the iteration of Anderson et al. (2011)
    Stable,                 ///< M = L + S + Z with noise Z of a known level (Zhou, Li, Wright, Candès and Ma 2010)
};

/// Methods to compute the singular values and right singular vectors of an iterate X.
enum class ThresholdRoute {
    Auto,  ///< the faster route by measurement
    Qr,    ///< R of X by a tree of Householder factorizations (TSQR), and the SVD of R: backward stable
    Gram,  ///< eigenvectors of XᵀX, accumulated in double: error √u‖X‖, u of double
};

/// The state at the end of an iteration.
struct RobustPcaStep {
    Index iteration = 0;       ///< 1, 2, …
    double residual = 0;       ///< ‖M − L − S‖_F / ‖M‖_F over the observed entries
    double dual_residual = 0;  ///< μ‖S − S'‖_F / ‖Y‖_F, S' from the previous iteration
    double error = 0;          ///< bounded by `tolerance`: the residual; with constant μ the larger of
                               ///< both residuals; in a stable pursuit ‖S − S'‖_F / ‖M‖_F
    double objective = 0;      ///< ‖L‖_* + λ‖S‖₁; if the pursuit is stable, + μ/2 ‖M − L − S‖_F²
    Index rank = 0;            ///< of L
    Index nonzeros = 0;        ///< of S
    double mu = 0;
    double seconds = 0;  ///< since the call began
};

/// Choices of a pursuit. The defaults fit data of any scale.
template <class T, class D = Host>
struct RobustPcaOptions {
    Pursuit pursuit = Pursuit::InexactAlm;
    ThresholdRoute route = ThresholdRoute::Auto;
    double lambda = 0;        ///< weight of ‖S‖₁; 0: 1/√max(m, n) (Candès, Li, Ma and Wright 2011)
    double mu = 0;            ///< 0: 1.25/‖M‖₂, or mn/(4‖M‖₁) if μ is constant
    double noise = 0;         ///< of a stable pursuit: the standard deviation of Z's entries
    double rho = 1.5;         ///< growth factor of μ an iteration, above 1
    double tolerance = 1e-7;  ///< of the residual, and of the dual residual if μ is constant
    Index max_iterations = 1000;
    Index max_rank = 0;                            ///< of L; 0: any
    MatrixView<const std::uint8_t, D> observed{};  ///< m×n, 0: entry of M not known; no view: all are known
    MatrixView<const T, D> L{}, Y{};               ///< a warm start from an earlier result; none: zeros and the usual Y
    std::function<bool(const RobustPcaStep&)> on_step;  ///< called after each iteration; false ends the pursuit
};

/// Why a pursuit ended.
enum class PursuitEnd {
    Converged,  ///< the error is within `tolerance`
    IterationLimit,
    Stopped,  ///< by `on_step`
    Stalled,  ///< the error no longer falls: the precision of T is reached
};

/// The result of `robust_pca`: M = L + S, or L + S + Z with noise Z.
template <class T, class D = Host>
struct RobustPca {
    Matrix<T, D> L;  ///< low rank
    Matrix<T, D> S;  ///< sparse; 0 where M was not observed
    Matrix<T, D> Y;  ///< the multipliers, for a warm start
    RobustPcaStep last;
    PursuitEnd end = PursuitEnd::Converged;
    double lambda = 0;                            ///< the λ in use
    ThresholdRoute route = ThresholdRoute::Auto;  ///< the route taken, never Auto
};

/// Solves principal component pursuit: min ‖L‖_* + λ‖S‖₁ subject to L + S = M, for m×n M.
///
///     S := shrink(M − L + Y/μ, λ/μ);  X := M − S + Y/μ = QR,  R = UΣVᵀ;  L := Q U (Σ − 1/μ)₊ Vᵀ;  Y += μ(M − L − S)
///
/// A stable pursuit minimises ‖L‖_* + λ‖S‖₁ + μ/2 ‖M − L − S‖_F², μ = 1/(noise √(2 max(m, n))), by these steps with Y =
/// 0, while μ grows to that value. Then L has no rank for noise, and S only has entries that stand out from the noise.
/// L is formed as X V ((Σ − 1/μ)₊ Σ⁻¹) Vᵀ, without Q: only singular values of at least 1/μ are divisors. For m < n it
/// solves the transposed problem. Entries that are not observed are imputed from L. An iteration reads and writes four
/// m×n matrices about three times and costs 4mn² flops and an SVD of n×n, n <= m. Memory: four m×n matrices in addition
/// to M; on a GPU six, with half the traffic. One more if M is scaled by a power of two, because squares of its entries
/// would over- or underflow. Blocks until done. Throws InvalidArgument (λ, μ, ρ, tolerance or a shape out of range,
/// naming it), NonFiniteEntry, OutOfMemory, Interrupted.
///
///     auto f = robust_pca(ctx, M.view());  // f.L, f.S, f.last.rank
template <class T, class D>
RobustPca<T, D> robust_pca(Context<D>& ctx, MatrixView<const T, D> M, RobustPcaOptions<T, D> options = {});
template <class T, class D>
RobustPca<T, D> robust_pca(Context<D>& ctx, MatrixView<T, D> M, RobustPcaOptions<T, D> options = {}) {
    return robust_pca<T, D>(ctx, MatrixView<const T, D>(M), options);
}

/// Robust PCA of columns that come in windows, such as a long video's frames: M = L + S for each window, in the memory
/// of one window.
///
/// A window is pursued with up to `carried` background columns in front of its own columns. They are taken evenly from
/// the L of the previous window, which contains its own carried columns, so older columns thin out geometrically. Thus
/// the background is not forgotten, and a short window separates like a long one. (L and Y of a window do not help the
/// next one. While μ is small, S is 0 and X = M + Y/μ does not depend on L; Y belongs to its own columns.) Memory: four
/// m×(carried + w) matrices, on a GPU two more, and m×carried. For one thread at a time.
///
///     RobustPcaWindows<float> windows(m, 10);
///     while (read(windows.columns(ctx, 100))) write(windows.pursue(ctx).S());
template <class T, class D = Host>
class RobustPcaWindows {
public:
    /// Throws InvalidArgument for a negative size.
    RobustPcaWindows(Index rows, Index carried);

    /// The result of one window. The last step's objective, rank and nonzeros include the carried columns.
    struct Window {
        RobustPca<T, D> parts;  ///< of the carried columns, then the window's own
        Index carried = 0;
        /// View L and S of the window's own columns.
        MatrixView<const T, D> L() const { return parts.L.view().col_block({carried, parts.L.cols()}); }
        MatrixView<const T, D> S() const { return parts.S.view().col_block({carried, parts.S.cols()}); }
    };

    /// Returns the memory for the m×count columns of the next window, which the caller writes. Throws InvalidArgument,
    /// OutOfMemory.
    MatrixView<T, D> columns(Context<D>& ctx, Index count);
    /// Separates these columns into L and S. options.L, options.Y and options.observed must be none. Throws as
    /// `robust_pca`.
    Window pursue(Context<D>& ctx, RobustPcaOptions<T, D> options = {});

    /// Returns the background that the next window carries, m×(at most `carried`). A later run can continue with it.
    const Matrix<T, D>& background() const { return background_; }
    /// Replaces the background. Throws InvalidArgument for other rows or more columns.
    void set_background(Matrix<T, D> background);

private:
    Index rows_, carried_, count_ = 0;
    Matrix<T, D> background_;  // the carried columns
    Matrix<T, D> M_;           // the carried columns, the window's columns, spare columns
};

/// Estimates the standard deviation of the noise of columns that follow each other in time, such as a video's: the 75%
/// quantile of |m_ij − m_i,j−1| / (√2 Φ⁻¹(7/8)) over at most 2¹⁶ rows. 0 for fewer than two columns.
template <class T>
double noise_between_columns(MatrixView<const T> M);

/// "alm", "alternating", "stable".
const char* to_string(Pursuit pursuit);
/// "auto", "qr", "gram".
const char* to_string(ThresholdRoute route);
/// "converged", "iteration-limit", "stopped", "stalled".
const char* to_string(PursuitEnd end);

}  // namespace quoin
