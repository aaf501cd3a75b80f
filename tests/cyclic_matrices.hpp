#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "checks.hpp"
#include "quoin/block_cyclic.hpp"

/// Grids, and block-cyclic matrices entry by entry.
namespace quoin::test {

/// Every grid of so many ranks.
inline std::vector<std::pair<int, int>> grids(int ranks) {
    std::vector<std::pair<int, int>> all;
    for (int rows = 1; rows <= ranks; ++rows) {
        if (ranks % rows == 0) all.emplace_back(rows, ranks / rows);
    }
    return all;
}

/// This rank's part of A, entry by entry.
template <class T>
Matrix<T> part_of(const ProcessGrid& grid, const BlockCyclic& layout, MatrixView<const T> A) {
    const auto rows = layout.row_axis(grid), cols = layout.col_axis(grid);
    Matrix<T> local(layout.local_rows(grid), layout.local_cols(grid));
    for (Index j = 0; j < local.cols(); ++j) {
        for (Index i = 0; i < local.rows(); ++i)
            local(i, j) = A(rows.global(grid.row(), i), cols.global(grid.col(), j));
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
    for (Index j = 0; j < local.cols; ++j) {
        for (Index i = 0; i < local.rows; ++i) A(rows.global(grid.row(), i), cols.global(grid.col(), j)) = local(i, j);
    }
    grid.comm().all_reduce<T>(ctx, A.view());
    return A;
}

}  // namespace quoin::test
