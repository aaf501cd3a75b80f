#pragma once

#include <span>

#include "quoin/options.hpp"
#include "quoin/owned.hpp"
#include "quoin/scalar.hpp"

namespace quoin {

/// The side of op(Q) in a product with C: op(Q) C or C op(Q).
enum class Side { Left, Right };
/// op(Q): Q or its transpose.
enum class Op { None, Transpose };

/// The data of a QR. Quoin's own use.
template <class T, class D>
struct Factorization;

/// A = QR: Q m×k with orthonormal columns, R k×n upper triangular or trapezoidal, k = min(m, n).
template <class T, class D = Host>
struct ThinQR {
    Matrix<T, D> Q, R;
};

/// A QR factorization A = Q R of an m×n matrix, k = min(m, n).
///
/// Q is m×m orthogonal, R k×n upper trapezoidal (the rows of R beyond k are zero). The thin Q is Q's first k columns.
/// Q is held as reflectors (a list of panels, each a reduction tree) or explicitly (then the whole Q is I − Y M Yᵀ with
/// Y = Q₁ − [S; 0], Yamamoto's basis-kernel form, S a diagonal of signs). Every operation below works on either form,
/// and none forms the m×m matrix. After Gram-Schmidt without reorthogonalization, Q₁ and all results computed from it
/// are only as orthonormal as the bound of Gram-Schmidt says. Const members may be called from several threads, each
/// with its own context.
///
/// With QForm::None only `r` and `report` work; the operations with Q throw InvalidArgument.
///
/// With Options::positive_diagonal R has a non-negative diagonal. The QR of an A of full column rank is then unique.
/// LAPACK's format (`v`, `tau`, `t`, `s`, `to_lapack`) keeps the signs of its reflectors: I − V T Vᵀ is then Q D for a
/// diagonal D of signs.
///
/// With Options::pivoting it is A P = Q R. If a limit of `Pivoting` stops it after r columns, A P ≈ Q R, and k is r.
template <class T, class D = Host>
class QR {
    static_assert(!is_complex<T>,
                  "complex numbers lack batches in lanes, Gram-Schmidt, SVD and solvers (docs/architecture.md)");

public:
    /// Return m and n.
    Index rows() const;
    Index cols() const;

    /// Returns R, k×n, with exact zeros below its diagonal. Costs a copy of k·n elements.
    Matrix<T, D> r(Context<D>& ctx) const;
    Matrix<T, D> r() const requires std::is_same_v<D, Host> {
        Context<D> ctx;
        return r(ctx);
    }

    /// Returns p of A(:, p) = Q R, zero-based: column j of Q R is column p[j] of A. Empty without pivoting.
    std::span<const Index> permutation() const;

    /// C := op(Q) C (C is m×p) or C := C op(Q) (C is p×m), Q the m×m factor, never formed.
    ///
    /// 4mnp − 2n²p flops; with a full T in a few large products. Backward stable: the result is exact for C + ΔC, ‖ΔC‖
    /// = O(nu)‖C‖.
    void apply_q(Context<D>& ctx, Side side, Op op, MatrixView<T, D> C) const;

    /// Returns the thin Q, m×k. 2mn² − 2n³/3 flops beyond the factorization, or a copy if Q is held explicitly.
    Matrix<T, D> form_q(Context<D>& ctx) const;

    /// Returns the thin Q without a copy, in the memory of the factorization, which is consumed.
    Matrix<T, D> take_q(Context<D>& ctx) &&;

    /// Returns R and, except with QForm::None, the thin Q, and consumes the factorization. A factor that is held by
    /// itself is not copied: R with QForm::None, R and Q with QForm::Explicit.
    ///
    ///     auto [Q, R] = qr(ctx, A.view(), {.q = QForm::Explicit}).take_thin(ctx);
    ThinQR<T, D> take_thin(Context<D>& ctx) &&;

    /// Returns Q(rows, cols) of the m×m Q, without forming Q. Costs a copy if Q is held explicitly and cols lie in the
    /// thin part, otherwise 4mn·min(|rows|, |cols|) flops and m·min(|rows|, |cols|) elements of workspace.
    ///
    /// With a full T it computes I − V(rows, :) T V(cols, :)ᵀ: k²·min(|rows|, |cols|) + 2k|rows||cols| flops. With S =
    /// V Tᵀ, too, it takes 2k|rows||cols| flops.
    Matrix<T, D> q_block(Context<D>& ctx, Range rows, Range cols) const;

    /// Returns op(Q(rows, cols)) C for a block of the m×m Q, without forming it: Q₁₁C, Q₂₁ᵀC and so on. C has |cols|
    /// rows, or |rows| with Op::Transpose.
    ///
    /// Works as `apply_q` on C padded with rows of zeros. With a full T it takes 2k(|rows| + |cols|)p + k²p flops, and
    /// k²p less with S. Throws InvalidArgument for ranges outside Q and a C with another number of rows.
    ///
    ///     auto Q11_C = f.apply_q_block(ctx, Op::None, {0, m / 2}, {0, m / 2}, C.view());
    Matrix<T, D> apply_q_block(Context<D>& ctx, Op op, Range rows, Range cols, MatrixView<const T, D> C) const;

    /// Return the factors of Q = I − V T Vᵀ (Schreiber and Van Loan 1989) if Q is held in LAPACK's format. V is m×k,
    /// unit lower trapezoidal, its ones and zeros stored. tau is k×1. T is k×k, upper triangular with tau on its
    /// diagonal and exact zeros below. S = V Tᵀ is m×k, lower trapezoidal: Q = I − V Sᵀ. V and tau are copies, as are T
    /// and S with FullT and its `keep_s`. Otherwise T costs mk² flops, and S mk² more.
    ///
    /// QForm::Reflectors, BlockedHouseholder and `from_lapack` keep this format. Throw InvalidArgument for trees and
    /// explicit Q.
    Matrix<T, D> v(Context<D>& ctx) const;
    Matrix<T, D> tau(Context<D>& ctx) const;
    Matrix<T, D> t(Context<D>& ctx) const;
    Matrix<T, D> s(Context<D>& ctx) const;

    /// Return the plan that was followed, and what was measured.
    const Plan& plan() const;
    const Report& report() const;

private:
    friend struct Inside;
    explicit QR(detail::Owned<Factorization<T, D>> inside) : inside_(std::move(inside)) {}
    detail::Owned<Factorization<T, D>> inside_;
};

/// Factors A = QR for a copy of A (m×n, any m and n, any ld, row-major or column-major). With QForm::None, TSQR and
/// CholeskyQR2 read a tall A without copying it, and so does `Auto` on a CPU if m >= 2.5n. On a GPU CholeskyQR2 copies
/// a row-major A of more than 192 columns. The bits of the result do not depend on the storage order. Blocks until
/// done.
///
/// Householder methods give ‖A − QR‖ = O(nu)‖A‖ and ‖I − QᵀQ‖ = O(nu) for every finite A, as does Gram-Schmidt with
/// reorthogonalization. CholeskyQR methods give these bounds if certified, and `Auto` returns only certified answers.
/// Throws InvalidArgument, NonFiniteEntry, NumericalBreakdown (a conditional method chosen by name), OutOfMemory.
///
/// With Options::pivoting the same bounds hold for A P. Options::positive_diagonal costs one pass over R and over an
/// explicit Q.
///
///     Context<Host> ctx;
///     auto f = qr(ctx, A.view());
///     f.apply_q(ctx, Side::Left, Op::Transpose, b.view());  // b := Qᵀb
template <class T, class D>
QR<T, D> qr(Context<D>& ctx, InputView<T, D> A, Options options = {});
template <class T, class D>
QR<T, D> qr(Context<D>& ctx, MatrixView<const T, D> A, Options options = {}) {
    return qr<T, D>(ctx, InputView<T, D>(A), options);
}
template <class T, class D>
QR<T, D> qr(Context<D>& ctx, MatrixView<T, D> A, Options options = {}) {
    return qr<T, D>(ctx, InputView<T, D>(A), options);
}
template <class T, class D>
QR<T, D> qr(Context<D>& ctx, RowMajorView<const T, D> A, Options options = {}) {
    return qr<T, D>(ctx, InputView<T, D>(A), options);
}
template <class T, class D>
QR<T, D> qr(Context<D>& ctx, const Matrix<T, D>& A, Options options = {}) {
    return qr<T, D>(ctx, InputView<T, D>(A.view()), options);
}

/// Returns the thin Q and R of a matrix in the host's memory, computed by all cores. Bounds and errors as above.
///
///     auto [Q, R] = quoin::qr(A);
template <class T>
ThinQR<T, Host> qr(const Matrix<T>& A) {
    Context<Host> ctx;
    return qr(ctx, A, {.q = QForm::Explicit}).take_thin(ctx);
}

/// Writes the thin Q (m×k) and R (k×n, with exact zeros below its diagonal) to the caller's memory and keeps nothing
/// else. Writes only R if Q has no data. Takes any options of `qr` but `q`, `verify` and `pivoting`. Storage of A,
/// bounds, errors and waits are as above, and InvalidArgument for other shapes of Q and R.
///
/// Q and R are computed where they are, without a copy, if their columns follow each other (ld = rows). On a GPU,
/// columns of 4 KiB or more must also start at multiples of 16 bytes. Q may be A itself for m >= n. Otherwise neither
/// may overlap A.
///
///     qr(ctx, A.view(), Q.view(), R.view());
template <class T, class D>
void qr(Context<D>& ctx, InputView<T, D> A, View<T, D> Q, View<T, D> R, Options options = {});
template <class T, class D>
void qr(Context<D>& ctx, MatrixView<T, D> A, View<std::remove_const_t<T>, D> Q, View<std::remove_const_t<T>, D> R,
        Options options = {}) {
    qr<std::remove_const_t<T>, D>(ctx, InputView<std::remove_const_t<T>, D>(A), Q, R, options);
}

/// Writes LAPACK's format of ?geqrf to the caller's memory and keeps nothing else: V strictly below the diagonal and R
/// on and above it (V_R, m×n), tau k×1. Storage, bounds and errors are as above, and so are the options, without
/// `positive_diagonal`. V_R may be A itself.
///
///     qr_lapack<double, Host>(ctx, A.view(), A.view(), tau.view());
template <class T, class D>
void qr_lapack(Context<D>& ctx, InputView<T, D> A, View<T, D> V_R, View<T, D> tau, Options options = {});

/// Factors A = QR in A's own memory, under a plan made for its shape. Allocates nothing of size m·n unless
/// `HouseholderPlan::one_launch`. A is consumed, also after an exception.
template <class T, class D>
QR<T, D> qr(Context<D>& ctx, Matrix<T, D>&& A, const Plan& plan);

/// Returns ‖I − QᵀQ‖_F for an explicit m×k Q, accumulated in double (and in compensated double for double).
template <class T>
double orthogonality(Context<Host>& ctx, MatrixView<const T, Host> Q);

/// Returns ‖A − QR‖_F / ‖A‖_F (‖A − QR‖_F if A = 0), accumulated like `orthogonality`. Q is m×k, R k×n.
template <class T>
double residual(Context<Host>& ctx, MatrixView<const T, Host> A, MatrixView<const T, Host> Q,
                MatrixView<const T, Host> R);

/// LAPACK's format of ?geqrf: V strictly below the diagonal of `V_R`, R on and above it, tau of length k.
template <class T, class D = Host>
struct LapackQR {
    Matrix<T, D> V_R;
    Matrix<T, D> tau;  ///< k×1
};

/// Exports a factorization to LAPACK's format, for `?ormqr` and `?orgqr`.
///
/// A factorization made with QForm::Reflectors is moved out without work. LAPACK's Q then equals the Q of `apply_q` and
/// `form_q` up to rounding. Trees and explicit Q are exported by Householder reconstruction (Ballard, Demmel, Grigori,
/// Jacquelin, Nguyen, Solomonik 2014): a signed LU of Q's top block, mn² flops beyond forming Q. It flips signs of
/// columns of the thin Q and of rows of R as the LU requires. If pivoting stopped after r columns, tau has r entries
/// and V_R(r:m, r:n) is 0; read `permutation` before.
template <class T, class D>
LapackQR<T, D> to_lapack(Context<D>& ctx, QR<T, D>&& factorization);

/// Imports the output of `?geqrf`: `V_R` m×n and tau of length min(m, n). Rebuilds the triangular factors T.
template <class T, class D>
QR<T, D> from_lapack(Context<D>& ctx, LapackQR<T, D>&& factors);

/// The format of ?geqrt: V_R as in ?geqrf, and Tf nb×k. Columns [j, j + nb) of Tf hold the T of the reflectors j, j +
/// 1, … on and above their diagonal (the last block may be narrower). nb = k is the format of ?geqrt3, one T.
///
/// For a stack [R; B] with an upper triangular n×n R, factored column by column (without reconstruction), V is [I;
/// V_B]. The last rows of V_R and Tf are then the output of ?tpqrt (l = 0).
template <class T, class D = Host>
struct LapackQRT {
    Matrix<T, D> V_R;
    Matrix<T, D> Tf;
};

/// Exports to the format of ?geqrt with blocks of nb columns, for ?gemqrt. V, R and signs are as in `to_lapack`. The
/// blocks of T are copies if a panel or a full T contains them, and otherwise cost m·nb flops a column. Throws
/// InvalidArgument unless 1 <= nb <= max(1, k).
template <class T, class D>
LapackQRT<T, D> to_lapack_t(Context<D>& ctx, QR<T, D>&& factorization, Index nb);

/// Imports the output of ?geqrt or, with nb = k, of ?geqrt3. Does not read Tf below its triangles. Throws
/// InvalidArgument unless Tf is nb×k with 1 <= nb <= max(1, k).
template <class T, class D>
QR<T, D> from_lapack_t(Context<D>& ctx, LapackQRT<T, D>&& factors);

}  // namespace quoin
