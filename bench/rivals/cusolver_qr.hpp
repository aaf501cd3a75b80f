#pragma once

#include "quoin/cuda.hpp"

namespace quoin::bench {

/// cuSOLVER's QR, in place, on the context's stream, its workspace allocated beforehand.
///
/// Throws InvalidArgument where a size does not fit the 32-bit integers of its geqrf and orgqr.
template <class T>
class CusolverQR {
public:
    /// Workspace for an m×n matrix.
    CusolverQR(Context<Cuda>& ctx, Index m, Index n);

    /// A := V below the diagonal, R on and above it. Enqueued.
    void geqrf(Context<Cuda>& ctx, MatrixView<T, Cuda> A);
    /// The first k = min(m, n) columns of A := thin Q, from what geqrf left there and in tau. Enqueued.
    void orgqr(Context<Cuda>& ctx, MatrixView<T, Cuda> A) { orgqr(ctx, A, tau_); }
    /// Forms Q with the caller's tau, k×1.
    void orgqr(Context<Cuda>& ctx, MatrixView<T, Cuda> A, const Matrix<T, Cuda>& tau);
    /// C := QᵀC, from what geqrf left in A and in tau. Enqueued; the workspace is allocated at the first call.
    void ormqr(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<T, Cuda> C);

private:
    int m_, n_, k_;
    Matrix<T, Cuda> tau_, work_;
    Matrix<int, Cuda> info_;
};

}  // namespace quoin::bench
