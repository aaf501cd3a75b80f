// The strategies of reduction of apply_qt_h, each against reflectors applied on the host.

#include "papers/reduction_strategies.hpp"

#include <cmath>

#include "gallery.hpp"
#include "gpu.hpp"
#include "primitives.hpp"

namespace quoin::test {
namespace {

using bench::Reduction;

class GpuReductions : public OnGpu {};

/// C_b := H_n … H_1 C_b in double.
Matrix<float> applied(Index rows, Index cols, Index count, const Matrix<float>& V, const Matrix<float>& tau,
                      const Matrix<float>& C) {
    Matrix<float> result = copy<float>(C.view());
    for (Index b = 0; b < count; ++b) {
        for (Index j = 0; j < cols; ++j) {
            std::vector<double> c(C.view().at(0, b * cols + j), C.view().at(0, b * cols + j) + rows);
            for (Index k = 0; k < cols; ++k) {
                double sum = 0;
                for (Index i = 0; i < rows; ++i) sum += V(i, b * cols + k) * c[i];
                for (Index i = 0; i < rows; ++i) c[i] -= tau(k, b) * sum * V(i, b * cols + k);
            }
            for (Index i = 0; i < rows; ++i) result(i, b * cols + j) = static_cast<float>(c[i]);
        }
    }
    return result;
}

TEST_F(GpuReductions, ApplyTheReflectorsOfTheHost) {
    const Index count = 5;
    for (const int rows : {32, 64, 128, 256}) {
        for (const int cols : {4, 8, 16, 32}) {
            if (rows * cols > 4096) continue;
            Matrix<float> V = random_normal<float>(rows, cols * count, 1), tau(cols, count);
            const Matrix<float> C = random_normal<float>(rows, cols * count, 2);
            for (Index b = 0; b < count; ++b) {
                for (Index k = 0; k < cols; ++k) {
                    double square = 0;
                    for (Index i = 0; i < rows; ++i) {
                        float& v = V(i, b * cols + k);
                        if (i <= k) v = i == k ? 1 : 0;
                        square += double(v) * v;
                    }
                    tau(k, b) = static_cast<float>(2 / square);
                }
            }
            const Matrix<float> expected = applied(rows, cols, count, V, tau, C);
            const auto gV = copy_to_device<float>(gpu(), V.view()), gtau = copy_to_device<float>(gpu(), tau.view());
            for (const Reduction reduction : bench::reductions) {
                SCOPED_TRACE(testing::Message() << rows << "x" << cols << ", " << to_string(reduction));
                const bool by_rows = reduction == Reduction::RegistersTransposed;
                const auto turned = [&](const Matrix<float>& X, Index from_rows, Index from_cols) {
                    Matrix<float> Y(from_cols, from_rows * count);
                    for (Index b = 0; b < count; ++b) {
                        for (Index j = 0; j < from_cols; ++j) {
                            for (Index i = 0; i < from_rows; ++i) Y(j, b * from_rows + i) = X(i, b * from_cols + j);
                        }
                    }
                    return Y;
                };
                const Matrix<float> start = by_rows ? turned(C, rows, cols) : copy<float>(C.view());
                auto gC = copy_to_device<float>(gpu(), start.view());
                bench::apply_block_reflectors(gpu(), reduction, {rows, cols}, count, gV.data(), gtau.data(), gC.data());
                Matrix<float> found = copy_to_host<float>(gpu(), gC.view());
                if (by_rows) found = turned(found, cols, rows);
                EXPECT_LE(
                    difference<float>(found.view(), expected.view(), cols, frobenius_norm<float>(expected.view())),
                    law);
            }
        }
    }
    EXPECT_THROW(bench::apply_block_reflectors(gpu(), Reduction::Registers, {48, 16}, 1, nullptr, nullptr, nullptr),
                 InvalidArgument);
}

}  // namespace
}  // namespace quoin::test
