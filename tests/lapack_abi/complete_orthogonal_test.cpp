// ?tzrzf, ?ormrz and ?gelsy: A = [R 0] Z by its residuals, and shortest least squares solutions by their closed form,
// over ranks, scales and workspaces; the system's ranks; argument errors.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "lapack_abi/lapack.hpp"
#include "omp_threads.hpp"

namespace quoin::test {
namespace {

/// The upper trapezoid of A, with `below` below its diagonal.
template <class T>
Matrix<T> trapezoid_of(MatrixView<const T> A, T below) {
    Matrix<T> U = copy<T>(A);
    for (Index j = 0; j < A.cols; ++j) {
        for (Index i = j + 1; i < A.rows; ++i) U(i, j) = below;
    }
    return U;
}

/// A = [R 0] Z, Z orthogonal, and products with Z, in padded memory, for the upper trapezoid of `full`.
template <class T, class Int>
void expect_laws_of_rz(const Lapack<T, Int>& lapack, MatrixView<const T> full, Work size) {
    const Index m = full.rows, n = full.cols, l = n - m;
    SCOPED_TRACE(testing::Message() << m << " x " << n << (size == Work::Minimal ? ", least work" : ", queried work"));
    const T untouched = T(12345);
    Padded<T> V(trapezoid_of<T>(full, untouched).view());
    const auto tau = lapack.tzrzf(V.view(), size);
    EXPECT_TRUE(V.padding_intact());
    for (Index j = 0; j < m; ++j) {
        for (Index i = j + 1; i < m; ++i) ASSERT_EQ(V.view()(i, j), untouched) << "below the diagonal";
    }
    if (m == 0) return;
    const MatrixView<const T> reflectors = V.view();
    // all of Z, or its first m rows
    Padded<T> Z(n > 128 ? m : n, n);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < Z.view().rows; ++i) Z.view()(i, j) = T(i == j);
    }
    lapack.ormrz(Side::Right, Op::None, static_cast<Int>(l), reflectors, tau, Z.view(), size);
    EXPECT_TRUE(Z.padding_intact());
    EXPECT_LE(orthogonality_error<T>(transposed<T>(std::as_const(Z).view()).view(), m), law);
    const Matrix<T> A = trapezoid_of<T>(full, T(0)), R = upper<T>(V.view().col_block({0, m}), m);
    const Matrix<T> RZ = product<T>(R.view(), std::as_const(Z).view().row_block({0, m}));
    EXPECT_LE(difference<T>(RZ.view(), A.view(), m, frobenius_norm<T>(A.view())), law);
    if (n > 128) return;
    for (const Side side : sides) {
        for (const Op op : ops) {
            const bool left = side == Side::Left;
            const Matrix<T> C = generate<T>(Gallery::RandomNormal, left ? n : 19, left ? 19 : n, 7);
            Padded<T> X(C.view());
            lapack.ormrz(side, op, static_cast<Int>(l), reflectors, tau, X.view(), size);
            EXPECT_TRUE(X.padding_intact());
            EXPECT_LE(product_error<T>(side, op, Z.view(), C.view(), X.view(), m), law);
        }
    }
}

template <class Types>
class LapackTrapezoid : public OverAllTypes<Types> {};
TYPED_TEST_SUITE(LapackTrapezoid, AllTypes);

TYPED_TEST(LapackTrapezoid, ObeysTheLawForEveryShape) {
    using T = typename TestFixture::T;
    std::vector<std::pair<Index, Index>> shapes = {{37, 128}, {90, 128}, {127, 128}, {65, 700}, {300, 340}, {20, 2000}};
    for (const Index m : {0, 1, 2, 3, 5, 10, 50}) {
        for (const Index n : {0, 1, 2, 3, 5, 10, 50}) {
            if (m <= n) shapes.emplace_back(m, n);
        }
    }
    for (const auto& [m, n] : shapes) {
        const Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n);
        expect_laws_of_rz<T>(this->quoin, A.view(), Work::Minimal);
        expect_laws_of_rz<T>(this->quoin, A.view(), Work::Queried);
    }
}

TYPED_TEST(LapackTrapezoid, ObeysTheLawForEveryClassOfMatrices) {
    using T = typename TestFixture::T;
    int turn = 0;
    for (const Gallery matrix_class : gallery()) {
        SCOPED_TRACE(to_string(matrix_class));
        const std::pair<Index, Index> sizes[] = {{40, 160}, {60, 90}, {7, 9}};
        const auto& [m, n] = sizes[turn++ % 3];
        expect_laws_of_rz<T>(this->quoin, generate<T>(matrix_class, m, n).view(), Work::Queried);
        expect_laws_of_rz<T>(this->quoin, transposed<T>(generate<T>(matrix_class, n, m).view()).view(), Work::Queried);
    }
}

TYPED_TEST(LapackTrapezoid, RowsOfZerosHaveNoReflector) {
    using T = typename TestFixture::T;
    for (const auto& [m, n] : {std::pair<Index, Index>{5, 9}, {60, 300}, {6, 6}}) {
        Matrix<T> A = trapezoid_of<T>(generate<T>(Gallery::RandomNormal, m, n).view(), T(3));
        for (Index j = m; j < n; ++j) {
            for (Index i = 0; i < m; ++i) A(i, j) = 0;
        }
        Matrix<T> V = copy<T>(A.view());
        EXPECT_EQ(this->quoin.tzrzf(V.view(), Work::Queried), std::vector<T>(m, T(0)));
        EXPECT_TRUE(same_bits<T>(V.view(), A.view()));
    }
}

TYPED_TEST(LapackTrapezoid, NanPropagates) {
    using T = typename TestFixture::T;
    for (const auto& [m, n] : {std::pair<Index, Index>{40, 3000}, {3, 4}}) {
        Matrix<T> A = trapezoid_of<T>(generate<T>(Gallery::RandomNormal, m, n).view(), T(0));
        A(m - 1, n - 1) = std::numeric_limits<T>::quiet_NaN();
        this->quoin.tzrzf(A.view(), Work::Queried);
        EXPECT_TRUE(std::isnan(A(0, 0)));
        EXPECT_TRUE(std::isnan(A(m - 1, m - 1)));
    }
}

/// Problems of a given rank in closed form: A = U D Wᵀ, with orthonormal U (m×r) and W (n×r), has the singular values D
/// from 1 to 1 / κ, and X = W D⁻¹ Uᵀ B.
template <class T>
struct LowRankProblem {
    static constexpr double kappa = 10;

    LowRankProblem(Index m, Index n, Index r, Index nrhs, std::uint64_t seed) : A(m, n), B(m, nrhs), X(n, nrhs) {
        const Matrix<T> U = generate<T>(Gallery::Orthogonal, m, r, seed),
                        W = generate<T>(Gallery::Orthogonal, n, r, seed + 1);
        B = generate<T>(Gallery::RandomNormal, m, nrhs, seed + 2);
        std::vector<Wide<T>> d(static_cast<std::size_t>(r));
        for (Index i = 0; i < r; ++i) d[i] = std::pow(Wide<T>(kappa), -Wide<T>(i) / std::max<Index>(1, r - 1));
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) {
                Wide<T> sum = 0;
                for (Index l = 0; l < r; ++l) sum += Wide<T>(U(i, l)) * d[l] * Wide<T>(W(j, l));
                A(i, j) = static_cast<T>(sum);
            }
        }
        for (Index c = 0; c < nrhs; ++c) {
            std::vector<Wide<T>> x(static_cast<std::size_t>(n));
            for (Index l = 0; l < r; ++l) {
                Wide<T> coefficient = 0;
                for (Index i = 0; i < m; ++i) coefficient += Wide<T>(U(i, l)) * Wide<T>(B(i, c));
                for (Index j = 0; j < n; ++j) x[j] += Wide<T>(W(j, l)) * coefficient / d[l];
            }
            for (Index j = 0; j < n; ++j) X(j, c) = static_cast<T>(x[j]);
        }
    }
    /// The bound of Wedin (1973) for the error of X with ‖ΔA‖ <= ε ‖A‖_F, ‖ΔB‖ <= ε ‖B‖_F in units of k u: U and W
    /// are orthonormal, and A low-rank, up to as many roundings.
    double unit(Index k) const {
        const double b = frobenius_norm<T>(B.view()), a = frobenius_norm<T>(A.view());
        return static_cast<double>(k) * unit_roundoff<T> * kappa * (a * (frobenius_norm<T>(X.view()) + kappa * b) + b);
    }

    Matrix<T> A, B, X;
};

template <class T>
void multiply_by_power_of_two(int e, MatrixView<T> A) {
    for (Index j = 0; j < A.cols; ++j) {
        for (Index i = 0; i < A.rows; ++i) A(i, j) = std::scalbn(A(i, j), e);
    }
}

template <class Types>
class LapackAnyRank : public OverAllTypes<Types> {
protected:
    using typename OverAllTypes<Types>::T;
    using typename OverAllTypes<Types>::Int;

    /// A and B are multiplied by 2^a and 2^b before the call. `fixed`: leading columns by jpvt.
    void expect_solution(Index m, Index n, Index r, Index nrhs, Work size, int a = 0, int b = 0, Index fixed = 0) {
        SCOPED_TRACE(testing::Message() << m << " x " << n << ", rank " << r << ", " << nrhs << " sides, scales " << a
                                        << ", " << b << ", fixed " << fixed);
        const LowRankProblem<T> problem(m, n, r, nrhs, 3);
        Padded<T> F(problem.A.view()), XB(std::max(m, n), nrhs);
        for (Index j = 0; j < nrhs; ++j) std::copy_n(problem.B.view().at(0, j), m, XB.view().at(0, j));
        multiply_by_power_of_two<T>(a, F.view());
        multiply_by_power_of_two<T>(b, XB.view().row_block({0, m}));
        std::vector<Int> jpvt(n, 0), front, all(n);
        for (Index i = 0; i < fixed; ++i) {
            jpvt[n - 1 - 2 * i] = 1;
            front.insert(front.begin(), static_cast<Int>(n - 2 * i));
        }
        EXPECT_EQ(this->quoin.gelsy(F.view(), XB.view(), jpvt, T(1e-3), size), r);
        EXPECT_TRUE(F.padding_intact() && XB.padding_intact());
        EXPECT_TRUE(std::equal(front.begin(), front.end(), jpvt.begin()));
        std::sort(jpvt.begin(), jpvt.end());
        std::iota(all.begin(), all.end(), Int(1));
        EXPECT_EQ(jpvt, all);
        const auto X = XB.view().row_block({0, n});
        multiply_by_power_of_two<T>(a - b, X);
        double error = 0;
        for (Index j = 0; j < nrhs; ++j) {
            for (Index i = 0; i < n; ++i) error = std::hypot(error, static_cast<double>(X(i, j)) - problem.X(i, j));
        }
        EXPECT_LE(error / problem.unit(std::min(m, n)), law);
    }
};
TYPED_TEST_SUITE(LapackAnyRank, AllTypes);

TYPED_TEST(LapackAnyRank, AllShapesRanksAndWorkspaces) {
    const std::array<Index, 3> counts = {1, 2, 15};
    int turn = 0;
    for (const Index m : {1, 2, 3, 5, 10, 50}) {
        for (const Index n : {1, 2, 3, 5, 10, 50}) {
            const Index k = std::min(m, n);
            for (const Index r : {Index{1}, (k + 1) / 2, k}) {
                for (const Index nrhs : in_turn(counts, turn++)) {
                    this->expect_solution(m, n, r, nrhs, nrhs == 2 ? Work::Queried : Work::Minimal);
                }
            }
        }
    }
    for (const auto& [m, n] :
         std::vector<std::pair<Index, Index>>{{301, 100}, {100, 301}, {1200, 33}, {33, 1200}, {400, 60}}) {
        if (quick() && m * n > 40000) continue;
        const Index k = std::min(m, n);
        for (const Index r : {k / 3, k}) {
            this->expect_solution(m, n, r, 3, Work::Minimal);
            this->expect_solution(m, n, r, 40, Work::Queried);
        }
    }
}

TYPED_TEST(LapackAnyRank, EntriesFarFromOne) {
    using T = typename TestFixture::T;
    const int far = std::numeric_limits<T>::max_exponent - 10;
    for (const auto& [m, n] : std::vector<std::pair<Index, Index>>{{40, 20}, {20, 40}, {400, 60}}) {
        for (const Index r : {Index{7}, std::min(m, n)}) {
            for (const auto& [a, b] : std::vector<std::pair<int, int>>{{far, far}, {-far, -far}, {far, 0}, {0, far}}) {
                this->expect_solution(m, n, r, 2, Work::Queried, a, b);
            }
        }
    }
}

TYPED_TEST(LapackAnyRank, FixedColumnsComeFirst) {
    for (const auto& [m, n] : std::vector<std::pair<Index, Index>>{{40, 20}, {20, 40}, {400, 60}}) {
        for (const Index r : {Index{7}, std::min(m, n)}) this->expect_solution(m, n, r, 2, Work::Queried, 0, 0, 4);
    }
}

TYPED_TEST(LapackAnyRank, NothingToSolve) {
    using T = typename TestFixture::T;
    using Int = typename TestFixture::Int;
    for (const auto& [m, n] : {std::pair<Index, Index>{8, 5}, {5, 8}, {400, 60}}) {
        // A = 0: X = 0 of rank 0, and jpvt as it was
        Matrix<T> A = filled<T>(m, n, T(0)), B = filled<T>(std::max(m, n), 2, T(1));
        std::vector<Int> jpvt(n, Int(7));
        EXPECT_EQ(this->quoin.gelsy(A.view(), B.view(), jpvt, T(1e-3), Work::Queried), 0);
        EXPECT_EQ(jpvt, std::vector<Int>(n, Int(7)));
        EXPECT_EQ(frobenius_norm<T>(B.view()), 0);
        // a fixed column of zeros
        A = generate<T>(Gallery::RandomNormal, m, n);
        B = filled<T>(std::max(m, n), 2, T(1));
        for (Index i = 0; i < m; ++i) A(i, 3) = 0;
        jpvt.assign(n, 0);
        jpvt[3] = 1;
        EXPECT_EQ(this->quoin.gelsy(A.view(), B.view(), jpvt, T(1e-3), Work::Queried), 0);
        EXPECT_EQ(frobenius_norm<T>(B.view()), 0);
        // no right-hand sides
        EXPECT_EQ(this->quoin.gelsy(A.view(), B.view().col_block({0, 0}), jpvt, T(1e-3), Work::Minimal), 0);
        // B = 0
        A = generate<T>(Gallery::RandomNormal, m, n);
        jpvt.assign(n, 0);
        EXPECT_EQ(this->quoin.gelsy(A.view(), B.view(), jpvt, T(1e-3), Work::Queried), std::min(m, n));
        EXPECT_EQ(frobenius_norm<T>(B.view()), 0);
    }
}

TYPED_TEST(LapackAnyRank, NanPropagates) {
    using T = typename TestFixture::T;
    using Int = typename TestFixture::Int;
    for (const auto& [m, n] : {std::pair<Index, Index>{8, 5}, {5, 8}, {400, 60}}) {
        Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n), B = filled<T>(std::max(m, n), 2, T(1));
        A(m / 2, n / 2) = std::numeric_limits<T>::quiet_NaN();
        std::vector<Int> jpvt(n, 0);
        this->quoin.gelsy(A.view(), B.view(), jpvt, T(1e-3), Work::Queried);
        EXPECT_TRUE(std::isnan(B(0, 0)));
    }
}

template <class T>
class CompleteOrthogonalExchange : public Exchange<T> {
protected:
    /// Quoin's own code at every size.
    const Lapack<T, std::int64_t> always{fortran::quoin_library(), fortran::Owner::Quoin};
};
TYPED_TEST_SUITE(CompleteOrthogonalExchange, Precisions);

TYPED_TEST(CompleteOrthogonalExchange, EitherAcceptsTheReflectorsOfTheOther) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{60, 1000}, {150, 400}, {5, 9}, {90, 91}}) {
        const Index l = n - m;
        const Matrix<T> A = trapezoid_of<T>(generate<T>(Gallery::RandomNormal, m, n).view(), T(0));
        Matrix<T> factors[2] = {copy<T>(A.view()), copy<T>(A.view())};
        for (const bool ours : {false, true}) {
            Matrix<T>& V = factors[ours];
            const auto tau =
                ours ? this->always.tzrzf(V.view(), Work::Queried) : this->system.tzrzf(V.view(), Work::Queried);
            for (const Side side : sides) {
                for (const Op op : ops) {
                    const bool left = side == Side::Left;
                    const Matrix<T> C = generate<T>(Gallery::RandomNormal, left ? n : 60, left ? 60 : n, 3);
                    Matrix<T> X = copy<T>(C.view()), X_system = copy<T>(C.view());
                    this->always.ormrz(side, op, l, std::as_const(V).view(), tau, X.view(), Work::Queried);
                    this->system.ormrz(side, op, static_cast<std::int32_t>(l), std::as_const(V).view(), tau,
                                       X_system.view(), Work::Queried);
                    EXPECT_LE(difference<T>(X.view(), X_system.view(), m, frobenius_norm<T>(C.view())), law);
                }
            }
        }
        for (Index j = 0; j < m; ++j) EXPECT_EQ(factors[0](j, j) < 0, factors[1](j, j) < 0) << "sign of row " << j;
    }
}

// With all columns fixed, R of an upper triangle is this triangle in either library, so both estimate its condition.
TYPED_TEST(CompleteOrthogonalExchange, RanksAreTheSystems) {
    using T = TypeParam;
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> uniform(0, 1);
    int deficient = 0;
    for (int trial = 0; trial < 400; ++trial) {
        const Index n = 1 + trial % 17;
        // diagonals that fall to 10^-20 and below u, rows or columns that are negligible, and zeros
        Matrix<T> A = trapezoid_of<T>(generate<T>(Gallery::RandomNormal, n, n, trial).view(), T(0));
        const double fall = 20 * uniform(random);
        for (Index j = 0; j < n; ++j) {
            const auto by_row = static_cast<T>(std::pow(10.0, -fall * static_cast<double>(j) / static_cast<double>(n)));
            for (Index i = 0; i <= j; ++i) A(i, j) *= trial % 3 == 0 && i < j ? T(1) : by_row;
            if (trial % 5 == 1) A(j, j) *= static_cast<T>(std::pow(10.0, -18 * uniform(random)));
            if (trial % 7 == 2 && uniform(random) < 0.2) std::fill_n(A.view().at(0, j), j, T(0));
            if (trial % 11 == 3 && uniform(random) < 0.2) A(j, j) = 0;
        }
        if (A(0, 0) == 0) A(0, 0) = 1;
        // estimates below 10 u are rounding errors
        const double drawn = std::pow(10.0, -20 * uniform(random)), u = unit_roundoff<T>;
        const auto rcond = static_cast<T>(trial % 4 == 0 || (drawn > u / 2 && drawn < 10 * u) ? 10 * u : drawn);
        Matrix<T> mine = copy<T>(A.view()), theirs = copy<T>(A.view());
        Matrix<T> X = filled<T>(n, 1, T(1)), X_system = filled<T>(n, 1, T(1));
        std::vector<std::int64_t> jpvt(n, 1);
        std::vector<std::int32_t> jpvt_system(n, 1);
        const auto rank = this->always.gelsy(mine.view(), X.view(), jpvt, rcond, Work::Queried);
        EXPECT_EQ(rank, this->system.gelsy(theirs.view(), X_system.view(), jpvt_system, rcond, Work::Queried))
            << trial << ": " << n << ", rcond " << rcond;
        deficient += rank < n;
    }
    EXPECT_GT(deficient, 100);
    EXPECT_LT(deficient, 300);
}

TYPED_TEST(CompleteOrthogonalExchange, ThreadsDoNotChangeBits) {
    using T = TypeParam;
    for (const auto& [m, n, r] : {std::array<Index, 3>{600, 100, 40}, {120, 500, 60}}) {
        const LowRankProblem<T> problem(m, n, r, 30, 3);
        std::vector<Matrix<T>> results;
        std::vector<std::vector<std::int64_t>> pivots;
        for (const int threads : {1, 2, 4}) {
            const OmpThreads of(threads);
            Matrix<T> A = copy<T>(problem.A.view()), B = filled<T>(std::max(m, n), 30, T(0)), AB(m, n + 30);
            for (Index j = 0; j < n; ++j) std::copy_n(A.view().at(0, j), m, AB.view().at(0, j));
            for (Index j = 0; j < 30; ++j) {
                std::copy_n(problem.B.view().at(0, j), m, B.view().at(0, j));
                std::copy_n(problem.B.view().at(0, j), m, AB.view().at(0, n + j));
            }
            std::vector<std::int64_t> jpvt(n, 0);
            this->always.gelsy(A.view(), B.view(), jpvt, T(1e-3), Work::Queried);
            auto truncated = this->always.geqp3rk(AB.view(), n, r + 3, -1, T(1e-3), Work::Queried);
            results.push_back(std::move(A));
            results.push_back(std::move(B));
            results.push_back(std::move(AB));
            pivots.push_back(jpvt);
            pivots.push_back(truncated.jpiv);
        }
        for (std::size_t i = 3; i < results.size(); ++i)
            EXPECT_TRUE(same_bits<T>(results[i].view(), results[i % 3].view())) << i;
        for (std::size_t i = 2; i < pivots.size(); ++i) EXPECT_EQ(pivots[i], pivots[i % 2]);
    }
}

TYPED_TEST(CompleteOrthogonalExchange, IllegalArguments) {
    using T = TypeParam;
    using Int = std::int32_t;
    T A[64] = {}, B[64] = {}, tau[8] = {}, work[512];
    struct Tzrzf {
        Int m, n, lda, lwork, argument;
    };
    for (const Tzrzf& c : {Tzrzf{-1, 0, 1, 1, 1}, {1, 0, 1, 1, 2}, {2, 3, 1, 2, 4}, {2, 3, 2, 1, 7}, {0, 0, 1, 0, 7}}) {
        this->expect_refusal("TZRZF", c.argument, [&](const auto& f, Int* info) {
            f.tzrzf(&c.m, &c.n, A, &c.lda, tau, work, &c.lwork, info);
        });
    }
    struct Ormrz {
        const char *side, *trans;
        Int m, n, k, l, lda, ldc, lwork, argument;
    };
    for (const Ormrz& c : {Ormrz{"/", "N", 0, 0, 0, 0, 1, 1, 1, 1},
                           {"L", "/", 0, 0, 0, 0, 1, 1, 1, 2},
                           {"L", "N", -1, 0, 0, 0, 1, 1, 1, 3},
                           {"L", "N", 0, -1, 0, 0, 1, 1, 1, 4},
                           {"L", "N", 0, 0, -1, 0, 1, 1, 1, 5},
                           {"L", "N", 0, 1, 1, 0, 1, 1, 1, 5},
                           {"R", "N", 1, 0, 1, 0, 1, 1, 1, 5},
                           {"L", "N", 0, 1, 0, 1, 1, 1, 1, 6},
                           {"R", "N", 1, 0, 0, 1, 1, 1, 1, 6},
                           {"L", "N", 2, 1, 2, 0, 1, 2, 1, 8},
                           {"R", "N", 1, 2, 2, 0, 1, 1, 1, 8},
                           {"L", "N", 2, 1, 0, 0, 1, 1, 1, 11},
                           {"L", "N", 1, 2, 0, 0, 1, 1, 1, 13},
                           {"R", "N", 2, 1, 0, 0, 1, 2, 1, 13}}) {
        this->expect_refusal("ORMRZ", c.argument, [&](const auto& f, Int* info) {
            f.ormrz(c.side, c.trans, &c.m, &c.n, &c.k, &c.l, A, &c.lda, tau, B, &c.ldc, work, &c.lwork, info, 1, 1);
        });
    }
    struct Gelsy {
        Int m, n, nrhs, lda, ldb, lwork, argument;
    };
    Int jpvt[8] = {}, rank = 0;
    const T rcond = 0;
    for (const Gelsy& c : {Gelsy{-1, 0, 0, 1, 1, 10, 1},
                           {0, -1, 0, 1, 1, 10, 2},
                           {0, 0, -1, 1, 1, 10, 3},
                           {2, 0, 0, 1, 2, 10, 5},
                           {2, 0, 0, 2, 1, 10, 7},
                           {0, 2, 0, 1, 1, 10, 7},
                           {2, 2, 1, 2, 2, 1, 12},
                           {0, 2, 1, 1, 2, 0, 12},
                           {3, 2, 9, 3, 3, 12, 12},
                           {2, 5, 1, 2, 5, 7, 12}}) {
        this->expect_refusal("GELSY", c.argument, [&](const auto& f, Int* info) {
            f.gelsy(&c.m, &c.n, &c.nrhs, A, &c.lda, B, &c.ldb, jpvt, &rcond, &rank, work, &c.lwork, info);
        });
    }
}

TYPED_TEST(CompleteOrthogonalExchange, RefusesVectorsThatReachIntoTheFirstRows) {
    using T = TypeParam;
    const std::int64_t m = 5, n = 2, k = 3, l = 3, lwork = 512;
    const T V[15] = {}, tau[3] = {};
    T C[10] = {1}, work[512];
    std::int64_t info = 99;
    take_complaint();
    this->always.f.ormrz("L", "N", &m, &n, &k, &l, V, &k, tau, C, &m, work, &lwork, &info, 1, 1);
    EXPECT_EQ(info, -6);
    EXPECT_EQ(take_complaint().argument, 6);
    EXPECT_EQ(C[0], 1);
}

TYPED_TEST(CompleteOrthogonalExchange, AQueryWritesWorkAlone) {
    using T = TypeParam;
    const std::int32_t m = 1 << 20, n = 1 << 21, nrhs = 300001, query = -1;
    T work = -1, untouched = 3;
    std::int32_t info = 99, jpvt = 5, rank = 7;
    const T rcond = 0;
    for (const auto* lapack : {&this->quoin, &this->system}) {
        lapack->f.gelsy(&m, &n, &nrhs, &untouched, &n, &untouched, &n, &jpvt, &rcond, &rank, &work, &query, &info);
        EXPECT_EQ(info, 0);
        EXPECT_GE(static_cast<double>(work), 1.0 * m + n + 1);
        lapack->f.tzrzf(&m, &n, &untouched, &m, &untouched, &work, &query, &info);
        EXPECT_EQ(info, 0);
        EXPECT_GE(static_cast<double>(work), 1.0 * m);
        lapack->f.ormrz("L", "N", &m, &nrhs, &m, &m, &untouched, &m, &untouched, &untouched, &m, &work, &query, &info,
                        1, 1);
        EXPECT_EQ(info, 0);
        EXPECT_GE(static_cast<double>(work), 1.0 * nrhs);
    }
    EXPECT_EQ(untouched, 3);
    EXPECT_EQ(jpvt, 5);
    EXPECT_EQ(rank, 7);
}

}  // namespace
}  // namespace quoin::test
