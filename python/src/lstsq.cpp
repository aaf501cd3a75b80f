#include "bindings.hpp"
#include "options.hpp"
#include "results.hpp"

namespace quoin::python {

void bind_lstsq(nb::module_& module) {
    using namespace nb::literals;
    for_each_type(module, []<class T, class D>(T, D, nb::module_& module, const std::string&) {
        module.def(
            "lstsq",
            [](const Array<T, D>& a, const Array<T, D>& b, const Solver& solver, const nb::object& method,
               const Where<D>& where, bool check_finite) {
                const StridedMatrix<T, D> A = matrix_of<T, D>(a), B = matrix_of<T, D>(b);
                const Options options = options_of(method, check_finite);
                const Home<D> home(where);
                const double flops = flops_of_qr(A.rows, A.cols);
                auto solution = result_of(home, where_for(where, A.rows, A.cols), flops, [&](Context<D>& ctx) {
                    const Readable<T, D> A_(ctx, A);
                    const ColumnMajor<T, D> B_(ctx, B);
                    return least_squares<T, D>(ctx, A_.view, B_.view, solver_of(solver), options);
                });
                return to_tuple(home, where, std::move(solution));
            },
            "a"_a.noconvert(), "b"_a.noconvert(), "solver"_a, "method"_a.none(), "where"_a, "check_finite"_a);
    });
}

}  // namespace quoin::python
