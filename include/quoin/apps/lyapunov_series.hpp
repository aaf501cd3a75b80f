#pragma once

#include "quoin/apps/lyapunov.hpp"

namespace quoin {

/// How a measured series is read. Its columns are samples at equal time steps, and its c rows are quantities measured
/// at once. The state at a sample is reconstructed from it and the `delays` − 1 earlier samples, `lag` apart: d =
/// c·delays numbers (Takens 1981).
struct SeriesOptions {
    Index delays = 3;
    Index lag = 1;
    double interval = 1;   ///< time between samples
    Index theiler = 0;     ///< samples closer in time are no neighbours (Theiler 1986); 0: 2·delays·lag
    Index neighbours = 0;  ///< `series_spectrum`: of each least-squares problem; 0: 4(d + 1)
    Index evolve = 0;      ///< `series_spectrum`: samples that a Jacobian spans; 0: lag
    Index exponents = 0;   ///< `series_spectrum`: the first p; 0: all d
    Index horizon = 0;     ///< `series_divergence`: samples to follow neighbours; 0: a tenth of the series
};

/// How neighbours in a measured series move apart, and the largest exponent, computed from it.
struct SeriesDivergence {
    Estimate exponent;               ///< the slope of `logarithms`
    std::vector<double> times;       ///< 0, interval, …
    std::vector<double> logarithms;  ///< the mean logarithm of the distance of neighbours after these times
    Index first = 0, last = 0;       ///< the slope is fitted to [first, last)
};

/// Computes the largest exponent of a series (c×N). It follows every state together with its nearest neighbour; their
/// mean log-distance grows like λ₁t (Rosenstein, Collins and De Luca 1993). The slope is fitted by least squares to the
/// part of the curve that rises from 15% to 70% of the way to its plateau. Noise makes a jump before this part. States
/// within 1e-10 of the series' range of each other count as one state, not as neighbours, because an instrument that
/// rounds gives a state twice. The error is the scatter of 16 consecutive parts of the series. It does not include the
/// bias of noise or of too few delays: look at the curve. N²d flops. Blocks.
///
/// Throws InvalidArgument (options; a series that is too short, is constant or repeats itself), NonFiniteEntry (`row`
/// is the sample, `col` the component).
///
///     auto f = series_divergence(ctx, x.view(), {.delays = 3, .lag = 11, .interval = 0.01});
SeriesDivergence series_divergence(Context<Host>& ctx, MatrixView<const double> series,
                                   const SeriesOptions& options = {});

/// Computes the exponents of a series (c×N). The Jacobian of a state comes from the affine map, fitted by least
/// squares, that takes its nearest neighbours to their positions `evolve` samples later. The spectrum is computed from
/// the product of the Jacobians (Sano and Sawada 1985; Eckmann, Oliffson Kamphorst, Ruelle and Ciliberto 1986). The
/// least-squares problems are one batch (`batch.hpp`).
///
/// Errors are estimated as for a spectrum. They do not include the bias of noise, of curvature within a neighbourhood
/// or of too few delays. Exponents have no meaning for directions that contract faster than the noise allows, and for
/// directions that the reconstruction adds. N²d flops. Blocks. Throws as above.
///
/// If the neighbours of a state lie in a plane, it takes every second of twice as many, up to every eighth. A Jacobian
/// that these do not determine either, or that is singular, is left out and counted in `skipped`. If all are left out,
/// the exponents are NaN; take fewer delays, or more neighbours.
///
///     auto f = series_spectrum(ctx, x.view(), {.delays = 3, .lag = 5, .interval = 0.02});  // f.exponents
LyapunovSpectrum series_spectrum(Context<Host>& ctx, MatrixView<const double> series,
                                 const SeriesOptions& options = {});

}  // namespace quoin
