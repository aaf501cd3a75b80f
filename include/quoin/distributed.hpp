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

/// A QR factorization A = QR of an m×n matrix whose rows are distributed over the ranks of a Communicator, in blocks in
/// the order of the ranks. A rank may have any number of rows, also none. k = min(m, n).
///
/// **All ranks call `r`, `form_q`, `take_q` and `apply_thin_q` together**, in the same order, each with its own
/// context. A call blocks until the other ranks have done their part, and throws one error on all ranks, as `qr` does.
/// The Communicator must outlive the factorization, unless `over` replaces it.
///
/// Q is held as reflectors of a tree with the ranks as its top levels, or explicitly, with its own rows on each rank.
template <class T, class D = Host>
class DistributedQR {
public:
    /// Returns R, k×n, with exact zeros below its diagonal and the same bits on every rank. Ranks::Root returns it on
    /// rank 0, and a matrix without entries on the other ranks. A broadcast of n(n + 1)/2 words.
    Matrix<T, D> r(Context<D>& ctx, Ranks where = Ranks::All) const;

    /// Returns this rank's rows of the thin Q. 2hn² flops for h rows, and n(n + 1)/2 words along each edge of the tree
    /// of ranks; a copy if Q is held explicitly. Throws InvalidArgument with QForm::None.
    Matrix<T, D> form_q(Context<D>& ctx) const;

    /// Returns this rank's rows of the thin Q in the memory of the factorization, which has no Q afterwards.
    Matrix<T, D> take_q(Context<D>& ctx) &&;

    /// Multiplies C by the thin Q, Q₁, without forming it. With Op::Transpose it returns Q₁ᵀC (k×p) on every rank, and
    /// C (h×p) is this rank's rows of a matrix. With Op::None it returns this rank's rows of Q₁C, and C (k×p) is the
    /// same on every rank.
    ///
    /// 4hnp flops for h rows, and np words along each edge of the tree. Backward stable as `QR::apply_q`. Throws
    /// InvalidArgument on other shapes and with QForm::None.
    Matrix<T, D> apply_thin_q(Context<D>& ctx, Op op, MatrixView<const T, D> C) const;

    /// Replaces the Communicator by `comm`, which has the same ranks. The previous one may then end before the
    /// factorization. Sends nothing. Throws InvalidArgument for another number of ranks.
    void over(Communicator& comm);

    /// Return m, the rows of all ranks together, and n.
    Index rows() const;
    Index cols() const;
    /// Returns the plan of the whole matrix: the method, and the flops of all ranks together.
    const Plan& plan() const;
    /// Returns the report. Only `seconds` differs between ranks.
    const Report& report() const;

private:
    template <class U, class E>
    friend DistributedQR<U, E> qr(Context<E>& ctx, Communicator& comm, MatrixView<const U, E> A, Options options);
    friend struct InsideRanks;
    explicit DistributedQR(detail::Owned<DistributedFactorization<T, D>> inside) : inside_(std::move(inside)) {}
    detail::Owned<DistributedFactorization<T, D>> inside_;
};

/// Factors A = QR; A (h×n) is this rank's rows. Every rank calls it, with the same n, T and options. Blocks until all
/// are done.
///
/// Method::TSQR is the tree of Demmel, Grigori, Hoemmen and Langou (2012) with the ranks as its top levels: each rank
/// factors its rows, then ⌈log₂P⌉ levels merge two R at a time, and a rank sends n(n + 1)/2 words once.
/// Method::CholeskyQR2 sums a Gram matrix of n(n + 1)/2 words over the ranks, and another one if the first does not
/// prove that one pass is enough. Method::RandomizedCholeskyQR sums a sketch of about 4n² words and one Gram matrix.
/// Rank 0 decides for all whether either is certified. Method::Auto takes CholeskyQR2 if one process would take it, and
/// TSQR if CholeskyQR2 is not certified or the matrix is not tall. A rank with fewer than n rows lends them to a
/// neighbour for the factorization. Other methods, QForm::Reflectors and `verify` throw InvalidArgument.
///
/// Bounds and exceptions are as for `qr` on one process, for every finite A. The same run gives the same bits again.
/// Other numbers of ranks, or other numbers of rows on them, may give other bits, within the bounds.
///
/// **An error of one rank is thrown on every rank**: NaN or Inf (NonFiniteEntry, its row counted within the rank's
/// rows), arguments that are invalid or differ between ranks, lack of memory, an Interrupted context. The message names
/// the rank.
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

/// Cost of `qr` over P ranks with even shares of rows, counted at the root of the tree, which has the longest path. L =
/// ⌈log₂P⌉. Flops include its rows and the n³-terms of L nodes or of the Gram passes. Memory includes A, the
/// factorization and messages.
struct RankPlan : RankCosts {
    Method method = Method::Auto;  ///< never Auto
    Index rows = 0;                ///< of a rank, ⌈m/P⌉
};
/// Returns the costs. Pure: no rank takes part. Throws InvalidArgument as `qr`, for ranks < 1, and if a rank would have
/// fewer than n rows.
///
///     plan_ranks<double>(ctx, 1000000000, 256, 4096).seconds(2e-6, 25e9, 1e12);
template <class T, class D>
RankPlan plan_ranks(const Context<D>& ctx, Index m, Index n, int ranks, Options options = {});

/// Solves min ‖AX − B‖ for m >= n; A (h×n) and B (h×p) are this rank's rows. The result is the same on every rank.
/// Works as `least_squares` on one process, also for an A of deficient rank, but computes no singular values. Ranks and
/// errors are as for `qr` above. Sends np words more along each edge of the tree, and broadcasts X. One rank solves
/// with R: n²p flops, and O(n³) more for a deficient A. Throws InvalidArgument for m < n.
///
///     auto s = least_squares(ctx, comm, A.view(), B.view());
template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, Communicator& comm, MatrixView<const T, D> A,
                                 std::type_identity_t<MatrixView<const T, D>> B, const LeastSquaresOptions& solver = {},
                                 Options options = {});
template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, Communicator& comm, MatrixView<T, D> A,
                                 std::type_identity_t<MatrixView<const T, D>> B, const LeastSquaresOptions& solver = {},
                                 Options options = {}) {
    return least_squares<T, D>(ctx, comm, MatrixView<const T, D>(A), B, solver, options);
}

/// Solves with an existing factorization of A (m >= n); B (h×p) is this rank's rows. 4hnp + n²p flops. Every rank calls
/// it. Throws InvalidArgument for m < n and with QForm::None, and NumericalBreakdown if R overflows.
template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, const DistributedQR<T, D>& factorization,
                                 std::type_identity_t<MatrixView<const T, D>> B,
                                 const LeastSquaresOptions& solver = {});

/// Computes A = U diag(s) Vᵀ for m >= n; A (h×n) is this rank's rows. `U` has this rank's rows, and s and Vᵀ are the
/// same on every rank. Works as `svd` on one process; ranks and errors are as for `qr` above. Broadcasts U₁ and V of R
/// = U₁ΣVᵀ. Throws InvalidArgument for m < n.
///
///     auto f = svd(ctx, comm, A.view(), /*vectors=*/false);  // f.s
template <class T, class D>
SVD<T, D> svd(Context<D>& ctx, Communicator& comm, MatrixView<const T, D> A, bool vectors = true, Options options = {});
template <class T, class D>
SVD<T, D> svd(Context<D>& ctx, Communicator& comm, MatrixView<T, D> A, bool vectors = true, Options options = {}) {
    return svd<T, D>(ctx, comm, MatrixView<const T, D>(A), vectors, options);
}

/// Merges the streams of all ranks into one stream, which is the same on every rank except for its report.
/// `StreamingR::merge` combines their R_ext in the tree of ranks, and the result is broadcast. `mine` does not change.
///
/// Sends a triangle of n + p columns up and one down along each edge of the tree. 2L(n + p)³ flops on the longest path.
/// Bounds are as for `StreamingR`; ranks and errors are as for `qr` above. Throws InvalidArgument if n or p differs
/// between ranks. The report covers this rank's rows.
///
///     StreamingR<double> stream(ctx, n);
///     while (read(block)) stream.append(ctx, block.view());
///     Matrix<double> R = merge(ctx, comm, stream).r();
template <class T, class D>
StreamingR<T, D> merge(Context<D>& ctx, Communicator& comm, const StreamingR<T, D>& mine);

/// Q and R of a matrix whose rows are distributed over ranks and whose columns arrive block by block, as `GramSchmidt`
/// does on one process. The existing Q and R do not change,
///
///     [A A₂] = [Q Q₂] [R  H  ]
///                     [0  R₂₂].
///
/// Block classical Gram-Schmidt, reorthogonalised always, with `qr` over ranks of each block (Barlow and Smoktunowicz
/// 2013): twice
///
///     H = QᵀW,   W := W − QH,   W = W'S,   W := W'.
///
/// and again up to 5 times for columns that depend on earlier columns to working precision. Then r_jj is of the order
/// of the working precision, and q_j consists of rounding errors. It is a NumericalBreakdown if these lie in the span
/// of Q. ‖I − QᵀQ‖ is O(ku) for every A, and ‖a_j − Q r_j‖ is O(ku)‖a_j‖. Every rank calls `append`. Errors are as for
/// `qr`.
///
///     DistributedGramSchmidt<double> basis(ctx, h);  // h: this rank's rows
///     basis.append(ctx, comm, A.view());
template <class T, class D = Host>
class DistributedGramSchmidt {
public:
    /// Starts without columns. h: rows of this rank, also 0.
    DistributedGramSchmidt(Context<D>& ctx, Index h);

    /// Appends the columns of A; A (h×p) is this rank's rows, p <= m − k for m rows of all ranks. 8hkp + 8hp² flops.
    /// Along each edge of the tree it sends the words of two `qr`, and 4kp words more for k > 0. Blocks. Throws
    /// InvalidArgument for another shape, NonFiniteEntry and NumericalBreakdown (its column counted within Q). After
    /// any exception the state is unchanged.
    void append(Context<D>& ctx, Communicator& comm, MatrixView<const T, D> A);

    /// Return h, and k, the number of columns so far.
    Index rows() const { return Q_.rows(); }
    Index cols() const { return R_.cols(); }
    /// Return this rank's rows of Q (h×k), and R (k×k), which has exact zeros below its diagonal and the same bits on
    /// every rank. The views are valid until columns are appended.
    MatrixView<const T, D> q() const { return Q_.view().col_block({0, cols()}); }
    MatrixView<const T, D> r() const { return R_.view(); }

private:
    Matrix<T, D> Q_, R_;  // Q has memory for more columns
};

}  // namespace quoin
