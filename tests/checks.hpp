#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "quoin/matrix.hpp"
#include "quoin/qr.hpp"

/// Measured quantities of a factorization A = QR, each in units in which the law is "at most `law`".
///
/// **The law.** Let u be the unit roundoff and k = min(m, n) the number of reflectors. Applying a computed reflector
/// H = I − τvvᵀ to a vector commits a normwise relative error of at most about 11u: errors of v, τ, the inner product,
/// the scaling and the outer product act through ‖τvvᵀ‖₂ = 2, the subtraction adds one. They are added and not taken
/// as independent, because the rows of a matrix may all be alike and then round alike. The inner product commits a
/// constant and not m·u, because a library that deserves the name sums over leaves, blocks and vector lanes: **no bound
/// below contains m**, except as the square root that the Frobenius norm of a matrix of m columns contains. k
/// reflectors in a row commit at most k times as much (Higham, Accuracy and Stability of Numerical Algorithms, 2002,
/// Lemma 19.3), and to each column by itself (Theorem 19.4). Every quantity below compares two computed ones (Q and R,
/// QC and the formed Q, Q and itself), so that, with c = 2·11,
///
///     ‖a_j − Q r_j‖₂ ≤ c·k·u·‖a_j‖₂,   hence ‖A − QR‖_F ≤ c·k·u·‖A‖_F,   ‖QC − fl(QC)‖_F ≤ c·k·u·‖C‖_F.
///
/// Different reflectors do round independently (Higham and Mary 2019), so that a column of Q departs by c·√k·u; q
/// columns of Q have ‖I − QᵀQ‖_F ≤ c·√(kq)·u, which is c·k·u for the thin Q and c·√(km)·u for the m×m Q. By the same
/// right a tree of d stages, d times k reflectors one after the other, has √d times these bounds.
///
/// **Underflow.** Below the normal numbers a rounding commits up to η, the smallest denormal, whatever the size of the
/// result. k reflectors on a column of m entries commit up to k·√m·η in norm. The units contain this term; it is below
/// u‖A‖ unless ‖A‖ is within a factor of √m of the smallest normal number.
///
/// Everything is accumulated in higher precision than the data: double for float; for double, pairs of doubles, or long
/// double (64 bits of significand and 15 of exponent, so that squares of 10^±300 neither overflow nor vanish).
///
/// A matrix that holds NaN measures NaN, which no comparison accepts.
namespace quoin::test {

inline constexpr double law = 22;

template <class T>
inline constexpr double unit_roundoff = std::numeric_limits<T>::epsilon() / 2.0;

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;
static_assert(std::numeric_limits<long double>::digits >= 64, "the checks need a long double wider than double");

/// Typed tests are compiled for these scalars. Each sanitizer tests one precision (tests/CMakeLists.txt).
#ifndef QUOIN_TEST_SCALARS
#define QUOIN_TEST_SCALARS float, double
#endif
using Scalars = testing::Types<QUOIN_TEST_SCALARS>;

/// QUOIN_TEST_QUICK=1 in the environment asks for small sizes (sanitizers).
bool quick();

/// QUOIN_TEST_FULL=1 asks for every combination of a sweep (`./run test full`); without it sweeps are pairwise.
bool every_combination();

/// The choices that combination number `turn` of the other axes of a sweep is tried with: all of them where every
/// combination is asked for, otherwise one after the other, so that each choice meets each choice of the other axes.
template <class Choices>
auto in_turn(const Choices& choices, Index turn) {
    const std::span all(choices);
    return every_combination() ? all : all.subspan(static_cast<std::size_t>(turn) % all.size(), 1);
}

// ---- measured quantities -------------------------------------------------------------------------------------------

/// ‖I − QᵀQ‖_F in units of √(kq)·u, q the columns of Q, of a product of k reflectors.
template <class T>
double orthogonality_error(MatrixView<const T> Q, Index k);

/// `residual_error` and `column_residual_error`, at the cost of one.
struct ResidualErrors {
    double of_matrix, of_worst_column;
};
template <class T>
ResidualErrors residual_errors(MatrixView<const T> A, MatrixView<const T> Q, MatrixView<const T> R);

/// ‖A − QR‖_F in units of k·(u‖A‖_F + √(mn)·η). Q is m×k, R k×n.
template <class T>
double residual_error(MatrixView<const T> A, MatrixView<const T> Q, MatrixView<const T> R);

/// max_j ‖a_j − Q r_j‖₂ in units of k·(u‖a_j‖₂ + √m·η): a column's error owes nothing to the others.
template <class T>
double column_residual_error(MatrixView<const T> A, MatrixView<const T> Q, MatrixView<const T> R);

/// max_ij |(AᵀA − RᵀR)_ij| in units of e_i‖a_j‖ + e_j‖a_i‖, e_j = k·(u‖a_j‖ + √m·η): what a column-wise backward error
/// A + ΔA = QR, ‖Δa_j‖ ≤ c·e_j, leaves of R when there is no Q to look at.
template <class T>
double gram_error(MatrixView<const T> A, MatrixView<const T> R);

/// ‖I − (AR⁻¹)ᵀ(AR⁻¹)‖_F in units of 2k·u·‖A‖_F‖R⁻¹‖_F for A of full column rank: with A + ΔA = QR, AR⁻¹ is
/// Q − ΔA·R⁻¹. Unlike `gram_error` it tells R of a QR factorization (κ·u) from the Cholesky factor of AᵀA (κ²·u).
template <class T>
double implicit_orthogonality_error(MatrixView<const T> A, MatrixView<const T> R);

/// ‖X − Y‖_F in units of k·(u·scale + √(mn)·η), X and Y m×n. `scale` is the norm that the roundings were relative to.
template <class T>
double difference(MatrixView<const T> X, MatrixView<const T> Y, Index k, double scale);

/// ‖X − op(Q)C‖_F or ‖X − C op(Q)‖_F in units of k·(u‖C‖_F + √(mn)·η), m×n the shape of C; Q is square.
template <class T>
double product_error(Side side, Op op, MatrixView<const T> Q, MatrixView<const T> C, MatrixView<const T> X, Index k);

/// AB, rounded once.
template <class T>
Matrix<T> product(MatrixView<const T> A, MatrixView<const T> B);

/// ‖A‖_F. Infinity if it does not fit in double.
template <class T>
double frobenius_norm(MatrixView<const T> A);

// ---- exact properties ----------------------------------------------------------------------------------------------

/// Exact zeros below the diagonal.
template <class T>
bool is_upper_trapezoidal(MatrixView<const T> R);

template <class T>
bool is_finite(MatrixView<const T> A);

/// Equal shapes and equal bits in every entry, NaN and the sign of zero included.
template <class T>
bool same_bits(MatrixView<const T> A, MatrixView<const T> B);

// ---- operands ------------------------------------------------------------------------------------------------------

template <class T>
Matrix<T> copy(MatrixView<const T> A);

/// The m×n matrix of `value`.
template <class T>
Matrix<T> filled(Index m, Index n, T value);

template <class T>
Matrix<T> identity(Index m);

/// A copy of A in row-major order.
template <class T>
Matrix<T> transposed(MatrixView<const T> A);

/// A matrix inside a larger leading dimension. Everything outside the view, and the view itself until written, is a NaN
/// of one bit pattern that arithmetic does not produce.
template <class T>
class Padded {
public:
    Padded(Index rows, Index cols, Index padding = 3);
    explicit Padded(MatrixView<const T> A, Index padding = 3);

    MatrixView<T> view() { return storage_.view().row_block({0, rows_}); }
    MatrixView<const T> view() const { return storage_.view().row_block({0, rows_}); }
    bool padding_intact() const;

private:
    Matrix<T> storage_;
    Index rows_;
};

// ---- the law as one expectation ------------------------------------------------------------------------------------

/// Expects of the factorization `f` of A everything that its QForm promises: shape, exact zeros and finiteness of R;
/// the law for thin Q, for the m×m Q where m <= 64, and for apply_q from both sides with both op, in padded memory.
/// `stages` is the number of reductions in a row where the caller has asked for a tree of that depth.
template <class T>
void expect_law(Context<Host>& ctx, MatrixView<const T> A, const QR<T>& f, Index stages = 1);

}  // namespace quoin::test
