#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "quoin/robust_pca.hpp"

namespace quoin {

/// Choices of an online robust PCA. The defaults are right for a video's frames in [0, 1].
struct OnlineRobustPcaOptions {
    Index max_rank = 4;    ///< largest rank of the background
    double forget = 0.01;  ///< share of its weight that a column loses with each later one; 0: none is forgotten
    double threshold =
        0.04;          ///< least |m − l| of an entry of S; where its noise is above a third of it, three times that
    Index start = 32;  ///< columns that are kept to start with
};

/// Quoin's own use.
template <class T, class D>
struct RowRecords;

/// Entries of a column in D's memory: a span on the host, a view of one column on a device.
template <class T, class D>
using ColumnOf = std::conditional_t<std::is_same_v<D, Host>, std::span<T>, MatrixView<T, D>>;

/// Robust PCA of columns that come one by one, without end: m_t = l_t + s_t + z_t with l_t in a subspace U that follows them, s_t
/// sparse and z_t noise.
///
///     c := argmin over c, s of ½‖m − U c − s‖² + Σ τ_i|s_i|;  l := U c;  s := m − l where |m − l| > τ, 0 elsewhere
///     e := m − l − s;  [U diag(√(1 − forget) σ)  l + e] = Q R (Gram-Schmidt),  R = U' diag(σ) V'ᵀ;  U := Q U'
///
/// The first line is the projection of online robust PCA (Feng, Xu and Yan 2013), by two steps of alternating minimisation, the second the
/// incremental SVD (Brand 2006; Rodríguez and Wohlberg 2016) of columns in which S is imputed from L. Singular values that noise
/// explains are dropped. τ_i is three times the noise of row i, of which the 90% quantile of |r_t − r_{t−1}| and the median of
/// |r_t|, r = m − l, are tracked. An entry that keeps its difference from l for 1/forget columns belongs to the background, and so do
/// all where a quarter of them differs. Columns 4, 8, 16, … and `start` begin anew with the median of all
/// so far; at `start`, where more than half of what it leaves lies in one direction, with `robust_pca` instead. As long as a row's
/// columns near l outnumber the others by at most start/2, they vote: once the others are more, the next difference that stands
/// replaces l there. So what is there at first and leaves stays in the background for as many columns as it was there.
/// Memory: m×(2·max_rank + 9), 3 columns more for frames, and at first m×(5·start). A column costs about 20 m·max_rank flops. The
/// result has the same bits for any number of threads. For one thread at a time.
///
/// For D = Cuda all of this is in a GPU's memory. `next` waits once, for l, s and the few numbers by which the host decides U's
/// update, and not for the update itself. Columns up to `start`, and every 256th, wait more often.
///
///     OnlineRobustPca<float> pca(m);
///     while (read(frame)) pca.next(ctx, frame, background, foreground);
template <class T, class D = Host>
class OnlineRobustPca {
public:
    /// What the object knows after `columns` columns, in host memory. Empty before the first one.
    struct State {
        Index columns = 0;
        std::vector<double> singular_values;
        Matrix<T> basis;  ///< rows×rank
        Matrix<T> first;  ///< rows×columns while columns < start, else empty
        Matrix<T> last;   ///< rows×1, as all that follow
        Matrix<float> size, change, noise;
        Matrix<std::int32_t> age, votes;
    };

    /// Throws InvalidArgument (a size or a choice out of range, naming it).
    explicit OnlineRobustPca(Index rows, OnlineRobustPcaOptions options = {});
    /// Continues from `state` with the same bits. Throws InvalidArgument if its sizes do not fit.
    OnlineRobustPca(Context<D>& ctx, Index rows, OnlineRobustPcaOptions options, const State& state);
    /// A copy of the state. Blocks.
    State state(Context<D>& ctx) const;

    /// Takes the next column m and gives its l and s, each of `rows` entries in D's memory. Blocks until they are there.
    /// Entries may be as large as 1e36, in f32 as 2^63/√rows.
    /// Throws InvalidArgument (another size, or larger entries), NonFiniteEntry (nothing of the column is taken), OutOfMemory,
    /// Interrupted.
    void next(Context<D>& ctx, ColumnOf<const T, D> m, ColumnOf<T, D> l, ColumnOf<T, D> s);
    /// The same of a frame of bytes in host memory, m = bytes/255. The pictures of l and |s|, bytes too, are made where they are
    /// asked for: by spans that are not empty. To a GPU a frame goes as bytes, and the pictures come back as bytes.
    void next_frame(Context<D>& ctx, std::span<const std::uint8_t> m, std::span<std::uint8_t> l,
                    std::span<std::uint8_t> s);

    Index rows() const { return rows_; }
    /// Columns taken so far.
    Index columns() const { return columns_; }
    /// U, rows×rank, orthonormal.
    MatrixView<const T, D> basis() const { return U_.view().col_block({0, rank()}); }
    /// Of the columns so far as they are remembered, descending.
    const std::vector<double>& singular_values() const { return sigma_; }
    Index rank() const { return static_cast<Index>(sigma_.size()); }
    /// The standard deviation of each row's noise, as far as it is known. Empty before the first column, as the following.
    ColumnOf<const float, D> noise() const { return column(noise_); }
    /// m − l of the last column.
    ColumnOf<const T, D> residual() const { return column(last_); }
    /// l and s of the last `next_frame`.
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
    Matrix<T, D> U_;             // rows×(max_rank + 1); behind U one column of workspace
    std::vector<double> sigma_;  // its singular values
    Matrix<T, D> first_;         // the columns up to `start`
    Matrix<T, D> last_;          // m − l of the last column
    Matrix<float, D> size_, change_,
        noise_;                      // tracked median of |r| and 90% quantile of |r − r'|; what follows from them
    Matrix<std::int32_t, D> age_;    // columns for which an entry has kept its difference from l
    Matrix<std::int32_t, D> votes_;  // early columns near l less those that are not
    Matrix<double, D> numbers_;      // of the last column: online_steps.hpp
    Matrix<T, D> m_, l_, s_;         // of the last frame
};

}  // namespace quoin
