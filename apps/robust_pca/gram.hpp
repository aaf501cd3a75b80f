#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "host/block_reflector.hpp"
#include "primitives.hpp"

namespace quoin {

/// Rows of a block of n columns that is worked on in cache.
template <class T>
Index block_height(Index n) {
    return std::clamp<Index>((Index(256) << 10) / (std::max<Index>(n, 1) * Index(sizeof(T))) / 48 * 48, 48,
                             host::block_rows<T>);
}

/// s and Vᵀ of X (n columns) from the upper triangle of G = XᵀX, which is lost.
template <class T>
void eigenvectors_of_gram(Context<Host>& ctx, MatrixView<double> G, std::span<T> s, MatrixView<T> Vt) {
    const Index n = G.cols;
    Matrix<double> U(n, n), W(n, n);
    for (Index j = 0; j < n; ++j) {
        for (Index i = j + 1; i < n; ++i) G(i, j) = G(j, i);
    }
    std::vector<double> squares(static_cast<std::size_t>(n));
    small_svd<double>(ctx, G, squares, U.view(), W.view());
    for (Index j = 0; j < n; ++j) {
        s[static_cast<std::size_t>(j)] = static_cast<T>(std::sqrt(std::max(0.0, squares[static_cast<std::size_t>(j)])));
        for (Index i = 0; i < n; ++i) Vt(i, j) = static_cast<T>(W(i, j));
    }
}

}  // namespace quoin
