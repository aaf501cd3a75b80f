#pragma once

// Q of TSQR and CAQR on a GPU: trees whose levels are batches (Anderson, Ballard, Demmel, Keutzer 2011).

#include <vector>

#include "algorithms/one_matrix/panel_layout.hpp"
#include "primitives.hpp"
#include "primitives/small_batch.hpp"

namespace quoin {

/// Q of a tall matrix. Every level of its tree is a batch. The top n rows of its matrices, their R, and the rows that
/// remain are the matrix of the next level. Only on devices with Tuning<D>::has_batched_trees.
template <class T, class D>
class BatchTree {
public:
    /// A (m×n) = Q [R; 0]. A is only read. Unless `holds_q`, computes R alone. Unless `checked`, returns false if columns
    /// are not finite or out of range, and waits to read that from the triangles, which have the norms of A's columns.
    bool factor(Context<D>& ctx, const TreePlan& plan, InputView<T, D> A, bool checked, bool holds_q,
                MatrixView<T, D> R);
    /// C := op(Q) C. C has m rows.
    void apply_q(Context<D>& ctx, Op op, MatrixView<T, D> C) const { apply_from(ctx, 0, op, C); }
    /// Q (m×n) := Q [E; 0] for an upper triangular E with zeros below the diagonal. E = I if it has no data.
    void form_q(Context<D>& ctx, MatrixView<T, D> Q, MatrixView<const T, D> E = {}) const { form_from(ctx, 0, E, Q); }
    Index cols() const { return n_; }
    bool is_one_matrix() const { return levels_.size() == 1; }
    /// Returns the only matrix of a tree of one.
    SmallBatch<T, D> take_matrix() && { return std::move(levels_.front().batch); }

private:
    struct Level : BatchLevel {
        SmallBatch<T, D> batch;
    };
    /// The first `rows` rows of the level's matrices in X, whose rows start `step` rows apart.
    template <class U>
    static BatchView<U, D> matrices(const BatchLevel& level, MatrixView<U, D> X, Index rows, Index step) {
        return {X.data, rows, X.cols, X.ld, step, level.count()};
    }
    void apply_from(Context<D>& ctx, std::size_t l, Op op, MatrixView<T, D> C) const;
    void form_from(Context<D>& ctx, std::size_t l, MatrixView<const T, D> E, MatrixView<T, D> Q) const;

    Index n_ = 0;
    std::vector<Level> levels_;
};

/// Q and R of a matrix by panels of columns, each with a tree.
template <class T, class D>
struct TreeQ {
    struct Panel {
        Index first;
        BatchTree<T, D> tree;
    };
    std::vector<Panel> panels;
    Matrix<T, D> R;  ///< k×n

    /// Factors A by the plan's panels. If one panel has all columns, A is only read, and `checked` is as in `BatchTree`.
    /// Otherwise A is in `memory`, and must be checked. It is of no use afterwards.
    bool factor(Context<D>& ctx, const Plan& plan, InputView<T, D> A, MatrixView<T, D> memory, bool checked);
    /// C := op(Q) C. C has m rows.
    void apply_q(Context<D>& ctx, Op op, MatrixView<T, D> C) const;
    /// Writes the thin Q (m×k), or Q [E; 0] of one panel, with E as in `BatchTree`.
    void form_q(Context<D>& ctx, MatrixView<T, D> Q, MatrixView<const T, D> E = {}) const;
};

}  // namespace quoin
