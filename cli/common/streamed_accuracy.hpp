#pragma once

#include <vector>

#include "quoin/communicator.hpp"
#include "quoin/qr.hpp"

namespace quoin::cli {

/// ‖I − QᵀQ‖_F and ‖A − QR‖_F / ‖A‖_F of matrices that pass by in blocks of rows, each block once, in any order; once for all
/// columns, or, in less memory, once for each of several blocks of columns.
///
/// QᵀQ is the sum of products of at most 256 rows, formed in double and added with compensation: its rounding stays below 256 u
/// (u that of double) whatever the number of rows. Memory: 3kw + tk doubles for k columns of Q, w columns and t rows at a time.
template <class T>
class StreamedAccuracy {
public:
    static constexpr Index most_rows = 256;

    /// Of a Q of k columns and an A of at least as many; all of them pass by at once.
    explicit StreamedAccuracy(Index k, Index n);
    /// The pass of columns J of A and R begins; each of A's columns is in one pass. At most `tile` rows are in a product.
    StreamedAccuracy(Index k, Range J, Index tile);

    /// The same rows of A(:, J) and of Q's first min(k, J.end) columns, and as many rows of R(:, J).
    void add(Context<Host>& ctx, MatrixView<const T> A, MatrixView<const T> Q, MatrixView<const T> R);
    /// The columns of another pass.
    void add(const StreamedAccuracy& other);

    /// The rows that have passed by on all ranks, each of which calls it.
    void add_ranks(Context<Host>& ctx, Communicator& comm);

    double orthogonality() const;
    double residual() const;

private:
    /// Of the pass: (I − QᵀQ)(:, J), what lies above the diagonal twice.
    double departure() const;

    Range J_;  // of Q
    Index columns_, tile_;
    std::vector<double> rows_, product_, gram_, compensation_;
    double residual_norm_ = 0, norm_ = 0, others_ = 0;
};

}  // namespace quoin::cli
