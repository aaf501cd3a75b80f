// ?gels, ?gelst and ?getsls: normal equations, residuals and minimum norm over shapes, scales and workspaces; rank,
// argument errors.

#include <array>

#include "lapack_abi/lapack.hpp"

namespace quoin::test {
namespace {

constexpr Solver solvers[] = {Solver::Gels, Solver::Gelst, Solver::Getsls};

template <class T>
struct Product {
    /// op(A) X − B in the wide type; B without data is 0.
    Product(Op op, MatrixView<const T> A, MatrixView<const T> X, MatrixView<const T> B)
        : rows(op == Op::None ? A.rows : A.cols), cols(X.cols), data(rows * cols) {
        const Index inner = op == Op::None ? A.cols : A.rows;
        for (Index j = 0; j < cols; ++j) {
            for (Index i = 0; i < rows; ++i) {
                Wide<T> sum = B.data ? -Wide<T>(B(i, j)) : 0;
                for (Index l = 0; l < inner; ++l) {
                    sum += Wide<T>(op == Op::None ? A(i, l) : A(l, i)) * Wide<T>(X(l, j));
                }
                data[i + j * rows] = sum;
            }
        }
    }
    Index rows, cols;
    std::vector<Wide<T>> data;
};

template <class W>
W norm_of(const std::vector<W>& x) {
    W sum = 0;
    for (const W value : x) sum += value * value;
    return std::sqrt(sum);
}

template <class T>
Wide<T> wide_norm(MatrixView<const T> A) {
    std::vector<Wide<T>> all;
    for (Index j = 0; j < A.cols; ++j) all.insert(all.end(), A.at(0, j), A.at(0, j) + A.rows);
    return norm_of(all);
}

template <class T>
void multiply_by_power(int e, MatrixView<T> A) {
    for (Index j = 0; j < A.cols; ++j) {
        for (Index i = 0; i < A.rows; ++i) A(i, j) = std::scalbn(A(i, j), e);
    }
}

template <class Types>
class LapackLeastSquares : public OverAllTypes<Types> {
protected:
    using typename OverAllTypes<Types>::T;

    /// X is exact for op(A) + ΔA and B + ΔB, ‖ΔA‖ <= c k u ‖A‖ and ‖ΔB‖ <= c k u ‖B‖: errors of the factorization, of
    /// the product with Q and of the triangular solution. All entries are multiplied by 2^a (A) and 2^b (B) before the
    /// call.
    void expect_solution(Solver solver, Op op, Index m, Index n, Index nrhs, Work size, int a = 0, int b = 0) {
        SCOPED_TRACE(testing::Message() << "solver " << int(solver) << ", op " << int(op) << ", " << m << " x " << n
                                        << ", " << nrhs << " sides, scales " << a << ", " << b);
        const Index rows = op == Op::None ? m : n, cols = op == Op::None ? n : m, k = std::min(m, n);
        const Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n, 3);
        const Matrix<T> B = generate<T>(Gallery::RandomNormal, rows, nrhs, 4);
        Padded<T> F(A.view()), XB(std::max(m, n), nrhs);
        for (Index j = 0; j < nrhs; ++j) std::copy_n(B.view().at(0, j), rows, XB.view().at(0, j));
        multiply_by_power<T>(a, F.view());
        multiply_by_power<T>(b, XB.view().row_block({0, rows}));
        EXPECT_EQ(this->quoin.solve(solver, op, F.view(), XB.view(), size), 0);
        EXPECT_TRUE(F.padding_intact() && XB.padding_intact());
        if (k == 0 || nrhs == 0) {
            for (Index j = 0; j < nrhs; ++j) {
                for (Index i = 0; i < std::max(m, n); ++i) EXPECT_EQ(XB.view()(i, j), 0);
            }
            return;
        }
        const auto X = XB.view().row_block({0, cols});
        multiply_by_power<T>(a - b, X);
        const Wide<T> A_norm = wide_norm<T>(A.view()), X_norm = wide_norm<T>(X), B_norm = wide_norm<T>(B.view());
        const Wide<T> unit = k * unit_roundoff<T> * (A_norm * X_norm + B_norm);
        const Product<T> residual(op, A.view(), X, B.view());
        if (rows >= cols) {
            // op(A)ᵀ (op(A) X − B) = 0
            Wide<T> gradient = 0;
            for (Index j = 0; j < nrhs; ++j) {
                for (Index l = 0; l < cols; ++l) {
                    Wide<T> sum = 0;
                    for (Index i = 0; i < rows; ++i) {
                        sum += Wide<T>(op == Op::None ? A(i, l) : A(l, i)) * residual.data[i + j * rows];
                    }
                    gradient += sum * sum;
                }
            }
            EXPECT_LE(std::sqrt(gradient) / (A_norm * unit), 2 * law);
            // the rows below X have the residual's norm
            const auto rest = XB.view().row_block({cols, rows});
            if (a == 0 && b == 0) {
                EXPECT_LE(std::abs(wide_norm<T>(rest) - norm_of(residual.data)) / unit, 2 * law);
            }
        } else {
            EXPECT_LE(norm_of(residual.data) / unit, 2 * law);
            // X = Q₁ Q₁ᵀ X for op(A)ᵀ = Q₁ R
            Matrix<T> Q = op == Op::None ? transposed<T>(A.view()) : copy<T>(A.view());
            const auto tau = this->quoin.geqrf(Q.view(), Work::Minimal);
            this->quoin.orgqr(Q.view(), k, tau, Work::Minimal);
            const Product<T> coefficients(Op::Transpose, Q.view(), X, {});
            std::vector<Wide<T>> outside(cols * nrhs);
            for (Index j = 0; j < nrhs; ++j) {
                for (Index i = 0; i < cols; ++i) {
                    Wide<T> sum = X(i, j);
                    for (Index l = 0; l < k; ++l) sum -= Wide<T>(Q(i, l)) * coefficients.data[l + j * k];
                    outside[i + j * cols] = sum;
                }
            }
            // Q₁ of the perturbed matrix is off by κ u, and these matrices are well-conditioned: κ below 10 k
            EXPECT_LE(norm_of(outside) / (10 * k * k * unit_roundoff<T> * X_norm), 2 * law);
        }
    }
};
TYPED_TEST_SUITE(LapackLeastSquares, AllTypes);

TYPED_TEST(LapackLeastSquares, AllShapesAndWorkspaces) {
    for (const Index m : {0, 1, 2, 3, 5, 10, 50}) {
        for (const Index n : {0, 1, 2, 3, 5, 10, 50}) {
            // square random matrices have any condition
            if (m == n && m > 1) continue;
            for (const Index nrhs : {0, 1, 2, 15}) {
                for (const Op op : ops) {
                    for (const Solver solver : solvers) {
                        this->expect_solution(solver, op, m, n, nrhs, nrhs == 2 ? Work::Queried : Work::Minimal);
                    }
                }
            }
        }
    }
    for (const auto& [m, n] : std::vector<std::pair<Index, Index>>{{301, 100}, {100, 301}, {2500, 33}, {33, 2500}}) {
        if (quick() && m * n > 40000) continue;
        for (const Op op : ops) {
            for (const Solver solver : solvers) this->expect_solution(solver, op, m, n, 3, Work::Minimal);
        }
    }
}

TYPED_TEST(LapackLeastSquares, EntriesFarFromOne) {
    using T = typename TestFixture::T;
    // beyond the reference's limits of scaling, so that no square and no quotient is representable without it
    const int far = std::numeric_limits<T>::max_exponent - 10;
    for (const auto& [m, n] : std::vector<std::pair<Index, Index>>{{40, 20}, {20, 40}, {301, 100}, {100, 301}}) {
        for (const auto& [a, b] : std::vector<std::pair<int, int>>{{far, far}, {-far, -far}, {far, 0}, {0, far}}) {
            for (const Op op : ops) {
                for (const Solver solver : solvers) {
                    this->expect_solution(solver, op, m, n, 2, Work::Minimal, a, b);
                }
            }
        }
    }
}

TYPED_TEST(LapackLeastSquares, ZerosOnTheDiagonalAreNamed) {
    using T = typename TestFixture::T;
    for (const auto& [m, n] : std::vector<std::pair<Index, Index>>{{8, 5}, {5, 8}, {301, 100}, {100, 301}}) {
        for (const Op op : ops) {
            for (const Solver solver : solvers) {
                Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n), B = filled<T>(std::max(m, n), 2, 1);
                const Index j = 3;
                for (Index i = 0; i < (m >= n ? m : n); ++i) (m >= n ? A(i, j) : A(j, i)) = 0;
                EXPECT_EQ(this->quoin.solve(solver, op, A.view(), B.view(), Work::Minimal), j + 1) << m << " x " << n;
                // no rank, no error
                Matrix<T> Z = filled<T>(m, n, 0), X = filled<T>(std::max(m, n), 2, 1);
                EXPECT_EQ(this->quoin.solve(solver, op, Z.view(), X.view(), Work::Minimal), 0);
                EXPECT_EQ(frobenius_norm<T>(X.view()), 0);
                // and none that waits for a number
                Matrix<T> N = generate<T>(Gallery::RandomNormal, m, n), Y = filled<T>(std::max(m, n), 2, 1);
                N(m / 2, 0) = std::numeric_limits<T>::quiet_NaN();
                EXPECT_EQ(this->quoin.solve(solver, op, N.view(), Y.view(), Work::Minimal), 0);
                EXPECT_TRUE(std::isnan(Y(0, 0)));
            }
        }
    }
}

template <class T>
class LapackLeastSquaresExchange : public Exchange<T> {};
TYPED_TEST_SUITE(LapackLeastSquaresExchange, Precisions);

TYPED_TEST(LapackLeastSquaresExchange, IllegalArguments) {
    using T = TypeParam;
    using Int = std::int32_t;
    T A[16] = {}, B[16] = {}, work[64];
    struct Gels {
        const char* trans;
        Int m, n, nrhs, lda, ldb, lwork, argument;
    };
    for (const Gels& c : {Gels{"/", 0, 0, 0, 1, 1, 1, 1},
                          {"N", -1, 0, 0, 1, 1, 1, 2},
                          {"N", 0, -1, 0, 1, 1, 1, 3},
                          {"N", 0, 0, -1, 1, 1, 1, 4},
                          {"N", 2, 0, 0, 1, 2, 2, 6},
                          {"N", 2, 0, 0, 2, 1, 2, 8},
                          {"N", 0, 2, 0, 1, 1, 2, 8},
                          {"T", 2, 1, 1, 2, 2, 1, 10}}) {
        const auto call = [&](auto* routine, Int* info) {
            routine(c.trans, &c.m, &c.n, &c.nrhs, A, &c.lda, B, &c.ldb, work, &c.lwork, info, 1);
        };
        this->expect_refusal("GELS", c.argument, [&](const auto& f, Int* info) { call(f.gels, info); });
        this->expect_refusal("GELST", c.argument, [&](const auto& f, Int* info) { call(f.gelst, info); });
        this->expect_refusal("GETSLS", c.argument, [&](const auto& f, Int* info) { call(f.getsls, info); });
    }
}

TYPED_TEST(LapackLeastSquaresExchange, EveryNameIsExported) {
    for (const char* before : {"", "scipy_"}) {
        for (const char* after : {"_", "_64_"}) {
            for (const char* name :
                 {"geqrf",  "geqr2",  "orgqr",   "ormqr",   "geqrt",       "geqrt3",   "gemqrt", "tpqrt",
                  "tpmqrt", "latsqr", "lamtsqr", "orgtsqr", "orgtsqr_row", "orhr_col", "geqr",   "gemqr",
                  "gels",   "gelst",  "getsls",  "gelsy",   "tzrzf",       "ormrz",    "geqp3rk"}) {
                const std::string symbol = before + std::string(sizeof(TypeParam) == 8 ? "d" : "s") + name + after;
                EXPECT_NE(dlsym(fortran::quoin_library(), symbol.c_str()), nullptr) << symbol;
            }
        }
    }
}

}  // namespace
}  // namespace quoin::test
