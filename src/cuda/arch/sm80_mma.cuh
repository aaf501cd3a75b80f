#pragma once

// The tensor cores' products of 16×8 tiles with sums in f32, by one warp, lane 4g + q.

namespace quoin::cuda {

/// D := D + A B of depth 16 in f16. A register of A holds an entry and its right neighbour: (g, 2q), (g+8, 2q), (g,
/// 2q+8), (g+8, 2q+8). One of B holds an entry and the one below it: (2q, g), (2q+8, g).
__device__ __forceinline__ void multiply_add(float (&D)[4], const unsigned (&A)[4], const unsigned (&B)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(D[0]), "+f"(D[1]), "+f"(D[2]), "+f"(D[3])
        : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]));
}
/// D := D + A B of depth 8 in TF32: A(g, q), A(g+8, q), A(g, q+4), A(g+8, q+4); B(q, g), B(q+4, g).
__device__ __forceinline__ void multiply_add_tf32(float (&D)[4], const unsigned (&A)[4], const unsigned (&B)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(D[0]), "+f"(D[1]), "+f"(D[2]), "+f"(D[3])
        : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]));
}

/// Loads an 8×8 matrix of f16 into register i of each lane, from the rows of 16 bytes that lanes 8i, …, 8i + 7 point
/// at: (g, 2q) and its right neighbour, or, transposed, (2q, g) and the entry below it.
template <bool transposed>
__device__ __forceinline__ void load_matrices(unsigned (&to)[4], unsigned shared) {
    if constexpr (transposed) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(shared)
                     : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(shared)
                     : "memory");
    }
}

}  // namespace quoin::cuda
