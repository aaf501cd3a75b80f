#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "checks.hpp"

/// Products of matrices in higher precision than their entries. The checks spend most of their time here.
namespace quoin::test {

/// A column-major matrix of the wide type.
template <class W>
struct WideMatrix {
    Index rows, cols;
    std::vector<W> data;
    WideMatrix(Index m, Index n) : rows(m), cols(n), data(static_cast<std::size_t>(m * n), W(0)) {}
    W& operator()(Index i, Index j) { return data[i + j * rows]; }
    const W& operator()(Index i, Index j) const { return data[i + j * rows]; }
    W* column(Index j) { return data.data() + j * rows; }
    const W* column(Index j) const { return data.data() + j * rows; }
    MatrixView<const W> view() const { return {data.data(), rows, cols}; }
};

/// xᵀy, in independent sums so that additions need not wait for each other. Long double has registers for few; in
/// memory it is five times as slow as double.
template <class W, class X>
W dot(const X* x, const X* y, Index m) {
    constexpr Index lanes = sizeof(W) > 8 ? 3 : 8;
    W sums[lanes] = {};
    Index i = 0;
    for (; i + lanes <= m; i += lanes)
        for (Index l = 0; l < lanes; ++l) sums[l] += W(x[i + l]) * W(y[i + l]);
    for (; i < m; ++i) sums[0] += W(x[i]) * W(y[i]);
    return std::accumulate(sums, sums + lanes, W(0));
}

/// The norm of a column.
template <class W>
W norm(const WideMatrix<W>& A, Index j) {
    return std::sqrt(dot<W>(A.column(j), A.column(j), A.rows));
}

template <class T, class W = Wide<T>>
WideMatrix<W> widened(MatrixView<const T> A) {
    WideMatrix<W> B(A.rows, A.cols);
    for (Index j = 0; j < A.cols; ++j) std::copy_n(A.at(0, j), A.rows, B.column(j));
    return B;
}

/// E := E − LᵀR, m×n, for L (k×m) and R (k×n). X is W, or the type that W widens. With `upper` R is upper trapezoidal,
/// whatever is below its diagonal.
template <class W, class X>
void subtract_product(WideMatrix<W>& E, MatrixView<const X> L, MatrixView<const X> R, bool upper = false);

}  // namespace quoin::test
