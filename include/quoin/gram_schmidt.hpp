#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "quoin/qr.hpp"

namespace quoin {

/// Q and R of a matrix whose columns arrive one by one or block by block: A = QR, Q m×k with orthonormal columns, R k×k upper
/// triangular. Appending columns leaves the existing Q and R unchanged,
///
///     [A A₂] = [Q Q₂] [R  QᵀA₂]
///                     [0  R₂₂ ],
///
/// as Arnoldi's and other Krylov methods need.
///
/// By blocks of columns, modified or classical, as `Options::method` says. Method::Auto is classical Gram-Schmidt,
/// reorthogonalised always. Then ‖I − QᵀQ‖ is O(ku) for every A (Giraud,
/// Langou, Rozložník and van den Eshof 2005; Barlow and Smoktunowicz 2013). Without reorthogonalization modified
/// Gram-Schmidt loses O(ku)κ(A) (Björck 1967, Barlow 2019), classical far more (`docs/algorithms.md`). ‖a_j − Q r_j‖ is
/// O(ku)‖a_j‖ always.
///
/// **A column that depends on those before it to working precision.** Reorthogonalised, r_jj is exactly 0 and q_j a unit vector
/// orthogonal to the others, so that Q stays orthonormal and A = QR: Arnoldi's happy breakdown is r(j, j) == 0. Without
/// reorthogonalization it is a NumericalBreakdown.
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
    /// Called with the columns of Q and R as soon as they are final, from left to right, panel by panel: `q()` and `r()` have
    /// them. Returning false ends the call; the columns after them are not appended.
    using OnColumns = std::function<bool(Range columns)>;

    /// No columns of m rows, with memory for `capacity` columns, which grows when needed.
    ///
    /// Throws InvalidArgument for a negative size, a method that is not Gram-Schmidt and options that `plan_qr` refuses.
    GramSchmidt(Context<D>& ctx, Index m, Index capacity = 0, Options options = {});
    GramSchmidt(GramSchmidt&&) noexcept;
    GramSchmidt& operator=(GramSchmidt&&) noexcept;
    ~GramSchmidt();

    /// Appends the columns of A (m×p, p <= m − k, which is copied): 4mkp + 2mp² flops, twice that with
    /// Reorthogonalization::Always. Classical Gram-Schmidt makes two passes over them then, unless `on_columns` asks for one
    /// panel after the other. Blocks.
    ///
    /// Throws InvalidArgument for another shape, NonFiniteEntry (its column counted within A) and NumericalBreakdown (its
    /// column counted within Q); whatever it throws, the state is as it was before the call.
    void append(Context<D>& ctx, MatrixView<const T, D> A, const OnColumns& on_columns = {});

    /// V := (I − QQᵀ)V for vectors that are not to be appended (V m×p), twice unless Reorthogonalization::Off; returns their
    /// coefficients H (k×p), V_before = QH + V. 4mkp flops, or twice that. Throws InvalidArgument and NonFiniteEntry.
    Matrix<T, D> orthogonalize(Context<D>& ctx, MatrixView<T, D> V) const;

    /// Keeps the first k columns, as a restarted method does. Throws InvalidArgument unless 0 <= k <= cols().
    void truncate(Index k);

    Index rows() const;
    /// k, the columns so far.
    Index cols() const;
    /// Q, m×k, and R, k×k with exact zeros below its diagonal, where they are kept: valid until columns are appended.
    MatrixView<const T, D> q() const;
    MatrixView<const T, D> r() const;
    /// Method, panel width and reorthogonalization in use.
    const Plan& plan() const;

    /// What later columns depend on, to be kept or sent: a basis made of it gives the same bits as the one that it is from.
    struct State {
        Options options;            ///< the plan's choices
        Matrix<T, D> Q, R;          ///< m×k and k×k
        Matrix<T, D> L;             ///< of modified Gram-Schmidt, panel_width×k: see `panels`
        std::vector<Range> panels;  ///< of it: L(0:e−b, b:e) is I + the strictly lower triangle of QᵀQ of panel [b, e)
    };
    /// A copy of mk + k² numbers, and k·panel_width more for modified Gram-Schmidt.
    State state(Context<D>& ctx) const;
    /// Throws InvalidArgument where the sizes do not fit each other.
    GramSchmidt(Context<D>& ctx, const State& state);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace quoin
