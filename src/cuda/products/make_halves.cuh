#pragma once

// A matrix of f32 in numbers of 16 bits (halves.cuh), laid out for one product of cuBLAS where three are meant.
//
//   make_halves_kernel  in one or both of two layouts, from one read of f32:
//
//                 parts: runs of h rows of A (m×n), each three times, one below the other: lo in one of them and hi in
//                 the others. A product of depth 3h with the same run of another matrix, whose lo is elsewhere, adds
//                 the three terms.
//
//                 ┌────┐ h       ┌────┐ slot 0     one thread two rows of a column; h is even. Beyond A's rows zeros
//                 ├────┤    →    ├────┤ slot 1     up to the end of the run. 1.5 times as many bytes written as are read.
//                 │    │         ├────┤ slot 2     Bound by memory.
//                 └────┘         ├────┤ slot 0 …
//
//                 sides: runs of h columns of A the same, side by side: column j of a run in column s h + j of slot s.
//                 Zeros beyond A's rows and columns.
//   largest_bits_kernel  the bits of max |a_ij| over the finite ones, which has to be 0 before: NaN and Inf stay in
//                        their columns; threads stride, a warp's maximum goes there by atomicMax.
//
// With one slot each run is there once, rounded. The layouts are then A's own, padded.

#include "cuda/elements/elementwise.cuh"
#include "cuda/products/halves.cuh"

namespace quoin::cuda {

/// Which of the three slots holds lo.
enum class LowSlot { First, Second };

template <class H, int slots>
__device__ __forceinline__ H in_slot(const Halves<H, slots>& x, int slot, LowSlot low) {
    return slots == 3 && slot == static_cast<int>(low) ? x.lo : x.hi;
}

/// A layout without data is not made.
template <class H>
struct PartsLayout {
    H* data;
    Index h, rows;  ///< of a run, and of all of them
};
template <class H>
struct SidesLayout {
    H* data;
    Index h, cols, ld;  ///< columns of a run, and of all of them; ld is even and at least A's rows
};

template <bool unit_lower, class H, int slots>
__global__ void __launch_bounds__(element_threads)
    make_halves_kernel(MatrixView<const float, Cuda> A, LowSlot low, const unsigned* largest, PartsLayout<H> parts,
                       SidesLayout<H> sides) {
    struct alignas(2 * sizeof(H)) Pair {
        H first, second;
    };
    const float scale = scalbnf(1.0f, exponent_of_scale(largest));
    const Index rows = max(parts.data ? parts.rows : 0, sides.data ? sides.ld : 0);
    const Index cols = max(A.cols, sides.data ? sides.cols : 0);
    for (Index j = blockIdx.y; j < cols; j += gridDim.y) {
        for (Index i = 2 * (Index(blockIdx.x) * element_threads + threadIdx.x); i < rows;
             i += 2 * Index(gridDim.x) * element_threads) {
            const Halves<H, slots> x(entry_of<unit_lower>(A, i, j) * scale),
                y(entry_of<unit_lower>(A, i + 1, j) * scale);
            if (parts.data && j < A.cols && i < parts.rows) {
                // division in 64 bits takes longer than the memory
                const Index run =
                    rows < (Index(1) << 31) ? static_cast<unsigned>(i) / static_cast<unsigned>(parts.h) : i / parts.h;
                H* const at = parts.data + j * slots * parts.rows + run * (slots - 1) * parts.h + i;
#pragma unroll
                for (int s = 0; s < slots; ++s)
                    *reinterpret_cast<Pair*>(at + s * parts.h) = {in_slot(x, s, low), in_slot(y, s, low)};
            }
            if (sides.data && i < sides.ld) {
                H* const at = sides.data + i + (j / sides.h * slots * sides.h + j % sides.h) * sides.ld;
#pragma unroll
                for (int s = 0; s < slots; ++s) {
                    *reinterpret_cast<Pair*>(at + s * sides.h * sides.ld) = {in_slot(x, s, low), in_slot(y, s, low)};
                }
            }
        }
    }
}

__global__ void __launch_bounds__(element_threads)
    largest_bits_kernel(MatrixView<const float, Cuda> A, unsigned* largest) {
    unsigned top = 0;
    for (Index j = blockIdx.y; j < A.cols; j += gridDim.y) {
        for (Index i = Index(blockIdx.x) * element_threads + threadIdx.x; i < A.rows;
             i += Index(gridDim.x) * element_threads) {
            const unsigned bits = __float_as_uint(A.data[i + j * A.ld]) & 0x7fffffffu;
            top = max(top, bits < 0x7f800000u ? bits : 0u);
        }
    }
    top = __reduce_max_sync(~0u, top);
    if (threadIdx.x % 32 == 0) atomicMax(largest, top);
}

/// {factor / (s s'), 1, 0}, as `exponent_of_scale` has the two scales.
__global__ void scale_of_product_kernel(const unsigned* largest_a, const unsigned* largest_b, float factor,
                                        float* scalars) {
    scalars[0] = scalbnf(factor, -exponent_of_scale(largest_a) - exponent_of_scale(largest_b));
    scalars[1] = 1;
    scalars[2] = 0;
}

}  // namespace quoin::cuda
