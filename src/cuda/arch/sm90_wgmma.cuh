#pragma once

// Products of f16 by four warps at once, wgmma: the left operand in their registers, 16 rows a warp, the right one in
// shared memory as an image: a row for each of its columns, with 64 of its rows, 128 bytes.

#include <cuda_fp16.h>

#include <cstdint>

#include "cuda/arch/levels.cuh"
#include "cuda/arch/sm90_cluster.cuh"

namespace quoin::cuda::corrected {

inline constexpr int image_cols = 64, warpgroup = 128, tile_alignment = 1024;

/// Place of 8 neighbours, `group` of 8, of row `row` of an image, in an order that has no bank conflicts.
__device__ __forceinline__ int place_of_group(int row, int group) {
    return row * image_cols + ((group ^ (row & 7)) << 3);
}

/// Stores group `group` of row `row` of an image: hi, and lo `apart` entries further on.
__device__ __forceinline__ void store_group(__half* image, int apart, int row, int group, const unsigned (&hi)[4],
                                            const unsigned (&lo)[4]) {
    __half* const to = image + place_of_group(row, group);
    *reinterpret_cast<uint4*>(to) = {hi[0], hi[1], hi[2], hi[3]};
    *reinterpret_cast<uint4*>(to + apart) = {lo[0], lo[1], lo[2], lo[3]};
}

/// Returns a block's shared memory from the first multiple of tile_alignment on. A launch needs aligned_shared_bytes.
template <class S>
__device__ __forceinline__ S& aligned_shared() {
    extern __shared__ char memory[];
    return *reinterpret_cast<S*>((reinterpret_cast<std::uintptr_t>(memory) + tile_alignment - 1) / tile_alignment *
                                 tile_alignment);
}
template <class S>
inline constexpr std::size_t aligned_shared_bytes = sizeof(S) + tile_alignment;

/// Describes an operand in shared memory to the matrix unit: rows of 128 bytes, groups of 8 rows 1024 bytes apart.
__device__ __forceinline__ std::uint64_t descriptor(const __half* at) {
    return std::uint64_t(shared_address(at) >> 4 & 0x3fff) | std::uint64_t(1) << 16 | std::uint64_t(64) << 32 |
           std::uint64_t(1) << 62;
}

/// Gives up a warpgroup's registers beyond `count` a thread, or takes them. By all its warps.
template <int count>
__device__ __forceinline__ void keep_registers() {
    QUOIN_SM90A(asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count)));
}
template <int count>
__device__ __forceinline__ void take_registers() {
    QUOIN_SM90A(asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count)));
}

__device__ __forceinline__ void begin_products() {
    QUOIN_SM90A(asm volatile("wgmma.fence.sync.aligned;" ::: "memory"));
}
__device__ __forceinline__ void commit_products() {
    QUOIN_SM90A(asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"));
}
__device__ __forceinline__ void wait_for_products() {
    QUOIN_SM90A(asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"));
}

/// Tells the compiler that x changes here. It does not know that products read their operands and write their results
/// later. Call it for operands before `begin_products`, and for results after `wait_for_products`.
__device__ __forceinline__ void settle(float& x) { asm volatile("" : "+f"(x)::"memory"); }
__device__ __forceinline__ void settle(unsigned& x) { asm volatile("" : "+r"(x)::"memory"); }

/// d := (d +) a X for a 64×16 in the warpgroup's registers and X 16×128.
__device__ __forceinline__ void multiply(float (&d)[64], const unsigned (&a)[4], std::uint64_t X, int accumulate) {
    QUOIN_SM90A(asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, "
        "%23, %24, %25, "
        "%26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, "
        "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, p, 1, 1, "
        "0;\n}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
          "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
          "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
          "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]),
          "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]),
          "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
          "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),
          "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(X), "r"(accumulate)));
}

/// d := a X, and d := d + a X, the same of 64 columns of X. `transposed`: the image is of Xᵀ, a row for each row of X.
template <bool transposed = false>
__device__ __forceinline__ void multiply(float (&d)[32], const unsigned (&a)[4], std::uint64_t X) {
    QUOIN_SM90A(asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, "
        "%23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, p, 1, 1, %37;\n}"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7]), "=f"(d[8]),
          "=f"(d[9]), "=f"(d[10]), "=f"(d[11]), "=f"(d[12]), "=f"(d[13]), "=f"(d[14]), "=f"(d[15]), "=f"(d[16]),
          "=f"(d[17]), "=f"(d[18]), "=f"(d[19]), "=f"(d[20]), "=f"(d[21]), "=f"(d[22]), "=f"(d[23]), "=f"(d[24]),
          "=f"(d[25]), "=f"(d[26]), "=f"(d[27]), "=f"(d[28]), "=f"(d[29]), "=f"(d[30]), "=f"(d[31])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(X), "n"(int(transposed))));
}
template <bool transposed = false>
__device__ __forceinline__ void multiply_add(float (&d)[32], const unsigned (&a)[4], std::uint64_t X) {
    QUOIN_SM90A(asm volatile(
        "{\n.reg .pred p;\nsetp.eq.b32 p, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, "
        "%23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, p, 1, 1, %37;\n}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
          "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
          "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
          "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(X), "n"(int(transposed))));
}

}  // namespace quoin::cuda::corrected
