#include "batches.hpp"
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
               const nb::object& pivoting, const nb::object& callback) {
                const StridedMatrix<T, D> A = matrix_of<T, D>(a);
                Options options = options_of(method, check_finite);
                options.pivoting = pivoting_of(pivoting);
                const Home<D> home(where);
                const double flops = 6 * flops_of_qr(A.rows, A.cols);
                auto f = result_of(
                    home, where_for(where, A.rows, A.cols), flops,
                    [&](Context<D>& ctx) { return svd<T, D>(ctx, Readable<T, D>(ctx, A).view, vectors, options); },
                    progress_of<D>(callback, where, [&](Context<D>& ctx) {
                        return flops_of_svd<T>(ctx, A.rows, A.cols, vectors, options);
                    }));
                return to_tuple(home, where, std::move(f), vectors);
            },
            "a"_a.noconvert(), "vectors"_a, "method"_a.none(), "where"_a, "check_finite"_a, "pivoting"_a = nb::none(),
            "callback"_a = nb::none());
        module.def(
            "svd_stack",
            [](const Array<T, D>& a, bool vectors, const nb::object& method, const Where<D>& where, bool check_finite) {
                const Batch<T, D> stack(a);
                const Index m = stack.rows(), n = stack.cols(), k = std::min(m, n), count = stack.count();
                const double flops = 6 * flops_of_qr(m, n) * static_cast<double>(count);
                const Options options = options_of(method, check_finite);
                const Home<D> home(where);
                auto f = result_of(home, where, flops, [&](Context<D>& ctx) {
                    return svd<T, D>(ctx, Operands<T, D>(ctx, stack).view, vectors, options);
                });
                const auto array = [&](quoin::Batch<T, D>&& batch, Index rows, Index cols, As as) {
                    BatchResult<T, D> result(where, stack.shape(), count, rows, cols, rows, as);
                    run_released(home, where, 0, [&](Context<D>& ctx) { result.put(ctx, std::move(batch)); });
                    return result.take();
                };
                const nb::object s = array(std::move(f.s), k, 1, As::Vector);
                if (!vectors) return nb::make_tuple(nb::none(), s, nb::none());
                const nb::object U = array(std::move(f.U), m, k, As::Matrix);
                return nb::make_tuple(U, s, array(std::move(f.Vt), k, n, As::Matrix));
            },
            "a"_a.noconvert(), "vectors"_a, "method"_a.none(), "where"_a, "check_finite"_a);
    });
}

}  // namespace quoin::python
