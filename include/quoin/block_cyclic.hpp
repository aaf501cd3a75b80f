#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "quoin/communicator.hpp"
#include "quoin/qr.hpp"

namespace quoin {

/// The ranks of a Communicator as a grid: rank r is in process row r / cols and process column r % cols. The
/// Communicator must outlive it.
///
/// Every rank makes one; nothing is sent for it. Throws InvalidArgument unless rows·cols is the number of ranks.
class ProcessGrid {
public:
    /// Takes the ranks of `comm` as rows × cols.
    ProcessGrid(Communicator& comm, int rows, int cols);

    /// Return the numbers of process rows and process columns.
    int rows() const { return rows_; }
    int cols() const { return cols_; }
    /// Return the process row and the process column of this rank.
    int row() const { return comm_.rank() / cols_; }
    int col() const { return comm_.rank() % cols_; }
    /// Returns the rank in process row `row` and process column `col`.
    int rank_at(int row, int col) const { return row * cols_ + col; }
    /// Returns the communicator of all ranks.
    Communicator& comm() const { return comm_; }
    /// Return the ranks of this rank's process row, ordered by column, and the ranks of its process column, ordered by
    /// row.
    Communicator& row_comm() const { return *row_comm_; }
    Communicator& col_comm() const { return *col_comm_; }
    /// Returns the messages of the grid's three communicators together.
    Traffic traffic() const;

private:
    Communicator& comm_;
    int rows_, cols_;
    std::unique_ptr<Communicator> row_comm_, col_comm_;
};

/// Distributes `size` indices in blocks of `block` cyclically over `processes` places: block b is on place (first + b)
/// mod processes. Each place keeps its indices in ascending order.
struct CyclicAxis {
    Index size = 0, block = 1;
    int processes = 1, first = 0;

    /// Returns the place that keeps index i.
    int owner(Index i) const { return static_cast<int>((i / block + first) % processes); }
    /// Returns the number of indices below i on `place`. If `place` owns i, this is the local index of i.
    Index before(int place, Index i) const {
        const Index full = i / block, turn = (place - first + processes) % processes;
        return (full / processes + (turn < full % processes)) * block + (turn == full % processes ? i % block : 0);
    }
    /// Returns the number of all indices on `place` (ScaLAPACK's numroc).
    Index local_size(int place) const { return before(place, size); }
    /// Calls f(part, place) for the part of `range` in each block, in order.
    template <class F>
    void for_each_block(Range range, F f) const {
        for (Index i = range.begin; i < range.end;) {
            const Index end = std::min(range.end, (i / block + 1) * block);
            f(Range{i, end}, owner(i));
            i = end;
        }
    }
    /// Returns the global index of local index l on `place`.
    Index global(int place, Index l) const {
        return (l / block * processes + (place - first + processes) % processes) * block + l % block;
    }
};

/// An m×n matrix in ScaLAPACK's block-cyclic layout: blocks of row_block × col_block, the first one on the process
/// (first_row, first_col). These are M, N, MB, NB, RSRC and CSRC of a descriptor.
struct BlockCyclic {
    Index rows = 0, cols = 0;
    Index row_block = 1, col_block = 1;
    int first_row = 0, first_col = 0;

    /// Return how the rows, and the columns, are distributed over the grid.
    CyclicAxis row_axis(const ProcessGrid& grid) const { return {rows, row_block, grid.rows(), first_row}; }
    CyclicAxis col_axis(const ProcessGrid& grid) const { return {cols, col_block, grid.cols(), first_col}; }
    /// Return the rows and columns of this rank's part.
    Index local_rows(const ProcessGrid& grid) const { return row_axis(grid).local_size(grid.row()); }
    Index local_cols(const ProcessGrid& grid) const { return col_axis(grid).local_size(grid.col()); }
};

/// A block-cyclic matrix: the layout, and this rank's part (local_rows × local_cols, column-major).
template <class T, class D = Host>
struct BlockCyclicView {
    BlockCyclic layout;
    MatrixView<T, D> local;

    BlockCyclicView(BlockCyclic layout_, MatrixView<T, D> local_) : layout(layout_), local(local_) {}
    template <class U>
    requires(std::is_same_v<const U, T> && !std::is_const_v<U>) BlockCyclicView(BlockCyclicView<U, D> other)
        : layout(other.layout), local(other.local) {}
};

/// The data of a BlockCyclicQR. Quoin's own use.
template <class T, class D>
struct BlockCyclicFactorization;

/// A QR factorization A = QR of a block-cyclic m×n matrix, in LAPACK's format: V below the diagonal, R on and above it,
/// tau. k = min(m, n).
///
/// **All ranks call its functions together**, in the same order, each with its own context. A call blocks until the
/// other ranks have done their part, and throws one error on all ranks. The ProcessGrid must outlive the factorization.
template <class T, class D = Host>
class BlockCyclicQR {
public:
    /// C := op(Q) C, C with m rows in blocks like A's, any columns. 4mkp − 2k²p flops of all ranks for p columns. Each
    /// rank sends each panel of V once at most, and its sums of k·p/Pc words twice at most for each level of the tree
    /// of its process column. Throws InvalidArgument if the rows of C are not distributed like A's.
    void apply_q(Context<D>& ctx, Op op, BlockCyclicView<T, D> C) const;
    /// Returns this rank's part of the thin Q (m×k), in A's layout with k columns. 4mk² − 4k³/3 flops of all ranks at
    /// most.
    Matrix<T, D> form_q(Context<D>& ctx) const;
    /// Forms the thin Q in the first k columns of the memory of V and R: A's memory after `qr_in_place`, V_R's after
    /// `from_lapack`.
    void form_q_in_place(Context<D>& ctx) &&;
    /// Solves min ‖AX − B‖ for m >= n. B (m rows in blocks like A's, p columns) becomes QᵀB with X in its first n rows.
    /// The norm of the other rows of a column is the norm of its residual. Throws InvalidArgument for m < n, and
    /// RankDeficient if a diagonal entry of R is 0; B is unspecified then. It estimates no condition, and scales
    /// neither A nor B against overflow of X.
    void solve(Context<D>& ctx, BlockCyclicView<T, D> B) const;

    /// Returns this rank's part of R (k×n), with exact zeros below the diagonal, in A's layout with k rows. Sends
    /// nothing.
    Matrix<T, D> r(Context<D>& ctx) const;
    /// Views this rank's part of V (below the diagonal) and R (on and above it), in A's layout: ScaLAPACK's format.
    MatrixView<const T, D> v_and_r() const;
    /// Returns tau of this rank's columns among the first k, in ScaLAPACK's format: the diagonal of T.
    Matrix<T, D> tau(Context<D>& ctx) const;

    /// Returns the layout of A.
    const BlockCyclic& layout() const;
    /// Returns the columns of a panel: at most panel_width, and at most a block if there are several process columns.
    Index panel_width() const;

private:
    friend struct InsideCyclic;
    explicit BlockCyclicQR(detail::Owned<BlockCyclicFactorization<T, D>> inside) : inside_(std::move(inside)) {}
    detail::Owned<BlockCyclicFactorization<T, D>> inside_;
};

/// Factors A = QR for a block-cyclic matrix of any shape, in LAPACK's format. Every rank calls it, with the same
/// layout. Blocks until all are done.
///
/// Blocked Householder QR, right-looking, with look-ahead: the ranks of a process column factor a panel by one to three
/// passes of Cholesky QR with certificates, or by TSQR, and Householder reconstruction (Ballard, Demmel, Grigori,
/// Jacquelin, Nguyen and Solomonik 2014). V and T are sent along the process rows while the ranks apply the previous
/// panel. On GPUs one rank factors a panel if there is one process row or A has up to 131 072 rows. The other ranks
/// send it their rows of the panel.
///
/// ‖A − QR‖ and ‖I − QᵀQ‖ are of order n·u for every finite A, column by column. The same run gives the same bits
/// again. Other grids change R by rounding errors and signs. `panel_width` = 0 chooses it. 2mn² − 2n³/3 flops of all
/// ranks for m >= n, and up to 2mw² more for each panel of w columns, by TSQR 4mw².
///
/// An error of one rank is thrown on every rank, and its message names the rank. NonFiniteEntry has the row and the
/// column in the whole matrix. Throws InvalidArgument if the ranks' arguments differ, or a layout or view is not valid.
///
///     ProcessGrid grid(comm, 2, 2);
///     BlockCyclic layout{m, n, 64, 64};
///     Matrix<double> A(layout.local_rows(grid), layout.local_cols(grid));
///     auto f = qr<double>(ctx, grid, BlockCyclicView<const double>(layout, A.view()));
template <class T, class D>
BlockCyclicQR<T, D> qr(Context<D>& ctx, const ProcessGrid& grid, BlockCyclicView<const T, D> A, Index panel_width = 0);
template <class T, class D>
BlockCyclicQR<T, D> qr(Context<D>& ctx, const ProcessGrid& grid, BlockCyclicView<T, D> A, Index panel_width = 0) {
    return qr<T, D>(ctx, grid, BlockCyclicView<const T, D>(A), panel_width);
}

/// Factors A in its own memory, which must outlive the factorization: A becomes V and R. After an error other than
/// InvalidArgument and NonFiniteEntry A is unspecified.
template <class T, class D>
BlockCyclicQR<T, D> qr_in_place(Context<D>& ctx, const ProcessGrid& grid, BlockCyclicView<T, D> A,
                                Index panel_width = 0);

/// Cost of `qr` of a block-cyclic matrix. A step is a panel, its broadcast and the update. Each cost is the sum over
/// the steps of the largest cost of a rank in the step, without look-ahead. Memory is V and R of the largest part, T,
/// and panels in transit.
struct BlockCyclicPlan : RankCosts {
    Index panel_width = 0;         ///< of the widest panel
    Index rows = 0, cols = 0;      ///< of the largest part of A
    std::vector<Traffic> traffic;  ///< of each rank, in all
};
/// Returns the costs. Pure: no rank takes part. Assumes column scales in range, as independent random numbers have. A
/// panel of m' rows and w columns then takes a QR of rows over ranks if m' < 4w, and one pass otherwise. On GPUs it
/// takes three passes below about m' = w + w²/6. A panel that needs two passes sums w(w + 1)/2 words more, and one that
/// needs three also sends w² words. A panel that a certificate refuses costs another QR. On GPUs one rank factors a
/// panel as `qr` says: 3m'w² flops, and m'w words there and back. `forms_q` adds `form_q`. Throws InvalidArgument for a
/// layout or a grid that is not valid.
///
///     plan_block_cyclic<double>(ctx, {m, n, 64, 64}, 64, 64).seconds(2e-6, 25e9, 1e12);
template <class T, class D>
BlockCyclicPlan plan_block_cyclic(const Context<D>& ctx, const BlockCyclic& layout, int grid_rows, int grid_cols,
                                  bool forms_q = false, Index panel_width = 0);

/// Imports the output of `qr` or pdgeqrf: V_R m×n, and tau of this rank's columns among the first min(m, n). Rebuilds
/// the triangular factors T. Uses V in place, so its memory must outlive the factorization. mkw flops for panels of w
/// columns, and sums of w² words. Every rank calls it. Throws as `qr`, and InvalidArgument if tau has another size.
template <class T, class D>
BlockCyclicQR<T, D> from_lapack(Context<D>& ctx, const ProcessGrid& grid, BlockCyclicView<T, D> V_R,
                                View<const T, D> tau, Index panel_width = 0);

/// B := A, between a distribution by blocks of rows in the order of the ranks (`rows` are this rank's, any number) and
/// a block-cyclic one. Every rank calls it. Each rank sends each other rank one message: mn/P words in all. An error is
/// thrown on all ranks.
///
///     redistribute<double>(ctx, grid, rows.view(), {layout, B.view()});
template <class T, class D>
void redistribute(Context<D>& ctx, const ProcessGrid& grid, View<const T, D> rows,
                  std::type_identity_t<BlockCyclicView<T, D>> B);
template <class T, class D>
void redistribute(Context<D>& ctx, const ProcessGrid& grid, std::type_identity_t<BlockCyclicView<const T, D>> A,
                  View<T, D> rows);

}  // namespace quoin
