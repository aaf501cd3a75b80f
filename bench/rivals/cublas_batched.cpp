#include "rivals/cublas_batched.hpp"

#include <fmt/format.h>

#include <limits>
#include <vector>

#include "cuda/runtime/blas.hpp"
#include "cuda/runtime/state.hpp"
#include "rivals/in_precision.hpp"

namespace quoin::bench {

namespace {

int dimension_of_batch(Index size) {
    if (size > std::numeric_limits<int>::max())
        throw InvalidArgument(fmt::format("cuBLAS counts in 32 bits, too few for {}", size));
    return static_cast<int>(size);
}

}  // namespace

template <class T>
CublasBatchedQR<T>::CublasBatchedQR(Context<Cuda>& ctx, BatchView<T, Cuda> A)
    : m_(dimension_of_batch(A.rows(0))),
      n_(dimension_of_batch(A.cols(0))),
      ld_(dimension_of_batch(A.col_stride(0))),
      count_(dimension_of_batch(A.count())),
      tau_(ctx, std::min(m_, n_), count_),
      pointers_(ctx, count_, 2) {
    std::vector<T*> pointers(2 * static_cast<std::size_t>(count_));
    for (Index b = 0; b < count_; ++b) {
        pointers[b] = A.data(b);
        pointers[count_ + b] = tau_.data() + b * tau_.rows();
    }
    // from pageable memory: read before the call returns
    QUOIN_CUDA_CHECK(cudaMemcpyAsync(pointers_.data(), pointers.data(), pointers.size() * sizeof(T*),
                                     cudaMemcpyHostToDevice, ctx.stream()));
}

template <class T>
void CublasBatchedQR<T>::geqrf(Context<Cuda>& ctx) {
    constexpr auto geqrf_batched = in_precision<T>(cublasSgeqrfBatched, cublasDgeqrfBatched);
    int info = 0;
    QUOIN_CUDA_CHECK(
        geqrf_batched(ctx.state().blas(), m_, n_, pointers_.data(), ld_, pointers_.data() + count_, &info, count_));
    if (info != 0) throw InvalidArgument(fmt::format("cuBLAS's geqrfBatched refuses argument {}", -info));
}

template class CublasBatchedQR<float>;
template class CublasBatchedQR<double>;

}  // namespace quoin::bench
