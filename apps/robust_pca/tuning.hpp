#pragma once

#include "quoin/apps/robust_pca.hpp"

namespace quoin {

struct Cuda;

template <class D>
struct PursuitTuning;

template <>
struct PursuitTuning<Host> {
    /// `examples/08_robust_pca 384 288 100` (f32) on 4 cores of an EPYC 9005: 50 iterations a second by Qr, 61 by Gram.
    static constexpr ThresholdRoute threshold_route = ThresholdRoute::Gram;
    static constexpr bool keeps_last_step = false;
};

template <>
struct PursuitTuning<Cuda> {
    /// H100, 110 592×100, inexact ALM, iterations a second by Gram and by Qr: f32 2031 and 1557, f64 1600 and 520 (R's
    /// SVD on the host).
    static constexpr ThresholdRoute threshold_route = ThresholdRoute::Gram;
    /// 7 matrices read or written an iteration and not 12, for 6 in memory and not 4.
    static constexpr bool keeps_last_step = true;
    /// Bounds of the rotations (cuda/jacobi.cuh): the largest remainder of a pair when they end, in units of epsilon,
    /// and the share of it up to which a pair is not turned.
    static constexpr double jacobi_tolerance = 0.5, jacobi_smallest = 0.0625;
};

}  // namespace quoin
