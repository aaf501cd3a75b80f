#include "quoin/apps/lyapunov.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "options.hpp"
#include "quoin/apps/covariant_lyapunov.hpp"
#include "quoin/apps/lyapunov_series.hpp"

namespace quoin::python {
namespace {

using Result = nb::ndarray<const double, nb::device::cpu>;

Matrix<double> copy_of(const double* data, Index rows, Index cols) {
    Matrix<double> M(rows, cols);
    std::copy_n(data, rows * cols, M.data());
    return M;
}

/// Copies the result of the caller's code to `to`. The package has given it the right type, shape and (Fortran) order.
void take(const nb::object& result, double* to, Index count) {
    const auto array = nb::cast<Result>(result);
    std::copy_n(array.data(), count, to);
}

nb::tuple to_tuple(const Estimate& estimate) {
    return nb::make_tuple(estimate.value, estimate.error, estimate.half_width);
}

std::vector<double> of_each(const std::vector<Estimate>& estimates, double Estimate::*of) {
    std::vector<double> numbers;
    for (const Estimate& estimate : estimates) numbers.push_back(estimate.*of);
    return numbers;
}

/// Returns the caller's functions as a flow, with a delay if `delay` is not 0, or as a map. They get copies, which they
/// may keep.
std::unique_ptr<TangentMap<>> callers_system(const std::vector<double>& x0, bool flow, const nb::object& f,
                                             const nb::object& jvp, double step, std::optional<double> divergence,
                                             double delay, Index intervals) {
    const Index n = static_cast<Index>(x0.size()), arguments = delay > 0 ? 2 * n : n;
    const auto motion = [n, arguments, &f](const double* x, double* y) {
        with_gil([&] { take(call_python(f, nb::make_tuple(to_numpy(copy_of(x, arguments, 1), As::Vector))), y, n); });
    };
    const auto tangent = [n, arguments, &jvp](const double* x, MatrixView<const double> X, MatrixView<double> Y) {
        with_gil([&] {
            const auto point = to_numpy(copy_of(x, arguments, 1), As::Vector);
            const auto vectors = to_numpy(copy_of(X.data, arguments, X.cols));
            take(call_python(jvp, nb::make_tuple(point, vectors)), Y.data, n * X.cols);
        });
    };
    if (delay > 0) return tangent_map(UserDelayFlow{x0, motion, tangent, delay, intervals});
    return flow ? tangent_map(UserFlow{x0, motion, tangent, step, divergence})
                : tangent_map(UserMap{x0, motion, tangent, divergence});
}

nb::tuple lyapunov(const std::vector<double>& x0, bool flow, const nb::object& f, const nb::object& jvp, double step,
                   std::optional<double> divergence, double delay, Index intervals, Index exponents, double time,
                   double until, double transient, double alignment, Index every, std::uint64_t seed,
                   const nb::object& method, const nb::bytes& checkpoint, double checkpoint_seconds,
                   const nb::object& on_segment, bool f32_vectors, int threads) {
    std::unique_ptr<TangentMap<>> system = callers_system(x0, flow, f, jvp, step, divergence, delay, intervals);
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
        return with_gil([&] {
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
            return on_segment.is_none() ||
                   nb::cast<bool>(call_python(on_segment, nb::make_tuple(progress.time, progress.fraction)));
        });
    };
    const Home<Host> home(threads);
    LyapunovSpectrum s = result_of(home, threads, 0, [&](Context<Host>& ctx) {
        return f32_vectors ? lyapunov_spectrum(ctx, *with_f32_vectors(std::move(system)), options)
                           : lyapunov_spectrum(ctx, *system, options);
    });

    const auto vector = [&](const std::vector<double>& v) { return to_vector<double>(home, threads, v); };
    const auto each = [&](double Estimate::*of) { return vector(of_each(s.exponents, of)); };
    return nb::make_tuple(each(&Estimate::value), each(&Estimate::error), each(&Estimate::half_width), to_tuple(s.sum),
                          to_tuple(s.kolmogorov_sinai), to_tuple(s.kaplan_yorke), s.positive, vector(s.state), s.time,
                          s.discarded, s.segments, s.steps_between_qr, s.resolved, s.reached, s.completed,
                          to_string(s.method), vector(s.times), to_numpy(std::move(s.averages)), s.seconds,
                          s.qr_seconds, s.tangent_seconds, s.force_seconds);
}

/// Returns exponents, the duration of a segment, local exponents, the split, angles and least angles; if `keep`, also
/// times, states and vectors, backward in time.
nb::tuple covariant(const std::vector<double>& x0, bool flow, const nb::object& f, const nb::object& jvp, double step,
                    double delay, Index intervals, Index exponents, double time, double transient, double alignment,
                    Index every, std::uint64_t seed, Index split, bool keep, const nb::object& callback, int threads) {
    const auto system = callers_system(x0, flow, f, jvp, step, {}, delay, intervals);
    CovariantOptions options;
    options.exponents = exponents;
    options.time = time;
    options.transient = transient;
    options.alignment = alignment;
    options.steps_per_qr = every;
    options.seed = seed;
    options.split = split;
    if (!callback.is_none()) {
        options.progress = [&](double share) { with_gil([&] { call_python(callback, nb::make_tuple(share)); }); };
    }
    std::vector<double> times, states, vectors;
    if (keep) {
        options.on_vectors = [&](double t, std::span<const double> x, MatrixView<const double> V) {
            times.push_back(t);
            states.insert(states.end(), x.begin(), x.end());
            vectors.insert(vectors.end(), V.data, V.data + V.rows * V.cols);
        };
    }
    const Home<Host> home(threads);
    CovariantLyapunov c =
        result_of(home, threads, 0, [&](Context<Host>& ctx) { return covariant_lyapunov(ctx, *system, options); });
    const auto vector = [&](const std::vector<double>& v) { return to_vector<double>(home, threads, v); };
    return nb::make_tuple(vector(c.exponents), c.segment, to_numpy(std::move(c.local)), c.split, vector(c.angles),
                          to_numpy(std::move(c.least_angles)), vector(times), vector(states), vector(vectors));
}

/// Returns the spectrum of a series with one sample in each column, and its largest exponent with its curve and range.
nb::tuple series(const nb::object& samples, Index components, Index count, Index delays, Index lag, double interval,
                 Index theiler, Index neighbours, Index evolve, Index exponents, Index horizon, int threads) {
    Matrix<double> x(components, count);
    take(samples, x.data(), components * count);
    const SeriesOptions options{delays, lag, interval, theiler, neighbours, evolve, exponents, horizon};
    const Home<Host> home(threads);
    const double distances = 2.0 * static_cast<double>(count) * static_cast<double>(count);
    auto [d, s] =
        result_of(home, threads, 3 * distances * static_cast<double>(components * delays), [&](Context<Host>& ctx) {
            return std::pair{series_divergence(ctx, std::as_const(x).view(), options),
                             series_spectrum(ctx, std::as_const(x).view(), options)};
        });
    const auto vector = [&](const std::vector<double>& v) { return to_vector<double>(home, threads, v); };
    const auto each = [&, &exponents = s.exponents](double Estimate::*of) { return vector(of_each(exponents, of)); };
    return nb::make_tuple(each(&Estimate::value), each(&Estimate::error), each(&Estimate::half_width),
                          to_tuple(s.kaplan_yorke), to_tuple(d.exponent), vector(d.times), vector(d.logarithms),
                          d.first, d.last, s.skipped, s.segments);
}

}  // namespace

void bind_lyapunov(nb::module_& module) {
    using namespace nb::literals;
    module.def("lyapunov", &lyapunov, "x0"_a, "flow"_a, "f"_a, "jvp"_a, "step"_a, "divergence"_a.none(), "delay"_a,
               "intervals"_a, "exponents"_a, "time"_a, "until"_a, "transient"_a, "alignment"_a, "every"_a, "seed"_a,
               "method"_a.none(), "checkpoint"_a, "checkpoint_seconds"_a, "on_segment"_a.none(), "f32_vectors"_a,
               "threads"_a);
    module.def("covariant_lyapunov", &covariant, "x0"_a, "flow"_a, "f"_a, "jvp"_a, "step"_a, "delay"_a, "intervals"_a,
               "exponents"_a, "time"_a, "transient"_a, "alignment"_a, "every"_a, "seed"_a, "split"_a, "keep"_a,
               "callback"_a.none(), "threads"_a);
    module.def("lyapunov_series", &series, "samples"_a, "components"_a, "count"_a, "delays"_a, "lag"_a, "interval"_a,
               "theiler"_a, "neighbours"_a, "evolve"_a, "exponents"_a, "horizon"_a, "threads"_a);
}

}  // namespace quoin::python
