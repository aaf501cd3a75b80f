#include <nanobind/stl/string.h>

#include "bindings.hpp"
#include "options.hpp"
#include "ranks.hpp"
#include "results.hpp"

namespace quoin::python {
namespace {

/// (this rank's rows of Q, or None; R; the method).
template <class T, class D>
nb::tuple distributed_qr(const Array<T, D>& a, const nb::object& engine, int rank, int size, const nb::object& link,
                         bool with_q, const nb::object& method, const Where<D>& where, bool check_finite) {
    const StridedMatrix<T, D> A = matrix_of<T, D>(a);
    Options options = options_of(method, check_finite);
    options.q = with_q ? QForm::Explicit : QForm::None;
    Matrix<T, D> Q, R;
    Method taken{};
    RanksOfCall<D> ranks(engine, rank, size, link);
    const Home<D> home(where);
    run_released(home, where, 4.0 * A.rows * A.cols * A.cols, [&](Context<D>& ctx) {
        const RowsOfRank<T, D> mine(ctx, ranks.control(), A);
        auto f = qr<T, D>(ctx, ranks.all(), mine.view(), options);
        taken = f.report().method;
        R = f.r(ctx);
        if (with_q) Q = std::move(f).take_q(ctx);
        ranks.finish(ctx);
    });
    return nb::make_tuple(with_q ? to_array(home, where, std::move(Q)) : nb::none(),
                          to_array(home, where, std::move(R)), to_string(taken));
}

/// (X, the norms of the residuals, the condition).
template <class T, class D>
nb::tuple distributed_lstsq(const Array<T, D>& a, const Array<T, D>& b, const nb::object& engine, int rank, int size,
                            const nb::object& link, double rcond, const nb::object& method, const Where<D>& where,
                            bool check_finite) {
    const StridedMatrix<T, D> A = matrix_of<T, D>(a), B = matrix_of<T, D>(b);
    const Options options = options_of(method, check_finite);
    RanksOfCall<D> ranks(engine, rank, size, link);
    const Home<D> home(where);
    auto solution = result_of(home, where, 4.0 * A.rows * A.cols * A.cols, [&](Context<D>& ctx) {
        const RowsOfRank<T, D> A_(ctx, ranks.control(), A), B_(ctx, ranks.control(), B);
        auto found = least_squares<T, D>(ctx, ranks.all(), A_.view(), B_.view(), rcond, options);
        ranks.finish(ctx);
        return found;
    });
    return nb::make_tuple(to_array(home, where, std::move(solution.X)), to_vector(home, where, solution.residual_norms),
                          solution.condition);
}

/// (this rank's rows of U, or None; the singular values; Vᵀ, or None).
template <class T, class D>
nb::tuple distributed_svd(const Array<T, D>& a, const nb::object& engine, int rank, int size, const nb::object& link,
                          bool vectors, const nb::object& method, const Where<D>& where, bool check_finite) {
    const StridedMatrix<T, D> A = matrix_of<T, D>(a);
    const Options options = options_of(method, check_finite);
    RanksOfCall<D> ranks(engine, rank, size, link);
    const Home<D> home(where);
    auto f = result_of(home, where, 6.0 * A.rows * A.cols * A.cols, [&](Context<D>& ctx) {
        const RowsOfRank<T, D> mine(ctx, ranks.control(), A);
        auto found = svd<T, D>(ctx, ranks.all(), mine.view(), vectors, options);
        ranks.finish(ctx);
        return found;
    });
    return to_tuple(home, where, std::move(f), vectors);
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
    using namespace nb::literals;
    for_each_type(module, [](auto scalar, auto device, nb::module_& its, const std::string&) {
        using T = decltype(scalar);
        using D = decltype(device);
        its.def("distributed_qr", &distributed_qr<T, D>, "a"_a, "engine"_a, "rank"_a, "size"_a, "link"_a.none(),
                "with_q"_a, "method"_a, "where"_a, "check_finite"_a);
        its.def("distributed_lstsq", &distributed_lstsq<T, D>, "a"_a, "b"_a, "engine"_a, "rank"_a, "size"_a,
                "link"_a.none(), "rcond"_a, "method"_a, "where"_a, "check_finite"_a);
        its.def("distributed_svd", &distributed_svd<T, D>, "a"_a, "engine"_a, "rank"_a, "size"_a, "link"_a.none(),
                "vectors"_a, "method"_a, "where"_a, "check_finite"_a);
    });
    module.def("distributed_merge", &distributed_merge<float>);
    module.def("distributed_merge", &distributed_merge<double>);
    bind_gram_schmidt_over_ranks<float>(module, "DistributedGramSchmidt32");
    bind_gram_schmidt_over_ranks<double>(module, "DistributedGramSchmidt64");
    module.def("fail_distributed", &fail_distributed);
}

}  // namespace quoin::python
