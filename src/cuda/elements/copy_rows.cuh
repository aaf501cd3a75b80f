#pragma once

// Row-major matrices on their way to shared memory, where they are column-major.

#include "cuda/arch/sm80_copy_async.cuh"
#include "quoin/matrix.hpp"

namespace quoin::cuda {

/// Copies rows×n of a row-major A to a column-major `to`, by `threads` threads, of which this one is `thread`, an
/// element at a time. `valid` of the rows exist; the others become zeros.
template <int threads, class T>
__device__ __forceinline__ void copy_rows_async(T* to, int ld, const T* A, Index lda, int thread, int rows, int n,
                                                Index valid) {
    const int row_step = threads / n, col_step = threads % n;
    for (int i = thread / n, j = thread % n; i < rows;) {
        copy_async<sizeof(T)>(to + j * ld + i, A + i * lda + j, valid - i);
        i += row_step;
        j += col_step;
        if (j >= n) {
            j -= n;
            ++i;
        }
    }
}

}  // namespace quoin::cuda
