#pragma once

#include <memory>

#include "quoin/options.hpp"
#include "quoin/scalar.hpp"

namespace quoin {

/// The side from which op(Q) multiplies C: op(Q) C or C op(Q).
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
/// Y = Q₁ − [S; 0], Yamamoto's basis-kernel form, S a diagonal of signs). Every operation below works on either, and
/// none forms the m×m matrix. Gram-Schmidt without reorthogonalization leaves Q₁ as orthonormal as its law says, and all that
/// is made of it. Const members may be called from several threads, each with its own context.
///
/// With QForm::None only `r` and `report` exist; the others throw InvalidArgument.
template <class T, class D = Host>
class QR {
    static_assert(!is_complex<T>,
                  "complex numbers lack batches in lanes, Gram-Schmidt, SVD and solvers (docs/architecture.md)");

public:
    QR(QR&&) noexcept;
    QR& operator=(QR&&) noexcept;
    ~QR();

    Index rows() const;
    Index cols() const;

    /// R, k×n, with exact zeros below its diagonal. Costs a copy of k·n elements.
    Matrix<T, D> r(Context<D>& ctx) const;
    Matrix<T, D> r() const requires std::is_same_v<D, Host> {
        Context<D> ctx;
        return r(ctx);
    }

    /// C := op(Q) C (C is m×p) or C := C op(Q) (C is p×m), Q the m×m factor, never formed.
    ///
    /// 4mnp − 2n²p flops, with a full T in few and large products. Backward stable: the result is the exact one for
    /// C + ΔC, ‖ΔC‖ = O(nu)‖C‖.
    void apply_q(Context<D>& ctx, Side side, Op op, MatrixView<T, D> C) const;

    /// Thin Q, m×k. 2mn² − 2n³/3 flops beyond the factorization, or a copy if Q is held explicitly.
    Matrix<T, D> form_q(Context<D>& ctx) const;

    /// Thin Q without a copy, in the memory that held the factorization, which is spent.
    Matrix<T, D> take_q(Context<D>& ctx) &&;

    /// R and, unless R alone was asked for, the thin Q. The factorization is spent. Neither is copied where it is held by itself, as with
    /// QForm::None and QForm::Explicit.
    ///
    ///     auto [Q, R] = qr(ctx, A.view(), {.q = QForm::Explicit}).take_thin(ctx);
    ThinQR<T, D> take_thin(Context<D>& ctx) &&;

    /// Q(rows, cols) of the m×m Q, without forming Q. A copy where Q is held explicitly and cols lie in the thin part;
    /// otherwise 4mn·min(|rows|, |cols|) flops and m·min(|rows|, |cols|) elements of workspace.
    ///
    /// With a full T, I − V(rows, :) T V(cols, :)ᵀ: k²·min(|rows|, |cols|) + 2k|rows||cols| flops, and with S, which
    /// has V(cols, :)Tᵀ ready, 2k|rows||cols|.
    Matrix<T, D> q_block(Context<D>& ctx, Range rows, Range cols) const;

    /// op(Q(rows, cols)) C for a block of the m×m Q, which is not formed: Q₁₁C, Q₂₁ᵀC and so on. C has |cols| rows, or |rows|
    /// with Op::Transpose.
    ///
    /// As `apply_q` on C between rows of zeros; with a full T 2k(|rows| + |cols|)p + k²p flops, k²p less with S. Throws
    /// InvalidArgument for ranges outside Q and a C of other height.
    ///
    ///     auto Q11_C = f.apply_q_block(ctx, Op::None, {0, m / 2}, {0, m / 2}, C.view());
    Matrix<T, D> apply_q_block(Context<D>& ctx, Op op, Range rows, Range cols, MatrixView<const T, D> C) const;

    /// Q = I − V T Vᵀ where Q is held in LAPACK's format (Schreiber and Van Loan 1989): V m×k, unit lower trapezoidal, its
    /// ones and zeros stored; tau k×1; T k×k, upper triangular with tau on its diagonal and exact zeros below; S = V Tᵀ m×k,
    /// lower trapezoidal, so that Q = I − V Sᵀ. V and tau are copies, as are T and S with FullT and its `keep_s`;
    /// otherwise T costs mk² flops, and S as many more.
    ///
    /// QForm::Reflectors and BlockedHouseholder keep that format, as does `from_lapack`. Throws InvalidArgument for trees and
    /// explicit Q.
    Matrix<T, D> v(Context<D>& ctx) const;
    Matrix<T, D> tau(Context<D>& ctx) const;
    Matrix<T, D> t(Context<D>& ctx) const;
    Matrix<T, D> s(Context<D>& ctx) const;

    const Plan& plan() const;
    const Report& report() const;

private:
    friend struct Inside;
    explicit QR(std::unique_ptr<Factorization<T, D>> inside);
    std::unique_ptr<Factorization<T, D>> inside_;
};

/// A = QR of a copy of A (m×n, any m and n, any ld, row-major or column-major). With QForm::None TSQR and CholeskyQR2 only read a tall
/// A, and so does `Auto`, on a CPU, where m >= 2.5n; a row-major A in a GPU's memory is copied all the same. The bits of the result do
/// not depend on the storage order. Blocks until done.
///
/// Householder routes give ‖A − QR‖ = O(nu)‖A‖ and ‖I − QᵀQ‖ = O(nu) for every finite A, as does Gram-Schmidt with
/// reorthogonalization; CholeskyQR routes give the same when certified, and `Auto` returns only certified answers.
/// Throws InvalidArgument, NonFiniteEntry, NumericalBreakdown (a conditional method asked for by name), OutOfMemory.
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

/// A = QR in A's own memory, under a plan made for its shape. Nothing of size m·n is allocated unless `Plan::one_launch`. A is
/// spent, also where this throws.
template <class T, class D>
QR<T, D> qr(Context<D>& ctx, Matrix<T, D>&& A, const Plan& plan);

/// ‖I − QᵀQ‖_F for an explicit m×k Q, accumulated in double (and in compensated double for double).
template <class T>
double orthogonality(Context<Host>& ctx, MatrixView<const T, Host> Q);

/// ‖A − QR‖_F / ‖A‖_F (‖A − QR‖_F where A = 0), accumulated like `orthogonality`. Q is m×k, R k×n.
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
/// A factorization made with QForm::Reflectors is moved out without work, and LAPACK's Q is then that of `apply_q` and
/// `form_q` up to rounding. Trees and explicit Q go through Householder reconstruction (Ballard, Demmel, Grigori,
/// Jacquelin, Nguyen, Solomonik 2014): a signed LU of Q's top block, mn² flops beyond forming Q. It flips the signs of
/// columns of the thin Q, and of rows of R, where the LU asks for it.
template <class T, class D>
LapackQR<T, D> to_lapack(Context<D>& ctx, QR<T, D>&& factorization);

/// Imports what `?geqrf` wrote: `V_R` m×n and tau of length min(m, n). The triangular factors T are rebuilt.
template <class T, class D>
QR<T, D> from_lapack(Context<D>& ctx, LapackQR<T, D>&& factors);

/// The format of ?geqrt: V_R as of ?geqrf, and Tf nb×k: columns [j, j + nb) hold the T of the reflectors j, j + 1, … on and
/// above their diagonal (the last block may be narrower). nb = k is the format of ?geqrt3, one T.
///
/// Of a stack [R; B], R n×n upper triangular, made column by column (no reconstruction), V is [I; V_B]: the last rows of
/// V_R and Tf are then what ?tpqrt (l = 0) has.
template <class T, class D = Host>
struct LapackQRT {
    Matrix<T, D> V_R;
    Matrix<T, D> Tf;
};

/// Exports to the format of ?geqrt with blocks of nb columns, for ?gemqrt; V, R and signs as `to_lapack`. The blocks of T are
/// copies where a panel or a full T contains them, and otherwise cost m·nb flops a column. Throws InvalidArgument unless
/// 1 <= nb <= max(1, k).
template <class T, class D>
LapackQRT<T, D> to_lapack_t(Context<D>& ctx, QR<T, D>&& factorization, Index nb);

/// Imports what ?geqrt, or with nb = k ?geqrt3, wrote; what lies below the triangles of Tf is not read. Throws
/// InvalidArgument where Tf is not nb×k with 1 <= nb <= max(1, k).
template <class T, class D>
QR<T, D> from_lapack_t(Context<D>& ctx, LapackQRT<T, D>&& factors);

}  // namespace quoin
