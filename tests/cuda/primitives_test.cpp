// Each primitive on the GPU against the host's.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <random>

#include "algorithms/shared/copies.hpp"
#include "cases.hpp"
#include "cuda/tuning.hpp"
#include "devices.hpp"
#include "gallery.hpp"
#include "gpu.hpp"
#include "primitives/generic/reconstruct_top.hpp"
#include "quoin/study.hpp"

namespace quoin::test {
namespace {

template <class T>
class GpuPrimitive : public OnGpu {
protected:
    static constexpr double u = unit_roundoff<T>;

    /// Upper triangular and well conditioned: entries above the diagonal of norm 1/2 a column.
    Matrix<T> triangle(Index n, std::uint64_t seed = 3) {
        Matrix<T> R = random_normal<T>(n, n, seed);
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < n; ++i) R(i, j) = i < j ? R(i, j) / (2 * std::sqrt(T(n))) : T(0);
            R(j, j) = j % 3 == 0 ? T(-1.5) : T(1);
        }
        return R;
    }
    Matrix<double> gram(Index n) {
        const Matrix<double> A = random_normal<double>(4 * n + 3, n, 5);
        Matrix<double> G(n, n);
        solve_and_gram<double>(host, A.view(), {}, {}, G.view());
        return G;
    }
    static Matrix<double> widened(MatrixView<const T> A) {
        Matrix<double> B(A.rows, A.cols);
        for (Index j = 0; j < A.cols; ++j) {
            for (Index i = 0; i < A.rows; ++i) B(i, j) = A(i, j);
        }
        return B;
    }
    static Matrix<T> rounded(const Matrix<double>& A) {
        Matrix<T> B(A.rows(), A.cols());
        for (Index j = 0; j < A.cols(); ++j) {
            for (Index i = 0; i < A.rows(); ++i) B(i, j) = static_cast<T>(A(i, j));
        }
        return B;
    }
    /// One step of a chain on the GPU, in place or not, after a first one that went well.
    Certificate step(GpuPadded<double>& G, GpuPadded<double>& R, GramDemands demands) {
        Matrix<Certificate, Cuda> certificate(gpu(), 1, 1);
        GpuPadded<double> one(gpu(), filled<double>(1, 1, 1).view());
        if (demands.step > 0) factor_gram<T>(gpu(), one.view(), {}, one.view(), certificate.view());
        factor_gram<T>(gpu(), G.view(), demands, R.view(), certificate.view());
        return read_certificate(gpu(), certificate.view());
    }
    /// X R, rounded.
    static Matrix<T> product(const Matrix<T>& X, const Matrix<double>& R) {
        Matrix<double> A = widened(X.view());
        Context<Host> host;
        multiply_triangle<double>(host, Side::Right, Triangle::Upper, Op::None, R.view(), A.view());
        return rounded(A);
    }
    /// The largest |A − X R| / (|X||R|), entry by entry, |X| at least `least`, of some rows if there are many.
    static double residual_of_solve(const Matrix<T>& A, const Matrix<T>& X, const Matrix<double>& R, double least = 0) {
        double worst = 0;
        for (Index i = 0; i < A.rows(); i += 1 + A.rows() / 1000) {
            for (Index j = 0; j < A.cols(); ++j) {
                double difference = A(i, j), scale = 0;
                for (Index l = 0; l <= j; ++l) {
                    difference -= X(i, l) * R(l, j);
                    scale += std::max(std::abs(static_cast<double>(X(i, l))), least) * std::abs(R(l, j));
                }
                worst = std::max(worst, std::abs(difference) / scale);
            }
        }
        return worst;
    }
    void expect_close(const Matrix<T>& X, const Matrix<T>& Y, Index k, double scale, const char* what) {
        ASSERT_EQ(X.rows(), Y.rows());
        if (X.view().empty()) return;
        EXPECT_LE(difference<T>(X.view(), Y.view(), std::max<Index>(k, 1), scale), law) << what;
    }
    void expect_close(const Matrix<T>& X, const Matrix<T>& Y, Index k, const char* what) {
        expect_close(X, Y, k, frobenius_norm<T>(Y.view()), what);
    }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuPrimitive, Types);

TYPED_TEST(GpuPrimitive, ElementsHaveTheBitsOfTheHost) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{0, 3},
                        {3, 0},
                        {1, 1},
                        {31, 33},
                        {33, 31},
                        {70, 70},
                        {300, 70},
                        {70000, 3},
                        {3, 70000}}) {
        SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n));
        const Matrix<T> A = random_normal<T>(m, n, 1), B = random_normal<T>(m, n, 2), s = random_normal<T>(m, 1, 3);
        const Matrix<T> c = random_normal<T>(n, 1, 4);
        const Index k = std::min(m, n);
        GpuPadded<T> gA(this->gpu(), A.view()), gs(this->gpu(), s.view()), gc(this->gpu(), c.view());
        const auto compare = [&](const char* what, const Matrix<T>& start, auto on_host, auto on_gpu) {
            Matrix<T> X = copy<T>(start.view());
            GpuPadded<T> gX(this->gpu(), start.view());
            on_host(X.view());
            on_gpu(gX.view());
            EXPECT_TRUE(same_bits<T>(gX.fetch(this->gpu()).view(), X.view())) << what;
        };
        auto& h = this->host;
        auto& g = this->gpu();
        compare(
            "copy", B, [&](auto X) { copy<T>(h, A.view(), X); }, [&](auto X) { copy<T>(g, gA.view(), X); });
        compare(
            "transpose", Matrix<T>(transposed<T>(B.view())), [&](auto X) { transpose<T>(h, A.view(), X); },
            [&](auto X) { transpose<T>(g, gA.view(), X); });
        compare(
            "copy_triangle", B, [&](auto X) { copy_triangle<T>(h, A.view(), X); },
            [&](auto X) { copy_triangle<T>(g, gA.view(), X); });
        compare(
            "store_triangle", B, [&](auto X) { store_triangle<T>(h, A.view(), X); },
            [&](auto X) { store_triangle<T>(g, gA.view(), X); });
        for (Index first : {Index(0), Index(2), Index(-2), n}) {
            compare(
                "set_identity", B, [&](auto X) { set_identity<T>(h, first, X); },
                [&](auto X) { set_identity<T>(g, first, X); });
        }
        compare(
            "copy_diagonal", Matrix<T>(k, 1), [&](auto X) { copy_diagonal<T>(h, A.view(), X); },
            [&](auto X) { copy_diagonal<T>(g, gA.view(), X); });
        compare(
            "diagonal_signs", Matrix<T>(k, 1), [&](auto X) { diagonal_signs<T>(h, A.view(), X); },
            [&](auto X) { diagonal_signs<T>(g, gA.view(), X); });
        compare(
            "negate", B, [&](auto X) { negate<T>(h, X); }, [&](auto X) { negate<T>(g, X); });
        compare(
            "subtract", B, [&](auto X) { subtract<T>(h, A.view(), X); }, [&](auto X) { subtract<T>(g, gA.view(), X); });
        compare(
            "flip_rows", B, [&](auto X) { flip_rows<T>(h, s.view(), X); },
            [&](auto X) { flip_rows<T>(g, gs.view(), X); });
        compare(
            "flip_columns", B, [&](auto X) { flip_columns<T>(h, c.view(), X); },
            [&](auto X) { flip_columns<T>(g, gc.view(), X); });
        if (m == n) {
            compare(
                "add_identity", B, [&](auto X) { add_identity<T>(h, X); }, [&](auto X) { add_identity<T>(g, X); });
        }
    }
}

TYPED_TEST(GpuPrimitive, ScanAndScaleAsTheHost) {
    using T = TypeParam;
    auto& g = this->gpu();
    const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
    const auto compare = [&](const char* what, const Matrix<T>& A, int safe) {
        SCOPED_TRACE(what);
        const Index n = A.cols();
        Matrix<int> e(n, 1);
        Matrix<Scan> expected(1, 1);
        Matrix<int, Cuda> ge(g, n, 1);
        Matrix<Scan, Cuda> scanned(g, 1, 1);
        scan<T>(this->host, A.view(), safe, e.view(), expected.view());
        GpuPadded<T> gA(g, A.view());
        scan<T>(g, gA.view(), safe, ge.view(), scanned.view());
        const Scan found = read_scan(g, scanned.view());
        EXPECT_EQ(found.bad_row, expected(0, 0).bad_row);
        EXPECT_EQ(found.bad_col, expected(0, 0).bad_col);
        EXPECT_EQ(found.scaled, expected(0, 0).scaled);
        // the exponents show in what they scale
        for (Part part : {Part::All, Part::Upper})
            for (int sign : {1, -1}) {
                Matrix<T> X = filled<T>(A.rows(), n, T(3));
                GpuPadded<T> gX(g, X.view());
                scale_columns<T>(this->host, e.view(), sign, part, X.view());
                scale_columns<T>(g, ge.view(), sign, part, gX.view());
                EXPECT_TRUE(same_bits<T>(gX.fetch(g).view(), X.view()));
            }
        return found;
    };
    Matrix<T> A = generate<T>(Gallery::GradedColumnsDown, 20011, 7);
    EXPECT_TRUE(compare("graded", A, 2).scaled);
    EXPECT_FALSE(compare("within bounds", A, 10000).scaled);
    EXPECT_TRUE(compare("wide", generate<T>(Gallery::GradedColumnsDown, 3, 700), 2).scaled);
    A(20010, 6) = nan;
    EXPECT_FALSE(compare("NaN in the last entry", A, 2).scaled);
    A(17000, 3) = -inf;
    A(12000, 3) = nan;
    EXPECT_EQ(compare("the first of several", A, 2).bad_row, 12000);
    compare("zero", filled<T>(300, 4, 0), 0);
    compare("empty", filled<T>(0, 4, 0), 0);
    compare("empty", filled<T>(4, 0, 0), 0);
}

TYPED_TEST(GpuPrimitive, FactorGram) {
    auto& g = this->gpu();
    for (Index n : {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100, 127, 129, 191, 192, 300}) {
        for (bool condition : {false, true}) {
            SCOPED_TRACE(std::to_string(n) + (condition ? ", condition" : ""));
            const Matrix<double> G = this->gram(n);
            GramDemands demands;
            if (condition) demands.max_condition = 1e30;
            GpuPadded<double> gG(g, G.view()), gR(g, n, n);
            const Certificate found = this->step(gG, gR, demands), again = this->step(gG, gG, demands);
            const Matrix<double> R = gR.fetch(g);
            EXPECT_FALSE(found.refused());
            EXPECT_TRUE(same_bits<double>(gG.fetch(g).view(), R.view())) << "in place";
            EXPECT_EQ(found.condition, again.condition);
            EXPECT_EQ(found.departure, again.departure);
            EXPECT_TRUE(is_upper_trapezoidal<double>(R.view()));

            // the host's steps, and κ from R⁻¹
            Matrix<double> expected(n, n), inverse = identity<double>(n);
            Certificate state;
            factor_gram<double>(this->host, copy<double>(G.view()).view(), demands, expected.view(), {&state, 1, 1});
            EXPECT_LE(difference<double>(R.view(), expected.view(), n, frobenius_norm<double>(expected.view())), law);
            EXPECT_NEAR(found.departure, state.departure, 1e-12 * state.departure);
            solve_triangle<double>(this->host, Triangle::Upper, Op::None, expected.view(), inverse.view());
            double square = 0;
            for (Index i = 0; i < n; ++i) {
                for (Index j = i; j < n; ++j) square += G(i, i) * inverse(i, j) * inverse(i, j);
            }
            const double kappa = std::sqrt(static_cast<double>(n) * square);
            if (condition) {
                EXPECT_NEAR(found.condition, kappa, 1e-10 * kappa);
            }
        }
    }
}

TYPED_TEST(GpuPrimitive, FactorGramRefuses) {
    using T = TypeParam;
    auto& g = this->gpu();
    const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    for (Index n : {100, 110, 120, 300, 301}) {
        SCOPED_TRACE(n);
        const auto expect = [&](const Matrix<double>& G, GramDemands demands, Certificate::Reason reason,
                                Index column) {
            demands.step = static_cast<int>(n) % 3;
            GpuPadded<double> gG(g, G.view()), gR(g, n, n);
            const Certificate found = this->step(gG, gR, demands);
            EXPECT_EQ(found.reason, reason);
            EXPECT_EQ(found.step, demands.step);
            EXPECT_EQ(found.column, column);
        };
        for (Index bad : {Index(0), Index(40), Index(99), n - 1}) {
            for (double value : {0.0, inf, nan, 1e-3 * smallest_square<T>, 10 * largest_square<T>}) {
                Matrix<double> G = this->gram(n);
                G(bad, bad) = value;
                expect(G, {}, Certificate::Unusable, bad);
            }
            // a column that is the sum of those before it, and a little less
            Matrix<double> G = this->gram(n);
            if (bad == 0) continue;
            for (Index i = 0; i < bad; ++i) {
                G(i, bad) = 0;
                for (Index j = 0; j < bad; ++j) G(i, bad) += i < j ? G(i, j) : G(j, i);
            }
            G(bad, bad) = -1e-3;
            for (Index i = 0; i < bad; ++i) G(bad, bad) += G(i, bad);
            expect(G, {}, Certificate::Pivot, bad);
            expect(G, {.max_condition = 1e9}, Certificate::Pivot, bad);
        }
        const Matrix<double> G = this->gram(n);
        expect(G, {.max_trace = 2.0 * n}, Certificate::Trace, -1);
        expect(G, {.max_departure = 0.5}, Certificate::Departure, -1);
        expect(G, {.max_condition = 0.9 * n}, Certificate::Condition, -1);
        // eigenvalues 1 ± 0.8, and 1 ± 0.7
        Matrix<double> E = identity<double>(n);
        E(3, n - 2) = 0.8;
        expect(E, {.min_eigenvalue = 0.25}, Certificate::Eigenvalue, n - 2);
        E(3, n - 2) = 0.7;
        GpuPadded<double> gE(g, E.view());
        EXPECT_FALSE(this->step(gE, gE, {.max_condition = 1e9, .min_eigenvalue = 0.25}).refused());
        const Matrix<double> R = gE.fetch(g);
        EXPECT_NEAR(R(3, n - 2), 0.7, law * unit_roundoff<double>);
        EXPECT_NEAR(R(n - 2, n - 2), std::sqrt(0.51), law * unit_roundoff<double>);
    }
}

TYPED_TEST(GpuPrimitive, NothingIsWrittenBehindAClosedGate) {
    using T = TypeParam;
    auto& g = this->gpu();
    Matrix<Certificate, Cuda> certificate(g, 1, 1);
    GpuPadded<double> g_zero(g, filled<double>(4, 4, 0).view());
    factor_gram<T>(g, g_zero.view(), {}, g_zero.view(), certificate.view());
    for (auto [m, n] : {std::pair<Index, Index>{300, 20}, {300, 100}, {500, 200}}) {
        SCOPED_TRACE(n);
        const Matrix<T> A = random_normal<T>(m, n, 1);
        const Matrix<double> R = this->widened(this->triangle(n).view());
        GpuPadded<T> gA(g, A.view()), gP(g, A.view().row_block({0, n}));
        GpuPadded<double> gR(g, R.view()), gG(g, R.view());
        solve_and_gram<T>(g, gA.view(), std::array<MatrixView<const double, Cuda>, 1>{gR.view()}, gA.view(), gG.view(),
                          certificate.view());
        EXPECT_TRUE(same_bits<T>(gA.fetch(g).view(), A.view()));
        factor_gram<T>(g, gR.view(), {.step = 1}, gR.view(), certificate.view());
        EXPECT_TRUE(same_bits<double>(gR.fetch(g).view(), R.view()));
        multiply_upper<double, T>(g, gR.view(), gR.view(), gP.view(), certificate.view());
        EXPECT_TRUE(same_bits<T>(gP.fetch(g).view(), A.view().row_block({0, n})));
    }
    EXPECT_EQ(read_certificate(g, certificate.view()).reason, Certificate::Unusable);
}

/// X := A P R⁻¹ in place has the bits of (A P) R⁻¹, whichever kernel solves.
TYPED_TEST(GpuPrimitive, SolvesForPermutedColumns) {
    using T = TypeParam;
    auto& g = this->gpu();
    for (auto [m, n] : {std::pair<Index, Index>{300, 7},
                        {333, 40},
                        {1, 70},
                        {333, 70},
                        {2117, 129},
                        {5000, 192},
                        {60447, 128},
                        {36267, 191},
                        {3000, 200}}) {
        SCOPED_TRACE(shape_name(m, n));
        const Matrix<T> A = random_normal<T>(m, n, 1);
        const Matrix<double> R = this->widened(this->triangle(n).view());
        Matrix<Index> order(n, 1);
        for (Index j = 0; j < n; ++j) order(j, 0) = j;
        std::shuffle(order.data(), order.data() + n, std::mt19937(7));
        Matrix<T> AP(m, n);
        for (Index j = 0; j < n; ++j) std::copy_n(A.view().at(0, order(j, 0)), m, AP.view().at(0, j));
        GpuPadded<T> gA(g, A.view()), gAP(g, AP.view());
        GpuPadded<double> gR(g, R.view());
        const auto g_order = device_copy_of<Index, Cuda>(g, order.view());
        const std::array<MatrixView<const double, Cuda>, 1> factor{gR.view()};
        Matrix<Certificate, Cuda> certificate(g, 1, 1);
        const auto solve = [&](GpuPadded<T>& X, MatrixView<const Index, Cuda> P, const Certificate& state) {
            write_certificate(g, certificate.view(), state);
            solve_and_gram<T>(g, X.view(), factor, X.view(), {}, certificate.view(), P);
            return X.fetch(g);
        };
        Certificate refused;
        refused.refuse(0, Certificate::Pivot, 0);
        EXPECT_TRUE(same_bits<T>(solve(gA, g_order.view(), refused).view(), A.view()));
        EXPECT_TRUE(same_bits<T>(solve(gA, g_order.view(), {}).view(), solve(gAP, {}, {}).view()));
    }
}

TYPED_TEST(GpuPrimitive, PivotsOfGramMatricesAreTheHosts) {
    auto& g = this->gpu();
    const Index most = max_pivoted_gram(g);
    for (Index n : {Index(1), Index(2), Index(31), Index(32), Index(33), Index(100), most - 1, most}) {
        for (const double bad : {1.0, 0.0, std::numeric_limits<double>::quiet_NaN()}) {
            SCOPED_TRACE(fmt::format("{} {}", n, bad));
            Matrix<double> G = this->gram(n);
            // sizes that are clearly apart; one row and column of zeros, or of NaN
            for (Index j = 0; j < n; ++j) {
                for (Index i = 0; i <= j; ++i) {
                    G(i, j) = std::ldexp(G(i, j), static_cast<int>(5 * i % 13 + 5 * j % 13));
                    if (i == n / 2 || j == n / 2) G(i, j) *= bad;
                }
            }
            GpuPadded<double> gG(g, G.view());
            Matrix<Index> order(n, 1);
            Matrix<Index, Cuda> g_order(g, n, 1);
            pivot_gram<double>(g, gG.view(), g_order.view());
            pivot_gram<double>(this->host, G.view(), order.view());
            const Matrix<Index> found = host_copy_of<Index, Cuda>(g, g_order.view());
            EXPECT_TRUE(std::is_permutation(found.data(), found.data() + n, order.data()));
            if (bad != 1) continue;
            EXPECT_TRUE(std::equal(found.data(), found.data() + n, order.data()));
            const Matrix<double> PGP = gG.fetch(g);
            for (Index j = 0; j < n; ++j) {
                for (Index i = 0; i <= j; ++i) ASSERT_EQ(PGP(i, j), G(i, j)) << i << " " << j;
            }
        }
    }
}

TYPED_TEST(GpuPrimitive, InverseNorm) {
    using T = TypeParam;
    for (Index n : {1, 33, 192}) {
        SCOPED_TRACE(n);
        Matrix<T> LU = this->triangle(n);
        for (Index j = 0; j < n; ++j) {
            for (Index i = j + 1; i < n; ++i) LU(i, j) = LU(j, i);
        }
        GpuPadded<T> gLU(this->gpu(), LU.view());
        // the host's is an estimate from below
        const double on_host = inverse_norm_estimate<T>(this->host, LU.view());
        const double on_gpu = inverse_norm_estimate<T>(this->gpu(), gLU.view());
        EXPECT_GE(on_gpu, 0.99 * on_host);
        EXPECT_LE(on_gpu, 3 * on_host);
    }
}

TYPED_TEST(GpuPrimitive, TrianglesAndSignedLu) {
    using T = TypeParam;
    for (Index n : {0, 1, 2, 31, 32, 33, 64, 100, 192}) {
        SCOPED_TRACE(n);
        const Matrix<T> S = this->triangle(n, 3);
        Matrix<T> R = this->triangle(n, 4), X = random_normal<T>(n, 37, 6);
        GpuPadded<T> gS(this->gpu(), S.view()), gR(this->gpu(), R.view());
        GpuPadded<double> g_wide(this->gpu(), n, n);
        multiply_upper<T, double>(this->gpu(), {}, gR.view(), g_wide.view());
        EXPECT_TRUE(same_bits<double>(g_wide.fetch(this->gpu()).view(), this->widened(R.view()).view()));
        multiply_upper<T>(this->gpu(), gS.view(), gR.view(), gR.view());
        multiply_upper<T>(this->host, S.view(), R.view(), R.view());
        const Matrix<T> SR = gR.fetch(this->gpu());
        EXPECT_TRUE(is_upper_trapezoidal<T>(SR.view()));
        this->expect_close(SR, R, n, "S R");
        for (Triangle triangle : {Triangle::Upper, Triangle::UnitLower})
            for (Op op : {Op::None, Op::Transpose}) {
                const Matrix<T> A = triangle == Triangle::Upper ? copy<T>(S.view()) : transposed<T>(S.view());
                Matrix<T> Y = copy<T>(X.view());
                GpuPadded<T> gA(this->gpu(), A.view()), gY(this->gpu(), X.view());
                solve_triangle<T>(this->gpu(), triangle, op, gA.view(), gY.view());
                solve_triangle<T>(this->host, triangle, op, A.view(), Y.view());
                this->expect_close(gY.fetch(this->gpu()), Y, n, "solve_triangle");
            }
        Matrix<T> Q = generate<T>(Gallery::Orthogonal, n, n, 9), signs(n, 1);
        GpuPadded<T> gQ(this->gpu(), Q.view()), g_signs(this->gpu(), n, 1);
        signed_lu<T>(this->gpu(), gQ.view(), g_signs.view());
        signed_lu<T>(this->host, Q.view(), signs.view());
        EXPECT_TRUE(same_bits<T>(g_signs.fetch(this->gpu()).view(), signs.view()));
        this->expect_close(gQ.fetch(this->gpu()), Q, 4 * n, "L and U");
    }
}

/// Against the host's steps, Q = A Y⁻¹ being the top of an orthonormal basis, in place where there is no Y; with a
/// refused certificate nothing, and where (Q − S)⁻¹ has grown only the refusal.
TYPED_TEST(GpuPrimitive, ReconstructTop) {
    using T = TypeParam;
    auto& g = this->gpu();
    for (Index n : {1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 97, 100, 119, 127, 128}) {
        for (bool with_y : {false, true}) {
            SCOPED_TRACE(std::to_string(n) + (with_y ? ", Y" : ", in place"));
            const Matrix<T> basis = generate<T>(Gallery::Orthogonal, n + 40, n, 9), R = this->triangle(n);
            Matrix<T> A = copy<T>(basis.view().row_block({0, n})), LU = copy<T>(A.view()), SR = copy<T>(R.view());
            Matrix<T> U(n, n), Tf(n, n), signs(n, 1);
            signed_lu<T>(this->host, LU.view(), signs.view());
            copy_triangle<T>(this->host, LU.view(), U.view());
            reconstruct_t<T>(this->host, LU.view(), copy<T>(U.view()).view(), signs.view(), Tf.view());
            flip_rows<T>(this->host, signs.view(), SR.view());
            store_triangle<T>(this->host, SR.view(), LU.view());
            // A = Q Y
            const Matrix<double> Y = this->widened(this->triangle(n, 5).view());
            if (with_y) {
                for (Index i = 0; i < n; ++i) {
                    for (Index j = n; j-- > 0;) {
                        double sum = 0;
                        for (Index l = 0; l <= j; ++l) sum += A(i, l) * Y(l, j);
                        A(i, j) = static_cast<T>(sum);
                    }
                }
            }
            GpuPadded<T> gA(g, A.view()), gV(g, n, n), gR(g, R.view()), gT(g, n, n), g_signs(g, n, 1);
            GpuPadded<double> gU(g, n, n), gY(g, Y.view());
            Matrix<Certificate, Cuda> state(g, 1, 1);
            auto& V = with_y ? gV : gA;
            const auto step = [&](double limit) {
                reconstruct_top<T>(g, gA.view(), with_y ? gY.view() : MatrixView<double, Cuda>{}, limit, gR.view(),
                                   V.view(), gT.view(), gU.view(), g_signs.view(), state.view());
                return read_certificate(g, state.view()).reason;
            };
            const Matrix<T> before = V.fetch(g);
            write_certificate(g, state.view(), {.reason = Certificate::Pivot});
            EXPECT_EQ(step(1e30), Certificate::Pivot);
            write_certificate(g, state.view(), {});
            EXPECT_EQ(step(0.25), Certificate::Growth) << "‖Q − S‖₂ <= 2";
            EXPECT_TRUE(same_bits<T>(V.fetch(g).view(), before.view()));
            EXPECT_TRUE(same_bits<T>(gR.fetch(g).view(), R.view()));
            write_certificate(g, state.view(), {});
            EXPECT_EQ(step(8 * std::sqrt(double(n))), Certificate::Valid);
            EXPECT_TRUE(same_bits<T>(g_signs.fetch(g).view(), signs.view()));
            this->expect_close(V.fetch(g), LU, 4 * n, "L below S R");
            this->expect_close(gR.fetch(g), SR, 1, "S R");
            const Matrix<T> T_found = gT.fetch(g), U_found = this->rounded(gU.fetch(g));
            EXPECT_TRUE(is_upper_trapezoidal<T>(T_found.view()));
            Matrix<T> upper(n, n);
            copy_triangle<T>(this->host, U_found.view(), upper.view());
            this->expect_close(upper, U, 4 * n, "U");
            this->expect_close(T_found, Tf, 4 * n, "T");
        }
    }
    const Index n = 64;
    const Matrix<T> Q = generate<T>(Gallery::OrthogonalGrowth, n, n);
    GpuPadded<T> gQ(g, Q.view()), gR(g, this->triangle(n).view()), gT(g, n, n), g_signs(g, n, 1);
    GpuPadded<double> gU(g, n, n);
    Matrix<Certificate, Cuda> state(g, 1, 1);
    write_certificate(g, state.view(), {});
    reconstruct_top<T>(g, gQ.view(), {}, 8 * std::sqrt(double(n)), gR.view(), gQ.view(), gT.view(), gU.view(),
                       g_signs.view(), state.view());
    EXPECT_EQ(read_certificate(g, state.view()).reason, Certificate::Growth);
    EXPECT_TRUE(same_bits<T>(gQ.fetch(g).view(), Q.view()));
}

TYPED_TEST(GpuPrimitive, SolveAndGram) {
    using T = TypeParam;
    for (auto [m, n] : tall_shapes) {
        if (quick() && m > 700) continue;
        SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n));
        const Matrix<T> A = random_normal<T>(m, n, 1), R1 = this->triangle(n, 2), R2 = this->triangle(n, 3);
        for (int count : {0, 1, 2})
            for (bool keep : {false, true})
                for (bool want_gram : {false, true})
                    for (bool in_place : {false, true}) {
                        if (in_place && !keep) continue;
                        SCOPED_TRACE(std::to_string(count) + " factors" + (keep ? ", X" : "") +
                                     (want_gram ? ", G" : ""));
                        GpuPadded<T> gA(this->gpu(), A.view()), gX(this->gpu(), m, n);
                        GpuPadded<double> gG(this->gpu(), n, n), g1(this->gpu(), this->widened(R1.view()).view()),
                            g2(this->gpu(), this->widened(R2.view()).view());
                        const std::array<MatrixView<const T>, 2> factors{R1.view(), R2.view()};
                        const std::array<MatrixView<const double, Cuda>, 2> g_factors{g1.view(), g2.view()};
                        Matrix<T> X(m, n), G(n, n);
                        solve_and_gram<T>(this->host, A.view(), std::span(factors).first(count),
                                          keep ? X.view() : MatrixView<T>{}, want_gram ? G.view() : MatrixView<T>{});
                        auto& to = in_place ? gA : gX;
                        solve_and_gram<T>(this->gpu(), gA.view(), std::span(g_factors).first(count),
                                          keep ? to.view() : MatrixView<T, Cuda>{},
                                          want_gram ? gG.view() : MatrixView<double, Cuda>{});
                        if (keep) this->expect_close(to.fetch(this->gpu()), X, 2 * n, "X");
                        if (want_gram) {
                            const Matrix<T> found = this->rounded(gG.fetch(this->gpu()));
                            EXPECT_TRUE(is_upper_trapezoidal<T>(found.view()));
                            this->expect_close(found, G, 4 * n, "G");
                        }
                    }
    }
}

/// Every width of tile and both sides of each, rows for several rounds of every warp, in place with G over the factor:
/// close to the host's and the same bits again.
TYPED_TEST(GpuPrimitive, SolveAndGramInEveryTile) {
    using T = TypeParam;
    auto& g = this->gpu();
    std::vector<std::pair<Index, Index>> shapes = {{40003, 8}, {70011, 64}, {30007, 100}, {30007, 192}};
    if (quick()) shapes.clear();
    for (Index n : {1,  2,  3,  4,  5,  6,  7,  8,   9,   16,  17,  24,  25,  32,  33,  40,  41,  48,  49,  56, 57,
                    63, 64, 65, 80, 81, 96, 97, 112, 113, 128, 129, 144, 145, 160, 161, 176, 177, 191, 192, 193}) {
        shapes.push_back({211, n});
        if (!quick()) shapes.push_back({3001, n});
    }
    // several blocks of columns
    for (Index n : {257, 385, 600}) shapes.push_back({701, n});
    for (auto [m, n] : shapes) {
        SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n));
        // columns at every scale whose square is a number
        Matrix<T> A = random_normal<T>(m, n, 1), R = this->triangle(n), X(m, n);
        Matrix<int> exponents(n, 1);
        const int range = std::is_same_v<T, float> ? 40 : 400;
        for (Index j = 0; j < n; ++j) exponents(j, 0) = static_cast<int>(j * 7 % 16 - 8) * range / 8;
        scale_columns<T>(this->host, exponents.view(), 1, Part::All, A.view());
        scale_columns<T>(this->host, exponents.view(), 1, Part::Upper, R.view());
        Matrix<T> first_X;
        Matrix<double> first_G;
        for (int time = 0; time < 2; ++time) {
            GpuPadded<T> gA(g, A.view(), m % 4);
            GpuPadded<double> gR(g, this->widened(R.view()).view(), 1);
            solve_and_gram<T>(g, gA.view(), std::array<MatrixView<const double, Cuda>, 1>{gR.view()}, gA.view(),
                              gR.view());
            Matrix<T> gX = gA.fetch(g);
            Matrix<double> gG = gR.fetch(g);
            if (time > 0) {
                EXPECT_TRUE(same_bits<T>(gX.view(), first_X.view()) && same_bits<double>(gG.view(), first_G.view()));
            }
            first_X = std::move(gX);
            first_G = std::move(gG);
        }
        solve_and_gram<T>(this->host, A.view(), std::array<MatrixView<const T>, 1>{R.view()}, X.view(), R.view());
        this->expect_close(first_X, X, 2 * n, "X");
        this->expect_close(this->rounded(first_G), R, 4 * n, "G");
    }
}

/// Row-major matrices give the bits of column-major ones whose columns are aligned.
TYPED_TEST(GpuPrimitive, RowMajorMatricesAreReadWhereTheyAre) {
    using T = TypeParam;
    auto& g = this->gpu();
    for (Index n : {1, 3, 8, 9, 33, 50, 64, 65, 100, 192, 200, 257}) {
        for (Index m : {1, 211, 5003}) {
            SCOPED_TRACE(shape_name(m, n));
            const Matrix<T> A = random_normal<T>(m, n, 1), At = transposed<T>(A.view());
            GpuPadded<T> gA(g, A.view(), 7 - (m + 3) % 4), gAt(g, At.view(), 2);
            GpuPadded<double> gR(g, this->widened(this->triangle(n).view()).view(), 1);
            const MatrixView<const double, Cuda> R = gR.view();
            const InputView<T, Cuda> columns = gA.view(),
                                     rows = RowMajorView<const T, Cuda>{gAt.view().data, m, n, gAt.view().ld};
            for (const std::span factors : {std::span<const MatrixView<const double, Cuda>>(), std::span(&R, 1)}) {
                for (const bool stores_x : {false, true}) {
                    std::array<Matrix<T>, 2> X;
                    std::array<Matrix<double>, 2> G;
                    for (int i = 0; i < 2; ++i) {
                        GpuPadded<T> gX(g, m, n);
                        GpuPadded<double> gG(g, n, n);
                        solve_and_gram<T>(g, i == 0 ? columns : rows, factors,
                                          stores_x ? gX.view() : MatrixView<T, Cuda>(), gG.view());
                        if (stores_x) X[i] = gX.fetch(g);
                        G[i] = gG.fetch(g);
                    }
                    EXPECT_TRUE(same_bits<T>(X[1].view(), X[0].view()));
                    EXPECT_TRUE(same_bits<double>(G[1].view(), G[0].view()));
                }
            }
            std::array<Matrix<int>, 2> exponents;
            std::array<bool, 2> scaled;
            for (int i = 0; i < 2; ++i) {
                Matrix<int, Cuda> e(g, n, 1);
                Matrix<Scan, Cuda> found(g, 1, 1);
                scan<T>(g, i == 0 ? columns : rows, 0, e.view(), found.view());
                exponents[i] = host_copy_of<int, Cuda>(g, e.view());
                scaled[i] = read_scan(g, std::as_const(found).view()).scaled;
            }
            EXPECT_EQ(scaled[0], scaled[1]);
            EXPECT_TRUE(std::equal(exponents[0].data(), exponents[0].data() + n, exponents[1].data()));
        }
    }
}

/// |A − X R| <= c n u |X||R| entry by entry for A = X₀ R, also where blocks on R's diagonal magnify what their explicit
/// inverses leave: |R⁻¹||R| has 10⁶ here.
TYPED_TEST(GpuPrimitive, SolveLeavesTheResidualOfSubstitution) {
    using T = TypeParam;
    auto& g = this->gpu();
    for (Index n : {8, 24, 64, 65, 100, 192, 200, 400}) {
        SCOPED_TRACE(n);
        const Index m = 333;
        Matrix<double> R = this->widened(this->triangle(n).view());
        for (Index j : {n - 1, n - 2, n / 2}) R(j, j) = 1e-3;
        for (Index j : {n - 1, n - 2}) R(j - 1, j) = 1;
        const Matrix<T> A = this->product(random_normal<T>(m, n, 1), R);
        GpuPadded<T> gA(g, A.view()), gX(g, m, n);
        GpuPadded<double> gR(g, R.view());
        solve_and_gram<T>(g, gA.view(), std::array<MatrixView<const double, Cuda>, 1>{gR.view()}, gX.view(), {});
        EXPECT_LE(this->residual_of_solve(A, gX.fetch(g), R),
                  2 * static_cast<double>(n) * std::numeric_limits<T>::epsilon());
    }
}

/// κ_F of an upper triangular R with columns scaled to norms of 1.
double scaled_condition(const Matrix<double>& of) {
    Context<Host> host;
    const Index n = of.rows();
    Matrix<double> R = copy<double>(of.view());
    for (Index j = 0; j < n; ++j) {
        const double norm = frobenius_norm<double>(R.view().col_block({j, j + 1}));
        for (Index i = 0; i <= j; ++i) R(i, j) /= norm;
    }
    Matrix<double> inverse = identity<double>(n);
    solve_triangle<double>(host, Triangle::Upper, Op::None, R.view(), inverse.view());
    return std::sqrt(static_cast<double>(n)) * frobenius_norm<double>(inverse.view());
}

/// Solves after a certificate: in f32 by halves where it knows the condition, or bounds it, which it can of a nearly
/// diagonal R; in place or not, with columns and entries of every size.
TYPED_TEST(GpuPrimitive, SolveBehindACertificate) {
    using T = TypeParam;
    auto& g = this->gpu();
    const int range = std::is_same_v<T, float> ? 40 : 400;
    for (Index n : {65, 80, 100, 127, 128, 161, 192, 193, 200, 255, 256, 257}) {
        SCOPED_TRACE(n);
        for (Index m : {Index(333), Index(60447)}) {
            if (m > 333 && n != 128 && n != 192) continue;
            Matrix<T> X0 = random_normal<T>(m, n, 1);
            for (Index i = 0; i < m; ++i) {
                for (Index j = 0; j < n; ++j) X0(i, j) = std::ldexp(X0(i, j), -3 - static_cast<int>((i + j) % 23));
            }
            const double width = static_cast<double>(n);
            for (const bool nearly_diagonal : {false, true}) {
                Matrix<double> R = this->widened(this->triangle(n).view());
                for (Index j = 0; j < n; ++j) {
                    // ‖N‖_F is about 0.5 then
                    for (Index i = 0; i < j && nearly_diagonal; ++i) R(i, j) *= 1.4 / std::sqrt(width);
                    double square = 0;
                    for (Index i = 0; i <= j; ++i) square += R(i, j) * R(i, j);
                    for (Index i = 0; i <= j; ++i)
                        R(i, j) = std::ldexp(R(i, j) / std::sqrt(square), static_cast<int>(j * 7 % 16 - 8) * range / 8);
                }
                const Matrix<T> A = this->product(X0, R);
                for (const double known : {-1.0, 1.5 * width}) {
                    if (nearly_diagonal && known > 0) continue;
                    Matrix<Certificate, Cuda> certificate(g, 1, 1);
                    write_certificate(g, certificate.view(), {.factor_condition = known});
                    GpuPadded<T> gA(g, A.view(), m % 4), gX(g, m, n, 1);
                    GpuPadded<double> gR(g, R.view(), 1);
                    const std::array<MatrixView<const double, Cuda>, 1> factor{gR.view()};
                    solve_and_gram<T>(g, gA.view(), factor, gX.view(), {}, certificate.view());
                    const Matrix<T> X = gX.fetch(g);
                    // what halves cannot hold of an entry is below 2⁻²³ of the columns' norms, 1
                    EXPECT_LE(this->residual_of_solve(A, X, R, 0x1p-13),
                              2 * static_cast<double>(n) * std::numeric_limits<T>::epsilon());
                    solve_and_gram<T>(g, gA.view(), factor, gA.view(), {}, certificate.view());
                    EXPECT_TRUE(same_bits<T>(gA.fetch(g).view(), X.view()));
                    const double found = read_certificate(g, certificate.view()).factor_condition;
                    const bool bounds =
                        std::is_same_v<T, float> && (m > 333 || n > 192) && n <= 256 && has_products_of_warpgroups();
                    if (bounds && known < 0) {
                        EXPECT_GE(found, scaled_condition(R));
                        // beyond, the solve is in f64
                        EXPECT_EQ(found <= 2 * width, nearly_diagonal) << found;
                    } else {
                        EXPECT_LE(found, known);
                    }
                }
            }
        }
    }
}

/// In f64 whatever T is.
TYPED_TEST(GpuPrimitive, SketchIsThatOfTheHost) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{1, 1},
                        {33, 8},
                        {1023, 40},
                        {1025, 65},
                        {70001, 33},
                        {9000, 192},
                        {5000, 256},
                        {3000, 700}}) {
        if (quick() && m * n > 100000) continue;
        SCOPED_TRACE(shape_name(m, n));
        const Matrix<T> A = random_normal<T>(m, n, 5);
        const Matrix<double> wide = this->widened(A.view());
        for (const Index rows : {std::min(m, sketch_rows(n)), sketch_rows(n), sketch_rows(n / 8 + 1)}) {
            Matrix<double> B(rows, n);
            sketch<double>(this->host, wide.view(), 2, B.view());
            GpuPadded<T> gA(this->gpu(), A.view());
            GpuPadded<double> gB(this->gpu(), rows, n);
            sketch<T>(this->gpu(), gA.view(), 2, gB.view());
            const Matrix<double> found = gB.fetch(this->gpu());
            EXPECT_LE(difference<double>(found.view(), B.view(), n, frobenius_norm<double>(B.view())), law);
        }
    }
}

TYPED_TEST(GpuPrimitive, PerturbationIsThatOfTheHost) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{1, 1}, {70, 70}, {3001, 133}})
        for (const Perturbation W : {Perturbation::Identity, Perturbation::Signs}) {
            SCOPED_TRACE(shape_name(m, n));
            Matrix<T> R(n, n);  // of columns whose norms are powers of two
            Matrix<double> wide(n, n);
            for (Index j = 0; j < n; ++j) {
                for (Index i = 0; i < n; ++i) {
                    wide(i, j) = R(i, j) = i == j / 2 ? std::ldexp(T(1), static_cast<int>(j % 7) - 3) : T(0);
                }
            }
            Matrix<T> A = random_normal<T>(m, n, 5);
            GpuPadded<T> gA(this->gpu(), A.view());
            perturb<T>(this->host, W, 0.25, R.view(), 3, A.view());
            perturb<T>(this->gpu(), W, 0.25, copy_to_device<double>(this->gpu(), wide.view()).view(), 3, gA.view());
            EXPECT_TRUE(same_bits<T>(gA.fetch(this->gpu()).view(), A.view()));
        }
}

TYPED_TEST(GpuPrimitive, ColumnsOfZerosAreFilledAsOnTheHost) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{1, 1}, {70, 70}, {10001, 133}}) {
        SCOPED_TRACE(shape_name(m, n));
        Matrix<T> A = filled<T>(m, n, T(0));
        for (Index j = 0; j < n; j += 3) A(j * 37 % m, j) = std::numeric_limits<T>::denorm_min();
        GpuPadded<T> gA(this->gpu(), A.view());
        Matrix<int> e(n, 1);
        Matrix<int, Cuda> ge(this->gpu(), n, 1);
        fill_zero_columns<T>(this->host, 0.25, 3, A.view(), e.view());
        fill_zero_columns<T>(this->gpu(), 0.25, 3, gA.view(), ge.view());
        EXPECT_TRUE(same_bits<T>(gA.fetch(this->gpu()).view(), A.view()));
        scale_columns<T>(this->gpu(), ge.view(), 1, Part::All, gA.view());
        for (Index j = 0; j < n; ++j) {
            if (j % 3 != 0) std::fill_n(A.view().at(0, j), m, T(0));
        }
        EXPECT_EQ(difference<T>(gA.fetch(this->gpu()).view(), A.view(), 1, 1), 0);
    }
}

TYPED_TEST(GpuPrimitive, Products) {
    using T = TypeParam;
    for (auto [m, n] : tall_shapes)
        for (Index p : {1, 70}) {
            if (quick() && m > 700) continue;
            SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + " " + std::to_string(p));
            const Matrix<T> A = random_normal<T>(m, n, 1), B = random_normal<T>(m, p, 2), W = random_normal<T>(n, p, 3);
            Matrix<T> C(n, p), D = copy<T>(B.view());
            GpuPadded<T> gA(this->gpu(), A.view()), gB(this->gpu(), B.view()), gW(this->gpu(), W.view());
            GpuPadded<T> gC(this->gpu(), n, p);
            multiply_transposed<T>(this->gpu(), gA.view(), gB.view(), gC.view());
            multiply_transposed<T>(this->host, A.view(), B.view(), C.view());
            subtract_product<T>(this->gpu(), gA.view(), gW.view(), gB.view());
            subtract_product<T>(this->host, A.view(), W.view(), D.view());
            const double scale = frobenius_norm<T>(A.view()) * std::sqrt(double(p));
            this->expect_close(gC.fetch(this->gpu()), C, 2, scale * std::sqrt(double(m)), "AᵀB");
            this->expect_close(gB.fetch(this->gpu()), D, n, scale, "C − AB");
        }
}

TYPED_TEST(GpuPrimitive, PanelsAreThoseOfTheHost) {
    using T = TypeParam;
    for (auto [m, n] : tall_shapes) {
        if (quick() && m > 700) continue;
        SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n));
        Matrix<T> A = random_normal<T>(m, n, 1), Tf(n, n);
        GpuPadded<T> gA(this->gpu(), A.view()), gT(this->gpu(), n, n);
        factor_panel<T>(this->gpu(), gA.view(), gT.view());
        factor_panel<T>(this->host, A.view(), Tf.view());
        // a random matrix that is tall is well conditioned; a square one is not
        if (m >= 2 * n) {
            this->expect_close(gA.fetch(this->gpu()), A, 4 * n, "V and R");
            this->expect_close(gT.fetch(this->gpu()), Tf, 4 * n, "T");
        }
        EXPECT_TRUE(is_upper_trapezoidal<T>(gT.fetch(this->gpu()).view()));
        const Matrix<T> V = gA.fetch(this->gpu()), G = gT.fetch(this->gpu());

        for (Index p : {Index(1), Index(77), n > cuda::triangle_block ? cuda::min_cols_by_blocks + 5 : 300})
            for (Op op : {Op::None, Op::Transpose}) {
                Matrix<T> C = random_normal<T>(m, p, 2);
                GpuPadded<T> gC(this->gpu(), C.view());
                apply_panel<T>(this->gpu(), op, gA.view(), gT.view(), gC.view());
                apply_panel<T>(this->host, op, V.view(), G.view(), C.view());
                this->expect_close(gC.fetch(this->gpu()), C, n, "H C");
            }
        Matrix<T> tau(n, 1), rebuilt(n, n);
        copy_diagonal<T>(this->host, G.view(), tau.view());
        GpuPadded<T> g_tau(this->gpu(), tau.view()), g_rebuilt(this->gpu(), n, n);
        compact_wy<T>(this->gpu(), gA.view(), g_tau.view(), g_rebuilt.view());
        compact_wy<T>(this->host, V.view(), tau.view(), rebuilt.view());
        this->expect_close(g_rebuilt.fetch(this->gpu()), rebuilt, 4 * n, "T from tau");

        Matrix<T> Q = copy<T>(V.view());
        GpuPadded<T> gQ(this->gpu(), V.view());
        form_panel<T>(this->gpu(), gQ.view(), gT.view());
        form_panel<T>(this->host, Q.view(), G.view());
        const Matrix<T> found = gQ.fetch(this->gpu());
        this->expect_close(found, Q, n, "H [I; 0]");
        if (n > 0) {
            EXPECT_LE(orthogonality_error<T>(found.view(), n), law);
        }
    }
}

using GpuCorrected = GpuPrimitive<float>;

TEST_F(GpuCorrected, UpdatesAreAsAccurateAsNativeOnes) {
    // graded: entries of V and of each column of C from 1 to 2⁻³⁰; spike: one entry of C above all others
    enum Kind { Normal, Graded, Spike };
    // with columns at multiples of 16 bytes and not
    for (auto [m, k, p, padding] :
         {std::array<Index, 4>{1024, 64, 1024, 3}, {1500, 128, 1030, 4}, {2055, 200, 1100, 1}, {4099, 256, 2100, 3}})
        for (Kind kind : {Normal, Graded, Spike})
            for (Op op : {Op::None, Op::Transpose}) {
                if (quick() && m > 1024) continue;
                SCOPED_TRACE(testing::Message() << m << "x" << k << " on " << p << ", kind " << kind);
                Matrix<float> A = random_normal<float>(m, k, 1), C = random_normal<float>(m, p, 2), Tf(k, k);
                for (Index j = 0; j < p; ++j) {
                    for (Index i = 0; i < m; ++i) {
                        if (kind == Graded) C(i, j) *= std::ldexp(1.0f, -30 * i / m);
                        if (kind == Spike) C(i, j) *= i == (7 * j) % m ? 1e6f : 1.0f;
                    }
                    double norm = 0;
                    for (Index i = 0; i < m; ++i) norm += double(C(i, j)) * C(i, j);
                    for (Index i = 0; i < m; ++i) C(i, j) *= std::ldexp(1.0f, -std::ilogb(std::sqrt(norm)));
                }
                for (Index j = 0; j < k && kind == Graded; ++j) {
                    for (Index i = 0; i < m; ++i) A(i, j) *= std::ldexp(1.0f, -30 * i / m);
                }
                factor_panel<float>(host, A.view(), Tf.view());
                Matrix<double> exact = widened(C.view());
                apply_panel<double>(host, op, widened(A.view()).view(), widened(Tf.view()).view(), exact.view());
                GpuPadded<float> gV(gpu(), A.view()), gT(gpu(), Tf.view());
                double error[2];
                for (Arithmetic arithmetic : {Arithmetic::Native, Arithmetic::Corrected}) {
                    GpuPadded<float> gC(gpu(), C.view(), padding);
                    apply_panel<float>(gpu(), op, gV.view(), gT.view(), gC.view(), arithmetic);
                    error[arithmetic == Arithmetic::Corrected] = column_error(gC.fetch(gpu()).view(), exact.view());
                }
                // products_by_halves.hpp; without one of the three products it is 2000 and more
                EXPECT_LE(error[1], 2 * error[0] + 16) << error[0];
                EXPECT_GT(error[1], 0);
            }
}

class GpuArithmetic : public GpuPrimitive<float> {
protected:
    void SetUp() override {
        GpuPrimitive<float>::SetUp();
        if (has_plain_kernels()) GTEST_SKIP() << "plain kernels have no corrected products";
    }

    struct Law {
        Arithmetic arithmetic;
        double u;
        const char* name;
    };
    static constexpr Law laws[] = {{Arithmetic::Native, 0x1p-24, "native"},
                                   {study::TF32, 0x1p-10, "tf32"},  // cut off, not rounded
                                   {Arithmetic::FP16, 0x1p-11, "fp16"},
                                   {study::BF16, 0x1p-8, "bf16"},
                                   {Arithmetic::Corrected, 0x1p-24, "corrected"}};

    /// Rounding errors of products act independently: |Δ| <= λ u ‖x∘y‖ for a sum of products of the entries of x and
    /// y, which is eight standard deviations or more. Errors of k sums one after the other add √(k/2) times as much
    /// in f32. A run of h corrected products also loses h/24 u of its own size, on the average, because the tensor
    /// cores cut off (products_by_halves.cu: h <= 2048); five standard deviations of it.
    static double most(const Law& law, Index k) {
        const double sums = law.arithmetic == Arithmetic::Corrected ? 5 * 2048 / 24 + 80 : 8 * std::sqrt(double(k) / 2);
        return 8 + (law.u > 0x1p-20 ? 0 : sums);
    }
    /// max |c_ij − d_ij| / √(s_ij), in units of u.
    static double max_error(const Matrix<float>& C, const Matrix<double>& D, const Matrix<double>& S, double u) {
        double largest = 0;
        for (Index at = 0; at < C.rows() * C.cols(); ++at) {
            raise(largest, std::abs(C.data()[at] - D.data()[at]) / (std::sqrt(S.data()[at]) * u));
        }
        return largest;
    }
    Matrix<double, Cuda> doubled(MatrixView<const float> A, bool squared) {
        Matrix<double> B = widened(A);
        if (squared) std::transform(B.data(), B.data() + A.rows * A.cols, B.data(), [](double x) { return x * x; });
        return copy_to_device<double>(gpu(), B.view());
    }
    /// AᵀB, or C − A B.
    Matrix<double> inner(const Matrix<float>& A, const Matrix<float>& B, bool squared) {
        Matrix<double, Cuda> C(gpu(), A.cols(), B.cols());
        multiply_transposed<double>(gpu(), doubled(A.view(), squared).view(), doubled(B.view(), squared).view(),
                                    C.view());
        return copy_to_host<double>(gpu(), C.view());
    }
    Matrix<double> outer(const Matrix<float>& A, const Matrix<float>& B, const Matrix<float>& C, bool squared) {
        Matrix<double, Cuda> D = doubled(C.view(), squared);
        if (squared) negate<double>(gpu(), D.view());
        subtract_product<double>(gpu(), doubled(A.view(), squared).view(), doubled(B.view(), squared).view(), D.view());
        if (squared) negate<double>(gpu(), D.view());
        return copy_to_host<double>(gpu(), D.view());
    }
    /// Columns of norms from 2^top √m down by 2⁶, one entry in a thousand 2⁶ times as large: the 2⁻³⁹ of the largest
    /// entry to which halves of f16 know the others are 2⁻²⁴ of the smallest column's.
    static Matrix<float> badly_scaled(Index m, Index n, int top, std::uint64_t seed) {
        Matrix<float> A = random_normal<float>(m, n, seed);
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) {
                A(i, j) = std::ldexp(A(i, j), top - int(j % 7) + ((i + 7 * j) % 997 == 0 ? 6 : 0));
            }
        }
        return A;
    }
};

TEST_F(GpuArithmetic, ProductsObeyTheLawOfEach) {
    // the last: too many parts for memory, and runs one after the other
    for (auto [m, n, p] :
         {std::array<Index, 3>{1000, 300, 257}, {4099, 256, 530}, {1030, 1500, 700}, {4099, 5200, 5300}})
        for (int top : {0, 40, -40}) {
            if ((quick() && m > 1000) || (n > 2000 && top != 0)) continue;
            SCOPED_TRACE(testing::Message() << m << "x" << n << " by " << p << ", 2^" << top);
            const Matrix<float> A = badly_scaled(m, n, top, 1), B = badly_scaled(m, p, -top, 2);
            const Matrix<float> E = random_normal<float>(n, p, 3), F = badly_scaled(m, p, top, 4);
            const Matrix<double> C = inner(A, B, false), C_scale = inner(A, B, true);
            const Matrix<double> D = outer(A, E, F, false), D_scale = outer(A, E, F, true);
            Matrix<double> twice = copy<double>(C.view());
            std::transform(twice.data(), twice.data() + n * p, twice.data(), [](double x) { return 2 * x; });
            GpuPadded<float> gA(gpu(), A.view()), gB(gpu(), B.view()), gE(gpu(), E.view());
            for (const Law& law : laws) {
                SCOPED_TRACE(law.name);
                GpuPadded<float> gC(gpu(), n, p), gD(gpu(), F.view());
                multiply_transposed<float>(gpu(), gA.view(), gB.view(), gC.view(), false, law.arithmetic);
                subtract_product<float>(gpu(), gA.view(), gE.view(), gD.view(), law.arithmetic);
                const double inner_error = max_error(gC.fetch(gpu()), C, C_scale, law.u);
                EXPECT_LE(inner_error, most(law, m)) << "AᵀB";
                EXPECT_GT(inner_error, law.u > 0x1p-20 ? 0.1 : 0) << "as good as a better one";
                EXPECT_LE(max_error(gD.fetch(gpu()), D, D_scale, law.u), most(law, n)) << "C − A B";
                multiply_transposed<float>(gpu(), gA.view(), gB.view(), gC.view(), true, law.arithmetic);
                EXPECT_LE(max_error(gC.fetch(gpu()), twice, C_scale, law.u), 2 * most(law, m)) << "C + AᵀB";
            }
        }
}

/// W − Q S of the S that is given back, and that S is QᵀW; a second time, when S is small enough to be rounded.
TEST_F(GpuArithmetic, ProjectionsObeyTheLawOfEach) {
    struct Case {
        Index m, k, p;
        double rounded, corrected;  // workspace for the halves of half of Q's columns, and not of all
    };
    for (const Case& c :
         {Case{1500, 300, 1100, 4.6e6, 1.6e7}, {2100, 1300, 260, 6e6, 3e7}, {5000, 1025, 1500, 2.5e7, 1.4e8}})
        for (const Law& law : laws) {
            const Index m = c.m, k = c.k, p = c.p;
            if (quick() && m > 1500) continue;
            SCOPED_TRACE(testing::Message() << m << "x" << k << " from " << p << ", " << law.name);
            Matrix<float> Q = random_normal<float>(m, k, 1), W = random_normal<float>(m, p, 2), Tf(k, k);
            factor_panel<float>(host, Q.view(), Tf.view());
            form_panel<float>(host, Q.view(), Tf.view());
            for (Index i = 0; i < m * p; ++i) W.data()[i] /= std::sqrt(float(m));
            GpuPadded<float> gQ(gpu(), Q.view());
            for (bool again : {false, true}) {
                GpuPadded<float> gW(gpu(), W.view()), gS(gpu(), k, p);
                if (again) limit_workspace(gpu(), law.arithmetic == Arithmetic::Corrected ? c.corrected : c.rounded);
                block_gram_schmidt_step<float>(gpu(), gQ.view(), gW.view(), gS.view(), law.arithmetic, again);
                limit_workspace(gpu(), 0);
                const Matrix<float> S = gS.fetch(gpu()), left = gW.fetch(gpu());
                EXPECT_LE(max_error(S, inner(Q, W, false), inner(Q, W, true), law.u), most(law, m)) << again;
                if (!again) {
                    EXPECT_LE(max_error(left, outer(Q, S, W, false), outer(Q, S, W, true), law.u), most(law, k));
                } else {
                    // ‖Δ‖_F <= 8u√p, or what the arithmetic leaves, and the rounding of W
                    const Matrix<double> exact = outer(Q, S, W, false);
                    double error = 0, taken = 0;
                    for (Index i = 0; i < m * p; ++i) error += std::pow(left.data()[i] - exact.data()[i], 2);
                    for (Index i = 0; i < k * p; ++i) taken += double(S.data()[i]) * S.data()[i];
                    const double rounded = 8 * 0x1p-24 * std::sqrt(double(p)),
                                 own = most(law, k) * law.u * std::sqrt(taken);
                    EXPECT_LE(std::sqrt(error), rounded + own + 0x1p-24 * std::sqrt(double(p)));
                }
                W = copy<float>(left.view());
            }
        }
}

/// Products with few columns: exact products, sums in f64, rounded once. On the other side of the rule, f32's own law.
class GpuFewColumns : public GpuArithmetic {
protected:
    static constexpr Index m = 70001;
    const Index max_cols = quick() ? 65 : 257;
    const Matrix<float> A = badly_scaled(m, max_cols, 40, 1), B = badly_scaled(m, 128, -40, 2);

    static Matrix<float> absolute(MatrixView<const float> X) {
        Matrix<float> Y = copy<float>(X);
        std::transform(Y.data(), Y.data() + X.rows * X.cols, Y.data(), [](float x) { return std::abs(x); });
        return Y;
    }
    /// max over |c_ij − d_ij| / (u|d_ij| + h 2⁻⁵² s_ij), where S = |A|ᵀ|B| or the like is a sum of h terms.
    static double rounding_error(const Matrix<float>& C, MatrixView<const double> D, MatrixView<const double> S,
                                 Index h) {
        double largest = 0;
        for (Index j = 0; j < C.cols(); ++j) {
            for (Index i = 0; i < C.rows(); ++i) {
                const double unit = 0x1p-24 * std::abs(D(i, j)) + double(h) * 0x1p-52 * S(i, j);
                raise(largest, std::abs(C(i, j) - D(i, j)) / unit);
            }
        }
        return largest;
    }
};

TEST_F(GpuFewColumns, InnerProducts) {
    auto& g = gpu();
    // of all columns at once
    for (Index rows : {m, Index(16384), Index(16383)}) {
        const Range these{m - rows, m};
        const Matrix<float> A_m = copy<float>(
                                A.view().block(these, {0, rows == m ? max_cols : std::min<Index>(max_cols, 192)})),
                            B_m = copy<float>(B.view().row_block(these));
        const Matrix<double> D = inner(A_m, B_m, false), S = inner(absolute(A_m.view()), absolute(B_m.view()), false);
        const Matrix<double> squares = inner(A_m, B_m, true);
        int turn = 0;
        for (Index k : {1, 31, 63, 64, 65, 97, 192, 256, 257})
            for (Index p : {1, 7, 97, 100, 104, 105, 128}) {
                if (k > A_m.cols() || (rows != m && (k < 63 || p != 100))) continue;
                // columns at multiples of 16 bytes, of 8, and of 4
                const Index padding = std::array<Index, 3>{3, 5, 4}[turn++ % 3];
                SCOPED_TRACE(testing::Message() << rows << "x" << k << " by " << p << ", padding " << padding);
                GpuPadded<float> gA(g, A_m.view().col_block({0, k}), padding),
                    gB(g, B_m.view().col_block({0, p}), padding);
                GpuPadded<float> gC(g, k, p);
                multiply_transposed<float>(g, gA.view(), gB.view(), gC.view());
                const Matrix<float> C = gC.fetch(g);
                const auto D_kp = D.view().block({0, k}, {0, p}), S_kp = S.view().block({0, k}, {0, p});
                if (cuda::choose_inner_product(rows, k, p, ScalarKind::F32, Arithmetic::Native, tuning_of(g).kernels) !=
                    cuda::ProductKernel::FewColumns) {
                    const Matrix<double> exact = copy<double>(D_kp),
                                         scale = copy<double>(squares.view().block({0, k}, {0, p}));
                    EXPECT_LE(max_error(C, exact, scale, 0x1p-24), most(laws[0], rows));
                    continue;
                }
                EXPECT_LE(rounding_error(C, D_kp, S_kp, rows), 1.0001);
                multiply_transposed<float>(g, gA.view(), gB.view(), gC.view(), true);
                Matrix<double> twice(k, p);
                for (Index j = 0; j < p; ++j) {
                    for (Index i = 0; i < k; ++i) twice(i, j) = double(C(i, j)) + D(i, j);
                }
                EXPECT_LE(rounding_error(gC.fetch(g), twice.view(), S_kp, rows), 1.0001) << "C + AᵀB";
                GpuPadded<float> again(g, k, p);
                multiply_transposed<float>(g, gA.view(), gB.view(), again.view());
                EXPECT_TRUE(same_bits<float>(again.fetch(g).view(), C.view())) << "a second time";
            }
    }
}

TEST_F(GpuFewColumns, Updates) {
    auto& g = gpu();
    int turn = 0;
    for (Index k : {1, 65, 192, 256, 257}) {
        if (k > max_cols) continue;
        const Matrix<float> A_k = copy<float>(A.view().col_block({0, k})), E = random_normal<float>(k, 128, 3);
        // C about as large as A E
        const Matrix<float> C = badly_scaled(m, 128, 40, 4);
        const Matrix<double> D = outer(A_k, E, C, false), squares = outer(A_k, E, C, true);
        // |C| + |A||E|
        Matrix<float> minus_e = absolute(E.view());
        std::transform(minus_e.data(), minus_e.data() + k * 128, minus_e.data(), [](float x) { return -x; });
        const Matrix<double> S = outer(absolute(A_k.view()), minus_e, absolute(C.view()), false);
        for (Index p : {1, 7, 64, 65, 73, 81, 97, 100, 104, 105, 128})
            for (Index rows : {m, Index(65536), Index(65535)}) {
                if (rows != m && p != 100) continue;
                const Index padding = std::array<Index, 3>{3, 5, 4}[turn++ % 3];
                SCOPED_TRACE(testing::Message() << rows << "x" << k << " by " << p << ", padding " << padding);
                const Range these{m - rows, m};
                GpuPadded<float> gA(g, A_k.view().row_block(these), padding), gE(g, E.view().col_block({0, p}));
                GpuPadded<float> gC(g, C.view().block(these, {0, p}), padding);
                subtract_product<float>(g, gA.view(), gE.view(), gC.view());
                const Matrix<float> found = gC.fetch(g);
                const auto exact = D.view().block(these, {0, p});
                if (cuda::choose_subtracted_product(rows, k, p, ScalarKind::F32, Arithmetic::Native,
                                                    tuning_of(g).kernels) == cuda::ProductKernel::FewColumns) {
                    EXPECT_LE(rounding_error(found, exact, S.view().block(these, {0, p}), k), 1.0001);
                } else {
                    const Matrix<double> scale = copy<double>(squares.view().block(these, {0, p}));
                    EXPECT_LE(max_error(found, copy<double>(exact), scale, 0x1p-24), most(laws[0], k));
                }
            }
    }
}

TYPED_TEST(GpuPrimitive, PanelsObeyTheLawOnEveryClass) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{700, 40}, {1500, 17}})
        for (Gallery matrix_class : gallery()) {
            if (quick() && m > 700) continue;
            SCOPED_TRACE(to_string(matrix_class));
            // columns at one scale, as the front of the library hands them on; rows may be graded
            Matrix<T> A = generate<T>(matrix_class, m, n);
            Matrix<int> exponents(n, 1);
            Matrix<Scan> found(1, 1);
            scan<T>(this->host, A.view(), 0, exponents.view(), found.view());
            scale_columns<T>(this->host, exponents.view(), -1, Part::All, A.view());
            GpuPadded<T> gQ(this->gpu(), A.view()), gT(this->gpu(), n, n), gR(this->gpu(), n, n);
            factor_panel<T>(this->gpu(), gQ.view(), gT.view());
            copy_triangle<T>(this->gpu(), gQ.view().row_block({0, n}), gR.view());
            form_panel<T>(this->gpu(), gQ.view(), gT.view());
            const Matrix<T> Q = gQ.fetch(this->gpu()), R = gR.fetch(this->gpu());
            EXPECT_LE(orthogonality_error<T>(Q.view(), n), law);
            EXPECT_LE(residual_error<T>(A.view(), Q.view(), R.view()), law);
            EXPECT_LE(column_residual_error<T>(A.view(), Q.view(), R.view()), law);
        }
}

TYPED_TEST(GpuPrimitive, LookAheadIsUpdateAndFactorization) {
    using T = TypeParam;
    for (auto [m, n, next, rest] : {std::array<Index, 4>{900, 64, 64, 300}, {700, 40, 33, 0}, {80, 40, 30, 10}}) {
        const Matrix<T> A = random_normal<T>(m, n, 1), C = random_normal<T>(m, next + rest, 2);
        GpuPadded<T> gV(this->gpu(), A.view()), gT(this->gpu(), n, n);
        GpuPadded<T> gC(this->gpu(), C.view()), gD(this->gpu(), C.view()), next_T(this->gpu(), next, next);
        GpuPadded<T> expected_T(this->gpu(), next, next);
        factor_panel<T>(this->gpu(), gV.view(), gT.view());
        apply_and_factor_next<T>(this->gpu(), gV.view(), gT.view(), gC.view(), next_T.view());
        apply_panel<T>(this->gpu(), Op::Transpose, gV.view(), gT.view(), gD.view().col_block({0, next}));
        apply_panel<T>(this->gpu(), Op::Transpose, gV.view(), gT.view(), gD.view().col_block({next, next + rest}));
        factor_panel<T>(this->gpu(), gD.view().block({n, m}, {0, next}), expected_T.view());
        EXPECT_TRUE(same_bits<T>(gC.fetch(this->gpu()).view(), gD.fetch(this->gpu()).view()));
        EXPECT_TRUE(same_bits<T>(next_T.fetch(this->gpu()).view(), expected_T.fetch(this->gpu()).view()));
    }
}

}  // namespace
}  // namespace quoin::test
