#pragma once

#include <cstdint>
#include <span>
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
/// so far; at `start`, where more than half of what it leaves lies in one direction, with `robust_pca` instead.
/// Memory: m×(2·max_rank + 8), and at first m×(5·start). A column costs about 20 m·max_rank flops. The result has the same bits for
/// any number of threads. For one thread at a time.
///
///     OnlineRobustPca<float> pca(m);
///     while (read(frame)) pca.next(ctx, frame, background, foreground);
template <class T>
class OnlineRobustPca {
public:
    /// Throws InvalidArgument (a size or a choice out of range, naming it).
    explicit OnlineRobustPca(Index rows, OnlineRobustPcaOptions options = {});

    /// Takes the next column m and gives its l and s, each of `rows` entries. Blocks until done.
    /// Throws InvalidArgument (another size), NonFiniteEntry, OutOfMemory, Interrupted.
    void next(Context<Host>& ctx, std::span<const T> m, std::span<T> l, std::span<T> s);

    Index rows() const { return rows_; }
    /// Columns taken so far.
    Index columns() const { return columns_; }
    /// U, rows×rank, orthonormal.
    MatrixView<const T> basis() const { return U_.view().col_block({0, rank()}); }
    /// Of the columns so far as they are remembered, descending.
    const std::vector<double>& singular_values() const { return sigma_; }
    Index rank() const { return static_cast<Index>(sigma_.size()); }
    /// The standard deviation of each row's noise, as far as it is known.
    std::span<const float> noise() const { return noise_; }

private:
    void begin(Context<Host>& ctx);
    double begin_with_median(Context<Host>& ctx);
    void begin_with_pursuit(Context<Host>& ctx);
    void follow(std::span<const T> m);
    void project(Context<Host>& ctx, std::span<const T> m, std::span<T> l);
    struct Classes {
        double sparse = 0, noise = 0;  // entries of S; Σ noise²
    };
    /// Tells S from noise.
    Classes classify(Context<Host>& ctx, std::span<const T> m, std::span<const T> l, std::span<T> s);
    void update(Context<Host>& ctx, double noise);
    void orthonormalize(Context<Host>& ctx);
    std::vector<double> products(Context<Host>& ctx, std::span<const T> x) const;

    Index rows_, columns_ = 0;
    OnlineRobustPcaOptions options_;
    Matrix<T> U_;                // rows×(max_rank + 1)
    std::vector<double> sigma_;  // its singular values
    std::vector<double> c_;      // of the last column
    Matrix<T> first_;            // the columns up to `start`
    std::vector<T> e_, last_;    // m − l − s; m − l of the last column
    std::vector<float> size_, change_,
        noise_;                      // tracked median of |r| and 90% quantile of |r − r'|; what follows from them
    std::vector<std::int32_t> age_;  // columns for which an entry has kept its difference from l
};

}  // namespace quoin
