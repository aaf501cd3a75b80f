#pragma once

// The sparse sign embedding S (s×m) of a tall matrix A (m×n): for any A, and all x at once, with overwhelming
// probability
//
//     (1 − ε) ‖A x‖ <= ‖S A x‖ <= (1 + ε) ‖A x‖,   ε about √(n/s).
//
// S = ½ [S₁; S₂; S₃; S₄], four count sketches (Clarkson and Woodruff 2013; Nelson and Nguyen 2013): a row of A is
// added, with a sign, to one row of each. Rows are dealt out in groups of 32: a group goes to one segment of 32 rows of
// each S_k, rotated, so that its rows never meet, and vectors of a CPU and warps of a GPU add it at once. Segment,
// rotation and sign of a group and the signs of its rows are the bits of its number, mixed: S is always the same.

#include <cstdint>

#include "primitives/context.hpp"

namespace quoin {

inline constexpr Index sketch_parts = 4, sketch_group_rows = 32;

/// Segments of each S_k. s = 128 segments is at least 4n, so that κ(A R⁻¹) of S A = Q R is about 3.
constexpr Index sketch_segments(Index n) { return (n + 31) / 32; }
constexpr Index sketch_rows(Index n) { return sketch_parts * sketch_group_rows * sketch_segments(n); }

/// Where 32 rows of A go: row i, times (−1)^bit i of `row_signs` and (−1)^bit k of `part_signs`, to row segment[k]·32 +
/// (i + rotation[k]) % 32 of S_k.
struct SketchGroup {
    std::uint32_t row_signs;
    std::uint16_t segment[sketch_parts];
    std::uint8_t rotation[sketch_parts];
    std::uint32_t part_signs;
};

/// The bits of a number, mixed as splitmix64 does.
constexpr std::uint64_t mixed_bits(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

/// Draws a group from the mixed bits of its number. `seed` separates the sketches of different rows.
constexpr SketchGroup sketch_group(Index group, Index seed, Index segments) {
    std::uint64_t state = static_cast<std::uint64_t>(group) * 3 * 0x9e3779b97f4a7c15ULL +
                          static_cast<std::uint64_t>(seed + 1) * 0xd1b54a32d192ed03ULL;
    const auto next = [&] { return mixed_bits(state += 0x9e3779b97f4a7c15ULL); };
    SketchGroup g = {};
    const std::uint64_t signs = next();
    g.row_signs = static_cast<std::uint32_t>(signs);
    g.part_signs = static_cast<std::uint32_t>(signs >> 32) & 15;
    for (int half = 0; half < 2; ++half) {
        const std::uint64_t bits = next();
        for (int k = 2 * half; k < 2 * half + 2; ++k) {
            const auto mine = static_cast<std::uint32_t>(bits >> (k % 2 * 32));
            g.segment[k] = static_cast<std::uint16_t>(((mine >> 5) * static_cast<std::uint64_t>(segments)) >> 27);
            g.rotation[k] = static_cast<std::uint8_t>(mine & 31);
        }
    }
    return g;
}

/// B (s×n) := S A. s is a multiple of 128, sketch_rows(n) for all x in Rⁿ, or m, and then S is I. s and sketch_rows(n)
/// are at most sketch_rows(Tuning<D>::max_sketch_cols). 4mn additions, mn elements read.
template <class T, class D>
void sketch(Context<D>& ctx, View<const T, D> A, Index seed, View<Sum<T, D>, D> B);

/// Returns the signs of rows 64i, 64i + 1, … of column j of a matrix of m rows, from the lowest bit on.
constexpr std::uint64_t random_signs(std::uint64_t seed, Index m, Index i, Index j) {
    constexpr std::uint64_t step = 0x9e3779b97f4a7c15ULL;
    return mixed_bits(mixed_bits(seed + step) + static_cast<std::uint64_t>(j * ((m + 63) / 64) + i + 1) * step);
}
/// A := ±1, minus where a bit of `random_signs` is set.
template <class T, class D>
void set_random_signs(Context<D>& ctx, std::uint64_t seed, View<T, D> A);

/// The matrix that `perturb` adds: I, or pairwise independent signs.
enum class Perturbation { Identity, Signs };

/// Returns the signs of 32 columns of row i: bit j % 32 for entry (i, j), j / 32 = `group`. `seed` separates rows of
/// different ranks.
constexpr std::uint32_t perturbation_signs(Index i, Index group, Index seed) {
    const std::uint64_t bits = mixed_bits(static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ULL +
                                          static_cast<std::uint64_t>(group + 1) * 0xda942042e4dd58b5ULL +
                                          static_cast<std::uint64_t>(seed + 1) * 0xd1b54a32d192ed03ULL);
    return static_cast<std::uint32_t>(bits >> 32);
}

/// A := A + W diag(size ‖r_j‖), W = I or signs, for the columns r_j of an upper triangle R (n×n) with zeros below.
template <class T, class D>
void perturb(Context<D>& ctx, Perturbation W, double size, View<const Sum<T, D>, D> R, Index seed, View<T, D> A);

/// Columns of zeros := signs, as `perturb` has them, times `size`; exponents(j) := clearing_exponent for them and 0 for
/// others. Reads A once.
template <class T, class D>
void fill_zero_columns(Context<D>& ctx, double size, Index seed, View<T, D> A, View<int, D> exponents);
/// The e of `scale_columns` that makes any number zero.
inline constexpr int clearing_exponent = -4096;

}  // namespace quoin
