#pragma once

// Exponents of column norms, chosen on the host.

#include <cmath>
#include <limits>
#include <vector>

#include "primitives.hpp"

namespace quoin {

template <class T, class D>
void norm_exponents(Context<D>& ctx, View<const T, D> A, View<int, D> exponents, View<Scan, D> found) {
    if (found.data) scan<T>(ctx, A, std::numeric_limits<int>::max(), exponents, found);
    std::vector<Real<T>> norms(A.cols);
    column_norms<T>(ctx, A, norms);
    Matrix<int> e(A.cols, 1);
    for (Index j = 0; j < A.cols; ++j) e(j, 0) = norms[j] > 0 && std::isfinite(norms[j]) ? std::ilogb(norms[j]) : 0;
    start_copy_from_host<int>(ctx, e.view(), exponents);
    ctx.wait();
}

}  // namespace quoin
