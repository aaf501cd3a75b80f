#pragma once

#include <vector>

#include "quoin/communicator.hpp"
#include "quoin/qr.hpp"

namespace quoin::cli {

/// Computes ‖I − QᵀQ‖_F and ‖A − QR‖_F / ‖A‖_F of matrices that come in blocks of rows, each block once, in any order.
/// There is one pass for all columns or, in less memory, one pass for each of several blocks of columns.
///
/// QᵀQ is the sum of products of at most 256 rows, formed in double and added with compensation. Its rounding stays
/// below 256 u (u of double) for any number of rows. Memory: 3kw + tk doubles for k columns of Q, w columns and t rows
/// at a time.
template <class T>
class StreamedAccuracy {
public:
    static constexpr Index max_rows = 256;

    /// Begins a single pass for a Q of k columns and an A of n >= k columns.
    explicit StreamedAccuracy(Index k, Index n);
    /// Begins the pass of columns J of A and R. Each of A's columns is in one pass. At most `tile` rows are in a
    /// product.
    StreamedAccuracy(Index k, Range J, Index tile);

    /// Adds a block of rows: of A(:, J), and the same rows of Q's first min(k, J.end) columns. R(:, J) has a row for
    /// each of these columns.
    void add(Context<Host>& ctx, MatrixView<const T> A, MatrixView<const T> Q, MatrixView<const T> R);
    /// Adds the columns of another pass.
    void add(const StreamedAccuracy& other);

    /// Adds up the rows of all ranks. Every rank calls it.
    void add_ranks(Context<Host>& ctx, Communicator& comm);

    double orthogonality() const;
    double residual() const;

private:
    /// Returns the norm of (I − QᵀQ)(:, J) for this pass. Entries above the diagonal count twice.
    double departure() const;

    Range J_;  // of Q
    Index columns_, tile_;
    std::vector<double> rows_, product_, gram_, compensation_;
    double residual_norm_ = 0, norm_ = 0, others_ = 0;
};

}  // namespace quoin::cli
