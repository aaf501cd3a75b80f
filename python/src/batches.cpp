#include "batches.hpp"

#include "bindings.hpp"

namespace quoin::python {
namespace {

/// Adds the functions whose names end in `suffix`, of matrices in the form Given: a stack or a list.
template <class T, class D, class Given>
void bind_given(nb::module_& module, const std::string& suffix) {
    using namespace nb::literals;
    module.def(("factor_" + suffix).c_str(),
               [](const Given& a, const nb::object& method, const nb::object& q, const Where<D>& where,
                  bool check_finite, bool verify, const nb::object& pivoting) {
                   Options options = options_of(method, q, check_finite, verify);
                   options.pivoting = pivoting_of(pivoting);
                   return Factorizations<T, D>(a, options, where);
               },
               "a"_a.noconvert(), "method"_a.none(), "q"_a.none(), "where"_a, "check_finite"_a, "verify"_a,
               "pivoting"_a = nb::none());
    module.def(("lstsq_" + suffix).c_str(), &solve_batch<T, D, Given>, "a"_a.noconvert(), "b"_a.noconvert(), "solver"_a,
               "method"_a.none(), "where"_a, "check_finite"_a);
}

}  // namespace

void bind_batches(nb::module_& module) {
    for_each_type(module, []<class T, class D>(T, D, nb::module_& module, const std::string& suffix) {
        bind_given<T, D, Array<T, D>>(module, "stack");
        bind_given<T, D, List<T, D>>(module, "list");

        using B = Factorizations<T, D>;
        nb::class_<B>(module, ("Factorizations" + suffix).c_str())
            .def_prop_ro("shape", &B::shape)
            .def_prop_ro("dtype", [](const B&) { return numpy_name<T>; })
            .def("__len__", &B::count)
            .def("report", [](const B& f, Index b) { return to_tuple(f.report(b)); })
            .def("permutations", &B::permutations)
            .def("r", &B::r)
            .def("q", &B::q)
            .def("raw", &B::raw)
            .def("apply", &B::template apply<Array<T, D>>)
            .def("apply_list", &B::template apply<List<T, D>>)
            .def("lstsq", &B::template lstsq<Array<T, D>>)
            .def("lstsq_list", &B::template lstsq<List<T, D>>);
    });
}

}  // namespace quoin::python
