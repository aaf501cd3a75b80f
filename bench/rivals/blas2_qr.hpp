#pragma once

#include "quoin/cuda.hpp"

namespace quoin::bench {

/// The unblocked Householder QR that Anderson, Ballard, Demmel and Keutzer (2010) compare CAQR with, tuned for
/// tall-skinny matrices: one column at a time, bound by the bandwidth of the memory. A baseline.
///
/// About mn² − n³/3 elements are read and as many written. The sums of squares are not scaled: entries whose squares
/// leave the range of T are outside its domain. The same bits from run to run.
template <class T>
class Blas2QR {
public:
    /// Workspace and launches, recorded in a CUDA graph, for this A (m×n, any m and n), which must outlive it.
    Blas2QR(Context<Cuda>& ctx, MatrixView<T, Cuda> A);
    ~Blas2QR();
    Blas2QR(const Blas2QR&) = delete;
    Blas2QR& operator=(const Blas2QR&) = delete;

    /// A := V below the diagonal, R on and above it. Enqueued.
    void geqrf(Context<Cuda>& ctx);
    /// min(m, n)×1, as LAPACK's.
    const Matrix<T, Cuda>& tau() const { return tau_; }

private:
    void enqueue(Context<Cuda>& ctx, MatrixView<T, Cuda> A);

    Matrix<T, Cuda> tau_, x_, w_, parts_, reflector_;
    struct Graph;
    std::unique_ptr<Graph> graph_;
};

}  // namespace quoin::bench
