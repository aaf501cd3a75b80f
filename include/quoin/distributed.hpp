#pragma once

#include "quoin/communicator.hpp"
#include "quoin/least_squares.hpp"
#include "quoin/streaming.hpp"
#include "quoin/svd.hpp"

namespace quoin {

/// Which ranks receive the result.
enum class Ranks { Root, All };

/// The data of a DistributedQR. Quoin's own use.
template <class T, class D>
struct DistributedFactorization;

/// A QR factorization A = QR of an m×n matrix whose rows are spread over the ranks of a Communicator, in blocks in the order of the
/// ranks: any number of rows a rank, also none. k = min(m, n).
///
/// **All ranks call `r`, `form_q`, `take_q` and `apply_thin_q` together**, in the same order, each with its own context. A call blocks
/// until the other ranks have done their part, and throws one error on all ranks, as `qr` does. The Communicator must outlive the
/// factorization, or `over` names another one.
///
/// Q is held as reflectors, whose tree has the ranks as its top levels, or explicitly, each rank its rows.
template <class T, class D = Host>
class DistributedQR {
public:
    DistributedQR(DistributedQR&&) noexcept;
    DistributedQR& operator=(DistributedQR&&) noexcept;
    ~DistributedQR();

    /// R, k×n, with exact zeros below its diagonal: the same bits on every rank; Ranks::Root gives it to rank 0, and a matrix
    /// without entries to the others. A broadcast of n(n + 1)/2 words.
    Matrix<T, D> r(Context<D>& ctx, Ranks where = Ranks::All) const;

    /// This rank's rows of the thin Q. 2hn² flops for h rows, and n(n + 1)/2 words along each edge of the tree of ranks; a copy if Q
    /// is held explicitly. Throws InvalidArgument with QForm::None.
    Matrix<T, D> form_q(Context<D>& ctx) const;

    /// The same in the memory of the factorization, which has no Q afterwards.
    Matrix<T, D> take_q(Context<D>& ctx) &&;

    /// With Op::Transpose Q₁ᵀC, k×p, on every rank, C (h×p) being this rank's rows of a matrix. With Op::None this rank's rows of
    /// Q₁C, C being k×p and the same on every rank. Q₁ is the thin Q, and is not formed.
    ///
    /// 4hnp flops for h rows, and np words along each edge of the tree. Backward stable as `QR::apply_q`. Throws InvalidArgument on
    /// other shapes and with QForm::None.
    Matrix<T, D> apply_thin_q(Context<D>& ctx, Op op, MatrixView<const T, D> C) const;

    /// From now on over `comm`, which has the same ranks, in place of the Communicator so far: that one may end before the
    /// factorization does. Sends nothing. Throws InvalidArgument for another number of ranks.
    void over(Communicator& comm);

    /// m, the rows of all ranks, and n.
    Index rows() const;
    Index cols() const;
    /// Of the whole matrix: the method, and flops of all ranks together.
    const Plan& plan() const;
    /// The same on every rank, except for `seconds`.
    const Report& report() const;

private:
    template <class U, class E>
    friend DistributedQR<U, E> qr(Context<E>& ctx, Communicator& comm, MatrixView<const U, E> A, Options options);
    friend struct InsideRanks;
    explicit DistributedQR(std::unique_ptr<DistributedFactorization<T, D>> inside);
    std::unique_ptr<DistributedFactorization<T, D>> inside_;
};

/// A = QR, A (h×n) being this rank's rows. Every rank calls it, with the same n, T and options. Blocks until all are done.
///
/// Method::TSQR is the tree of Demmel, Grigori, Hoemmen and Langou (2012) with the ranks as its top levels: each rank factors its
/// rows, then ⌈log₂P⌉ levels merge two R at a time, a rank sending n(n + 1)/2 words once. Method::CholeskyQR2 sums a Gram
/// matrix of n(n + 1)/2 words over the ranks, and another one where the first does not prove that one pass is enough.
/// Method::RandomizedCholeskyQR sums a sketch of about 4n² words and one Gram matrix. Rank 0 decides for all whether either is certified.
/// Method::Auto takes CholeskyQR2 where one process would, and
/// TSQR where that is not certified or the matrix not tall. Ranks of fewer than n rows lend them to a neighbour for the
/// factorization. Other methods, QForm::Reflectors and `verify` throw InvalidArgument.
///
/// Bounds and exceptions are those of `qr` on one process, for every finite A. The same run gives the same bits again; other numbers
/// of ranks or other numbers of rows on them may give others, within the bounds.
///
/// **An error of one rank is thrown on every rank**: NaN or Inf (NonFiniteEntry, its row counted within the rank's rows), arguments
/// that a rank refuses or has other than the others, memory that it does not have, an Interrupted context. The message names the rank.
///
///     run_ranks(4, [&](Communicator& comm) {
///         Context<Host> ctx(1);
///         auto f = qr(ctx, comm, A.view().row_block(rows_of(comm.rank())));
///         Matrix<double> R = f.r(ctx), Q = f.form_q(ctx);  // Q: this rank's rows
///     });
template <class T, class D>
DistributedQR<T, D> qr(Context<D>& ctx, Communicator& comm, MatrixView<const T, D> A, Options options = {});
template <class T, class D>
DistributedQR<T, D> qr(Context<D>& ctx, Communicator& comm, MatrixView<T, D> A, Options options = {}) {
    return qr<T, D>(ctx, comm, MatrixView<const T, D>(A), options);
}

/// What `qr` over P ranks costs, for even shares of rows: the counts of the root of the tree, which has the longest path. L =
/// ⌈log₂P⌉. Flops are those of its rows, and n³-terms of L nodes or of the Gram passes; memory that of A, the factorization and
/// messages.
struct RankPlan : RankCosts {
    Method method = Method::Auto;  ///< never Auto
    Index rows = 0;                ///< of a rank, ⌈m/P⌉
};
/// Pure: no rank takes part. Throws InvalidArgument as `qr`, for ranks < 1, and where a rank would have fewer than n rows.
///
///     plan_ranks<double>(ctx, 1000000000, 256, 4096).seconds(2e-6, 25e9, 1e12);
template <class T, class D>
RankPlan plan_ranks(const Context<D>& ctx, Index m, Index n, int ranks, Options options = {});

/// min ‖AX − B‖ for a matrix of m >= n rows, A (h×n) and B (h×p) being this rank's: X, the residual norms and the condition are the
/// same on every rank. As `least_squares` on one process, and `qr` above about ranks and errors; np words more along each edge of
/// the tree, and a broadcast of X. Throws InvalidArgument for m < n.
///
///     auto s = least_squares(ctx, comm, A.view(), B.view());
template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, Communicator& comm, MatrixView<const T, D> A,
                                 std::type_identity_t<MatrixView<const T, D>> B, double rcond = -1,
                                 Options options = {});
template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, Communicator& comm, MatrixView<T, D> A,
                                 std::type_identity_t<MatrixView<const T, D>> B, double rcond = -1,
                                 Options options = {}) {
    return least_squares<T, D>(ctx, comm, MatrixView<const T, D>(A), B, rcond, options);
}

/// The same with the factorization of A (m >= n) that the ranks have, B (h×p) being this rank's rows: 4hnp + n²p flops. Every rank
/// calls it. Throws InvalidArgument for m < n and with QForm::None, and NumericalBreakdown where R overflows.
template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, const DistributedQR<T, D>& factorization,
                                 std::type_identity_t<MatrixView<const T, D>> B, double rcond = -1);

/// A = U diag(s) Vᵀ for a matrix of m >= n rows, A (h×n) being this rank's: `U` has this rank's rows, s and Vᵀ are the same on every
/// rank. As `svd` on one process, and `qr` above about ranks and errors; a broadcast of U₁ and V of R = U₁ΣVᵀ. Throws
/// InvalidArgument for m < n.
///
///     auto f = svd(ctx, comm, A.view(), /*vectors=*/false);  // f.s
template <class T, class D>
SVD<T, D> svd(Context<D>& ctx, Communicator& comm, MatrixView<const T, D> A, bool vectors = true, Options options = {});
template <class T, class D>
SVD<T, D> svd(Context<D>& ctx, Communicator& comm, MatrixView<T, D> A, bool vectors = true, Options options = {}) {
    return svd<T, D>(ctx, comm, MatrixView<const T, D>(A), vectors, options);
}

/// All rows that the streams of the ranks were given, as one stream, the same on every rank but for its report: their R_ext meet in the
/// tree of ranks by `StreamingR::merge`, and R_ext goes to all. `mine` stays as it is.
///
/// A triangle of n + p columns up and one down along each edge of the tree, and 2L(n + p)³ flops on the longest path. Bounds as those of
/// `StreamingR`, and `qr` above about ranks and errors: other n and p throw InvalidArgument. The report is that of this rank's rows.
///
///     StreamingR<double> stream(ctx, n);
///     while (read(block)) stream.append(ctx, block.view());
///     Matrix<double> R = merge(ctx, comm, stream).r();
template <class T, class D>
StreamingR<T, D> merge(Context<D>& ctx, Communicator& comm, const StreamingR<T, D>& mine);

/// Q and R of a matrix whose rows are spread over ranks and whose columns arrive block by block, as `GramSchmidt` on one process: the
/// existing Q and R do not change,
///
///     [A A₂] = [Q Q₂] [R  H  ]
///                     [0  R₂₂].
///
/// Block classical Gram-Schmidt, reorthogonalised always, with `qr` over ranks of each block (Barlow and Smoktunowicz 2013): twice
///
///     H = QᵀW,   W := W − QH,   W = W'S,   W := W'.
///
/// and again up to 5 times for columns that depend on those before them to working precision: r_jj is of that order then, and q_j is made
/// of rounding errors; where those lie in the span of Q it is a NumericalBreakdown. ‖I − QᵀQ‖ is O(ku) for every A, and ‖a_j − Q r_j‖
/// O(ku)‖a_j‖. Every rank calls `append`, and errors are as of `qr`.
///
///     DistributedGramSchmidt<double> basis(ctx, h);  // h: this rank's rows
///     basis.append(ctx, comm, A.view());
template <class T, class D = Host>
class DistributedGramSchmidt {
public:
    /// No columns; h rows of this rank, also none.
    DistributedGramSchmidt(Context<D>& ctx, Index h);

    /// Appends the columns of A, h×p being this rank's rows, p <= m − k for m rows of all ranks. 8hkp + 8hp² flops, and for k > 0 4kp words
    /// along each edge of the tree beside those of two `qr`. Blocks. Throws InvalidArgument for another shape, NonFiniteEntry and
    /// NumericalBreakdown (its column counted within Q); whatever it throws, the state is as it was.
    void append(Context<D>& ctx, Communicator& comm, MatrixView<const T, D> A);

    /// h, and k, the columns so far.
    Index rows() const { return Q_.rows(); }
    Index cols() const { return R_.cols(); }
    /// This rank's rows of Q, h×k: valid until columns are appended. R, k×k with exact zeros below its diagonal: the same bits on
    /// every rank.
    MatrixView<const T, D> q() const { return Q_.view().col_block({0, cols()}); }
    MatrixView<const T, D> r() const { return R_.view(); }

private:
    Matrix<T, D> Q_, R_;  // Q with memory for more columns
};

}  // namespace quoin
