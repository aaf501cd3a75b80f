#pragma once

// Gram-Schmidt on panels of columns, for one matrix and for columns that arrive over time.

#include <functional>
#include <vector>

#include "primitives.hpp"

namespace quoin {

/// The data of Gram-Schmidt on the finished columns of Q, besides Q and R: the panels and, for modified Gram-Schmidt, L
/// = I + the strictly lower triangle of QᵀQ of each.
template <class T, class D>
class GramSchmidtBasis {
public:
    /// Uses panels, panel_width and reorthogonalization of the plan, for up to `capacity` columns.
    GramSchmidtBasis(Context<D>& ctx, const Plan& plan, Index capacity);

    /// The result of `orthonormalize`.
    struct Outcome {
        Index done = 0;       ///< number of columns of Q that are orthonormal now
        Index dependent = 0;  ///< number of columns finished here with r_jj = 0
    };
    /// Called when columns of Q and R are complete, from left to right; returns false to stop. Without it classical
    /// Gram-Schmidt reorthogonalises all columns at once.
    using Done = std::function<bool(Range columns)>;

    /// Orthonormalizes columns [first, Q.cols) of Q, vectors A₂. The columns before them are finished. R (Q.cols²) is
    /// zero in the columns of A₂. [Q₁ A₂] = [Q₁ Q₂] [I R₁₂; 0 R₂₂]: Q₂ in place of A₂, R₁₂ and R₂₂ in R. Throws
    /// NumericalBreakdown.
    Outcome orthonormalize(Context<D>& ctx, MatrixView<T, D> Q, MatrixView<T, D> R, Index first, const Done& done = {});

    /// Projects W away from Q(:, columns): W := W − Q(:, columns) S, with the coefficients in S. `columns` are whole
    /// panels.
    void project(Context<D>& ctx, MatrixView<const T, D> Q, Range columns, MatrixView<T, D> W,
                 MatrixView<T, D> S) const;

    /// Forgets the columns from k on.
    void truncate(Index k);
    /// Makes room for `capacity` columns.
    void reserve(Context<D>& ctx, Index capacity);

    const std::vector<Range>& panels() const { return panels_; }
    /// Returns L of the first k columns. Empty except for modified Gram-Schmidt.
    MatrixView<const T, D> l(Index k) const { return L_.view().col_block({0, modified() ? k : 0}); }
    /// Restores the values of `panels` and `l`. There must be room.
    void restore(Context<D>& ctx, const std::vector<Range>& panels, MatrixView<const T, D> L);

private:
    struct Task;
    void one_pass(Context<D>& ctx, Task& task, Outcome& outcome);
    void in_two_passes(Context<D>& ctx, MatrixView<T, D> Q, MatrixView<T, D> R, Index first, Outcome& outcome);
    void subtract_projection(Context<D>& ctx, MatrixView<const T, D> Q, Range columns, MatrixView<T, D> W,
                             MatrixView<T, D> S, bool again) const;
    bool by_halves(Context<D>& ctx, Task& task, Range columns, Outcome& outcome);
    Index finish_panel(Context<D>& ctx, Task& task, Range columns);
    Remainders factor_panel(Context<D>& ctx, MatrixView<T, D> W, MatrixView<T, D> R, MatrixView<T, D> L, bool inspect,
                            bool& certified);
    void by_columns(Context<D>& ctx, MatrixView<T, D> W, MatrixView<T, D> R, MatrixView<T, D> L);
    void throw_if_dependent(Context<D>& ctx);
    void add_panel(Context<D>& ctx, MatrixView<const T, D> Q, Range columns);
    bool modified() const { return plan_.method == Method::ModifiedGramSchmidt; }
    bool completes() const { return plan_.gram_schmidt().reorthogonalization != Reorthogonalization::Off; }
    MatrixView<T, D> l_of(Range columns) { return L_.view().block({0, columns.size()}, columns); }

    Plan plan_;
    std::vector<Range> panels_;
    Matrix<T, D> L_;  // panel_width×capacity: L of panel [b, e) in columns b to e; unit lower triangles
    Matrix<Certificate, D> certificate_;
};

}  // namespace quoin
