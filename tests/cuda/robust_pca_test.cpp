// Principal component pursuit on the GPU: each of its steps against the host's or against what defines it, and the
// pursuit against the host's.

#include "quoin/apps/robust_pca.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "devices.hpp"
#include "gallery.hpp"
#include "gpu.hpp"
#include "mixture.hpp"
#include "robust_pca/pursuit.hpp"
#include "svd_law.hpp"

namespace quoin::test {
namespace {

constexpr Index jacobi_cols = 128;  ///< beyond, the SVD of the Gram matrix is another's

template <class T>
class GpuPursuit : public OnGpu {
protected:
    static constexpr double u = unit_roundoff<T>;

    /// About two thirds ones, at places that no size of a block divides.
    static Matrix<std::uint8_t> mask(Index m, Index n) {
        Matrix<std::uint8_t> observed(m, n);
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) observed(i, j) = (7 * i + 11 * j) % 3 != 0;
        }
        return observed;
    }
    /// A with NaN where nothing is observed.
    static Matrix<T> masked(MatrixView<const T> A, const Matrix<std::uint8_t>& observed) {
        Matrix<T> B = copy<T>(A);
        for (Index j = 0; j < A.cols; ++j) {
            for (Index i = 0; i < A.rows; ++i) {
                if (!observed(i, j)) B(i, j) = std::numeric_limits<T>::quiet_NaN();
            }
        }
        return B;
    }
    Matrix<std::uint8_t, Cuda> to_gpu(const Matrix<std::uint8_t>& observed) {
        return copy_to_device<std::uint8_t>(gpu(), observed.view());
    }
    /// Sums of the same numbers in another order, or in T and not in double: of n terms that have an error of some u
    /// each.
    static void expect_sum(double of_gpu, double of_host, const char* what) {
        EXPECT_NEAR(of_gpu, of_host, 1e3 * u * std::abs(of_host) + 1e-300) << what;
    }
    void expect_close(const Matrix<T>& X, const Matrix<T>& Y, Index k, double scale, const char* what) {
        if (X.view().empty()) return;
        EXPECT_LE(difference<T>(X.view(), Y.view(), std::max<Index>(k, 1), scale), law) << what;
    }

    struct Decomposition {
        std::vector<T> s;
        Matrix<T> Vt;
    };
    /// From `start`, or the identity.
    Decomposition decompose(MatrixView<const T> X, bool of_triangle, MatrixView<const T> start = {},
                            SpectrumNeeds needs = {}) {
        const Index n = X.cols;
        Decomposition f{std::vector<T>(static_cast<std::size_t>(n), std::numeric_limits<T>::quiet_NaN()), {}};
        GpuPadded<T> gX(gpu(), X), Vt(gpu(), start.data ? copy<T>(start).view() : identity<T>(n).view());
        if (of_triangle) {
            right_singular_vectors<T>(gpu(), gX.view(), needs, f.s, Vt.view());
        } else {
            gram_eigenvectors<T>(gpu(), gX.view(), needs, f.s, Vt.view());
        }
        f.Vt = Vt.fetch(gpu());
        return f;
    }
    /// V is orthogonal; σ², where above the square of what is needed, and X V (I − τ/Σ)₊ Vᵀ are right to u‖X‖ or what
    /// is needed.
    void expect_decomposition(MatrixView<const T> X, const Decomposition& f, SpectrumNeeds needs = {}) {
        const Index n = X.cols;
        const double unit = std::max(u, needs.tolerance);
        EXPECT_TRUE(std::is_sorted(f.s.rbegin(), f.s.rend()));
        EXPECT_LE(orthogonality_error<T>(transposed<T>(f.Vt.view()).view(), n), svd_law) << "VᵀV = I";
        const std::vector<double> expected = reference_singular_values<T>(X);
        if (expected[0] == 0) {
            EXPECT_EQ(f.s[0], T(0));
            return;
        }
        for (Index i = 0; i < n; ++i) {
            const double s = static_cast<double>(f.s[i]) / expected[0], least = needs.threshold / expected[0],
                         r = std::max(expected[i] / expected[0], least);
            EXPECT_LE(std::abs(std::pow(std::max(s, least), 2) - r * r), svd_law * static_cast<double>(n) * unit)
                << "σ of number " << i;
        }
        // what is at stake for pursuits: a threshold, at a tenth of ‖X‖ where all are asked for
        const double threshold = needs.threshold > 0 ? needs.threshold : 0.1 * expected[0];
        const auto shrunk = [&](const std::vector<T>& s, const Matrix<T>& Vt) {
            Matrix<double> P = filled<double>(n, n, 0);
            for (Index r = 0; r<n&& static_cast<double>(s[r])> threshold; ++r) {
                for (Index j = 0; j < n; ++j) {
                    for (Index i = 0; i < n; ++i) {
                        P(i, j) += static_cast<double>(Vt(r, i)) * (1 - threshold / static_cast<double>(s[r])) *
                                   static_cast<double>(Vt(r, j));
                    }
                }
            }
            Matrix<T> L(X.rows, n);
            for (Index j = 0; j < n; ++j) {
                for (Index i = 0; i < X.rows; ++i) {
                    double sum = 0;
                    for (Index k = 0; k < n; ++k) sum += static_cast<double>(X(i, k)) * P(k, j);
                    L(i, j) = static_cast<T>(sum);
                }
            }
            return L;
        };
        const SVD<T> exact = svd<T, Host>(host, X);
        const Matrix<T> L = shrunk(f.s, f.Vt), expected_L = shrunk(exact.s, exact.Vt);
        EXPECT_LE(difference<T>(L.view(), expected_L.view(), n, frobenius_norm<T>(X)) * u, svd_law * unit)
            << "X V f(Σ) Vᵀ";
    }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuPursuit, Types);

constexpr std::pair<Index, Index> pass_shapes[] = {{1, 1},      {5, 5},     {64, 1},    {97, 31},
                                                   {1023, 3},   {1024, 2},  {1025, 8},  {300, 33},
                                                   {1000, 100}, {70000, 3}, {3, 70000}, {4099, 110}};

TYPED_TEST(GpuPursuit, NormsAndScaledCopies) {
    using T = TypeParam;
    for (auto [m, n] : pass_shapes) {
        for (const bool some : {false, true}) {
            SCOPED_TRACE(fmt::format("{}x{}{}", m, n, some ? " masked" : ""));
            const Matrix<std::uint8_t> observed = this->mask(m, n);
            const Matrix<std::uint8_t, Cuda> gobserved = this->to_gpu(observed);
            const Matrix<T> M = some ? this->masked(random_normal<T>(m, n).view(), observed) : random_normal<T>(m, n);
            GpuPadded<T> gM(this->gpu(), M.view()), gB(this->gpu(), m, n);
            MatrixView<const std::uint8_t> seen;
            MatrixView<const std::uint8_t, Cuda> gseen;
            if (some) seen = observed.view(), gseen = gobserved.view();
            Matrix<T> B(m, n);
            copy_observed<T>(this->host, M.view(), seen, B.view());
            copy_observed<T>(this->gpu(), gM.view(), gseen, gB.view());
            EXPECT_TRUE(same_bits<T>(gB.fetch(this->gpu()).view(), B.view()));
            const EntryNorms expected = entry_norms<T>(this->host, B.view()),
                             norms = entry_norms<T>(this->gpu(), gB.view());
            EXPECT_NEAR(norms.squares, expected.squares, 1e-12 * expected.squares);
            EXPECT_NEAR(norms.sum, expected.sum, 1e-12 * expected.sum);
            EXPECT_EQ(norms.largest, expected.largest);
            Matrix<T> C(m, n);
            GpuPadded<T> gC(this->gpu(), m, n);
            scaled_copy<T>(this->host, 0.3, B.view(), C.view());
            scaled_copy<T>(this->gpu(), 0.3, gB.view(), gC.view());
            EXPECT_TRUE(same_bits<T>(gC.fetch(this->gpu()).view(), C.view()));
        }
    }
}

TYPED_TEST(GpuPursuit, ShrinksAsTheHost) {
    using T = TypeParam;
    for (auto [m, n] : pass_shapes) {
        for (const bool some : {false, true}) {
            SCOPED_TRACE(fmt::format("{}x{}{}", m, n, some ? " masked" : ""));
            const Matrix<std::uint8_t> observed = this->mask(m, n);
            const Matrix<std::uint8_t, Cuda> gobserved = this->to_gpu(observed);
            const Matrix<T> M = some ? this->masked(random_normal<T>(m, n).view(), observed) : random_normal<T>(m, n);
            const Matrix<T> Y = random_normal<T>(m, n, 2);
            Matrix<T> L = random_normal<T>(m, n, 3), S = random_normal<T>(m, n, 4);
            GpuPadded<T> gM(this->gpu(), M.view()), gY(this->gpu(), Y.view()), gL(this->gpu(), L.view()),
                gS(this->gpu(), S.view());
            MatrixView<const std::uint8_t> seen;
            MatrixView<const std::uint8_t, Cuda> gseen;
            if (some) seen = observed.view(), gseen = gobserved.view();
            PursuitSums expected;
            Matrix<PursuitSums, Cuda> sums(this->gpu(), 1, 1);
            shrink_sparse<T>(this->host, M.view(), Y.view(), seen, 3, 0.4, L.view(), S.view(), {&expected, 1, 1});
            shrink_sparse<T>(this->gpu(), gM.view(), gY.view(), gseen, 3, 0.4, gL.view(), gS.view(), sums.view());
            const PursuitSums found = read_sums(this->gpu(), sums.view());
            this->expect_close(gS.fetch(this->gpu()), S, 1, frobenius_norm<T>(L.view()), "S");
            this->expect_close(gL.fetch(this->gpu()), L, 1, frobenius_norm<T>(L.view()), "X");
            this->expect_sum(found.sparse, expected.sparse, "‖S‖₁");
            this->expect_sum(found.change, expected.change, "‖S − S'‖²");
            // one rounding may take an entry over the threshold
            EXPECT_NEAR(found.nonzeros, expected.nonzeros, 1);
        }
    }
}

TYPED_TEST(GpuPursuit, CorrectsAndShrinksAsTheHost) {
    using T = TypeParam;
    const Index wide = quick() ? 161 : 230;
    for (const Index n :
         {Index(1), Index(2), Index(8), Index(9), Index(16), Index(31), Index(33), Index(64), Index(80), Index(96),
          Index(100), Index(112), Index(113), Index(128), Index(129), Index(160), Index(161), wide}) {
        for (const Index m : {Index(1), Index(15), Index(16), Index(17), n + 1, Index(quick() ? 300 : 30011)}) {
            for (const Index padding : {Index(0), Index(2), Index(3)}) {
                const bool some = padding == 2;
                SCOPED_TRACE(fmt::format("{}x{}{}, padding {}", m, n, some ? " masked" : "", padding));
                if (m > 1000 && padding == 2 && n != 100) continue;
                const Matrix<std::uint8_t> observed = this->mask(m, n);
                const Matrix<std::uint8_t, Cuda> gobserved = this->to_gpu(observed);
                const Matrix<T> M =
                    some ? this->masked(random_normal<T>(m, n).view(), observed) : random_normal<T>(m, n);
                const Matrix<T> S = random_normal<T>(m, n, 2), Q = random_normal<T>(n, n, 5);
                Matrix<T> P(n, n), X = random_normal<T>(m, n, 3), Y = random_normal<T>(m, n, 4);
                for (Index j = 0; j < n; ++j) {
                    for (Index i = 0; i < n; ++i) P(i, j) = (Q(i, j) + Q(j, i)) / T(n);
                }
                // every product has the roundings of its n terms
                const double scale = frobenius_norm<T>(X.view()) * frobenius_norm<T>(P.view()) +
                                     frobenius_norm<T>(X.view()) + frobenius_norm<T>(Y.view());
                GpuPadded<T> gM(this->gpu(), M.view(), padding), gS(this->gpu(), S.view(), padding),
                    gX(this->gpu(), X.view(), padding), gY(this->gpu(), Y.view(), padding), gP(this->gpu(), P.view()),
                    next_X(this->gpu(), m, n, padding), next_S(this->gpu(), m, n, padding),
                    projected(this->gpu(), m, n, padding);
                MatrixView<const std::uint8_t> seen;
                MatrixView<const std::uint8_t, Cuda> gseen;
                if (some) seen = observed.view(), gseen = gobserved.view();
                const double mu = 0.7, next_mu = 1.3, threshold = 0.4;
                Matrix<PursuitSums, Cuda> sums(this->gpu(), 1, 2);
                const auto now = sums.view().col_block({0, 1}), next = sums.view().col_block({1, 2});
                update_multipliers_and_sparse<T>(this->gpu(), gX.view(), gP.view(), gM.view(), gS.view(), gseen, mu,
                                                 next_mu, threshold, gY.view(), next_X.view(), next_S.view(), now,
                                                 next);
                multiply_right<T>(this->gpu(), gX.view(), gP.view(), projected.view());
                EXPECT_TRUE(same_bits<T>(gX.fetch(this->gpu()).view(), X.view())) << "X";
                EXPECT_TRUE(same_bits<T>(gS.fetch(this->gpu()).view(), S.view())) << "S";
                const PursuitSums found = read_sums(this->gpu(), now), next_found = read_sums(this->gpu(), next);

                PursuitSums expected;
                Matrix<T> expected_S = copy<T>(S.view());
                update_low_rank_and_multipliers<T>(this->host, P.view(), M.view(), S.view(), seen, mu, X.view(),
                                                   Y.view(), {&expected, 1, 1});
                this->expect_close(projected.fetch(this->gpu()), X, n, scale, "L");
                shrink_sparse<T>(this->host, M.view(), Y.view(), seen, next_mu, threshold, X.view(), expected_S.view(),
                                 {&expected, 1, 1});
                this->expect_close(gY.fetch(this->gpu()), Y, n, scale, "Y");
                this->expect_close(next_X.fetch(this->gpu()), X, n, scale, "X'");
                this->expect_close(next_S.fetch(this->gpu()), expected_S, n, scale, "S'");
                this->expect_sum(found.residual, expected.residual, "‖Z‖²");
                this->expect_sum(found.multipliers, expected.multipliers, "‖Y‖²");
                this->expect_sum(next_found.sparse, expected.sparse, "‖S'‖₁");
                this->expect_sum(next_found.change, expected.change, "‖S' − S‖²");
                // roundings may take entries over the threshold
                EXPECT_NEAR(next_found.nonzeros, expected.nonzeros, 1 + 1e-5 * expected.nonzeros);
            }
        }
    }
}

TYPED_TEST(GpuPursuit, CorrectsInSlabsWithoutAMask) {
    using T = TypeParam;
    if (quick()) GTEST_SKIP() << "two slabs are 160 MB";
    const Index m = (Index(1) << 17) + 5, n = 161;
    Matrix<T, Cuda> M(this->gpu(), m, n), S(this->gpu(), m, n), X(this->gpu(), m, n), Y(this->gpu(), m, n),
        next_X(this->gpu(), m, n), next_S(this->gpu(), m, n), P(this->gpu(), n, n);
    // X = [I; I; …] and P = I, so that L = X;  M = 3X, S = X, Y = 0:  Z = X,  Y = μX
    for (Index row = 0; row < m; row += n) {
        const Range rows{row, std::min(m, row + n)};
        set_identity<T>(this->gpu(), 0, X.view().row_block(rows));
    }
    set_identity<T>(this->gpu(), 0, P.view());
    scaled_copy<T>(this->gpu(), 0, X.view(), Y.view());
    scaled_copy<T>(this->gpu(), 3, X.view(), M.view());
    scaled_copy<T>(this->gpu(), 1, X.view(), S.view());
    Matrix<PursuitSums, Cuda> sums(this->gpu(), 1, 2);
    const auto now = sums.view().col_block({0, 1}), next = sums.view().col_block({1, 2});
    // S' = shrink(3X − X + μX/μ', t) = 2X and X' = 3.5X − 2X for μ = 1, μ' = 2, t = 0.5
    update_multipliers_and_sparse<T>(this->gpu(), X.view(), P.view(), M.view(), S.view(), {}, 1, 2, 0.5, Y.view(),
                                     next_X.view(), next_S.view(), now, next);
    const double rows = static_cast<double>(m);
    const PursuitSums found = read_sums(this->gpu(), now), next_found = read_sums(this->gpu(), next);
    EXPECT_EQ(found.residual, rows);
    EXPECT_EQ(found.multipliers, rows);
    EXPECT_EQ(next_found.sparse, 2 * rows);
    EXPECT_EQ(next_found.change, rows);
    EXPECT_EQ(next_found.nonzeros, rows);
    const Matrix<T> on_host = copy_to_host<T>(this->gpu(), next_X.view());
    for (Index i = 0; i < m; ++i) EXPECT_EQ(on_host(i, i % n), T(1.5));
}

TYPED_TEST(GpuPursuit, ProjectorsAreThoseOfTheHost) {
    using T = TypeParam;
    for (auto [r, n] : {std::pair<Index, Index>{0, 3}, {1, 1}, {3, 7}, {33, 40}, {55, 100}, {100, 100}, {200, 230}}) {
        SCOPED_TRACE(fmt::format("{} of {}", r, n));
        const Matrix<T> Vt = random_normal<T>(n, n), w = random_normal<T>(r, 1, 2);
        const std::span<const T> weights(w.data(), static_cast<std::size_t>(r));
        GpuPadded<T> gVt(this->gpu(), Vt.view()), gP(this->gpu(), n, n);
        Matrix<T> P(n, n);
        weighted_projector<T>(this->host, Vt.view().row_block({0, r}), weights, P.view());
        weighted_projector<T>(this->gpu(), gVt.view().row_block({0, r}), weights, gP.view());
        const double norm = frobenius_norm<T>(Vt.view());
        this->expect_close(gP.fetch(this->gpu()), P, r, norm * norm, "P");
    }
}

TYPED_TEST(GpuPursuit, DecomposesWhateverTheMatrix) {
    using T = TypeParam;
    // classes whose squares are numbers
    const Gallery classes[] = {Gallery::RandomNormal,
                               Gallery::RankDeficientExact,
                               Gallery::RankDeficientNumerical,
                               Gallery::ZeroSomeColumns,
                               Gallery::Zero,
                               Gallery::DuplicateColumns,
                               Gallery::Kahan,
                               Gallery::Hilbert,
                               Gallery::Vandermonde,
                               Gallery::NearCollinear12,
                               Gallery::ClusteredScales,
                               Gallery::Identity,
                               Gallery::RowScaled,
                               Gallery::Orthogonal,
                               Gallery::GeometricSpectrum};
    for (const Gallery matrix_class : classes) {
        for (auto [m, n] : {std::pair<Index, Index>{1, 1},
                            {2, 2},
                            {5, 3},
                            {5, 5},
                            {8, 7},
                            {50, 33},
                            {101, 100},
                            {400, 100},
                            {jacobi_cols, jacobi_cols},
                            {jacobi_cols + 9, jacobi_cols + 1}}) {
            if (quick() && n > 40 && matrix_class != Gallery::RandomNormal) continue;
            SCOPED_TRACE(fmt::format("{} {}x{}", to_string(matrix_class), m, n));
            const Matrix<T> X = generate<T>(matrix_class, m, n);
            this->expect_decomposition(X.view(), this->decompose(X.view(), false));
            if (m == n) this->expect_decomposition(X.view(), this->decompose(X.view(), true));
        }
    }
}

TYPED_TEST(GpuPursuit, DecomposesTheTinyAndTheHuge) {
    using T = TypeParam;
    for (const double factor : {std::is_same_v<T, double> ? 1e-140 : 1e-30, std::is_same_v<T, double> ? 1e140 : 1e30}) {
        SCOPED_TRACE(factor);
        Matrix<T> X = random_normal<T>(60, 60);
        for (Index i = 0; i < 60 * 60; ++i) X.data()[i] *= static_cast<T>(factor);
        this->expect_decomposition(X.view(), this->decompose(X.view(), false));
        this->expect_decomposition(X.view(), this->decompose(X.view(), true));
    }
}

TYPED_TEST(GpuPursuit, StartsFromWhatItIsGiven) {
    using T = TypeParam;
    for (const Index n : {Index(1), Index(6), Index(47), Index(100), jacobi_cols}) {
        SCOPED_TRACE(n);
        // near the last one, far from it, and a hundred steps later, when roundings have had time to add up
        Matrix<T> X = with_condition<T>(2 * n + 5, n, 1e3);
        auto f = this->decompose(X.view(), false);
        const Matrix<T> other = random_normal<T>(2 * n + 5, n, 7);
        this->expect_decomposition(other.view(), this->decompose(other.view(), false, f.Vt.view()));
        for (int step = 0; step < (quick() ? 10 : 100); ++step) {
            const Matrix<T> E = random_normal<T>(X.rows(), n, static_cast<std::uint64_t>(step) + 10);
            for (Index i = 0; i < X.rows() * n; ++i) X.data()[i] += T(1e-3) * E.data()[i];
            f = this->decompose(X.view(), false, f.Vt.view());
        }
        this->expect_decomposition(X.view(), f);
    }
}

TYPED_TEST(GpuPursuit, FindsWhatIsNeededOfASpectrum) {
    using T = TypeParam;
    for (const Index n : {Index(2), Index(5), Index(33), Index(100), jacobi_cols, jacobi_cols + 1}) {
        Matrix<T> common = random_normal<T>(2 * n, n);
        // ‖X‖₂² >= 2n (1 + n/4), which no column's norm shows
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < 2 * n; ++i) common(i, j) += T(i % 2 == 0 ? 0.5 : -0.5);
        }
        const Matrix<T> conditioned = with_condition<T>(2 * n, n, 1e3), normal = random_normal<T>(2 * n, n, 3);
        for (const Matrix<T>* of : {&conditioned, &normal, &std::as_const(common)}) {
            const Matrix<T>& X = *of;
            const double norm = reference_singular_values<T>(X.view())[0];
            for (const double threshold : {0.1, 0.3, 0.5, 0.9, 1.1}) {
                for (const double tolerance : {0.0, 1e-5}) {
                    SCOPED_TRACE(fmt::format("n = {}, threshold {} of ‖X‖, tolerance {}", n, threshold, tolerance));
                    if (quick() && n > 40 && threshold != 0.3) continue;
                    const SpectrumNeeds needs{threshold * norm, tolerance};
                    this->expect_decomposition(X.view(), this->decompose(X.view(), false, {}, needs), needs);
                }
            }
            // the norm alone
            const SpectrumNeeds needs{frobenius_norm<T>(X.view()) / std::sqrt(static_cast<double>(n))};
            EXPECT_NEAR(this->decompose(X.view(), false, {}, needs).s[0], norm,
                        svd_law * static_cast<double>(n) * TestFixture::u * norm);
        }
    }
}

TYPED_TEST(GpuPursuit, RefusesToDecomposeNaN) {
    using T = TypeParam;
    for (const Index n : {Index(6), Index(100), jacobi_cols + 1}) {
        Matrix<T> X = random_normal<T>(n, n);
        X(2, 3) = std::numeric_limits<T>::quiet_NaN();
        EXPECT_THROW(this->decompose(X.view(), false), NumericalBreakdown);
        EXPECT_THROW(this->decompose(X.view(), true), NumericalBreakdown);
    }
}

// ---- The pursuit ----------------------------------------------------------------------------------------------------

template <class T>
class GpuRobustPca : public OnGpu {
protected:
    static constexpr double tolerance = std::is_same_v<T, double> ? 1e-7 : 1e-5;
    RobustPcaOptions<T, Cuda> options;
    GpuRobustPca() { options.tolerance = tolerance; }

    RobustPca<T, Cuda> pursue(MatrixView<const T> M, const RobustPcaOptions<T, Cuda>& with) {
        GpuPadded<T> gM(gpu(), M);
        RobustPca<T, Cuda> f = robust_pca<T, Cuda>(gpu(), gM.view(), with);
        EXPECT_TRUE(same_bits<T>(gM.fetch(gpu()).view(), M)) << "M";
        return f;
    }
    static RobustPcaOptions<T> for_host(const RobustPcaOptions<T, Cuda>& with) {
        RobustPcaOptions<T> options;
        options.pursuit = with.pursuit;
        options.route = with.route;
        options.tolerance = with.tolerance;
        options.max_iterations = with.max_iterations;
        options.max_rank = with.max_rank;
        options.noise = with.noise;
        return options;
    }
    /// Iterations within one, the same rank, objectives to 1e-4, parts to what the residual leaves of them.
    void expect_same(const RobustPca<T, Cuda>& f, const RobustPca<T>& expected) {
        EXPECT_EQ(f.end, expected.end);
        EXPECT_NEAR(static_cast<double>(f.last.iteration), static_cast<double>(expected.last.iteration), 1);
        EXPECT_EQ(f.last.rank, expected.last.rank);
        EXPECT_NEAR(f.last.objective, expected.last.objective, 1e-4 * expected.last.objective);
        EXPECT_DOUBLE_EQ(f.lambda, expected.lambda);
        const Matrix<T> L = copy_to_host<T>(gpu(), f.L.view()), S = copy_to_host<T>(gpu(), f.S.view());
        const double norm = frobenius_norm<T>(expected.L.view());
        EXPECT_LE(difference<T>(L.view(), expected.L.view(), 1, norm) * unit_roundoff<T>, 1e3 * tolerance) << "L";
        EXPECT_LE(difference<T>(S.view(), expected.S.view(), 1, norm) * unit_roundoff<T>, 1e3 * tolerance) << "S";
    }
};
TYPED_TEST_SUITE(GpuRobustPca, Types);

TYPED_TEST(GpuRobustPca, IsThatOfTheHostByEitherRouteOfEitherShape) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{400, 60}, {60, 400}, {90, 90}, {3001, 100}, {600, 140}}) {
        if (quick() && m > 1000) continue;
        const Mixture<T> mix(m, n, 3, 0.05);
        for (ThresholdRoute route : {ThresholdRoute::Auto, ThresholdRoute::Qr, ThresholdRoute::Gram}) {
            SCOPED_TRACE(fmt::format("{} x {} {}", m, n, to_string(route)));
            this->options.route = route;
            const RobustPca<T, Cuda> f = this->pursue(mix.M.view(), this->options);
            EXPECT_EQ(f.end, PursuitEnd::Converged);
            EXPECT_LE(f.last.residual, this->tolerance);
            EXPECT_EQ(f.last.rank, 3);
            this->expect_same(f, robust_pca<T, Host>(this->host, mix.M.view(), this->for_host(this->options)));
        }
    }
}

TYPED_TEST(GpuRobustPca, AlternatingDirectionsAreThoseOfTheHost) {
    using T = TypeParam;
    const Mixture<T> mix(500, 30, 2, 0.05);
    this->options.pursuit = Pursuit::AlternatingDirections;
    this->options.tolerance = 1e-3;
    this->options.max_iterations = 3000;
    for (ThresholdRoute route : {ThresholdRoute::Qr, ThresholdRoute::Gram}) {
        SCOPED_TRACE(to_string(route));
        this->options.route = route;
        this->expect_same(this->pursue(mix.M.view(), this->options),
                          robust_pca<T, Host>(this->host, mix.M.view(), this->for_host(this->options)));
    }
}

TYPED_TEST(GpuRobustPca, StablePursuitsAreThoseOfTheHost) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{500, 40}, {40, 500}}) {
        Mixture<T> mix(m, n, 3, 0.05);
        mix.add_noise(0.02);
        this->options.pursuit = Pursuit::Stable;
        this->options.noise = 0.02;
        this->options.tolerance = 1e-4;
        for (ThresholdRoute route : {ThresholdRoute::Qr, ThresholdRoute::Gram}) {
            SCOPED_TRACE(fmt::format("{} x {} {}", m, n, to_string(route)));
            this->options.route = route;
            const RobustPca<T, Cuda> f = this->pursue(mix.M.view(), this->options);
            EXPECT_EQ(f.last.rank, 3);
            this->expect_same(f, robust_pca<T, Host>(this->host, mix.M.view(), this->for_host(this->options)));
        }
    }
}

TYPED_TEST(GpuRobustPca, EntriesThatAreNotObservedAreImputed) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{300, 50}, {50, 300}}) {
        SCOPED_TRACE(m);
        const Mixture<T> mix(m, n, 2, 0);
        Matrix<T> M = copy<T>(mix.M.view());
        Matrix<std::uint8_t> observed(m, n);
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) {
                observed(i, j) = (7 * i + 11 * j) % 5 != 0;
                if (!observed(i, j)) M(i, j) = std::numeric_limits<T>::quiet_NaN();
            }
        }
        const auto on_gpu = copy_to_device<std::uint8_t>(this->gpu(), std::as_const(observed).view());
        this->options.observed = on_gpu.view();
        RobustPcaOptions<T> of_host = this->for_host(this->options);
        of_host.observed = observed.view();
        const RobustPca<T, Cuda> f = this->pursue(M.view(), this->options);
        this->expect_same(f, robust_pca<T, Host>(this->host, M.view(), of_host));
        const Matrix<T> S = copy_to_host<T>(this->gpu(), f.S.view());
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) {
                if (!observed(i, j)) {
                    EXPECT_EQ(S(i, j), T(0));
                }
            }
        }
    }
}

TYPED_TEST(GpuRobustPca, StopsRanksAndWarmStarts) {
    using T = TypeParam;
    const Mixture<T> mix(200, 40, 4, 0.05);
    const RobustPca<T, Cuda> whole = this->pursue(mix.M.view(), this->options);
    auto stopping = this->options;
    stopping.on_step = [&](const RobustPcaStep& step) { return step.iteration < 5; };
    const RobustPca<T, Cuda> stopped = this->pursue(mix.M.view(), stopping);
    EXPECT_EQ(stopped.end, PursuitEnd::Stopped);
    EXPECT_EQ(stopped.last.iteration, 5);
    auto limited = this->options;
    limited.max_rank = 2;
    limited.max_iterations = 30;
    EXPECT_LE(this->pursue(mix.M.view(), limited).last.rank, 2);
    auto warm = this->options;
    warm.L = whole.L.view();
    warm.Y = whole.Y.view();
    warm.mu = whole.last.mu;
    EXPECT_LT(this->pursue(mix.M.view(), warm).last.iteration, whole.last.iteration / 2);
    auto interrupted = this->options;
    interrupted.on_step = [&](const RobustPcaStep&) {
        this->gpu().request_stop();
        return true;
    };
    EXPECT_THROW(this->pursue(mix.M.view(), interrupted), Interrupted);
    this->gpu().clear_stop();
}

TYPED_TEST(GpuRobustPca, SaysWhereItsPrecisionEnds) {
    using T = TypeParam;
    const Mixture<T> mix(200, 40, 2, 0.05);
    this->options.tolerance = 1e-3 * unit_roundoff<T>;
    for (ThresholdRoute route : {ThresholdRoute::Qr, ThresholdRoute::Gram}) {
        this->options.route = route;
        const RobustPca<T, Cuda> f = this->pursue(mix.M.view(), this->options);
        EXPECT_EQ(f.end, PursuitEnd::Stalled);
        EXPECT_LT(f.last.iteration, 200);
        EXPECT_LE(f.last.residual, 1e3 * unit_roundoff<T>);
    }
}

TYPED_TEST(GpuRobustPca, SameBitsTwice) {
    using T = TypeParam;
    const Mixture<T> mix(3000, 30, 2, 0.05);
    for (ThresholdRoute route : {ThresholdRoute::Qr, ThresholdRoute::Gram}) {
        this->options.route = route;
        const RobustPca<T, Cuda> f = this->pursue(mix.M.view(), this->options),
                                 g = this->pursue(mix.M.view(), this->options);
        EXPECT_EQ(f.last.objective, g.last.objective);
        for (auto part : {&RobustPca<T, Cuda>::L, &RobustPca<T, Cuda>::S, &RobustPca<T, Cuda>::Y}) {
            EXPECT_TRUE(same_bits<T>(copy_to_host<T>(this->gpu(), (f.*part).view()).view(),
                                     copy_to_host<T>(this->gpu(), (g.*part).view()).view()));
        }
    }
}

TYPED_TEST(GpuRobustPca, OddShapesAndZeros) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{0, 0}, {0, 3}, {3, 0}, {1, 1}, {1, 5}, {5, 1}, {7, 2}}) {
        SCOPED_TRACE(fmt::format("{} x {}", m, n));
        const Matrix<T> zero = filled<T>(m, n, 0), some = random_normal<T>(m, n);
        const RobustPca<T, Cuda> f = this->pursue(zero.view(), this->options);
        EXPECT_EQ(f.end, PursuitEnd::Converged);
        EXPECT_TRUE(same_bits<T>(copy_to_host<T>(this->gpu(), f.L.view()).view(), zero.view()));
        EXPECT_EQ(this->pursue(some.view(), this->options).L.rows(), m);
    }
}

TYPED_TEST(GpuRobustPca, RefusesEntriesThatAreNotFinite) {
    using T = TypeParam;
    Matrix<T> M = random_normal<T>(6, 4);
    M(2, 3) = std::numeric_limits<T>::infinity();
    EXPECT_THROW(this->pursue(M.view(), {}), NonFiniteEntry);
    Matrix<std::uint8_t> all(6, 4);
    std::fill_n(all.data(), 6 * 4, std::uint8_t(1));
    const auto observed = copy_to_device<std::uint8_t>(this->gpu(), std::as_const(all).view());
    this->options.observed = observed.view();
    EXPECT_THROW(this->pursue(M.view(), this->options), InvalidArgument);
}

TYPED_TEST(GpuRobustPca, WindowsAreThoseOfTheHost) {
    using T = TypeParam;
    const Index m = 400, carried = 10;
    RobustPcaWindows<T, Cuda> windows(m, carried);
    RobustPcaWindows<T> expected(m, carried);
    const Mixture<T> mix(m, 70, 2, 0.05);
    for (const Range columns : {Range{0, 30}, Range{30, 60}, Range{60, 70}}) {
        const MatrixView<const T> M = mix.M.view().col_block(columns);
        copy_to_device<T>(this->gpu(), M, windows.columns(this->gpu(), columns.size()));
        const MatrixView<T> on_host = expected.columns(this->host, columns.size());
        for (Index j = 0; j < M.cols; ++j) std::copy_n(M.at(0, j), m, on_host.at(0, j));
        const auto window = windows.pursue(this->gpu(), this->options);
        const auto window_of_host = expected.pursue(this->host, this->for_host(this->options));
        EXPECT_EQ(window.carried, window_of_host.carried);
        this->expect_same(window.parts, window_of_host.parts);
    }
}

}  // namespace
}  // namespace quoin::test
