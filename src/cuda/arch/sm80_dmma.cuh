#pragma once

// The tensor cores' f64 product, and how a warp holds 16×8 and 8×8 tiles for it. Lane l = 4g + t, 0 <= g < 8, 0 <= t <
// 4.
//
// m16n8k8 runs at 64 TFLOP/s on an H100 (12 warps a multiprocessor), m8n8k4 at 31, m16n8k16 at 65 with twice the
// registers.
//
//   D (16×8) lane holds D(g, 2t), D(g, 2t+1), D(g+8, 2t), D(g+8, 2t+1)
//   A (16×8) lane holds A(g, κ), A(g+8, κ), A(g, κ'), A(g+8, κ')
//   B (8×8)  lane holds B(κ, g), B(κ', g)
//
// with (κ, κ') = (t, t+4) as the instruction defines it. The order of the eight products in a sum is free, so that
// (κ, κ') = (2t, 2t+1) serves as well where A and B agree on it: then a D is the A of the next product as it stands.

#include <cuda_runtime.h>

namespace quoin::cuda {

struct Tile16x8 {
    double v[4];
};
struct Tile8x8 {
    double v[2];
};

/// D := D + A B, each 16×8, 16×8, 8×8: 2048 flops.
__device__ __forceinline__ void multiply_add(double (&D)[4], const double (&A)[4], const double (&B)[2]) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+d"(D[0]), "+d"(D[1]), "+d"(D[2]), "+d"(D[3])
        : "d"(A[0]), "d"(A[1]), "d"(A[2]), "d"(A[3]), "d"(B[0]), "d"(B[1]));
#else
    // the same by quarters, m8n8k4
#pragma unroll
    for (int k = 0; k < 2; ++k) {
#pragma unroll
        for (int half = 0; half < 2; ++half)
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                : "+d"(D[2 * half]), "+d"(D[2 * half + 1])
                : "d"(A[2 * k + half]), "d"(B[k]));
    }
#endif
}
__device__ __forceinline__ void multiply_add(Tile16x8& D, const Tile16x8& A, const Tile8x8& B) {
    multiply_add(D.v, A.v, B.v);
}

__device__ __forceinline__ Tile16x8 operator-(const Tile16x8& D) { return {{-D.v[0], -D.v[1], -D.v[2], -D.v[3]}}; }

/// The D of one product as the A of another, (κ, κ') = (2t, 2t+1).
__device__ __forceinline__ Tile16x8 as_left_operand(const Tile16x8& D) { return {{D.v[0], D.v[2], D.v[1], D.v[3]}}; }

/// Panels of 8 rows in shared memory, column after column: the unit of 16 bytes with rows 2q and 2q + 1 of column x.
/// Units are permuted so that a thread may read its column, and a warp fragments with (κ, κ') = (2t, 2t+1), without
/// bank conflicts.
__device__ __forceinline__ double2* unit_of(double* panel, int x, int q) {
    return reinterpret_cast<double2*>(panel) + x * 4 + (q ^ (x / 2 % 4));
}

/// Units of height×8 that cover the upper triangle of a matrix of `col_tiles` tile columns, strip after strip of
/// `height` rows, each from its diagonal.
__host__ __device__ constexpr int unit_count(int col_tiles, int height) {
    int units = 0;
    for (int c = col_tiles; c > 0; c -= height / 8) units += c;
    return units;
}

}  // namespace quoin::cuda
