#pragma once

// Matrices with entries near an end of T's range are solved for as 2^-e A.

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "algorithms/one_matrix/solver_steps.hpp"

namespace quoin {

/// Returns e such that 2^-e times the largest entry is about 1, and 2^±e a normal number of T. Returns 0 if that entry
/// is within 2^±safe, and for 0, Inf and NaN.
template <class T>
int range_exponent(double largest, int safe) {
    constexpr int most = std::numeric_limits<T>::max_exponent - 2;
    if (largest == 0 || !std::isfinite(largest)) return 0;
    const int e = std::ilogb(largest);
    return std::abs(e) <= safe ? 0 : std::clamp(e, -most, most);
}

/// B := 2^e A. B may be A.
template <class T, class D>
void scale_by_power(Context<D>& ctx, int e, MatrixView<const T, D> A, MatrixView<T, D> B) {
    scaled_copy<T>(ctx, std::ldexp(1.0, e), A, B);
}
template <class T, class D>
Matrix<T, D> scaled_by_power(Context<D>& ctx, int e, MatrixView<const T, D> A) {
    Matrix<T, D> B(ctx, A.rows, A.cols);
    scale_by_power<T, D>(ctx, e, A, B.view());
    return B;
}

/// Scaling by 2^-32 makes overflowing norms of up to 2^60 numbers representable.
inline constexpr int room_for_norms = 32;
/// Returns the least e such that norms of 2^-e B are representable, if B has this largest entry. Not a larger e, since
/// B's other columns may be as small as T allows. Negative if B may still grow.
template <class T>
int min_norm_exponent(double largest) {
    constexpr int most = std::numeric_limits<T>::max_exponent - room_for_norms - 2;
    return (largest > 0 && std::isfinite(largest) ? std::ilogb(largest) : -most) - most;
}

/// Returns the e to solve for 2^-e A. R of A has the largest entry `largest_of_R`. `other`: the largest entry that is
/// multiplied by 2^-e, and by Qᵀ too. The factorization scales A's columns itself, but R may not fit.
template <class T>
int solver_exponent(double largest_of_R, double other) {
    const int needed = min_norm_exponent<T>(other);
    return std::isinf(largest_of_R)
               ? std::max(room_for_norms, needed)
               : std::max(needed, std::min(0, range_exponent<T>(largest_of_R, Scalar<T>::safe_exponent)));
}

/// 2^-e A = QR of a tall A, 2^-e Aᵀ = QR of a wide one. e is 0 unless R would overflow or lose digits to underflow.
template <class T, class D>
struct QRInRange {
    QR<T, D> factors;
    Matrix<T, D> R;
    Report report;
    int exponent = 0;

    /// `other`: the largest entry that is multiplied by 2^-e, and by Qᵀ too.
    QRInRange(Context<D>& ctx, InputView<T, D> A, const Options& options, double other = 0)
        : QRInRange(factor(ctx, A, options, 0)) {
        const int e = solver_exponent<T>(entry_norms<T>(ctx, R.view()).largest, other);
        if (e == 0) return;
        Matrix<T, D> scaled = loaded<T, D>(ctx, A);
        scale_by_power<T, D>(ctx, -e, scaled.view(), scaled.view());
        *this = factor(ctx, scaled.view(), options, e);
    }

private:
    QRInRange(QR<T, D>&& factors_, Matrix<T, D>&& R_, Report report_, int e)
        : factors(std::move(factors_)), R(std::move(R_)), report(report_), exponent(e) {}

    static QRInRange factor(Context<D>& ctx, InputView<T, D> A, const Options& options, int e) {
        WorkTimer<D> timer(ctx);
        QR<T, D> f = A.rows >= A.cols ? qr<T, D>(ctx, A, options) : qr_of_transpose<T, D>(ctx, A, options);
        timer.stop();
        Matrix<T, D> R = f.r(ctx);
        Report report = f.report();
        if (report.seconds < 0) report.seconds = timer.seconds();
        return {std::move(f), std::move(R), report, e};
    }
};

}  // namespace quoin
