// QR with column pivoting on the GPU (pivoted_qr_law.hpp), its panels in shared and in global memory, low-rank
// decompositions, and least squares of deficient matrices.

#include <fmt/format.h>

#include "gpu.hpp"
#include "least_squares_law.hpp"
#include "pivoted_qr_law.hpp"
#include "primitives.hpp"
#include "quoin/low_rank.hpp"

namespace quoin::test {

template <>
class WithContext<Cuda> : public OnGpu {
protected:
    Context<Cuda>& context() { return gpu(); }
    Context<Cuda>& other_context() { return gpu(); }
};
using OnCuda = testing::Types<Place<float, Cuda>, Place<double, Cuda>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Gpu, PivotedQR, OnCuda);

namespace {

template <class Scalar>
class GpuPivots : public WithContext<Cuda> {
protected:
    using T = Scalar;
    Matrix<T, Cuda> placed(MatrixView<const T> A) { return device_copy_of<T, Cuda>(gpu(), A); }
    Matrix<T> home(const Matrix<T, Cuda>& X) { return host_copy_of<T, Cuda>(gpu(), X.view()); }
};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuPivots, Precisions);

/// Expects small residuals, and of greedy pivots the first of the host's, whose norms are clearly apart.
template <class T>
void expect_pivots_of_host(Context<Cuda>& gpu, Context<Host>& host, Index m, Index n, Pivots kind, Index width) {
    SCOPED_TRACE(fmt::format("{}x{} {} {}", m, n, to_string(kind), width));
    const Matrix<T> A = random_normal<T>(m, n, 5);
    Options options = pivoted({.kind = kind}, QForm::Reflectors, width);
    options.verify = true;
    const auto placed = device_copy_of<T, Cuda>(gpu, A.view());
    const auto f = qr<T, Cuda>(gpu, placed.view(), options);
    EXPECT_TRUE(is_permutation_of(f.permutation(), n));
    EXPECT_LE(f.report().residual, law * std::min(m, n) * unit_roundoff<T>);
    EXPECT_LE(f.report().orthogonality, law * std::min(m, n) * unit_roundoff<T>);
    options.verify = false;
    const auto expected = qr(host, A.view(), options);
    if (kind != Pivots::Greedy) return;
    for (Index j = 0; j < std::min<Index>(20, std::min(m, n)); ++j)
        EXPECT_EQ(f.permutation()[j], expected.permutation()[j]) << j;
}

TYPED_TEST(GpuPivots, AreTheHosts) {
    using T = TypeParam;
    // in shared memory, and in global memory
    for (const auto& [m, n, width] : {std::tuple<Index, Index, Index>{700, 500, 64}, {1500, 1700, 32}, {20000, 70, 16}})
        expect_pivots_of_host<T>(this->gpu(), this->host, m, n, Pivots::Greedy, width);
    for (const auto& [m, n, width] :
         {std::tuple<Index, Index, Index>{900, 900, 0}, {1200, 3000, 128}, {600, 9000, 500}, {20000, 600, 0}})
        expect_pivots_of_host<T>(this->gpu(), this->host, m, n, Pivots::Randomized, width);
}

TYPED_TEST(GpuPivots, PermutedColumnsOfEveryKind) {
    using T = TypeParam;
    Context<Cuda>& ctx = this->gpu();
    for (const auto& [m, n] : {std::pair<Index, Index>{1, 1}, {1, 400}, {70, 33}, {3000, 2000}, {5, 70000}}) {
        SCOPED_TRACE(shape_name(m, n));
        const Matrix<T> A = random_normal<T>(m, n);
        std::vector<Index> order(n);
        std::iota(order.begin(), order.end(), Index(0));
        std::shuffle(order.begin(), order.end(), std::mt19937(7));
        GpuPadded<T> B(ctx, A.view());
        const auto placed = device_copy_of<Index, Cuda>(ctx, {order.data(), n, 1});
        permute_columns<T>(ctx, placed.view(), B.view());
        EXPECT_TRUE(same_bits<T>(B.fetch(ctx).view(), columns<T>(A.view(), order).view()));
    }
}

TYPED_TEST(GpuPivots, NormsOfColumns) {
    using T = TypeParam;
    Context<Cuda>& ctx = this->gpu();
    for (const Gallery c : {Gallery::RandomNormal, Gallery::GradedColumnsUp, Gallery::ZeroSomeColumns}) {
        for (const auto& [m, n] : {std::pair<Index, Index>{0, 3}, {1, 100}, {300, 5}, {1000, 300}}) {
            SCOPED_TRACE(to_string(c) + " " + shape_name(m, n));
            const Matrix<T> A = generate<T>(c, m, n);
            GpuPadded<T> gA(ctx, A.view());
            std::vector<T> norms(n), expected(n);
            column_norms<T>(ctx, gA.view(), norms);
            column_norms<T>(this->host, A.view(), expected);
            // sums of m squares in double, in two orders, rounded to T
            const double u = 2 * unit_roundoff<T> + static_cast<double>(m + 2) * unit_roundoff<double>;
            for (Index j = 0; j < n; ++j) EXPECT_NEAR(norms[j], expected[j], u * expected[j]) << j;
        }
    }
}

TYPED_TEST(GpuPivots, LowRankDecompositions) {
    using T = TypeParam;
    Context<Cuda>& ctx = this->gpu();
    for (const auto& [m, n, r] :
         {std::tuple<Index, Index, Index>{80, 60, 7}, {60, 80, 7}, {2000, 300, 40}, {40, 900, 11}, {1, 5, 1}}) {
        const Matrix<T> U = random_normal<T>(m, r, 1), V = random_normal<T>(r, n, 2);
        const Matrix<T> A = product<T>(U.view(), V.view());
        const auto placed = this->placed(A.view());
        for (const Pivots kind : every_pivots) {
            SCOPED_TRACE(shape_name(m, n) + " " + to_string(kind));
            const Pivoting limit{.kind = kind, .max_rank = r};
            const auto [p, gX, report] = interpolative<T, Cuda>(ctx, placed.view(), limit);
            ASSERT_EQ(static_cast<Index>(p.size()), r);
            const Matrix<T> X = this->home(gX), C = columns<T>(A.view(), p), CX = product<T>(C.view(), X.view());
            const double size = frobenius_norm<T>(C.view()) * std::max(1.0, frobenius_norm<T>(X.view()));
            EXPECT_LE(difference<T>(CX.view(), A.view(), std::max(m, n), size), law);
            const auto d = cur<T, Cuda>(ctx, placed.view(), limit);
            ASSERT_EQ(d.columns, p);
            const Matrix<T> At = transposed<T>(A.view()), Rt = columns<T>(At.view(), d.rows);
            const Matrix<T> R = transposed<T>(Rt.view()), W = this->home(d.U);
            const Matrix<T> WR = product<T>(W.view(), R.view()), CWR = product<T>(C.view(), WR.view());
            const double all = frobenius_norm<T>(C.view()) * frobenius_norm<T>(W.view()) * frobenius_norm<T>(R.view());
            EXPECT_LE(difference<T>(CWR.view(), A.view(), std::max(m, n), all), law);

            Options options;
            options.pivoting = limit;
            const auto f = svd<T, Cuda>(ctx, placed.view(), true, options);
            ASSERT_EQ(static_cast<Index>(f.s.size()), r);
            const auto s = svd(this->host, A.view(), false).s;
            for (Index i = 0; i < r; ++i) EXPECT_NEAR(f.s[i], s[i], law * std::max(m, n) * unit_roundoff<T> * s[0]);
            Matrix<T> US = this->home(f.U);
            for (Index j = 0; j < r; ++j) {
                for (Index i = 0; i < m; ++i) US(i, j) *= f.s[j];
            }
            const Matrix<T> Vt = this->home(f.Vt);
            EXPECT_LE(difference<T>(product<T>(US.view(), Vt.view()).view(), A.view(), std::max(m, n),
                                    frobenius_norm<T>(A.view())),
                      law);
        }
    }
}

TYPED_TEST(GpuPivots, DeficientLeastSquaresHaveTheHostsSolution) {
    using T = TypeParam;
    Context<Cuda>& ctx = this->gpu();
    for (const Gallery c : {Gallery::RankDeficientExact, Gallery::ZeroSomeColumns, Gallery::Zero}) {
        for (const auto& [m, n] : {std::pair<Index, Index>{90, 40}, {40, 90}, {50, 50}, {3000, 30}}) {
            for (const double rcond : {-1.0, 1e-3}) {
                SCOPED_TRACE(fmt::format("{} {}x{} {}", to_string(c), m, n, rcond));
                const Matrix<T> A = generate<T>(c, m, n), B = random_normal<T>(m, 3, 7);
                const auto gA = this->placed(A.view()), gB = this->placed(B.view());
                const auto expected = least_squares(this->host, A.view(), B.view(), {.rcond = rcond});
                const auto found = least_squares<T, Cuda>(ctx, gA.view(), gB.view(), {.rcond = rcond});
                EXPECT_EQ(found.rank, expected.rank);
                EXPECT_EQ(found.dependent.size(), expected.dependent.size());
                const double size = frobenius_norm<T>(expected.X.view());
                EXPECT_LE(difference<T>(this->home(found.X).view(), expected.X.view(), std::max(m, n), size),
                          1000 * law);
                for (Index j = 0; j < 3; ++j) {
                    EXPECT_NEAR(found.residual_norms[j], expected.residual_norms[j],
                                1e3 * n * unit_roundoff<T> * frobenius_norm<T>(B.view()));
                }
                if (expected.rank == std::min(m, n)) continue;
                EXPECT_THROW(
                    (least_squares<T, Cuda>(ctx, gA.view(), gB.view(), {.rcond = rcond, .refuse_deficient = true})),
                    RankDeficient);
            }
            if (m < n) continue;
            // with the factors of A P
            const Matrix<T> A = generate<T>(c, m, n), B = random_normal<T>(m, 2, 7);
            const auto gA = this->placed(A.view()), gB = this->placed(B.view());
            const auto expected = least_squares(this->host, A.view(), B.view());
            const auto f = qr<T, Cuda>(ctx, gA.view(), pivoted({}));
            const auto found = least_squares<T, Cuda>(ctx, f, gB.view());
            EXPECT_EQ(found.rank, expected.rank);
            EXPECT_LE(
                difference<T>(this->home(found.X).view(), expected.X.view(), m, frobenius_norm<T>(expected.X.view())),
                1000 * law);
        }
    }
}

}  // namespace
}  // namespace quoin::test
