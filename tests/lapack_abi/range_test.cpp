// Columns whose norms are near the overflow threshold, in shapes that Quoin passes on to the system's LAPACK otherwise.

#include <cmath>
#include <limits>

#include "lapack_abi/lapack.hpp"

namespace quoin::test {
namespace {

template <class T>
class LapackRange : public testing::Test {
protected:
    using Library = Lapack<T, std::int32_t>;
    const Library quoin{fortran::quoin_library(), fortran::Owner::Quoin};
    const Library system{fortran::system_library(), fortran::Owner::System};
};
TYPED_TEST_SUITE(LapackRange, Precisions);

TYPED_TEST(LapackRange, NormsUpToTheLargestNumberAreFactored) {
    using T = TypeParam;
    using Library = typename LapackRange<T>::Library;
    // 2^e times a norm below 1 is finite
    constexpr int e = std::numeric_limits<T>::max_exponent;
    const auto times = [](Matrix<T>& A, int exponent) {
        for (Index j = 0; j < A.cols(); ++j) {
            for (Index i = 0; i < A.rows(); ++i) A(i, j) = std::ldexp(A(i, j), exponent);
        }
    };
    for (const auto& [rows, cols] : {std::pair<Index, Index>{6, 4}, {40, 3}, {90, 12}, {4, 6}}) {
        const Index m = rows, n = cols;
        SCOPED_TRACE(testing::Message() << m << " x " << n);
        Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n, 5);
        for (Index j = 0; j < n; ++j) {
            const auto norm = frobenius_norm<T>(A.view().col_block({j, j + 1}));
            for (Index i = 0; i < m; ++i) A(i, j) = static_cast<T>(0.9 * A(i, j) / norm);
        }
        const Index k = std::min(m, n), nb = std::min<Index>(k, 2);
        // R of 2^e A by Quoin is 2^e R of A by the system's LAPACK. `factor` returns R, in any storage.
        const auto expect_scaled = [&, m = m, n = n](const char* routine, auto factor) {
            SCOPED_TRACE(routine);
            Matrix<T> large = copy<T>(A.view()), as_it_is = copy<T>(A.view());
            times(large, e);
            Matrix<T> R = factor(this->quoin, large);
            times(R, -e);
            const Matrix<T> expected = factor(this->system, as_it_is);
            EXPECT_LE(difference<T>(R.view(), expected.view(), k, frobenius_norm<T>(A.view())), law);
        };
        for (const bool unblocked : {false, true}) {
            expect_scaled(unblocked ? "geqr2" : "geqrf", [&](const Library& lapack, Matrix<T>& V) {
                lapack.geqrf(V.view(), Work::Minimal, unblocked);
                return upper<T>(V.view(), k);
            });
        }
        expect_scaled("geqr", [&](const Library& lapack, Matrix<T>& V) {
            lapack.geqr(V.view(), Work::Queried);
            return upper<T>(V.view(), k);
        });
        expect_scaled("geqrt", [&](const Library& lapack, Matrix<T>& V) {
            Matrix<T> Tf(nb, k);
            lapack.geqrt(static_cast<std::int32_t>(nb), V.view(), Tf.view());
            return upper<T>(V.view(), k);
        });
        if (m < n) continue;
        expect_scaled("geqrt3", [&](const Library& lapack, Matrix<T>& V) {
            Matrix<T> Tf(n, n);
            lapack.geqrt(0, V.view(), Tf.view());
            return upper<T>(V.view(), k);
        });
        expect_scaled("latsqr", [&](const Library& lapack, Matrix<T>& V) {
            const auto mb = static_cast<std::int32_t>(n + 1);
            Matrix<T> Tf(nb, n * m);
            lapack.latsqr(mb, static_cast<std::int32_t>(nb), V.view(), Tf.view(), Work::Minimal);
            return upper<T>(V.view(), k);
        });
        for (const Index l : {Index{0}, n}) {
            expect_scaled("tpqrt", [&](const Library& lapack, Matrix<T>& V) {
                Matrix<T> R = filled<T>(n, n, 0), Tf(nb, n);
                lapack.tpqrt(static_cast<std::int32_t>(l), static_cast<std::int32_t>(nb), R.view(), V.view(),
                             Tf.view());
                return upper<T>(R.view(), n);
            });
        }
    }
}

// op(Q) 2^e C = 2^e (op(Q) C), bit by bit, where both are representable: for norms near the overflow threshold, and for
// numbers so short that 2^e C is exact below the least normal number
TYPED_TEST(LapackRange, ProductsWithQHaveEveryRange) {
    using T = TypeParam;
    using Limits = std::numeric_limits<T>;
    const Index m = 400, k = 170, p = 64;  // Quoin does not pass these on
    Padded<T> V(generate<T>(Gallery::RandomNormal, m, k, 5).view());
    const auto tau = this->quoin.geqrf(V.view(), Work::Queried, false);
    Matrix<T> V_t = generate<T>(Gallery::RandomNormal, m, k, 6), T_t(32, k), R = filled<T>(k, k, 0), V_s, T_s(32, k);
    this->quoin.geqrt(32, V_t.view(), T_t.view());
    V_s = generate<T>(Gallery::RandomNormal, m - k, k, 7);
    for (Index j = 0; j < k; ++j) R(j, j) = 1;
    this->quoin.tpqrt(0, 32, R.view(), V_s.view(), T_s.view());
    for (const Side side : {Side::Left, Side::Right}) {
        const bool left = side == Side::Left;
        // column j of C, or row j of it, has numbers of 8 bits and a norm below 1, times 2^e_j
        const auto exponent = [](Index j) {
            return j % 3 == 0 ? 0 : j % 3 == 1 ? Limits::max_exponent : Limits::min_exponent - Limits::digits + 12;
        };
        Matrix<T> C = generate<T>(Gallery::RandomNormal, left ? m : p, left ? p : m, 8);
        for (Index j = 0; j < C.cols(); ++j) {
            for (Index i = 0; i < C.rows(); ++i) C(i, j) = std::ldexp(std::nearbyint(C(i, j) * T(16)), -11);
        }
        const auto scaled = [&](const Matrix<T>& X) {
            Matrix<T> Y = copy<T>(X.view());
            for (Index j = 0; j < X.cols(); ++j) {
                for (Index i = 0; i < X.rows(); ++i) Y(i, j) = std::ldexp(X(i, j), exponent(left ? j : i));
            }
            return Y;
        };
        const auto part = [&](Matrix<T>& X, Range r) { return left ? X.view().row_block(r) : X.view().col_block(r); };
        const auto expect_scaled = [&](const char* routine, auto apply) {
            SCOPED_TRACE(testing::Message() << routine << (left ? " from the left" : " from the right"));
            Matrix<T> X = copy<T>(C.view()), Y = scaled(C);
            apply(X);
            apply(Y);
            EXPECT_TRUE(same_bits<T>(Y.view(), scaled(X).view()));
        };
        for (const Op op : {Op::None, Op::Transpose}) {
            expect_scaled("ormqr", [&](Matrix<T>& X) {
                this->quoin.ormqr(side, op, MatrixView<const T>(V.view()), tau, X.view(), Work::Queried);
            });
            expect_scaled("gemqrt", [&](Matrix<T>& X) {
                this->quoin.gemqrt(side, op, MatrixView<const T>(V_t.view()), MatrixView<const T>(T_t.view()),
                                   X.view());
            });
            expect_scaled("tpmqrt", [&](Matrix<T>& X) {
                this->quoin.tpmqrt(side, op, 0, 32, MatrixView<const T>(V_s.view()), MatrixView<const T>(T_s.view()),
                                   part(X, {0, k}), part(X, {k, m}));
            });
        }
    }
}

}  // namespace
}  // namespace quoin::test
