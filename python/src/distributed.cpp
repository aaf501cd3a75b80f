#include <nanobind/stl/string.h>

#include "bindings.hpp"
#include "options.hpp"
#include "ranks.hpp"
#include "results.hpp"

namespace quoin::python {
namespace {

/// Returns the result of `work(ctx, ranks)` over the ranks of one call.
template <class D, class Work>
auto over_ranks(const Home<D>& home, const nb::tuple& of_call, const Where<D>& where, double flops, Work&& work) {
    RanksOfCall<D> ranks(of_call);
    return result_of(home, where, flops, [&](Context<D>& ctx) {
        auto found = work(ctx, ranks);
        ranks.finish(ctx);
        return found;
    });
}

/// (this rank's rows of Q, or None; R).
template <class T, class D>
nb::tuple distributed_qr(const Array<T, D>& a, const Options& options, const Where<D>& where,
                         const nb::tuple& of_call) {
    const StridedMatrix<T, D> A = matrix_of<T, D>(a);
    const bool with_q = options.q != QForm::None;
    Matrix<T, D> Q;
    const Home<D> home(where);
    Matrix<T, D> R = over_ranks<D>(home, of_call, where, 4.0 * A.rows * A.cols * A.cols, [&](auto& ctx, auto& ranks) {
        const RowsOfRank<T, D> mine(ctx, ranks.control(), A);
        auto f = qr<T, D>(ctx, ranks.all(), mine.view(), options);
        Matrix<T, D> found = f.r(ctx);
        if (with_q) Q = std::move(f).take_q(ctx);
        return found;
    });
    return nb::make_tuple(with_q ? to_array(home, where, std::move(Q)) : nb::none(),
                          to_array(home, where, std::move(R)));
}

template <class T, class D>
nb::tuple distributed_lstsq(const Array<T, D>& a, const Array<T, D>& b, const Solver& solver, const Options& options,
                            const Where<D>& where, const nb::tuple& of_call) {
    const StridedMatrix<T, D> A = matrix_of<T, D>(a), B = matrix_of<T, D>(b);
    const Home<D> home(where);
    auto found = over_ranks<D>(home, of_call, where, 4.0 * A.rows * A.cols * A.cols, [&](auto& ctx, auto& ranks) {
        const RowsOfRank<T, D> A_(ctx, ranks.control(), A), B_(ctx, ranks.control(), B);
        return least_squares<T, D>(ctx, ranks.all(), A_.view(), B_.view(), solver_of(solver), options);
    });
    return to_tuple(home, where, std::move(found));
}

/// (this rank's rows of U, or None; the singular values; Vᵀ, or None).
template <class T, class D>
nb::tuple distributed_svd(const Array<T, D>& a, bool vectors, const Options& options, const Where<D>& where,
                          const nb::tuple& of_call) {
    const StridedMatrix<T, D> A = matrix_of<T, D>(a);
    const Home<D> home(where);
    auto f = over_ranks<D>(home, of_call, where, 6.0 * A.rows * A.cols * A.cols, [&](auto& ctx, auto& ranks) {
        const RowsOfRank<T, D> mine(ctx, ranks.control(), A);
        return svd<T, D>(ctx, ranks.all(), mine.view(), vectors, options);
    });
    return to_tuple(home, where, std::move(f), vectors);
}

/// A = QR over ranks, and R if this rank has it.
template <class T, class D>
struct FactorsOfRanks {
    DistributedQR<T, D> f;
    Matrix<T, D> R;
};

/// Returns the result of `work(ctx, f, ranks)` over the ranks of one call.
template <class T, class D, class Work>
auto with_factors(Held<FactorsOfRanks<T, D>, D>& held, const nb::tuple& of_call, const Where<D>& where, Index columns,
                  Work&& work) {
    DistributedQR<T, D>& f = held.object.f;
    const double flops = 4.0 * f.rows() / nb::cast<int>(of_call[2]) * f.cols() * columns;
    return over_ranks<D>(held.home, of_call, where, flops, [&](auto& ctx, auto& ranks) {
        f.over(ranks.all());
        return work(ctx, f, ranks);
    });
}

/// Adds `DistributedQR` as a class.
template <class T, class D>
void bind_factors_over_ranks(nb::module_& module, const std::string& suffix) {
    using F = Held<FactorsOfRanks<T, D>, D>;
    nb::class_<F>(module, ("DistributedFactorization" + suffix).c_str())
        .def_prop_ro("shape", [](const F& f) { return nb::make_tuple(f.object.f.rows(), f.object.f.cols()); })
        .def_prop_ro("dtype", [](const F&) { return numpy_name<T>; })
        .def_prop_ro("plan", [](const F& f) { return to_dict<D>(f.object.f.plan()); })
        .def_prop_ro("report", [](const F& f) { return to_tuple(f.object.f.report()); })
        .def("r",
             [](const F& f, const Where<D>& where) { return copied_array<T, D>(f.home, where, f.object.R.view()); })
        .def("q",
             [](F& f, const Where<D>& where, const nb::tuple& of_call) {
                 return to_array(f.home, where,
                                 with_factors<T, D>(f, of_call, where, f.object.f.cols(),
                                                    [](auto& ctx, auto& f, auto&) { return f.form_q(ctx); }));
             })
        .def("apply_thin",
             [](F& f, const Array<T, D>& c, bool transpose, const Where<D>& where, const nb::tuple& of_call) {
                 const StridedMatrix<T, D> C = matrix_of<T, D>(c);
                 return to_array(f.home, where,
                                 with_factors<T, D>(f, of_call, where, C.cols, [&](auto& ctx, auto& f, auto& ranks) {
                                     const RowsOfRank<T, D> mine(ctx, ranks.control(), C);
                                     const Op op = transpose ? Op::Transpose : Op::None;
                                     return f.apply_thin_q(ctx, op, mine.view());
                                 }));
             })
        .def("lstsq",
             [](F& f, const Array<T, D>& b, const Solver& solver, const Where<D>& where, const nb::tuple& of_call) {
                 const StridedMatrix<T, D> B = matrix_of<T, D>(b);
                 return to_tuple(f.home, where,
                                 with_factors<T, D>(f, of_call, where, B.cols, [&](auto& ctx, auto& f, auto& ranks) {
                                     const RowsOfRank<T, D> mine(ctx, ranks.control(), B);
                                     return least_squares<T, D>(ctx, f, mine.view(), solver_of(solver));
                                 }));
             });
}

template <class T, class D>
Held<FactorsOfRanks<T, D>, D> distributed_factor(const Array<T, D>& a, const Options& options, bool r_on_all,
                                                 const Where<D>& where, const nb::tuple& of_call) {
    const StridedMatrix<T, D> A = matrix_of<T, D>(a);
    RanksOfCall<D> ranks(of_call);
    return held<D>(where, 4.0 * A.rows * A.cols * A.cols, [&](Context<D>& ctx) {
        const RowsOfRank<T, D> mine(ctx, ranks.control(), A);
        auto f = qr<T, D>(ctx, ranks.all(), mine.view(), options);
        Matrix<T, D> R = f.r(ctx, r_on_all ? Ranks::All : Ranks::Root);
        ranks.finish(ctx);
        return FactorsOfRanks<T, D>{std::move(f), std::move(R)};
    });
}

/// Returns the state of a StreamingR of the rows of all ranks, in the form of its member `state`.
template <class T, class D>
nb::tuple distributed_merge(Index n, Index rows, const Array<T, D>& r, const nb::object& method, double seconds,
                            double flops, const Where<D>& where, const nb::tuple& of_call) {
    typename StreamingR<T, D>::State state{
        n, rows, {}, {.method = parse_method(method), .seconds = seconds, .flops = flops}};
    RanksOfCall<D> ranks(of_call);
    const Home<D> home(where);
    run_released(home, where, 0, [&](Context<D>& ctx) {
        state.R = copy_of<T>(ctx, matrix_of<T, D>(r));
        state = merge(ctx, ranks.all(), StreamingR<T, D>(std::move(state))).state(ctx);
        ranks.finish(ctx);
    });
    return nb::make_tuple(state.n, state.rows, to_array(home, where, std::move(state.R)), method, seconds, flops);
}

/// Adds `DistributedGramSchmidt` as a class.
template <class T, class D>
void bind_gram_schmidt_over_ranks(nb::module_& module, const std::string& suffix) {
    using G = Held<DistributedGramSchmidt<T, D>, D>;
    nb::class_<G>(module, ("DistributedGramSchmidt" + suffix).c_str())
        .def("__init__",
             [](G* self, Index h, const Where<D>& where) {
                 new (self) G(held<D>(where, 0, [&](Context<D>& ctx) { return DistributedGramSchmidt<T, D>(ctx, h); }));
             })
        .def("append",
             [](G& g, const Array<T, D>& a, const Where<D>& where, const nb::tuple& of_call) {
                 const StridedMatrix<T, D> A = matrix_of<T, D>(a);
                 RanksOfCall<D> ranks(of_call);
                 const double flops = 8.0 * A.rows * A.cols * (g.object.cols() + A.cols);
                 run_released(g.home, where, flops, [&](Context<D>& ctx) {
                     const RowsOfRank<T, D> mine(ctx, ranks.control(), A);
                     g.object.append(ctx, ranks.all(), mine.view());
                     ranks.finish(ctx);
                 });
             })
        .def_prop_ro("rows", [](const G& g) { return g.object.rows(); })
        .def_prop_ro("cols", [](const G& g) { return g.object.cols(); })
        .def("q", [](const G& g, const Where<D>& where) { return copied_array<T, D>(g.home, where, g.object.q()); })
        .def("r", [](const G& g, const Where<D>& where) { return copied_array<T, D>(g.home, where, g.object.r()); });
}

/// Fails on all ranks. A rank with wrong arguments calls it in place of one of the functions above.
void fail_distributed(const nb::object& engine, int rank, int size, const std::string& why) {
    PythonCommunicator comm(engine, rank, size);
    run_released(Home<Host>(1), 1, 0, [&](Context<Host>& ctx) { fail_on_all_ranks(ctx, comm, why); });
}

}  // namespace

void bind_distributed(nb::module_& module) {
    // parsed before the ranks meet, so that all ranks learn of an invalid option
    nb::class_<Options>(module, "OptionsOverRanks");
    module.def("options_over_ranks", [](const nb::object& method, const nb::object& q, bool check_finite) {
        return options_of(method, q, check_finite);
    });
    for_each_type(module, []<class T, class D>(T, D, nb::module_& its, const std::string& suffix) {
        its.def("distributed_qr", &distributed_qr<T, D>);
        its.def("distributed_lstsq", &distributed_lstsq<T, D>);
        its.def("distributed_svd", &distributed_svd<T, D>);
        its.def("distributed_factor", &distributed_factor<T, D>);
        bind_factors_over_ranks<T, D>(its, suffix);
        its.def("distributed_merge", &distributed_merge<T, D>);
        bind_gram_schmidt_over_ranks<T, D>(its, suffix);
    });
    module.def("fail_distributed", &fail_distributed);
}

}  // namespace quoin::python
