#include <nanobind/stl/vector.h>

#include <utility>

#include "arrays.hpp"
#include "bindings.hpp"
#include "options.hpp"

namespace quoin::python {
namespace {

Options gram_schmidt_options(const nb::object& method, const nb::object& reorthogonalize, Index panel_width,
                             const nb::object& panel) {
    using R = Reorthogonalization;
    using P = GramSchmidtPanel;
    constexpr Method methods[] = {Method::Auto, Method::ModifiedGramSchmidt, Method::ClassicalGramSchmidt};
    constexpr R schemes[] = {R::Off, R::Selective, R::Always};
    constexpr P panels[] = {P::Auto, P::MGS, P::CholeskyQR2};
    const R again = parse_name<R>("reorthogonalize", schemes, reorthogonalize);
    const P by = parse_name<P>("panel", panels, panel);
    Options options;
    options.method = parse_name<Method>("method", methods, method);
    MethodOptions& chosen = options.method;
    if (chosen == Method::Auto) {
        chosen = ClassicalGramSchmidt{.reorthogonalization = again == R::Off ? R::Always : again};
    } else {
        chosen.set_reorthogonalization(again);
    }
    chosen.set_panel_width(panel_width);
    chosen.set_panel(by);
    return options;
}

/// Adds `GramSchmidt`, which exists on the host alone.
template <class T>
void bind_gram_schmidt(nb::module_& module, const char* name) {
    using namespace nb::literals;
    using G = Held<GramSchmidt<T>, Host>;
    nb::class_<G>(module, name)
        .def(
            "__init__",
            [](G* self, Index m, Index capacity, const nb::object& method, const nb::object& reorthogonalize,
               Index panel_width, int threads) {
                const Options options = gram_schmidt_options(method, reorthogonalize, panel_width,
                                                             nb::str(to_string(GramSchmidtPanel::Auto)));
                new (self) G(held<Host>(threads, 0,
                                        [&](Context<Host>& ctx) { return GramSchmidt<T>(ctx, m, capacity, options); }));
            },
            "m"_a, "capacity"_a, "method"_a.none(), "reorthogonalize"_a.none(), "panel_width"_a, "threads"_a)
        .def("__init__",
             [](G* self, const nb::object& method, const nb::object& reorthogonalize, Index panel_width,
                const nb::object& panel, const Array<T>& q, const Array<T>& r, const Array<T>& l,
                const std::vector<Index>& panel_ends, int threads) {
                 typename GramSchmidt<T>::State state;
                 state.options = gram_schmidt_options(method, reorthogonalize, panel_width, panel);
                 Index begin = 0;
                 for (const Index end : panel_ends) state.panels.push_back({std::exchange(begin, end), end});
                 new (self) G(held<Host>(threads, 0, [&](Context<Host>& ctx) {
                     state.Q = copy_of<T>(ctx, matrix_of<T, Host>(q));
                     state.R = copy_of<T>(ctx, matrix_of<T, Host>(r));
                     state.L = copy_of<T>(ctx, matrix_of<T, Host>(l));
                     return GramSchmidt<T>(ctx, state);
                 }));
             })
        // returns the arguments of the second __init__
        .def("state",
             [](const G& g, int threads) {
                 const double flops = flops_of_copy(g.object.rows(), g.object.cols());
                 auto s = result_of(g.home, threads, flops, [&](Context<Host>& ctx) { return g.object.state(ctx); });
                 std::vector<Index> panel_ends;
                 for (const Range& panel : s.panels) panel_ends.push_back(panel.end);
                 const auto array = [&](Matrix<T>& M) { return to_array(g.home, threads, std::move(M)); };
                 const MethodOptions& method = s.options.method;
                 return nb::make_tuple(to_string(method), to_string(method.reorthogonalization()), method.panel_width(),
                                       to_string(method.panel()), array(s.Q), array(s.R), array(s.L), panel_ends);
             })
        .def_prop_ro("rows", [](const G& g) { return g.object.rows(); })
        .def_prop_ro("cols", [](const G& g) { return g.object.cols(); })
        .def("append",
             [](G& g, const Array<T, Host>& a, int threads) {
                 const StridedMatrix<T, Host> A = matrix_of<T, Host>(a);
                 const double flops = 4.0 * A.rows * A.cols * (g.object.cols() + A.cols);
                 run_released(g.home, threads, flops,
                              [&](Context<Host>& ctx) { g.object.append(ctx, ColumnMajor<T, Host>(ctx, A).view); });
             })
        .def("orthogonalize",
             [](const G& g, const Array<T, Host>& v, int threads) {
                 const StridedMatrix<T, Host> V0 = matrix_of<T, Host>(v);
                 Matrix<T> V, H;
                 run_released(g.home, threads, 4.0 * V0.rows * V0.cols * g.object.cols(), [&](Context<Host>& ctx) {
                     V = copy_of<T>(ctx, V0);
                     H = g.object.orthogonalize(ctx, V.view());
                 });
                 return nb::make_tuple(to_array(g.home, threads, std::move(V)),
                                       to_array(g.home, threads, std::move(H)));
             })
        .def("truncate", [](G& g, Index k) { g.object.truncate(k); })
        .def("q", [](const G& g) { return copied_array<T, Host>(g.home, 0, g.object.q()); })
        .def("r", [](const G& g) { return copied_array<T, Host>(g.home, 0, g.object.r()); });
}

}  // namespace

void bind_gram_schmidt(nb::module_& module) {
    bind_gram_schmidt<double>(module, "GramSchmidt64");
    bind_gram_schmidt<float>(module, "GramSchmidt32");
}

}  // namespace quoin::python
