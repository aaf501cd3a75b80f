#include "bindings.hpp"
#include "options.hpp"
#include "results.hpp"

namespace quoin::python {

void bind_svd(nb::module_& module) {
    using namespace nb::literals;
    for_each_type(module, []<class T, class D>(T, D, nb::module_& module, const std::string&) {
        module.def(
            "svd",
            [](const Array<T, D>& a, bool vectors, const nb::object& method, const Where<D>& where, bool check_finite,
               const nb::object& pivoting) {
                const StridedMatrix<T, D> A = matrix_of<T, D>(a);
                Options options = options_of(method, check_finite);
                options.pivoting = pivoting_of(pivoting);
                const Home<D> home(where);
                const double flops = 6 * flops_of_qr(A.rows, A.cols);
                auto f = result_of(home, where_for(where, A.rows, A.cols), flops, [&](Context<D>& ctx) {
                    return svd<T, D>(ctx, Readable<T, D>(ctx, A).view, vectors, options);
                });
                return to_tuple(home, where, std::move(f), vectors);
            },
            "a"_a.noconvert(), "vectors"_a, "method"_a.none(), "where"_a, "check_finite"_a, "pivoting"_a = nb::none());
    });
}

}  // namespace quoin::python
