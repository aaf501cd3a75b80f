#pragma once

// Predicates on the arithmetic of products.

#include "quoin/arithmetic.hpp"

namespace quoin {

/// Whether large products take operands of 16 bits.
constexpr bool takes_halves(Arithmetic arithmetic) {
    return arithmetic == Arithmetic::FP16 || arithmetic == study::BF16 || arithmetic == Arithmetic::Corrected;
}

}  // namespace quoin
