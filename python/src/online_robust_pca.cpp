#include "quoin/apps/online_robust_pca.hpp"

#include <nanobind/stl/vector.h>

#include <utility>

#include "bindings.hpp"
#include "devices.hpp"

namespace quoin::python {
namespace {

template <class T, class D>
using Online = Held<OnlineRobustPca<T, D>, D>;

/// Returns column j of a matrix as a column of D.
template <class T, class D>
ColumnOf<T, D> column_of(MatrixView<T, D> A, Index j) {
    if constexpr (std::is_same_v<D, Host>) {
        return {A.at(0, j), static_cast<std::size_t>(A.rows)};
    } else {
        return A.col_block({j, j + 1});
    }
}
template <class X, class D>
MatrixView<X, D> view_of(ColumnOf<X, D> x) {
    if constexpr (std::is_same_v<D, Host>) {
        return {x.data(), static_cast<Index>(x.size()), 1};
    } else {
        return x;
    }
}

/// Adds `next` for rows on P, which is D or the host. It returns l and s of each row, as columns.
template <class T, class D, class P>
void bind_next(nb::class_<Online<T, D>>& of) {
    of.def("next", [](Online<T, D>& p, const Array<T, P>& rows, const Where<D>& where) {
        const StridedMatrix<T, P> M = matrix_of<T, P>(rows).transposed();
        Matrix<T, D> L, S;
        run_released(p.home, where, 100.0 * M.rows * M.cols, [&](Context<D>& ctx) {
            L = Matrix<T, D>(ctx, M.rows, M.cols);
            S = Matrix<T, D>(ctx, M.rows, M.cols);
            const auto take = [&](MatrixView<const T, D> columns) {
                for (Index j = 0; j < M.cols; ++j) {
                    p.object.next(ctx, column_of(columns, j), column_of(L.view(), j), column_of(S.view(), j));
                }
            };
            if constexpr (std::is_same_v<P, D>) {
                take(ColumnMajor<T, D>(ctx, M).view);
            } else {
                Context<Host> host;
                const Matrix<T, D> columns = copy_to_device<T>(ctx, ColumnMajor<T, Host>(host, M).view);
                take(columns.view());
            }
        });
        return nb::make_tuple(to_array(p.home, where, std::move(L)), to_array(p.home, where, std::move(S)));
    });
}

}  // namespace

void bind_online_robust_pca(nb::module_& module) {
    using namespace nb::literals;
    for_each_type(module, []<class T, class D>(T, D, nb::module_& module, const std::string& suffix) {
        using P = Online<T, D>;
        nb::class_<P> of(module, ("OnlineRobustPca" + suffix).c_str());
        of.def(
              "__init__",
              [](P* self, Index rows, Index max_rank, double forget, double threshold, Index start,
                 const Where<D>& where) {
                  const Home<D> home(where);
                  new (self)
                      P{home, result_of(home, where, 0, [&](Context<D>&) {
                            return OnlineRobustPca<T, D>(
                                rows, {.max_rank = max_rank, .forget = forget, .threshold = threshold, .start = start});
                        })};
              },
              "rows"_a, "max_rank"_a, "forget"_a, "threshold"_a, "start"_a, "where"_a)
            .def("__init__",
                 [](P* self, Index rows, Index max_rank, double forget, double threshold, Index start,
                    const Where<D>& where, Index columns, const std::vector<double>& singular_values,
                    const Array<T>& basis, const Array<T>& first, const Array<T>& last, const Array<float>& size,
                    const Array<float>& change, const Array<float>& noise, const Array<std::int32_t>& age,
                    const Array<std::int32_t>& votes) {
                     const Home<D> home(where);
                     const auto copied = []<class X>(const Array<X>& a) {
                         const StridedMatrix<X> from = matrix_of<X, Host>(a);
                         Matrix<X> to(from.rows, from.cols);
                         for (Index j = 0; j < from.cols; ++j) {
                             for (Index i = 0; i < from.rows; ++i) to(i, j) = from.at(i, j);
                         }
                         return to;
                     };
                     const typename OnlineRobustPca<T, D>::State state{
                         columns,      singular_values, copied(basis), copied(first), copied(last),
                         copied(size), copied(change),  copied(noise), copied(age),   copied(votes)};
                     new (self)
                         P{home, result_of(home, where, 0, [&](Context<D>& ctx) {
                               return OnlineRobustPca<T, D>(
                                   ctx, rows,
                                   {.max_rank = max_rank, .forget = forget, .threshold = threshold, .start = start},
                                   state);
                           })};
                 })
            // returns the arguments of the second __init__ after `where`, in host memory
            .def("state",
                 [](const P& p, const Where<D>& where) {
                     auto s = result_of(p.home, where, 0, [&](Context<D>& ctx) { return p.object.state(ctx); });
                     const auto array = []<class X>(Matrix<X>& M) { return to_numpy(std::move(M)); };
                     return nb::make_tuple(s.columns, s.singular_values, array(s.basis), array(s.first), array(s.last),
                                           array(s.size), array(s.change), array(s.noise), array(s.age),
                                           array(s.votes));
                 })
            .def_prop_ro("columns", [](const P& p) { return p.object.columns(); })
            .def_prop_ro("singular_values", [](const P& p) { return p.object.singular_values(); })
            .def("basis",
                 [](const P& p, const Where<D>& where) { return copied_array<T, D>(p.home, where, p.object.basis()); })
            .def("noise", [](const P& p, const Where<D>& where) {
                return copied_array<float, D>(p.home, where, view_of<const float, D>(p.object.noise()));
            });
        bind_next<T, D, D>(of);
        if constexpr (!std::is_same_v<D, Host>) bind_next<T, D, Host>(of);
    });
}

}  // namespace quoin::python
