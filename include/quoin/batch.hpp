#pragma once

#include <span>
#include <utility>
#include <vector>

#include "quoin/batch_view.hpp"
#include "quoin/least_squares.hpp"

namespace quoin {

/// Matrices stored contiguously, each column-major with ld = max(1, rows).
template <class T, class D = Host>
class Batch {
public:
    Batch() = default;
    /// Allocates `count` matrices of rows × cols.
    Batch(const Context<D>& ctx, Index rows, Index cols, Index count)
        : memory_(ctx, rows, cols * count), view_(memory_.data(), rows, cols, memory_.ld(), rows * cols, count) {}
    /// Allocates matrices of the listed shapes (rows, cols).
    Batch(const Context<D>& ctx, const std::vector<std::pair<Index, Index>>& shapes) {
        Index size = 0;
        for (const auto& [rows, cols] : shapes) size += rows * cols;
        memory_ = Matrix<T, D>(ctx, size, 1);
        std::vector<MatrixView<T, D>> views;
        for (T* data = memory_.data(); const auto& [rows, cols] : shapes) {
            views.emplace_back(data, rows, cols);
            data += rows * cols;
        }
        view_ = BatchView<T, D>(std::move(views));
    }

    /// Returns the memory of matrices of one shape: rows×(cols·count).
    Matrix<T, D> take() && { return std::move(memory_); }

    /// Returns the number of matrices.
    Index count() const { return view_.count(); }
    /// View all matrices.
    const BatchView<T, D>& view() { return view_; }
    BatchView<const T, D> view() const { return view_; }
    /// View matrix b.
    MatrixView<T, D> operator[](Index b) { return {view_.data(b), view_.rows(b), view_.cols(b)}; }
    MatrixView<const T, D> operator[](Index b) const { return {view_.data(b), view_.rows(b), view_.cols(b)}; }

private:
    Matrix<T, D> memory_;
    BatchView<T, D> view_;
};

/// The data of a BatchedQR. Quoin's own use.
template <class T, class D>
struct BatchedFactors;

/// The factorizations A_b = Q_b R_b of a batch, k = min(m, n): R_b k×n, the thin Q_b m×k. With Options::pivoting
/// they are A_b P_b = Q_b R_b. If limits of `Pivoting` stop them, k is the largest rank of the matrices of one shape.
/// From the rank of matrix b on, the columns of Q_b and the rows of R_b are zeros then, and its tau.
///
/// Const members may be called from several threads, each with its own context. Outputs have the shapes named here, and
/// any strides. Other shapes throw InvalidArgument.
template <class T, class D = Host>
class BatchedQR {
public:
    /// Returns the number of matrices.
    Index count() const;
    /// Return the rows and columns of matrix b.
    Index rows(Index b) const;
    Index cols(Index b) const;
    /// Returns the columns of the thin Q_b, and rows of R_b.
    Index k(Index b) const;

    /// Writes R_b, k×n, with exact zeros below the diagonal.
    void r(Context<D>& ctx, BatchView<T, D> R) const;
    /// Writes the thin Q_b, m×k. 2mk² − 2k³/3 flops each.
    void form_q(Context<D>& ctx, BatchView<T, D> Q) const;
    /// C_b := op(Q_b) C_b for the m×m Q_b, C_b m×p_b, any p_b. 4mkp − 2k²p flops each.
    void apply_q(Context<D>& ctx, Op op, BatchView<T, D> C) const;
    /// to := op(Q_b) from. `to` may be `from`.
    void apply_q(Context<D>& ctx, Op op, std::type_identity_t<BatchView<const T, D>> from, BatchView<T, D> to) const;
    /// Writes LAPACK's format of ?geqrf: V below the diagonal and R on and above it, m×n; tau k×1.
    void lapack(Context<D>& ctx, BatchView<T, D> V_R, BatchView<T, D> tau) const;

    /// As above, but return new matrices.
    Batch<T, D> r(Context<D>& ctx) const;
    Batch<T, D> form_q(Context<D>& ctx) const;
    /// Returns the thin Q_b and consumes the factorization. If the matrices are not small, the memory of each is freed
    /// before the next Q is formed.
    Batch<T, D> take_q(Context<D>& ctx) &&;
    /// Returns op(Q_b) C, with one C (m×p) for all matrices.
    Batch<T, D> apply_q(Context<D>& ctx, Op op, std::type_identity_t<MatrixView<const T, D>> C) const;

    /// Returns p of A_b(:, p) = Q_b R_b, zero-based. Empty without pivoting.
    std::span<const Index> permutation(Index b) const;

    /// Returns the report of matrix b.
    Report report(Index b) const;

private:
    friend struct InsideBatch;
    explicit BatchedQR(detail::Owned<BatchedFactors<T, D>> inside) : inside_(std::move(inside)) {}
    detail::Owned<BatchedFactors<T, D>> inside_;
};

/// Factors A_b = Q_b R_b for every matrix of a batch, which is only read: any number of matrices, any shapes.
///
/// ‖A_b − Q_bR_b‖ = O(nu)‖A_b‖ and ‖I − Q_bᵀQ_b‖ = O(nu) for every finite A_b, by Householder reflectors. Small
/// matrices are factored several at once, one in each lane of the vector registers. Each larger matrix is factored by
/// one thread, as `qr` does it. On a GPU all matrices of one shape are factored by one launch if they have at most
/// 16 384 rows (8192 in f64), and 2²⁴ entries in their first min(m, n) columns. The bits of a result depend only on its
/// matrix and the options, not on the other matrices, their number, or the number of threads. On the host the call
/// blocks until done. On a GPU it blocks only if `check_finite` is true. Without `check_finite` the call can be
/// captured into a CUDA graph, after a first call has allocated the memory. Takes any options of `qr`. With a `method`
/// other than Auto and BlockedHouseholder, or with `verify` or `pivoting`, each matrix is factored as by a `qr` of its
/// own. `report` has the rank of each matrix.
///
/// Throws InvalidArgument, OutOfMemory, and NonFiniteEntry, which names the first matrix with NaN or Inf and its entry.
/// With check_finite = false NaN and Inf propagate within their matrix.
///
///     auto f = qr(ctx, BatchView<const double>(data, 16, 8, 16, 128, count));
///     Batch<double> R = f.r(ctx);
template <class T, class D>
BatchedQR<T, D> qr(Context<D>& ctx, BatchView<const T, D> A, Options options = {});
template <class T, class D>
BatchedQR<T, D> qr(Context<D>& ctx, BatchView<T, D> A, Options options = {}) {
    return qr<T, D>(ctx, BatchView<const T, D>(A), options);
}

/// Writes the thin Q_b (m×k) and R_b (k×n) of every matrix to the caller's memory and keeps nothing else. Writes only R
/// if Q has no matrices. Bounds and errors are as above. Without `pivoting`. Neither Q nor R may overlap A.
///
///     qr(ctx, BatchView<const double>(a, 16, 8, 16, 128, count), BatchView<double>(q, 16, 8, 16, 128, count),
///        BatchView<double>(r, 8, 8, 8, 64, count));
template <class T, class D>
void qr(Context<D>& ctx, BatchView<const T, D> A, std::type_identity_t<BatchView<T, D>> Q,
        std::type_identity_t<BatchView<T, D>> R, Options options = {});

/// Writes LAPACK's format of ?geqrf for every matrix and keeps nothing else: V_b below the diagonal and R_b on and
/// above it (m×n), tau_b k×1. V_R may be A itself, and may not overlap A otherwise. In place is the fastest way to V,
/// tau and R. Bounds and errors are as above. After an error some matrices have been overwritten.
///
///     qr_lapack(ctx, BatchView<double>(a, 16, 8, 16, 128, count), BatchView<double>(tau, 8, 1, 8, 8, count));
template <class T, class D>
void qr_lapack(Context<D>& ctx, BatchView<const T, D> A, std::type_identity_t<BatchView<T, D>> V_R,
               std::type_identity_t<BatchView<T, D>> tau, Options options = {});
template <class T, class D>
void qr_lapack(Context<D>& ctx, BatchView<T, D> A, std::type_identity_t<BatchView<T, D>> tau, Options options = {}) {
    qr_lapack<T, D>(ctx, BatchView<const T, D>(A), A, tau, options);
}

/// Returns only the thin Q: `qr(ctx, A, options).take_q(ctx)`. Throws as `qr` and `take_q` do.
///
///     Batch<double> Q = orthonormalize(ctx, BatchView<const double>(data, 16, 8, 16, 128, count));
template <class T, class D>
Batch<T, D> orthonormalize(Context<D>& ctx, BatchView<const T, D> A, Options options = {});
template <class T, class D>
Batch<T, D> orthonormalize(Context<D>& ctx, BatchView<T, D> A, Options options = {}) {
    return orthonormalize<T, D>(ctx, BatchView<const T, D>(A), options);
}

/// Solutions of min ‖A_b X_b − B_b‖ for every matrix of a batch.
template <class T, class D = Host>
struct BatchedLeastSquares {
    Batch<T, D> X;               ///< n×p_b
    Batch<T, D> residual_norms;  ///< p_b×1: ‖A x_j − b_j‖₂; exact zeros for rank m
    Batch<T, D> conditions;      ///< 1×1: κ₁ of the triangular factor, or an estimate; infinite beyond T's range
    Batch<T, D> R;               ///< k×k, k = min(m, n): triangular factor of A_b, or of its transpose for m < n
    std::vector<Index> ranks;    ///< one a matrix; of no meaning where X is NaN
};

/// Solves min ‖A_b X_b − B_b‖ for every matrix of a batch, A_b m×n of any rank and B_b m×p_b: the X of least norm.
/// Backward errors and refusals are those that `least_squares` has for one matrix. It computes no singular values.
///
/// A B of stride 0 is one right-hand side for all matrices. Small matrices are solved several at once, as `qr` factors
/// them. A matrix that this method refuses (deficient rank, or near an end of T's range) is solved by the single
/// `least_squares`. So are all matrices if `options` make `qr` work matrix by matrix, and with an rcond other than −1
/// those whose κ₁ does not show that the rank is full. 2 max(m, n)k² + k³/3 + 4mnp flops each.
///
/// Throws InvalidArgument, and NonFiniteEntry, RankDeficient and NumericalBreakdown, which name the first failing
/// matrix. With check_finite = false a failing matrix gets NaN in X, residual norms and condition instead, and the
/// results of the other matrices are not affected. On a GPU, small matrices near an end of T's range then get NaN, too,
/// and the call does not wait if all matrices are small and rcond is −1.
///
///     auto s = least_squares(ctx, BatchView<const double>(a, 16, 8, 16, 128, count),
///                            BatchView<const double>(b, 16, 1, 16, 16, count));
///     // s.X[0], s.residual_norms[0], s.conditions[0]
template <class T, class D>
BatchedLeastSquares<T, D> least_squares(Context<D>& ctx, BatchView<const T, D> A,
                                        std::type_identity_t<BatchView<const T, D>> B,
                                        const LeastSquaresOptions& solver = {}, Options options = {});
template <class T, class D>
BatchedLeastSquares<T, D> least_squares(Context<D>& ctx, BatchView<T, D> A,
                                        std::type_identity_t<BatchView<const T, D>> B,
                                        const LeastSquaresOptions& solver = {}, Options options = {}) {
    return least_squares<T, D>(ctx, BatchView<const T, D>(A), B, solver, options);
}

/// Solves with existing factorizations, m >= n: 4mnp + n²p + n³/3 flops each. Waits on a GPU.
///
/// Throws InvalidArgument for m < n and for factorizations with QForm::None.
template <class T, class D>
BatchedLeastSquares<T, D> least_squares(Context<D>& ctx, const BatchedQR<T, D>& factorizations,
                                        std::type_identity_t<BatchView<const T, D>> B,
                                        const LeastSquaresOptions& solver = {});

}  // namespace quoin
