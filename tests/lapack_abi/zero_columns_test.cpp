// A column that has nothing but zeros below its diagonal when its turn comes: H = I and tau = 0 as in the reference, by
// every method, and R with the reference's signs.

#include <cmath>
#include <vector>

#include "lapack_abi/lapack.hpp"

namespace quoin::test {
namespace {

enum class Zeros { Identity, Signs, Triangle, GradedTriangle, EveryThirdColumn, OddRows };
constexpr Zeros all_zeros[] = {Zeros::Identity,         Zeros::Signs,  Zeros::Triangle, Zeros::GradedTriangle,
                               Zeros::EveryThirdColumn, Zeros::OddRows};

template <class T>
Matrix<T> matrix_with(Zeros zeros, Index m, Index n) {
    Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n, 3);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) {
            const T sign = j % 3 == 1 ? T(-1) : T(1), small = T(0.5) / static_cast<T>(n);
            switch (zeros) {
                case Zeros::Identity: A(i, j) = T(i == j); break;
                case Zeros::Signs: A(i, j) = i == j ? sign * static_cast<T>(j + 1) : T(0); break;
                case Zeros::Triangle: A(i, j) = i == j ? sign : i < j ? small * A(i, j) : T(0); break;
                // κ is beyond what the Gram matrix certifies
                case Zeros::GradedTriangle:
                    A(i, j) = i == j  ? sign * std::ldexp(T(1), static_cast<int>(-60 * j / n))
                              : i < j ? small * A(i, j)
                                      : T(0);
                    break;
                case Zeros::EveryThirdColumn:
                    if (j % 3 == 0) A(i, j) = 0;
                    break;
                // the reflectors of even columns leave odd ones as they are
                case Zeros::OddRows:
                    if (j % 2 == 1)
                        A(i, j) = i == j ? sign : T(0);
                    else if (i % 2 == 1 && i < n)
                        A(i, j) = 0;
                    break;
            }
        }
    }
    return A;
}

/// R of the reference's ?geqr2 in higher precision, and which of its tau are 0. The system's own calls Quoin's.
template <class T>
struct Reference {
    explicit Reference(MatrixView<const T> A) : R(std::min(A.rows, A.cols), A.cols), is_identity(R.rows()) {
        const Index m = A.rows, n = A.cols;
        Matrix<Wide<T>> W(m, n);
        for (Index j = 0; j < n; ++j) std::copy_n(A.at(0, j), m, W.view().at(0, j));
        for (Index j = 0; j < R.rows(); ++j) {
            Wide<T>*const x = &W(j, j), below = 0;
            for (Index i = 1; i < m - j; ++i) below += x[i] * x[i];
            is_identity[j] = below == 0;
            if (below == 0) continue;
            const Wide<T> beta = -std::copysign(std::sqrt(x[0] * x[0] + below), x[0]), tau = (beta - x[0]) / beta;
            for (Index i = 1; i < m - j; ++i) x[i] /= x[0] - beta;
            x[0] = beta;
            for (Index l = j + 1; l < n; ++l) {
                Wide<T>*const c = &W(j, l), w = c[0];
                for (Index i = 1; i < m - j; ++i) w += x[i] * c[i];
                c[0] -= tau * w;
                for (Index i = 1; i < m - j; ++i) c[i] -= tau * w * x[i];
            }
        }
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < R.rows(); ++i) R(i, j) = i <= j ? static_cast<T>(W(i, j)) : T(0);
        }
    }
    Matrix<T> R;
    std::vector<bool> is_identity;
};

template <class T>
class LapackZeroColumns : public testing::Test {
protected:
    const Lapack<T, std::int32_t> quoin{fortran::quoin_library(), fortran::Owner::Quoin};
};
TYPED_TEST_SUITE(LapackZeroColumns, Precisions);

TYPED_TEST(LapackZeroColumns, HaveTheReflectorsOfTheReference) {
    using T = TypeParam;
    // one panel by reconstruction, blocked, square, wide
    for (const auto& [m, n] : {std::pair<Index, Index>{3000, 30}, {700, 60}, {130, 130}, {120, 150}}) {
        for (const Zeros zeros : all_zeros) {
            SCOPED_TRACE(testing::Message() << m << " x " << n << ", case " << static_cast<int>(zeros));
            const Index k = std::min(m, n);
            const Matrix<T> A = matrix_with<T>(zeros, m, n);
            const Reference<T> expected(A.view());
            Matrix<T> V = copy<T>(A.view());
            const auto tau = this->quoin.geqrf(V.view(), Work::Queried);
            for (Index j = 0; j < k; ++j) {
                EXPECT_EQ(tau[j] == 0, expected.is_identity[j]) << "tau of column " << j << " is " << tau[j];
                EXPECT_EQ(V(j, j) < 0, expected.R(j, j) < 0) << "sign of row " << j;
            }
            const Matrix<T> R = upper<T>(V.view(), k);
            // the condition of these matrices is moderate, or R is A itself
            EXPECT_LE(difference<T>(R.view(), expected.R.view(), k, 10 * frobenius_norm<T>(A.view())), law);
            const auto Q = V.view().col_block({0, k});
            this->quoin.orgqr(Q, static_cast<std::int32_t>(k), tau, Work::Queried);
            EXPECT_LE(residual_error<T>(A.view(), Q, R.view()), law);
            EXPECT_LE(orthogonality_error<T>(Q, k), law);
        }
    }
}

TYPED_TEST(LapackZeroColumns, LeaveNothingInT) {
    using T = TypeParam;
    const Index m = 3000, n = 40;
    const Matrix<T> A = matrix_with<T>(Zeros::OddRows, m, n);
    Matrix<T> V = copy<T>(A.view()), Tf = filled<T>(n, n, 0), I = copy<T>(A.view());
    this->quoin.geqrt(0, V.view(), Tf.view());
    for (Index j = 1; j < n; j += 2) {
        for (Index i = 0; i < n; ++i) {
            EXPECT_EQ(Tf(i, j), 0);
            EXPECT_EQ(Tf(j, i), 0);
        }
    }
    // QᵀA = R
    this->quoin.gemqrt(Side::Left, Op::Transpose, V.view(), Tf.view(), I.view());
    Matrix<T> R = filled<T>(m, n, 0);
    for (Index j = 0; j < n; ++j) std::copy_n(V.view().at(0, j), j + 1, R.view().at(0, j));
    EXPECT_LE(difference<T>(I.view(), R.view(), 2 * n, frobenius_norm<T>(A.view())), law);
}

}  // namespace
}  // namespace quoin::test
