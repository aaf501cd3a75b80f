#pragma once

// Refusals of matrices: storage that cannot be, and entries that are not finite.

#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <utility>

#include "algorithms/shared/copies.hpp"
#include "devices.hpp"

namespace quoin {

/// Throws InvalidArgument. `contiguous` elements (the `rows` of a column-major matrix, the `cols` of a row-major one)
/// lie next to each other.
inline void check_storage(const void* data, Index rows, Index cols, Index contiguous, const char* direction, Index ld) {
    if (rows < 0 || cols < 0) {
        throw InvalidArgument(fmt::format("a matrix cannot have {} rows and {} columns", rows, cols));
    }
    if (ld < std::max<Index>(1, contiguous)) {
        throw InvalidArgument(fmt::format("ld must be at least max(1, {}) = {}, and is {}", direction,
                                          std::max<Index>(1, contiguous), ld));
    }
    if (!data && rows > 0 && cols > 0) throw InvalidArgument("the matrix has no data");
}
template <class T, class D>
void check_matrix(MatrixView<const T, D> A) {
    check_storage(A.data, A.rows, A.cols, A.rows, "rows", A.ld);
}

/// Returns what one pass over A finds (`scan`). Waits.
template <class T, class D>
Scan scanned(Context<D>& ctx, Input<T, D> A, int safe) {
    Matrix<int, D> exponents(ctx, A.cols, 1);
    Matrix<Scan, D> found(ctx, 1, 1);
    scan<T>(ctx, A, safe, exponents.view(), found.view());
    return read_scan(ctx, std::as_const(found).view());
}

/// Throws NonFiniteEntry with the first NaN or Inf of A in column-major order.
template <class T, class D>
void require_finite(Context<D>& ctx, Input<T, D> A, const char* name = "the matrix") {
    const Scan found = scanned<T, D>(ctx, A, std::numeric_limits<int>::max());
    if (found.bad_row >= 0) throw NonFiniteEntry(found.bad_row, found.bad_col, name);
}

}  // namespace quoin
