#pragma once

#include <algorithm>
#include <vector>

#include "checks.hpp"

/// Products of matrices in higher precision than their entries': what the checks spend their time with.
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

template <class T>
WideMatrix<Wide<T>> widened(MatrixView<const T> A) {
    WideMatrix<Wide<T>> B(A.rows, A.cols);
    for (Index j = 0; j < A.cols; ++j) std::copy_n(A.at(0, j), A.rows, B.column(j));
    return B;
}

/// E := E − LᵀR for E (m×n) of W, and L (k×m) and R (k×n) of X, W itself or the type that W widens. With `upper` R is
/// upper trapezoidal, whatever is below its diagonal.
template <class W, class X>
void subtract_product(WideMatrix<W>& E, MatrixView<const X> L, MatrixView<const X> R, bool upper = false);

}  // namespace quoin::test
