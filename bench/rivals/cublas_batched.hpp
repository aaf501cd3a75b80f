#pragma once

#include "quoin/batch.hpp"
#include "quoin/cuda.hpp"

namespace quoin::bench {

/// cuBLAS's geqrfBatched of matrices of one shape, in place, on the context's stream.
template <class T>
class CublasBatchedQR {
public:
    /// Throws InvalidArgument where a size does not fit cuBLAS's 32-bit integers.
    CublasBatchedQR(Context<Cuda>& ctx, BatchView<T, Cuda> A);

    /// A := V below the diagonal, R on and above it. Enqueued.
    void geqrf(Context<Cuda>& ctx);

private:
    int m_, n_, ld_, count_;
    Matrix<T, Cuda> tau_;
    Matrix<T*, Cuda> pointers_;  // to the matrices, and to their taus
};

}  // namespace quoin::bench
