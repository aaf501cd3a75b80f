#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "checks.hpp"
#include "quoin/block_cyclic.hpp"
#include "quoin/qr.hpp"

/// Grids, block-cyclic matrices entry by entry, and the law of their QR.
namespace quoin::test {

/// Returns every grid of `ranks` ranks.
inline std::vector<std::pair<int, int>> grids(int ranks) {
    std::vector<std::pair<int, int>> all;
    for (int rows = 1; rows <= ranks; ++rows) {
        if (ranks % rows == 0) all.emplace_back(rows, ranks / rows);
    }
    return all;
}

inline std::vector<Index> global_rows(const CyclicAxis& rows, int rank, Index count) {
    std::vector<Index> at;
    for (Index i = 0; i < count; ++i) at.push_back(rows.global(rank, i));
    return at;
}

/// This rank's part of A, entry by entry.
template <class T>
Matrix<T> part_of(const ProcessGrid& grid, const BlockCyclic& layout, MatrixView<const T> A) {
    const auto rows = layout.row_axis(grid), cols = layout.col_axis(grid);
    Matrix<T> local(layout.local_rows(grid), layout.local_cols(grid));
    const std::vector<Index> at = global_rows(rows, grid.row(), local.rows());
    for (Index j = 0; j < local.cols(); ++j) {
        const T* const from = A.at(0, cols.global(grid.col(), j));
        std::transform(at.begin(), at.end(), local.view().at(0, j), [&](Index i) { return from[i]; });
    }
    return local;
}

/// The whole matrix on every rank: the sum over ranks of matrices with zeros elsewhere.
template <class T>
Matrix<T> whole(Context<Host>& ctx, const ProcessGrid& grid, const BlockCyclic& layout, MatrixView<const T> local) {
    const auto rows = layout.row_axis(grid), cols = layout.col_axis(grid);
    EXPECT_EQ(local.rows, layout.local_rows(grid));
    EXPECT_EQ(local.cols, layout.local_cols(grid));
    Matrix<T> A = filled<T>(layout.rows, layout.cols, T(0));
    const std::vector<Index> at = global_rows(rows, grid.row(), local.rows);
    for (Index j = 0; j < local.cols; ++j) {
        T* const to = A.view().at(0, cols.global(grid.col(), j));
        for (std::size_t i = 0; i < at.size(); ++i) to[at[i]] = local(static_cast<Index>(i), j);
    }
    grid.comm().all_reduce<T>(ctx, A.view());
    return A;
}

/// tau (k×1) on every rank, of the ranks' own parts.
template <class T>
Matrix<T> whole_tau(Context<Host>& ctx, const ProcessGrid& grid, const BlockCyclic& layout, const Matrix<T>& mine) {
    const Index k = std::min(layout.rows, layout.cols);
    const CyclicAxis columns{k, layout.col_block, grid.cols(), layout.first_col};
    EXPECT_EQ(mine.rows(), columns.local_size(grid.col()));
    Matrix<T> tau = filled<T>(k, 1, T(0));
    if (mine.rows() == columns.local_size(grid.col())) {
        for (Index l = 0; l < mine.rows(); ++l)
            tau(columns.global(grid.col(), l), 0) = grid.row() == 0 ? mine(l, 0) : T(0);
    }
    if (k > 0) grid.comm().all_reduce<T>(ctx, tau.view());
    return tau;
}

/// Factors, and products with Q of C, as whole matrices.
template <class T>
struct CyclicResults {
    const Matrix<T>&R, &Q, &V_R, &tau, &C, &QtC, &QC;
};
/// The law of R, of the thin Q, of V and tau, and of products with Q.
template <class T>
void expect_cyclic_law(Context<Host>& ctx, MatrixView<const T> A, const CyclicResults<T>& f, double bound) {
    const Index k = std::min(A.rows, A.cols);
    EXPECT_TRUE(is_upper_trapezoidal<T>(f.R.view()));
    EXPECT_TRUE(is_finite<T>(f.R.view()));
    EXPECT_TRUE(is_finite<T>(f.Q.view()));
    for (Index j = 0; j < A.cols; ++j) {
        for (Index i = 0; i <= std::min(j, k - 1); ++i) ASSERT_EQ(f.R(i, j), f.V_R(i, j));
    }
    if (k == 0) return;
    EXPECT_LE(orthogonality_error<T>(f.Q.view(), k), bound) << "‖I − QᵀQ‖";
    EXPECT_LE(residual_error<T>(A, f.Q.view(), f.R.view()), bound) << "‖A − QR‖";
    EXPECT_LE(column_residual_error<T>(A, f.Q.view(), f.R.view()), bound) << "max ‖a_j − Q r_j‖";
    // the reflectors that V and tau say are the Q that products use
    const auto g = from_lapack<T>(ctx, {copy<T>(f.V_R.view()), copy<T>(f.tau.view())});
    EXPECT_LE(difference<T>(g.form_q(ctx).view(), f.Q.view(), k, std::sqrt(static_cast<double>(k))), bound) << "V, tau";
    Matrix<T> X = copy<T>(f.C.view());
    g.apply_q(ctx, Side::Left, Op::Transpose, X.view());
    EXPECT_LE(difference<T>(f.QtC.view(), X.view(), k, frobenius_norm<T>(f.C.view())), bound) << "QᵀC";
    X = copy<T>(f.C.view());
    g.apply_q(ctx, Side::Left, Op::None, X.view());
    EXPECT_LE(difference<T>(f.QC.view(), X.view(), k, frobenius_norm<T>(f.C.view())), bound) << "QC";
}

}  // namespace quoin::test
