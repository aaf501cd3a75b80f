#pragma once

#include <vector>

#include "quoin/least_squares.hpp"

namespace quoin {

/// R of a matrix whose rows arrive block by block, and Qᵀb for least squares, in O((n + p)²) memory beyond a block.
///
/// A flat TSQR tree over [A b] (Demmel, Grigori, Hoemmen, Langou 2012): R_ext := R factor of [R_ext; block], so that
///
///     R_ext = [R  Qᵀb]
///             [0   ρ ],    ‖ρ(:, j)‖ = min ‖A x_j − b_j‖.
///
/// Each step is a TSQR, Householder reflectors alone: backward stable for every finite input, with a bound of order
/// (n + p)·u for each block that a row passes through.
/// 2(h + n + p)(n + p)² flops and a copy of the block for h rows: blocks of several times n + p rows cost little more than
/// the in-memory factorization, blocks of one row cost n + p times as much.
///
///     StreamingR<double> stream(ctx, 192);
///     while (read(block)) stream.append(ctx, block.view());
///     Matrix<double> R = stream.r();
template <class T, class D = Host>
class StreamingR {
public:
    /// n columns of A and p right-hand sides. Throws InvalidArgument if negative.
    StreamingR(Context<D>& ctx, Index n, Index p = 0);

    /// Appends rows of A (h×n, any h >= 0) and, if p > 0, of b (h×p).
    ///
    /// Throws InvalidArgument on other shapes and NonFiniteEntry, with the row counted within the block; whatever it
    /// throws, the state is as it was before the call.
    void append(Context<D>& ctx, MatrixView<const T, D> A, MatrixView<const T, D> b = {});

    Index rows() const { return rows_; }
    Index cols() const { return n_; }
    /// R of all rows so far: min(rows, n)×n, exact zeros below the diagonal.
    Matrix<T, D> r() const;
    /// Solves min ‖AX − b‖ for all rows so far: n²p flops. The report's seconds and flops are the sums over all blocks.
    ///
    /// Throws InvalidArgument if p = 0 or rows < n, and RankDeficient as `least_squares` does.
    LeastSquares<T, D> solve(Context<D>& ctx, double rcond = -1) const;

private:
    Index n_ = 0, p_ = 0, rows_ = 0;
    Matrix<T, D> R_;  // R_ext, min(rows, n + p)×(n + p)
    Report report_;
};

/// R and thin Q of a matrix larger than memory, in two passes over its blocks of rows: A = QR, Q with min(rows, n) columns.
///
/// Forward, R_i is the R factor of [R_{i−1}; A_i], and only R_{i−1} is kept. Backward, every block is factored once more,
/// to the same bits, and its orthogonal factor P_i carries the columns of the last block's identity down to its rows:
///
///     [R_{i−1}]                  [G_i]   [G_{i−1}          ]
///     [  A_i  ] = P_i R_i,   P_i [ 0 ] = [Q(rows of A_i, :)],   G_last = I.
///
/// P_i is a TSQR, Householder reflectors alone. ‖I − QᵀQ‖_F and ‖A − QR‖_F/‖A‖_F are of order n·u for every finite A,
/// rank-deficient ones included, since Q is a product of orthogonal matrices each computed to that accuracy; the bound
/// grows with the number of blocks that a row passes through. Flops for h rows: 2(h + n)n² forward, 6(h + n)n² backward.
/// Memory: n² numbers for each block appended, and two copies of a block while it is worked on.
///
///     StreamingQR<double> stream(ctx, n);
///     for (i = 0; i < blocks; ++i) stream.append(ctx, read(i).view());
///     for (i = blocks; i-- > 0;) write(i, stream.q_rows(ctx, read(i).view()));
template <class T, class D = Host>
class StreamingQR {
public:
    /// n columns. Throws InvalidArgument if negative.
    StreamingQR(Context<D>& ctx, Index n);

    /// Appends a block of rows (h×n, any h >= 0).
    ///
    /// Throws InvalidArgument on other shapes and once `q_rows` has been called, and NonFiniteEntry, with the row counted
    /// within the block; whatever it throws, the state is as it was before the call.
    void append(Context<D>& ctx, MatrixView<const T, D> block);

    Index rows() const { return rows_; }
    Index cols() const { return n_; }
    /// R of all rows appended: min(rows, n)×n, exact zeros below the diagonal.
    Matrix<T, D> r() const;

    /// The rows of thin Q (h×min(rows, n)) that belong to the last block appended, then to the one before it, and so on.
    ///
    /// Throws InvalidArgument, the state untouched, if `block` is not the one whose turn it is, entry for entry as far as
    /// its R factor shows, or if no block is left.
    Matrix<T, D> q_rows(Context<D>& ctx, MatrixView<const T, D> block);

private:
    struct Block {
        Plan plan;              // of the factorization of [R_before; block], the same in both passes
        Matrix<T, D> R_before;  // R_{i−1}
    };
    QR<T, D> factor(Context<D>& ctx, const Block& block, MatrixView<const T, D> A) const;

    Index n_ = 0, rows_ = 0;
    Matrix<T, D> R_;             // R of all rows
    std::vector<Block> blocks_;  // that have no rows of Q yet
    bool backward_ = false;
    Matrix<T, D> R_after_, G_;  // R_i and G_i of the block that comes next, once backward
};

}  // namespace quoin
