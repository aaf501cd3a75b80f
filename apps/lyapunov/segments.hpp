#pragma once

// Checks of segments of k steps: whole segments, a finite state, an R with enough digits.

#include <cmath>
#include <span>

#include "lyapunov/require.hpp"
#include "quoin/matrix.hpp"
#include "quoin/scalar.hpp"

namespace quoin {

/// Returns the number of segments of length tau that cover `time`.
inline Index segments_of(const char* name, double time, double tau) {
    require_finite(name, time);
    require_at_least<double>(name, time, 0);
    const double count = std::ceil(time / tau * (1 - 1e-12));
    if (count > 1e15) throw InvalidArgument(fmt::format("{} of {} is {:.3g} segments, too many", name, time, count));
    return static_cast<Index>(count);
}

/// Returns `exponents`, or n for 0. Throws InvalidArgument if it is negative or above the dimension n of the system.
inline Index checked_exponents(Index exponents, Index n) {
    if (exponents < 0 || exponents > n) {
        throw InvalidArgument(fmt::format(
            "exponents must be between 1 and the dimension {} of the system, or 0 for all, and is {}", n, exponents));
    }
    return exponents == 0 ? n : exponents;
}

inline void require_finite_state(std::span<const double> x, double time, double step) {
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (!std::isfinite(x[i])) {
            throw NonFiniteEntry(static_cast<Index>(i), 0,
                                 fmt::format("the state at time {:.6g} (step {})", time, step));
        }
    }
}

/// Whether r_jj has too few digits. Its error is u‖R(:, j)‖, and log r_jj is needed to 0.001.
template <class T>
bool lacks_digits(double r, double norm) {
    return r < 1000 * Scalar<T>::u * norm;
}

}  // namespace quoin
