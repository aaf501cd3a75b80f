#pragma once

#include <functional>
#include <vector>

#include "quoin/qr.hpp"

namespace quoin {

/// Q and R of a matrix whose columns arrive one by one or block by block: A = QR, Q m×k with orthonormal columns, R k×k
/// upper triangular. Appending columns leaves the existing Q and R unchanged,
///
///     [A A₂] = [Q Q₂] [R  QᵀA₂]
///                     [0  R₂₂ ],
///
/// as Arnoldi's and other Krylov methods need.
///
/// Works by blocks of columns, with modified or classical Gram-Schmidt as `Options::method` chooses. Method::Auto is
/// classical Gram-Schmidt, reorthogonalised always. Then ‖I − QᵀQ‖ is O(ku) for every A (Giraud, Langou, Rozložník and
/// van den Eshof 2005; Barlow and Smoktunowicz 2013). Without reorthogonalization modified Gram-Schmidt loses O(ku)κ(A)
/// (Björck 1967, Barlow 2019), classical far more (`docs/algorithms.md`). ‖a_j − Q r_j‖ is O(ku)‖a_j‖ always.
///
/// **A column that depends on earlier columns to working precision.** With reorthogonalization r_jj is exactly 0 and
/// q_j is a unit vector orthogonal to the other columns of Q. So Q stays orthonormal and A = QR, and Arnoldi's happy
/// breakdown is r(j, j) == 0. Without reorthogonalization such a column is a NumericalBreakdown.
///
///     GramSchmidt<double> basis(ctx, m, 30);          // Arnoldi
///     basis.append(ctx, v.view());
///     for (Index j = 0; j < 30; ++j) {
///         multiply(A, basis.q().col_block({j, j + 1}), w.view());
///         basis.append(ctx, w.view());                // H(:, j) = basis.r()(:, j + 1)
///     }
template <class T, class D = Host>
class GramSchmidt {
public:
    /// Called with the columns of Q and R as soon as they are final, from left to right, panel by panel. `q()` and
    /// `r()` already contain them. Returning false ends the call, and later columns are not appended.
    using OnColumns = std::function<bool(Range columns)>;

    /// Starts an empty basis of columns with m rows, with memory for `capacity` columns, which grows when needed.
    ///
    /// Throws InvalidArgument for a negative size, a method that is not Gram-Schmidt and options that `plan_qr`
    /// refuses.
    GramSchmidt(Context<D>& ctx, Index m, Index capacity = 0, Options options = {});

    /// Appends a copy of the columns of A (m×p, p <= m − k). 4mkp + 2mp² flops, and twice that with
    /// Reorthogonalization::Always. Classical Gram-Schmidt then makes two passes over all new columns; with
    /// `on_columns` it works panel by panel. Blocks.
    ///
    /// Throws InvalidArgument for another shape, NonFiniteEntry (its column counted within A) and NumericalBreakdown
    /// (its column counted within Q). After any exception the state is as it was before the call.
    void append(Context<D>& ctx, MatrixView<const T, D> A, const OnColumns& on_columns = {});

    /// V := (I − QQᵀ)V without appending (V m×p), done twice unless Reorthogonalization::Off. Returns the coefficients
    /// H (k×p), V_before = QH + V. 4mkp flops, or twice that. Throws InvalidArgument and NonFiniteEntry.
    Matrix<T, D> orthogonalize(Context<D>& ctx, MatrixView<T, D> V) const;

    /// Keeps the first k columns, as a restarted method does. Throws InvalidArgument unless 0 <= k <= cols().
    void truncate(Index k);

    /// Returns m.
    Index rows() const;
    /// Returns k, the number of columns so far.
    Index cols() const;
    /// View the stored Q (m×k) and R (k×k, with exact zeros below its diagonal). The views are valid until columns are
    /// appended.
    MatrixView<const T, D> q() const;
    MatrixView<const T, D> r() const;
    /// Returns the plan in use: method, panel width and reorthogonalization.
    const Plan& plan() const;

    /// The state on which later columns depend, to be stored or sent. A basis constructed from it gives the same bits
    /// as the original.
    struct State {
        Options options;            ///< the plan's choices
        Matrix<T, D> Q, R;          ///< m×k and k×k
        Matrix<T, D> L;             ///< of modified Gram-Schmidt, panel_width×k: see `panels`
        std::vector<Range> panels;  ///< of L: L(0:e−b, b:e) is I + the strictly lower triangle of QᵀQ of panel [b, e)
    };
    /// Returns a copy of the state: mk + k² numbers, and k·panel_width more for modified Gram-Schmidt.
    State state(Context<D>& ctx) const;
    /// Continues from `state`. Throws InvalidArgument if the sizes in it do not fit each other.
    GramSchmidt(Context<D>& ctx, const State& state);

private:
    struct Impl;
    detail::Owned<Impl> impl_;
};

}  // namespace quoin
