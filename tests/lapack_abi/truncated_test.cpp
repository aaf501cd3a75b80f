// ?geqp3rk: the law for what is factored and for QᵀB, the residual's norms, pivots and ranks of a reference in higher
// precision, tolerances, matrices out of range, NaN and Inf, argument errors.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "lapack_abi/lapack.hpp"

namespace quoin::test {
namespace {

/// Businger and Golub's algorithm in higher precision: its pivots, and the largest norm of the remaining columns before
/// each step.
template <class T>
struct Greedy {
    explicit Greedy(MatrixView<const T> A) : order(A.cols) {
        const Index m = A.rows, n = A.cols;
        Matrix<Wide<T>> W(m, n);
        for (Index j = 0; j < n; ++j) std::copy_n(A.at(0, j), m, W.view().at(0, j));
        std::iota(order.begin(), order.end(), Index(0));
        for (Index k = 0; k < std::min(m, n); ++k) {
            const auto norm = [&](Index j) {
                Wide<T> sum = 0;
                for (Index i = k; i < m; ++i) sum += W(i, j) * W(i, j);
                return std::sqrt(sum);
            };
            Index p = k;
            for (Index j = k + 1; j < n; ++j) p = norm(j) > norm(p) ? j : p;
            largest.push_back(static_cast<double>(norm(p)));
            std::swap(order[k], order[p]);
            std::swap_ranges(W.view().at(0, k), W.view().at(0, k) + m, W.view().at(0, p));
            // v := a − βe,  a_j −= v (2 vᵀa_j / vᵀv)
            std::vector<Wide<T>> v(W.view().at(k, k), W.view().at(k, k) + (m - k));
            v[0] += std::copysign(norm(k), v[0]);
            Wide<T> square = 0;
            for (const Wide<T> x : v) square += x * x;
            if (square == 0) continue;
            for (Index j = k; j < n; ++j) {
                Wide<T> product = 0;
                for (Index i = k; i < m; ++i) product += v[i - k] * W(i, j);
                for (Index i = k; i < m; ++i) W(i, j) -= 2 * product / square * v[i - k];
            }
        }
    }
    std::vector<Index> order;
    std::vector<double> largest;
};

template <class T>
double norm_of_column(MatrixView<const T> A, Index j) {
    return frobenius_norm<T>(A.col_block({j, j + 1}));
}

template <class T>
double largest_norm_of(MatrixView<const T> A) {
    double largest = 0;
    for (Index j = 0; j < A.cols; ++j) largest = std::max(largest, norm_of_column<T>(A, j));
    return largest;
}

template <class Types>
class LapackTruncated : public OverAllTypes<Types> {
protected:
    using typename OverAllTypes<Types>::T;
    using typename OverAllTypes<Types>::Int;
    using Truncated = typename Lapack<T, Int>::Truncated;

    /// Factors A in padded memory beside `nrhs` columns of B, and expects A P = Q [R₁₁ R₁₂; 0 R₂₂], QᵀB, an orthogonal
    /// Q, greedy pivots, and the norms of R₂₂.
    Truncated expect_laws(MatrixView<const T> A, Index nrhs, Index kmax, T abstol, T reltol, Work size) {
        const Index m = A.rows, n = A.cols, k = std::min(m, n);
        SCOPED_TRACE(testing::Message() << m << " x " << n << ", " << nrhs << " sides, kmax " << kmax << ", abstol "
                                        << abstol << ", reltol " << reltol);
        const Matrix<T> B = generate<T>(Gallery::RandomNormal, m, nrhs, 9);
        Padded<T> AB(m, n + nrhs);
        for (Index j = 0; j < n; ++j) std::copy_n(A.at(0, j), m, AB.view().at(0, j));
        for (Index j = 0; j < nrhs; ++j) std::copy_n(B.view().at(0, j), m, AB.view().at(0, n + j));
        const Truncated out =
            this->quoin.geqp3rk(AB.view(), static_cast<Int>(n), static_cast<Int>(kmax), abstol, reltol, size);
        EXPECT_EQ(out.info, 0);
        EXPECT_TRUE(AB.padding_intact());
        if (k == 0) {
            EXPECT_EQ(out.k, 0);
            EXPECT_EQ(out.largest, 0);
            EXPECT_EQ(out.relative, 0);
            return out;
        }
        std::vector<Int> sorted = out.jpiv, all(n);
        std::sort(sorted.begin(), sorted.end());
        std::iota(all.begin(), all.end(), Int(1));
        EXPECT_EQ(sorted, all);
        const Index r = out.k;
        EXPECT_TRUE(r >= 0 && r <= std::min(k, kmax)) << r;
        if (sorted != all || r < 0 || r > k) return out;
        const MatrixView<const T> F = std::as_const(AB).view().col_block({0, n}),
                                  QtB = std::as_const(AB).view().col_block({n, n + nrhs});
        for (Index j = r; j < k; ++j) EXPECT_EQ(out.tau[j], 0) << j;
        const double a = frobenius_norm<T>(A), a_largest = largest_norm_of<T>(A);
        if (r == 0) {
            EXPECT_EQ(out.jpiv, all);
            EXPECT_TRUE(same_bits<T>(F, A));
            EXPECT_TRUE(same_bits<T>(QtB, B.view()));
        }
        // [R₁₁ R₁₂; 0 R₂₂], and Q
        Matrix<T> R = copy<T>(F), AP(m, n), Q(m, r);
        for (Index j = 0; j < n; ++j) std::copy_n(A.at(0, out.jpiv[j] - 1), m, AP.view().at(0, j));
        for (Index j = 0; j < r; ++j) {
            std::copy_n(F.at(0, j), m, Q.view().at(0, j));
            for (Index i = j + 1; i < m; ++i) R(i, j) = 0;
        }
        const std::vector<T> tau(out.tau.begin(), out.tau.begin() + r);
        const Index reflectors = std::max<Index>(1, r);
        if (r > 0) {
            this->quoin.ormqr(Side::Left, Op::None, F.col_block({0, r}), tau, R.view(), Work::Queried);
            Matrix<T> QQtB = copy<T>(QtB);
            if (nrhs > 0) this->quoin.ormqr(Side::Left, Op::None, F.col_block({0, r}), tau, QQtB.view(), Work::Queried);
            EXPECT_LE(difference<T>(QQtB.view(), B.view(), r, frobenius_norm<T>(B.view())), 2 * law);
            this->quoin.orgqr(Q.view(), static_cast<Int>(r), tau, Work::Queried);
            EXPECT_LE(orthogonality_error<T>(Q.view(), r), law);
        }
        EXPECT_LE(difference<T>(R.view(), AP.view(), reflectors, a), 2 * law);
        // |r_ii| >= ‖(r_ij, …)‖ for the rows below i of every later column
        const double eta = std::numeric_limits<T>::denorm_min() * std::sqrt(static_cast<double>(m * n));
        const double rounding = law * static_cast<double>(reflectors) * (unit_roundoff<T> * a + eta);
        double residual = 0;
        for (Index j = 0; j < n; ++j) {
            double below = j >= r ? frobenius_norm<T>(F.block({std::min(r, m), m}, {j, j + 1})) : 0;
            residual = std::max(residual, below);
            for (Index i = std::min(j, r - 1); i >= 0; --i) {
                below = std::hypot(below, static_cast<double>(F(i, j)));
                EXPECT_GE(std::abs(static_cast<double>(F(i, i))) + rounding, below) << i << ", " << j;
            }
        }
        if (r == k) residual = 0;
        if (a_largest == 0) return out;
        // its square is downdated: |ρ̃² − ρ²| <= c k u ‖A‖² + 2 ρ c k u ‖A‖
        const double ratio = residual / a_largest, error = rounding / a_largest * (1 + 2 * ratio);
        const auto is_norm = [&](double x) { return std::abs(x - ratio) * (x + ratio) <= error; };
        EXPECT_TRUE(is_norm(static_cast<double>(out.largest) / a_largest)) << out.largest << ", " << residual;
        EXPECT_TRUE(is_norm(static_cast<double>(out.relative))) << out.relative << ", " << ratio;
        return out;
    }
};
TYPED_TEST_SUITE(LapackTruncated, AllTypes);

TYPED_TEST(LapackTruncated, ObeysTheLawForEveryShapeAndRank) {
    using T = typename TestFixture::T;
    std::vector<std::pair<Index, Index>> shapes = {{150, 150}, {300, 40}, {90, 151}, {600, 40}};
    for (const Index m : {0, 1, 2, 3, 5, 10, 50}) {
        for (const Index n : {0, 1, 2, 3, 5, 10, 50}) shapes.emplace_back(m, n);
    }
    for (const auto& [m, n] : shapes) {
        const Index k = std::min(m, n);
        const Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n);
        for (const Index kmax : {Index{0}, Index{1}, k / 2, k - k / 4, k, k + 7}) {
            for (const Index nrhs : {0, 3}) {
                const auto out =
                    this->expect_laws(A.view(), nrhs, kmax, -1, -1, nrhs + kmax % 2 ? Work::Minimal : Work::Queried);
                EXPECT_EQ(out.k, std::min(k, kmax));
            }
        }
    }
}

TYPED_TEST(LapackTruncated, ObeysTheLawForEveryClassOfMatrices) {
    using T = typename TestFixture::T;
    int turn = 0;
    for (const Gallery matrix_class : gallery()) {
        SCOPED_TRACE(to_string(matrix_class));
        const std::pair<Index, Index> sizes[] = {{250, 50}, {60, 50}, {40, 70}};
        const auto& [m, n] = sizes[turn++ % 3];
        const Matrix<T> A = generate<T>(matrix_class, m, n);
        this->expect_laws(A.view(), 2, n, -1, -1, Work::Queried);
        this->expect_laws(A.view(), 2, 33, -1, -1, Work::Minimal);
        this->expect_laws(A.view(), 2, n, -1, T(1e-3), Work::Queried);
    }
}

TYPED_TEST(LapackTruncated, PivotsRanksAndNormsAreTheAlgorithms) {
    using T = typename TestFixture::T;
    for (const auto& [rows, cols] : {std::pair<Index, Index>{60, 50}, {300, 40}, {40, 70}}) {
        const Index m = rows, n = cols;
        Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n);
        // norms that fall far enough for no ties
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) A(i, j) *= static_cast<T>(std::pow(0.9, (j * 7) % n));
        }
        const Greedy<T> expected(A.view());
        const auto expect_rank = [&](Index r, Index kmax, double abstol, double reltol) {
            const auto out =
                this->expect_laws(A.view(), 1, kmax, static_cast<T>(abstol), static_cast<T>(reltol), Work::Queried);
            EXPECT_EQ(out.k, r) << abstol << ", " << reltol;
            for (Index j = 0; j < r; ++j) EXPECT_EQ(out.jpiv[j], expected.order[j] + 1) << j;
            const double next = r < std::min(m, n) ? expected.largest[r] : 0, first = expected.largest[0];
            const double rounding = law * static_cast<double>(n) * unit_roundoff<T> * frobenius_norm<T>(A.view());
            EXPECT_NEAR(static_cast<double>(out.largest), next, rounding);
            EXPECT_NEAR(static_cast<double>(out.relative), next / first, rounding / first);
        };
        const Index k = std::min(m, n);
        expect_rank(k, k, -1, -1);
        for (const Index r : {1, 7, 32, 33, 36}) {
            // between the largest norms before and after step r
            const double between = std::sqrt(expected.largest[r - 1] * expected.largest[r]);
            expect_rank(r, r, -1, -1);
            expect_rank(r, k, between, -1);
            expect_rank(r, k, -1, between / expected.largest[0]);
            expect_rank(r, k, between, between / expected.largest[0] / 2);
            expect_rank(r, k, between / 2, between / expected.largest[0]);
            expect_rank(r, r, between / 2, 0);
            expect_rank(0, 0, between, 0);
        }
        expect_rank(0, k, expected.largest[0] * 1.01, -1);
        expect_rank(0, k, std::numeric_limits<T>::infinity(), -1);
        expect_rank(0, k, -1, 1);
        expect_rank(0, k, -1, std::numeric_limits<T>::infinity());
        expect_rank(k, k, -std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity());
        expect_rank(k, k, -0.0, -0.0);
    }
}

TYPED_TEST(LapackTruncated, StopsAtColumnsOfZeros) {
    using T = typename TestFixture::T;
    for (const auto& [m, n] : {std::pair<Index, Index>{60, 50}, {300, 40}, {40, 70}}) {
        auto out = this->expect_laws(filled<T>(m, n, T(0)).view(), 2, n, -1, -1, Work::Queried);
        EXPECT_EQ(out.k, 0);
        EXPECT_EQ(out.largest, 0);
        EXPECT_EQ(out.relative, 0);
        // three columns that no rounding touches
        Matrix<T> A = filled<T>(m, n, T(0));
        for (const Index j : {5, 17, 31}) A(j, j) = static_cast<T>(j);
        out = this->expect_laws(A.view(), 2, n, -1, -1, Work::Queried);
        EXPECT_EQ(out.k, 3);
        EXPECT_EQ(out.largest, 0);
        EXPECT_EQ(out.jpiv[0], 32);
        EXPECT_EQ(out.jpiv[1], 18);
        EXPECT_EQ(out.jpiv[2], 6);
    }
}

TYPED_TEST(LapackTruncated, ScalesByPowersOfTwo) {
    using T = typename TestFixture::T;
    using Limits = std::numeric_limits<T>;
    const Index m = 60, n = 50;
    const Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n);
    const double norm = frobenius_norm<T>(A.view());
    for (const int e : {Limits::max_exponent - std::ilogb(norm) - 2, Limits::min_exponent + 30}) {
        Matrix<T> F = copy<T>(A.view()), S = copy<T>(A.view());
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) S(i, j) = std::scalbn(S(i, j), e);
        }
        const T abstol = static_cast<T>(0.3 * norm / std::sqrt(double(n)));
        const auto expected = this->quoin.geqp3rk(F.view(), n, n, abstol, -1, Work::Queried);
        const auto out = this->quoin.geqp3rk(S.view(), n, n, std::scalbn(abstol, e), -1, Work::Queried);
        EXPECT_EQ(out.info, 0);
        EXPECT_EQ(out.k, expected.k);
        EXPECT_GT(out.k, 0);
        EXPECT_LT(out.k, n);
        EXPECT_EQ(out.jpiv, expected.jpiv);
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) S(i, j) = i > j && j < out.k ? S(i, j) : std::scalbn(S(i, j), -e);
        }
        EXPECT_LE(difference<T>(S.view(), F.view(), n, norm), law);
        const double rounding = law * n * unit_roundoff<T>;
        EXPECT_NEAR(std::scalbn(out.largest, -e), expected.largest, rounding * norm);
        EXPECT_NEAR(out.relative, expected.relative, rounding);
    }
}

TYPED_TEST(LapackTruncated, NanAndInfAreNamed) {
    using T = typename TestFixture::T;
    using Int = typename TestFixture::Int;
    constexpr T nan = std::numeric_limits<T>::quiet_NaN(), infinity = std::numeric_limits<T>::infinity();
    for (const auto& [m, n] : {std::pair<Index, Index>{300, 40}, {60, 60}, {40, 70}, {4, 3}, {1, 5}}) {
        SCOPED_TRACE(testing::Message() << m << " x " << n);
        const Index j = n / 2;
        Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n + 2);
        A(m / 2, n - 1) = infinity;
        A(m / 2, j) = nan;
        Matrix<T> F = copy<T>(A.view());
        auto out = this->quoin.geqp3rk(F.view(), static_cast<Int>(n), static_cast<Int>(n), -1, -1, Work::Queried);
        EXPECT_EQ(out.info, j + 1);
        EXPECT_EQ(out.k, 0);
        EXPECT_TRUE(std::isnan(out.largest) && std::isnan(out.relative));
        EXPECT_TRUE(same_bits<T>(F.view(), A.view()));

        A(m / 2, n - 1) = 1;
        A(m / 2, j) = infinity;
        F = copy<T>(A.view());
        // nothing is factored: Inf in column j
        for (const auto& [kmax, abstol, reltol] : {std::tuple<Index, T, T>{0, -1, -1}, {n, infinity, -1}, {n, -1, 1}}) {
            out = this->quoin.geqp3rk(F.view(), static_cast<Int>(n), static_cast<Int>(kmax), abstol, reltol,
                                      Work::Queried);
            EXPECT_EQ(out.info, n + j + 1);
            EXPECT_EQ(out.k, 0);
            EXPECT_EQ(out.largest, infinity);
            EXPECT_EQ(out.relative, 1);
            EXPECT_TRUE(same_bits<T>(F.view(), A.view()));
        }
        // the first reflector is NaN, unless there is none
        out = this->quoin.geqp3rk(F.view(), static_cast<Int>(n), static_cast<Int>(n), -1, T(0.5), Work::Queried);
        if (m > 1) {
            EXPECT_EQ(out.info, 1);
            EXPECT_EQ(out.k, 0);
            EXPECT_TRUE(std::isnan(out.largest) && std::isnan(out.relative) && std::isnan(out.tau[0]));
        } else {
            EXPECT_EQ(out.info, n + j + 1);
            EXPECT_EQ(out.k, 1);
            EXPECT_EQ(out.jpiv[0], j + 1);
            EXPECT_EQ(F(0, 0), infinity);
            EXPECT_EQ(out.largest, 0);
        }
    }
}

TYPED_TEST(LapackTruncated, IllegalArguments) {
    using T = typename TestFixture::T;
    using Int = typename TestFixture::Int;
    T A[64] = {}, tau[8], work[512], largest = 0, relative = 0;
    Int jpiv[8], iwork[8], k = 0;
    constexpr T nan = std::numeric_limits<T>::quiet_NaN();
    struct Geqp3rk {
        Int m, n, nrhs, kmax;
        T abstol, reltol;
        Int lda, lwork, argument;
    };
    for (const Geqp3rk& c : {Geqp3rk{-1, 0, 0, 0, 0, 0, 1, 1, 1},
                             {0, -1, 0, 0, 0, 0, 1, 1, 2},
                             {0, 0, -1, 0, 0, 0, 1, 1, 3},
                             {0, 0, 0, -1, 0, 0, 1, 1, 4},
                             {0, 0, 0, 0, nan, 0, 1, 1, 5},
                             {0, 0, 0, 0, 0, nan, 1, 1, 6},
                             {2, 1, 0, 1, 0, 0, 1, 9, 8},
                             {2, 3, 2, 1, 0, 0, 2, 9, 15},
                             {0, 3, 2, 1, 0, 0, 1, 0, 15}}) {
        Int info = 99;
        take_complaint();
        this->quoin.f.geqp3rk(&c.m, &c.n, &c.nrhs, &c.kmax, &c.abstol, &c.reltol, A, &c.lda, &k, &largest, &relative,
                              jpiv, tau, work, &c.lwork, iwork, &info);
        EXPECT_EQ(info, -c.argument);
        EXPECT_EQ(take_complaint(), (Complaint{std::is_same_v<T, double> ? "DGEQP3RK" : "SGEQP3RK", c.argument}));
    }
}

TYPED_TEST(LapackTruncated, AQueryWritesWorkAlone) {
    using T = typename TestFixture::T;
    using Int = typename TestFixture::Int;
    const Int m = 1 << 20, n = 300001, nrhs = 1 << 21, query = -1;
    T untouched = 3, work = -1;
    const T tolerance = -1;
    Int info = 99, integer = 5;
    this->quoin.f.geqp3rk(&m, &n, &nrhs, &n, &tolerance, &tolerance, &untouched, &m, &integer, &untouched, &untouched,
                          &integer, &untouched, &work, &query, &integer, &info);
    EXPECT_EQ(info, 0);
    EXPECT_GE(static_cast<double>(work), 3.0 * n + nrhs - 1);
    EXPECT_EQ(untouched, 3);
    EXPECT_EQ(integer, 5);
}

}  // namespace
}  // namespace quoin::test
