#pragma once

// The choice of a method by measured cases of similar shapes.

#include <algorithm>
#include <span>

#include "quoin/tuning.hpp"

namespace quoin {

/// Returns the place of a method in `TunedCase::seconds`; their number for another method.
inline std::size_t place_of(Method method) {
    return static_cast<std::size_t>(std::find(tuned_methods.begin(), tuned_methods.end(), method) -
                                    tuned_methods.begin());
}

/// Returns the method for an m×n matrix and a form of Q by the nearest cases of its type and form: `usual`, unless
/// another one takes at most 0.95 of its time there.
///
/// Up to four cases within one octave of m and of n count, each with the weight 1/(d² + 0.01), where d is the distance
/// in (log₂ m, log₂ n). A method's ratio of times is the weighted geometric mean over these cases. A method that one of
/// them lacks is not chosen. Without cases it is `usual`.
Method nearest_choice(std::span<const TunedCase> cases, Index m, Index n, ScalarKind scalar, QForm q, Method usual);

}  // namespace quoin
