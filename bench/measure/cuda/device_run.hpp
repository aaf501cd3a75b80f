#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "algorithms/shared/copies.hpp"
#include "measure/cuda/accuracy.hpp"
#include "measure/cuda/device.hpp"
#include "measure/measure_case.hpp"
#include "quoin/cuda.hpp"
#include "rivals/cusolver_qr.hpp"

namespace quoin::cli {

/// One operation of Quoin on an m×n matrix. A supplies the matrix anew for every run. Holds no memory between runs.
template <class T>
class DeviceRun {
public:
    DeviceRun(Context<Cuda>& ctx, Index m, Index n, bench::ColumnSource<T> A, Operation operation, Options options)
        : ctx_(ctx), A_(std::move(A)), operation_(operation) {
        options.q = form_of_q(operation);
        plan_ = plan_qr<T>(ctx, m, n, options);
    }

    double seconds() {
        const double seconds = run();
        clear();
        return seconds;
    }

    /// Orthogonality and residual of one more answer; for Geqrf of the Q that cuSOLVER's orgqr forms of V and tau.
    Measurement measurement(double seconds) {
        Measurement result;
        result.seconds = seconds;
        run();
        result.method = method_;
        if (operation_ != Operation::ROnly) measure_accuracy(result);
        clear();
        return result;
    }

private:
    double run() {
        auto work = Matrix<T, Cuda>::aligned(ctx_, plan_.rows, plan_.cols);
        A_({0, plan_.cols}, work.view());
        return bench::seconds_of(ctx_, [&] {
            QR<T, Cuda> f = qr<T, Cuda>(ctx_, std::move(work), plan_);
            method_ = f.report().method;
            order_.assign(f.permutation().begin(), f.permutation().end());
            if (operation_ == Operation::Geqrf) {
                LapackQR<T, Cuda> factors = to_lapack(ctx_, std::move(f));
                thin_.Q = std::move(factors.V_R);
                tau_ = std::move(factors.tau);
                return;
            }
            if (operation_ == Operation::Factor) {
                factorization_.emplace(std::move(f));
            } else {
                thin_ = std::move(f).take_thin(ctx_);
            }
        });
    }

    void measure_accuracy(Measurement& result) {
        const Index m = plan_.rows, n = plan_.cols;
        if (operation_ == Operation::Factor) {
            thin_ = std::move(*factorization_).take_thin(ctx_);
        } else if (operation_ == Operation::Geqrf) {
            thin_.R = bench::upper_trapezoid(ctx_, thin_.Q);
            bench::CusolverQR<T>(ctx_, m, n).orgqr(ctx_, thin_.Q.view(), tau_);
            if (m < n) thin_.Q = copy_of<T, Cuda>(ctx_, thin_.Q.view().col_block({0, m}));
        }
        result.orthogonality = bench::orthogonality(ctx_, thin_.Q);
        const bench::ColumnSource<T> AP = [&](Range cols, MatrixView<T, Cuda> block) {
            for (Index j = 0; j < block.cols; ++j) {
                const Index p = order_[cols.begin + j];
                A_({p, p + 1}, block.col_block({j, j + 1}));
            }
        };
        result.residual = bench::residual<T>(ctx_, order_.empty() ? A_ : AP, thin_.Q, thin_.R);
    }

    void clear() {
        factorization_.reset();
        thin_ = {};
        tau_ = {};
    }

    Context<Cuda>& ctx_;
    bench::ColumnSource<T> A_;
    Operation operation_;
    Plan plan_;
    Method method_ = Method::Auto;
    std::optional<QR<T, Cuda>> factorization_;
    ThinQR<T, Cuda> thin_;
    Matrix<T, Cuda> tau_;
    std::vector<Index> order_;  // of pivoting, or empty
};

}  // namespace quoin::cli
