#include <nanobind/stl/vector.h>

#include <span>
#include <utility>

#include "arrays.hpp"
#include "bindings.hpp"
#include "quoin/online_robust_pca.hpp"

namespace quoin::python {
namespace {

/// `OnlineRobustPca`, which is on the host alone.
template <class T>
void bind_online(nb::module_& module, const char* name) {
    using namespace nb::literals;
    using P = Held<OnlineRobustPca<T>, Host>;
    nb::class_<P>(module, name)
        .def(
            "__init__",
            [](P* self, Index rows, Index max_rank, double forget, double threshold, Index start, int threads) {
                const Home<Host> home(threads);
                new (self)
                    P{home, result_of(home, threads, 0, [&](Context<Host>&) {
                          return OnlineRobustPca<T>(
                              rows, {.max_rank = max_rank, .forget = forget, .threshold = threshold, .start = start});
                      })};
            },
            "rows"_a, "max_rank"_a, "forget"_a, "threshold"_a, "start"_a, "threads"_a)
        .def("next",
             [](P& p, const Array<T, Host>& m, int threads) {
                 const StridedMatrix<T, Host> M = matrix_of<T, Host>(m);
                 Matrix<T> L, S;
                 const double flops = 100.0 * M.rows * M.cols;
                 run_released(p.home, threads, flops, [&](Context<Host>& ctx) {
                     const ColumnMajor<T, Host> columns(ctx, M);
                     L = Matrix<T>(M.rows, M.cols);
                     S = Matrix<T>(M.rows, M.cols);
                     const auto n = static_cast<std::size_t>(M.rows);
                     for (Index j = 0; j < M.cols; ++j) {
                         p.object.next(ctx, std::span<const T>(columns.view.at(0, j), n),
                                       std::span<T>(L.view().at(0, j), n), std::span<T>(S.view().at(0, j), n));
                     }
                 });
                 return nb::make_tuple(to_array(p.home, threads, std::move(L)),
                                       to_array(p.home, threads, std::move(S)));
             })
        .def_prop_ro("columns", [](const P& p) { return p.object.columns(); })
        .def_prop_ro("singular_values", [](const P& p) { return p.object.singular_values(); })
        .def("basis", [](const P& p) { return to_array(p.home, 0, copied<T>(p.object.basis())); })
        .def("noise", [](const P& p) {
            const std::span<const float> noise = p.object.noise();
            return std::vector<float>(noise.begin(), noise.end());
        });
}

}  // namespace

void bind_online_robust_pca(nb::module_& module) {
    bind_online<double>(module, "OnlineRobustPca64");
    bind_online<float>(module, "OnlineRobustPca32");
}

}  // namespace quoin::python
