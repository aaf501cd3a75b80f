#pragma once

#include "quoin/apps/lyapunov.hpp"

namespace quoin {

/// Choices of covariant Lyapunov vectors. Times are rounded up to whole segments of `steps_per_qr` steps.
struct CovariantOptions {
    Index exponents = 0;     ///< p, the first p; 0: all
    double time = 100;       ///< length of the run with vectors
    double transient = 100;  ///< time before `time`, of the state only
    double alignment = 100;  ///< before `time` for Q to align, and after it for the covariant vectors
    Index steps_per_qr = 10;
    std::uint64_t seed = 1;  ///< seeds the first vectors, and the state unless the caller gave it
    Index split = 0;         ///< j of `angles`; 0: the number of positive exponents, at least 1
    Options qr{};            ///< as in `LyapunovOptions`
    /// m, the number of segments whose R and Q are held at once; 0: √K, if there are K segments. Memory is m p² + (m +
    /// K/m) n p numbers.
    Index block = 0;
    /// Called after each segment, backward in time, with the vectors at the segment's end: V (n×p), columns of norm 1.
    std::function<void(double time, std::span<const double> x, MatrixView<const double> V)> on_vectors{};
    std::function<void(double)> progress{};  ///< called after each segment with the finished share of the work
};

/// Covariant Lyapunov vectors of a run: their exponents, and the angles between them.
struct CovariantLyapunov {
    std::vector<double> exponents;  ///< p: the means of the rows of `local`
    double segment = 0;             ///< the time of a segment
    Matrix<double> local;           ///< p × K: growth rates of v_1, …, v_p in each segment, forward in time
    Index split = 0;                ///< j
    std::vector<double> angles;  ///< K: between span(v_1, …, v_j) and span(v_{j+1}, …, v_p), radians; empty if j = p
    Matrix<double> least_angles;  ///< p × p: the least angle that v_i and v_j had
};

/// Computes the covariant Lyapunov vectors of an orbit, DΦᵏ(x) v_i(x) = ±exp(λ_i(x) k h) v_i(Φᵏ(x)): each grows at its
/// own exponent, and v_1, …, v_j span the same space as Q's first j columns. With Z = DΦᵏQ_{k−1} = Q_k R_k of the
/// forward run and V_k = Q_k C_k,
///
///     C_{k−1} := R_k⁻¹ C_k D,   D scaling columns to norm 1,   λ_i = −log‖R_k⁻¹ c_i‖ / (k h)
///
/// from any upper triangular C at the end, backward (Ginelli, Poggi, Turchi, Chaté, Livi and Politi 2007; Kuptsov and
/// Parlitz 2012). The angle between the two spans is bounded away from 0 if the orbit is hyperbolic, and tangencies
/// show as angles near 0. R is not kept. The forward run leaves a checkpoint (x, Q) every m segments, and the backward
/// run recomputes R from it with the same bits. Costs twice as much as a spectrum, and p³/3 flops a segment. The result
/// has the same bits for any number of threads and any m. Blocks.
///
/// Throws as `lyapunov_spectrum`; its NumericalBreakdown for an R with too few digits advises fewer steps per QR.
///
///     auto c = covariant_lyapunov(ctx, *tangent_map(Lorenz63{}), {.time = 500});
///     // *std::ranges::min_element(c.angles): how near tangent the unstable direction and the rest became
CovariantLyapunov covariant_lyapunov(Context<Host>& ctx, TangentMap<>& system, const CovariantOptions& options = {});

/// Returns the means of `local` over consecutive, disjoint windows of `segments` columns: p × ⌊K/segments⌋ finite-time
/// exponents.
Matrix<double> finite_time_exponents(const CovariantLyapunov& f, Index segments);

}  // namespace quoin
