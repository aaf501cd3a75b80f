#include "papers/gram_schmidt_baselines.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "host/kernels/kernels.hpp"
#include "rivals/in_precision.hpp"

namespace quoin::bench {

namespace {

constexpr Index vector_rows = 4096;

/// xᵀy
template <class T>
T dot(Index m, const T* x, const T* y) {
    T sum = 0;
    for (Index i = 0; i < m; i += vector_rows) {
        host::kernels<T>().inner(1, 1, std::min(vector_rows, m - i), x + i, m, y + i, m, &sum, 1);
    }
    return sum;
}

/// y −= alpha x
template <class T>
void subtract(Index m, T alpha, const T* x, T* y) {
    host::kernels<T>().outer(m, 1, 1, x, m, &alpha, 1, y, m);
}

template <class T>
struct Blas {
    static constexpr auto gemv = in_precision<T>(cblas_sgemv, cblas_dgemv);
    static constexpr auto ger = in_precision<T>(cblas_sger, cblas_dger);
    static constexpr auto scal = in_precision<T>(cblas_sscal, cblas_dscal);
};

}  // namespace

template <class T>
void mgs_elementwise(MatrixView<T> Q, MatrixView<T> R) {
    const Index m = Q.rows, n = Q.cols;
    for (Index i = 0; i < n; ++i) {
        for (Index j = i; j < n; ++j) {
            R(i, j) = 0;
            for (Index k = 0; k < m; ++k) R(i, j) += Q(k, i) * Q(k, j);
        }
        R(i, i) = std::sqrt(R(i, i));
        for (Index k = 0; k < m; ++k) Q(k, i) /= R(i, i);
        for (Index j = i + 1; j < n; ++j) R(i, j) /= R(i, i);
        for (Index j = i + 1; j < n; ++j) {
            for (Index k = 0; k < m; ++k) Q(k, j) -= Q(k, i) * R(i, j);
        }
    }
}

template <class T>
void mgs_blas2(MatrixView<T> Q, MatrixView<T> R) {
    const int m = static_cast<int>(Q.rows), ldq = static_cast<int>(Q.ld), ldr = static_cast<int>(R.ld);
    for (Index i = 0; i < Q.cols; ++i) {
        const int rest = static_cast<int>(Q.cols - i);
        Blas<T>::gemv(CblasColMajor, CblasTrans, m, rest, 1, Q.at(0, i), ldq, Q.at(0, i), 1, 0, R.at(i, i), ldr);
        const T s = 1 / std::sqrt(R(i, i));
        Blas<T>::scal(m, s, Q.at(0, i), 1);
        Blas<T>::scal(rest, s, R.at(i, i), ldr);
        if (rest > 1) {
            Blas<T>::ger(CblasColMajor, m, rest - 1, -1, Q.at(0, i), 1, R.at(i, i + 1), ldr, Q.at(0, i + 1), ldq);
        }
    }
}

template <class T>
void mgs_unblocked(MatrixView<T> Q, MatrixView<T> R, int threads) {
    const Index m = Q.rows, n = Q.cols;
    for (Index i = 0; i < n; ++i) {
#pragma omp parallel for schedule(static) num_threads(threads)
        for (Index j = i; j < n; ++j) R(i, j) = dot<T>(m, Q.at(0, i), Q.at(0, j));
        const T s = 1 / std::sqrt(R(i, i));
        host::kernels<T>().scale(m, s, Q.at(0, i));
#pragma omp parallel for schedule(static) num_threads(threads)
        for (Index j = i; j < n; ++j) {
            R(i, j) *= s;
            if (j > i) subtract<T>(m, R(i, j), Q.at(0, i), Q.at(0, j));
        }
    }
}

template <class T>
void mgs_blocked(MatrixView<T> Q, MatrixView<T> R, Index b, int threads) {
    const Index m = Q.rows, n = Q.cols;
    std::vector<T> saved(static_cast<std::size_t>(m * b));
    for (Index i1 = 0; i1 < n; i1 += b) {
        const Index i2 = std::min(n, i1 + b);
        for (Index i = i1; i < i2; ++i) std::copy_n(Q.at(0, i), m, saved.data() + (i - i1) * m);
        mgs_unblocked(Q.col_block({i1, i2}), R.block({i1, i2}, {i1, i2}), threads);
#pragma omp parallel for schedule(static) num_threads(threads)
        for (Index j = i2; j < n; ++j) {
            for (Index i = i1; i < i2; ++i) {
                R(i, j) = dot<T>(m, saved.data() + (i - i1) * m, Q.at(0, j)) / R(i, i);
                subtract<T>(m, R(i, j), Q.at(0, i), Q.at(0, j));
            }
        }
    }
}

#define QUOIN_INSTANTIATE(T)                                           \
    template void mgs_elementwise<T>(MatrixView<T>, MatrixView<T>);    \
    template void mgs_blas2<T>(MatrixView<T>, MatrixView<T>);          \
    template void mgs_unblocked<T>(MatrixView<T>, MatrixView<T>, int); \
    template void mgs_blocked<T>(MatrixView<T>, MatrixView<T>, Index, int);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin::bench
