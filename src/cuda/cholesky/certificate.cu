// Certificates between the device and the host.

#include "cuda/elements/elementwise.cuh"
#include "cuda/runtime/device.hpp"

namespace quoin {

using namespace cuda;

template <>
void request_certificate(Context<Cuda>& ctx, CertificateView<Cuda> certificate) {
    ctx.state().send(certificate.data, 1);
}
template <>
Certificate receive_certificate(Context<Cuda>& ctx, CertificateView<Cuda>) {
    return *ctx.state().receive<Certificate>();
}

template <>
Certificate read_certificate(Context<Cuda>& ctx, CertificateView<Cuda> certificate) {
    request_certificate(ctx, certificate);
    return receive_certificate(ctx, certificate);
}

template <class T, class D>
void pack_certificate(Context<D>& ctx, CertificateView<D> certificate, View<T, D> numbers) {
    for_each_element(
        ctx, 1, 1, [from = certificate.data, to = numbers.data] __device__(Index, Index) { write_numbers(*from, to); });
}
template <class T, class D>
void unpack_certificate(Context<D>& ctx, View<const T, D> numbers, CertificateView<D> certificate) {
    for_each_element(
        ctx, 1, 1, [from = numbers.data, to = certificate.data] __device__(Index, Index) { *to = read_numbers(from); });
}
template <>
void write_certificate(Context<Cuda>& ctx, CertificateView<Cuda> certificate, Certificate state) {
    for_each_element(ctx, 1, 1, [=] __device__(Index, Index) { *certificate.data = state; });
}

QUOIN_IMPLEMENT(Cuda, pack_certificate, unpack_certificate)

}  // namespace quoin
