// The kernels of complex numbers, in plain loops.

#include "host/kernels/kernels.hpp"
#include "quoin/scalar.hpp"

namespace quoin::host {
namespace {

/// aᴴb, summed by halves down to chains of `longest_chain`.
template <class T>
T inner_product(Index k, const T* a, const T* b) {
    if (k > longest_chain) {
        const Index half = k / 2;
        return inner_product(half, a, b) + inner_product(k - half, a + half, b + half);
    }
    T sum = 0;
    for (Index i = 0; i < k; ++i) sum += conjugate(a[i]) * b[i];
    return sum;
}

template <class T>
void inner(Index m, Index n, Index k, const T* A, Index lda, const T* B, Index ldb, T* C, Index ldc) {
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) C[i + j * ldc] += inner_product(k, A + i * lda, B + j * ldb);
    }
}

template <class T>
void inner_upper(Index n, Index k, const T* A, Index lda, T* C, Index ldc) {
    for (Index j = 0; j < n; ++j) inner(j + 1, 1, k, A, lda, A + j * lda, lda, C + j * ldc, ldc);
}

template <class T>
void outer(Index m, Index n, Index k, const T* A, Index lda, const T* B, Index ldb, T* C, Index ldc) {
    for (Index j = 0; j < n; ++j) {
        for (Index p = 0; p < k; ++p) {
            const T b = B[p + j * ldb];
            for (Index i = 0; i < m; ++i) C[i + j * ldc] -= A[i + p * lda] * b;
        }
    }
}

template <class T>
void solve(Index m, Index n, T* X, Index ldx, const T* R, Index ldr) {
    for (Index j = 0; j < n; ++j) {
        outer(m, 1, j, X, ldx, R + j * ldr, ldr, X + j * ldx, ldx);
        for (Index i = 0; i < m; ++i) X[i + j * ldx] /= R[j + j * ldr];
    }
}

template <class T>
void scale(Index m, T alpha, T* x) {
    for (Index i = 0; i < m; ++i) x[i] *= alpha;
}

template <class T>
void reflect(Index m, Index n, T alpha, T* x, const T* w, T* C, Index ldc) {
    scale(m, alpha, x);
    outer(m, n, 1, x, m, w, 1, C, ldc);
}

template <class T>
void add_groups(Index count, const T* x, const Real<T>* row_signs, const GroupPlaces<T>* places, T* y) {
    for (Index i = 0; i < 32 * count; ++i) {
        const GroupPlaces<T>& group = places[i / 32];
        for (int k = 0; k < 4; ++k) y[group.to[k] + i % 32] += group.sign[k] * row_signs[i] * x[i];
    }
}

template <class T>
void transpose(Index m, Index n, const T* A, Index lda, T* B, Index ldb) {
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) B[j + i * ldb] = A[i + j * lda];
    }
}

template <class T>
constexpr Kernels<T> plain_kernels = {"plain",  inner<T>,   inner_upper<T>, outer<T>,    solve<T>,
                                      scale<T>, reflect<T>, add_groups<T>,  transpose<T>};

}  // namespace

template <>
const Kernels<std::complex<float>>& kernels<std::complex<float>>() {
    return plain_kernels<std::complex<float>>;
}
template <>
const Kernels<std::complex<double>>& kernels<std::complex<double>>() {
    return plain_kernels<std::complex<double>>;
}

}  // namespace quoin::host
