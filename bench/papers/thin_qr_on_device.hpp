#pragma once

#include <functional>

#include "algorithms/shared/copies.hpp"
#include "interrupt.hpp"
#include "measure/cuda/accuracy.hpp"
#include "measure/cuda/device.hpp"
#include "measure/cuda/random.hpp"
#include "papers/gram_schmidt.hpp"
#include "results.hpp"
#include "rivals/cusolver_qr.hpp"

namespace quoin::cli {

/// Times Q and R on a GPU by Quoin and by cuSOLVER, for the tables of Gram-Schmidt, and keeps the last answers.
class ThinQrOnDevice {
public:
    explicit ThinQrOnDevice(const BenchArguments& arguments)
        : arguments_(arguments),
          host_(make_context(arguments.common)),
          guard_(host_),
          ctx_(device_context()),
          results_(arguments) {
        results_.describe(bench::describe_device());
        results_.say("{}\n", bench::describe_device());
    }

protected:
    double median_seconds(const std::function<double()>& run) const { return median_of(run, arguments_.repeat); }

    /// Returns the options of the command line with `method` and an explicit Q.
    Options options_for(Method method, Reorthogonalization reorthogonalization) const {
        Options options = arguments_.common.options;
        options.method = method;
        options.method.set_reorthogonalization(reorthogonalization);
        options.q = QForm::Explicit;
        return options;
    }
    /// Returns the seconds of Q and R by `options`, in place of a copy of A.
    template <class T>
    double run_quoin(const Matrix<T, Cuda>& A, const Options& options, Matrix<T, Cuda>& Q, Matrix<T, Cuda>& R) {
        const Plan plan = plan_qr<T>(ctx_, A.rows(), A.cols(), options);
        Q = {};
        R = {};
        Matrix<T, Cuda> work = copy_of<T, Cuda>(ctx_, A.view());
        return bench::seconds_of(ctx_, [&] {
            ThinQR<T, Cuda> thin = qr<T, Cuda>(ctx_, std::move(work), plan).take_thin(ctx_);
            R = std::move(thin.R);
            Q = std::move(thin.Q);
        });
    }
    /// Returns the seconds of cuSOLVER's geqrf and orgqr.
    template <class T>
    double run_cusolver(const Matrix<T, Cuda>& A, bench::CusolverQR<T>& cusolver, Matrix<T, Cuda>& Q,
                        Matrix<T, Cuda>& R) {
        Q = {};
        R = {};
        Q = copy_of<T, Cuda>(ctx_, A.view());
        return bench::seconds_of(ctx_, [&] {
            cusolver.geqrf(ctx_, Q.view());
            R = bench::upper_trapezoid(ctx_, Q);
            cusolver.orgqr(ctx_, Q.view());
        });
    }

    const BenchArguments& arguments_;
    Context<Host> host_;
    InterruptGuard guard_;
    Context<Cuda> ctx_;
    Results results_;
};

}  // namespace quoin::cli
