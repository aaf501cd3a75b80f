#pragma once

// Reduction of a square matrix to bidiagonal form.

#include <vector>

#include "primitives/context.hpp"

namespace quoin::host {

/// Order of a matrix from which on `reduce_to_bidiagonal` is faster than LAPACK's gebrd by one thread.
inline constexpr Index min_reduced_by_panels = 128;

/// A = H B Gᵀ, n×n, with an upper bidiagonal B. H and G are products of reflectors in LAPACK's format.
template <class T>
struct Bidiagonal {
    std::vector<T> d, e;          ///< the diagonal of B and the one above it: n and n − 1 numbers
    MatrixView<T> V;              ///< n×n: H's reflectors below the diagonal
    Matrix<T> U;                  ///< n×n: G's reflectors below the first diagonal below the main one
    std::vector<T> tau_v, tau_u;  ///< n and n − 1 factors
};

/// Reduces A, whose largest entry is near 1, to bidiagonal form by panels (Dongarra, Sorensen and Hammarling 1989). A's
/// memory receives V. Two reflectors take one sweep over the trailing matrix (Howell, Demmel, Fulton, Hammarling and
/// Marmol 2008). A + E = H B Gᵀ with ‖E‖_F = O(nu)‖A‖_F. 8n³/3 flops, n³/3 words moved. The bits do not depend on the
/// number of threads.
template <class T>
Bidiagonal<T> reduce_to_bidiagonal(Context<Host>& ctx, MatrixView<T> A);

/// C := H C for the reflectors of V and tau_v (`first` = 0), or C := G C for U and tau_u (`first` = 1).
template <class T>
void apply_reflectors(Context<Host>& ctx, Index first, MatrixView<T> V, std::vector<T>& tau, MatrixView<T> C);

}  // namespace quoin::host
