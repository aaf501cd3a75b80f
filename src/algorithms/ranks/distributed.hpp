#pragma once

// TSQR over ranks (Demmel, Grigori, Hoemmen, Langou 2012). Every rank's rows are one panel. The R factors of the ranks
// meet in the nodes of a binary tree, two triangles each, as the R factors of the domains of one panel do.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "algorithms/one_matrix/batch_tree.hpp"
#include "algorithms/one_matrix/blocked_householder.hpp"
#include "algorithms/one_matrix/plan.hpp"
#include "algorithms/one_matrix/tsqr_caqr.hpp"
#include "algorithms/shared/copies.hpp"
#include "comm/joint_call.hpp"
#include "devices.hpp"
#include "quoin/distributed.hpp"

namespace quoin {

/// Throws InvalidArgument for options that `qr` over ranks does not offer.
void require_offered(const Options& options);

/// Returns the plan of a leaf or a node of the tree of ranks: one panel, or several if the device's trees are narrower.
template <class T, class D>
Plan plan_reflectors(const Context<D>& ctx, Index m, Index n, TreeOptions tree = {}) {
    Options options;
    const bool fits_tree = std::min(m, n) <= Tuning<D>::max_tree_cols;
    options.method = fits_tree ? MethodOptions(TSQR{tree}) : BlockedHouseholder{};
    options.check_finite = false;
    return plan_qr<T>(ctx, m, n, options);
}
/// Q of a leaf of the tree of ranks, factored by a plan of `plan_reflectors`.
template <class T, class D>
class LeafQ {
public:
    LeafQ() = default;
    /// Factors A, and computes R (k×n).
    LeafQ(Context<D>& ctx, const Plan& plan, Matrix<T, D>&& A, MatrixView<T, D> R) : m_(plan.rows), k_(R.rows) {
        if constexpr (Tuning<D>::has_batched_trees) {
            if (plan.method == Method::TSQR) {
                TreeQ<T, D> tree{{}, Matrix<T, D>::over(R)};
                tree.factor(ctx, plan, A.view(), A.view(), true);
                tree.R = {};
                tree_ = std::make_shared<const TreeQ<T, D>>(std::move(tree));
                return;
            }
        }
        forest_.A = std::move(A);
        lay_out_panels(ctx, plan, forest_);
        if constexpr (Tuning<D>::has_batched_trees) {
            factor_blocked_householder(ctx, plan, forest_.view());
        } else {
            factor_trees(ctx, forest_);
        }
        copy_triangle<T>(ctx, forest_.A.view().row_block({0, k_}), R);
    }
    LeafQ copy(Context<D>& ctx) const {
        LeafQ twin;
        twin.m_ = m_, twin.k_ = k_;
        twin.tree_ = tree_;
        twin.forest_ = {forest_.panels, copy_of<T, D>(ctx, forest_.A.view()), copy_of<T, D>(ctx, forest_.Tf.view())};
        return twin;
    }
    /// C := op(Q) C. C has m rows.
    void apply(Context<D>& ctx, Op op, MatrixView<T, D> C) const {
        if (tree_) return tree_->apply_q(ctx, op, C);
        apply_forest<T, D>(ctx, forest_.view(), op, C);
    }
    /// Returns the thin Q times E (upper triangular, k×k); without E the thin Q.
    Matrix<T, D> form(Context<D>& ctx, MatrixView<const T, D> E) && {
        const bool is_blocked = Tuning<D>::has_batched_trees && !tree_;
        if (tree_ || (is_blocked && E.data)) {
            Matrix<T, D> Q(ctx, m_, k_);
            if (tree_) {
                tree_->form_q(ctx, Q.view(), E);
            } else {
                set_zero(ctx, Q.view());
                copy_triangle<T>(ctx, E, Q.view().row_block({0, k_}));
                apply(ctx, Op::None, Q.view());
            }
            return Q;
        }
        form_q_in_place<T, D>(ctx, forest_.view(), Arithmetic::Native, E);
        Matrix<T, D> Q = std::move(forest_.A);
        return Q.cols() > k_ ? copy_of<T, D>(ctx, std::as_const(Q).view().col_block({0, k_})) : std::move(Q);
    }

private:
    Index m_ = 0, k_ = 0;
    ReflectorForest<T, D> forest_;             // on the host, and of more columns than a GPU's trees have
    std::shared_ptr<const TreeQ<T, D>> tree_;  // on a GPU
};

/// Returns the plan for the matrix of all ranks: by Gram passes as on one process, and by TSQR otherwise.
template <class T, class D>
Plan plan_over_ranks(const Context<D>& ctx, Index m, Index n, Options options) {
    const bool wide = std::min(m, n) > Tuning<D>::max_tree_cols;
    if (!wide || options.method != Method::TSQR) {
        const Plan plan = plan_for<T>(tuning_of(ctx), m, n, options, true);
        if (is_cholesky(plan.method)) return plan;
    }
    if (wide) {
        Plan plan = plan_reflectors<T>(ctx, m, n);
        plan.q = options.q.form;
        plan.check_finite = options.check_finite;
        return plan;
    }
    options.method = TSQR{options.method.tree()};
    return plan_qr<T>(ctx, m, n, options);
}

/// Returns the number of elements on and above the diagonal of a k×n matrix.
inline Index packed_size(Index k, Index n) { return packed_column(k, n); }

/// A on the root := the sum of the ranks' A, in the order of the tree of ranks. `part`: as for `reduce`.
template <class T, class D>
void reduce_sum(Communicator& comm, Context<D>& ctx, View<T, D> A, View<T, D> part, int root, int& note) {
    reduce<T, D>(comm, ctx, A, part, root, note, [&](View<const T, D> B, View<T, D> C, int) { add<T>(ctx, B, C); });
}

/// A := the sum of A over the ranks, on all of them. `part` has A's shape. Two ranks exchange A: a + b = b + a.
template <class T, class D>
void sum_on_all(Context<D>& ctx, JointCall& call, Communicator& comm, View<T, D> A, View<T, D> part) {
    if (comm.size() == 2) {
        call.hear(comm.exchange<T>(ctx, A, part, 1 - comm.rank(), call.note()));
        return call.attempt([&] { add<T>(ctx, part, A); });
    }
    reduce_sum<T, D>(comm, ctx, A, part, 0, call.note());
    call.hear(comm.broadcast<T>(ctx, A, 0, call.note()));
}

/// e_j := the largest of the ranks' `mine`, or 0 if all of them are `no_exponent`. The call's ranks agree. Waits.
inline constexpr Index no_exponent = std::numeric_limits<int>::min();
template <class D>
void agree_on_exponents(Context<D>& ctx, JointCall& call, Communicator& comm, Matrix<Index>& mine,
                        MatrixView<int, D> exponents) {
    Matrix<int> chosen;
    call.attempt([&] { chosen = Matrix<int>(mine.rows(), 1); });
    call.hear(comm.all_reduce<Index>(host_context(ctx), mine.view(), Reduction::Max, call.note()));
    call.agree();
    for (Index j = 0; j < mine.rows(); ++j) chosen(j, 0) = mine(j, 0) == no_exponent ? 0 : static_cast<int>(mine(j, 0));
    call.attempt([&] {
        start_copy_from_host<int>(ctx, chosen.view(), exponents);
        finish_copies(ctx);
        ctx.wait();
    });
}

/// Chooses e_j as the exponent of the largest entry of column j over the ranks, 0 for a column of zeros. `rows`: this
/// rank's. Waits.
template <class T, class D>
void choose_exponents(Context<D>& ctx, JointCall& call, Communicator& comm, MatrixView<const T, D> rows,
                      MatrixView<int, D> exponents) {
    Matrix<Index> largest(rows.cols, 1);
    call.attempt([&] {
        for (Index j = 0; j < rows.cols; ++j) {
            const double entry = entry_norms<T>(ctx, rows.col_block({j, j + 1})).largest;
            largest(j, 0) = entry == 0 ? no_exponent : std::isfinite(entry) ? std::ilogb(entry) : 0;
        }
    });
    agree_on_exponents(ctx, call, comm, largest, exponents);
}

/// Returns the number of levels of the tree of ranks.
inline Index rank_levels(int ranks) { return std::bit_width(static_cast<unsigned>(ranks - 1)); }

/// Groups of consecutive ranks with n or more rows together. One rank of a group, the leader, factors all its rows. A
/// rank with n rows or more is a group of its own, as a rule. So every triangle of the tree is n×n, unless there is
/// only one group.
struct RowGroups {
    struct Group {
        Range ranks;
        Index rows = 0;
        int leader = 0;  ///< has the most rows
    };
    RowGroups() = default;
    RowGroups(std::vector<Index> rows_, Index n) : rows(std::move(rows_)) {
        Group open;
        for (Index rank = 0; rank < static_cast<Index>(rows.size()); ++rank) {
            if (open.ranks.size() == 0) open = {{rank, rank}, 0, static_cast<int>(rank)};
            open.ranks.end = rank + 1;
            open.rows += rows[rank];
            if (rows[rank] > rows[open.leader]) open.leader = static_cast<int>(rank);
            total += rows[rank];
            if (n > 0 && open.rows >= n) groups.push_back(std::exchange(open, {}));
        }
        if (open.ranks.size() == 0) return;
        if (groups.empty()) {
            groups.push_back(open);
            return;
        }
        // the remaining rows are too few: their ranks join the last group
        Group& last = groups.back();
        last.ranks.end = open.ranks.end;
        last.rows += open.rows;
        if (rows[open.leader] > rows[last.leader]) last.leader = open.leader;
    }
    int index_of(int rank) const {
        int g = 0;
        while (groups[g].ranks.end <= rank) ++g;
        return g;
    }
    int root() const { return groups.front().leader; }

    std::vector<Index> rows;  ///< of each rank
    std::vector<Group> groups;
    Index total = 0;
};

/// The rows of a group, on their way to its leader and back. Sends messages only if the group has several ranks.
template <class T, class D>
class LentRows {
public:
    LentRows() = default;
    /// Allocates for p columns.
    LentRows(Context<D>& ctx, const RowGroups& layout, int rank, Index p) : rank_(rank), rows_(layout.rows) {
        group_ = layout.groups[layout.index_of(rank)];
        if (!is_shared() || rank != group_.leader) return;
        Index most = 0;
        for (Index r = group_.ranks.begin; r < group_.ranks.end; ++r) most = std::max(most, r == rank ? 0 : rows_[r]);
        all_ = Matrix<T, D>(ctx, group_.rows, p);
        part_ = Matrix<T, D>(ctx, most * p, 1);
    }
    bool is_shared() const { return group_.ranks.size() > 1; }

    /// Returns X of all ranks of the group on the leader; X itself if the leader is alone.
    Matrix<T, D> gather(Context<D>& ctx, JointCall& call, Matrix<T, D>&& X) {
        if (!is_shared()) return std::move(X);
        if (rank_ != group_.leader) {
            call.comm().template send<T>(ctx, X.view(), group_.leader, call.note());
            return {};
        }
        for_each_rank([&](int rank, MatrixView<T, D> rows) {
            const auto part = rank == rank_ ? X.view() : part_of(rows);
            if (rank != rank_) call.hear(call.comm().template receive<T>(ctx, part, rank));
            call.attempt([&] { copy<T>(ctx, part, rows); });
        });
        return std::move(all_);
    }
    /// X := this rank's rows of the leader's C.
    void scatter(Context<D>& ctx, JointCall& call, Matrix<T, D>&& C, Matrix<T, D>& X) {
        if (!is_shared()) {
            X = std::move(C);
            return;
        }
        if (rank_ != group_.leader) return call.hear(call.comm().template receive<T>(ctx, X.view(), group_.leader));
        all_ = std::move(C);
        for_each_rank([&](int rank, MatrixView<T, D> rows) {
            const auto part = rank == rank_ ? X.view() : part_of(rows);
            call.attempt([&] { copy<T>(ctx, rows, part); });
            if (rank != rank_) call.comm().template send<T>(ctx, part, rank, call.note());
        });
    }

private:
    MatrixView<T, D> part_of(MatrixView<T, D> rows) { return {part_.data(), rows.rows, rows.cols}; }
    template <class F>
    void for_each_rank(F f) {
        Index row = 0;
        for (Index r = group_.ranks.begin; r < group_.ranks.end; row += rows_[r], ++r)
            f(static_cast<int>(r), all_.view().row_block({row, row + rows_[r]}));
    }

    int rank_ = 0;
    std::vector<Index> rows_;
    RowGroups::Group group_;
    Matrix<T, D> all_, part_;
};

/// A node of the tree whose head is this rank: [R_head; R_member] = H [R; 0].
template <class T, class D>
class RankNode {
public:
    RankNode(Context<D>& ctx, int member_, Index n)
        : member(member_), n_(n), tree_{2 * n, n, Tuning<D>::inner_block(n), n, n, 2}, A_(ctx, 2 * n, n) {
        if constexpr (!Tuning<D>::has_batched_trees) Tf_ = Matrix<T, D>(ctx, tree_.inner_block, tree_.t_cols());
    }
    RankNode copy(Context<D>& ctx) const {
        RankNode twin(ctx, member, n_);
        twin.A_ = copy_of<T, D>(ctx, A_.view());
        twin.Tf_ = copy_of<T, D>(ctx, Tf_.view());
        twin.H_ = H_.copy(ctx);
        return twin;
    }
    MatrixView<T, D> upper() { return A_.view().row_block({0, n_}); }
    MatrixView<T, D> lower() { return A_.view().row_block({n_, 2 * n_}); }

    /// Factors upper() and lower(), triangles with zeros below. R is in upper() afterwards.
    void factor(Context<D>& ctx) {
        if constexpr (Tuning<D>::has_batched_trees) {
            Matrix<T, D> stacked = std::exchange(A_, Matrix<T, D>(ctx, 2 * n_, n_));
            H_ = LeafQ<T, D>(ctx, plan_reflectors<T>(ctx, 2 * n_, n_), std::move(stacked), upper());
        } else {
            factor_nodes<T>(ctx, tree_, 0, A_.view(), Tf_.view());
        }
    }
    /// C := op(H) C. C has 2n rows.
    void apply(Context<D>& ctx, Op op, MatrixView<T, D> C) const {
        if constexpr (Tuning<D>::has_batched_trees) {
            H_.apply(ctx, op, C);
        } else {
            apply_nodes<T>(ctx, tree_, 0, op, A_.view(), Tf_.view(), C);
        }
    }
    /// [upper(); lower()] := H [E; 0] for an upper triangular E. Both become upper triangular.
    void form(Context<D>& ctx, MatrixView<const T, D> E) {
        if constexpr (Tuning<D>::has_batched_trees) {
            A_ = std::move(H_).form(ctx, E);
        } else {
            store_triangle<T>(ctx, E, upper());
            form_nodes<T>(ctx, tree_, 0, A_.view(), Tf_.view());
        }
    }

    int member = 0;

private:
    Index n_;
    PanelTree tree_;       // on the host, of one node, with V and R in A
    Matrix<T, D> A_, Tf_;  // the triangles
    LeafQ<T, D> H_;        // on a GPU
};

/// The data of a DistributedQR.
template <class T, class D>
struct DistributedFactorization {
    Communicator* comm = nullptr;
    RowGroups layout;
    Plan plan;
    Report report;
    Matrix<T, D> R;  ///< k×n: on the root of the tree, or on all ranks after Gram passes
    bool holds_q = false, is_explicit = false;
    Matrix<T, D> Q;                     ///< explicit: this rank's rows, without a tree
    LeafQ<T, D> leaf;                   ///< of a leader's rows
    std::vector<RankNode<T, D>> nodes;  ///< of a leader, in the order of the levels
    int head = -1;                      ///< of a leader: the rank that absorbs its R

    Index k() const { return std::min(plan.rows, plan.cols); }
    Index own_rows() const { return layout.rows[comm->rank()]; }
    const RowGroups::Group& group() const { return layout.groups[layout.index_of(comm->rank())]; }
    bool leads() const { return group().leader == comm->rank(); }
    bool is_root() const { return layout.root() == comm->rank(); }
    void require_q(const char* operation) const {
        if (!holds_q)
            throw InvalidArgument(std::string(operation) +
                                  (plan.q == QForm::None
                                       ? " needs Q, and the factorization was asked for R alone (q = none)"
                                       : " of a factorization whose Q was taken"));
    }
};

/// Access of Quoin's own sources to the data of a DistributedQR.
struct InsideRanks {
    template <class T, class D>
    static const DistributedFactorization<T, D>& of(const DistributedQR<T, D>& f) {
        return *f.inside_;
    }
};

/// Products of the thin Q₁ with p columns. The constructor allocates, before the ranks agree to begin.
template <class T, class D>
class ThinProduct {
public:
    ThinProduct(Context<D>& ctx, const DistributedFactorization<T, D>& f, Index p);
    /// Returns Q₁ᵀX (k×p) on the root of the tree. X: this rank's rows. If `rest` is given, it receives the norms of p
    /// columns whose squares, summed over the ranks, are the squared column norms of (I − Q₁Q₁ᵀ)X.
    Matrix<T, D> project(Context<D>& ctx, JointCall& call, Matrix<T, D>&& X, std::vector<Real<T>>* rest = nullptr);
    /// Returns this rank's rows of Q₁W. W is k×p and equal on every rank.
    Matrix<T, D> expand(Context<D>& ctx, JointCall& call, MatrixView<const T, D> W);

private:
    const DistributedFactorization<T, D>& f_;
    LentRows<T, D> lent_;
    Matrix<T, D> top_, part_, stack_, X_;
};

}  // namespace quoin
