// The extension module quoin._core: what the package quoin calls. Its arguments are checked and typed there; dtypes are
// told apart by overloads.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <span>
#include <string>

#include "arrays.hpp"
#include "batches.hpp"
#include "call.hpp"
#include "distributed.hpp"
#include "lyapunov.hpp"
#include "method.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "cuda.hpp"
#endif

namespace quoin::python {

namespace {

/// The one of `all` that the caller names. Throws InvalidArgument.
template <class E>
E parse_name(const char* option, std::span<const E> all, const nb::object& name) {
    std::string names;
    for (const E& one : all) {
        if (nb::isinstance<nb::str>(name) && name.equal(nb::str(to_string(one)))) return one;
        names += (&one == &all.front() ? "'" : &one == &all.back() ? "' or '" : "', '") + std::string(to_string(one));
    }
    throw InvalidArgument(std::string(option) + " must be " + names + "', and is " +
                          nb::cast<std::string>(nb::module_::import_("quoin._arguments").attr("shown")(name)));
}

QForm parse_q(const nb::object& name) {
    constexpr QForm all[] = {QForm::Any, QForm::None, QForm::Explicit, QForm::Reflectors};
    return parse_name<QForm>("q", all, name);
}

}  // namespace

Method parse_method(const nb::object& name) { return parse_name("method", every_method(), name); }

Options options_of(const nb::object& method, bool check_finite) {
    Options options;
    options.method = parse_method(method);
    options.check_finite = check_finite;
    return options;
}

namespace {

double flops_of_qr(Index m, Index n) { return 4.0 * m * n * std::min(m, n); }

/// One where the caller leaves it open (0) and more would not pay: a team's wake-ups cost more than they bring, and on a
/// machine with other work far more. Measured at 4 cores: a square matrix gains from 300 x 300 on, a tall one earlier.
int where_for(int threads, Index m, Index n) {
    const double worth_a_team = m < 4 * n ? 1e8 : 1e7;
    return threads == 0 && flops_of_qr(m, n) < worth_a_team ? 1 : threads;
}
#ifdef QUOIN_HAVE_CUDA
const CudaCall& where_for(const CudaCall& call, Index, Index) { return call; }
#endif

/// A = QR; on a GPU in `memory`, if that is there. On the host the library allocates.
template <class T>
QR<T> factor_matrix(Context<Host>& ctx, const StridedMatrix<T>& A, const Options& options, Matrix<T>&& = {}) {
    if (A.column_major()) return qr<T, Host>(ctx, A.view(), options);
    if (A.row_major()) return qr<T>(ctx, A.row_major_view(), options);
    return qr<T, Host>(ctx, A.gathered(), plan_qr<T>(ctx, A.rows, A.cols, options));
}
#ifdef QUOIN_HAVE_CUDA
template <class T>
QR<T, Cuda> factor_matrix(Context<Cuda>& ctx, const StridedMatrix<T, Cuda>& A, const Options& options,
                          Matrix<T, Cuda>&& memory = {}) {
    if (A.column_major() && (options.q == QForm::None || !memory.data())) return qr<T, Cuda>(ctx, A.view(), options);
    if (!memory.data()) memory = Matrix<T, Cuda>(ctx, A.rows, A.cols);
    load<T>(ctx, A, memory.view());
    return qr<T, Cuda>(ctx, std::move(memory), plan_qr<T>(ctx, A.rows, A.cols, options));
}
#endif

/// Q and R of the modes 'reduced' and 'complete', R of 'r', V_Rᵀ and tau of 'raw'.
template <class T, class D>
nb::object factor_array(const Array<T, D>& array, char mode, const nb::object& method, const Where<D>& where,
                        bool check_finite) {
    const bool raw = mode == 'h';
    Options options = options_of(method, check_finite);
    const bool square = mode == 'c' && (array.ndim() > 2 || array.shape(0) > array.shape(1));
    options.q = mode == 'r' ? QForm::None : raw ? QForm::Reflectors : square ? QForm::Any : QForm::Explicit;
    if (array.ndim() > 2) {
        if (mode != 'c') return qr_stack<T, D>(array, options, where);
        const Factorizations<T, D> f(array, options, where);
        return nb::make_tuple(f.q(true, where), f.r(true, where));
    }
    const StridedMatrix<T, D> A = matrix_of<T, D>(array);
    const Index m = A.rows, n = A.cols, k = std::min(m, n);
    const bool complete = mode == 'c' && m > n;

    std::optional<BatchResult<T, D>> first;
    if (mode != 'r') {
        const Index cols = raw ? n : complete ? m : k;
        first.emplace(where, std::vector<std::size_t>(), 1, m, cols, m);
    }
    BatchResult<T, D> second(where, {}, 1, raw || !complete ? k : m, raw ? 1 : n, k);
    run_released(Home<D>(where), where_for(where, m, n), flops_of_qr(m, n), [&](Context<D>& ctx) {
        QR<T, D> f = factor_matrix<T>(ctx, A, options, first ? first->work(m, n) : Matrix<T, D>());
        if (raw) {
            LapackQR<T, D> lapack = to_lapack<T, D>(ctx, std::move(f));
            first->put(ctx, std::move(lapack.V_R));
            second.put(ctx, std::move(lapack.tau));
            return;
        }
        second.put(ctx, f.r(ctx));
        if (complete) {
            first->put(ctx, f.q_block(ctx, {0, m}, {0, m}));
        } else if (mode != 'r') {
            first->put(ctx, std::move(f).take_q(ctx));
        }
    });
    if (mode == 'r') return second.take();
    if (raw) return nb::make_tuple(first->take_transposed(), second.take_vectors());
    return nb::make_tuple(first->take(), second.take());
}

/// An object of the library with the home of its memory.
template <class Object, class D>
struct Held {
    Home<D> home;
    Object object;
};

template <class T, class D>
Held<QR<T, D>, D> factor(const Array<T, D>& array, const nb::object& method, const nb::object& q, const Where<D>& where,
                         bool check_finite, bool verify) {
    const StridedMatrix<T, D> A = matrix_of<T, D>(array);
    Options options = options_of(method, check_finite);
    options.q = parse_q(q);
    options.verify = verify;
    const Home<D> home(where);
    std::optional<QR<T, D>> f;
    run_released(home, where_for(where, A.rows, A.cols), flops_of_qr(A.rows, A.cols),
                 [&](Context<D>& ctx) { f.emplace(factor_matrix<T>(ctx, A, options)); });
    return {home, std::move(*f)};
}

/// `from_lapack` of V_Rᵀ (n×m) and tau (k×1).
template <class T, class D>
Held<QR<T, D>, D> from_raw(const Array<T, D>& h, const Array<T, D>& tau, const Where<D>& where) {
    const StridedMatrix<T, D> V_R = matrix_of<T, D>(h).transposed(), taus = matrix_of<T, D>(tau);
    const Home<D> home(where);
    std::optional<QR<T, D>> f;
    run_released(home, where_for(where, V_R.rows, V_R.cols), flops_of_qr(V_R.rows, V_R.cols), [&](Context<D>& ctx) {
        f.emplace(from_lapack<T, D>(ctx, {copy_of<T>(ctx, V_R), copy_of<T>(ctx, taus)}));
    });
    return {home, std::move(*f)};
}

nb::dict to_dict(const Report& report) {
    const auto measured = [](double x) { return x < 0 ? nb::object(nb::none()) : nb::object(nb::float_(x)); };
    nb::dict d;
    d["method"] = to_string(report.method);
    d["fell_back"] = report.fell_back;
    d["seconds"] = report.seconds;
    d["flops"] = report.flops;
    d["gram_departure"] = measured(report.gram_departure);
    d["orthogonality"] = measured(report.orthogonality);
    d["residual"] = measured(report.residual);
    return d;
}

nb::dict to_dict(const Plan& plan) {
    nb::dict d;
    d["rows"] = plan.rows;
    d["cols"] = plan.cols;
    d["dtype"] = plan.element_bytes == 4 ? "float32" : "float64";
    d["method"] = to_string(plan.method);
    d["fallback"] =
        plan.fallback == Method::Auto ? nb::object(nb::none()) : nb::object(nb::str(to_string(plan.fallback)));
    d["q"] = to_string(plan.q);
    d["panel_width"] = plan.panel_width;
    d["leaf_rows"] = plan.leaf_rows;
    d["fan_in"] = plan.fan_in;
    d["workspace_bytes"] = plan.workspace_bytes;
    d["flops"] = plan.flops;
    d["bytes_moved"] = plan.bytes_moved;
    d["description"] = to_string(plan);
    return d;
}

template <class T, class D>
nb::tuple to_tuple(const Home<D>& home, const Where<D>& where, LeastSquares<T, D>&& solution) {
    return nb::make_tuple(to_array(home, where, std::move(solution.X)), to_vector(home, where, solution.residual_norms),
                          solution.condition, to_dict(solution.report));
}

template <class T, class D>
nb::tuple solve_least_squares(const Array<T, D>& a, const Array<T, D>& b, double rcond, const nb::object& method,
                              const Where<D>& where, bool check_finite) {
    const StridedMatrix<T, D> A = matrix_of<T, D>(a), B = matrix_of<T, D>(b);
    const Options options = options_of(method, check_finite);
    const Home<D> home(where);
    LeastSquares<T, D> solution;
    run_released(home, where_for(where, A.rows, A.cols), flops_of_qr(A.rows, A.cols), [&](Context<D>& ctx) {
        const ColumnMajor<T, D> A_(ctx, A), B_(ctx, B);
        solution = least_squares<T, D>(ctx, A_.view, B_.view, rcond, options);
    });
    return to_tuple<T, D>(home, where, std::move(solution));
}

template <class T, class D>
nb::tuple singular_values(const Array<T, D>& a, bool vectors, const nb::object& method, const Where<D>& where,
                          bool check_finite) {
    const StridedMatrix<T, D> A = matrix_of<T, D>(a);
    const Options options = options_of(method, check_finite);
    const Home<D> home(where);
    SVD<T, D> f;
    run_released(home, where_for(where, A.rows, A.cols), 6 * flops_of_qr(A.rows, A.cols),
                 [&](Context<D>& ctx) { f = svd<T, D>(ctx, ColumnMajor<T, D>(ctx, A).view, vectors, options); });
    if (!vectors) return nb::make_tuple(nb::none(), to_vector(home, where, f.s), nb::none());
    return nb::make_tuple(to_array(home, where, std::move(f.U)), to_vector(home, where, f.s),
                          to_array(home, where, std::move(f.Vt)));
}

/// L, S, Y, the last step, λ and how the pursuit ended. `on_step` (or None) is called with the fields of each step, in this
/// thread; what it raises, or a handler of a signal, ends the pursuit.
template <class T, class D>
nb::tuple pursue(const Array<T, D>& m, const nb::object& pursuit, const nb::object& route, double lambda, double mu,
                 double rho, double tolerance, Index max_iterations, Index max_rank,
                 const std::optional<Array<std::uint8_t, D>>& observed, const std::optional<Array<T, D>>& L,
                 const std::optional<Array<T, D>>& Y, const nb::object& on_step, const Where<D>& where) {
    const StridedMatrix<T, D> M = matrix_of<T, D>(m);
    // Mᵀ = Lᵀ + Sᵀ is the same problem, and column-major where M is not
    const bool by_rows = !M.column_major();
    const auto oriented = [&]<class U>(const std::optional<Array<U, D>>& array) {
        if (!array) return StridedMatrix<U, D>{};
        const StridedMatrix<U, D> A = matrix_of<U, D>(*array);
        return by_rows ? A.transposed() : A;
    };
    const auto to_tuple = [](const RobustPcaStep& step) {
        return nb::make_tuple(step.iteration, step.residual, step.dual_residual, step.objective, step.rank,
                              step.nonzeros, step.mu, step.seconds);
    };
    const Home<D> home(where);
    RobustPcaOptions<T, D> options;
    constexpr Pursuit pursuits[] = {Pursuit::InexactAlm, Pursuit::AlternatingDirections};
    constexpr ThresholdRoute routes[] = {ThresholdRoute::Auto, ThresholdRoute::Qr, ThresholdRoute::Gram};
    options.pursuit = parse_name<Pursuit>("pursuit", pursuits, pursuit);
    options.route = parse_name<ThresholdRoute>("route", routes, route);
    options.lambda = lambda;
    options.mu = mu;
    options.rho = rho;
    options.tolerance = tolerance;
    options.max_iterations = max_iterations;
    options.max_rank = max_rank;
    options.on_step = [&](const RobustPcaStep& step) {
        nb::gil_scoped_acquire acquired;
        const CallersCode<D> theirs(home);
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        return on_step.is_none() || nb::cast<bool>(on_step(*to_tuple(step)));
    };
    RobustPca<T, D> f;
    try {
        run_released(home, where_for(where, M.rows, M.cols), 0, [&](Context<D>& ctx) {
            const ColumnMajor<std::uint8_t, D> known(ctx, oriented(observed));
            const ColumnMajor<T, D> first_L(ctx, oriented(L)), first_Y(ctx, oriented(Y));
            options.observed = known.view;
            options.L = first_L.view;
            options.Y = first_Y.view;
            f = robust_pca<T, D>(ctx, ColumnMajor<T, D>(ctx, by_rows ? M.transposed() : M).view, options);
        });
    } catch (const NonFiniteEntry&) {
        // of Mᵀ it is the first by rows of M; M itself, which is looked at before all else, says the first by columns
        if (by_rows) {
            run_released(home, where_for(where, M.rows, M.cols), 0,
                         [&](Context<D>& ctx) { robust_pca<T, D>(ctx, ColumnMajor<T, D>(ctx, M).view); });
        }
        throw;
    }
    const auto out = [&](Matrix<T, D>& A) {
        return by_rows ? to_array_transposed(home, where, std::move(A)) : to_array(home, where, std::move(A));
    };
    return nb::make_tuple(out(f.L), out(f.S), out(f.Y), to_tuple(f.last), f.lambda, to_string(f.end));
}

/// The arguments of streams on D that lie on P, D itself or the host.
template <class T, class D, class P>
void bind_blocks(nb::class_<Held<StreamingR<T, D>, D>>& of_r, nb::class_<Held<StreamingQR<T, D>, D>>& of_q) {
    using R = Held<StreamingR<T, D>, D>;
    using S = Held<StreamingQR<T, D>, D>;
    // calls f with a column-major view of A on P
    const auto with_view = [](Context<D>& ctx, const Array<T, P>& a, auto&& f) {
        if constexpr (std::is_same_v<P, D>) {
            return f(ColumnMajor<T, P>(ctx, matrix_of<T, P>(a)).view);
        } else {
            Context<Host> host;
            return f(ColumnMajor<T, P>(host, matrix_of<T, P>(a)).view);
        }
    };
    const auto copied = [](Context<D>& ctx, const Array<T, P>& a) {
        if constexpr (std::is_same_v<P, D>) {
            return copy_of<T>(ctx, matrix_of<T, P>(a));
        } else {
            Context<Host> host;
            return copy_to_device<T>(ctx, ColumnMajor<T, P>(host, matrix_of<T, P>(a)).view);
        }
    };
    // in the memory of `home`, whoever made the state
    const auto stream_of = [=](const Home<D>& home, Index n, Index rows, const Array<T, P>& r, const nb::object& method,
                               double seconds, double flops, const Where<D>& where) {
        typename StreamingR<T, D>::State state{n, rows, {}, {}};
        state.report.method = parse_method(method);
        state.report.seconds = seconds;
        state.report.flops = flops;
        run_released(home, where, 0, [&](Context<D>& ctx) { state.R = copied(ctx, r); });
        return StreamingR<T, D>(std::move(state));
    };
    of_r.def("__init__",
             [=](R* self, Index n, Index rows, const Array<T, P>& r, const nb::object& method, double seconds,
                 double flops, const Where<D>& where) {
                 const Home<D> home(where);
                 new (self) R{home, stream_of(home, n, rows, r, method, seconds, flops, where)};
             })
        .def("merge",
             [=](R& stream, Index n, Index rows, const Array<T, P>& r, const nb::object& method, double seconds,
                 double flops, const Where<D>& where) {
                 const StreamingR<T, D> other = stream_of(stream.home, n, rows, r, method, seconds, flops, where);
                 run_released(stream.home, where, 0, [&](Context<D>& ctx) { stream.object.merge(ctx, other); });
             })
        .def("append", [=](R& stream, const Array<T, P>& a, const Array<T, P>& b, const Where<D>& where) {
            const double flops = flops_of_qr(a.shape(0), a.shape(1));
            run_released(stream.home, where, flops, [&](Context<D>& ctx) {
                with_view(ctx, a, [&](auto A) { with_view(ctx, b, [&](auto B) { stream.object.append(ctx, A, B); }); });
            });
        });
    of_q.def("__init__",
             [=](S* self, Index n, Index rows, const std::vector<Index>& heights, const Array<T, P>& stack,
                 bool backward, const Array<T, P>& r, const Array<T, P>& g, const Where<D>& where) {
                 const Home<D> home(where);
                 run_released(home, where, 0, [&](Context<D>& ctx) {
                     typename StreamingQR<T, D>::State state{
                         n, rows, heights, copied(ctx, stack), backward, copied(ctx, r), copied(ctx, g)};
                     new (self) S{home, StreamingQR<T, D>(ctx, std::move(state))};
                 });
             })
        .def("append",
             [=](S& stream, const Array<T, P>& a, const Where<D>& where) {
                 run_released(stream.home, where, flops_of_qr(a.shape(0), a.shape(1)), [&](Context<D>& ctx) {
                     with_view(ctx, a, [&](auto A) { stream.object.append(ctx, A); });
                 });
             })
        .def("q_rows", [=](S& stream, const Array<T, P>& a, const Where<D>& where) {
            Matrix<T, P> Q;
            run_released(stream.home, where, 2 * flops_of_qr(a.shape(0), a.shape(1)), [&](Context<D>& ctx) {
                Q = with_view(ctx, a, [&](auto A) { return stream.object.q_rows(ctx, A); });
            });
            return to_array(stream.home, where, std::move(Q));
        });
}

template <class T, class D>
void bind_streams(nb::module_& module, const std::string& suffix) {
    using R = Held<StreamingR<T, D>, D>;
    nb::class_<R> of_r(module, ("StreamingR" + suffix).c_str());
    of_r.def(
            "__init__",
            [](R* self, Index n, Index p, const Where<D>& where) {
                const Home<D> home(where);
                run_released(home, where, 0, [&](Context<D>& ctx) { new (self) R{home, StreamingR<T, D>(ctx, n, p)}; });
            })
        // what the second __init__ and merge take
        .def("state",
             [](const R& stream, const Where<D>& where) {
                 typename StreamingR<T, D>::State s;
                 run_released(stream.home, where, 0, [&](Context<D>& ctx) { s = stream.object.state(ctx); });
                 return nb::make_tuple(s.n, s.rows, to_array(stream.home, where, std::move(s.R)),
                                       to_string(s.report.method), s.report.seconds, s.report.flops);
             })
        .def_prop_ro("rows", [](const R& stream) { return stream.object.rows(); })
        .def("r",
             [](const R& stream, const Where<D>& where) {
                 Matrix<T, D> M;
                 run_released(stream.home, where, 0, [&](Context<D>& ctx) { M = stream.object.r(ctx); });
                 return to_array(stream.home, where, std::move(M));
             })
        .def("solve", [](const R& stream, double rcond, const Where<D>& where) {
            LeastSquares<T, D> solution;
            run_released(stream.home, where, 0, [&](Context<D>& ctx) { solution = stream.object.solve(ctx, rcond); });
            return to_tuple<T, D>(stream.home, where, std::move(solution));
        });

    using S = Held<StreamingQR<T, D>, D>;
    nb::class_<S> of_q(module, ("StreamingQR" + suffix).c_str());
    of_q.def("__init__",
             [](S* self, Index n, const Where<D>& where) {
                 const Home<D> home(where);
                 run_released(home, where, 0, [&](Context<D>& ctx) { new (self) S{home, StreamingQR<T, D>(ctx, n)}; });
             })
        // what the second __init__ takes
        .def("state",
             [](const S& stream, const Where<D>& where) {
                 typename StreamingQR<T, D>::State s;
                 run_released(stream.home, where, 0, [&](Context<D>& ctx) { s = stream.object.state(ctx); });
                 const auto array = [&](Matrix<T, D>& M) { return to_array(stream.home, where, std::move(M)); };
                 return nb::make_tuple(s.n, s.rows, s.heights, array(s.stack), s.backward, array(s.R), array(s.G));
             })
        .def_prop_ro("rows", [](const S& stream) { return stream.object.rows(); })
        .def("r", [](const S& stream, const Where<D>& where) {
            Matrix<T, D> M;
            run_released(stream.home, where, 0, [&](Context<D>& ctx) { M = stream.object.r(ctx); });
            return to_array(stream.home, where, std::move(M));
        });
    bind_blocks<T, D, D>(of_r, of_q);
    if constexpr (!std::is_same_v<D, Host>) bind_blocks<T, D, Host>(of_r, of_q);
}

/// The functions and classes for matrices of T in the memory of D.
template <class T, class D>
void bind_type(nb::module_& module, const std::string& suffix) {
    using namespace nb::literals;
    module.def("qr", &factor_array<T, D>, "a"_a.noconvert(), "mode"_a, "method"_a.none(), "where"_a, "check_finite"_a);
    module.def("factor", &factor<T, D>, "a"_a.noconvert(), "method"_a.none(), "q"_a.none(), "where"_a, "check_finite"_a,
               "verify"_a);
    module.def("from_raw", &from_raw<T, D>, "h"_a.noconvert(), "tau"_a.noconvert(), "where"_a);
    module.def("lstsq", &solve_least_squares<T, D>, "a"_a.noconvert(), "b"_a.noconvert(), "rcond"_a, "method"_a.none(),
               "where"_a, "check_finite"_a);
    module.def("svd", &singular_values<T, D>, "a"_a.noconvert(), "vectors"_a, "method"_a.none(), "where"_a,
               "check_finite"_a);
    module.def("robust_pca", &pursue<T, D>, "m"_a.noconvert(), "pursuit"_a.none(), "route"_a.none(), "lam"_a, "mu"_a,
               "rho"_a, "tolerance"_a, "max_iterations"_a, "max_rank"_a, "observed"_a.none(), "L"_a.none(),
               "Y"_a.none(), "on_step"_a.none(), "where"_a);

    using F = Held<QR<T, D>, D>;
    // what `make(f, ctx)` of some flops gives, a Matrix, as the caller's array
    const auto matrix = [](const F& held, const Where<D>& where, double flops, auto&& make) {
        Matrix<T, D> M;
        run_released(held.home, where, flops, [&](Context<D>& ctx) { M = make(held.object, ctx); });
        return to_array(held.home, where, std::move(M));
    };
    nb::class_<F>(module, ("Factorization" + suffix).c_str())
        .def_prop_ro("shape", [](const F& f) { return nb::make_tuple(f.object.rows(), f.object.cols()); })
        .def_prop_ro("plan", [](const F& f) { return to_dict(f.object.plan()); })
        .def_prop_ro("report", [](const F& f) { return to_dict(f.object.report()); })
        .def("r",
             [=](const F& f, const Where<D>& where) {
                 return matrix(f, where, 0, [](const QR<T, D>& f, Context<D>& ctx) { return f.r(ctx); });
             })
        .def("v",
             [=](const F& f, const Where<D>& where) {
                 return matrix(f, where, 0, [](const QR<T, D>& f, Context<D>& ctx) { return f.v(ctx); });
             })
        .def("tau",
             [](const F& f, const Where<D>& where) {
                 Matrix<T, D> tau;
                 run_released(f.home, where, 0, [&](Context<D>& ctx) { tau = f.object.tau(ctx); });
                 return to_vector(f.home, where, std::move(tau));
             })
        .def("t",
             [=](const F& f, const Where<D>& where) {
                 return matrix(f, where, flops_of_qr(f.object.rows(), f.object.cols()),
                               [](const QR<T, D>& f, Context<D>& ctx) { return f.t(ctx); });
             })
        .def("q",
             [=](const F& f, const Where<D>& where) {
                 return matrix(f, where, flops_of_qr(f.object.rows(), f.object.cols()),
                               [](const QR<T, D>& f, Context<D>& ctx) { return f.form_q(ctx); });
             })
        .def("q_block",
             [=](const F& f, Index i0, Index i1, Index j0, Index j1, const Where<D>& where) {
                 const double width = std::min(i1 - i0, j1 - j0);
                 return matrix(f, where, 4.0 * f.object.rows() * f.object.cols() * width,
                               [=](const QR<T, D>& f, Context<D>& ctx) {
                                   return f.q_block(ctx, {i0, i1}, {j0, j1});
                               });
             })
        .def("apply",
             [=](const F& f, const Array<T, D>& c, bool left, bool transpose, const Where<D>& where) {
                 const StridedMatrix<T, D> C = matrix_of<T, D>(c);
                 const double columns = left ? C.cols : C.rows;
                 return matrix(f, where, 4.0 * f.object.rows() * f.object.cols() * columns,
                               [=](const QR<T, D>& f, Context<D>& ctx) {
                                   Matrix<T, D> QC = copy_of<T>(ctx, C);
                                   f.apply_q(ctx, left ? Side::Left : Side::Right, transpose ? Op::Transpose : Op::None,
                                             QC.view());
                                   return QC;
                               });
             })
        .def("lstsq", [](const F& f, const Array<T, D>& b, double rcond, const Where<D>& where) {
            const StridedMatrix<T, D> B = matrix_of<T, D>(b);
            LeastSquares<T, D> solution;
            run_released(f.home, where, 4.0 * f.object.rows() * f.object.cols() * B.cols, [&](Context<D>& ctx) {
                solution = least_squares<T, D>(ctx, f.object, ColumnMajor<T, D>(ctx, B).view, rcond);
            });
            return to_tuple<T, D>(f.home, where, std::move(solution));
        });

    using B = Factorizations<T, D>;
    const auto batch_options = [](const nb::object& method, const nb::object& q, bool check_finite, bool verify) {
        Options options;
        options.method = parse_method(method);
        options.q = parse_q(q);
        options.check_finite = check_finite;
        options.verify = verify;
        return options;
    };
    module.def(
        "factor_stack",
        [=](const Array<T, D>& a, const nb::object& method, const nb::object& q, const Where<D>& where,
            bool check_finite, bool verify) { return B(a, batch_options(method, q, check_finite, verify), where); },
        "a"_a.noconvert(), "method"_a.none(), "q"_a.none(), "where"_a, "check_finite"_a, "verify"_a);
    module.def(
        "factor_list",
        [=](const List<T, D>& a, const nb::object& method, const nb::object& q, const Where<D>& where,
            bool check_finite, bool verify) { return B(a, batch_options(method, q, check_finite, verify), where); },
        "a"_a.noconvert(), "method"_a.none(), "q"_a.none(), "where"_a, "check_finite"_a, "verify"_a);
    module.def("lstsq_stack", &solve_batch<T, D, Array<T, D>>, "a"_a.noconvert(), "b"_a.noconvert(), "rcond"_a,
               "method"_a.none(), "where"_a, "check_finite"_a);
    module.def("lstsq_list", &solve_batch<T, D, List<T, D>>, "a"_a.noconvert(), "b"_a.noconvert(), "rcond"_a,
               "method"_a.none(), "where"_a, "check_finite"_a);
    nb::class_<B>(module, ("Factorizations" + suffix).c_str())
        .def_prop_ro("shape", &B::shape)
        .def("__len__", &B::count)
        .def("report", [](const B& f, Index b) { return to_dict(f.report(b)); })
        .def("r", &B::r)
        .def("q", &B::q)
        .def("raw", &B::raw)
        .def("apply", &B::template apply<Array<T, D>>)
        .def("apply_list", &B::template apply<List<T, D>>)
        .def("lstsq", &B::template lstsq<Array<T, D>>)
        .def("lstsq_list", &B::template lstsq<List<T, D>>);

    bind_streams<T, D>(module, suffix);
}

Options gram_schmidt_options(const nb::object& method, const nb::object& reorthogonalize, Index panel_width,
                             const nb::object& panel) {
    using R = Reorthogonalization;
    using P = GramSchmidtPanel;
    constexpr R schemes[] = {R::Off, R::Selective, R::Always};
    constexpr P panels[] = {P::Auto, P::MGS, P::CholeskyQR2};
    const R again = parse_name<R>("reorthogonalize", schemes, reorthogonalize);
    const P by = parse_name<P>("panel", panels, panel);
    Options options;
    options.method = parse_method(method);
    MethodOptions& chosen = options.method;
    if (chosen == Method::Auto) {
        chosen = ClassicalGramSchmidt{.reorthogonalization = again == R::Off ? R::Always : again};
    } else {
        chosen.set_reorthogonalization(again);
    }
    chosen.set_panel_width(panel_width);
    chosen.set_panel(by);
    return options;
}

/// `GramSchmidt`, which is on the host alone.
template <class T>
void bind_gram_schmidt(nb::module_& module, const char* name) {
    using namespace nb::literals;
    using G = Held<GramSchmidt<T>, Host>;
    nb::class_<G>(module, name)
        .def(
            "__init__",
            [](G* self, Index m, Index capacity, const nb::object& method, const nb::object& reorthogonalize,
               Index panel_width, int threads) {
                const Options options = gram_schmidt_options(method, reorthogonalize, panel_width,
                                                             nb::str(to_string(GramSchmidtPanel::Auto)));
                const Home<Host> home(threads);
                run_released(home, threads, 0, [&](Context<Host>& ctx) {
                    new (self) G{home, GramSchmidt<T>(ctx, m, capacity, options)};
                });
            },
            "m"_a, "capacity"_a, "method"_a.none(), "reorthogonalize"_a.none(), "panel_width"_a, "threads"_a)
        .def("__init__",
             [](G* self, const nb::object& method, const nb::object& reorthogonalize, Index panel_width,
                const nb::object& panel, const Array<T>& q, const Array<T>& r, const Array<T>& l,
                const std::vector<Index>& panel_ends, int threads) {
                 typename GramSchmidt<T>::State state;
                 state.options = gram_schmidt_options(method, reorthogonalize, panel_width, panel);
                 Index begin = 0;
                 for (const Index end : panel_ends) state.panels.push_back({std::exchange(begin, end), end});
                 const Home<Host> home(threads);
                 run_released(home, threads, 0, [&](Context<Host>& ctx) {
                     state.Q = copy_of<T>(ctx, matrix_of<T, Host>(q));
                     state.R = copy_of<T>(ctx, matrix_of<T, Host>(r));
                     state.L = copy_of<T>(ctx, matrix_of<T, Host>(l));
                     new (self) G{home, GramSchmidt<T>(ctx, state)};
                 });
             })
        // what the second __init__ takes
        .def("state",
             [](const G& g, int threads) {
                 typename GramSchmidt<T>::State s;
                 run_released(g.home, threads, 0, [&](Context<Host>& ctx) { s = g.object.state(ctx); });
                 std::vector<Index> panel_ends;
                 for (const Range& panel : s.panels) panel_ends.push_back(panel.end);
                 const auto array = [&](Matrix<T>& M) { return to_array(g.home, threads, std::move(M)); };
                 const MethodOptions& method = s.options.method;
                 return nb::make_tuple(to_string(method), to_string(method.reorthogonalization()), method.panel_width(),
                                       to_string(method.panel()), array(s.Q), array(s.R), array(s.L), panel_ends);
             })
        .def_prop_ro("rows", [](const G& g) { return g.object.rows(); })
        .def_prop_ro("cols", [](const G& g) { return g.object.cols(); })
        .def("append",
             [](G& g, const Array<T, Host>& a, int threads) {
                 const StridedMatrix<T, Host> A = matrix_of<T, Host>(a);
                 const double flops = 4.0 * A.rows * A.cols * (g.object.cols() + A.cols);
                 run_released(g.home, threads, flops,
                              [&](Context<Host>& ctx) { g.object.append(ctx, ColumnMajor<T, Host>(ctx, A).view); });
             })
        .def("orthogonalize",
             [](const G& g, const Array<T, Host>& v, int threads) {
                 const StridedMatrix<T, Host> V0 = matrix_of<T, Host>(v);
                 Matrix<T> V, H;
                 run_released(g.home, threads, 4.0 * V0.rows * V0.cols * g.object.cols(), [&](Context<Host>& ctx) {
                     V = copied<T>(ColumnMajor<T, Host>(ctx, V0).view);
                     H = g.object.orthogonalize(ctx, V.view());
                 });
                 return nb::make_tuple(to_array(g.home, threads, std::move(V)),
                                       to_array(g.home, threads, std::move(H)));
             })
        .def("truncate", [](G& g, Index k) { g.object.truncate(k); })
        .def("q", [](const G& g) { return to_array(g.home, 0, copied<T>(g.object.q())); })
        .def("r", [](const G& g) { return to_array(g.home, 0, copied<T>(g.object.r())); });
}

template <class D>
nb::dict plan(Index m, Index n, bool single, const nb::object& method, const nb::object& q, const Where<D>& where) {
    Options options;
    options.method = parse_method(method);
    options.q = parse_q(q);
    Plan plan;
    run_released(Home<D>(where), where, 0, [&](Context<D>& ctx) {
        plan = single ? plan_qr<float>(ctx, m, n, options) : plan_qr<double>(ctx, m, n, options);
    });
    return to_dict(plan);
}

template <class D>
void bind_plan(nb::module_& module) {
    using namespace nb::literals;
    module.def("plan", &plan<D>, "m"_a, "n"_a, "single"_a, "method"_a.none(), "q"_a.none(), "where"_a);
}

nb::dict info() {
    const BuildInfo& build = build_info();
    nb::dict d;
    d["version"] = version();
    d["compiler"] = build.compiler;
    d["kernels"] = build.kernels;
    d["blas"] = build.blas;
    d["blas_core"] = build.blas_core;
    d["blas_warning"] = build.blas_warning;
    d["threads"] = Context<Host>().threads();
    return d;
}

#ifdef QUOIN_HAVE_CUDA
void bind_cuda(nb::module_ module) {
    using namespace nb::literals;
    nb::class_<CudaCall>(module, "Call")
        .def(
            "__init__",
            [](CudaCall* self, int device, std::uintptr_t stream, bool synchronise, nb::object empty) {
                new (self) CudaCall{device, stream, synchronise, std::move(empty)};
            },
            "device"_a, "stream"_a, "synchronise"_a, "empty"_a.none());
    bind_type<double, Cuda>(module, "64");
    bind_type<float, Cuda>(module, "32");
    bind_plan<Cuda>(module);
    module.def("require", [](int device) { worker_of_thread(device); });
    module.def("gpus", [] {
        GpuSurvey survey;
        {
            const nb::gil_scoped_release released;
            survey = survey_gpus();
        }
        nb::list gpus;
        for (const Gpu& gpu : survey.gpus) gpus.append(gpu.problem.empty() ? gpu.name : gpu.name + ": " + gpu.problem);
        return nb::make_tuple(gpus, survey.driver, survey.problem);
    });
}
#endif

}  // namespace
}  // namespace quoin::python

NB_MODULE(_core, module) {
    using namespace quoin::python;
    register_errors();
    bind_type<double, quoin::Host>(module, "64");
    bind_type<float, quoin::Host>(module, "32");
    bind_gram_schmidt<double>(module, "GramSchmidt64");
    bind_gram_schmidt<float>(module, "GramSchmidt32");
    bind_plan<quoin::Host>(module);
    module.def("info", &info);
    bind_lyapunov(module);
    bind_distributed(module);
#ifdef QUOIN_HAVE_CUDA
    bind_cuda(module.def_submodule("cuda"));
#endif
}
