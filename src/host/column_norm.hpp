#pragma once

// The norm of one column, without overflow or underflow on the way.

#include <algorithm>
#include <cmath>

#include "primitives/gram.hpp"

namespace quoin::host {

/// Returns ‖a‖₂ of m entries.
template <class T>
Real<T> column_norm(Index m, const T* a) {
    // the real numbers that a is made of
    const auto* x = reinterpret_cast<const Real<T>*>(a);
    m *= Index(sizeof(T) / sizeof(Real<T>));
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index i = 0; i < m; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    if ((sum > smallest_square<double> && sum < largest_square<double>) || std::isnan(sum)) {
        return static_cast<Real<T>>(std::sqrt(sum));
    }
    // ‖x‖ = 2^e ‖2⁻ᵉx‖
    Real<T> largest = 0;
    for (Index i = 0; i < m; ++i) largest = std::max(largest, std::abs(x[i]));
    if (largest == 0 || std::isinf(largest)) return largest;
    const int e = std::ilogb(largest);
    sum = 0;
    for (Index i = 0; i < m; ++i) sum += std::pow(std::scalbn(static_cast<double>(x[i]), -e), 2);
    return static_cast<Real<T>>(std::scalbn(std::sqrt(sum), e));
}

}  // namespace quoin::host
