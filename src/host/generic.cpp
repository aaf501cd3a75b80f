// Primitives without a version of their own on the host. Those of pursuit are in pursuit.cpp, because the drop-in lacks
// the SVD that they need.

#include "host/device.hpp"
#include "primitives/generic/norm_exponents.hpp"
#include "primitives/generic/reconstruct_top.hpp"
#include "primitives/generic/rounded_columns.hpp"

namespace quoin {

template <class T, class D>
void reconstruct_top(Context<D>& ctx, View<const T, D> A, View<const Sum<T, D>, D> Y, double limit, View<T, D> R,
                     View<T, D> V, View<T, D> Tf, View<Sum<T, D>, D> U, View<T, D> signs,
                     CertificateView<D> certificate) {
    reconstruct_top_in_steps<T>(ctx, A, Y, limit, R, V, Tf, U, signs, certificate);
}

QUOIN_IMPLEMENT(Host, norm_exponents, reconstruct_top, round_columns, block_gram_schmidt_step_rounded)

}  // namespace quoin
