#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quoin/robust_pca.hpp"

namespace quoin {

/// `RobustPcaWindows` of bytes, such as the frames of a video: M has the entries byte/255, and the parts come column by column.
///
/// Neither M nor L nor S is formed. M stays bytes; L = F Vᵀ is a factor F of as many columns as L has rank; S, the iterate X and
/// L are computed from them and from Y in blocks of rows that stay in cache. The iteration is that of `robust_pca`, and so is
/// the result up to rounding. The columns that a window carries are a factor too.
/// Memory for n = carried + w columns: mw bytes; Y, mn of T, unless the pursuit is stable; mr of T three times, for L of rank r
/// before and after an iteration and for what is carried. `ThresholdRoute::Qr` forms X and its copy. An iteration reads M and
/// F once (with Y twice) and costs mn² + 6mnr flops, with Y 10mnr. The result has the same bits for any number of threads.
/// For one thread at a time.
///
///     RobustPcaOfFrames<float> windows(m, 10);
///     while (read(windows.columns(100))) {
///         windows.pursue(ctx);
///         for (Index j = 0; j < 100; ++j) windows.low_rank(ctx, j, l), windows.sparse(ctx, j, s), write(l, s);
///     }
template <class T>
class RobustPcaOfFrames {
public:
    /// Throws InvalidArgument for a negative size.
    RobustPcaOfFrames(Index rows, Index carried);

    /// What one window became. The last step's objective, rank and nonzeros are those with the carried columns.
    struct Outcome {
        RobustPcaStep last;
        PursuitEnd end = PursuitEnd::Converged;
        double lambda = 0;
        Index carried = 0;
    };

    /// Where the m×count bytes of the next window are to be written. Ends the window before; where `pursue` was not called
    /// since, the columns stay. Throws InvalidArgument, OutOfMemory.
    MatrixView<std::uint8_t> columns(Index count);
    /// Separates them; options.L, options.Y and options.observed must be none. Blocks until done.
    /// Throws what `robust_pca` throws.
    Outcome pursue(Context<Host>& ctx, RobustPcaOptions<T> options = {});

    /// Rows `rows` of the L of all columns of the window, but those that it carried.
    void low_rank_rows(Context<Host>& ctx, Range rows, MatrixView<T> L) const;
    /// Column j of the window's L and S, both of m entries.
    void low_rank(Context<Host>& ctx, Index j, std::span<T> l) const;
    void sparse(Context<Host>& ctx, Index j, std::span<T> s) const;
    /// Frees what `sparse` needs, which is more than a half of the memory; do not call it for this window again.
    void release_sparse();

    /// Columns F C, with F m×r and C r×(at most `carried`), of the window's L, which the next one starts with.
    MatrixView<const T> background() const;
    const Matrix<T>& background_coordinates() const { return next_coordinates_; }
    /// Throws InvalidArgument for other rows or more columns.
    void set_background(Matrix<T> F, Matrix<T> C);

private:
    class Steps;
    /// L = F Vt; F may have more columns than the rank.
    struct Factor {
        Matrix<T> F, Vt;
        Index rank = 0;
        MatrixView<const T> left() const { return F.view().col_block({0, rank}); }
    };
    Index columns_in_window() const { return carried_in_ + count_; }

    Index rows_, carried_, count_ = 0, carried_in_ = 0;
    bool is_pursued_ = false;
    Matrix<std::uint8_t> bytes_;          // m×(at least count)
    Factor carried_factor_, now_, next_;  // of what is carried; of L before the last iteration and after it
    Matrix<T> Y_, coordinates_, next_coordinates_;
    bool has_Y_ = false;
    double mu_ = 0, lambda_ = 0;
};

}  // namespace quoin
