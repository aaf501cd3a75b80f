#pragma once

// Condition of a triangle whose columns are scaled to unit norm.

#include <cmath>
#include <complex>

#include "quoin/matrix.hpp"

namespace quoin {

inline double widened(double x) { return x; }
inline std::complex<double> widened(std::complex<double> x) { return x; }
/// x/|x|, and of 0 a number of magnitude 1.
inline double sign(double x) { return std::copysign(1.0, x); }
inline std::complex<double> sign(std::complex<double> x) { return x == 0.0 ? 1.0 : x / std::abs(x); }

/// κ₁(R D) of an upper triangular R, where the diagonal D scales its columns to unit norm, or an estimate from below
/// (Hager 1984, Higham 1988); infinity or NaN if R is singular or not finite.
template <class T>
double scaled_condition_estimate(MatrixView<const T, Host> R);

}  // namespace quoin
