#pragma once

// Matrices of one shape, all in one launch, by the kernel that `choose_batch` chooses. Kernels that hold a whole matrix
// in registers leave V, R and tau in LAPACK's format, strips in their own.

#include <functional>
#include <optional>

#include "cuda/kernel_choice.hpp"
#include "cuda/runtime/device.hpp"
#include "primitives/small_batch.hpp"

namespace quoin {

namespace cuda {
template <class T>
struct BatchEntries;
struct BatchSize;
namespace strips {
struct StripSize;
template <class T>
struct StripFactors;
}  // namespace strips
}  // namespace cuda

template <class T>
class SmallBatch<T, Cuda> {
public:
    static bool fits(Index m, Index n, Arithmetic arithmetic) {
        return cuda::is_batch(m, n, scalar_kind<T>, arithmetic);
    }
    static bool pays_alone(Index m, Index n, Arithmetic arithmetic) {
        return cuda::is_batch_of_one(m, n, scalar_kind<T>, arithmetic);
    }
    static bool applies_alone(Index m, Index p) { return cuda::applies_batch_of_one(m, p); }
    SmallBatch(Context<Cuda>& ctx, Index m, Index n, Index count, Matrix<T, Cuda>* memory = nullptr,
               BatchOf of = BatchOf::Matrices);
    std::optional<LapackQR<T, Cuda>> take_lapack();

    /// If `check_finite`, waits until all of A is read.
    Index factor(Context<Cuda>& ctx, BatchView<const T, Cuda> A, Members members, bool check_finite);
    static Index factor_to(Context<Cuda>& ctx, Index m, Index n, BatchView<const T, Cuda> A, Members members,
                           bool check_finite, Factor kept, BatchView<T, Cuda> B, BatchView<T, Cuda> other,
                           BatchOf of = BatchOf::Matrices);
    void unpack(Context<Cuda>& ctx, Factor factor, Members members, BatchView<T, Cuda> B) const;
    void unpack_tau(Context<Cuda>& ctx, Members members, BatchView<T, Cuda> tau) const;
    void form_q(Context<Cuda>& ctx, Members members, BatchView<T, Cuda> Q) const;
    void form_q(Context<Cuda>& ctx, Members members, BatchView<const T, Cuda> E, BatchView<T, Cuda> Q) const;
    void apply_q(Context<Cuda>& ctx, Op op, Members members, BatchView<const T, Cuda> from,
                 BatchView<T, Cuda> to) const;
    static bool solves(Index, Index n) { return cuda::batch_solve_row(n) >= 0; }
    bool solve(Context<Cuda>& ctx, Op op, Members members, BatchView<const T, Cuda> B, double rcond, bool ask,
               BatchView<T, Cuda> X, BatchView<T, Cuda> norms, BatchView<T, Cuda> conditions) const;

private:
    cuda::BatchSize columns_size(Index count) const;
    cuda::strips::StripSize strips_size(Index count) const;
    /// Returns the factors of members `first`, `first` + 1, …
    cuda::strips::StripFactors<T> strips_from(Index first) const;
    void apply(Context<Cuda>& ctx, Index first, Index count, bool transpose, Index p,
               const cuda::BatchEntries<const T>& from, bool upper, const cuda::BatchEntries<T>& to) const;

    bool in_strips() const { return choice_.kernel == cuda::BatchKernel::Strips; }

    Index m_, n_, k_;
    cuda::BatchChoice choice_;
    Matrix<T, Cuda> factor_, squares_, tau_;
};

namespace cuda {
/// Whether `count` matrices of `flops` each would leave much of the device idle one after the other, and may run on
/// several streams.
bool side_by_side_pays(Context<Cuda>& ctx, Index count, double flops);
/// Calls work(lane, i) for i < count, several at a time, each lane from a thread of its own. Throws the exception of
/// the least i.
void for_each_side_by_side(Context<Cuda>& ctx, Index count, const std::function<void(Context<Cuda>&, Index)>& work);
}  // namespace cuda

/// work(ctx, i) for i < count: one after the other, or on several streams if no memory of work's context outlives it.
template <class Work>
void for_each_matrix(Context<Cuda>& ctx, Index count, double flops, Memory memory, const Work& work) {
    if (memory == Memory::Returned && cuda::side_by_side_pays(ctx, count, flops))
        return cuda::for_each_side_by_side(ctx, count, work);
    for (Index i = 0; i < count; ++i) {
        throw_if_stopped(ctx);
        work(ctx, i);
    }
}

}  // namespace quoin
