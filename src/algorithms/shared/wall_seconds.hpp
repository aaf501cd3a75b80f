#pragma once

// The duration of a call for its report.

#include <chrono>

#include "devices.hpp"

namespace quoin {

/// Returns the seconds since `start`, or −1 on devices whose work may still be on its way when the call returns.
template <class D>
double wall_seconds(std::chrono::steady_clock::time_point start) {
    if (Tuning<D>::asynchronous) return -1;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace quoin
