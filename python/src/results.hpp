#pragma once

// The library's structures as Python's tuples and dictionaries.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <utility>

#include "devices.hpp"

namespace quoin::python {

/// Returns the fields of quoin.Report, in its order.
nb::tuple to_tuple(const Report& report);
/// Returns a plan, and the kernels that run it on D.
template <class D>
nb::dict to_dict(const Plan& plan);
nb::dict to_dict(const RoutePlan& route);

/// The arguments of LeastSquaresOptions: rcond, refuse_deficient and mixed_precision.
using Solver = std::tuple<double, bool, bool>;
inline LeastSquaresOptions solver_of(const Solver& solver) {
    const auto& [rcond, refuse_deficient, mixed_precision] = solver;
    return {.rcond = rcond, .refuse_deficient = refuse_deficient, .mixed_precision = mixed_precision};
}

/// Returns X in the form `as`, residual norms, the condition, R of 2^-e A, e, the rank, the dependent columns, the
/// report and the refinement.
template <class T, class D>
nb::tuple to_tuple(const Home<D>& home, const Where<D>& where, LeastSquares<T, D>&& solution, As as = As::Matrix) {
    return nb::make_tuple(to_array(home, where, std::move(solution.X), as),
                          to_vector(home, where, solution.residual_norms), solution.condition,
                          to_array(home, where, std::move(solution.R)), solution.exponent, solution.rank,
                          std::move(solution.dependent), to_tuple(solution.report),
                          nb::make_tuple(solution.refinement.steps, solution.refinement.fell_back));
}

/// Returns U or None, the singular values, and Vᵀ or None.
template <class T, class D>
nb::tuple to_tuple(const Home<D>& home, const Where<D>& where, SVD<T, D>&& f, bool vectors) {
    if (!vectors) return nb::make_tuple(nb::none(), to_vector(home, where, f.s), nb::none());
    return nb::make_tuple(to_array(home, where, std::move(f.U)), to_vector(home, where, f.s),
                          to_array(home, where, std::move(f.Vt)));
}

}  // namespace quoin::python
