#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "options.hpp"
#include "results.hpp"

namespace quoin::python {
namespace {

/// Adds the members that both streams have.
template <class Stream, class D>
void bind_rows_and_r(nb::class_<Held<Stream, D>>& of) {
    using S = Held<Stream, D>;
    of.def_prop_ro("rows", [](const S& stream) { return stream.object.rows(); });
    of.def("r", [](const S& stream, const Where<D>& where) {
        return array_of(stream.home, where, 0, [&](Context<D>& ctx) { return stream.object.r(ctx); });
    });
}

/// Adds the members of streams on D with arguments on P, which is D or the host.
template <class T, class D, class P>
void bind_blocks(nb::class_<Held<StreamingR<T, D>, D>>& of_r, nb::class_<Held<StreamingQR<T, D>, D>>& of_q) {
    using R = Held<StreamingR<T, D>, D>;
    using S = Held<StreamingQR<T, D>, D>;
    // calls f with a view of A on P, column-major for blocks from the host
    const auto with_view = [](Context<D>& ctx, const Array<T, P>& a, auto&& f) {
        if constexpr (std::is_same_v<P, D>) {
            return f(Readable<T, P>(ctx, matrix_of<T, P>(a)).view);
        } else {
            Context<Host> host;
            return f(ColumnMajor<T, P>(host, matrix_of<T, P>(a)).view);
        }
    };
    const auto copied = [](Context<D>& ctx, const Array<T, P>& a) {
        if constexpr (std::is_same_v<P, D>) {
            return copy_of<T>(ctx, matrix_of<T, P>(a));
        } else {
            Context<Host> host;
            return copy_to_device<T>(ctx, ColumnMajor<T, P>(host, matrix_of<T, P>(a)).view);
        }
    };
    // makes a stream in the memory of `home` from a state made on any device
    const auto stream_of = [=](const Home<D>& home, Index n, Index rows, const Array<T, P>& r, const nb::object& method,
                               double seconds, double flops, const Where<D>& where) {
        typename StreamingR<T, D>::State state{
            n, rows, {}, {.method = parse_method(method), .seconds = seconds, .flops = flops}};
        state.R = result_of(home, where, 0, [&](Context<D>& ctx) { return copied(ctx, r); });
        return StreamingR<T, D>(std::move(state));
    };
    of_r.def("__init__",
             [=](R* self, Index n, Index rows, const Array<T, P>& r, const nb::object& method, double seconds,
                 double flops, const Where<D>& where) {
                 const Home<D> home(where);
                 new (self) R{home, stream_of(home, n, rows, r, method, seconds, flops, where)};
             })
        .def("merge",
             [=](R& stream, Index n, Index rows, const Array<T, P>& r, const nb::object& method, double seconds,
                 double flops, const Where<D>& where) {
                 const StreamingR<T, D> other = stream_of(stream.home, n, rows, r, method, seconds, flops, where);
                 run_released(stream.home, where, 0, [&](Context<D>& ctx) { stream.object.merge(ctx, other); });
             })
        .def("append", [=](R& stream, const Array<T, P>& a, const Array<T, P>& b, const Where<D>& where) {
            const double flops = flops_of_qr(a.shape(0), a.shape(1));
            run_released(stream.home, where, flops, [&](Context<D>& ctx) {
                with_view(ctx, a, [&](auto A) { with_view(ctx, b, [&](auto B) { stream.object.append(ctx, A, B); }); });
            });
        });
    of_q.def("__init__",
             [=](S* self, Index n, Index rows, const std::vector<Index>& heights, const Array<T, P>& stack,
                 bool backward, const Array<T, P>& r, const Array<T, P>& g, const Where<D>& where) {
                 new (self) S(held<D>(where, 0, [&](Context<D>& ctx) {
                     return StreamingQR<T, D>(
                         ctx, {n, rows, heights, copied(ctx, stack), backward, copied(ctx, r), copied(ctx, g)});
                 }));
             })
        .def("append",
             [=](S& stream, const Array<T, P>& a, const Where<D>& where) {
                 run_released(stream.home, where, flops_of_qr(a.shape(0), a.shape(1)), [&](Context<D>& ctx) {
                     with_view(ctx, a, [&](auto A) { stream.object.append(ctx, A); });
                 });
             })
        .def("q_rows", [=](S& stream, const Array<T, P>& a, const Where<D>& where) {
            return array_of(stream.home, where, 2 * flops_of_qr(a.shape(0), a.shape(1)), [&](Context<D>& ctx) {
                return with_view(ctx, a, [&](auto A) { return stream.object.q_rows(ctx, A); });
            });
        });
}

}  // namespace

void bind_streams(nb::module_& module) {
    for_each_type(module, []<class T, class D>(T, D, nb::module_& module, const std::string& suffix) {
        using R = Held<StreamingR<T, D>, D>;
        nb::class_<R> of_r(module, ("StreamingR" + suffix).c_str());
        of_r.def("__init__",
                 [](R* self, Index n, Index p, const Where<D>& where) {
                     new (self) R(held<D>(where, 0, [&](Context<D>& ctx) { return StreamingR<T, D>(ctx, n, p); }));
                 })
            // returns the arguments of the second __init__ and of merge
            .def("state",
                 [](const R& stream, const Where<D>& where) {
                     auto s =
                         result_of(stream.home, where, 0, [&](Context<D>& ctx) { return stream.object.state(ctx); });
                     return nb::make_tuple(s.n, s.rows, to_array(stream.home, where, std::move(s.R)),
                                           to_string(s.report.method), s.report.seconds, s.report.flops);
                 })
            .def("solve", [](const R& stream, const Solver& solver, const Where<D>& where) {
                return to_tuple(stream.home, where, result_of(stream.home, where, 0, [&](Context<D>& ctx) {
                                    return stream.object.solve(ctx, solver_of(solver));
                                }));
            });
        bind_rows_and_r(of_r);

        using S = Held<StreamingQR<T, D>, D>;
        nb::class_<S> of_q(module, ("StreamingQR" + suffix).c_str());
        of_q.def("__init__",
                 [](S* self, Index n, const Where<D>& where) {
                     new (self) S(held<D>(where, 0, [&](Context<D>& ctx) { return StreamingQR<T, D>(ctx, n); }));
                 })
            // returns the arguments of the second __init__
            .def("state", [](const S& stream, const Where<D>& where) {
                auto s = result_of(stream.home, where, 0, [&](Context<D>& ctx) { return stream.object.state(ctx); });
                const auto array = [&](Matrix<T, D>& M) { return to_array(stream.home, where, std::move(M)); };
                return nb::make_tuple(s.n, s.rows, s.heights, array(s.stack), s.backward, array(s.R), array(s.G));
            });
        bind_rows_and_r(of_q);
        bind_blocks<T, D, D>(of_r, of_q);
        if constexpr (!std::is_same_v<D, Host>) bind_blocks<T, D, Host>(of_r, of_q);
    });
}

}  // namespace quoin::python
