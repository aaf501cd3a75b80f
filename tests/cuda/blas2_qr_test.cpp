// The baseline of `quoin bench --against blas2` is a QR factorization, and not only fast: it obeys the law of
// checks.hpp wherever the squares of the entries stay in range, in LAPACK's format, inside any leading dimension.

#include "rivals/blas2_qr.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gallery.hpp"
#include "gpu.hpp"
#include "quoin/qr.hpp"

namespace quoin::test {
namespace {

class GpuBlas2Qr : public OnGpu {
protected:
    template <class T>
    LapackQR<T> factor(MatrixView<const T> A) {
        GpuPadded<T> work(gpu(), A);
        bench::Blas2QR<T> blas2(gpu(), work.view());
        blas2.geqrf(gpu());
        return {work.fetch(gpu()), copy_to_host<T>(gpu(), blas2.tau().view())};
    }
    template <class T>
    void check(MatrixView<const T> A) {
        SCOPED_TRACE(fmt::format("{}x{}", A.rows, A.cols));
        LapackQR<T> f = factor<T>(A);
        const Index k = std::min(A.rows, A.cols);
        ASSERT_EQ(f.tau.rows(), k);
        if (k == 0) return;
        Matrix<T> R(k, A.cols);
        for (Index j = 0; j < A.cols; ++j)
            for (Index i = 0; i < k; ++i) R(i, j) = i <= j ? f.V_R(i, j) : T(0);
        const LapackQR<T> again = factor<T>(A);
        EXPECT_TRUE(same_bits<T>(f.V_R.view(), again.V_R.view()));
        EXPECT_TRUE(same_bits<T>(f.tau.view(), again.tau.view()));
        const Matrix<T> Q = from_lapack(host, std::move(f)).form_q(host);
        EXPECT_LE(orthogonality_error<T>(Q.view(), k), law);
        EXPECT_LE(residual_error<T>(A, Q.view(), R.view()), law);
        EXPECT_LE(column_residual_error<T>(A, Q.view(), R.view()), law);
    }
    /// Both tile heights; runs of columns that end at and off a block's 128; wide; the last tile and column alone.
    template <class T>
    void shapes() {
        for (auto [m, n] : {std::pair<Index, Index>{0, 0},
                            {5, 0},
                            {0, 5},
                            {1, 1},
                            {1, 7},
                            {7, 1},
                            {33, 32},
                            {32, 33},
                            {40, 70},
                            {513, 64},
                            {600, 600},
                            {1025, 300},
                            {65535, 3},
                            {70001, 19}}) {
            if (quick() && m * n > 50000) continue;
            check<T>(random_normal<T>(m, n).view());
        }
    }
    template <class T>
    void classes() {
        using enum Gallery;
        // Columns that are equal in float leave rounding errors of rounding errors: u³ has no square.
        const auto squares_leave_the_range = {GradedColumnsDown, GradedColumnsUp, GradedRowsDown, GradedRowsUp,
                                              GradedBoth,        NearOverflow,    NearUnderflow,  Denormal,
                                              SingleLargeEntry,  NearCollinear12};
        for (Gallery matrix_class : gallery()) {
            if (std::find(squares_leave_the_range.begin(), squares_leave_the_range.end(), matrix_class) !=
                squares_leave_the_range.end())
                continue;
            SCOPED_TRACE(to_string(matrix_class));
            for (auto [m, n] : {std::pair<Index, Index>{1300, 29}, {50, 80}})
                check<T>(generate<T>(matrix_class, m, n).view());
        }
    }
};

TEST_F(GpuBlas2Qr, ShapesF32) { shapes<float>(); }
TEST_F(GpuBlas2Qr, ShapesF64) { shapes<double>(); }
TEST_F(GpuBlas2Qr, ClassesF32) { classes<float>(); }
TEST_F(GpuBlas2Qr, ClassesF64) { classes<double>(); }

}  // namespace
}  // namespace quoin::test
