// The measures of errors, which the host takes.

#include "quoin/cuda.hpp"
#include "quoin/qr.hpp"

namespace quoin {

template <class T>
double orthogonality(Context<Cuda>& ctx, MatrixView<const T, Cuda> Q) {
    Context<Host> host;
    return orthogonality<T>(host, copy_to_host<T>(ctx, Q).view());
}

template <class T>
double residual(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<const T, Cuda> Q,
                MatrixView<const T, Cuda> R) {
    Context<Host> host;
    return residual<T>(host, copy_to_host<T>(ctx, A).view(), copy_to_host<T>(ctx, Q).view(),
                       copy_to_host<T>(ctx, R).view());
}

#define QUOIN_INSTANTIATE(T)                                                                          \
    template double orthogonality<T>(Context<Cuda>&, MatrixView<const T, Cuda>);                      \
    template double residual<T>(Context<Cuda>&, MatrixView<const T, Cuda>, MatrixView<const T, Cuda>, \
                                MatrixView<const T, Cuda>);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
