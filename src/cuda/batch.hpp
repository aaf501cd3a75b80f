#pragma once

// Small matrices of one shape in registers, one kernel for all (kernels/batch.cuh). Matrix i: V and R, column-major, at X + i·m·n.

#include "cuda/device.hpp"
#include "primitives/small_batch.hpp"

namespace quoin {

template <class T>
class SmallBatch<T, Cuda> {
public:
    static bool fits(Index m, Index n);
    SmallBatch(Context<Cuda>& ctx, Index m, Index n, Index count);

    /// Waits if `check_finite`.
    Index factor(Context<Cuda>& ctx, BatchView<const T, Cuda> A, Members members, bool check_finite);
    void unpack(Context<Cuda>& ctx, Factor factor, Members members, BatchView<T, Cuda> B) const;
    void unpack_tau(Context<Cuda>& ctx, Members members, BatchView<T, Cuda> tau) const;
    void form_q(Context<Cuda>& ctx, Members members, BatchView<T, Cuda> Q) const;
    void apply_q(Context<Cuda>& ctx, Op op, Members members, BatchView<const T, Cuda> from,
                 BatchView<T, Cuda> to) const;

private:
    Index m_, n_, k_, count_;
    Matrix<T, Cuda> X_, tau_;
};

/// work(ctx, i) for i < count, one after the other.
template <class Work>
void for_each_matrix(Context<Cuda>& ctx, Index count, double, const Work& work) {
    for (Index i = 0; i < count; ++i) {
        throw_if_stopped(ctx);
        work(ctx, i);
    }
}

}  // namespace quoin
