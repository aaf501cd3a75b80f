#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "options.hpp"
#include "results.hpp"

namespace quoin::python {
namespace {

/// Calls `decompose(ctx, A, pivoting)` for a matrix.
template <class T, class D, class Decompose>
auto decomposition(const Array<T, D>& a, const nb::object& pivoting, const Where<D>& where, Decompose decompose) {
    const StridedMatrix<T, D> A = matrix_of<T, D>(a);
    const Pivoting limits = *pivoting_of(pivoting);
    return result_of(Home<D>(where), where_for(where, A.rows, A.cols), flops_of_qr(A.rows, A.cols),
                     [&](Context<D>& ctx) { return decompose(ctx, Readable<T, D>(ctx, A).view, limits); });
}

}  // namespace

void bind_low_rank(nb::module_& module) {
    using namespace nb::literals;
    for_each_type(module, []<class T, class D>(T, D, nb::module_& module, const std::string&) {
        module.def(
            "interpolative",
            [](const Array<T, D>& a, const nb::object& pivoting, const Where<D>& where, bool check_finite) {
                auto f = decomposition<T, D>(a, pivoting, where, [&](auto& ctx, auto A, const Pivoting& limits) {
                    return interpolative<T, D>(ctx, A, limits, check_finite);
                });
                return nb::make_tuple(f.columns, to_array(Home<D>(where), where, std::move(f.X)));
            },
            "a"_a.noconvert(), "pivoting"_a, "where"_a, "check_finite"_a);
        module.def(
            "cur",
            [](const Array<T, D>& a, const nb::object& pivoting, const Where<D>& where, bool check_finite) {
                auto f = decomposition<T, D>(a, pivoting, where, [&](auto& ctx, auto A, const Pivoting& limits) {
                    return cur<T, D>(ctx, A, limits, check_finite);
                });
                return nb::make_tuple(f.columns, f.rows, to_array(Home<D>(where), where, std::move(f.U)));
            },
            "a"_a.noconvert(), "pivoting"_a, "where"_a, "check_finite"_a);
    });
}

}  // namespace quoin::python
