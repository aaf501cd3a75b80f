#pragma once

#include <vector>

#include "quoin/qr.hpp"

namespace quoin::cli {

/// ‖I − QᵀQ‖_F and ‖A − QR‖_F / ‖A‖_F of matrices that pass by in blocks of rows, each block once, in any order.
///
/// QᵀQ is the sum of products of 256 rows, formed in double and added with compensation: its rounding stays below 256 u
/// (u that of double) whatever the number of rows. O(n²) memory.
template <class T>
class StreamedAccuracy {
public:
    /// Of a Q of n columns.
    explicit StreamedAccuracy(Index n);

    /// A and Q are the same rows of their matrices, Q h×n, R has n rows.
    void add(Context<Host>& ctx, MatrixView<const T> A, MatrixView<const T> Q, MatrixView<const T> R);

    double orthogonality() const;
    double residual() const;

private:
    Index n_;
    std::vector<double> rows_, product_, gram_, compensation_;
    double residual_norm_ = 0, norm_ = 0;
};

}  // namespace quoin::cli
