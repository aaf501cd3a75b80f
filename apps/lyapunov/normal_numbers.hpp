#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

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

}  // namespace quoin
