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

/// X (rows×cols) := the members of a group, zeros where they have fewer columns and in lanes that have none.
template <class T>
void SmallBatch<T, Host>::pack(Index rows, Index cols, BatchView<const T> A, Members members, Index group, T* X) const {
    const Index first = group * lanes_;
    if (A.uniform() && first + lanes_ <= members.count) {
        const T* a[most_lanes];
        for (Index lane = 0; lane < lanes_; ++lane) a[lane] = A.data(members[first + lane]);
        return host::kernels<T>().gather_lanes(rows, cols, ld_, a, A.row_stride(0), A.col_stride(0), X);
    }
    for (Index lane = 0; lane < lanes_; ++lane) {
        const bool empty = first + lane >= members.count;
        const Index b = empty ? 0 : members[first + lane], end = empty ? 0 : std::min(cols, A.cols(b));
        for (Index j = 0; j < cols; ++j) {
            T* const x = X + j * ld_ * lanes_ + lane;
            for (Index i = 0; i < rows; ++i)
                x[i * lanes_] = j < end ? A.data(b)[i * A.row_stride(b) + j * A.col_stride(b)] : T(0);
        }
    }
}

/// B := at most the first `rows` rows and `cols` columns of the members of a group, zeros below the diagonal if `upper`.
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
            for (Index i = 0; i < std::min(rows, B.rows(b)); ++i)
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

namespace {

/// The first member with NaN or Inf, by its place in the batch.
class FirstBad {
public:
    /// `lanes` of a group, a bit each.
    void note(unsigned lanes, Members members, Index first) {
        if (lanes == 0) return;
        const Index member = members[first + __builtin_ctz(lanes)];
        Index known = first_.load();
        while (member < known && !first_.compare_exchange_weak(known, member)) {
        }
    }
    Index found() const { return first_ == none ? -1 : first_.load(); }

private:
    static constexpr Index none = std::numeric_limits<Index>::max();
    std::atomic<Index> first_ = none;
};

}  // namespace

template <class T>
Index SmallBatch<T, Host>::factor(Context<Host>& ctx, BatchView<const T> A, Members members, bool check_finite) {
    Arena::Frame frame(ctx.state().arena);
    const host::ThreadBuffers<int> exponents(frame, ctx.threads(), n_ * lanes_);
    FirstBad bad;
    for_each_group(ctx, members, flops(), [&](Index group) {
        T *const X = &X_(0, group), *const tau = tau_.data() + group * tau_.rows();
        pack(m_, n_, A, members, group, X);
        bad.note(host::kernels<T>().factor_lanes(m_, n_, ld_, X, tau, exponents.mine()), members, group * lanes_);
    });
    return check_finite ? bad.found() : -1;
}

template <class T>
Index SmallBatch<T, Host>::factor_to(Context<Host>& ctx, Index m, Index n, BatchView<const T> A, Members members,
                                     bool check_finite, BatchView<T> Q, BatchView<T> R) {
    const SmallBatch one(ctx, m, n, 0);
    const Index k = one.k_;
    Arena::Frame frame(ctx.state().arena);
    const host::ThreadBuffers<int> exponents(frame, ctx.threads(), n * one.lanes_);
    const host::ThreadBuffers<T> buffers(frame, ctx.threads(), one.elements(n)),
        taus(frame, ctx.threads(), k * one.lanes_);
    FirstBad bad;
    one.for_each_group(ctx, members, 2 * one.flops(), [&](Index group) {
        T *const X = buffers.mine(), *const tau = taus.mine();
        one.pack(m, n, A, members, group, X);
        bad.note(host::kernels<T>().factor_lanes(m, n, one.ld_, X, tau, exponents.mine()), members, group * one.lanes_);
        one.unpack_group(one.ld_, k, n, true, X, members, group, R);
        if (Q.count() == 0) return;
        host::kernels<T>().form_lanes(m, k, one.ld_, X, tau);
        one.unpack_group(one.ld_, m, k, false, X, members, group, Q);
    });
    return check_finite ? bad.found() : -1;
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
Index SmallBatch<T, Host>::most_columns(BatchView<const T> C, Members members) {
    Index p = 0;
    for (Index i = 0; i < (C.uniform() ? std::min<Index>(members.count, 1) : members.count); ++i)
        p = std::max(p, C.cols(members[i]));
    return p;
}

template <class T>
void SmallBatch<T, Host>::apply_q(Context<Host>& ctx, Op op, Members members, BatchView<const T> from,
                                  BatchView<T> to) const {
    const Index p = most_columns(from, members);
    Arena::Frame frame(ctx.state().arena);
    const host::ThreadBuffers<T> buffers(frame, ctx.threads(), elements(p));
    for_each_group(ctx, members, 4.0 * m_ * k_ * p, [&](Index group) {
        T* const c = buffers.mine();
        pack(m_, p, from, members, group, c);
        host::kernels<T>().apply_lanes(op == Op::Transpose, m_, k_, ld_, &X_(0, group), &tau_(0, group), p, c);
        unpack_group(ld_, m_, p, false, c, members, group, to);
    });
}

template <class T>
bool SmallBatch<T, Host>::solve(Context<Host>& ctx, Op op, Members members, BatchView<const T> B, double rcond, bool,
                                BatchView<T> X, BatchView<T> norms, BatchView<T> conditions) const {
    const bool shortest = op == Op::Transpose;
    const Index p = most_columns(B, members);
    Arena::Frame frame(ctx.state().arena);
    const host::ThreadBuffers<T> right(frame, ctx.threads(), elements(p)), work(frame, ctx.threads(), elements(n_ + 1)),
        numbers(frame, ctx.threads(), (p + 1) * lanes_);
    std::atomic<bool> some = false;
    for_each_group(ctx, members, 4.0 * m_ * n_ * p + n_ * n_ * n_, [&](Index group) {
        T *const c = right.mine(), *const residuals = numbers.mine(), *const condition = residuals + p * lanes_;
        pack(shortest ? n_ : m_, p, B, members, group, c);
        const unsigned refused = host::kernels<T>().solve_lanes(shortest, m_, n_, ld_, &X_(0, group), &tau_(0, group),
                                                                p, c, residuals, condition, rcond, work.mine());
        // lanes that have no matrix are refused too
        const Index here = std::min(lanes_, members.count - group * lanes_);
        if (refused & ((1u << here) - 1)) some = true;
        unpack_group(ld_, shortest ? m_ : n_, p, false, c, members, group, X);
        unpack_group(p, p, 1, false, residuals, members, group, norms);
        unpack_group(1, 1, 1, false, condition, members, group, conditions);
    });
    return some;
}

template class SmallBatch<float, Host>;
template class SmallBatch<double, Host>;

}  // namespace quoin
