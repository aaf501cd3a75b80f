#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quoin/apps/robust_pca.hpp"

namespace quoin {

/// `RobustPcaWindows` for bytes, such as the frames of a video. M has the entries byte/255, and L and S are returned
/// column by column.
///
/// M, L and S are not formed. M stays bytes. L = F Vᵀ is held as a factor F with rank(L) columns. S, the iterate X and
/// L are computed from these and from Y in blocks of rows that stay in cache. The iteration is the one of `robust_pca`,
/// with the same result up to rounding. The columns that a window carries are also held as a factor. Memory for n =
/// carried + w columns: mw bytes; Y, mn of T, unless the pursuit is stable; mr of T three times: for L of rank r before
/// and after an iteration, and for the carried columns. `ThresholdRoute::Qr` forms X and its copy. An iteration reads M
/// and F once (with Y twice) and costs mn² + 6mnr flops, with Y 10mnr. The result has the same bits for any number of
/// threads. For one thread at a time.
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

    /// The result of one window. The last step's objective, rank and nonzeros include the carried columns.
    struct Outcome {
        RobustPcaStep last;
        PursuitEnd end = PursuitEnd::Converged;
        double lambda = 0;
        ThresholdRoute route = ThresholdRoute::Auto;
        Index carried = 0;
    };

    /// Returns the memory for the m×count bytes of the next window, which the caller writes. Ends the previous window;
    /// its columns stay if `pursue` was not called. Throws InvalidArgument, OutOfMemory.
    MatrixView<std::uint8_t> columns(Index count);
    /// Separates these columns. options.L, options.Y and options.observed must be none. Blocks until done. Throws as
    /// `robust_pca`.
    Outcome pursue(Context<Host>& ctx, RobustPcaOptions<T> options = {});

    /// Writes rows `rows` of L, for all columns of the window except the carried ones.
    void low_rank_rows(Context<Host>& ctx, Range rows, MatrixView<T> L) const;
    /// Write column j of the window's L and S, of m entries each.
    void low_rank(Context<Host>& ctx, Index j, std::span<T> l) const;
    void sparse(Context<Host>& ctx, Index j, std::span<T> s) const;
    /// Frees the memory that `sparse` needs, more than half of all. `sparse` must not be called for this window
    /// afterwards.
    void release_sparse();

    /// Return F (m×r) and C (r×(at most `carried`)). F C are columns of the window's L that the next window carries.
    MatrixView<const T> background() const;
    const Matrix<T>& background_coordinates() const { return next_coordinates_; }
    /// Replaces F and C. Throws InvalidArgument for other rows or more columns.
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
    Factor carried_factor_, now_, next_;  // of the carried columns; of L before and after the last iteration
    Matrix<T> Y_, coordinates_, next_coordinates_;
    bool has_Y_ = false;
    double mu_ = 0, lambda_ = 0;
};

}  // namespace quoin
