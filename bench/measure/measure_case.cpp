#include "measure/measure_case.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "interrupt.hpp"
#include "measure/medians.hpp"
#include "random_matrix.hpp"
#include "rivals/reference_lapack.hpp"
#include "stopwatch.hpp"

namespace quoin::cli {

namespace {

int repetitions(double seconds_a_run) {
    if (seconds_a_run > 2) return seconds_a_run > 10 ? 1 : 3;
    return std::clamp(static_cast<int>(std::ceil(1 / std::max(seconds_a_run, 1e-3))), 5, 50);
}

/// Returns the medians of `quoin()` and `reference()`, which both return seconds. They run alternately, so that a
/// machine that drifts treats both alike. Quoin runs last.
template <class Quoin, class Reference>
void alternate(Quoin&& quoin, Reference&& reference, const MeasureSettings& settings, Measurement& result) {
    double warm_up = settings.against_lapack ? reference() : 0;
    warm_up = std::max(warm_up, quoin());
    const int repeat = settings.repeat > 0 ? settings.repeat : repetitions(warm_up);

    std::vector<double> quoin_seconds, reference_seconds;
    for (int i = 0; i < repeat; ++i) {
        throw_if_interrupted();
        if (settings.against_lapack) reference_seconds.push_back(reference());
        throw_if_interrupted();
        quoin_seconds.push_back(quoin());
    }
    result.seconds = median(quoin_seconds);
    if (settings.against_lapack) result.reference_seconds = median(reference_seconds);
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

Options with_form(Options options, QForm q) {
    options.q = q;
    options.verify = false;
    return options;
}

/// Returns the options of a plan for the operation.
Options options_of(Operation operation, Options options) {
    options = with_form(options, form_of_q(operation));
    if (operation == Operation::Geqrt3 || operation == Operation::Geqrt) options.q = FullT{};
    return options;
}

/// LAPACK's geqrf of A, in `work`.
template <class T>
double seconds_of_geqrf(ReferenceLapack<T>& lapack, Matrix<T>& work, MatrixView<const T> A) {
    restore(work, A);
    const Stopwatch watch;
    lapack.geqrf(work.view());
    return watch.seconds();
}

template <class T>
Measurement measure_thin_qr(Context<Host>& ctx, MatrixView<const T> A, const MeasureSettings& settings) {
    const Plan plan = plan_qr<T>(ctx, A.rows, A.cols, with_form(settings.options, QForm::Explicit));
    ReferenceLapack<T> lapack(A.rows, A.cols);
    Measurement result;
    Matrix<T> work, R;
    alternate(
        [&] {
            restore(work, A);
            const Stopwatch watch;
            QR<T> f = qr(ctx, std::move(work), plan);
            result.method = f.report().method;
            auto thin = std::move(f).take_thin(ctx);
            const double seconds = watch.seconds();
            work = std::move(thin.Q);
            R = std::move(thin.R);
            return seconds;
        },
        [&] {
            restore(work, A);
            const Stopwatch watch;
            lapack.geqrf(work.view());
            lapack.orgqr(work.view());
            return watch.seconds();
        },
        settings, result);
    result.orthogonality = orthogonality<T>(ctx, work.view());
    result.residual = residual<T>(ctx, A, work.view(), R.view());
    return result;
}

template <class T>
Measurement measure_r_only(Context<Host>& ctx, MatrixView<const T> A, const MeasureSettings& settings) {
    const Plan plan = plan_qr<T>(ctx, A.rows, A.cols, with_form(settings.options, QForm::None));
    ReferenceLapack<T> lapack(A.rows, A.cols);
    Measurement result;
    Matrix<T> work;
    alternate(
        [&] {
            restore(work, A);
            const Stopwatch watch;
            QR<T> f = qr(ctx, std::move(work), plan);
            const Matrix<T> R = std::move(f).take_thin(ctx).R;
            const double seconds = watch.seconds();
            result.method = f.report().method;
            return seconds;
        },
        [&] { return seconds_of_geqrf(lapack, work, A); }, settings, result);
    return result;
}

/// The k×n upper trapezoid of what geqrf leaves.
template <class T>
Matrix<T> upper_trapezoid(MatrixView<const T> V_R) {
    Matrix<T> R(std::min(V_R.rows, V_R.cols), V_R.cols);
    for (Index j = 0; j < R.cols(); ++j)
        for (Index i = 0; i < R.rows(); ++i) R(i, j) = i <= j ? V_R(i, j) : T(0);
    return R;
}

template <class T>
Measurement measure_geqrf(Context<Host>& ctx, MatrixView<const T> A, const MeasureSettings& settings) {
    const Plan plan = plan_qr<T>(ctx, A.rows, A.cols, with_form(settings.options, QForm::Reflectors));
    ReferenceLapack<T> lapack(A.rows, A.cols);
    Measurement result;
    Matrix<T> work, tau;
    alternate(
        [&] {
            restore(work, A);
            const Stopwatch watch;
            QR<T> f = qr(ctx, std::move(work), plan);
            result.method = f.report().method;
            LapackQR<T> factors = to_lapack(ctx, std::move(f));
            const double seconds = watch.seconds();
            work = std::move(factors.V_R);
            tau = std::move(factors.tau);
            return seconds;
        },
        [&] { return seconds_of_geqrf(lapack, work, A); }, settings, result);
    const Matrix<T> R = upper_trapezoid<T>(work.view());
    lapack.orgqr(work.view(), tau.data());
    const MatrixView<const T> Q = work.view().col_block({0, R.rows()});
    result.orthogonality = orthogonality<T>(ctx, Q);
    result.residual = residual<T>(ctx, A, Q, R.view());
    return result;
}

/// Times the factorization of A alone. Q, in `work`, and R are taken out of it after the clock has stopped.
template <class T>
double seconds_of_factorization(Context<Host>& ctx, const Plan& plan, Matrix<T>& work, MatrixView<const T> A,
                                Matrix<T>& R, Measurement& result) {
    restore(work, A);
    const Stopwatch watch;
    QR<T> f = qr(ctx, std::move(work), plan);
    const double seconds = watch.seconds();
    result.method = f.report().method;
    auto thin = std::move(f).take_thin(ctx);
    R = std::move(thin.R);
    work = std::move(thin.Q);
    return seconds;
}

template <class T>
Measurement measure_factor(Context<Host>& ctx, MatrixView<const T> A, const MeasureSettings& settings) {
    const Plan plan = plan_qr<T>(ctx, A.rows, A.cols, with_form(settings.options, QForm::Any));
    ReferenceLapack<T> lapack(A.rows, A.cols);
    Measurement result;
    Matrix<T> work, R;
    alternate([&] { return seconds_of_factorization(ctx, plan, work, A, R, result); },
              [&] { return seconds_of_geqrf(lapack, work, A); }, settings, result);
    result.orthogonality = orthogonality<T>(ctx, work.view());
    result.residual = residual<T>(ctx, A, work.view(), R.view());
    return result;
}

/// Columns of a T of geqrt: LAPACK's own choice for geqrf.
constexpr Index geqrt_width = 32;

template <class T>
Measurement measure_full_t(Context<Host>& ctx, MatrixView<const T> A, Operation operation,
                           const MeasureSettings& settings) {
    const Index k = std::min(A.rows, A.cols);
    const Plan plan = plan_qr<T>(ctx, A.rows, A.cols, options_of(operation, settings.options));
    ReferenceLapack<T> lapack(A.rows, A.cols);
    Measurement result;
    Matrix<T> work, R, Tf(operation == Operation::Geqrt ? std::min(geqrt_width, k) : k, k);
    alternate([&] { return seconds_of_factorization(ctx, plan, work, A, R, result); },
              [&] {
                  restore(work, A);
                  const Stopwatch watch;
                  if (operation == Operation::Geqrt)
                      lapack.geqrt(work.view(), Tf.view());
                  else
                      lapack.geqrt3(work.view(), Tf.view());
                  return watch.seconds();
              },
              settings, result);
    result.orthogonality = orthogonality<T>(ctx, work.view());
    result.residual = residual<T>(ctx, A, work.view(), R.view());
    return result;
}

template <class T>
Measurement measure_lstsq(Context<Host>& ctx, MatrixView<const T> A, const MeasureSettings& settings) {
    ReferenceLapack<T> lapack(A.rows, A.cols);
    Measurement result;
    Matrix<T> b(A.rows, 1), work, x(std::max(A.rows, A.cols), 1);
    fill_normal(b, 2);
    alternate(
        [&] {
            const Stopwatch watch;
            const LeastSquares<T> solution =
                least_squares<T, Host>(ctx, A, b.view(), -1, with_form(settings.options, QForm::Any));
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
            f = svd<T, Host>(ctx, A, /*vectors=*/true, with_form(settings.options, QForm::Any));
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

const char* to_string(Operation operation) {
    switch (operation) {
        case Operation::ThinQr: return "thin-qr";
        case Operation::ROnly: return "r-only";
        case Operation::Geqrf: return "geqrf";
        case Operation::Factor: return "factor";
        case Operation::Geqrt3: return "geqrt3";
        case Operation::Geqrt: return "geqrt";
        case Operation::Lstsq: return "lstsq";
        case Operation::Svd: break;
    }
    return "svd";
}

QForm form_of_q(Operation operation) {
    switch (operation) {
        case Operation::ThinQr: return QForm::Explicit;
        case Operation::ROnly: return QForm::None;
        case Operation::Geqrt3:
        case Operation::Geqrt:
        case Operation::Geqrf: return QForm::Reflectors;
        case Operation::Factor:
        case Operation::Lstsq:
        case Operation::Svd: break;
    }
    return QForm::Any;
}

double operation_flops(Operation operation, Index m, Index n) {
    switch (operation) {
        case Operation::ThinQr: return thin_qr_flops(m, n);
        case Operation::ROnly:
        case Operation::Factor:
        case Operation::Geqrt3:
        case Operation::Geqrt:
        case Operation::Geqrf: return factor_flops(m, n);
        case Operation::Lstsq: return least_squares_flops(m, n, 1);
        case Operation::Svd: break;
    }
    return svd_flops(m, n, true);
}

template <class T>
double measure_case_bytes(const Context<Host>& ctx, Operation operation, Index m, Index n,
                          const MeasureSettings& settings) {
    const auto matrices = [&](double count) {
        return count * static_cast<double>(m) * static_cast<double>(n) * sizeof(T);
    };
    const double workspace = plan_qr<T>(ctx, m, n, options_of(operation, settings.options)).workspace_bytes;
    switch (operation) {
        case Operation::ThinQr:
        case Operation::ROnly:
        case Operation::Geqrf:
        case Operation::Factor: return matrices(1) + workspace;
        case Operation::Geqrt3:
        case Operation::Geqrt: return matrices(3) + workspace;  // the m×k array of S and T, and LAPACK's T
        case Operation::Lstsq: return matrices(2) + workspace;  // Quoin's copy of A, and LAPACK's
        case Operation::Svd: break;
    }
    return matrices(4) + workspace;  // a copy of A and a U, each for Quoin and LAPACK
}

template <class T>
Measurement measure_case(Context<Host>& ctx, Operation operation, MatrixView<const T> A,
                         const MeasureSettings& settings) {
    switch (operation) {
        case Operation::ThinQr: return measure_thin_qr(ctx, A, settings);
        case Operation::ROnly: return measure_r_only(ctx, A, settings);
        case Operation::Geqrf: return measure_geqrf(ctx, A, settings);
        case Operation::Factor: return measure_factor(ctx, A, settings);
        case Operation::Geqrt3:
        case Operation::Geqrt: return measure_full_t(ctx, A, operation, settings);
        case Operation::Lstsq: return measure_lstsq(ctx, A, settings);
        case Operation::Svd: break;
    }
    return measure_svd(ctx, A, settings);
}

double limit_fraction(Operation operation, Index m, Index n, DType dtype, const MachineLimits& limits, double seconds) {
    const bool writes_result = operation != Operation::ROnly && operation != Operation::Lstsq;
    const double bytes = (writes_result ? 2.0 : 1.0) * static_cast<double>(m) * static_cast<double>(n) *
                         (dtype == DType::F32 ? sizeof(float) : sizeof(double));
    return std::max(operation_flops(operation, m, n) / limits.arithmetic(dtype), bytes / limits.copy) / seconds;
}

template double measure_case_bytes<float>(const Context<Host>&, Operation, Index, Index, const MeasureSettings&);
template double measure_case_bytes<double>(const Context<Host>&, Operation, Index, Index, const MeasureSettings&);
template Measurement measure_case(Context<Host>&, Operation, MatrixView<const float>, const MeasureSettings&);
template Measurement measure_case(Context<Host>&, Operation, MatrixView<const double>, const MeasureSettings&);

}  // namespace quoin::cli
