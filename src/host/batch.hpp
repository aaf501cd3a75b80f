#pragma once

// Small matrices of one shape, several at once in the lanes of the vector registers (host/kernels/lanes.hpp). A group
// has one matrix a lane. Element (i, j) of all of them lies at X + (i + j·ld)·lanes.

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>

#include "host/parallel.hpp"
#include "primitives.hpp"
#include "primitives/small_batch.hpp"

namespace quoin {

template <class T>
class SmallBatch<T, Host> {
public:
    static constexpr bool pays_alone(Index, Index, Arithmetic) { return false; }
    static constexpr bool applies_alone(Index, Index) { return false; }
    static bool fits(Index m, Index n, Arithmetic) { return Tuning<Host>::in_lanes(m, n); }
    SmallBatch(Context<Host>& ctx, Index m, Index n, Index count, Matrix<T>* memory = nullptr,
               BatchOf of = BatchOf::Matrices);
    static std::optional<LapackQR<T, Host>> take_lapack() { return {}; }

    Index factor(Context<Host>& ctx, BatchView<const T> A, Members members, bool check_finite);
    static Index factor_to(Context<Host>& ctx, Index m, Index n, BatchView<const T> A, Members members,
                           bool check_finite, Factor kept, BatchView<T> B, BatchView<T> other,
                           BatchOf of = BatchOf::Matrices);
    void unpack(Context<Host>& ctx, Factor factor, Members members, BatchView<T> B) const;
    void unpack_tau(Context<Host>& ctx, Members members, BatchView<T> tau) const;
    void form_q(Context<Host>& ctx, Members members, BatchView<T> Q) const;
    void apply_q(Context<Host>& ctx, Op op, Members members, BatchView<const T> from, BatchView<T> to) const;
    static bool solves(Index m, Index n) { return Tuning<Host>::solved_in_lanes(m, n); }
    bool solve(Context<Host>& ctx, Op op, Members members, BatchView<const T> B, double rcond, bool ask, BatchView<T> X,
               BatchView<T> norms, BatchView<T> conditions) const;

private:
    /// Returns the elements of p columns of a group.
    Index elements(Index p) const { return ld_ * p * lanes_; }
    double flops() const;
    /// Writes V and R of a group to X, followed by tau. e: lane_block·lanes_ of workspace. After each block of columns
    /// calls done(cols, lanes). `lanes` has a bit for each lane with NaN or Inf so far. Returns these bits.
    template <class Done>
    unsigned factor_group(BatchView<const T> A, Members members, Index group, T* X, int* e, const Done& done) const;
    /// Whether `factor_tiny` reads or writes the whole groups of a batch of matrices of `rows` rows: by columns or, if
    /// `by_rows`, by rows.
    bool tiny(Index rows, BatchView<const T> A, Members members, bool by_rows = false) const;
    void pack(Index rows, Range cols, BatchView<const T> A, Members members, Index group, T* X) const;
    /// Returns the columns of the widest member.
    static Index max_columns(BatchView<const T> C, Members members);
    void unpack_group(Index ld, Index rows, Range cols, bool upper, const T* X, Members members, Index group,
                      BatchView<T> B) const;
    /// Whether the lanes of a group are matrices of one array at equal distances.
    bool even(bool uniform, Members members, Index group) const {
        return uniform && members.list.empty() && (group + 1) * lanes_ <= members.count;
    }
    /// Calls work(group) for every group until a stop is requested. If `in_registers`, first calls tiny(group,
    /// count) for whole groups, which returns how many of them it has done.
    template <class Tiny, class Work>
    void for_each_group(Context<Host>& ctx, Members members, double flops, bool in_registers, const Tiny& tiny,
                        const Work& work) const;
    template <class Work>
    void for_each_group(Context<Host>& ctx, Members members, double flops, const Work& work) const {
        for_each_group(
            ctx, members, flops, false, [](Index, Index) { return Index(0); }, work);
    }
    const T* tau(Index group) const { return &X_(0, group) + elements(n_); }

    Index m_, n_, k_;
    Index ld_;  ///< odd unless small, so that columns do not share few lines of a cache
    Index lanes_;
    Index group_;  ///< elements of X and tau
    Index run_;    ///< groups that one task works on, so that they hide each other's latencies
    Matrix<T> X_;  // a column for each group
};

/// Calls work(ctx, i) for i < count, each by one thread with a context of its own. If several calls throw, rethrows the
/// exception of the least i.
template <class Work>
void for_each_matrix(Context<Host>& ctx, Index count, double flops, Memory, const Work& work) {
    const int threads = count < 2 ? 1 : host::team(ctx, flops * static_cast<double>(count));
    if (threads == 1) {
        for (Index i = 0; i < count; ++i) {
            throw_if_stopped(ctx);
            work(ctx, i);
        }
        return;
    }
    std::mutex mutex;
    std::exception_ptr failure;
    Index failed = count;
#pragma omp parallel num_threads(threads)
    {
        Context<Host> mine(1);
        mine.state().part_of = &ctx.state();
#pragma omp for schedule(dynamic)
        for (Index i = 0; i < count; ++i) {
            try {
                throw_if_stopped(ctx);
                work(mine, i);
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (i < failed) {
                    failed = i;
                    failure = std::current_exception();
                }
            }
        }
    }
    if (failure) std::rethrow_exception(failure);
    ctx.state().add_flops(flops * static_cast<double>(count));
}

}  // namespace quoin
