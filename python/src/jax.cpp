// The targets of quoin.jax, which are handlers of XLA's FFI. Buffers are stacks in C order, of float or double.
//
// On a GPU a handler enqueues its work after the work already on XLA's stream and before later work there. Handlers are
// not marked as compatible with XLA's command buffers. A graph that is replayed later would compute in the context's
// workspace, which other calls use and replace meanwhile.

#include <xla/ffi/api/ffi.h>

#include <map>
#include <span>
#include <vector>

#include "bindings.hpp"
#include "devices.hpp"

namespace quoin::python {
namespace {

/// The place where XLA calls a handler. It is the handler's first argument.
template <class D>
struct Caller;

template <>
struct Caller<Host> {
    template <class Work>
    void run(Index m, Index n, const Work& work) const {
        ContextLease lease(where_for(0, m, n));
        work(lease.get());
    }
};

#ifdef QUOIN_HAVE_CUDA
template <>
struct Caller<Cuda> {
    CudaStream stream;
    std::int32_t device;

    /// Uses one context for each GPU, because XLA calls from threads that come and go.
    template <class Work>
    void run(Index, Index, const Work& work) const {
        static std::mutex mutex;
        static auto& workers = *new std::map<int, CudaWorker>;  // XLA's threads may outlive static objects
        std::unique_lock lock(mutex);
        CudaWorker& worker = workers.try_emplace(device, device, false).first->second;
        lock.unlock();
        worker.run({device, reinterpret_cast<std::uintptr_t>(stream), false, {}}, std::this_thread::get_id(), work);
    }
};
#endif

}  // namespace
}  // namespace quoin::python

template <class D>
struct xla::ffi::CtxBinding<quoin::python::Caller<D>> {
    using Ctx = quoin::python::Caller<D>;
};

template <>
struct xla::ffi::CtxDecoding<quoin::python::Caller<quoin::Host>> {
    using Type = quoin::python::Caller<quoin::Host>;
    template <class Context>
    static std::optional<Type> Decode(const XLA_FFI_Api*, Context*, DiagnosticEngine&) {
        return Type();
    }
};

#ifdef QUOIN_HAVE_CUDA
template <>
struct xla::ffi::CtxDecoding<quoin::python::Caller<quoin::Cuda>> {
    using Type = quoin::python::Caller<quoin::Cuda>;
    template <class Context>
    static std::optional<Type> Decode(const XLA_FFI_Api* api, Context* ctx, DiagnosticEngine& problems) {
        const auto stream = CtxDecoding<PlatformStream<quoin::CudaStream>>::Decode(api, ctx, problems);
        const auto device = CtxDecoding<DeviceOrdinal>::Decode(api, ctx, problems);
        if (!stream || !device) return std::nullopt;
        return Type{*stream, *device};
    }
};
#endif

namespace quoin::python {
namespace {

namespace ffi = xla::ffi;
using Stack = ffi::AnyBuffer;
using StackResult = ffi::Result<ffi::AnyBuffer>;

/// Returns the matrices of a stack (..., rows, cols).
template <class T, class D>
BatchView<T, D> matrices(const Stack& stack) {
    const auto shape = stack.dimensions();
    const Index m = shape[shape.size() - 2], n = shape.back();
    Index count = 1;
    for (std::size_t d = 0; d + 2 < shape.size(); ++d) count *= shape[d];
    return {static_cast<T*>(stack.untyped_data()), m, n, n, 1, m * n, count};
}

/// Returns a column-major copy of matrix b.
template <class T, class D>
Matrix<T, D> copy_of(Context<D>& ctx, const BatchView<const T, D>& A, Index b) {
    return copy_of<T>(ctx, StridedMatrix<T, D>{A.data(b), A.rows(b), A.cols(b), A.row_stride(b), A.col_stride(b)});
}

/// Matrix b of `to` := A.
template <class T, class D>
void put(Context<D>& ctx, MatrixView<const T, D> A, const BatchView<T, D>& to, Index b) {
    transpose<T>(ctx, A, MatrixView<T, D>(to.data(b), to.cols(b), to.rows(b)));
}

/// Runs `work(ctx, T())` for the type T of A. Returns an exception that it throws as XLA's error.
template <class D, class Work>
ffi::Error run(const Caller<D>& caller, const Stack& A, Work work) {
    try {
        const auto shape = matrices<const char, D>(A);
        caller.run(shape.count() * shape.rows(0), shape.cols(0), [&](Context<D>& ctx) {
            if (A.element_type() == ffi::F32) {
                work(ctx, float());
            } else {
                work(ctx, double());
            }
        });
        return ffi::Error::Success();
    } catch (const std::exception& error) {
        return ffi::Error::Internal(error.what());
    }
}

Options unchecked(QForm q) { return {.q = q, .check_finite = false}; }

/// Whether A is one matrix to be factored by the best method, which may wait on a GPU, and not as a batch of one in one
/// launch.
template <class T, class D>
bool alone(Context<D>& ctx, const Stack& A) {
    if (A.dimensions().size() > 2) return false;
    if constexpr (std::is_same_v<D, Host>) return true;
    Options reflectors = unchecked(QForm::Explicit);
    reflectors.method = Method::BlockedHouseholder;
    return !plan_qr<T>(ctx, A.dimensions()[0], A.dimensions()[1], reflectors).householder().one_launch;
}

template <class D>
ffi::Error thin_qr(Caller<D> caller, Stack A, StackResult Q, StackResult R) {
    return run(caller, A, [&]<class T>(Context<D>& ctx, T) {
        const auto As = matrices<const T, D>(A);
        const auto Qs = matrices<T, D>(*Q), Rs = matrices<T, D>(*R);
        const Options options = unchecked(QForm::Explicit);
        if (!alone<T>(ctx, A)) return qr<T, D>(ctx, As, Qs, Rs, options);
        const RowMajorView<const T, D> rows{As.data(0), As.rows(0), As.cols(0), std::max<Index>(1, As.cols(0))};
        const ThinQR<T, D> thin = qr<T, D>(ctx, InputView<T, D>(rows), options).take_thin(ctx);
        put<T, D>(ctx, thin.R.view(), Rs, 0);
        put<T, D>(ctx, thin.Q.view(), Qs, 0);
    });
}

template <class D>
ffi::Error r_alone(Caller<D> caller, Stack A, StackResult R) {
    return run(caller, A, [&]<class T>(Context<D>& ctx, T) {
        qr<T, D>(ctx, matrices<const T, D>(A), {}, matrices<T, D>(*R), unchecked(QForm::None));
    });
}

/// Matrix b of `to`, a column, := the numbers x in type T.
template <class T, class D>
void put_numbers(Context<D>& ctx, std::span<const Index> x, const BatchView<T, D>& to, Index b) {
    const std::vector<T> numbers(x.begin(), x.end());
    const MatrixView<const T> from(numbers.data(), to.rows(b), 1);
    const MatrixView<T, D> column(to.data(b), to.rows(b), 1);
    if constexpr (std::is_same_v<D, Host>) {
        copy<T>(ctx, from, column);
    } else {
        copy_to_device<T>(ctx, from, column);
    }
}

/// Writes Q, R and the permutation P, as numbers of A's type and of shape (..., N, 1), of A(:, P) = QR. Waits on a GPU.
template <class D>
ffi::Error pivoted_qr(Caller<D> caller, Stack A, StackResult Q, StackResult R, StackResult P) {
    return run(caller, A, [&]<class T>(Context<D>& ctx, T) {
        const auto As = matrices<const T, D>(A);
        const auto Qs = matrices<T, D>(*Q), Rs = matrices<T, D>(*R);
        const auto Ps = matrices<T, D>(*P);
        Options options = unchecked(QForm::Explicit);
        options.pivoting = Pivoting{};
        for (Index b = 0; b < As.count(); ++b) {
            const Matrix<T, D> A_b = copy_of<T, D>(ctx, As, b);
            const QR<T, D> f = qr<T, D>(ctx, A_b.view(), options);
            put<T, D>(ctx, f.r(ctx).view(), Rs, b);
            put<T, D>(ctx, f.form_q(ctx).view(), Qs, b);
            put_numbers<T, D>(ctx, f.permutation(), Ps, b);
        }
    });
}

/// Writes the X of least norm that minimises ‖AX − B‖, and the rank as a number of A's type and of shape (..., 1, 1),
/// which has no meaning if X is NaN. Singular values up to `rcond` times the largest count as zero. Waits on a GPU.
template <class D>
ffi::Error lstsq(Caller<D> caller, Stack A, Stack B, StackResult X, StackResult rank, double rcond) {
    return run(caller, A, [&]<class T>(Context<D>& ctx, T) {
        const auto found = least_squares<T, D>(ctx, matrices<const T, D>(A), matrices<const T, D>(B), {.rcond = rcond},
                                               unchecked(QForm::Any));
        const auto Xs = matrices<T, D>(*X), ranks = matrices<T, D>(*rank);
        for (Index b = 0; b < Xs.count(); ++b) {
            put<T, D>(ctx, found.X[b], Xs, b);
            put_numbers<T, D>(ctx, {&found.ranks[b], 1}, ranks, b);
        }
    });
}

/// Writes V_R and tau, which has shape (..., k, 1).
template <class D>
ffi::Error geqrf(Caller<D> caller, Stack A, StackResult V_R, StackResult tau) {
    return run(caller, A, [&]<class T>(Context<D>& ctx, T) {
        qr_lapack<T, D>(ctx, matrices<const T, D>(A), matrices<T, D>(*V_R), matrices<T, D>(*tau),
                        unchecked(QForm::Reflectors));
    });
}

/// Y := op(Q) C for an m×k V.
template <class D, Op op>
ffi::Error apply_q(Caller<D> caller, Stack V, Stack tau, Stack C, StackResult Y) {
    return run(caller, V, [&]<class T>(Context<D>& ctx, T) {
        const auto Vs = matrices<const T, D>(V), taus = matrices<const T, D>(tau), Cs = matrices<const T, D>(C);
        const auto Ys = matrices<T, D>(*Y);
        for (Index b = 0; b < Ys.count(); ++b) {
            const QR<T, D> f = from_lapack<T, D>(ctx, {copy_of<T, D>(ctx, Vs, b), copy_of<T, D>(ctx, taus, b)});
            Matrix<T, D> C_b = copy_of<T, D>(ctx, Cs, b);
            f.apply_q(ctx, Side::Left, op, C_b.view());
            put<T, D>(ctx, C_b.view(), Ys, b);
        }
    });
}

template <class D>
nb::dict targets_of() {
    XLA_FFI_DEFINE_HANDLER(qr_target, thin_qr<D>);
    XLA_FFI_DEFINE_HANDLER(r_target, r_alone<D>);
    XLA_FFI_DEFINE_HANDLER(pivoted_qr_target, pivoted_qr<D>);
    XLA_FFI_DEFINE_HANDLER(lstsq_target, lstsq<D>,
                           ffi::Ffi::Bind()
                               .Ctx<Caller<D>>()
                               .template Arg<Stack>()
                               .template Arg<Stack>()
                               .template Ret<ffi::AnyBuffer>()
                               .template Ret<ffi::AnyBuffer>()
                               .template Attr<double>("rcond"));
    XLA_FFI_DEFINE_HANDLER(geqrf_target, geqrf<D>);
    XLA_FFI_DEFINE_HANDLER(apply_q_target, (apply_q<D, Op::None>));
    XLA_FFI_DEFINE_HANDLER(apply_qt_target, (apply_q<D, Op::Transpose>));
    nb::dict all;
    const auto add = [&](const char* name, XLA_FFI_Handler* target) {
        all[name] = nb::capsule(reinterpret_cast<void*>(target));
    };
    add("qr", qr_target);
    add("r", r_target);
    add("pivoted_qr", pivoted_qr_target);
    add("lstsq", lstsq_target);
    add("geqrf", geqrf_target);
    add("apply_q", apply_q_target);
    add("apply_qt", apply_qt_target);
    return all;
}

/// Returns the targets under JAX's names of platforms.
nb::dict targets() {
    nb::dict all;
    all["cpu"] = targets_of<Host>();
#ifdef QUOIN_HAVE_CUDA
    all["CUDA"] = targets_of<Cuda>();
#endif
    return all;
}

}  // namespace

void bind_jax(nb::module_& module) { module.def("jax_targets", &targets); }

}  // namespace quoin::python
