#pragma once

#include <vector>

#include "quoin/matrix.hpp"

namespace quoin::cli {

/// LAPACK through the BLAS that Quoin uses, called in place with the optimal workspace of each routine; the
/// middle-level LAPACKE interface, so that neither its check for NaN nor an allocation counts against the reference.
/// Each throws InvalidArgument where a size does not fit LAPACK's 32-bit integers or LAPACK reports an error.
template <class T>
class ReferenceLapack {
public:
    /// Sizes the workspace for m×n.
    ReferenceLapack(Index m, Index n);

    /// A := V below the diagonal, R on and above it.
    void geqrf(MatrixView<T> A);
    /// Factors A in blocks of nb columns, and Tf (nb×k) := the T of each block.
    void geqrt(MatrixView<T> A, MatrixView<T> Tf);
    /// Factors A with one T, n×n; m >= n.
    void geqrt3(MatrixView<T> A, MatrixView<T> Tf);
    /// C := QᵀC, from what geqrf left in A and in tau.
    void ormqr(MatrixView<const T> A, MatrixView<T> C);
    /// The first k = min(m, n) columns of A := thin Q, from what geqrf left there and in tau.
    void orgqr(MatrixView<T> A);
    /// Forms Q with the caller's tau.
    void orgqr(MatrixView<T> A, const T* tau);
    /// min ‖Ax − b‖ or the least x; b has max(m, n) rows.
    void gels(MatrixView<T> A, MatrixView<T> b);
    /// A = U diag(s) Vᵀ, thin; A is destroyed.
    void gesdd(MatrixView<T> A, MatrixView<T> U, std::vector<T>& s, MatrixView<T> Vt);

private:
    std::vector<T> tau_;
    std::vector<T> work_;
    std::vector<int> iwork_;
};

}  // namespace quoin::cli
