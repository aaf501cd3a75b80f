#include "cuda/batch.hpp"

#include <algorithm>
#include <vector>

#include "cuda/elementwise.cuh"
#include "cuda/kernels/batch.cuh"

namespace quoin {

namespace {

using namespace cuda;

template <int rows_, int group_>
struct ColumnsKernel {
    static constexpr int rows = rows_, group = group_;
};
template <int r_, int c_, int warps_>
struct BlockKernel {
    static constexpr int r = r_, c = c_, warps = warps_;
};

/// work(kernel) for the first kernel that holds m×n matrices of T. False if none does.
template <class T, class Work>
bool with_kernel(Index m, Index n, Work work) {
    bool found = false;
    const auto columns = [&]<int rows, int group>(ColumnsKernel<rows, group> kernel) {
        if (found || m > rows || n > group) return;
        found = true;
        work(kernel);
    };
    const auto block = [&]<int r, int c, int warps>(BlockKernel<r, c, warps> kernel) {
        if (found || m > 32 * r || n > c * warps) return;
        found = true;
        work(kernel);
    };
    columns(ColumnsKernel<4, 4>());
    columns(ColumnsKernel<16, 8>());
    columns(ColumnsKernel<16, 16>());
    columns(ColumnsKernel<64, 8>());
    columns(ColumnsKernel<32, 32>());
    columns(ColumnsKernel<64, 32>());
    block(BlockKernel<2, 8, 8>());
    block(BlockKernel<4, 8, 8>());
    block(BlockKernel<8, 8, 8>());
    block(BlockKernel<16, 4, 8>());
    block(BlockKernel<4, 8, 16>());
    // in f64 it would not fit in the registers
    if constexpr (std::is_same_v<T, float>) block(BlockKernel<6, 12, 16>());
    return found;
}

template <int rows, int group>
dim3 grid_of(ColumnsKernel<rows, group>, Index count, Index) {
    constexpr Index each = column_threads / group;
    return static_cast<unsigned>((count + each - 1) / each);
}
template <int r, int c, int warps>
dim3 grid_of(BlockKernel<r, c, warps>, Index count, Index p) {
    constexpr Index width = c * warps;
    return {static_cast<unsigned>(std::min<Index>(count, 1 << 30)), static_cast<unsigned>((p + width - 1) / width)};
}

/// The members of a batch as kernels find them. A list goes to the device.
template <class T>
class Entries {
public:
    Entries(Context<Cuda>& ctx, BatchView<T, Cuda> batch, Members members) {
        if (members.count == 0) return;
        if (batch.uniform() && members.list.empty()) {
            entries_ = {batch.data(0), batch.row_stride(0), batch.col_stride(0),
                        members.count > 1 ? batch.data(1) - batch.data(0) : 0};
            return;
        }
        std::vector<MatrixView<T, Cuda>> views;
        for (Index i = 0; i < members.count; ++i) {
            const Index b = members[i];
            views.emplace_back(batch.data(b), batch.rows(b), batch.cols(b), batch.col_stride(b));
        }
        list_ = Matrix<MatrixView<T, Cuda>, Cuda>(ctx, members.count, 1);
        // from pageable memory: read before the call returns
        QUOIN_CUDA_CHECK(cudaMemcpyAsync(list_.data(), views.data(), views.size() * sizeof(views[0]),
                                         cudaMemcpyHostToDevice, ctx.stream()));
        entries_.list = list_.data();
    }
    operator const BatchEntries<T>&() const { return entries_; }

private:
    BatchEntries<T> entries_;
    Matrix<MatrixView<T, Cuda>, Cuda> list_;
};

/// The widths of the members' matrices, in order, one number if they are all alike: runs of equal width are one launch.
template <class T, class Work>
void for_each_width(BatchView<T, Cuda> C, Members members, Work work) {
    if (members.count == 0) return;
    Index first = 0;
    std::vector<Index> list(members.count);
    for (Index i = 0; i < members.count; ++i) list[i] = members[i];
    for (Index i = 1; i <= members.count; ++i) {
        if (i < members.count && (C.uniform() || C.cols(members[i]) == C.cols(members[first]))) continue;
        const bool all = first == 0 && i == members.count;
        work(first, all ? members : Members{std::span<const Index>(list).subspan(first, i - first), i - first},
             C.cols(members[first]));
        first = i;
    }
}

template <class T>
void apply(Context<Cuda>& ctx, const BatchSize& size, const T* X, const T* tau, bool transpose, Index p,
           const BatchEntries<const T>& from, bool identity, const BatchEntries<T>& to) {
    if (size.count == 0 || p == 0) return;
    with_kernel<T>(size.m, size.n, [&]<class Kernel>(Kernel kernel) {
        const dim3 grid = grid_of(kernel, size.count, p);
        if constexpr (requires { Kernel::group; }) {
            apply_columns<T, Kernel::rows, Kernel::group><<<grid, column_threads, 0, ctx.stream()>>>(
                size, X, tau, transpose, static_cast<int>(p), from, identity, to);
        } else {
            apply_block<T, Kernel::r, Kernel::c, Kernel::warps><<<grid, 32 * Kernel::warps, 0, ctx.stream()>>>(
                size, X, tau, transpose, static_cast<int>(p), from, identity, to);
        }
    });
    check_launch("apply_batch");
}

}  // namespace

template <class T>
bool SmallBatch<T, Cuda>::fits(Index m, Index n) {
    return m > 0 && n > 0 && with_kernel<T>(m, n, [](auto) {});
}

template <class T>
SmallBatch<T, Cuda>::SmallBatch(Context<Cuda>& ctx, Index m, Index n, Index count)
    : m_(m), n_(n), k_(std::min(m, n)), count_(count), X_(ctx, m, n * count), tau_(ctx, k_, count) {}

template <class T>
Index SmallBatch<T, Cuda>::factor(Context<Cuda>& ctx, BatchView<const T, Cuda> A, Members members, bool check_finite) {
    Arena::Frame frame(ctx);
    auto* const first_bad = frame.take<unsigned long long>(1);
    QUOIN_CUDA_CHECK(cudaMemsetAsync(first_bad, 0xff, sizeof(*first_bad), ctx.stream()));
    const Entries<const T> entries(ctx, A, members);
    const BatchSize size{members.count, static_cast<int>(m_), static_cast<int>(n_), static_cast<int>(k_)};
    with_kernel<T>(m_, n_, [&]<class Kernel>(Kernel kernel) {
        const dim3 grid = grid_of(kernel, size.count, 1);
        if constexpr (requires { Kernel::group; }) {
            factor_columns<T, Kernel::rows, Kernel::group>
                <<<grid, column_threads, 0, ctx.stream()>>>(size, entries, X_.data(), tau_.data(), first_bad);
        } else {
            factor_block<T, Kernel::r, Kernel::c, Kernel::warps>
                <<<grid, 32 * Kernel::warps, 0, ctx.stream()>>>(size, entries, X_.data(), tau_.data(), first_bad);
        }
    });
    check_launch("factor_batch");
    ctx.state().add_flops(2.0 * m_ * n_ * k_ * members.count);
    if (!check_finite) return -1;
    const unsigned long long bad = *ctx.state().read_back(first_bad, 1);
    return bad == none_bad ? -1 : members[static_cast<Index>(bad)];
}

template <class T>
void SmallBatch<T, Cuda>::unpack(Context<Cuda>& ctx, Factor factor, Members members, BatchView<T, Cuda> B) const {
    const Entries<T> entries(ctx, B, members);
    const BatchEntries<T>& to = entries;
    const bool upper = factor == Factor::R;
    const Index m = m_, rows = upper ? k_ : m_;
    const T* const X = X_.data();
    for_each_element(ctx, rows * n_, members.count, [=, n = n_] __device__(Index at, Index b) {
        const Index i = at % rows, j = at / rows;
        to[b](i, j) = upper && i > j ? T(0) : X[b * m * n + i + j * m];
    });
}

template <class T>
void SmallBatch<T, Cuda>::unpack_tau(Context<Cuda>& ctx, Members members, BatchView<T, Cuda> tau) const {
    const Entries<T> entries(ctx, tau, members);
    const BatchEntries<T>& to = entries;
    const T* const from = tau_.data();
    for_each_element(ctx, k_, members.count,
                     [=, k = k_] __device__(Index i, Index b) { to[b](i, 0) = from[i + b * k]; });
}

template <class T>
void SmallBatch<T, Cuda>::form_q(Context<Cuda>& ctx, Members members, BatchView<T, Cuda> Q) const {
    const Entries<T> to(ctx, Q, members);
    const BatchSize size{members.count, static_cast<int>(m_), static_cast<int>(n_), static_cast<int>(k_)};
    apply<T>(ctx, size, X_.data(), tau_.data(), false, k_, {}, true, to);
}

template <class T>
void SmallBatch<T, Cuda>::apply_q(Context<Cuda>& ctx, Op op, Members members, BatchView<const T, Cuda> from,
                                  BatchView<T, Cuda> to) const {
    for_each_width(to, members, [&](Index first, Members some, Index p) {
        const Entries<const T> source(ctx, from, some);
        const Entries<T> target(ctx, to, some);
        const BatchSize size{some.count, static_cast<int>(m_), static_cast<int>(n_), static_cast<int>(k_)};
        apply<T>(ctx, size, X_.data() + first * m_ * n_, tau_.data() + first * k_, op == Op::Transpose, p, source,
                 false, target);
    });
}

template class SmallBatch<float, Cuda>;
template class SmallBatch<double, Cuda>;

}  // namespace quoin
