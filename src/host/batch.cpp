// Batches of small matrices, one matrix in each lane of a vector register.

#include "host/batch.hpp"

#include <atomic>
#include <limits>

#include "host/kernels/kernels.hpp"
#include "host/parallel.hpp"

namespace quoin {

template <class T>
SmallBatch<T, Host>::SmallBatch(Context<Host>&, Index m, Index n, Index count, Matrix<T>*, BatchOf)
    : m_(m),
      n_(n),
      k_(std::min(m, n)),
      ld_(m <= host::tiny_rows ? m : m | 1),
      lanes_(host::kernels<T>().lanes),
      group_(elements(n) + k_ * lanes_),
      run_(m <= host::tiny_rows ? 32 : 1) {
    X_ = Matrix<T>(group_, (count + lanes_ - 1) / lanes_);
}

template <class T>
double SmallBatch<T, Host>::flops() const {
    const double m = static_cast<double>(m_), n = static_cast<double>(n_), k = static_cast<double>(k_);
    return 2 * m * n * k - (m + n) * k * k + 2 * k * k * k / 3 + 10 * m * n;
}

/// X := columns of the members of a group, zeros if they have fewer columns and in lanes without a member.
template <class T>
void SmallBatch<T, Host>::pack(Index rows, Range cols, BatchView<const T> A, Members members, Index group, T* X) const {
    const Index first = group * lanes_;
    if (even(A.uniform(), members, group)) {
        return host::kernels<T>().gather_lanes(rows, cols.size(), ld_, A.data(first) + cols.begin * A.col_stride(0),
                                               A.data(1) - A.data(0), A.row_stride(0), A.col_stride(0), X);
    }
    for (Index lane = 0; lane < lanes_; ++lane) {
        const bool empty = first + lane >= members.count;
        const Index b = empty ? 0 : members[first + lane], end = empty ? 0 : A.cols(b);
        for (Index j = cols.begin; j < cols.end; ++j) {
            T* const x = X + (j - cols.begin) * ld_ * lanes_ + lane;
            for (Index i = 0; i < rows; ++i)
                x[i * lanes_] = j < end ? A.data(b)[i * A.row_stride(b) + j * A.col_stride(b)] : T(0);
        }
    }
}

/// Columns of B := X, as far as B has them and at most `rows` rows, for the members of a group; zeros below the
/// diagonal if `upper`.
template <class T>
void SmallBatch<T, Host>::unpack_group(Index ld, Index rows, Range cols, bool upper, const T* X, Members members,
                                       Index group, BatchView<T> B) const {
    const Index first = group * lanes_;
    if (even(B.uniform(), members, group)) {
        return host::kernels<T>().scatter_lanes(rows, cols.size(), ld, upper ? cols.begin : rows, X,
                                                B.data(first) + cols.begin * B.col_stride(0), B.data(1) - B.data(0),
                                                B.row_stride(0), B.col_stride(0));
    }
    for (Index lane = 0; lane < std::min(lanes_, members.count - first); ++lane) {
        const Index b = members[first + lane];
        for (Index j = cols.begin; j < std::min(cols.end, B.cols(b)); ++j) {
            const T* const x = X + (j - cols.begin) * ld * lanes_ + lane;
            for (Index i = 0; i < std::min(rows, B.rows(b)); ++i)
                B.data(b)[i * B.row_stride(b) + j * B.col_stride(b)] = upper && i > j ? T(0) : x[i * lanes_];
        }
    }
}

template <class T>
template <class Tiny, class Work>
void SmallBatch<T, Host>::for_each_group(Context<Host>& ctx, Members members, double flops, bool in_registers,
                                         const Tiny& tiny, const Work& work) const {
    const double all = flops * static_cast<double>(members.count);
    const Index groups = (members.count + lanes_ - 1) / lanes_, whole = in_registers ? members.count / lanes_ : 0;
    const host::Team team = host::team(ctx, all);
    const int threads = team;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (Index first = 0; first < groups; first += run_) {
        if (team.stopped()) continue;
        const Index end = std::min(groups, first + run_);
        for (Index group = first; group < end; ++group) {
            if (group < whole) group += tiny(group, std::min(end, whole) - group);
            if (group < end) work(group);
        }
    }
    team.throw_if_stopped();
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
template <class Done>
unsigned SmallBatch<T, Host>::factor_group(BatchView<const T> A, Members members, Index group, T* X, int* e,
                                           const Done& done) const {
    unsigned refused = 0;
    for (Index first = 0; first < n_; first += host::lane_block) {
        const Range cols{first, std::min(n_, first + host::lane_block)};
        pack(m_, cols, A, members, group, X + elements(first));
        refused |= host::kernels<T>().factor_lanes(m_, cols.begin, cols.end, ld_, X, X + elements(n_), e);
        done(cols, refused);
    }
    return refused;
}

template <class T>
bool SmallBatch<T, Host>::tiny(Index rows, BatchView<const T> A, Members members, bool by_rows) const {
    if (n_ > m_ || m_ > host::tiny_rows || members.count < lanes_ || !A.uniform() || !members.list.empty())
        return false;
    const bool dense =
        by_rows ? A.row_stride(0) == n_ && A.col_stride(0) == 1 : A.row_stride(0) == 1 && A.col_stride(0) == rows;
    return dense && A.data(0) != A.data(1);
}

template <class T>
Index SmallBatch<T, Host>::factor(Context<Host>& ctx, BatchView<const T> A, Members members, bool check_finite) {
    Arena::Frame frame(ctx.state().arena);
    const host::ThreadBuffers<int> exponents(frame, ctx.threads(), host::lane_block * lanes_);
    FirstBad bad;
    const bool by_rows = tiny(m_, A, members, true);
    for_each_group(
        ctx, members, flops(), by_rows || tiny(m_, A, members),
        [&](Index group, Index count) {
            return host::kernels<T>().factor_tiny(m_, n_, count, A.data(group * lanes_), A.data(1) - A.data(0), by_rows,
                                                  false, &X_(0, group), 0, nullptr, 0);
        },
        [&](Index group) {
            bad.note(factor_group(A, members, group, &X_(0, group), exponents.mine(), [](Range, unsigned) {}), members,
                     group * lanes_);
        });
    return check_finite ? bad.found() : -1;
}

template <class T>
Index SmallBatch<T, Host>::factor_to(Context<Host>& ctx, Index m, Index n, BatchView<const T> A, Members members,
                                     bool check_finite, Factor kept, BatchView<T> B, BatchView<T> other, BatchOf) {
    const SmallBatch one(ctx, m, n, 0);
    const Index k = one.k_, lanes = one.lanes_;
    Arena::Frame frame(ctx.state().arena);
    const host::ThreadBuffers<int> exponents(frame, ctx.threads(), host::lane_block * lanes);
    const host::ThreadBuffers<T> buffers(frame, ctx.threads(), one.group_);
    FirstBad bad;
    const bool with_q = kept == Factor::R && other.count() > 0;
    const bool by_rows = one.tiny(m, A, members, true);
    const bool vr = kept == Factor::VR;
    const bool in_registers = (by_rows || one.tiny(m, A, members)) && one.tiny(vr ? m : k, B, members) &&
                              (vr ? one.tiny(k, other, members) : !with_q || one.tiny(m, other, members));
    one.for_each_group(
        ctx, members, (with_q ? 2 : 1) * one.flops(), in_registers,
        [&](Index group, Index count) {
            const Index first = group * lanes;
            const bool both = vr || with_q;
            return host::kernels<T>().factor_tiny(
                m, n, count, A.data(first), A.data(1) - A.data(0), by_rows, !vr, B.data(first), B.data(1) - B.data(0),
                both ? other.data(first) : nullptr, both ? other.data(1) - other.data(0) : 0);
        },
        [&](Index group) {
            T *const X = buffers.mine(), *const tau = X + one.elements(n);
            // if NaN or Inf is found, A, which may be B, stays as it is, so that its first bad entry can be named
            const auto keep = [&](Range cols, unsigned refused) {
                if (refused == 0 || !check_finite)
                    one.unpack_group(one.ld_, vr ? m : k, cols, !vr, X + one.elements(cols.begin), members, group, B);
            };
            bad.note(one.factor_group(A, members, group, X, exponents.mine(), keep), members, group * lanes);
            if (vr) one.unpack_group(k, k, {0, 1}, false, tau, members, group, other);
            if (!with_q) return;
            host::kernels<T>().form_lanes(m, k, one.ld_, X, tau);
            one.unpack_group(one.ld_, m, {0, k}, false, X, members, group, other);
        });
    return check_finite ? bad.found() : -1;
}

template <class T>
void SmallBatch<T, Host>::unpack(Context<Host>& ctx, Factor factor, Members members, BatchView<T> B) const {
    const bool upper = factor == Factor::R;
    const Index rows = upper ? k_ : m_;
    for_each_group(ctx, members, 10.0 * rows * n_, [&](Index group) {
        unpack_group(ld_, rows, {0, n_}, upper, &X_(0, group), members, group, B);
    });
}

template <class T>
void SmallBatch<T, Host>::unpack_tau(Context<Host>& ctx, Members members, BatchView<T> tau) const {
    for_each_group(ctx, members, 10.0 * k_, [&](Index group) {
        unpack_group(k_, k_, {0, 1}, false, this->tau(group), members, group, tau);
    });
}

template <class T>
void SmallBatch<T, Host>::form_q(Context<Host>& ctx, Members members, BatchView<T> Q) const {
    Arena::Frame frame(ctx.state().arena);
    const host::ThreadBuffers<T> buffers(frame, ctx.threads(), elements(k_));
    for_each_group(ctx, members, flops(), [&](Index group) {
        T* const q = buffers.mine();
        std::copy_n(&X_(0, group), elements(k_), q);
        host::kernels<T>().form_lanes(m_, k_, ld_, q, tau(group));
        unpack_group(ld_, m_, {0, k_}, false, q, members, group, Q);
    });
}

template <class T>
Index SmallBatch<T, Host>::max_columns(BatchView<const T> C, Members members) {
    Index p = 0;
    for (Index i = 0; i < (C.uniform() ? std::min<Index>(members.count, 1) : members.count); ++i)
        p = std::max(p, C.cols(members[i]));
    return p;
}

template <class T>
void SmallBatch<T, Host>::apply_q(Context<Host>& ctx, Op op, Members members, BatchView<const T> from,
                                  BatchView<T> to) const {
    const Index p = max_columns(from, members);
    Arena::Frame frame(ctx.state().arena);
    const host::ThreadBuffers<T> buffers(frame, ctx.threads(), elements(p));
    for_each_group(ctx, members, 4.0 * m_ * k_ * p, [&](Index group) {
        T* const c = buffers.mine();
        pack(m_, {0, p}, from, members, group, c);
        host::kernels<T>().apply_lanes(op == Op::Transpose, m_, k_, ld_, &X_(0, group), tau(group), p, c);
        unpack_group(ld_, m_, {0, p}, false, c, members, group, to);
    });
}

template <class T>
bool SmallBatch<T, Host>::solve(Context<Host>& ctx, Op op, Members members, BatchView<const T> B, double rcond, bool,
                                BatchView<T> X, BatchView<T> norms, BatchView<T> conditions) const {
    const bool shortest = op == Op::Transpose;
    const Index p = max_columns(B, members);
    Arena::Frame frame(ctx.state().arena);
    const host::ThreadBuffers<T> right(frame, ctx.threads(), elements(p)), work(frame, ctx.threads(), elements(n_ + 1)),
        numbers(frame, ctx.threads(), (p + 1) * lanes_);
    std::atomic<bool> some = false;
    for_each_group(ctx, members, 4.0 * m_ * n_ * p + n_ * n_ * n_, [&](Index group) {
        T *const c = right.mine(), *const residuals = numbers.mine(), *const condition = residuals + p * lanes_;
        pack(shortest ? n_ : m_, {0, p}, B, members, group, c);
        const unsigned refused = host::kernels<T>().solve_lanes(shortest, m_, n_, ld_, &X_(0, group), tau(group), p, c,
                                                                residuals, condition, rcond, work.mine());
        // lanes that have no matrix are refused too
        const Index here = std::min(lanes_, members.count - group * lanes_);
        if (refused & ((1u << here) - 1)) some = true;
        unpack_group(ld_, shortest ? m_ : n_, {0, p}, false, c, members, group, X);
        unpack_group(p, p, {0, 1}, false, residuals, members, group, norms);
        unpack_group(1, 1, {0, 1}, false, condition, members, group, conditions);
    });
    return some;
}

template class SmallBatch<float, Host>;
template class SmallBatch<double, Host>;

}  // namespace quoin
