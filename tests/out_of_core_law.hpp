#pragma once

#include <algorithm>
#include <chrono>

#include "algorithms/out_of_core/schedule.hpp"
#include "checks.hpp"
#include "gallery.hpp"

/// Laws of matrices out of core, for every device.
namespace quoin::test {

template <class T>
struct OutOfCoreFactors {
    Matrix<T> Q, R;
    OutOfCoreReport report;
};

/// Factors a copy of A in padded memory, which must survive; what is moved is what was planned.
template <class T, class D>
OutOfCoreFactors<T> factor_out_of_core_copy(Context<D>& ctx, MatrixView<const T> A, const OutOfCoreOptions& options,
                                            const OutOfCoreSchedule& schedule = {}) {
    const Index k = std::min(A.rows, A.cols);
    Padded<T> memory(A), r(filled<T>(k, A.cols, T(0)).view());
    const auto start = std::chrono::steady_clock::now();
    OutOfCoreReport report = qr_out_of_core<T, D>(ctx, memory.view(), r.view(), options, schedule);
    EXPECT_GT(report.seconds, 0);
    EXPECT_LE(report.seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    EXPECT_TRUE(memory.padding_intact());
    EXPECT_TRUE(r.padding_intact());
    EXPECT_EQ(report.bytes_in, report.plan.bytes_in);
    EXPECT_EQ(report.bytes_out, report.plan.bytes_out);
    return {test::copy<T>(memory.view().col_block({0, k})), test::copy<T>(r.view()), report};
}

template <class T>
void expect_out_of_core_law(MatrixView<const T> A, const OutOfCoreFactors<T>& f, bool orthonormal) {
    const Index k = f.Q.cols();
    EXPECT_TRUE(is_upper_trapezoidal<T>(f.R.view()));
    EXPECT_LE(residual_error<T>(A, f.Q.view(), f.R.view()), law);
    if (orthonormal) {
        EXPECT_LE(orthogonality_error<T>(f.Q.view(), k), law);
    }
}

}  // namespace quoin::test
