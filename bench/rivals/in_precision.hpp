#pragma once

#include <type_traits>

namespace quoin::bench {

/// Returns a library's routine in the precision of T.
template <class T, class Single, class Double>
constexpr auto in_precision(Single single_precision, Double double_precision) {
    if constexpr (std::is_same_v<T, float>)
        return single_precision;
    else
        return double_precision;
}

}  // namespace quoin::bench
