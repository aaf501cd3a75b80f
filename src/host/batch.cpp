#include "host/batch.hpp"

#include <atomic>
#include <limits>

#include "host/kernels/kernels.hpp"
#include "host/parallel.hpp"

namespace quoin {

namespace {

/// The most lanes that there are.
constexpr Index most_lanes = 16;

}  // namespace

template <class T>
SmallBatch<T, Host>::SmallBatch(Context<Host>&, Index m, Index n, Index count)
    : m_(m), n_(n), k_(std::min(m, n)), ld_(m | 1), lanes_(host::kernels<T>().lanes) {
    const Index groups = (count + lanes_ - 1) / lanes_;
    X_ = Matrix<T>(elements(n), groups);
    tau_ = Matrix<T>(k_ * lanes_, groups);
}

template <class T>
double SmallBatch<T, Host>::flops() const {
    const double m = static_cast<double>(m_), n = static_cast<double>(n_), k = static_cast<double>(k_);
    return 2 * m * n * k - (m + n) * k * k + 2 * k * k * k / 3 + 10 * m * n;
}

/// X (cols columns) := the members of a group, zeros where they have fewer columns and in lanes that have none.
template <class T>
void SmallBatch<T, Host>::pack(Index cols, BatchView<const T> A, Members members, Index group, T* X) const {
    const Index first = group * lanes_;
    if (A.uniform() && first + lanes_ <= members.count) {
        const T* a[most_lanes];
        for (Index lane = 0; lane < lanes_; ++lane) a[lane] = A.data(members[first + lane]);
        return host::kernels<T>().gather_lanes(m_, cols, ld_, a, A.row_stride(0), A.col_stride(0), X);
    }
    for (Index lane = 0; lane < lanes_; ++lane) {
        const bool empty = first + lane >= members.count;
        const Index b = empty ? 0 : members[first + lane], end = empty ? 0 : std::min(cols, A.cols(b));
        for (Index j = 0; j < cols; ++j) {
            T* const x = X + j * ld_ * lanes_ + lane;
            for (Index i = 0; i < m_; ++i)
                x[i * lanes_] = j < end ? A.data(b)[i * A.row_stride(b) + j * A.col_stride(b)] : T(0);
        }
    }
}

/// B := the first `rows` rows and at most `cols` columns of the members of a group, zeros below the diagonal if `upper`.
template <class T>
void SmallBatch<T, Host>::unpack_group(Index ld, Index rows, Index cols, bool upper, const T* X, Members members,
                                       Index group, BatchView<T> B) const {
    const Index first = group * lanes_;
    if (B.uniform() && first + lanes_ <= members.count) {
        T* b[most_lanes];
        for (Index lane = 0; lane < lanes_; ++lane) b[lane] = B.data(members[first + lane]);
        return host::kernels<T>().scatter_lanes(rows, cols, ld, upper, X, b, B.row_stride(0), B.col_stride(0));
    }
    for (Index lane = 0; lane < std::min(lanes_, members.count - first); ++lane) {
        const Index b = members[first + lane];
        for (Index j = 0; j < std::min(cols, B.cols(b)); ++j) {
            const T* const x = X + j * ld * lanes_ + lane;
            for (Index i = 0; i < rows; ++i)
                B.data(b)[i * B.row_stride(b) + j * B.col_stride(b)] = upper && i > j ? T(0) : x[i * lanes_];
        }
    }
}

template <class T>
template <class Work>
void SmallBatch<T, Host>::for_each_group(Context<Host>& ctx, Members members, double flops, const Work& work) const {
    const double all = flops * static_cast<double>(members.count);
    const auto& stop = ctx.state().stop;
#pragma omp parallel for schedule(static) num_threads(host::team(ctx, all))
    for (Index group = 0; group < (members.count + lanes_ - 1) / lanes_; ++group) {
        if (!stop.load(std::memory_order_relaxed)) work(group);
    }
    if (stop.load(std::memory_order_relaxed)) throw Interrupted();
    ctx.state().add_flops(all);
}

template <class T>
Index SmallBatch<T, Host>::factor(Context<Host>& ctx, BatchView<const T> A, Members members, bool check_finite) {
    Arena::Frame frame(ctx.state().arena);
    const host::ThreadBuffers<int> exponents(frame, ctx.threads(), n_ * lanes_);
    constexpr Index none = std::numeric_limits<Index>::max();
    std::atomic<Index> first_bad = none;
    for_each_group(ctx, members, flops(), [&](Index group) {
        T *const X = &X_(0, group), *const tau = tau_.data() + group * tau_.rows();
        pack(n_, A, members, group, X);
        const unsigned bad = host::kernels<T>().factor_lanes(m_, n_, ld_, X, tau, exponents.mine());
        if (bad == 0) return;
        const Index member = members[group * lanes_ + __builtin_ctz(bad)];
        Index known = first_bad.load();
        while (member < known && !first_bad.compare_exchange_weak(known, member)) {
        }
    });
    return check_finite && first_bad != none ? first_bad.load() : -1;
}

template <class T>
void SmallBatch<T, Host>::unpack(Context<Host>& ctx, Factor factor, Members members, BatchView<T> B) const {
    const bool upper = factor == Factor::R;
    const Index rows = upper ? k_ : m_;
    for_each_group(ctx, members, 10.0 * rows * n_,
                   [&](Index group) { unpack_group(ld_, rows, n_, upper, &X_(0, group), members, group, B); });
}

template <class T>
void SmallBatch<T, Host>::unpack_tau(Context<Host>& ctx, Members members, BatchView<T> tau) const {
    for_each_group(ctx, members, 10.0 * k_,
                   [&](Index group) { unpack_group(k_, k_, 1, false, &tau_(0, group), members, group, tau); });
}

template <class T>
void SmallBatch<T, Host>::form_q(Context<Host>& ctx, Members members, BatchView<T> Q) const {
    Arena::Frame frame(ctx.state().arena);
    const host::ThreadBuffers<T> buffers(frame, ctx.threads(), elements(k_));
    for_each_group(ctx, members, flops(), [&](Index group) {
        T* const q = buffers.mine();
        std::copy_n(&X_(0, group), elements(k_), q);
        host::kernels<T>().form_lanes(m_, k_, ld_, q, &tau_(0, group));
        unpack_group(ld_, m_, k_, false, q, members, group, Q);
    });
}

template <class T>
void SmallBatch<T, Host>::apply_q(Context<Host>& ctx, Op op, Members members, BatchView<const T> from,
                                  BatchView<T> to) const {
    Index p = 0;
    for (Index i = 0; i < (from.uniform() ? std::min<Index>(members.count, 1) : members.count); ++i)
        p = std::max(p, from.cols(members[i]));
    Arena::Frame frame(ctx.state().arena);
    const host::ThreadBuffers<T> buffers(frame, ctx.threads(), elements(p));
    for_each_group(ctx, members, 4.0 * m_ * k_ * p, [&](Index group) {
        T* const c = buffers.mine();
        pack(p, from, members, group, c);
        host::kernels<T>().apply_lanes(op == Op::Transpose, m_, k_, ld_, &X_(0, group), &tau_(0, group), p, c);
        unpack_group(ld_, m_, p, false, c, members, group, to);
    });
}

template class SmallBatch<float, Host>;
template class SmallBatch<double, Host>;

}  // namespace quoin
