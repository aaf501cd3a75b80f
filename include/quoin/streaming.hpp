#pragma once

#include <memory>
#include <vector>

#include "quoin/least_squares.hpp"
#include "quoin/rows.hpp"

namespace quoin {

/// Brings blocks of rows from the memory of the host. Quoin's own use.
template <class T, class D>
class RowsFromHost;

/// Seconds that each stage of streaming rows from the host's memory took.
struct StreamTimes {
    double reading = 0;      ///< in `read`
    double to_device = 0;    ///< waiting for copies to the device, which overlap with the reading
    double computing = 0;    ///< on the device; on a GPU it overlaps with the reading of the next block
    double from_device = 0;  ///< waiting for copies from the device, which overlap with the writing
    double writing = 0;      ///< in `write`
};

/// R of a matrix whose rows arrive block by block, and Qᵀb for least squares, in O((n + p)²) memory beyond a block.
///
/// A flat TSQR tree over [A b] (Demmel, Grigori, Hoemmen, Langou 2012): R_ext := R factor of [R_ext; block], so that
///
///     R_ext = [R  Qᵀb]
///             [0   ρ ],    ‖ρ(:, j)‖ = min ‖A x_j − b_j‖.
///
/// Each step is a TSQR (on a GPU beyond 256 columns a CAQR) by Householder reflectors. It is backward stable for every
/// finite input, with a bound of order (n + p)·u for each block that a row passes through.
/// 2(h + n + p)(n + p)² flops and a copy of the block for h rows: blocks of several times n + p rows cost little more
/// than the in-memory factorization, blocks of one row cost n + p times as much.
///
///     StreamingR<double> stream(ctx, 192);
///     while (read(block)) stream.append(ctx, block.view());
///     Matrix<double> R = stream.r();
template <class T, class D = Host>
class StreamingR {
public:
    /// Starts a stream with n columns of A and p right-hand sides on the context's device. Every call takes a context
    /// of this device. Throws InvalidArgument if negative.
    StreamingR(Context<D>& ctx, Index n, Index p = 0);

    /// Appends rows of A (h×n, any h >= 0) and, if p > 0, of b (h×p), each row-major or column-major with the same
    /// bits.
    ///
    /// Throws InvalidArgument on other shapes and NonFiniteEntry, with the row counted within the block. After any
    /// exception the state is as it was before the call.
    void append(Context<D>& ctx, InputView<T, D> A, InputView<T, D> b = {});
    /// Appends rows in the host's memory, pinned or not. They are copied while the device works on the previous block,
    /// alternately to two buffers of the size of the largest block so far. The rows may be changed once this returns.
    void append(Context<D>& ctx, HostRows<T, D> A, HostRows<T, D> b = {});
    /// Appends the next h rows of [A b], which `read` supplies as in `copy_rows_to_device`, counted from the stream's
    /// first row. While a GPU works on one block, the next one is read and copied.
    ///
    ///     for (i = 0; i < blocks; ++i)
    ///         stream.append(ctx, h, [&](Range rows, auto block) { file.read_rows<T>(rows, block); });
    void append(Context<D>& ctx, Index h, const RowReader<T>& read);

    /// Appends all rows of A and b that `other` was given: R_ext := R factor of [R_ext; R_ext of other].
    ///
    /// This is a node of a TSQR tree: the rows of one matrix may be streamed in parts, by several threads or machines,
    /// and the parts merged in any order. R obeys `append`'s bound in every order. The same order gives the same bits;
    /// another one changes R by rounding errors and by the signs of its rows. 4(n + p)³ flops. Throws InvalidArgument
    /// unless n and p are equal in both streams; the state is then unchanged.
    ///
    ///     StreamingR<double> left(ctx, n), right(ctx, n);
    ///     left.append(ctx, A1.view()), right.append(ctx, A2.view());
    ///     left.merge(ctx, right);                          // R of [A1; A2]
    void merge(Context<D>& ctx, const StreamingR& other);

    /// The state of a stream, to be stored or sent. A stream constructed from it gives the same bits as the original.
    struct State {
        Index n = 0, rows = 0;
        Matrix<T, D> R;  ///< R_ext, min(rows, n + p)×(n + p)
        Report report;   ///< of `solve`
    };
    /// Returns a copy of the state, (n + p)² numbers.
    State state(Context<D>& ctx) const;
    /// Throws InvalidArgument where the sizes do not fit each other.
    explicit StreamingR(State state);

    /// Return the number of rows so far, and n.
    Index rows() const { return rows_; }
    Index cols() const { return n_; }
    /// Returns R of all rows so far: min(rows, n)×n, exact zeros below the diagonal.
    Matrix<T, D> r(Context<D>& ctx) const;
    Matrix<T, D> r() const requires std::is_same_v<D, Host> {
        Context<D> ctx;
        return r(ctx);
    }
    /// Solves min ‖AX − b‖ for all rows so far: n²p flops. The report's seconds and flops are the sums over all blocks.
    ///
    /// Works as `least_squares` with a factorization, also for a deficient A. Throws InvalidArgument if p = 0 or
    /// rows < n, and RankDeficient as `least_squares` does.
    LeastSquares<T, D> solve(Context<D>& ctx, const LeastSquaresOptions& solver = {}) const;
    /// Returns the times of all blocks from the host's memory so far. Waits for their work.
    StreamTimes times() const;

private:
    void require_shape(Index rows, Index cols, Index b_rows, Index b_cols) const;
    void append_brought(Context<D>& ctx, MatrixView<const T, D> Ab);
    void reduce(Context<D>& ctx, Matrix<T, D>&& stacked);
    void count(const Report& report);

    Index n_ = 0, p_ = 0, rows_ = 0;
    Matrix<T, D> R_;  // R_ext, min(rows, n + p)×(n + p)
    Report report_;
    std::shared_ptr<RowsFromHost<T, D>> from_host_;
};

/// R and thin Q of a matrix larger than memory, in two passes over its blocks of rows: A = QR, Q with min(rows, n)
/// columns.
///
/// A TSQR of two levels (Demmel, Grigori, Hoemmen, Langou 2012). The forward pass keeps only R_i of each block. Then
/// the stack of the R_i is factored. The backward pass factors every block once more, with the same bits, and applies
/// its reflectors to the block's rows of the stack's Q:
///
///                       [R_1]   [G_1]
///     A_i = P_i [R_i; 0],   [ ⋮ ] = [ ⋮ ] R,   Q(rows of A_i, :) = P_i [G_i; 0].
///                       [R_N]   [G_N]
///
/// It uses only Householder reflectors. ‖I − QᵀQ‖_F and ‖A − QR‖_F/‖A‖_F are of order n·u for every finite A, including
/// rank-deficient ones, for any number of blocks. Flops for h rows: 2hn² forward, 6hn² backward. Memory: 2n² numbers
/// for each block appended, and two copies of the current block; on a GPU two more blocks if they come from the host's
/// memory.
///
///     StreamingQR<double> stream(ctx, n);
///     for (i = 0; i < blocks; ++i) stream.append(ctx, read(i).view());
///     for (i = blocks; i-- > 0;) write(i, stream.q_rows(ctx, read(i).view()));
template <class T, class D = Host>
class StreamingQR {
public:
    /// n columns. Throws InvalidArgument if negative.
    StreamingQR(Context<D>& ctx, Index n);

    /// Appends a block of rows (h×n, any h >= 0), row-major or column-major with the same bits.
    ///
    /// Throws InvalidArgument on other shapes and once `q_rows` has been called, and NonFiniteEntry, with the row
    /// counted within the block. After any exception the state is as it was before the call.
    void append(Context<D>& ctx, InputView<T, D> block);
    /// Append rows in the host's memory, or the next h rows, which `read` supplies, as `StreamingR::append` does.
    void append(Context<D>& ctx, HostRows<T, D> block);
    void append(Context<D>& ctx, Index h, const RowReader<T>& read);

    /// Return the number of rows so far, and n.
    Index rows() const { return rows_; }
    Index cols() const { return n_; }
    /// Returns R of all rows appended: min(rows, n)×n, exact zeros below the diagonal.
    Matrix<T, D> r(Context<D>& ctx) const;
    Matrix<T, D> r() const requires std::is_same_v<D, Host> {
        Context<D> ctx;
        return r(ctx);
    }

    /// Returns the rows of thin Q (h×min(rows, n)) that belong to the last appended block, in the next call to the
    /// block before it, and so on.
    ///
    /// Throws InvalidArgument, with the state unchanged, if no block is left or if `block` is not the expected block; a
    /// block with the same R factor is not told apart.
    Matrix<T, D> q_rows(Context<D>& ctx, InputView<T, D> block);
    /// Returns these rows of thin Q in the host's memory, for a block there.
    Matrix<T, Host> q_rows(Context<D>& ctx, HostRows<T, D> block);
    /// Computes all remaining rows of thin Q, block by block from the last one to the first. `read` supplies the rows
    /// of A once more and `write` takes the rows of Q, both counted from the stream's first row. While a GPU works on
    /// one block, the next one is read and copied. If `append` has read the last block, it is still in memory and is
    /// not read again. Waits.
    ///
    /// Throws as `q_rows`. After an exception, rows of Q of the block that was being written can no longer be computed.
    ///
    ///     stream.q(ctx, [&](Range rows, auto block) { A.read_rows<T>(rows, block); },
    ///              [&](Range rows, auto block) { Q.write_rows(rows.begin, block); });
    void q(Context<D>& ctx, const RowReader<T>& read, const RowWriter<T>& write);
    /// As `StreamingR::times`.
    StreamTimes times() const;

    /// The state of a stream in either pass, as `StreamingR::State`.
    struct State {
        Index n = 0, rows = 0;
        std::vector<Index> heights;  ///< rows h_i of the blocks without rows of Q so far
        Matrix<T, D> stack;          ///< their R_i, min(h_i, n)×n each, one below the other
        bool backward = false;       ///< whether `q_rows` has been called
        Matrix<T, D> R, G;           ///< if backward: R, min(rows, n)×n, and [G_1; …; G_N]; else empty
    };
    /// Returns a copy of the state, up to 2n² numbers for each block.
    State state(Context<D>& ctx) const;
    /// Throws InvalidArgument where the sizes do not fit each other.
    StreamingQR(Context<D>& ctx, State state);

private:
    struct Block {
        Index rows;
        Matrix<T, D> R;  // R_i, min(rows, n)×n
    };
    void require_shape(Index rows, Index cols) const;
    QR<T, D> factor_block(Context<D>& ctx, InputView<T, D> A) const;
    Matrix<T, D> stack(Context<D>& ctx) const;
    QR<T, D> factor_stack(Context<D>& ctx) const;

    Index n_ = 0, rows_ = 0;
    std::vector<Block> blocks_;  // without rows of Q so far
    bool backward_ = false;
    Matrix<T, D> R_, G_;  // R and [G_1; …; G_N], once backward
    std::shared_ptr<RowsFromHost<T, D>> from_host_;
    MatrixView<const T, D> read_;  // the last block, if `append` has read it
};

}  // namespace quoin
