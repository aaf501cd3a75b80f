#include "cuda/batch_strips.hpp"

#include "cuda/launch.hpp"

namespace quoin::cuda::strips {

namespace {

/// Blocks of `warps` warps with r tiles of 8×width each, `blocks` of them on a multiprocessor.
template <class T, int width, int r, int warps, int blocks_>
struct StripKernel {
    using Kept = Strip<T, width, r, warps>;
    static constexpr int blocks = blocks_;
};

/// work(kernel) for the least kernel that holds m rows, if there is one.
template <class T, class Work>
void with_strips(Index m, Work work) {
    const auto first_of = [&](auto... kernels) {
        with_first([&](auto kernel) { return m <= decltype(kernel)::Kept::rows; }, work, kernels...);
    };
    // One matrix, some and many of n×n, H100, ms, in strips of 16 and of 32 columns:
    //       f32: 176²          256²           512²           f64: 176²       256²         512²
    //   1        0.081 / 0.109  0.120 / 0.167  0.317 / 0.463       0.119 / 0.199              0.39 / 0.71
    //   40       0.093 / 0.113                                     0.153 / 0.195
    //   1000     0.72 / 0.76    1.46 / 1.23    (640) 4.27 / 3.46   (1000)       2.27 / 3.21   (200) 2.97 / 3.08
    if constexpr (std::is_same_v<T, float>) {
        first_of(StripKernel<T, 32, 1, 8, 2>(), StripKernel<T, 16, 2, 8, 2>(), StripKernel<T, 16, 3, 8, 2>(),
                 StripKernel<T, 16, 4, 8, 2>(), StripKernel<T, 16, 6, 8, 2>(), StripKernel<T, 32, 8, 8, 2>(),
                 StripKernel<T, 16, 16, 8, 2>(), StripKernel<T, 16, 16, 16, 1>());
    } else {
        first_of(StripKernel<T, 32, 1, 8, 2>(), StripKernel<T, 16, 2, 8, 2>(), StripKernel<T, 16, 4, 8, 2>(),
                 StripKernel<T, 16, 8, 8, 1>(), StripKernel<T, 16, 8, 16, 1>());
    }
}

/// Blocks that are worth starting for so much work.
Index resident_blocks(Context<Cuda>& ctx, const void* kernel, int threads, std::size_t shared, Index work) {
    int blocks = 0;
    QUOIN_CUDA_CHECK(lift_limits(kernel));
    QUOIN_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared));
    return std::min<Index>(work, Index(blocks) * ctx.state().multiprocessors);
}

}  // namespace

template <class T>
int width_of(Index m) {
    int width = 0;
    with_strips<T>(m, [&](auto kernel) { width = decltype(kernel)::Kept::Width; });
    return width;
}

template <class T>
StripSize size_of(Index count, Index m, Index n) {
    const Index k = std::min(m, n), width = width_of<T>(m);
    const auto pieces = [](Index x, Index of) { return static_cast<int>(ceil_div(x, of)); };
    return {count,        static_cast<int>(m), static_cast<int>(n), static_cast<int>(k),
            pieces(m, 8), pieces(n, width),    pieces(k, width)};
}

template <class T>
void factor(Context<Cuda>& ctx, const StripSize& size, const BatchEntries<const T>& A, const StripFactors<T>& F,
            unsigned long long* first_bad) {
    if (size.count == 0) return;
    Arena::Frame frame(ctx);
    // the next ticket, then what is done of each matrix
    auto* const next_ticket = frame.take<unsigned long long>(1 + (size.count + 1) / 2);
    int* const done = reinterpret_cast<int*>(next_ticket + 1);
    QUOIN_CUDA_CHECK(cudaMemsetAsync(next_ticket, 0, sizeof(*next_ticket) + size.count * sizeof(*done), ctx.stream()));
    with_strips<T>(size.m, [&](auto shape) {
        using S = typename decltype(shape)::Kept;
        constexpr auto kernel = factor_strips<S, shape.blocks>;
        const std::size_t shared = sizeof(StripShared<S>);
        const Index blocks =
            resident_blocks(ctx, reinterpret_cast<const void*>(kernel), S::threads, shared, size.count * size.strips);
        QUOIN_CUDA_CHECK(launch(kernel, {static_cast<unsigned>(blocks), S::threads, shared}, ctx.stream(), size, blocks,
                                A, F, next_ticket, done, first_bad));
    });
}

template <class T>
void apply(Context<Cuda>& ctx, const StripSize& size, const StripFactors<T>& F, bool transpose, Index p,
           const BatchEntries<const T>& from, bool identity, const BatchEntries<T>& to) {
    if (size.count == 0 || p == 0) return;
    with_strips<T>(size.m, [&](auto shape) {
        using S = typename decltype(shape)::Kept;
        constexpr auto kernel = apply_strips<S, shape.blocks>;
        const std::size_t shared = sizeof(StripShared<S>);
        const Index blocks = std::min<Index>(size.count * ceil_div(p, Index(S::Width)), 1 << 30);
        QUOIN_CUDA_CHECK(launch(kernel, {static_cast<unsigned>(blocks), S::threads, shared}, ctx.stream(), size, F,
                                transpose, p, from, identity, to));
    });
}

namespace {

constexpr int unpack_warps = 8;

/// Rows of up to `rows` of the strips' images and R's diagonal blocks to matrices, a column a warp; zeros below R if `upper`.
template <class T, int width>
__global__ void __launch_bounds__(32 * unpack_warps)
    unpack_images(StripSize size, StripFactors<T> F, int rows, bool upper, BatchEntries<T> to) {
    const int lane = threadIdx.x % 32;
    for (Index x = Index(blockIdx.x) * unpack_warps + threadIdx.x / 32; x < size.count * size.n;
         x += Index(gridDim.x) * unpack_warps) {
        const Index b = x / size.n;
        const int j = static_cast<int>(x - b * size.n), strip = j / width, col = j % width;
        const T* const image = F.images + (b * size.strips + strip) * size.tiles * width * 8;
        const T* const square = F.squares + (b * size.panels + strip) * 2 * width * width + col;
        const int diagonal = strip < size.panels ? strip * width : rows;
        const auto B = to[b];
        for (int i = lane; i < rows; i += 32) {
            T y = 0;
            if (i >= diagonal && i <= j) {
                y = square[Index(i - diagonal) * width];
            } else if (i < diagonal && i <= j) {
                y = image[(Index(i / 8) * width + col) * 8 + i % 8];
            } else if (i > j && !upper) {
                y = ReflectorTile<T, width>::entry(image + Index(i / 8) * width * 8, i % 8, col);
            }
            B(i, j) = y;
        }
    }
}

}  // namespace

template <class T>
void unpack(Context<Cuda>& ctx, const StripSize& size, const StripFactors<T>& F, Factor factor,
            const BatchEntries<T>& to) {
    if (size.count == 0) return;
    const bool upper = factor == Factor::R;
    const Index blocks = std::min<Index>(ceil_div(size.count * size.n, Index(unpack_warps)), 1 << 20);
    const auto unpack_with = [&](auto kernel) {
        kernel<<<static_cast<unsigned>(blocks), 32 * unpack_warps, 0, ctx.stream()>>>(size, F, upper ? size.k : size.m,
                                                                                      upper, to);
    };
    width_of<T>(size.m) == 32 ? unpack_with(unpack_images<T, 32>) : unpack_with(unpack_images<T, 16>);
    check_launch("unpack_strips");
}

#define QUOIN_INSTANTIATE(T)                                                                                        \
    template int width_of<T>(Index);                                                                                \
    template StripSize size_of<T>(Index, Index, Index);                                                             \
    template void factor<T>(Context<Cuda>&, const StripSize&, const BatchEntries<const T>&, const StripFactors<T>&, \
                            unsigned long long*);                                                                   \
    template void apply<T>(Context<Cuda>&, const StripSize&, const StripFactors<T>&, bool, Index,                   \
                           const BatchEntries<const T>&, bool, const BatchEntries<T>&);                             \
    template void unpack<T>(Context<Cuda>&, const StripSize&, const StripFactors<T>&, Factor, const BatchEntries<T>&);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin::cuda::strips
