#pragma once

#include <complex>

#include "quoin/matrix.hpp"

namespace quoin {

inline double widened(double x) { return x; }
inline std::complex<double> widened(std::complex<double> x) { return x; }

/// κ₁(R D) of an upper triangular R, where the diagonal D scales its columns to unit norm, or an estimate from below (Hager 1984,
/// Higham 1988); infinity or NaN where R is singular or not finite.
template <class T>
double scaled_condition_estimate(MatrixView<const T, Host> R);

}  // namespace quoin
