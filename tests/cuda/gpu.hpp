#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "checks.hpp"
#include "cuda/tuning.hpp"
#include "gallery.hpp"
#include "quoin/cuda.hpp"
#include "quoin/qr.hpp"

namespace quoin::test {

/// Tests on the current GPU, skipped by name where there is none.
template <class Base>
class WithGpu : public Base {
protected:
    void SetUp() override {
        Base::SetUp();
        try {
            gpu_.emplace();
        } catch (const DeviceFailure& failure) {
            GTEST_SKIP() << "no usable GPU: " << failure.what();
        }
    }
    Context<Cuda>& gpu() { return *gpu_; }
    Context<Host> host{2};

private:
    std::optional<Context<Cuda>> gpu_;
};
using OnGpu = WithGpu<testing::Test>;

/// Whether contexts have the plain kernels, which have no corrected products and no f64 tensor cores for f32.
inline bool has_plain_kernels() {
    const char* const kernels = std::getenv("QUOIN_KERNELS");
    return kernels && std::string_view(kernels) == "plain";
}

/// Whether f32 is solved by halves after a certificate.
inline bool has_products_of_warpgroups() { return !has_plain_kernels() && Tuning<Cuda>::here().kernels.warpgroups; }

/// A matrix on the GPU inside a larger leading dimension. Everything outside the view is NaN and has to stay as it is;
/// without an initial value the view is NaN too.
template <class T>
class GpuPadded {
public:
    GpuPadded(Context<Cuda>& ctx, Index rows, Index cols, Index padding = 3)
        : rows_(rows),
          poison_(filled<T>(rows + padding, cols, std::numeric_limits<T>::quiet_NaN())),
          storage_(copy_to_device<T>(ctx, poison_.view())) {}
    GpuPadded(Context<Cuda>& ctx, MatrixView<const T> A, Index padding = 3) : GpuPadded(ctx, A.rows, A.cols, padding) {
        copy_to_device<T>(ctx, A, view());
    }

    MatrixView<T, Cuda> view() { return storage_.view().row_block({0, rows_}); }
    /// On the host; expects the padding to be intact.
    Matrix<T> fetch(Context<Cuda>& ctx) {
        const Matrix<T> all = copy_to_host<T>(ctx, storage_.view());
        EXPECT_TRUE(
            same_bits<T>(all.view().row_block({rows_, all.rows()}), poison_.view().row_block({rows_, all.rows()})))
            << "padding";
        return copy<T>(all.view().row_block({0, rows_}));
    }

private:
    Index rows_;
    Matrix<T> poison_;
    Matrix<T, Cuda> storage_;
};

/// As `expect_law` of the host: R, thin Q, and op(Q) from both sides against the formed Q.
template <class T>
void expect_law(Context<Cuda>& ctx, MatrixView<const T> A, const QR<T, Cuda>& f, Index stages = 1) {
    const double bound = law * std::sqrt(double(stages));
    const Index m = A.rows, n = A.cols, k = std::min(m, n), p = 5;
    const Matrix<T> R = copy_to_host<T>(ctx, f.r(ctx).view());
    ASSERT_EQ(R.rows(), k);
    ASSERT_EQ(R.cols(), n);
    EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
    EXPECT_TRUE(is_finite<T>(R.view()));
    if (f.plan().q == QForm::None) {
        EXPECT_LE(gram_error<T>(A, R.view()), bound) << "AᵀA = RᵀR";
        return;
    }
    const Matrix<T> Q = copy_to_host<T>(ctx, f.form_q(ctx).view());
    ASSERT_EQ(Q.cols(), k);
    if (k == 0) return;
    EXPECT_LE(orthogonality_error<T>(Q.view(), k), bound) << "‖I − QᵀQ‖";
    const ResidualErrors residual = residual_errors<T>(A, Q.view(), R.view());
    EXPECT_LE(residual.of_matrix, bound) << "‖A − QR‖";
    EXPECT_LE(residual.of_worst_column, bound) << "max ‖a_j − Q r_j‖";

    const Matrix<T> C = random_normal<T>(m, p, 71);
    const Matrix<T> Ct = transposed<T>(C.view());
    GpuPadded<T> X(ctx, C.view()), Y(ctx, Ct.view());
    f.apply_q(ctx, Side::Left, Op::Transpose, X.view());
    f.apply_q(ctx, Side::Right, Op::None, Y.view());
    const Matrix<T> QtC = X.fetch(ctx), CtQ = Y.fetch(ctx);
    const double scale = frobenius_norm<T>(C.view());
    EXPECT_LE(difference<T>(transposed<T>(CtQ.view()).view(), QtC.view(), k, scale), bound) << "(CᵀQ)ᵀ = QᵀC";
    // the thin part of QᵀC, and Q(QᵀC) = C
    Context<Host> host;
    Matrix<T> thin(k, p);
    multiply_transposed<T>(host, Q.view(), C.view(), thin.view());
    EXPECT_LE(difference<T>(QtC.view().row_block({0, k}), thin.view(), k, scale), bound) << "QᵀC";
    f.apply_q(ctx, Side::Left, Op::None, X.view());
    EXPECT_LE(difference<T>(X.fetch(ctx).view(), C.view(), k, scale), 2 * bound) << "QQᵀC = C";
}

/// most := max(most, x), which stays infinite once x is NaN.
inline void raise(double& most, double x) {
    if (!(x <= most)) most = std::isnan(x) ? std::numeric_limits<double>::infinity() : x;
}

/// max ‖x_j − y_j‖ / ‖y_j‖ in units of f32's u; a zero y_j asks for a zero x_j.
inline double column_error(MatrixView<const float> X, MatrixView<const double> Y) {
    double most = 0;
    for (Index j = 0; j < X.cols; ++j) {
        double error = 0, norm = 0;
        for (Index i = 0; i < X.rows; ++i) {
            error += (X(i, j) - Y(i, j)) * (X(i, j) - Y(i, j));
            norm += Y(i, j) * Y(i, j);
        }
        if (error != 0) raise(most, std::sqrt(error / norm) / unit_roundoff<float>);
    }
    return most;
}

/// Rows × columns that reach every path: empty, single, ragged against 32, 64, 256, 512, 4096 and their multiples.
inline constexpr std::pair<Index, Index> tall_shapes[] = {{0, 0},    {1, 1},     {5, 5},      {33, 32},  {64, 1},
                                                          {97, 31},  {300, 33},  {513, 64},   {700, 65}, {1000, 100},
                                                          {4097, 8}, {9001, 40}, {20011, 192}};

}  // namespace quoin::test
