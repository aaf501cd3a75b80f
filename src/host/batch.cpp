#include "host/batch.hpp"

#include <atomic>
#include <limits>

#include "host/parallel.hpp"

namespace quoin::host {

namespace {

/// The most lanes that there are.
constexpr Index most_lanes = 16;

/// X (cols columns) := the members of a group, zeros where they have fewer columns and in lanes that have none.
template <class T>
void pack(const LaneShape& shape, Index cols, BatchView<const T> A, Members members, Index group, T* X) {
    const Index W = shape.lanes, first = group * W;
    if (A.uniform() && first + W <= members.count) {
        const T* a[most_lanes];
        for (Index lane = 0; lane < W; ++lane) a[lane] = A.data(members[first + lane]);
        return kernels<T>().gather_lanes(shape.m, cols, shape.ld, a, A.row_stride(0), A.col_stride(0), X);
    }
    for (Index lane = 0; lane < W; ++lane) {
        const bool empty = first + lane >= members.count;
        const Index b = empty ? 0 : members[first + lane], end = empty ? 0 : std::min(cols, A.cols(b));
        for (Index j = 0; j < cols; ++j) {
            T* const x = X + j * shape.ld * W + lane;
            for (Index i = 0; i < shape.m; ++i) x[i * W] = j < end ? A.data(b)[i * A.row_stride(b) + j * A.col_stride(b)] : T(0);
        }
    }
}

/// B := the first `rows` rows and at most `cols` columns of the members of a group, zeros below the diagonal if `upper`.
template <class T>
void unpack(const LaneShape& shape, Index ld, Index rows, Index cols, bool upper, const T* X, Members members, Index group,
            BatchView<T> B) {
    const Index W = shape.lanes, first = group * W;
    if (B.uniform() && first + W <= members.count) {
        T* b[most_lanes];
        for (Index lane = 0; lane < W; ++lane) b[lane] = B.data(members[first + lane]);
        return kernels<T>().scatter_lanes(rows, cols, ld, upper, X, b, B.row_stride(0), B.col_stride(0));
    }
    for (Index lane = 0; lane < std::min(W, members.count - first); ++lane) {
        const Index b = members[first + lane];
        for (Index j = 0; j < std::min(cols, B.cols(b)); ++j) {
            const T* const x = X + j * ld * W + lane;
            for (Index i = 0; i < rows; ++i) B.data(b)[i * B.row_stride(b) + j * B.col_stride(b)] = upper && i > j ? T(0) : x[i * W];
        }
    }
}

double flops_of_qr(const LaneShape& shape) {
    const double m = static_cast<double>(shape.m), n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
    return 2 * m * n * k - (m + n) * k * k + 2 * k * k * k / 3 + 10 * m * n;
}

/// work(group) for every group until the context is asked to stop.
template <class Work>
void for_each_group(Context<Host>& ctx, const LaneShape& shape, Members members, double flops, const Work& work) {
    const Index groups = shape.groups(members.count);
    const double all = flops * static_cast<double>(members.count);
    const auto& stop = ctx.state().stop;
#pragma omp parallel for schedule(static) num_threads(team(ctx, all))
    for (Index group = 0; group < groups; ++group) {
        if (!stop.load(std::memory_order_relaxed)) work(group);
    }
    if (stop.load(std::memory_order_relaxed)) throw Interrupted();
    ctx.state().add_flops(all);
}

}  // namespace

template <class T>
Index factor_batch(Context<Host>& ctx, const LaneShape& shape, BatchView<const T> A, Members members, T* X, T* tau) {
    Arena::Frame frame(ctx.state().arena);
    const ThreadBuffers<int> exponents(frame, ctx.threads(), shape.n * shape.lanes);
    constexpr Index none = std::numeric_limits<Index>::max();
    std::atomic<Index> first_bad = none;
    for_each_group(ctx, shape, members, flops_of_qr(shape), [&](Index group) {
        T* const x = X + group * shape.elements();
        pack<T>(shape, shape.n, A, members, group, x);
        const unsigned bad =
            kernels<T>().factor_lanes(shape.m, shape.n, shape.ld, x, tau + group * shape.taus(), exponents.mine());
        if (bad == 0) return;
        const Index member = members[group * shape.lanes + __builtin_ctz(bad)];
        Index known = first_bad.load();
        while (member < known && !first_bad.compare_exchange_weak(known, member)) {
        }
    });
    return first_bad == none ? -1 : first_bad.load();
}

template <class T>
void unpack_batch(Context<Host>& ctx, const LaneShape& shape, const T* X, Factor factor, Members members, BatchView<T> B) {
    const Index rows = factor == Factor::R ? shape.k : shape.m;
    for_each_group(ctx, shape, members, 10.0 * rows * shape.n, [&](Index group) {
        unpack(shape, shape.ld, rows, shape.n, factor == Factor::R, X + group * shape.elements(), members, group, B);
    });
}

template <class T>
void unpack_tau(Context<Host>& ctx, const LaneShape& shape, const T* tau, Members members, BatchView<T> B) {
    for_each_group(ctx, shape, members, 10.0 * shape.k,
                   [&](Index group) { unpack(shape, shape.k, shape.k, 1, false, tau + group * shape.taus(), members, group, B); });
}

template <class T>
void form_q_batch(Context<Host>& ctx, const LaneShape& shape, const T* X, const T* tau, Members members, BatchView<T> Q) {
    Arena::Frame frame(ctx.state().arena);
    const ThreadBuffers<T> buffers(frame, ctx.threads(), shape.ld * shape.k * shape.lanes);
    for_each_group(ctx, shape, members, flops_of_qr(shape), [&](Index group) {
        T* const q = buffers.mine();
        std::copy_n(X + group * shape.elements(), shape.ld * shape.k * shape.lanes, q);
        kernels<T>().form_lanes(shape.m, shape.k, shape.ld, q, tau + group * shape.taus());
        unpack(shape, shape.ld, shape.m, shape.k, false, q, members, group, Q);
    });
}

template <class T>
void apply_q_batch(Context<Host>& ctx, const LaneShape& shape, const T* X, const T* tau, Op op, Members members, BatchView<T> C) {
    Index p = 0;
    for (Index i = 0; i < (C.uniform() ? 1 : members.count); ++i) p = std::max(p, C.cols(members[i]));
    Arena::Frame frame(ctx.state().arena);
    const ThreadBuffers<T> buffers(frame, ctx.threads(), shape.ld * p * shape.lanes);
    for_each_group(ctx, shape, members, 4.0 * shape.m * shape.k * p, [&](Index group) {
        T* const c = buffers.mine();
        pack<T>(shape, p, C, members, group, c);
        kernels<T>().apply_lanes(op == Op::Transpose, shape.m, shape.k, shape.ld, X + group * shape.elements(),
                                 tau + group * shape.taus(), p, c);
        unpack(shape, shape.ld, shape.m, p, false, c, members, group, C);
    });
}

#define QUOIN_INSTANTIATE(T)                                                                                               \
    template Index factor_batch<T>(Context<Host>&, const LaneShape&, BatchView<const T>, Members, T*, T*);                 \
    template void unpack_batch<T>(Context<Host>&, const LaneShape&, const T*, Factor, Members, BatchView<T>);              \
    template void unpack_tau<T>(Context<Host>&, const LaneShape&, const T*, Members, BatchView<T>);                        \
    template void form_q_batch<T>(Context<Host>&, const LaneShape&, const T*, const T*, Members, BatchView<T>);            \
    template void apply_q_batch<T>(Context<Host>&, const LaneShape&, const T*, const T*, Op, Members, BatchView<T>);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin::host
