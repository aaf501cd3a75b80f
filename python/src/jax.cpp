// The targets of quoin.jax: handlers of XLA's FFI on the CPU. Buffers are stacks in C order, of float or of double.

#include <xla/ffi/api/ffi.h>

#include "arrays.hpp"
#include "bindings.hpp"

namespace quoin::python {
namespace {

namespace ffi = xla::ffi;
using Stack = ffi::AnyBuffer;
using StackResult = ffi::Result<ffi::AnyBuffer>;

/// The matrices (..., rows, cols).
template <class T>
BatchView<T> matrices(const Stack& stack) {
    const auto shape = stack.dimensions();
    const Index m = shape[shape.size() - 2], n = shape.back();
    Index count = 1;
    for (std::size_t d = 0; d + 2 < shape.size(); ++d) count *= shape[d];
    return {static_cast<T*>(stack.untyped_data()), m, n, n, 1, m * n, count};
}

/// A column-major copy of matrix b.
template <class T>
Matrix<T> copy_of(Context<Host>& ctx, const BatchView<const T>& A, Index b) {
    return copy_of<T>(ctx, StridedMatrix<T>{A.data(b), A.rows(b), A.cols(b), A.row_stride(b), A.col_stride(b)});
}

/// Matrix b of `to` := A.
template <class T>
void put(Context<Host>& ctx, MatrixView<const T> A, const BatchView<T>& to, Index b) {
    transpose<T>(ctx, A, MatrixView<T>(to.data(b), to.cols(b), to.rows(b)));
}

/// `work(ctx, T())` for the T of A; what it throws as XLA's error.
template <class Work>
ffi::Error run(const Stack& A, Work work) {
    try {
        const auto shape = matrices<const char>(A);
        ContextLease lease(where_for(0, shape.count() * shape.rows(0), shape.cols(0)));
        if (A.element_type() == ffi::F32) {
            work(lease.get(), float());
        } else {
            work(lease.get(), double());
        }
        return ffi::Error::Success();
    } catch (const std::exception& error) {
        return ffi::Error::Internal(error.what());
    }
}

Options unchecked(QForm q) { return {.q = q, .check_finite = false}; }

ffi::Error thin_qr(Stack A, StackResult Q, StackResult R) {
    return run(A, [&]<class T>(Context<Host>& ctx, T) {
        const auto As = matrices<const T>(A);
        const auto Qs = matrices<T>(*Q), Rs = matrices<T>(*R);
        const Options options = unchecked(QForm::Explicit);
        if (A.dimensions().size() > 2) return qr<T, Host>(ctx, As, Qs, Rs, options);
        // one matrix, which may be large: any method
        const Index n = As.cols(0);
        QR<T> f = qr<T>(ctx, RowMajorView<const T>{As.data(0), As.rows(0), n, std::max<Index>(1, n)}, options);
        put<T>(ctx, f.r(ctx).view(), Rs, 0);
        put<T>(ctx, std::move(f).take_q(ctx).view(), Qs, 0);
    });
}

ffi::Error r_alone(Stack A, StackResult R) {
    return run(A, [&]<class T>(Context<Host>& ctx, T) {
        qr<T, Host>(ctx, matrices<const T>(A), {}, matrices<T>(*R), unchecked(QForm::None));
    });
}

/// tau is (..., k, 1).
ffi::Error geqrf(Stack A, StackResult V_R, StackResult tau) {
    return run(A, [&]<class T>(Context<Host>& ctx, T) {
        qr_lapack<T, Host>(ctx, matrices<const T>(A), matrices<T>(*V_R), matrices<T>(*tau),
                           unchecked(QForm::Reflectors));
    });
}

/// Y := op(Q) C, V being m×k.
template <Op op>
ffi::Error apply_q(Stack V, Stack tau, Stack C, StackResult Y) {
    return run(V, [&]<class T>(Context<Host>& ctx, T) {
        const auto Vs = matrices<const T>(V), taus = matrices<const T>(tau), Cs = matrices<const T>(C);
        const auto Ys = matrices<T>(*Y);
        for (Index b = 0; b < Ys.count(); ++b) {
            const QR<T> f = from_lapack<T, Host>(ctx, {copy_of<T>(ctx, Vs, b), copy_of<T>(ctx, taus, b)});
            Matrix<T> C_b = copy_of<T>(ctx, Cs, b);
            f.apply_q(ctx, Side::Left, op, C_b.view());
            put<T>(ctx, C_b.view(), Ys, b);
        }
    });
}

XLA_FFI_DEFINE_HANDLER(qr_target, thin_qr);
XLA_FFI_DEFINE_HANDLER(r_target, r_alone);
XLA_FFI_DEFINE_HANDLER(geqrf_target, geqrf);
XLA_FFI_DEFINE_HANDLER(apply_q_target, apply_q<Op::None>);
XLA_FFI_DEFINE_HANDLER(apply_qt_target, apply_q<Op::Transpose>);

nb::dict targets() {
    nb::dict all;
    const auto add = [&](const char* name, XLA_FFI_Handler* target) {
        all[name] = nb::capsule(reinterpret_cast<void*>(target));
    };
    add("qr", qr_target);
    add("r", r_target);
    add("geqrf", geqrf_target);
    add("apply_q", apply_q_target);
    add("apply_qt", apply_qt_target);
    return all;
}

}  // namespace

void bind_jax(nb::module_& module) { module.def("jax_targets", &targets); }

}  // namespace quoin::python
