#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "options.hpp"
#include "results.hpp"

namespace quoin::python {
namespace {

/// Adds `name`, which returns `answer(f, home, where)` of f = decompose(ctx, A, pivoting, check_finite).
template <class T, class D, class Decompose, class Answer>
void bind_decomposition(nb::module_& module, const char* name, Decompose decompose, Answer answer) {
    using namespace nb::literals;
    module.def(
        name,
        [=](const Array<T, D>& a, const nb::object& pivoting, const Where<D>& where, bool check_finite) {
            const StridedMatrix<T, D> A = matrix_of<T, D>(a);
            const Pivoting limits = *pivoting_of(pivoting);
            const Home<D> home(where);
            auto f = result_of(
                home, where_for(where, A.rows, A.cols), flops_of_qr(A.rows, A.cols),
                [&](Context<D>& ctx) { return decompose(ctx, Readable<T, D>(ctx, A).view, limits, check_finite); });
            return answer(f, home, where);
        },
        "a"_a.noconvert(), "pivoting"_a, "where"_a, "check_finite"_a);
}

}  // namespace

void bind_low_rank(nb::module_& module) {
    for_each_type(module, []<class T, class D>(T, D, nb::module_& module, const std::string&) {
        bind_decomposition<T, D>(module, "interpolative", &interpolative<T, D>, [](auto& f, auto& home, auto& where) {
            return nb::make_tuple(f.columns, to_array(home, where, std::move(f.X)));
        });
        bind_decomposition<T, D>(module, "cur", &cur<T, D>, [](auto& f, auto& home, auto& where) {
            return nb::make_tuple(f.columns, f.rows, to_array(home, where, std::move(f.U)));
        });
    });
}

}  // namespace quoin::python
