#include "arrays.hpp"
#include "bindings.hpp"
#include "devices.hpp"

namespace quoin::python {
namespace {

/// Returns Q' and R' that `change(ctx, factors)` makes, for matrices in the host's memory.
template <class T, class D, class Change>
nb::tuple updated(const Array<T, D>& q, const Array<T, D>& r, const Where<D>& where, Change change) {
    const StridedMatrix<T, D> Q = matrix_of<T, D>(q), R = matrix_of<T, D>(r);
    auto f = result_of(Home<D>(where), where, 8.0 * Q.rows * Q.cols, [&](Context<D>& ctx) {
        const Readable<T, D> Q_read(ctx, Q), R_read(ctx, R);
        return change(ctx, ExplicitFactors<T, D>(Q_read.view, R_read.view));
    });
    return nb::make_tuple(to_array(Home<D>(where), where, std::move(f.Q)),
                          to_array(Home<D>(where), where, std::move(f.R)));
}

}  // namespace

void bind_updates(nb::module_& module) {
    using namespace nb::literals;
    for_each_type(module, []<class T, class D>(T, D, nb::module_& module, const std::string&) {
        // a GPU has no updates yet
        if constexpr (std::is_same_v<D, Host>) {
            using A = Array<T, D>;
            using W = Where<D>;
            module.def(
                "qr_insert",
                [](const A& q, const A& r, const A& u, Index at, bool rows, const W& where, bool check_finite) {
                    const StridedMatrix<T, D> U = matrix_of<T, D>(u);
                    return updated<T, D>(q, r, where, [&](Context<D>& ctx, const ExplicitFactors<T, D>& f) {
                        const Readable<T, D> new_ones(ctx, U);
                        return rows ? insert_rows<T, D>(ctx, f, at, new_ones.view, check_finite)
                                    : insert_columns<T, D>(ctx, f, at, new_ones.view, check_finite);
                    });
                },
                "q"_a.noconvert(), "r"_a.noconvert(), "u"_a.noconvert(), "at"_a, "rows"_a, "where"_a, "check_finite"_a);
            module.def(
                "qr_delete",
                [](const A& q, const A& r, Index begin, Index end, bool rows, const W& where, bool check_finite) {
                    return updated<T, D>(q, r, where, [&](Context<D>& ctx, const ExplicitFactors<T, D>& f) {
                        const Range range{begin, end};
                        return rows ? delete_rows<T, D>(ctx, f, range, check_finite)
                                    : delete_columns<T, D>(ctx, f, range, check_finite);
                    });
                },
                "q"_a.noconvert(), "r"_a.noconvert(), "begin"_a, "end"_a, "rows"_a, "where"_a, "check_finite"_a);
            module.def(
                "qr_update",
                [](const A& q, const A& r, const A& u, const A& v, const W& where, bool check_finite) {
                    const StridedMatrix<T, D> U = matrix_of<T, D>(u), V = matrix_of<T, D>(v);
                    return updated<T, D>(q, r, where, [&](Context<D>& ctx, const ExplicitFactors<T, D>& f) {
                        const Readable<T, D> U_read(ctx, U), V_read(ctx, V);
                        return update<T, D>(ctx, f, U_read.view, V_read.view, check_finite);
                    });
                },
                "q"_a.noconvert(), "r"_a.noconvert(), "u"_a.noconvert(), "v"_a.noconvert(), "where"_a,
                "check_finite"_a);
        }
    });
}

}  // namespace quoin::python
