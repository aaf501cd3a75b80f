#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

#include "quoin/matrix.hpp"

namespace quoin {

/// Independent standard normal numbers by Box and Muller's method: one sequence a seed, whatever the standard library.
class NormalNumbers {
public:
    explicit NormalNumbers(std::uint64_t seed) : engine_(seed) {}
    double operator()() {
        const double radius = std::sqrt(-2 * std::log(1 - uniform()));  // 1 − u is never 0
        return radius * std::cos(2 * std::numbers::pi * uniform());
    }

private:
    double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
    std::mt19937_64 engine_;
};

/// Added to a run's seed for its first vectors.
inline constexpr std::uint64_t vectors_seed = 0x9e3779b97f4a7c15u;

/// Returns an m×n matrix of independent normal numbers. It is as good as any for first vectors: almost every one has a
/// part of every direction.
template <class T>
Matrix<T> normal_matrix(std::uint64_t seed, Index m, Index n) {
    NormalNumbers normal(seed);
    Matrix<T> A(m, n);
    for (Index k = 0; k < m * n; ++k) A.data()[k] = static_cast<T>(normal());
    return A;
}

}  // namespace quoin
