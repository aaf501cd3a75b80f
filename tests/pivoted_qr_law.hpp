#pragma once

// QR with column pivoting on any device: the law for A P, LAPACK's pivots, the quality of |r_kk|, limits, and refusals.
// Programs define WithContext for a device, and instantiate PivotedQR for the places of its matrices.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "algorithms/shared/copies.hpp"
#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"
#include "lapack.hpp"
#include "quoin/least_squares.hpp"
#include "quoin/qr.hpp"
#include "quoin/svd.hpp"

namespace quoin::test {

/// A test whose `context()` and `other_context()` are of device D, with different numbers of threads.
template <class D>
class WithContext;

template <class Scalar, class Device>
struct Place {
    using T = Scalar;
    using D = Device;
};

inline constexpr Pivots every_pivots[] = {Pivots::Auto, Pivots::Greedy, Pivots::Randomized, Pivots::Strong};

inline Options pivoted(Pivoting pivoting, QForm q = QForm::Any, Index width = 0) {
    Options options;
    options.pivoting = pivoting;
    options.q = q;
    if (width > 0) options.method = BlockedHouseholder{width};
    return options;
}

inline bool is_permutation_of(std::span<const Index> p, Index n) {
    std::vector<Index> sorted(p.begin(), p.end()), all(n);
    std::sort(sorted.begin(), sorted.end());
    std::iota(all.begin(), all.end(), Index(0));
    return sorted == all;
}

template <class T>
Matrix<T> columns(MatrixView<const T> A, std::span<const Index> p) {
    Matrix<T> B(A.rows, static_cast<Index>(p.size()));
    for (Index j = 0; j < B.cols(); ++j) std::copy_n(A.at(0, p[j]), A.rows, B.view().at(0, j));
    return B;
}

template <class Where>
class PivotedQR : public WithContext<typename Where::D> {
protected:
    using T = typename Where::T;
    using D = typename Where::D;

    QR<T, D> factor(MatrixView<const T> A, const Options& options) {
        const Matrix<T, D> placed = device_copy_of<T, D>(this->context(), A);
        return qr<T, D>(this->context(), placed.view(), options);
    }
    Matrix<T> home(const Matrix<T, D>& X) { return host_copy_of<T, D>(this->context(), X.view()); }
    Matrix<T> r_of(const QR<T, D>& f) { return home(f.r(this->context())); }
    Matrix<T> q_of(const QR<T, D>& f) { return home(f.form_q(this->context())); }

    /// Expects the law for A P, in padded memory.
    void expect_pivoted_law(MatrixView<const T> A, const Options& options) {
        Matrix<T> padded = filled<T>(A.rows + 3, A.cols, std::numeric_limits<T>::quiet_NaN());
        copy<T>(host_, A, padded.view().row_block({0, A.rows}));
        const Matrix<T, D> placed = device_copy_of<T, D>(this->context(), padded.view());
        const QR<T, D> f = qr<T, D>(this->context(), placed.view().row_block({0, A.rows}), options);
        ASSERT_TRUE(is_permutation_of(f.permutation(), A.cols));
        const Matrix<T> AP = columns(A, f.permutation());
        // a tall A has its tree, or a certified CholeskyQR
        expect_law<T>(this->context(), AP.view(), f);
        EXPECT_GE(f.report().rank, 0);
        EXPECT_TRUE(same_bits<T>(home(placed).view(), padded.view()));
    }
    void expect_limited(MatrixView<const T> A, const Pivoting& pivoting, QForm q);

private:
    Context<Host> host_{1};
};
TYPED_TEST_SUITE_P(PivotedQR);

TYPED_TEST_P(PivotedQR, ObeysTheLawForEveryClassOfMatrices) {
    using T = typename TypeParam::T;
    Index turn = 0;
    for (const Gallery c : gallery()) {
        for (auto [m, n] : {std::pair<Index, Index>{60, 60}, {90, 41}, {33, 80}, {500, 20}}) {
            const Matrix<T> A = generate<T>(c, m, n);
            for (const Pivots kind : every_pivots) {
                for (const QForm q : in_turn(q_forms, turn++)) {
                    SCOPED_TRACE(to_string(c) + " " + shape_name(m, n) + " " + to_string(kind) + " " + to_string(q));
                    this->expect_pivoted_law(A.view(), pivoted({.kind = kind}, q, m < 500 ? 16 : 0));
                }
            }
        }
    }
}

TYPED_TEST_P(PivotedQR, ObeysTheLawForEveryShape) {
    using T = typename TypeParam::T;
    Index turn = 0;
    for (const Index m : {0, 1, 2, 3, 5, 17, 50, 131, 300}) {
        for (const Index n : {0, 1, 2, 3, 5, 17, 50, 131, 300}) {
            const Matrix<T> A = random_normal<T>(m, n);
            for (const Pivots kind : in_turn(every_pivots, turn)) {
                for (const QForm q : in_turn(q_forms, turn / 4)) {
                    for (const Index width : {0, 7}) {
                        SCOPED_TRACE(shape_name(m, n) + " " + to_string(kind) + " " + to_string(q));
                        this->expect_pivoted_law(A.view(), pivoted({.kind = kind}, q, width));
                    }
                }
            }
            ++turn;
        }
    }
}

TYPED_TEST_P(PivotedQR, GreedyHasLapacksPivots) {
    using T = typename TypeParam::T;
    for (auto [m, n] : {std::pair<Index, Index>{60, 60}, {200, 70}, {40, 90}, {900, 30}, {1600, 130}}) {
        const Matrix<T> A = random_normal<T>(m, n, 3);
        const auto f = this->factor(A.view(), pivoted({.kind = Pivots::Greedy}));
        Matrix<T> V_R = copy<T>(A.view());
        std::vector<lapack_int> pivots(n, 0);
        std::vector<T> tau(std::min(m, n));
        ASSERT_EQ(lapack::geqp3(V_R.view(), pivots.data(), tau.data()), 0);
        SCOPED_TRACE(shape_name(m, n));
        for (Index j = 0; j < n; ++j) EXPECT_EQ(f.permutation()[j], pivots[j] - 1) << j;
    }
}

/// AᵀA chooses greedy pivots of a tall A while the certificate proves them: Q and R take 2mn² flops then. Beyond, R of
/// A is computed first.
TYPED_TEST_P(PivotedQR, GramMatrixChoosesTallPivotsWhileTheyAreProved) {
    using T = typename TypeParam::T;
    // √((1 − x)/(1 + x)) for x = max_pivoting_departure, and rounding
    constexpr double least = 0.81;
    for (auto [m, n] : {std::pair<Index, Index>{3000, 24}, {3000, 40}, {4000, 70}, {5000, 131}}) {
        // κ₂ = 10¹⁰ leaves a pivot of AᵀA to rounding errors
        for (const double kappa : {1.0, std::is_same_v<T, double> ? 1e10 : 1e6}) {
            SCOPED_TRACE(shape_name(m, n) + " kappa " + std::to_string(kappa));
            Matrix<T> A = kappa > 1 ? with_condition<T>(m, n, kappa) : random_normal<T>(m, n, 4);
            // columns of many sizes
            for (Index j = 0; j < n; ++j) {
                for (Index i = 0; i < m; ++i) A(i, j) = std::ldexp(A(i, j), static_cast<int>(7 * j % 11));
            }
            const Options options = pivoted({.kind = Pivots::Greedy}, QForm::Explicit);
            // where f64 is slow, f32 goes by trees
            const bool by_gram = plan_qr<T>(this->context(), m, n, options).method == Method::CholeskyQR2;
            EXPECT_TRUE((by_gram || std::is_same_v<T, float>));
            this->context().reset_progress();
            const auto f = this->factor(A.view(), options);
            const double passes = this->context().flops_done() / (1.0 * m * n * n);
            if (kappa > 1) {
                EXPECT_GT(passes, 3);
            } else if (by_gram) {
                EXPECT_NEAR(passes, 2, 0.3);
            }
            this->expect_pivoted_law(A.view(), options);
            const Matrix<T> R = this->r_of(f);
            for (Index j = 0; j < n; ++j) {
                double norm = 0, size = 0;
                for (Index i = 0; i <= j; ++i) size = std::hypot(size, static_cast<double>(R(i, j)));
                for (Index k = j; k >= 0; --k) {
                    norm = std::hypot(norm, static_cast<double>(R(k, j)));
                    ASSERT_GE(std::abs(R(k, k)), least * norm - law * n * unit_roundoff<T> * size) << k << " " << j;
                }
            }
        }
    }
}

TYPED_TEST_P(PivotedQR, EqualColumnsKeepTheirOrder) {
    using T = typename TypeParam::T;
    const Index n = 6;
    const Matrix<T> A = filled<T>(9, n, T(2));
    const auto f = this->factor(A.view(), pivoted({.kind = Pivots::Greedy}));
    EXPECT_EQ(f.permutation()[0], 0);
    EXPECT_EQ(f.report().rank, 1);
}

/// Matrices on which pivots go wrong when something is wrong with them.
template <class T>
std::vector<std::pair<std::string, Matrix<T>>> hard_for_pivots(Index n) {
    std::vector<std::pair<std::string, Matrix<T>>> all;
    const auto sigma = [&](auto f) {
        std::vector<double> s(n);
        for (Index i = 0; i < n; ++i) s[i] = f(static_cast<double>(i) / static_cast<double>(n));
        return s;
    };
    const double digits = std::is_same_v<T, double> ? 12 : 5;
    all.emplace_back("stairs", with_singular_values<T>(n, n, sigma([&](double x) {
                                                           return std::pow(10, -digits * std::floor(10 * x) / 10);
                                                       })));
    all.emplace_back("graded",
                     with_singular_values<T>(n, n, sigma([&](double x) { return std::pow(10, -digits * x); })));
    all.emplace_back(
        "low rank plus noise",
        with_singular_values<T>(n, n, sigma([&](double x) { return x < 0.2 ? 1 - x : std::pow(10, -digits / 2); })));
    all.emplace_back("polynomial",
                     with_singular_values<T>(n, n, sigma([](double x) { return 1 / (1 + 1e3 * x * x); })));
    Matrix<T> spikes = generate<T>(Gallery::Orthogonal, n, n);
    for (Index i = 0; i < n; i += n / 8) {
        for (Index j = 0; j < n; ++j) spikes(i, j) *= 1000;
    }
    all.emplace_back("spikes", std::move(spikes));
    Matrix<T> gks(n, n), kahan(n, n);
    const double sine = std::sin(1.2), cosine = std::cos(1.2);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < n; ++i) {
            gks(i, j) = static_cast<T>((i < j ? -1 : i == j ? 1 : 0) / std::sqrt(static_cast<double>(j + 1)));
            // columns that shrink a little, so that rounding errors are not what decides
            kahan(i, j) = static_cast<T>(std::pow(sine, i) *
                                         (i < j    ? -cosine
                                          : i == j ? 1
                                                   : 0) *
                                         (1 - 1e-4 * static_cast<double>(j) / static_cast<double>(n)));
        }
    }
    all.emplace_back("gks", std::move(gks));
    all.emplace_back("kahan", std::move(kahan));
    return all;
}

/// The largest factor between |r_kk| and σ_k, for σ_k above the rounding errors.
template <class T>
double quality(const std::vector<T>& s, MatrixView<const T> R) {
    const double least = 10 * static_cast<double>(s.size()) * unit_roundoff<T> * s[0];
    double worst = 1;
    for (Index k = 0; k < R.rows && s[k] > least; ++k) {
        const double ratio = std::abs(static_cast<double>(R(k, k))) / s[k];
        worst = std::max({worst, ratio, 1 / ratio});
    }
    return worst;
}

TYPED_TEST_P(PivotedQR, DiagonalOfRFollowsTheSingularValuesAsWellAsLapacks) {
    using T = typename TypeParam::T;
    // what docs/algorithms.md states
    constexpr double factor = 3;
    const Index n = quick() ? 100 : 300;
    Context<Host> host;
    for (const auto& [name, A] : hard_for_pivots<T>(n)) {
        const auto s = svd(host, A.view(), false).s;
        Matrix<T> V_R = copy<T>(A.view());
        std::vector<lapack_int> pivots(n, 0);
        std::vector<T> tau(n);
        ASSERT_EQ(lapack::geqp3(V_R.view(), pivots.data(), tau.data()), 0);
        const double of_lapack = quality<T>(s, V_R.view());
        for (const Pivots kind : {Pivots::Greedy, Pivots::Randomized}) {
            for (const Index width : {0, 24}) {
                const double mine = quality<T>(
                    s, this->r_of(this->factor(A.view(), pivoted({.kind = kind}, QForm::None, width))).view());
                EXPECT_LE(mine, factor * of_lapack) << name << " " << to_string(kind) << " " << width;
            }
        }
        // a tall one, with the pivots of a sketch
        Matrix<T> tall(10 * n, n);
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < 10 * n; ++i) tall(i, j) = A(i % n, j) / std::sqrt(T(10));
        }
        EXPECT_LE(quality<T>(s, this->r_of(this->factor(tall.view(), pivoted({}, QForm::None))).view()),
                  factor * of_lapack)
            << name << " tall";
    }
}

/// Expects what a limit promises of A P ≈ Q R.
template <class Where>
void PivotedQR<Where>::expect_limited(MatrixView<const T> A, const Pivoting& pivoting, QForm q) {
    auto& ctx = this->context();
    const QR<T, D> f = factor(A, pivoted(pivoting, q));
    const Index m = A.rows, n = A.cols, r = f.report().rank;
    const Matrix<T> R = r_of(f);
    ASSERT_EQ(R.rows(), r);
    ASSERT_EQ(R.cols(), n);
    EXPECT_TRUE(is_permutation_of(f.permutation(), n));
    EXPECT_TRUE(is_upper_trapezoidal<T>(R.view()));
    if (pivoting.max_rank > 0) {
        EXPECT_LE(r, pivoting.max_rank);
    }
    const Matrix<T> AP = columns(A, f.permutation());
    Matrix<T> QR_;
    if (q != QForm::None) {
        const Matrix<T> Q = q_of(f);
        ASSERT_EQ(Q.cols(), r);
        EXPECT_LE(orthogonality_error<T>(Q.view(), std::max<Index>(1, r)), law);
        QR_ = product<T>(Q.view(), R.view());
    }
    // the columns that are left, without and with the last row of R
    double largest = 0, before = 0, norm = 0, largest_F = 0, norm_F = 0;
    for (Index j = 0; j < n; ++j) {
        double left = 0, all = 0;
        for (Index i = 0; i < m; ++i) {
            all += std::pow(static_cast<double>(AP(i, j)), 2);
            if (q != QForm::None) left += std::pow(static_cast<double>(AP(i, j)) - static_cast<double>(QR_(i, j)), 2);
        }
        if (q == QForm::None) {
            // Q is orthonormal
            left = all;
            for (Index i = 0; i < r; ++i) left -= std::pow(static_cast<double>(R(i, j)), 2);
            left = std::max(0.0, left);
        }
        largest = std::max(largest, std::sqrt(left));
        norm = std::max(norm, std::sqrt(all));
        largest_F = std::hypot(largest_F, std::sqrt(left));
        norm_F = std::hypot(norm_F, std::sqrt(all));
        if (r > 0) before = std::max(before, std::hypot(std::sqrt(left), static_cast<double>(R(r - 1, j))));
    }
    // a difference of squares has lost half of the digits
    const double units = law * static_cast<double>(r + 1) * unit_roundoff<T>,
                 rounding = (q == QForm::None ? std::sqrt(units) : units) * norm;
    if (pivoting.relative_frobenius > 0) {
        const double tolerance = pivoting.relative_frobenius * norm_F, more = rounding / norm * norm_F;
        EXPECT_LE(largest_F, tolerance + more);
        double last = 0;
        for (Index j = 0; j < n && r > 0; ++j) last = std::hypot(last, static_cast<double>(R(r - 1, j)));
        EXPECT_TRUE(r == 0 || std::hypot(largest_F, last) >= tolerance - more);
    } else if (pivoting.has_tolerance()) {
        const double tolerance = std::max(pivoting.tolerance, pivoting.relative_tolerance * norm);
        if (pivoting.max_rank == 0 || r < pivoting.max_rank) {
            EXPECT_LE(largest, tolerance + rounding);
        }
        if (r > 0) {
            EXPECT_GE(before, tolerance - rounding);
        }
    } else {
        EXPECT_EQ(r, pivoting.max_rank);
    }
    if (q == QForm::None) return;
    // C = Q Qᵀ C of the m×m Q, which has r reflectors
    const Matrix<T> C = random_normal<T>(m, 3);
    Matrix<T, D> X = device_copy_of<T, D>(ctx, C.view());
    f.apply_q(ctx, Side::Left, Op::Transpose, X.view());
    f.apply_q(ctx, Side::Left, Op::None, X.view());
    EXPECT_LE(difference<T>(home(X).view(), C.view(), std::max<Index>(1, 2 * r), frobenius_norm<T>(C.view())), law);
    const LapackQR<T, D> factors = to_lapack(ctx, factor(A, pivoted(pivoting, q)));
    EXPECT_EQ(factors.tau.rows(), r);
    const Matrix<T> V_R = home(factors.V_R);
    for (Index j = r; j < n; ++j) {
        for (Index i = r; i < m; ++i) ASSERT_EQ(V_R(i, j), T(0));
    }
}

TYPED_TEST_P(PivotedQR, StopsAtARankOrATolerance) {
    using T = typename TypeParam::T;
    Index turn = 0;
    for (auto [m, n] : {std::pair<Index, Index>{200, 150}, {120, 260}, {900, 100}}) {
        const Matrix<T> A = with_condition<T>(m, n, 1e4);
        // exchanges of columns may leave one above the tolerance
        for (const Pivots kind : {Pivots::Auto, Pivots::Greedy, Pivots::Randomized}) {
            for (const Pivoting limit : {Pivoting{.max_rank = 1},
                                         {.max_rank = 37},
                                         {.max_rank = std::min(m, n)},
                                         {.tolerance = 1e-2},
                                         {.relative_tolerance = 1e-3},
                                         {.relative_tolerance = 1},
                                         {.max_rank = 20, .relative_tolerance = 1e-2},
                                         {.relative_frobenius = 1e-2},
                                         {.tolerance = 1e300}}) {
                for (const QForm q : in_turn(q_forms, turn++)) {
                    Pivoting pivoting = limit;
                    pivoting.kind = kind;
                    SCOPED_TRACE(shape_name(m, n) + " " + to_string(kind) + " " + to_string(q) + " rank " +
                                 std::to_string(limit.max_rank) + " tol " + std::to_string(limit.tolerance) + " " +
                                 std::to_string(limit.relative_tolerance) + " Frobenius " +
                                 std::to_string(limit.relative_frobenius));
                    this->expect_limited(A.view(), pivoting, q);
                }
            }
        }
    }
}

TYPED_TEST_P(PivotedQR, FindsTheRank) {
    using T = typename TypeParam::T;
    for (const Pivots kind : every_pivots) {
        SCOPED_TRACE(to_string(kind));
        const auto rank = [&](const Matrix<T>& A, Pivoting pivoting) {
            pivoting.kind = kind;
            return this->factor(A.view(), pivoted(pivoting)).report().rank;
        };
        const Matrix<T> zero = filled<T>(150, 120, T(0));
        EXPECT_EQ(rank(zero, {}), 0);
        EXPECT_EQ(rank(zero, {.relative_tolerance = 1e-6}), 0);
        EXPECT_EQ(rank(zero, {.relative_frobenius = 1e-6}), 0);
        EXPECT_EQ(rank(filled<T>(150, 120, T(3)), {.relative_frobenius = 1e-4}), 1);
        EXPECT_EQ(rank(generate<T>(Gallery::RankDeficientExact, 150, 120), {.relative_frobenius = 1e-4}), 60);
        EXPECT_EQ(rank(filled<T>(150, 120, T(3)), {.relative_tolerance = 1e-4}), 1);
        EXPECT_EQ(rank(generate<T>(Gallery::RankDeficientExact, 150, 120), {}), 60);
        EXPECT_EQ(rank(generate<T>(Gallery::RankDeficientExact, 150, 120), {.relative_tolerance = 1e-4}), 60);
        EXPECT_EQ(rank(generate<T>(Gallery::ZeroSomeColumns, 150, 120), {}), 80);
        EXPECT_EQ(rank(random_normal<T>(0, 5), {}), 0);
        EXPECT_EQ(rank(random_normal<T>(5, 0), {}), 0);
    }
}

TYPED_TEST_P(PivotedQR, OutOfRangeColumnsAreOrderedByTheirNorms) {
    using T = typename TypeParam::T;
    const Index n = 40;
    for (const Pivots kind : {Pivots::Greedy, Pivots::Randomized}) {
        // norms from 10^-e to 10^e
        const Matrix<T> A = generate<T>(Gallery::GradedColumnsUp, 300, n);
        const auto f = this->factor(A.view(), pivoted({.kind = kind}, QForm::Any, 16));
        for (Index j = 0; j < n; ++j) EXPECT_EQ(f.permutation()[j], n - 1 - j) << to_string(kind);
    }
}

TYPED_TEST_P(PivotedQR, BitsDependOnTheSeedAlone) {
    using T = typename TypeParam::T;
    using D = typename TypeParam::D;
    for (auto [m, n] : {std::pair<Index, Index>{400, 400}, {1031, 130}, {150, 700}, {5000, 120}}) {
        const Matrix<T> A = random_normal<T>(m, n);
        const Matrix<T, D> placed = device_copy_of<T, D>(this->context(), A.view());
        for (const Pivots kind : every_pivots) {
            SCOPED_TRACE(shape_name(m, n) + " " + to_string(kind));
            const Options options = pivoted({.kind = kind}, QForm::Explicit);
            const auto by = [&](Context<D>& ctx) { return qr<T, D>(ctx, placed.view(), options); };
            const QR<T, D> a = by(this->other_context()), b = by(this->context()), c = by(this->context());
            EXPECT_TRUE(std::ranges::equal(a.permutation(), b.permutation()));
            EXPECT_TRUE(same_bits<T>(this->r_of(a).view(), this->r_of(b).view()));
            EXPECT_TRUE(same_bits<T>(this->q_of(a).view(), this->q_of(b).view()));
            EXPECT_TRUE(same_bits<T>(this->r_of(b).view(), this->r_of(c).view()));
        }
    }
    const Matrix<T> A = random_normal<T>(400, 400);
    const auto seeded = [&](std::uint64_t seed) { return this->factor(A.view(), pivoted({.seed = seed})); };
    EXPECT_FALSE(std::ranges::equal(seeded(1).permutation(), seeded(2).permutation()));
}

TYPED_TEST_P(PivotedQR, HasWhatAFactorizationHas) {
    using T = typename TypeParam::T;
    using D = typename TypeParam::D;
    auto& ctx = this->context();
    const Index m = 230, n = 200;
    const Matrix<T> A = random_normal<T>(m, n);
    for (const Pivots kind : {Pivots::Greedy, Pivots::Randomized}) {
        Options options = pivoted({.kind = kind}, QForm::Reflectors);
        options.q = FullT{.keep_s = true};
        options.verify = true;
        QR<T, D> f = this->factor(A.view(), options);
        EXPECT_LE(f.report().orthogonality, law * n * unit_roundoff<T>);
        EXPECT_LE(f.report().residual, law * n * unit_roundoff<T>);
        const Matrix<T> Q = this->q_of(f), block = this->home(f.q_block(ctx, {3, 90}, {5, 17}));
        EXPECT_LE(difference<T>(block.view(), Q.view().block({3, 90}, {5, 17}), n, std::sqrt(12.0)), law);
        const std::vector<Index> p(f.permutation().begin(), f.permutation().end());
        const Matrix<T> AP = columns<T>(A.view(), p), tau = this->home(f.tau(ctx)), t = this->home(f.t(ctx));
        for (Index j = 0; j < n; ++j) EXPECT_EQ(tau(j, 0), t(j, j));
        LapackQRT<T, D> factors = to_lapack_t(ctx, std::move(f), 20);
        const QR<T, D> back = from_lapack_t(ctx, std::move(factors));
        expect_law<T>(ctx, AP.view(), back);
    }
    // in A's own memory
    Matrix<T, D> moved = device_copy_of<T, D>(ctx, A.view());
    const Options options = pivoted({});
    const QR<T, D> in_place = qr(ctx, std::move(moved), plan_qr<T>(ctx, m, n, options));
    EXPECT_TRUE(same_bits<T>(this->r_of(in_place).view(), this->r_of(this->factor(A.view(), options)).view()));
}

TYPED_TEST_P(PivotedQR, NamesBadInput) {
    using T = typename TypeParam::T;
    using D = typename TypeParam::D;
    const auto refuses = [&](const Options& options, const std::string& part) {
        const Matrix<T> A = random_normal<T>(30, 20);
        try {
            this->factor(A.view(), options);
            ADD_FAILURE() << "accepted: " << part;
        } catch (const InvalidArgument& e) {
            EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
        }
    };
    refuses(pivoted({.max_rank = 21}), "the rank asked for must be from 1 to min(m, n) = 20");
    refuses(pivoted({.max_rank = -1}), "and is -1");
    refuses(pivoted({.tolerance = -1}), "tolerance must not be negative or NaN, and is -1");
    refuses(pivoted({.tolerance = std::numeric_limits<double>::quiet_NaN()}), "tolerance");
    refuses(pivoted({.relative_tolerance = -0.5}), "a relative tolerance");
    refuses(pivoted({.kind = Pivots::Greedy, .seed = 3}), "a seed belongs to randomized pivots");
    Options by_tree = pivoted({});
    by_tree.method = Method::TSQR;
    refuses(by_tree, "the method is tsqr");
    auto& ctx = this->context();
    const Matrix<T, D> A(ctx, 30, 20), b(ctx, 30, 1);
    Matrix<T, D> Q(ctx, 30, 20), R(ctx, 20, 20);
    EXPECT_THROW((qr<T, D>(ctx, A.view(), Q.view(), R.view(), pivoted({}))), InvalidArgument);
    EXPECT_THROW((least_squares<T, D>(ctx, A.view(), b.view(), {}, pivoted({}))), InvalidArgument);
    for (const Pivots kind : every_pivots) {
        Matrix<T> bad = random_normal<T>(400, 130);
        bad(17, 101) = std::numeric_limits<T>::quiet_NaN();
        try {
            this->factor(bad.view(), pivoted({.kind = kind}));
            ADD_FAILURE() << "accepted NaN";
        } catch (const NonFiniteEntry& e) {
            EXPECT_EQ(e.row, 17);
            EXPECT_EQ(e.col, 101);
        }
        // unchecked, it propagates, and the call ends
        Options unchecked = pivoted({.kind = kind});
        unchecked.check_finite = false;
        EXPECT_TRUE(is_permutation_of(this->factor(bad.view(), unchecked).permutation(), 130));
    }
}

REGISTER_TYPED_TEST_SUITE_P(PivotedQR, ObeysTheLawForEveryClassOfMatrices, ObeysTheLawForEveryShape,
                            GreedyHasLapacksPivots, GramMatrixChoosesTallPivotsWhileTheyAreProved,
                            EqualColumnsKeepTheirOrder, DiagonalOfRFollowsTheSingularValuesAsWellAsLapacks,
                            StopsAtARankOrATolerance, FindsTheRank, OutOfRangeColumnsAreOrderedByTheirNorms,
                            BitsDependOnTheSeedAlone, HasWhatAFactorizationHas, NamesBadInput);

}  // namespace quoin::test
