#pragma once

#include <utility>
#include <vector>

#include "accuracy.hpp"
#include "cusolver_qr.hpp"
#include "device.hpp"
#include "measure_case.hpp"
#include "quoin/cuda.hpp"

namespace quoin::cli {

/// What Quoin does with one matrix, and its last answer.
template <class T>
class DeviceRun {
public:
    DeviceRun(Context<Cuda>& ctx, const Matrix<T, Cuda>& A, Operation operation, Options options)
        : ctx_(ctx), A_(A), operation_(operation) {
        options.q = form_of_q(operation);
        plan_ = plan_qr<T>(ctx, A.rows(), A.cols(), options);
    }

    double seconds(bench::EventTimer& timer) {
        clear();
        Matrix<T, Cuda> work(ctx_, A_.rows(), A_.cols());
        copy<T>(ctx_, A_.view(), work.view());
        return timer.seconds(ctx_, [&] {
            QR<T, Cuda> f = qr<T, Cuda>(ctx_, std::move(work), plan_);
            method_ = f.report().method;
            if (operation_ == Operation::Geqrf) {
                LapackQR<T, Cuda> factors = to_lapack(ctx_, std::move(f));
                Q_ = std::move(factors.V_R);
                tau_ = std::move(factors.tau);
                return;
            }
            if (operation_ == Operation::ThinQr || operation_ == Operation::ROnly) R_ = f.r(ctx_);
            if (operation_ == Operation::ThinQr)
                Q_ = std::move(f).take_q(ctx_);
            else
                factorization_.push_back(std::move(f));
        });
    }

    /// Orthogonality and residual of the last answer; for Geqrf of the Q that cuSOLVER's orgqr forms of V and tau.
    Measurement measurement(bench::CusolverQR<T>& cusolver, double seconds) {
        Measurement result;
        result.method = method_;
        result.seconds = seconds;
        if (operation_ == Operation::ROnly) return result;
        if (operation_ == Operation::Factor) {
            R_ = factorization_.back().r(ctx_);
            Q_ = std::move(factorization_.back()).take_q(ctx_);
        } else if (operation_ == Operation::Geqrf) {
            R_ = bench::upper_trapezoid(ctx_, Q_);
            cusolver.orgqr(ctx_, Q_, tau_);
            if (A_.rows() < A_.cols()) {
                Matrix<T, Cuda> thin(ctx_, A_.rows(), A_.rows());
                copy<T>(ctx_, std::as_const(Q_).view().col_block({0, A_.rows()}), thin.view());
                Q_ = std::move(thin);
            }
        }
        result.orthogonality = bench::orthogonality(ctx_, Q_);
        result.residual = bench::residual(ctx_, A_, Q_, R_);
        return result;
    }

    void clear() {
        factorization_.clear();
        Q_ = {};
        R_ = {};
        tau_ = {};
    }

private:
    Context<Cuda>& ctx_;
    const Matrix<T, Cuda>& A_;
    Operation operation_;
    Plan plan_;
    Method method_ = Method::Auto;
    std::vector<QR<T, Cuda>> factorization_;  // one or none
    Matrix<T, Cuda> Q_, R_, tau_;
};

}  // namespace quoin::cli
