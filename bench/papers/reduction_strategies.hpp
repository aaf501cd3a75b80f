#pragma once

// The kernel apply_qt_h of Anderson, Ballard, Demmel and Keutzer by each of their strategies of reduction (report of
// 2010 and IPDPS 2011, section IV.E): baselines of `quoin bench paper`. They check nothing and scale nothing.

#include <array>

#include "quoin/cuda.hpp"

namespace quoin::bench {

/// Where the reductions of Cᵀv happen.
enum class Reduction {
    SharedParallel,      ///< a thread a row in registers; column by column by halves in shared memory
    SharedSerial,        ///< C in shared memory; a thread sums a part of a column
    SharedCombined,      ///< C in shared memory, transposed; all columns by halves at once
    Registers,           ///< C in registers; a thread has and sums a part of a column
    RegistersTransposed  ///< the same, of blocks that are row-major in memory
};
inline constexpr std::array reductions = {Reduction::SharedParallel, Reduction::SharedSerial, Reduction::SharedCombined,
                                          Reduction::Registers, Reduction::RegistersTransposed};
const char* to_string(Reduction reduction);

/// Rows and columns of a block: 32, 64, 128 or 256 and 4, 8, 16 or 32, at most 4096 entries.
struct UpdateBlock {
    int rows, cols;
};

/// C_b := H_n … H_1 C_b for every block b, with the reflectors in the columns of V_b (unit diagonal and zeros above it
/// stored) and tau (n each). V_b and C_b have rows·cols entries one after the other; C_b is row-major if
/// `RegistersTransposed`. 4·rows·cols² flops a block. Enqueued.
void apply_block_reflectors(Context<Cuda>& ctx, Reduction reduction, UpdateBlock block, Index count, const float* V,
                            const float* tau, float* C);

}  // namespace quoin::bench
