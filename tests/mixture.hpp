#pragma once

#include <cmath>

#include "checks.hpp"
#include "gallery.hpp"

namespace quoin::test {

/// M = L + S with L = ABᵀ of rank r and S of `density` entries of size 1, far inside the domain where both are
/// recovered exactly (Candès, Li, Ma and Wright 2011).
template <class T>
struct Mixture {
    Matrix<T> L, S, M;
    Mixture(Index m, Index n, Index r, double density) : L(m, n), S(filled<T>(m, n, 0)), M(m, n) {
        const Matrix<T> A = random_normal<T>(m, r, 1), B = random_normal<T>(n, r, 2), where = random_normal<T>(m, n, 3);
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) {
                double sum = 0;
                for (Index k = 0; k < r; ++k) sum += static_cast<double>(A(i, k)) * static_cast<double>(B(j, k));
                L(i, j) = static_cast<T>(sum / std::sqrt(static_cast<double>(r)));
                // one quantile of the normal distribution for 5%
                if (density > 0 && std::abs(where(i, j)) > T(1.96)) S(i, j) = where(i, j) > 0 ? T(1) : T(-1);
                M(i, j) = L(i, j) + S(i, j);
            }
        }
    }
    /// M := M + noise N, N normal.
    void add_noise(double noise) {
        const Matrix<T> N = random_normal<T>(M.rows(), M.cols(), 9);
        for (Index j = 0; j < M.cols(); ++j) {
            for (Index i = 0; i < M.rows(); ++i) M(i, j) += T(noise) * N(i, j);
        }
    }
};

}  // namespace quoin::test
