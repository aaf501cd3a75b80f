#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "memory_cap.hpp"
#include "on_device.hpp"
#include "quoin/route.hpp"

namespace quoin::cli {

/// Returns `route`. If it does not fit, throws OutOfMemory, with the smallest cap that works for `who`.
inline RoutePlan within_cap(RoutePlan route, const std::string& who, Shape shape, ScalarKind dtype) {
    if (route.fits()) return route;
    refuse_memory_cap(who, route.cap, route.min_bytes,
                      std::holds_alternative<OutOfCoreRoute>(route.by)
                          ? "for A and R, whose blocks a GPU is to factor"
                          : fmt::format("for a {} x {} {} matrix", shape.rows, shape.cols, to_string(dtype)));
}

#ifdef QUOIN_HAVE_CUDA
/// Returns the cap on the program's allocations on the GPU: its free memory, or `given` if it is less and not 0.
inline double device_memory_cap(const Context<Cuda>& ctx, Index given) {
    const double free = static_cast<double>(device_memory(ctx).free);
    return given > 0 ? std::min(free, static_cast<double>(given)) : free;
}
#endif
/// Returns the cap on the program's allocations on the host.
inline double device_memory_cap(const Context<Host>&, Index given) { return memory_cap(given); }

/// Returns the bytes without which no route on the device starts.
template <class T, class D>
double min_bytes(const Context<D>& ctx, Index m, Index n, RouteOptions options) {
    options.memory = std::numeric_limits<double>::infinity();
    return plan_route<T>(ctx, m, n, options).min_bytes;
}

}  // namespace quoin::cli
