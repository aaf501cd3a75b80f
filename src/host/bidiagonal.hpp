#pragma once

// Reduction to bidiagonal form.

#include <span>
#include <vector>

#include "primitives/context.hpp"

namespace quoin::host {

/// A = H [B; 0] Gᵀ, m×n with m >= n, and an upper bidiagonal B, n×n. H and G are products of reflectors in LAPACK's
/// format.
template <class T>
struct Bidiagonal {
    std::vector<T> d, e;          ///< the diagonal of B and the one above it: n and n − 1 numbers
    MatrixView<T> V;              ///< m×n: H's reflectors below the diagonal
    Matrix<T> U;                  ///< n×n: G's reflectors below the first diagonal below the main one
    std::vector<T> tau_v, tau_u;  ///< n and n − 1 factors
};

/// Reduces A, whose largest entry is near 1, to bidiagonal form by panels (Dongarra, Sorensen and Hammarling 1989). A's
/// memory receives V. Two reflectors take one sweep over the trailing matrix (Howell, Demmel, Fulton, Hammarling and
/// Marmol 2008). A + E = H [B; 0] Gᵀ with ‖E‖_F = O(nu)‖A‖_F. 4mn² − 4n³/3 flops, mn²/2 − n³/6 words
/// moved. The bits do not depend on the number of threads.
template <class T>
Bidiagonal<T> reduce_to_bidiagonal(Context<Host>& ctx, MatrixView<T> A);

/// B = U diag(s) Vᵀ by divide and conquer (Gu and Eisenstat 1995), for the upper bidiagonal B with the diagonal `s`,
/// which receives the values, and `e` above it. U and Vt are n×n, `work` holds 3n² numbers. B + E = U diag(s) Vᵀ with
/// ‖E‖ = O(nu)‖B‖. About 8n³/3 flops, fewer if values nearly coincide. The bits do not depend on the number of threads.
/// Returns false if LAPACK does not find a root, and then s is lost.
template <class T>
bool divide_and_conquer(Context<Host>& ctx, std::span<T> s, std::span<const T> e, MatrixView<T> U, MatrixView<T> Vt,
                        T* work);

/// C := H C for the reflectors of V and tau_v (`first` = 0), or C := G C for U and tau_u (`first` = 1).
template <class T>
void apply_reflectors(Context<Host>& ctx, Index first, MatrixView<T> V, std::vector<T>& tau, MatrixView<T> C);

}  // namespace quoin::host
