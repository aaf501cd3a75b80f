#include "rivals/cusolver_qr.hpp"

#include <fmt/format.h>

#include <limits>

#include "cuda/runtime/solver.hpp"
#include "cuda/runtime/state.hpp"
#include "rivals/in_precision.hpp"

namespace quoin::bench {

namespace {

/// The routines of T's precision under one name.
template <class T>
struct Cusolver {
    static constexpr auto geqrf_size = in_precision<T>(cusolverDnSgeqrf_bufferSize, cusolverDnDgeqrf_bufferSize);
    static constexpr auto geqrf = in_precision<T>(cusolverDnSgeqrf, cusolverDnDgeqrf);
    static constexpr auto orgqr_size = in_precision<T>(cusolverDnSorgqr_bufferSize, cusolverDnDorgqr_bufferSize);
    static constexpr auto orgqr = in_precision<T>(cusolverDnSorgqr, cusolverDnDorgqr);
    static constexpr auto ormqr_size = in_precision<T>(cusolverDnSormqr_bufferSize, cusolverDnDormqr_bufferSize);
    static constexpr auto ormqr = in_precision<T>(cusolverDnSormqr, cusolverDnDormqr);
};

int dimension(Index size) {
    if (size > std::numeric_limits<int>::max())
        throw InvalidArgument(fmt::format("cuSOLVER counts in 32 bits, too few for a dimension of {}", size));
    return static_cast<int>(size);
}

}  // namespace

template <class T>
CusolverQR<T>::CusolverQR(Context<Cuda>& ctx, Index m, Index n)
    : m_(dimension(m)), n_(dimension(n)), k_(std::min(m_, n_)), tau_(ctx, k_, 1), info_(ctx, 1, 1) {
    const cusolverDnHandle_t solver = ctx.state().solver();
    int geqrf_size = 0, orgqr_size = 0;
    QUOIN_CUDA_CHECK(Cusolver<T>::geqrf_size(solver, m_, n_, nullptr, m_, &geqrf_size));
    QUOIN_CUDA_CHECK(Cusolver<T>::orgqr_size(solver, m_, k_, k_, nullptr, m_, nullptr, &orgqr_size));
    work_ = Matrix<T, Cuda>(ctx, std::max(geqrf_size, orgqr_size), 1);
}

template <class T>
void CusolverQR<T>::geqrf(Context<Cuda>& ctx, MatrixView<T, Cuda> A) {
    QUOIN_CUDA_CHECK(Cusolver<T>::geqrf(ctx.state().solver(), m_, n_, A.data, dimension(A.ld), tau_.data(),
                                        work_.data(), static_cast<int>(work_.rows()), info_.data()));
}

template <class T>
void CusolverQR<T>::orgqr(Context<Cuda>& ctx, MatrixView<T, Cuda> A, const Matrix<T, Cuda>& tau) {
    QUOIN_CUDA_CHECK(Cusolver<T>::orgqr(ctx.state().solver(), m_, k_, k_, A.data, dimension(A.ld), tau.data(),
                                        work_.data(), static_cast<int>(work_.rows()), info_.data()));
}

template <class T>
void CusolverQR<T>::ormqr(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<T, Cuda> C) {
    const cusolverDnHandle_t solver = ctx.state().solver();
    const int p = dimension(C.cols);
    int size = 0;
    QUOIN_CUDA_CHECK(Cusolver<T>::ormqr_size(solver, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, m_, p, k_, A.data, dimension(A.ld),
                                             tau_.data(), C.data, dimension(C.ld), &size));
    if (work_.rows() < size) work_ = Matrix<T, Cuda>(ctx, size, 1);
    QUOIN_CUDA_CHECK(Cusolver<T>::ormqr(solver, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, m_, p, k_, A.data, dimension(A.ld),
                                        tau_.data(), C.data, dimension(C.ld), work_.data(),
                                        static_cast<int>(work_.rows()), info_.data()));
}

template class CusolverQR<float>;
template class CusolverQR<double>;

}  // namespace quoin::bench
