#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "quoin/apps/robust_pca.hpp"

namespace quoin {

/// Choices of an online robust PCA. The defaults fit a video's frames in [0, 1].
struct OnlineRobustPcaOptions {
    Index max_rank = 4;       ///< largest rank of the background
    double forget = 0.01;     ///< share of its weight that a column loses with each later column; 0: none
    double threshold = 0.04;  ///< least |m − l| of an entry of S; three times its noise if that is more
    Index start = 32;         ///< number of columns that are kept at the start
};

/// Quoin's own use.
template <class T, class D>
struct RowRecords;

/// Entries of a column in D's memory: a span on the host, a view of one column on a device.
template <class T, class D>
using ColumnOf = std::conditional_t<std::is_same_v<D, Host>, std::span<T>, MatrixView<T, D>>;

/// Robust PCA of an endless sequence of columns: m_t = l_t + s_t + z_t with l_t in a subspace U that follows the
/// columns, s_t sparse and z_t noise.
///
///     c := argmin over c, s of ½‖m − U c − s‖² + Σ τ_i|s_i|;  l := U c;  s := m − l where |m − l| > τ, 0 elsewhere
///     e := m − l − s;  [U diag(√(1 − forget) σ)  l + e] = Q R (Gram-Schmidt),  R = U' diag(σ) V'ᵀ;  U := Q U'
///
/// The first line is the projection of online robust PCA (Feng, Xu and Yan 2013), by two steps of alternating
/// minimisation. The second is the incremental SVD (Brand 2006; Rodríguez and Wohlberg 2016) of columns with S imputed
/// from L. Singular values that noise explains are dropped. τ_i is three times the noise of row i, which is estimated
/// from the tracked 90% quantile of |r_t − r_{t−1}| and median of |r_t|, r = m − l. An entry that keeps its difference
/// from l for 1/forget columns becomes background. All entries become background if more than a quarter of them differ
/// from l. Columns 4, 8, 16, … and `start` restart the subspace from the median of all columns so far. At `start` it is
/// restarted by `robust_pca` instead if more than half of the median's residual lies in one direction. In each row,
/// columns near l vote for the background and the other columns against it, until the votes for it lead by more than
/// start/2. Once the votes against it lead, the next difference that persists replaces l in that row. So an object that
/// is present at first for some columns and then leaves stays in the background for the same number of columns. Memory:
/// m×(2·max_rank + 9), 3 columns more for frames, and at first m×(5·start). A column costs about 20 m·max_rank flops.
/// The result has the same bits for any number of threads. For one thread at a time.
///
/// For D = Cuda all of this is in a GPU's memory. `next` waits once, for l, s and the few numbers that the host needs
/// for U's update, but not for the update itself. Columns up to `start`, and every 256th, wait more often.
///
///     OnlineRobustPca<float> pca(m);
///     while (read(frame)) pca.next(ctx, frame, background, foreground);
template <class T, class D = Host>
class OnlineRobustPca {
public:
    /// The state after `columns` columns, in host memory. Empty before the first one.
    struct State {
        Index columns = 0;
        std::vector<double> singular_values;
        Matrix<T> basis;  ///< rows×rank
        Matrix<T> first;  ///< rows×columns while columns < start, else empty
        Matrix<T> last;   ///< rows×1, as all members below
        Matrix<float> size, change, noise;
        Matrix<std::int32_t> age, votes;
    };

    /// Throws InvalidArgument (a size or a choice out of range, naming it).
    explicit OnlineRobustPca(Index rows, OnlineRobustPcaOptions options = {});
    /// Continues from `state` with the same bits. Throws InvalidArgument if its sizes do not fit.
    OnlineRobustPca(Context<D>& ctx, Index rows, OnlineRobustPcaOptions options, const State& state);
    /// Returns a copy of the state. Blocks.
    State state(Context<D>& ctx) const;

    /// Takes the next column m and writes its l and s, each of `rows` entries in D's memory. Blocks until they are
    /// complete. Entries may be as large as 1e36, in f32 as 2^63/√rows. Throws InvalidArgument (another size, or larger
    /// entries), NonFiniteEntry (the column is then not taken), OutOfMemory, Interrupted.
    void next(Context<D>& ctx, ColumnOf<const T, D> m, ColumnOf<T, D> l, ColumnOf<T, D> s);
    /// Takes a frame of bytes in host memory, m = bytes/255. Writes pictures of l and |s| as bytes, each only if its
    /// span is not empty. Frames and pictures are copied to and from a GPU as bytes.
    void next_frame(Context<D>& ctx, std::span<const std::uint8_t> m, std::span<std::uint8_t> l,
                    std::span<std::uint8_t> s);

    /// Returns the rows of a column.
    Index rows() const { return rows_; }
    /// Returns the number of columns taken so far.
    Index columns() const { return columns_; }
    /// Returns U, rows×rank, orthonormal.
    MatrixView<const T, D> basis() const { return U_.view().col_block({0, rank()}); }
    /// Returns the singular values of the columns so far, weighted as they are remembered, descending.
    const std::vector<double>& singular_values() const { return sigma_; }
    /// Returns the columns of U.
    Index rank() const { return static_cast<Index>(sigma_.size()); }
    /// Returns the estimated standard deviation of each row's noise. Empty before the first column, as the views below.
    ColumnOf<const float, D> noise() const { return column(noise_); }
    /// Returns m − l of the last column.
    ColumnOf<const T, D> residual() const { return column(last_); }
    /// Return l and s of the last `next_frame`.
    ColumnOf<const T, D> frame_low_rank() const { return column(l_); }
    ColumnOf<const T, D> frame_sparse() const { return column(s_); }

private:
    template <class X>
    static ColumnOf<const X, D> column(const Matrix<X, D>& x) {
        if constexpr (std::is_same_v<D, Host>) {
            return {x.data(), static_cast<std::size_t>(x.rows())};
        } else {
            return x.view();
        }
    }
    void take(Context<D>& ctx, MatrixView<const T, D> m, MatrixView<T, D> l, MatrixView<T, D> s);
    void allocate(Context<D>& ctx);
    void begin(Context<D>& ctx, Index t);
    double begin_with_median(Context<D>& ctx, Index t);
    void begin_with_pursuit(Context<D>& ctx, Index t);
    void update(Context<D>& ctx, std::span<const double> c, double left, double noise);
    void orthonormalize(Context<D>& ctx);
    Matrix<T, D> scaled_basis(Context<D>& ctx);
    RowRecords<T, D> records();

    Index rows_, columns_ = 0;
    OnlineRobustPcaOptions options_;
    Matrix<T, D> U_;             // rows×(max_rank + 1); U, then one column of workspace
    std::vector<double> sigma_;  // its singular values
    Matrix<T, D> first_;         // the columns up to `start`
    Matrix<T, D> last_;          // m − l of the last column
    Matrix<float, D> size_, change_,
        noise_;                      // tracked median of |r| and 90% quantile of |r − r'|; the noise from them
    Matrix<std::int32_t, D> age_;    // for how many columns an entry has kept its difference from l
    Matrix<std::int32_t, D> votes_;  // early columns near l minus the other ones
    Matrix<double, D> numbers_;      // of the last column: online_steps.hpp
    Matrix<T, D> m_, l_, s_;         // of the last frame
};

}  // namespace quoin
