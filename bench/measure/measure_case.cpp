#include "measure/measure_case.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "measure/medians.hpp"
#include "random_matrix.hpp"
#include "rivals/reference_lapack.hpp"
#include "stopwatch.hpp"

namespace quoin::cli {

namespace {

struct OperationTraits {
    const char* name;
    QForm q;
    double (*flops)(Index m, Index n);
    double matrices;  ///< as large as A that a measurement takes in addition to A and the plan's workspace
};

/// By `Operation`, in its order.
constexpr OperationTraits all_traits[] = {
    {"thin-qr", QForm::Explicit, thin_qr_flops, 1},
    {"r-only", QForm::None, factor_flops, 1},
    {"geqrf", QForm::Reflectors, factor_flops, 1},
    {"factor", QForm::Any, factor_flops, 1},
    {"geqrt3", QForm::Reflectors, factor_flops, 3},  // the m×k array of S and T, and LAPACK's T
    {"geqrt", QForm::Reflectors, factor_flops, 3},
    {"lstsq", QForm::Any, [](Index m, Index n) { return least_squares_flops(m, n, 1); }, 2},  // copies for both
    {"svd", QForm::Any, [](Index m, Index n) { return svd_flops(m, n, true); }, 4},           // and a U for both
};
const OperationTraits& traits(Operation operation) { return all_traits[static_cast<int>(operation)]; }

/// Fills in the medians of `quoin()` and `reference()`, which both return seconds and run by turns. Quoin runs last.
void alternate(const std::function<double()>& quoin, const std::function<double()>& reference,
               const MeasureSettings& settings, Measurement& result) {
    std::vector<std::function<double()>> runs;
    if (settings.against_lapack) runs.push_back(reference);
    runs.push_back(quoin);
    const std::vector<double> medians = medians_of(runs, settings.repeat);
    result.seconds = medians.back();
    if (settings.against_lapack) result.reference_seconds = medians.front();
    if (!settings.energy) return;
    if (settings.against_lapack) {
        result.reference_joules = joules_of(*settings.energy, reference, result.reference_seconds);
    }
    result.joules = joules_of(*settings.energy, quoin, result.seconds);
}

/// work := A. Memory that is new is touched here, outside any timed region.
template <class T>
void restore(Matrix<T>& work, MatrixView<const T> A) {
    if (work.rows() != A.rows || work.cols() != A.cols) work = Matrix<T>(A.rows, A.cols);
    copy_in_parallel(work.data(), A.data, sizeof(T) * static_cast<std::size_t>(A.rows * A.cols));
}

/// Returns the options of a plan for the operation.
Options options_of(Operation operation, Options options) {
    options.q = form_of_q(operation);
    options.verify = false;
    if (operation == Operation::Geqrt3 || operation == Operation::Geqrt) options.q = FullT{};
    return options;
}

/// The k×n upper trapezoid of what geqrf leaves.
template <class T>
Matrix<T> upper_trapezoid(MatrixView<const T> V_R) {
    Matrix<T> R(std::min(V_R.rows, V_R.cols), V_R.cols);
    for (Index j = 0; j < R.cols(); ++j)
        for (Index i = 0; i < R.rows(); ++i) R(i, j) = i <= j ? V_R(i, j) : T(0);
    return R;
}

/// Columns of a T of geqrt: LAPACK's own choice for geqrf.
constexpr Index geqrt_width = 32;

/// Times an operation whose answer is R and some form of Q. Where that is neither V and tau nor the thin Q, the thin Q
/// is formed after the clock has stopped, for the accuracy.
template <class T>
Measurement measure_factorization(Context<Host>& ctx, MatrixView<const T> A, Operation operation,
                                  const MeasureSettings& settings) {
    using enum Operation;
    const Index k = std::min(A.rows, A.cols);
    const Plan plan = plan_qr<T>(ctx, A.rows, A.cols, options_of(operation, settings.options));
    ReferenceLapack<T> lapack(A.rows, A.cols);
    Measurement result;
    Matrix<T> work, R, tau;
    const auto quoin = [&] {
        restore(work, A);
        const Stopwatch watch;
        QR<T> f = qr(ctx, std::move(work), plan);
        result.method = f.report().method;
        if (operation == Geqrf) {
            LapackQR<T> factors = to_lapack(ctx, std::move(f));
            const double seconds = watch.seconds();
            work = std::move(factors.V_R);
            tau = std::move(factors.tau);
            return seconds;
        }
        const double factored = watch.seconds();
        ThinQR<T> thin = std::move(f).take_thin(ctx);
        const double seconds = operation == ThinQr || operation == ROnly ? watch.seconds() : factored;
        work = std::move(thin.Q);
        R = std::move(thin.R);
        return seconds;
    };
    Matrix<T> Tf(operation == Geqrt3 ? k : operation == Geqrt ? std::min(geqrt_width, k) : 0, k);
    const auto reference = [&] {
        restore(work, A);
        const Stopwatch watch;
        switch (operation) {
            case Geqrt3: lapack.geqrt3(work.view(), Tf.view()); break;
            case Geqrt: lapack.geqrt(work.view(), Tf.view()); break;
            default: lapack.geqrf(work.view());
        }
        if (operation == ThinQr) lapack.orgqr(work.view());
        return watch.seconds();
    };
    alternate(quoin, reference, settings, result);
    if (operation == ROnly) return result;
    if (operation == Geqrf) {
        R = upper_trapezoid<T>(work.view());
        lapack.orgqr(work.view(), tau.data());
    }
    const MatrixView<const T> Q = std::as_const(work).view().col_block({0, k});
    result.orthogonality = orthogonality<T>(ctx, Q);
    result.residual = residual<T>(ctx, A, Q, std::as_const(R).view());
    return result;
}

template <class T>
Measurement measure_lstsq(Context<Host>& ctx, MatrixView<const T> A, const MeasureSettings& settings) {
    ReferenceLapack<T> lapack(A.rows, A.cols);
    Measurement result;
    const Matrix<T> b = normal_matrix<T>(A.rows, 1, 2);
    Matrix<T> work, x(std::max(A.rows, A.cols), 1);
    alternate(
        [&] {
            const Stopwatch watch;
            const LeastSquares<T> solution =
                least_squares<T, Host>(ctx, A, b.view(), {}, options_of(Operation::Lstsq, settings.options));
            const double seconds = watch.seconds();
            result.method = solution.report.method;
            return seconds;
        },
        [&] {
            restore(work, A);
            std::copy_n(b.data(), b.rows(), x.data());
            const Stopwatch watch;
            lapack.gels(work.view(), x.view());
            return watch.seconds();
        },
        settings, result);
    return result;
}

template <class T>
Measurement measure_svd(Context<Host>& ctx, MatrixView<const T> A, const MeasureSettings& settings) {
    const Index k = std::min(A.rows, A.cols);
    ReferenceLapack<T> lapack(A.rows, A.cols);
    Measurement result;
    SVD<T> f;
    Matrix<T> work, U, Vt;
    std::vector<T> s(static_cast<std::size_t>(k));
    if (settings.against_lapack) {
        U = Matrix<T>(A.rows, k);
        Vt = Matrix<T>(k, A.cols);
    }
    alternate(
        [&] {
            f = SVD<T>();
            const Stopwatch watch;
            f = svd<T, Host>(ctx, A, /*vectors=*/true, options_of(Operation::Svd, settings.options));
            result.method = f.report.method;
            return watch.seconds();
        },
        [&] {
            restore(work, A);
            const Stopwatch watch;
            lapack.gesdd(work.view(), U.view(), s, Vt.view());
            return watch.seconds();
        },
        settings, result);
    result.orthogonality = orthogonality<T>(ctx, f.U.view());
    return result;
}

}  // namespace

const char* to_string(Operation operation) { return traits(operation).name; }

QForm form_of_q(Operation operation) { return traits(operation).q; }

double operation_flops(Operation operation, Index m, Index n) { return traits(operation).flops(m, n); }

template <class T>
double measure_case_bytes(const Context<Host>& ctx, Operation operation, Index m, Index n,
                          const MeasureSettings& settings) {
    return traits(operation).matrices * static_cast<double>(m) * static_cast<double>(n) * sizeof(T) +
           plan_qr<T>(ctx, m, n, options_of(operation, settings.options)).workspace_bytes;
}

template <class T>
Measurement measure_case(Context<Host>& ctx, Operation operation, MatrixView<const T> A,
                         const MeasureSettings& settings) {
    if (operation == Operation::Lstsq) return measure_lstsq(ctx, A, settings);
    if (operation == Operation::Svd) return measure_svd(ctx, A, settings);
    return measure_factorization(ctx, A, operation, settings);
}

double limit_fraction(Operation operation, Index m, Index n, ScalarKind dtype, const MachineLimits& limits,
                      double seconds) {
    const bool writes_result = operation != Operation::ROnly && operation != Operation::Lstsq;
    const double bytes =
        (writes_result ? 2.0 : 1.0) * static_cast<double>(m) * static_cast<double>(n) * bytes_of(dtype);
    return std::max(operation_flops(operation, m, n) / limits.arithmetic(dtype), bytes / limits.copy) / seconds;
}

template double measure_case_bytes<float>(const Context<Host>&, Operation, Index, Index, const MeasureSettings&);
template double measure_case_bytes<double>(const Context<Host>&, Operation, Index, Index, const MeasureSettings&);
template Measurement measure_case(Context<Host>&, Operation, MatrixView<const float>, const MeasureSettings&);
template Measurement measure_case(Context<Host>&, Operation, MatrixView<const double>, const MeasureSettings&);

}  // namespace quoin::cli
