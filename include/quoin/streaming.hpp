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
    double to_device = 0;    ///< waiting for copies to the device, which run beside the reading
    double computing = 0;    ///< on the device; on a GPU beside the reading of the next block
    double from_device = 0;  ///< waiting for copies from the device, which run beside the writing
    double writing = 0;      ///< in `write`
};

/// R of a matrix whose rows arrive block by block, and Qᵀb for least squares, in O((n + p)²) memory beyond a block.
///
/// A flat TSQR tree over [A b] (Demmel, Grigori, Hoemmen, Langou 2012): R_ext := R factor of [R_ext; block], so that
///
///     R_ext = [R  Qᵀb]
///             [0   ρ ],    ‖ρ(:, j)‖ = min ‖A x_j − b_j‖.
///
/// Each step is a TSQR (on a GPU beyond 32 columns a CAQR) by Householder reflectors. It is backward stable for every finite
/// input, with a bound of order (n + p)·u for each block that a row passes through.
/// 2(h + n + p)(n + p)² flops and a copy of the block for h rows: blocks of several times n + p rows cost little more than
/// the in-memory factorization, blocks of one row cost n + p times as much.
///
///     StreamingR<double> stream(ctx, 192);
///     while (read(block)) stream.append(ctx, block.view());
///     Matrix<double> R = stream.r();
template <class T, class D = Host>
class StreamingR {
public:
    /// n columns of A and p right-hand sides, on the context's device: every call takes a context of that device.
    /// Throws InvalidArgument if negative.
    StreamingR(Context<D>& ctx, Index n, Index p = 0);

    /// Appends rows of A (h×n, any h >= 0) and, if p > 0, of b (h×p), each row-major or column-major with the same bits.
    ///
    /// Throws InvalidArgument on other shapes and NonFiniteEntry, with the row counted within the block; whatever it
    /// throws, the state is as it was before the call.
    void append(Context<D>& ctx, InputView<T, D> A, InputView<T, D> b = {});
    /// The same for rows in the host's memory, pinned or not. They are copied beside the work on the block before, to two places
    /// by turns, each of the size of the largest block so far. They may be changed once this returns.
    void append(Context<D>& ctx, HostRows<T, D> A, HostRows<T, D> b = {});
    /// The same for the next h rows of [A b], which `read` supplies as in `copy_rows_to_device`, counted from the stream's
    /// first row: while a GPU works on one block, the next one is read and copied.
    ///
    ///     for (i = 0; i < blocks; ++i) stream.append(ctx, h, [&](Range rows, auto block) { file.read_rows<T>(rows, block); });
    void append(Context<D>& ctx, Index h, const RowReader<T>& read);

    /// Appends all rows of A and b that `other` was given: R_ext := R factor of [R_ext; R_ext of other].
    ///
    /// This is a node of a TSQR tree: the rows of one matrix may be streamed in parts, by several threads or machines, and
    /// the parts merged in any order. R obeys `append`'s bound in every order. The same order gives the same bits; another
    /// one changes R by rounding errors and by the signs of its rows. 4(n + p)³ flops. Throws InvalidArgument unless n and p
    /// are the same; the state is then as it was.
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
    /// A copy of (n + p)² numbers.
    State state(Context<D>& ctx) const;
    /// Throws InvalidArgument where the sizes do not fit each other.
    explicit StreamingR(State state);

    Index rows() const { return rows_; }
    Index cols() const { return n_; }
    /// R of all rows so far: min(rows, n)×n, exact zeros below the diagonal.
    Matrix<T, D> r(Context<D>& ctx) const;
    Matrix<T, D> r() const requires std::is_same_v<D, Host> {
        Context<D> ctx;
        return r(ctx);
    }
    /// Solves min ‖AX − b‖ for all rows so far: n²p flops. The report's seconds and flops are the sums over all blocks.
    ///
    /// Throws InvalidArgument if p = 0 or rows < n, and RankDeficient as `least_squares` does.
    LeastSquares<T, D> solve(Context<D>& ctx, double rcond = -1) const;
    /// Times of all blocks from the host's memory so far. Waits for their work.
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

/// R and thin Q of a matrix larger than memory, in two passes over its blocks of rows: A = QR, Q with min(rows, n) columns.
///
/// A TSQR of two levels (Demmel, Grigori, Hoemmen, Langou 2012). Forward, only each block's R_i is kept. Then the stack of
/// them is factored, and backward every block is factored once more, to the same bits, and carries the stack's Q to its rows:
///
///                       [R_1]   [G_1]
///     A_i = P_i [R_i; 0],   [ ⋮ ] = [ ⋮ ] R,   Q(rows of A_i, :) = P_i [G_i; 0].
///                       [R_N]   [G_N]
///
/// Householder reflectors alone. ‖I − QᵀQ‖_F and ‖A − QR‖_F/‖A‖_F are of order n·u for every finite A, rank-deficient ones
/// included, however many blocks there are. Flops for h rows: 2hn² forward, 6hn² backward.
/// Memory: 2n² numbers for each block appended, and two copies of a block while it is worked on; on a GPU two more blocks, where
/// they come from the host's memory.
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
    /// Throws InvalidArgument on other shapes and once `q_rows` has been called, and NonFiniteEntry, with the row counted
    /// within the block; whatever it throws, the state is as it was before the call.
    void append(Context<D>& ctx, InputView<T, D> block);
    /// The same for rows in the host's memory, and for the next h rows, which `read` supplies: as `StreamingR::append`.
    void append(Context<D>& ctx, HostRows<T, D> block);
    void append(Context<D>& ctx, Index h, const RowReader<T>& read);

    Index rows() const { return rows_; }
    Index cols() const { return n_; }
    /// R of all rows appended: min(rows, n)×n, exact zeros below the diagonal.
    Matrix<T, D> r(Context<D>& ctx) const;
    Matrix<T, D> r() const requires std::is_same_v<D, Host> {
        Context<D> ctx;
        return r(ctx);
    }

    /// The rows of thin Q (h×min(rows, n)) that belong to the last block appended, then to the one before it, and so on.
    ///
    /// Throws InvalidArgument, the state untouched, if `block` is not the one whose turn it is, entry for entry as far as
    /// its R factor shows, or if no block is left.
    Matrix<T, D> q_rows(Context<D>& ctx, InputView<T, D> block);
    /// The same in the host's memory.
    Matrix<T, Host> q_rows(Context<D>& ctx, HostRows<T, D> block);
    /// All rows of thin Q that are left, block by block from the last one to the first: `read` supplies those of A once more,
    /// `write` takes those of Q, both counted from the stream's first row. While a GPU works on one block, the next one is read
    /// and copied; a last block that `append` has read is still there and is not read again. Waits.
    ///
    /// Throws as `q_rows`. After an exception no row of Q can be had of the block that was being written.
    ///
    ///     stream.q(ctx, [&](Range rows, auto block) { A.read_rows<T>(rows, block); },
    ///              [&](Range rows, auto block) { Q.write_rows(rows.begin, block); });
    void q(Context<D>& ctx, const RowReader<T>& read, const RowWriter<T>& write);
    /// As `StreamingR::times`.
    StreamTimes times() const;

    /// The state of a stream in either pass, as `StreamingR::State`.
    struct State {
        Index n = 0, rows = 0;
        std::vector<Index> heights;  ///< rows h_i of the blocks that have no rows of Q yet
        Matrix<T, D> stack;          ///< their R_i, min(h_i, n)×n each, one below the other
        bool backward = false;       ///< whether `q_rows` has been called
        Matrix<T, D> R, G;           ///< then R, min(rows, n)×n, and [G_1; …; G_N]; otherwise without entries
    };
    /// A copy of up to 2n² numbers for each block.
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
    std::vector<Block> blocks_;  // that have no rows of Q yet
    bool backward_ = false;
    Matrix<T, D> R_, G_;  // R and [G_1; …; G_N], once backward
    std::shared_ptr<RowsFromHost<T, D>> from_host_;
    MatrixView<const T, D> read_;  // the last block, where `append` has read it
};

}  // namespace quoin
