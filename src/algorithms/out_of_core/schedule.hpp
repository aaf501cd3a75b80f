#pragma once

// Switches for the benchmark of Zhang and Wu's paper, which measures what each of their optimizations gains.

#include "quoin/out_of_core.hpp"

namespace quoin {

/// Optimizations of classical Gram-Schmidt out of core (Zhang and Wu 2021, section 4). Quoin uses all of them.
struct OutOfCoreSchedule {
    /// Moves in, work and moves out overlap. If not, each one waits for the end of the one before (Tables 1 and 2).
    bool asynchronous = true;
    /// The first step of a product, and the first parts of a leaf, are narrower than the others. If not, all have one
    /// width (section 4.1.3).
    bool growing = true;
    /// A stage, which is a leaf or a product, takes columns that the previous one left on the device, and its first
    /// moves overlap with the last ones of that. If not, each stage waits for the end of the one before, and all its
    /// columns move in (section 4.2).
    bool joined_stages = true;
};

/// Plans as the public `plan_out_of_core` does, by `schedule`. Gram-Schmidt alone has one.
template <class T, class D>
OutOfCorePlan plan_out_of_core(Index m, Index n, const OutOfCoreOptions& options, const OutOfCoreRates& rates,
                               const OutOfCoreSchedule& schedule);
/// Factors as the public `qr_out_of_core` does, by `schedule`.
template <class T, class D>
OutOfCoreReport qr_out_of_core(Context<D>& ctx, MatrixView<T> A, MatrixView<T> R, const OutOfCoreOptions& options,
                               const OutOfCoreSchedule& schedule);

}  // namespace quoin
