#pragma once

// 16 rows of a matrix as tiles 16×8 (sm80_dmma.cuh) of a warp, widened to f64: rows g and g + 8 of a tile are the
// matrix's rows 2g and 2g + 1, so that a lane reads and writes pairs. For products that allow any order of rows.

#include "cuda/arch/sm70_registers.cuh"
#include "cuda/arch/sm80_dmma.cuh"
#include "quoin/matrix.hpp"

namespace quoin::cuda {

/// Rows 2g and 2g + 1 of a column.
template <class T>
struct alignas(2 * sizeof(T)) Pair {
    T v[2];
};

template <class T>
__device__ __forceinline__ bool aligned_pairs(const T* A, Index lda) {
    return reinterpret_cast<unsigned long long>(A) % sizeof(Pair<T>) == 0 && lda % 2 == 0;
}

template <class T, class Number>
__device__ __forceinline__ void store_pair(T* p, Number x, Number y) {
    *reinterpret_cast<Pair<T>*>(p) = {{static_cast<T>(x), static_cast<T>(y)}};
}
__device__ __forceinline__ void store_pair(float* p, float x, float y) { store_together(p, x, y); }

/// The entries of 8 columns that a lane holds: its rows of columns 2t and 2t + 1.
template <class T>
struct LanePairs {
    Pair<T> of_col[2];

    __device__ __forceinline__ Tile16x8 widened() const {
        return {{double(of_col[0].v[0]), double(of_col[1].v[0]), double(of_col[0].v[1]), double(of_col[1].v[1])}};
    }
};

/// Where a lane's first entry of 8 columns stands, at A the first of all.
template <class T>
__device__ __forceinline__ T* lane_of(T* A, Index lda) {
    return A + threadIdx.x % 32 / 4 * 2 + threadIdx.x % 4 * 2 * lda;
}
__device__ __forceinline__ int lane_of(int columns) { return columns - static_cast<int>(threadIdx.x % 4) * 2; }

/// Loads from p, the lane's first entry. `left` columns exist from its own on, any number. Other columns, and rows from
/// `valid` on, become zeros. If `whole`, all 16 rows exist and can be read in pairs.
template <bool whole, class T>
__device__ __forceinline__ LanePairs<T> load_pairs(const T* p, Index lda, int left, Index valid) {
    const int first = threadIdx.x % 32 / 4 * 2;
    LanePairs<T> a = {};
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        if (left <= e) continue;
        if constexpr (whole) {
            a.of_col[e] = *reinterpret_cast<const Pair<T>*>(p + e * lda);
        } else {
            if (first < valid) a.of_col[e].v[0] = p[e * lda];
            if (first + 1 < valid) a.of_col[e].v[1] = p[e * lda + 1];
        }
    }
    return a;
}

/// Calls use(j, columns 8j … of 16 rows of A). `valid` of the rows exist; rows beyond them and columns beyond n are
/// zeros. All loads are under way before the first is waited for (Q and R of 1 000 000×192 in f32 on an H100: 2.16 ms,
/// and 2.25 tile by tile).
template <int col_tiles, class T, class Use>
__device__ __forceinline__ void load_rows(const T* A, Index lda, int n, Index valid, bool pairs, Use use) {
    const auto load = [&]<bool whole>() {
        LanePairs<T> a[col_tiles];
        const T* p = lane_of(A, lda);
#pragma unroll
        for (int j = 0; j < col_tiles; ++j, p += 8 * lda) a[j] = load_pairs<whole>(p, lda, lane_of(n) - 8 * j, valid);
#pragma unroll
        for (int j = 0; j < col_tiles; ++j) use(j, a[j]);
    };
    if (pairs && valid >= 16) {
        load.template operator()<true>();
    } else {
        load.template operator()<false>();
    }
}
template <int col_tiles, class T>
__device__ __forceinline__ void load_rows(Tile16x8 (&X)[col_tiles], const T* A, Index lda, int n, Index valid,
                                          bool pairs) {
    load_rows<col_tiles>(A, lda, n, valid, pairs, [&](int j, const LanePairs<T>& a) { X[j] = a.widened(); });
}

template <class Tile, int col_tiles, class T>
__device__ __forceinline__ void store_rows(const Tile (&X)[col_tiles], T* B, Index ldb, int n, Index valid,
                                           bool pairs) {
    const int first = threadIdx.x % 32 / 4 * 2;
    const auto store = [&]<bool whole>() {
        T* p = lane_of(B, ldb);
#pragma unroll
        for (int j = 0; j < col_tiles; ++j, p += 8 * ldb) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                if (lane_of(n) - 8 * j <= e) continue;
                const auto x = X[j].v[e], y = X[j].v[2 + e];
                if constexpr (whole) {
                    store_pair(p + e * ldb, x, y);
                } else {
                    if (first < valid) p[e * ldb] = static_cast<T>(x);
                    if (first + 1 < valid) p[e * ldb + 1] = static_cast<T>(y);
                }
            }
        }
    };
    if (pairs && valid >= 16) {
        store.template operator()<true>();
    } else {
        store.template operator()<false>();
    }
}

}  // namespace quoin::cuda
