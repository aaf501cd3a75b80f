// ?gelsy: the shortest least squares solutions, by a complete orthogonal decomposition (docs/pivoting.md).

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "lapack/abi.hpp"
#include "lapack/in_place.hpp"
#include "lapack/pivoted.hpp"
#include "lapack/solver_scaling.hpp"
#include "lapack/trapezoid.hpp"
#include "lapack/tuning.hpp"

namespace quoin::lapack {

namespace {

/// An estimate σ = ‖xᵀR‖ of the largest or the smallest singular value of a leading triangle R, ‖x‖ = 1 (Bischof 1990,
/// incremental condition estimation). The reference's ?laic1 has these values up to rounding.
template <class T>
class SingularValueEstimate {
public:
    SingularValueEstimate(bool is_largest, double r) : is_largest_(is_largest), sigma_(std::abs(r)), x_{1} {}

    double sigma() const { return sigma_; }
    /// Returns the estimate for [R w; 0 γ]: the extreme singular value of M = [σ xᵀw; 0 γ]. Its left singular vector
    /// (s, c) makes [s x; c] of x.
    SingularValueEstimate extended(const T* w, double gamma) const {
        double alpha = 0;
        for (std::size_t i = 0; i < x_.size(); ++i) alpha += x_[i] * static_cast<double>(w[i]);
        const double largest = std::max({sigma_, std::abs(alpha), std::abs(gamma)});
        if (!(largest > 0)) return with(0 * largest, 0, 1);
        const double f = sigma_ / largest, a = alpha / largest, g = gamma / largest;
        // M Mᵀ = [f² + a², a g; a g, g²] by one rotation
        const double p = f * f + a * a, q = a * g, d = g * g, zeta = (d - p) / (2 * q);
        const double t = q == 0 ? 0 : std::copysign(1 / (std::abs(zeta) + std::hypot(1, zeta)), zeta);
        const double cosine = 1 / std::hypot(1, t), sine = t * cosine;
        const bool first_is_largest = p - t * q >= d + t * q;
        const double s = first_is_largest == is_largest_ ? cosine : sine;
        const double c = first_is_largest == is_largest_ ? -sine : cosine;
        if (is_largest_) return with(largest * std::hypot(s * f, s * a + c * g), s, c);
        // no estimate is below the rounding errors of M, unless M is diagonal or its entries differ by as much
        constexpr double u = std::numeric_limits<T>::epsilon() / 2;
        if (std::abs(g) <= u * f) return with(std::abs(gamma), 0, 1);
        const bool is_exact = std::abs(a) <= u * f || f <= u * std::max(std::abs(a), std::abs(g));
        const double rounding = is_exact ? 0 : 2 * u * std::sqrt(std::max(p, d) + std::abs(q));
        const double least = f * std::abs(g) / std::sqrt(std::max(p - t * q, d + t * q));
        return with(largest * std::hypot(least, rounding), s, c);
    }

private:
    SingularValueEstimate with(double sigma, double s, double c) const {
        SingularValueEstimate next = *this;
        next.sigma_ = sigma;
        for (double& x : next.x_) x *= s;
        next.x_.push_back(c);
        return next;
    }

    bool is_largest_;
    double sigma_;
    std::vector<double> x_;
};

/// Returns the number of leading columns of R whose estimated condition stays below 1 / rcond.
template <class T>
Index estimated_rank(MatrixView<const T> R, double rcond) {
    const Index k = std::min(R.rows, R.cols);
    if (R(0, 0) == 0) return 0;
    SingularValueEstimate<T> smallest(false, R(0, 0)), largest(true, R(0, 0));
    Index rank = 1;
    for (; rank < k; ++rank) {
        auto smaller = smallest.extended(R.at(0, rank), R(rank, rank));
        auto larger = largest.extended(R.at(0, rank), R(rank, rank));
        if (!(larger.sigma() * rcond <= smaller.sigma())) break;
        smallest = std::move(smaller);
        largest = std::move(larger);
    }
    return rank;
}

/// B := P B
template <class T, class Int>
void permute_rows(const Int* jpvt, MatrixView<T> B) {
    std::vector<T> b(static_cast<std::size_t>(B.rows));
    for (Index j = 0; j < B.cols; ++j) {
        std::copy_n(B.at(0, j), B.rows, b.begin());
        for (Index i = 0; i < B.rows; ++i) B(jpvt[i] - 1, j) = b[static_cast<std::size_t>(i)];
    }
}

/// The first n rows of B := the shortest minimizer X of ‖A X − B‖. B has max(m, n) rows. A becomes its complete
/// orthogonal decomposition, jpvt its P. Returns the rank.
///
///     A P = Q [R₁₁ R₁₂; 0 0],    [R₁₁ R₁₂] = [U 0] Z,    X = P Zᵀ [U⁻¹ Q₁ᵀB; 0]
template <class T, class Int>
Index solve_of_any_rank(Context<Host>& ctx, MatrixView<T> A, MatrixView<T> B, Int* jpvt, double rcond) {
    const Index m = A.rows, n = A.cols, k = std::min(m, n);
    const auto right_side = B.row_block({0, m}), X = B.row_block({0, n});
    const auto scaled = scale_problem<T>(ctx, A, right_side);
    if (!scaled) {
        set_zero<T>(ctx, B);
        return 0;
    }
    std::vector<T> tau(static_cast<std::size_t>(k)), tau_of_z(static_cast<std::size_t>(k));
    factor_with_pivots_in_place<T>(ctx, A, jpvt, tau.data());
    const Index r = estimated_rank<T>(A, rcond);
    if (r == 0) {
        set_zero<T>(ctx, B);
        return 0;
    }
    const Range kept{0, r}, rest{r, n};
    const auto R = A.row_block(kept), U = R.col_block(kept);
    if (r < n) factor_trapezoid<T>(ctx, R, tau_of_z.data());
    apply_in_place<T>(ctx, Side::Left, Op::Transpose, A.col_block({0, k}), tau.data(), right_side);
    solve_triangle<T>(ctx, Triangle::Upper, Op::None, U, B.row_block(kept));
    set_zero<T>(ctx, X.row_block(rest));
    if (r < n) apply_trapezoid<T>(ctx, Side::Left, Op::Transpose, R.col_block(rest), tau_of_z.data(), X);
    permute_rows(jpvt, X);
    scaled->unscale(ctx, X);
    if (scaled->a != 0) ColumnScaling<T, Host>(r, -scaled->a).scale_triangle(ctx, U);
    return r;
}

template <class T, class Int, class Next>
void gelsy(const char* routine, const Next& pass_on, const Int* m_, const Int* n_, const Int* nrhs_, T* A,
           const Int* lda, T* B, const Int* ldb, Int* jpvt, const T* rcond, Int* rank, T* work, const Int* lwork,
           Int* info) {
    const Index m = *m_, n = *n_, nrhs = *nrhs_, k = std::min(m, n);
    const bool query = *lwork == -1, nothing = k == 0 || nrhs == 0;
    const Index least = nothing ? 1 : k + std::max({2 * k, n + 1, k + nrhs});
    *info = m < 0                               ? -1
            : n < 0                             ? -2
            : nrhs < 0                          ? -3
            : *lda < std::max<Index>(1, m)      ? -5
            : *ldb < std::max<Index>({1, m, n}) ? -7
            : !query && *lwork < least          ? -12
                                                : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    const Index for_pivots = k + 3 * n + 1;
    const T wanted = workspace_size<T>(
        nothing ? 1 : std::max({for_pivots, k + 2 * n + work_columns * (n + 1), 2 * k + work_columns * nrhs}));
    if (!query && nothing) *rank = 0;
    if (!query && !nothing) {
        const MatrixView<T> AA(A, m, n, *lda), BB(B, std::max(m, n), nrhs, *ldb);
        // with less than `for_pivots` the reference's ?geqp3 fails, and its ?gelsy goes on
        serve(
            Call(routine, m, n, nrhs), (factor_pays(m, n) && pivots_of_r_pay(m, n)) || *lwork < for_pivots,
            [&] {
                return pivoted_workspace<T>(m, n) + reflector_workspace<T>(m, nrhs, k) +
                       trapezoid_workspace<T>(k, n, nrhs);
            },
            [&](Context<Host>& ctx) {
                *rank = static_cast<Int>(solve_of_any_rank<T>(ctx, AA, BB, jpvt, static_cast<double>(*rcond)));
                return "complete orthogonal decomposition";
            },
            pass_on, info);
    }
    work[0] = wanted;
}

}  // namespace

#define QUOIN_GELSY(T, Int, ...)                                                                                   \
    QUOIN_LAPACK_ROUTINE(gelsy, gelsy,                                                                             \
                         (const Int* m, const Int* n, const Int* nrhs, T* A, const Int* lda, T* B, const Int* ldb, \
                          Int* jpvt, const T* rcond, Int* rank, T* work, const Int* lwork, Int* info),             \
                         (m, n, nrhs, A, lda, B, ldb, jpvt, rcond, rank, work, lwork, info), __VA_ARGS__)
QUOIN_LAPACK_EXPORT(QUOIN_GELSY)
#undef QUOIN_GELSY

}  // namespace quoin::lapack
