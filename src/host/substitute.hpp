#pragma once

// Substitution with a triangle, block by block.

#include <complex>

#include "host/block_reflector.hpp"
#include "primitives/triangles.hpp"

namespace quoin::host {

#pragma omp declare reduction(+ : std::complex <float> : omp_out += omp_in)
#pragma omp declare reduction(+ : std::complex <double> : omp_out += omp_in)

/// Columns of A that a substitution takes at once.
inline constexpr Index substitute_width = Tuning<Host>::square_step;

/// x := op(A)⁻¹ x for one diagonal block A (n×n) of the triangle.
template <class T>
void substitute_block(Triangle triangle, Op op, Index n, const T* A, Index lda, T* x) {
    const bool upper = triangle == Triangle::Upper, backwards = upper == (op == Op::None);
    for (Index step = 0; step < n; ++step) {
        const Index j = backwards ? n - 1 - step : step;
        const Range others = upper ? Range{0, j} : Range{j + 1, n};
        const T* const a = A + j * lda;
        if (op == Op::Transpose) {
            T sum = 0;
#pragma omp simd reduction(+ : sum)
            for (Index i = others.begin; i < others.end; ++i) sum += conjugate(a[i]) * x[i];
            x[j] -= sum;
        }
        if (triangle != Triangle::UnitLower) x[j] /= op == Op::Transpose ? conjugate(a[j]) : a[j];
        if (op == Op::None) {
            const T x_j = x[j];
#pragma omp simd
            for (Index i = others.begin; i < others.end; ++i) x[i] -= a[i] * x_j;
        }
    }
}

/// x := op(A)⁻¹ x for the triangle of A (n×n), which is read once; not finite if a diagonal entry that counts is 0.
template <class T>
void substitute(Triangle triangle, Op op, MatrixView<const T> A, T* x) {
    constexpr Index width = substitute_width;
    const Index n = A.rows, blocks = (n + width - 1) / width;
    const bool upper = triangle == Triangle::Upper, backwards = upper == (op == Op::None);
    for (Index step = 0; step < blocks; ++step) {
        const Index j = (backwards ? blocks - 1 - step : step) * width, w = std::min(width, n - j);
        // A₂₁, the block's columns in the rows of the triangle outside of it
        const Range others = upper ? Range{0, j} : Range{j + w, n};
        const T* const a = A.at(others.begin, j);
        if (op == Op::Transpose) {
            // x₁ −= A₂₁ᵀ x₂
            T sums[width] = {};
            inner_blocked(w, Index(1), others.size(), a, A.ld, x + others.begin, n, sums, w);
            for (Index i = 0; i < w; ++i) x[j + i] -= sums[i];
        }
        substitute_block(triangle, op, w, A.at(j, j), A.ld, x + j);
        // x₂ −= A₂₁ x₁
        if (op == Op::None) outer_blocked(others.size(), Index(1), w, a, A.ld, x + j, n, x + others.begin, n);
    }
}

}  // namespace quoin::host
