#include "quoin/lyapunov.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "options.hpp"

namespace quoin::python {
namespace {

using Result = nb::ndarray<const double, nb::device::cpu>;

Matrix<double> copy_of(const double* data, Index rows, Index cols) {
    Matrix<double> M(rows, cols);
    std::copy_n(data, rows * cols, M.data());
    return M;
}

/// The package has made the result of the caller's code an array of the right type, shape and (Fortran) order.
void take(const nb::object& result, double* to, Index count) {
    const auto array = nb::cast<Result>(result);
    std::copy_n(array.data(), count, to);
}

nb::tuple to_tuple(const Estimate& estimate) {
    return nb::make_tuple(estimate.value, estimate.error, estimate.half_width);
}

nb::tuple lyapunov(const std::vector<double>& x0, bool flow, const nb::object& f, const nb::object& jvp, double step,
                   std::optional<double> divergence, Index exponents, double time, double until, double transient,
                   double alignment, Index every, std::uint64_t seed, const nb::object& method,
                   const nb::bytes& checkpoint, double checkpoint_seconds, const nb::object& on_segment,
                   bool f32_vectors, int threads) {
    const Index n = static_cast<Index>(x0.size());
    // what the caller's code is given is a copy, which it may keep
    const auto motion = [&](const double* x, double* y) {
        const nb::gil_scoped_acquire acquired;
        take(f(to_numpy_vector(copy_of(x, n, 1))), y, n);
    };
    const auto tangent = [&](const double* x, MatrixView<const double> X, MatrixView<double> Y) {
        const nb::gil_scoped_acquire acquired;
        take(jvp(to_numpy_vector(copy_of(x, n, 1)), to_numpy(copy_of(X.data, n, X.cols))), Y.data, n * X.cols);
    };
    std::unique_ptr<TangentMap<>> system = flow ? tangent_map(UserFlow{x0, motion, tangent, step, divergence})
                                                : tangent_map(UserMap{x0, motion, tangent, divergence});

    LyapunovOptions options;
    options.exponents = exponents;
    options.time = time;
    options.until = until;
    options.transient = transient;
    options.alignment = alignment;
    options.steps_per_qr = every;
    options.seed = seed;
    options.qr.method = parse_method(method);
    options.checkpoint.assign(checkpoint.c_str(), checkpoint.size());
    options.checkpoint_seconds = checkpoint_seconds;
    options.on_segment = [&](const LyapunovProgress& progress) {
        const nb::gil_scoped_acquire acquired;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        return on_segment.is_none() || nb::cast<bool>(on_segment(progress.time, progress.fraction));
    };
    const Home<Host> home(threads);
    LyapunovSpectrum s = result_of(home, threads, 0, [&](Context<Host>& ctx) {
        return f32_vectors ? lyapunov_spectrum(ctx, *with_f32_vectors(std::move(system)), options)
                           : lyapunov_spectrum(ctx, *system, options);
    });

    std::vector<double> values, errors, half_widths;
    for (const Estimate& exponent : s.exponents) {
        values.push_back(exponent.value), errors.push_back(exponent.error), half_widths.push_back(exponent.half_width);
    }
    const auto vector = [&](const std::vector<double>& v) { return to_vector<double>(home, threads, v); };
    return nb::make_tuple(vector(values), vector(errors), vector(half_widths), to_tuple(s.sum),
                          to_tuple(s.kolmogorov_sinai), to_tuple(s.kaplan_yorke), s.positive, vector(s.state), s.time,
                          s.discarded, s.segments, s.steps_between_qr, s.resolved, s.reached, s.completed,
                          to_string(s.method), vector(s.times), to_numpy(std::move(s.averages)), s.seconds,
                          s.qr_seconds, s.tangent_seconds, s.force_seconds);
}

}  // namespace

void bind_lyapunov(nb::module_& module) {
    using namespace nb::literals;
    module.def("lyapunov", &lyapunov, "x0"_a, "flow"_a, "f"_a, "jvp"_a, "step"_a, "divergence"_a.none(), "exponents"_a,
               "time"_a, "until"_a, "transient"_a, "alignment"_a, "every"_a, "seed"_a, "method"_a.none(),
               "checkpoint"_a, "checkpoint_seconds"_a, "on_segment"_a.none(), "f32_vectors"_a, "threads"_a);
}

}  // namespace quoin::python
