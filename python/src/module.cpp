// The extension module quoin._core: what the package quoin calls. Its arguments are checked and typed there; dtypes are
// told apart by overloads.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <optional>
#include <string>

#include "arrays.hpp"
#include "call.hpp"

namespace quoin::python {
namespace {

Method parse_method(const char* name) {
    for (const Method method : {Method::Auto, Method::BlockedHouseholder, Method::TSQR, Method::CAQR,
                                Method::CholeskyQR2, Method::ShiftedCholeskyQR3}) {
        if (std::string(to_string(method)) == name) return method;
    }
    throw InvalidArgument(
        "method must be 'auto', 'householder', 'tsqr', 'caqr', 'cholesky-qr2' or "
        "'shifted-cholesky-qr3', and is '" +
        std::string(name) + "'");
}

QForm parse_q(const char* name) {
    for (const QForm q : {QForm::Any, QForm::None, QForm::Explicit, QForm::Reflectors}) {
        if (std::string(to_string(q)) == name) return q;
    }
    throw InvalidArgument("q must be 'any', 'none', 'explicit' or 'reflectors', and is '" + std::string(name) + "'");
}

Pursuit parse_pursuit(const std::string& name) {
    for (const Pursuit pursuit : {Pursuit::InexactAlm, Pursuit::AlternatingDirections}) {
        if (to_string(pursuit) == name) return pursuit;
    }
    throw InvalidArgument("pursuit must be 'alm' or 'alternating', and is '" + name + "'");
}

ThresholdRoute parse_route(const std::string& name) {
    for (const ThresholdRoute route : {ThresholdRoute::Auto, ThresholdRoute::Qr, ThresholdRoute::Gram}) {
        if (to_string(route) == name) return route;
    }
    throw InvalidArgument("route must be 'auto', 'qr' or 'gram', and is '" + name + "'");
}

double flops_of_qr(Index m, Index n) { return 4.0 * m * n * std::min(m, n); }

/// One where the caller leaves it open (0) and more would not pay: a team's wake-ups cost more than they bring, and on a
/// machine with other work far more. Measured at 4 cores: a square matrix gains from 300 x 300 on, a tall one earlier.
int threads_for(int threads, Index m, Index n) {
    const double worth_a_team = m < 4 * n ? 1e8 : 1e7;
    return threads == 0 && flops_of_qr(m, n) < worth_a_team ? 1 : threads;
}

template <class T>
QR<T> factor_matrix(Context<Host>& ctx, const StridedMatrix<T>& A, const Options& options) {
    if (A.column_major()) return qr<T, Host>(ctx, A.view(), options);
    if (A.row_major()) return qr<T>(ctx, A.row_major_view(), options);
    return qr<T, Host>(ctx, A.gathered(), plan_qr<T>(ctx, A.rows, A.cols, options));
}

/// Q and R of the modes 'reduced' and 'complete', R of 'r', V_Rᵀ and tau of 'raw'.
template <class T>
nb::object factor_batch(const Array<T>& array, char mode, const char* method, int threads, bool check_finite) {
    const Batch<T> batch(array);
    const Index m = batch.rows(), n = batch.cols(), k = std::min(m, n), count = batch.count();
    const bool complete = mode == 'c' && m > n;
    Options options;
    options.method = parse_method(method);
    options.check_finite = check_finite;
    options.q = mode == 'r' ? QForm::None : mode == 'h' ? QForm::Reflectors : complete ? QForm::Any : QForm::Explicit;

    const bool raw = mode == 'h';
    BatchResult<T> first(batch.shape(), mode == 'r' ? 0 : count, m, raw ? n : complete ? m : k);
    BatchResult<T> second(batch.shape(), count, raw || !complete ? k : m, raw ? 1 : n);
    run_released(threads_for(threads, m, n), flops_of_qr(m, n) * count, [&](Context<Host>& ctx) {
        for (Index b = 0; b < count; ++b) {
            QR<T> f = factor_matrix<T>(ctx, batch[b], options);
            if (raw) {
                LapackQR<T> lapack = to_lapack<T, Host>(ctx, std::move(f));
                first.put(b, std::move(lapack.V_R));
                second.put(b, std::move(lapack.tau));
                continue;
            }
            Matrix<T> R = f.r(ctx);
            if (complete) {
                Matrix<T> R_and_zeros(m, n);
                for (Index j = 0; j < n; ++j) {
                    T* column = R_and_zeros.data() + j * m;
                    std::fill(std::copy_n(R.data() + j * k, k, column), column + m, T(0));
                }
                R = std::move(R_and_zeros);
            }
            second.put(b, std::move(R));
            if (complete) {
                first.put(b, f.q_block(ctx, {0, m}, {0, m}));
            } else if (mode != 'r') {
                first.put(b, std::move(f).take_q(ctx));
            }
        }
    });
    if (mode == 'r') return second.take();
    if (raw) return nb::make_tuple(first.take_transposed(), second.take_vectors());
    return nb::make_tuple(first.take(), second.take());
}

template <class T>
QR<T> factor(const Array<T>& array, const char* method, const char* q, int threads, bool check_finite, bool verify) {
    const Batch<T> batch(array);
    Options options;
    options.method = parse_method(method);
    options.q = parse_q(q);
    options.check_finite = check_finite;
    options.verify = verify;
    std::optional<QR<T>> f;
    run_released(threads_for(threads, batch.rows(), batch.cols()), flops_of_qr(batch.rows(), batch.cols()),
                 [&](Context<Host>& ctx) { f.emplace(factor_matrix<T>(ctx, batch[0], options)); });
    return std::move(*f);
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

template <class T>
nb::tuple to_tuple(LeastSquares<T>&& solution) {
    nb::list norms;
    for (const T norm : solution.residual_norms) norms.append(static_cast<double>(norm));
    return nb::make_tuple(to_numpy(std::move(solution.X)), norms, solution.condition, to_dict(solution.report));
}

template <class T>
nb::tuple solve_least_squares(const Array<T>& a, const Array<T>& b, double rcond, const char* method, int threads,
                              bool check_finite) {
    const StridedMatrix<T> A = Batch<T>(a)[0], B = Batch<T>(b)[0];
    Options options;
    options.method = parse_method(method);
    options.check_finite = check_finite;
    LeastSquares<T> solution;
    run_released(threads_for(threads, A.rows, A.cols), flops_of_qr(A.rows, A.cols), [&](Context<Host>& ctx) {
        solution = least_squares<T, Host>(ctx, ColumnMajor<T>(A).view, ColumnMajor<T>(B).view, rcond, options);
    });
    return to_tuple(std::move(solution));
}

template <class T>
nb::tuple singular_values(const Array<T>& a, bool vectors, const char* method, int threads, bool check_finite) {
    const StridedMatrix<T> A = Batch<T>(a)[0];
    Options options;
    options.method = parse_method(method);
    options.check_finite = check_finite;
    SVD<T> f;
    run_released(threads_for(threads, A.rows, A.cols), 6 * flops_of_qr(A.rows, A.cols),
                 [&](Context<Host>& ctx) { f = svd<T, Host>(ctx, ColumnMajor<T>(A).view, vectors, options); });
    Matrix<T> s(static_cast<Index>(f.s.size()), 1);
    std::copy(f.s.begin(), f.s.end(), s.data());
    return nb::make_tuple(to_numpy(std::move(f.U)), to_numpy_vector(std::move(s)), to_numpy(std::move(f.Vt)));
}

/// L, S, Y, the last step, λ and how the pursuit ended. `on_step` (or None) is called with the fields of each step, in this
/// thread; what it raises, or a handler of a signal, ends the pursuit.
template <class T>
nb::tuple pursue(const Array<T>& m, const char* pursuit, const char* route, double lambda, double mu, double rho,
                 double tolerance, Index max_iterations, Index max_rank,
                 const std::optional<Array<std::uint8_t>>& observed, const std::optional<Array<T>>& L,
                 const std::optional<Array<T>>& Y, const nb::object& on_step, int threads) {
    const StridedMatrix<T> M = Batch<T>(m)[0];
    // Mᵀ = Lᵀ + Sᵀ is the same problem, and column-major where M is not
    const bool by_rows = !M.column_major();
    const auto oriented = [&]<class U>(const std::optional<Array<U>>& array) {
        if (!array) return StridedMatrix<U>{};
        const StridedMatrix<U> A = Batch<U>(*array)[0];
        return by_rows ? A.transposed() : A;
    };
    const auto to_tuple = [](const RobustPcaStep& step) {
        return nb::make_tuple(step.iteration, step.residual, step.dual_residual, step.objective, step.rank,
                              step.nonzeros, step.mu, step.seconds);
    };
    RobustPcaOptions<T> options;
    options.pursuit = parse_pursuit(pursuit);
    options.route = parse_route(route);
    options.lambda = lambda;
    options.mu = mu;
    options.rho = rho;
    options.tolerance = tolerance;
    options.max_iterations = max_iterations;
    options.max_rank = max_rank;
    options.on_step = [&](const RobustPcaStep& step) {
        nb::gil_scoped_acquire acquired;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        return on_step.is_none() || nb::cast<bool>(on_step(*to_tuple(step)));
    };
    RobustPca<T> f;
    try {
        run_released(threads_for(threads, M.rows, M.cols), 0, [&](Context<Host>& ctx) {
            const ColumnMajor<std::uint8_t> known(oriented(observed));
            const ColumnMajor<T> first_L(oriented(L)), first_Y(oriented(Y));
            options.observed = known.view;
            options.L = first_L.view;
            options.Y = first_Y.view;
            f = robust_pca<T, Host>(ctx, ColumnMajor<T>(by_rows ? M.transposed() : M).view, options);
        });
    } catch (const NonFiniteEntry&) {
        for (Index j = 0; j < M.cols; ++j) {
            for (Index i = 0; i < M.rows; ++i) {
                if (!std::isfinite(M.at(i, j))) throw NonFiniteEntry(i, j, "M");
            }
        }
        throw;
    }
    const auto out = [&](Matrix<T>& A) { return by_rows ? to_numpy_transposed(std::move(A)) : to_numpy(std::move(A)); };
    return nb::make_tuple(out(f.L), out(f.S), out(f.Y), to_tuple(f.last), f.lambda, to_string(f.end));
}

template <class T>
void bind_type(nb::module_& module, const char* suffix) {
    using namespace nb::literals;
    module.def("qr", &factor_batch<T>, "a"_a.noconvert(), "mode"_a, "method"_a, "threads"_a, "check_finite"_a);
    module.def("factor", &factor<T>, "a"_a.noconvert(), "method"_a, "q"_a, "threads"_a, "check_finite"_a, "verify"_a);
    module.def("lstsq", &solve_least_squares<T>, "a"_a.noconvert(), "b"_a.noconvert(), "rcond"_a, "method"_a,
               "threads"_a, "check_finite"_a);
    module.def("svd", &singular_values<T>, "a"_a.noconvert(), "vectors"_a, "method"_a, "threads"_a, "check_finite"_a);
    module.def("robust_pca", &pursue<T>, "m"_a.noconvert(), "pursuit"_a, "route"_a, "lam"_a, "mu"_a, "rho"_a,
               "tolerance"_a, "max_iterations"_a, "max_rank"_a, "observed"_a.none(), "L"_a.none(), "Y"_a.none(),
               "on_step"_a.none(), "threads"_a);

    nb::class_<QR<T>>(module, (std::string("Factorization") + suffix).c_str())
        .def_prop_ro("shape", [](const QR<T>& f) { return nb::make_tuple(f.rows(), f.cols()); })
        .def_prop_ro("plan", [](const QR<T>& f) { return to_dict(f.plan()); })
        .def_prop_ro("report", [](const QR<T>& f) { return to_dict(f.report()); })
        .def("r",
             [](const QR<T>& f, int threads) {
                 Matrix<T> R;
                 run_released(threads, 0, [&](Context<Host>& ctx) { R = f.r(ctx); });
                 return to_numpy(std::move(R));
             })
        .def("v",
             [](const QR<T>& f, int threads) {
                 Matrix<T> V;
                 run_released(threads, 0, [&](Context<Host>& ctx) { V = f.v(ctx); });
                 return to_numpy(std::move(V));
             })
        .def("tau",
             [](const QR<T>& f, int threads) {
                 Matrix<T> tau;
                 run_released(threads, 0, [&](Context<Host>& ctx) { tau = f.tau(ctx); });
                 return to_numpy_vector(std::move(tau));
             })
        .def("t",
             [](const QR<T>& f, int threads) {
                 Matrix<T> Tf;
                 run_released(threads, flops_of_qr(f.rows(), f.cols()), [&](Context<Host>& ctx) { Tf = f.t(ctx); });
                 return to_numpy(std::move(Tf));
             })
        .def("q",
             [](const QR<T>& f, int threads) {
                 Matrix<T> Q;
                 run_released(threads, flops_of_qr(f.rows(), f.cols()), [&](Context<Host>& ctx) { Q = f.form_q(ctx); });
                 return to_numpy(std::move(Q));
             })
        .def("q_block",
             [](const QR<T>& f, Index i0, Index i1, Index j0, Index j1, int threads) {
                 Matrix<T> Q;
                 const double width = std::min(i1 - i0, j1 - j0);
                 run_released(threads, 4.0 * f.rows() * f.cols() * width, [&](Context<Host>& ctx) {
                     Q = f.q_block(ctx, {i0, i1}, {j0, j1});
                 });
                 return to_numpy(std::move(Q));
             })
        .def("apply_in_place",
             [](const QR<T>& f, const nb::ndarray<T, nb::ndim<2>, nb::f_contig, nb::device::cpu>& C, bool left,
                bool transpose, int threads) {
                 const MatrixView<T> view(C.data(), C.shape(0), C.shape(1));
                 const double columns = left ? view.cols : view.rows;
                 run_released(threads, 4.0 * f.rows() * f.cols() * columns, [&](Context<Host>& ctx) {
                     f.apply_q(ctx, left ? Side::Left : Side::Right, transpose ? Op::Transpose : Op::None, view);
                 });
             })
        .def("lstsq", [](const QR<T>& f, const Array<T>& b, double rcond, int threads) {
            const StridedMatrix<T> B = Batch<T>(b)[0];
            LeastSquares<T> solution;
            run_released(threads, 4.0 * f.rows() * f.cols() * B.cols, [&](Context<Host>& ctx) {
                solution = least_squares<T, Host>(ctx, f, ColumnMajor<T>(B).view, rcond);
            });
            return to_tuple(std::move(solution));
        });

    nb::class_<StreamingR<T>>(module, (std::string("StreamingR") + suffix).c_str())
        .def("__init__",
             [](StreamingR<T>* self, Index n, Index p) {
                 ContextLease lease(0);
                 new (self) StreamingR<T>(lease.get(), n, p);
             })
        .def_prop_ro("rows", &StreamingR<T>::rows)
        .def("append",
             [](StreamingR<T>& stream, const Array<T>& a, const Array<T>& b, int threads) {
                 const StridedMatrix<T> A = Batch<T>(a)[0], B = Batch<T>(b)[0];
                 run_released(threads, flops_of_qr(A.rows, A.cols), [&](Context<Host>& ctx) {
                     stream.append(ctx, ColumnMajor<T>(A).view, ColumnMajor<T>(B).view);
                 });
             })
        .def("r", [](const StreamingR<T>& stream) { return to_numpy(stream.r()); })
        .def("solve", [](const StreamingR<T>& stream, double rcond) {
            LeastSquares<T> solution;
            run_released(0, 0, [&](Context<Host>& ctx) { solution = stream.solve(ctx, rcond); });
            return to_tuple(std::move(solution));
        });

    nb::class_<StreamingQR<T>>(module, (std::string("StreamingQR") + suffix).c_str())
        .def("__init__",
             [](StreamingQR<T>* self, Index n) {
                 ContextLease lease(0);
                 new (self) StreamingQR<T>(lease.get(), n);
             })
        .def_prop_ro("rows", &StreamingQR<T>::rows)
        .def("append",
             [](StreamingQR<T>& stream, const Array<T>& a, int threads) {
                 const StridedMatrix<T> A = Batch<T>(a)[0];
                 run_released(threads, flops_of_qr(A.rows, A.cols),
                              [&](Context<Host>& ctx) { stream.append(ctx, ColumnMajor<T>(A).view); });
             })
        .def("r", [](const StreamingQR<T>& stream) { return to_numpy(stream.r()); })
        .def("q_rows", [](StreamingQR<T>& stream, const Array<T>& a, int threads) {
            const StridedMatrix<T> A = Batch<T>(a)[0];
            Matrix<T> Q;
            run_released(threads, 2 * flops_of_qr(A.rows, A.cols),
                         [&](Context<Host>& ctx) { Q = stream.q_rows(ctx, ColumnMajor<T>(A).view); });
            return to_numpy(std::move(Q));
        });
}

nb::dict plan(Index m, Index n, bool single, const char* method, const char* q, int threads) {
    Options options;
    options.method = parse_method(method);
    options.q = parse_q(q);
    ContextLease lease(threads);
    return to_dict(single ? plan_qr<float>(lease.get(), m, n, options) : plan_qr<double>(lease.get(), m, n, options));
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

}  // namespace
}  // namespace quoin::python

NB_MODULE(_core, module) {
    using namespace quoin::python;
    register_errors();
    bind_type<double>(module, "64");
    bind_type<float>(module, "32");
    module.def("plan", &plan);
    module.def("info", &info);
}
