#pragma once

namespace quoin {

/// How the large products of a factorization in f32 are computed, on a GPU: the trailing updates of
/// Method::BlockedHouseholder (Native or Corrected), the projections of Method::ClassicalGramSchmidt (any;
/// quoin::study has two more). Native and Corrected also apply to products with a Q kept as reflectors (`apply_q`,
/// `apply_q_block`, `q_block`). Auto takes Corrected for these products if they are large enough.
enum class Arithmetic {
    Auto = 0,       ///< by the tuning table; Corrected only where it is as accurate and faster by measurement
    Native = 1,     ///< in the matrix's own type
    FP16 = 3,       ///< operands scaled and rounded to f16, u = 2⁻¹¹, sums in f32
    Corrected = 5,  ///< three products of f16 for one, at f32's accuracy (Ootomo and Yokota 2022)
};

namespace study {

/// Operands cut to the 11 bits of TF32, sums in f32.
inline constexpr Arithmetic TF32{2};
/// Operands rounded to bf16, u = 2⁻⁸, sums in f32.
inline constexpr Arithmetic BF16{4};

}  // namespace study

}  // namespace quoin
