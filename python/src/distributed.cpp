#include <nanobind/stl/string.h>

#include "bindings.hpp"
#include "options.hpp"
#include "results.hpp"

namespace quoin::python {
namespace {

/// The ranks of a Python object with `send(data, to, note)` and `receive(data, source)`, which returns the note; data is a
/// memoryview of bytes. Called without the GIL.
class PythonCommunicator final : public Communicator {
public:
    PythonCommunicator(const nb::object& engine, int rank, int size) : Communicator(rank, size), engine_(engine) {}

private:
    static nb::object memory(void* data, Index bytes, int flags) {
        static char nothing;
        return nb::steal(PyMemoryView_FromMemory(bytes > 0 ? static_cast<char*>(data) : &nothing, bytes, flags));
    }
    /// What Python raises cannot cross the ranks as it is.
    template <class F>
    static auto call(F&& f) {
        const nb::gil_scoped_acquire acquired;
        try {
            return f();
        } catch (const nb::python_error& e) {
            throw Error(ErrorCode::CommunicationFailure, e.what());
        }
    }

    void send_bytes(const void* data, Index bytes, int to, int note) override {
        call([&] {
            engine_.attr("send")(memory(const_cast<void*>(data), note == 0 ? bytes : 0, PyBUF_READ), to, note);
        });
    }
    int receive_bytes(void* data, Index bytes, int from) override {
        return call([&] { return nb::cast<int>(engine_.attr("receive")(memory(data, bytes, PyBUF_WRITE), from)); });
    }

    const nb::object& engine_;
};

/// (this rank's rows of Q, or None; R; the method).
template <class T>
nb::tuple distributed_qr(const Array<T>& a, const nb::object& engine, int rank, int size, bool with_q,
                         const nb::object& method, int threads, bool check_finite) {
    const StridedMatrix<T> A = matrix_of<T, Host>(a);
    Options options = options_of(method, check_finite);
    options.q = with_q ? QForm::Explicit : QForm::None;
    Matrix<T> Q, R;
    Method taken{};
    PythonCommunicator comm(engine, rank, size);
    run_released(Home<Host>(threads), threads, 4.0 * A.rows * A.cols * A.cols, [&](Context<Host>& ctx) {
        const ColumnMajor<T, Host> mine(ctx, A);
        auto f = qr<T, Host>(ctx, comm, mine.view, options);
        taken = f.report().method;
        R = f.r(ctx);
        if (with_q) Q = std::move(f).take_q(ctx);
    });
    return nb::make_tuple(with_q ? to_numpy(std::move(Q)) : nb::none(), to_numpy(std::move(R)), to_string(taken));
}

/// (X, the norms of the residuals, the condition).
template <class T>
nb::tuple distributed_lstsq(const Array<T>& a, const Array<T>& b, const nb::object& engine, int rank, int size,
                            double rcond, const nb::object& method, int threads, bool check_finite) {
    const StridedMatrix<T> A = matrix_of<T, Host>(a), B = matrix_of<T, Host>(b);
    const Options options = options_of(method, check_finite);
    PythonCommunicator comm(engine, rank, size);
    const Home<Host> home(threads);
    auto solution = result_of(home, threads, 4.0 * A.rows * A.cols * A.cols, [&](Context<Host>& ctx) {
        const ColumnMajor<T, Host> A_(ctx, A), B_(ctx, B);
        return least_squares<T, Host>(ctx, comm, A_.view, B_.view, rcond, options);
    });
    return nb::make_tuple(to_numpy(std::move(solution.X)), to_vector(home, threads, solution.residual_norms),
                          solution.condition);
}

/// (this rank's rows of U, or None; the singular values; Vᵀ, or None).
template <class T>
nb::tuple distributed_svd(const Array<T>& a, const nb::object& engine, int rank, int size, bool vectors,
                          const nb::object& method, int threads, bool check_finite) {
    const StridedMatrix<T> A = matrix_of<T, Host>(a);
    const Options options = options_of(method, check_finite);
    PythonCommunicator comm(engine, rank, size);
    const Home<Host> home(threads);
    auto f = result_of(home, threads, 6.0 * A.rows * A.cols * A.cols, [&](Context<Host>& ctx) {
        return svd<T, Host>(ctx, comm, ColumnMajor<T, Host>(ctx, A).view, vectors, options);
    });
    return to_tuple(home, threads, std::move(f), vectors);
}

/// The state of a StreamingR, as its class gives it, of the rows of all ranks.
template <class T>
nb::tuple distributed_merge(Index n, Index rows, const Array<T>& r, const nb::object& method, double seconds,
                            double flops, const nb::object& engine, int rank, int size, int threads) {
    typename StreamingR<T>::State state{n, rows, {}, {}};
    state.report.method = parse_method(method);
    state.report.seconds = seconds;
    state.report.flops = flops;
    PythonCommunicator comm(engine, rank, size);
    run_released(Home<Host>(threads), threads, 0, [&](Context<Host>& ctx) {
        state.R = copy_of<T>(ctx, matrix_of<T, Host>(r));
        state = merge(ctx, comm, StreamingR<T>(std::move(state))).state(ctx);
    });
    return nb::make_tuple(state.n, state.rows, to_numpy(std::move(state.R)), method, seconds, flops);
}

/// `DistributedGramSchmidt`.
template <class T>
void bind_gram_schmidt_over_ranks(nb::module_& module, const char* name) {
    using G = DistributedGramSchmidt<T>;
    nb::class_<G>(module, name)
        .def("__init__",
             [](G* self, Index h) {
                 run_released(Home<Host>(1), 1, 0, [&](Context<Host>& ctx) { new (self) G(ctx, h); });
             })
        .def("append",
             [](G& g, const Array<T>& a, const nb::object& engine, int rank, int size, int threads) {
                 const StridedMatrix<T> A = matrix_of<T, Host>(a);
                 PythonCommunicator comm(engine, rank, size);
                 run_released(Home<Host>(threads), threads, 8.0 * A.rows * A.cols * (g.cols() + A.cols),
                              [&](Context<Host>& ctx) { g.append(ctx, comm, ColumnMajor<T, Host>(ctx, A).view); });
             })
        .def_prop_ro("rows", &G::rows)
        .def("q", [](const G& g) { return to_numpy(copied<T>(g.q())); })
        .def("r", [](const G& g) { return to_numpy(copied<T>(g.r())); });
}

/// In place of one of these, on a rank whose arguments are wrong.
void fail_distributed(const nb::object& engine, int rank, int size, const std::string& why) {
    PythonCommunicator comm(engine, rank, size);
    run_released(Home<Host>(1), 1, 0, [&](Context<Host>& ctx) { fail_on_all_ranks(ctx, comm, why); });
}

}  // namespace

void bind_distributed(nb::module_& module) {
    module.def("distributed_qr", &distributed_qr<float>);
    module.def("distributed_qr", &distributed_qr<double>);
    module.def("distributed_lstsq", &distributed_lstsq<float>);
    module.def("distributed_lstsq", &distributed_lstsq<double>);
    module.def("distributed_svd", &distributed_svd<float>);
    module.def("distributed_svd", &distributed_svd<double>);
    module.def("distributed_merge", &distributed_merge<float>);
    module.def("distributed_merge", &distributed_merge<double>);
    bind_gram_schmidt_over_ranks<float>(module, "DistributedGramSchmidt32");
    bind_gram_schmidt_over_ranks<double>(module, "DistributedGramSchmidt64");
    module.def("fail_distributed", &fail_distributed);
}

}  // namespace quoin::python
