// Leaves and nodes of TSQR's trees.

#include "host/device.hpp"
#include "host/leaf.hpp"
#include "host/parallel.hpp"

namespace quoin {

namespace {

using namespace host;

template <class T>
T* t_at(MatrixView<T> Tf, Index col) {
    return Tf.data + col * Tf.ld;
}

/// Domain d of `A`: R by a flat tree over its leaves, copied into cache one at a time. `keep` stores V and T.
template <class T, bool keep>
void factor_domain(const Team& team, const PanelTree& tree, Index d,
                   std::conditional_t<keep, MatrixView<T>, InputView<T>> A, MatrixView<T> Tf, T* R, T* leaf,
                   T* scratch_t, T* work) {
    const Index n = tree.width, ib = tree.inner_block;
    for (Index t = 0; t < tree.leaves(d) && !team.stopped(); ++t) {
        const auto A_leaf = A.row_block(tree.leaf(d, t));
        const Index h = A_leaf.rows;
        T* Tl = keep ? t_at(Tf, tree.t_of_leaf(d, t)) : scratch_t;
        const Index ldt = keep ? Tf.ld : ib;
        load_block<T>(A_leaf, leaf, h);
        if (t == 0) {
            factor_leaf(h, n, ib, leaf, h, Tl, ldt, work);
            copy_upper(n, n, leaf, h, R, n);
        } else {
            factor_stacked(0, h, n, ib, R, n, leaf, h, Tl, ldt, work);
        }
        if constexpr (keep) copy_block(h, n, leaf, h, A_leaf.data, A_leaf.ld);
    }
}

}  // namespace

template <class T, class D>
void factor_leaves(Context<D>& ctx, const PanelTree& tree, View<T, D> A, View<T, D> Tf) {
    const Index n = tree.width, ib = tree.inner_block, domains = tree.domains();
    const Index leaf_size = std::min(tree.leaf_rows, tree.rows) * n;
    const double flops = 2.0 * tree.rows * n * n;
    Arena::Frame frame(ctx.state().arena);
    const Team threads = team(ctx, flops, tree.rows * n);
    ThreadBuffers<T> buffers(frame, threads, n * n + leaf_size + leaf_work(ib, n, n));
    for_tasks(threads, domains, [&](Index d) {
        T *R = buffers.mine(), *leaf = R + n * n, *work = leaf + leaf_size;
        factor_domain<T, true>(threads, tree, d, A, Tf, R, leaf, nullptr, work);
        const auto top = A.row_block(tree.domain(d));
        store_upper(n, n, R, n, top.data, top.ld);
    });
    ctx.state().add_flops(flops);
}

template <class T, class D>
void reduce_leaves(Context<D>& ctx, const PanelTree& tree, Input<T, D> A, View<T, D> stack) {
    const Index n = tree.width, ib = tree.inner_block, domains = tree.domains();
    const Index leaf_size = std::min(tree.leaf_rows, tree.rows) * n;
    const double flops = 2.0 * tree.rows * n * n;
    Arena::Frame frame(ctx.state().arena);
    const Team threads = team(ctx, flops, tree.rows * n);
    ThreadBuffers<T> buffers(frame, threads, n * n + leaf_size + ib * n + leaf_work(ib, n, n));
    for_tasks(threads, domains, [&](Index d) {
        T *R = buffers.mine(), *leaf = R + n * n, *Tl = leaf + leaf_size, *work = Tl + ib * n;
        factor_domain<T, false>(threads, tree, d, A, MatrixView<T>(), R, leaf, Tl, work);
        copy_block(n, n, R, n, stack.at(d * n, 0), stack.ld);
    });
    ctx.state().add_flops(flops);
}

template <class T, class D>
void factor_nodes(Context<D>& ctx, const PanelTree& tree, Index level, View<T, D> A, View<T, D> Tf) {
    const Index n = tree.width, ib = tree.inner_block, domains = tree.domains();
    const Index stride = tree.stride(level), span = stride * tree.fan_in;
    const double flops = 2.0 / 3.0 * static_cast<double>(domains / stride) * n * n * n;
    Arena::Frame frame(ctx.state().arena);
    const Team threads = team(ctx, flops);
    ThreadBuffers<T> buffers(frame, threads, 2 * n * n + leaf_work(ib, n, n));
    for_tasks(threads, tree.nodes(level), [&](Index node) {
        T *R = buffers.mine(), *B = R + n * n, *work = B + n * n;
        const Index head = node * span;
        T* A_head = A.at(tree.domain(head).begin, 0);
        copy_upper(n, n, A_head, A.ld, R, n);
        for (Index d = head + stride; d < std::min(domains, head + span); d += stride) {
            T* A_member = A.at(tree.domain(d).begin, 0);
            copy_upper(n, n, A_member, A.ld, B, n);
            factor_stacked(n, n, n, ib, R, n, B, n, t_at(Tf, tree.t_of_node(d)), Tf.ld, work);
            store_upper(n, n, B, n, A_member, A.ld);
        }
        store_upper(n, n, R, n, A_head, A.ld);
    });
    ctx.state().add_flops(flops);
}

template <class T, class D>
void apply_leaves(Context<D>& ctx, const PanelTree& tree, Op op, View<const T, D> A, View<const T, D> Tf,
                  View<T, D> C) {
    const Index n = tree.width, ib = tree.inner_block, domains = tree.domains(), p = C.cols;
    const Index tiles = (p + tile_cols - 1) / tile_cols;
    const Index leaf_size = std::min(tree.leaf_rows, tree.rows) * tile_cols;
    const bool transpose = op == Op::Transpose;
    const double flops = 4.0 * tree.rows * n * p;
    Arena::Frame frame(ctx.state().arena);
    const Team threads = team(ctx, flops, tree.rows * (n + p));
    ThreadBuffers<T> buffers(frame, threads, n * tile_cols + leaf_size + leaf_work(ib, n, tile_cols));
    for_tasks(threads, domains, tiles, [&](Index d, Index tile) {
        T *C_top = buffers.mine(), *C_leaf = C_top + n * tile_cols, *work = C_leaf + leaf_size;
        const auto C_tile = C.col_block({tile * tile_cols, std::min(p, (tile + 1) * tile_cols)});
        const Index q = C_tile.cols, leaves = tree.leaves(d);
        const Range first = tree.leaf(d, 0);
        const auto apply_first = [&] {
            apply_leaf(transpose, false, first.size(), n, ib, A.at(first.begin, 0), A.ld,
                       t_at(Tf, tree.t_of_leaf(d, 0)), Tf.ld, q, C_tile.at(first.begin, 0), C.ld, work);
        };
        if (transpose) apply_first();
        if (leaves > 1) {
            copy_block(n, q, C_tile.at(first.begin, 0), C.ld, C_top, n);
            for (Index s = 1; s < leaves && !threads.stopped(); ++s) {
                const Index t = transpose ? s : leaves - s;
                const Range r = tree.leaf(d, t);
                copy_block(r.size(), q, C_tile.at(r.begin, 0), C.ld, C_leaf, r.size());
                apply_stacked(transpose, false, 0, r.size(), n, ib, A.at(r.begin, 0), A.ld,
                              t_at(Tf, tree.t_of_leaf(d, t)), Tf.ld, q, C_top, n, C_leaf, r.size(), work);
                copy_block(r.size(), q, C_leaf, r.size(), C_tile.at(r.begin, 0), C.ld);
            }
            copy_block(n, q, C_top, n, C_tile.at(first.begin, 0), C.ld);
        }
        if (!transpose) apply_first();
    });
    ctx.state().add_flops(flops);
}

template <class T, class D>
void apply_nodes(Context<D>& ctx, const PanelTree& tree, Index level, Op op, View<const T, D> A, View<const T, D> Tf,
                 View<T, D> C) {
    const Index n = tree.width, ib = tree.inner_block, domains = tree.domains(), p = C.cols;
    const Index tiles = (p + tile_cols - 1) / tile_cols;
    const Index stride = tree.stride(level), span = stride * tree.fan_in, nodes = tree.nodes(level);
    const bool transpose = op == Op::Transpose;
    const double flops = 2.0 * static_cast<double>(domains / stride) * n * n * p;
    Arena::Frame frame(ctx.state().arena);
    const Team threads = team(ctx, flops);
    ThreadBuffers<T> buffers(frame, threads, n * n + 2 * n * tile_cols + leaf_work(ib, n, tile_cols));
    for_tasks(threads, nodes, tiles, [&](Index node, Index tile) {
        T *V = buffers.mine(), *C_head = V + n * n, *C_member = C_head + n * tile_cols,
          *work = C_member + n * tile_cols;
        const auto C_tile = C.col_block({tile * tile_cols, std::min(p, (tile + 1) * tile_cols)});
        const Index q = C_tile.cols, head = node * span;
        const Index members = (std::min(domains, head + span) - head - 1) / stride;
        T* top = C_tile.at(tree.domain(head).begin, 0);
        copy_block(n, q, top, C.ld, C_head, n);
        for (Index s = 1; s <= members; ++s) {
            const Index d = head + (transpose ? s : members + 1 - s) * stride;
            const Index row = tree.domain(d).begin;
            copy_upper(n, n, A.at(row, 0), A.ld, V, n);
            copy_block(n, q, C_tile.at(row, 0), C.ld, C_member, n);
            apply_stacked(transpose, false, n, n, n, ib, V, n, t_at(Tf, tree.t_of_node(d)), Tf.ld, q, C_head, n,
                          C_member, n, work);
            copy_block(n, q, C_member, n, C_tile.at(row, 0), C.ld);
        }
        copy_block(n, q, C_head, n, top, C.ld);
    });
    ctx.state().add_flops(flops);
}

template <class T, class D>
void form_nodes(Context<D>& ctx, const PanelTree& tree, Index level, View<T, D> A, View<const T, D> Tf) {
    const Index n = tree.width, ib = tree.inner_block, domains = tree.domains();
    const Index stride = tree.stride(level), span = stride * tree.fan_in, nodes = tree.nodes(level);
    const double flops = 2.0 / 3.0 * static_cast<double>(domains / stride) * n * n * n;
    Arena::Frame frame(ctx.state().arena);
    const Team threads = team(ctx, flops);
    ThreadBuffers<T> buffers(frame, threads, 3 * n * n + leaf_work(ib, n, n));
    for_tasks(threads, nodes, [&](Index node) {
        T *E = buffers.mine(), *V = E + n * n, *E_member = V + n * n, *work = E_member + n * n;
        const Index head = node * span, members = (std::min(domains, head + span) - head - 1) / stride;
        T* A_head = A.at(tree.domain(head).begin, 0);
        copy_upper(n, n, A_head, A.ld, E, n);
        for (Index s = members; s >= 1; --s) {
            const Index d = head + s * stride;
            T* A_member = A.at(tree.domain(d).begin, 0);
            copy_upper(n, n, A_member, A.ld, V, n);
            // [E; E_member] := H [E; 0]; all three are upper triangular
            fill_zero(n, n, E_member, n);
            apply_stacked(false, true, n, n, n, ib, V, n, t_at(Tf, tree.t_of_node(d)), Tf.ld, n, E, n, E_member, n,
                          work);
            store_upper(n, n, E_member, n, A_member, A.ld);
        }
        store_upper(n, n, E, n, A_head, A.ld);
    });
    ctx.state().add_flops(flops);
}

template <class T, class D>
void form_leaves(Context<D>& ctx, const PanelTree& tree, View<T, D> A, View<const T, D> Tf, View<T, D> C) {
    if (C.cols > 0) apply_leaves<T>(ctx, tree, Op::None, A, Tf, C);
    const Index n = tree.width, ib = tree.inner_block, domains = tree.domains();
    const Index leaf_size = std::min(tree.leaf_rows, tree.rows) * n;
    const double flops = 2.0 * tree.rows * n * n;
    Arena::Frame frame(ctx.state().arena);
    const Team threads = team(ctx, flops, tree.rows * n);
    ThreadBuffers<T> buffers(frame, threads, n * n + 2 * leaf_size + leaf_work(ib, n, n));
    for_tasks(threads, domains, [&](Index d) {
        T *E = buffers.mine(), *V = E + n * n, *Q = V + leaf_size, *work = Q + leaf_size;
        copy_upper(n, n, A.at(tree.domain(d).begin, 0), A.ld, E, n);
        for (Index t = tree.leaves(d) - 1; t >= 0 && !threads.stopped(); --t) {
            const auto A_leaf = A.row_block(tree.leaf(d, t));
            const Index h = A_leaf.rows;
            const T* Tl = t_at(Tf, tree.t_of_leaf(d, t));
            copy_block(h, n, A_leaf.data, A_leaf.ld, V, h);
            fill_zero(h, n, Q, h);
            if (t > 0) {
                apply_stacked(false, true, 0, h, n, ib, V, h, Tl, Tf.ld, n, E, n, Q, h, work);
            } else {
                copy_block(n, n, E, n, Q, h);
                apply_leaf(false, true, h, n, ib, V, h, Tl, Tf.ld, n, Q, h, work);
            }
            copy_block(h, n, Q, h, A_leaf.data, A_leaf.ld);
        }
    });
    ctx.state().add_flops(flops);
}

QUOIN_IMPLEMENT(Host, factor_leaves, reduce_leaves, factor_nodes, apply_leaves, apply_nodes, form_nodes, form_leaves)

}  // namespace quoin
