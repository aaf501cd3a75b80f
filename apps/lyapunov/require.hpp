#pragma once

#include <fmt/format.h>

#include <cmath>

#include "quoin/error.hpp"

namespace quoin {

/// Throws InvalidArgument unless value > 0 and finite.
inline void require_positive(const char* name, double value) {
    if (!(value > 0) || !std::isfinite(value)) {
        throw InvalidArgument(fmt::format("{} must be positive and finite, and is {}", name, value));
    }
}

inline void require_finite(const char* name, double value) {
    if (!std::isfinite(value)) throw InvalidArgument(fmt::format("{} must be finite, and is {}", name, value));
}

template <class Number>
void require_at_least(const char* name, Number value, Number least) {
    if (value < least) throw InvalidArgument(fmt::format("{} must be at least {}, and is {}", name, least, value));
}

}  // namespace quoin
