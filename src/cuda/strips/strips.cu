#include "cuda/strips/strips.hpp"

#include "cuda/elements/elementwise.cuh"
#include "cuda/kernel_choice.hpp"
#include "cuda/runtime/ceil_div.cuh"
#include "cuda/runtime/launch.hpp"
#include "cuda/strips/strips.cuh"

namespace quoin::cuda::strips {

namespace {

/// Strips, and the number of blocks that share a multiprocessor.
template <class S_, int blocks_>
struct Resident {
    using S = S_;
    static constexpr int blocks = blocks_;
};
template <class T, StripShape s>
using ResidentStrips = Resident<Strip<T, s.width, s.tiles, s.warps, s.cluster, s.panels>, s.blocks>;
/// Calls work(strips) for m×n matrices that have `pieces` pieces in all.
template <class T, class Work>
void with_strips(const Kernels& kernels, Index multiprocessors, Index m, Index pieces, Work work) {
    constexpr ScalarKind scalar = scalar_kind<T>;
    constexpr std::span table = strip_shapes(scalar);
    with_row<table.size()>(strip_row(m, scalar, kernels), [&](auto row) {
        constexpr StripShapes shapes = table[row];
        static_assert(shapes.few.width == shapes.many.width && shapes.few.rows() == shapes.many.rows() &&
                      shapes.few.tiles == shapes.many.tiles && shapes.lean.rows() == shapes.few.rows());
        const auto work_with = [&]<StripShape shape>() {
            using Strips = ResidentStrips<T, shape>;
            static_assert(shared_bytes_of<typename Strips::S>(false) <= strip_bytes(shape, scalar));
            work(Strips());
        };
        if constexpr (shapes.few != shapes.many) {
            if (fits(shapes.many, scalar, kernels) && takes_strips_for_many(shapes, multiprocessors, pieces))
                return work_with.template operator()<shapes.many>();
        }
        if constexpr (shapes.few != shapes.lean) {
            if (!fits(shapes.few, scalar, kernels)) return work_with.template operator()<shapes.lean>();
        }
        work_with.template operator()<shapes.few>();
    });
}

/// The clusters of a launch. Where the GPU has none, their blocks leave each other messages, and all of a cluster must
/// be on the device at once: there are at most `most` clusters then.
template <class S, class Kernel>
LaunchShape shape_of(Context<Cuda>& ctx, Kernel kernel, Index multiprocessors, Index clusters) {
    const bool has_clusters = ctx.state().kernels.clusters;
    LaunchShape shape{{}, S::threads, shared_bytes_of<S>(has_clusters)};
    if (S::cluster > 1) {
        if (has_clusters) {
            shape.cluster = S::cluster;
        } else {
            clusters =
                std::min(clusters, std::max<Index>(1, resident_blocks(kernel, shape) * multiprocessors / S::cluster));
        }
    }
    shape.grid = static_cast<unsigned>(clusters * S::cluster);
    return shape;
}
/// The boxes of their messages.
template <class S>
Message* boxes_of(Context<Cuda>& ctx, Arena::Frame& frame, const LaunchShape& shape) {
    if (S::cluster == 1 || shape.cluster > 0) return nullptr;
    return zeros<Message>(ctx, frame, Index(shape.grid.x) / S::cluster * boxed_messages<S>);
}

}  // namespace

template <class T>
StripSize size_of(int row, Index count, Index m, Index n) {
    const Index k = std::min(m, n);
    const int width = strip_shapes(scalar_kind<T>)[row].few.width;
    const auto pieces = [](Index x, Index of) { return static_cast<int>(ceil_div(x, of)); };
    return {count,        static_cast<int>(m), static_cast<int>(n), static_cast<int>(k),
            pieces(m, 8), pieces(n, width),    pieces(k, width),    width};
}

template <class T>
void factor(Context<Cuda>& ctx, const StripSize& size, const BatchEntries<const T>& A, const StripFactors<T>& F,
            const FiniteCheck& check, Index multiprocessors) {
    if (size.count == 0) return;
    Arena::Frame frame(ctx);
    // the next ticket, then the progress of each matrix
    auto* const next_ticket = frame.take<unsigned long long>(1 + (size.count + 1) / 2);
    int* const done = reinterpret_cast<int*>(next_ticket + 1);
    QUOIN_CUDA_CHECK(cudaMemsetAsync(next_ticket, 0, sizeof(*next_ticket) + size.count * sizeof(*done), ctx.stream()));
    if (multiprocessors == 0) multiprocessors = ctx.state().kernels.multiprocessors;
    with_strips<T>(ctx.state().kernels, multiprocessors, size.m, size.count * size.pieces, [&](auto strips) {
        using S = typename decltype(strips)::S;
        constexpr auto kernel = factor_strips_kernel<S, strips.blocks>;
        // more would wait for a ticket that is not there
        const Index clusters = std::min(size.count * ceil_div(Index(size.pieces), Index(S::panels)),
                                        std::max<Index>(1, strips.blocks * multiprocessors / S::cluster));
        const LaunchShape shape = shape_of<S>(ctx, kernel, multiprocessors, clusters);
        launch(ctx.stream(), kernel, shape, size, Index(shape.grid.x) / S::cluster, A, F, next_ticket, done,
               boxes_of<S>(ctx, frame, shape), check);
    });
}

template <class T>
void apply(Context<Cuda>& ctx, const StripSize& size, const StripFactors<T>& F, bool transpose, Index p,
           const BatchEntries<const T>& from, bool upper, const BatchEntries<T>& to) {
    if (size.count == 0 || p == 0) return;
    Arena::Frame frame(ctx);
    const Index processors = ctx.state().kernels.multiprocessors, pieces = size.count * ceil_div(p, Index(size.width));
    with_strips<T>(ctx.state().kernels, processors, size.m, pieces, [&](auto strips) {
        using S = typename decltype(strips)::S;
        constexpr auto kernel = apply_strips_kernel<S, strips.blocks>;
        const Index clusters = std::min<Index>(size.count * ceil_div(p, Index(S::columns)), (1 << 30) / S::cluster);
        const LaunchShape shape = shape_of<S>(ctx, kernel, processors, clusters);
        launch(ctx.stream(), kernel, shape, size, F, transpose, p, from, upper, to, boxes_of<S>(ctx, frame, shape));
    });
}

namespace {

constexpr int unpack_warps = 8;

/// Up to `rows` rows of V and R, or of R with zeros below if `upper`, from the strips' images and R's diagonal blocks
/// to matrices, and tau to where there is memory for it. A warp has 32/width tiles at a time, a lane a column of one.
template <class T, int width>
__global__ void __launch_bounds__(32 * unpack_warps)
    unpack_images_kernel(StripSize size, StripFactors<T> F, int rows, bool upper, BatchEntries<T> to,
                         BatchEntries<T> tau) {
    constexpr int at_once = 32 / width;
    const int lane = threadIdx.x % 32, col = lane % width;
    const Index groups = (rows + 8 * at_once - 1) / (8 * at_once);
    for (Index x = Index(blockIdx.x) * unpack_warps + threadIdx.x / 32; x < size.count * size.pieces * groups;
         x += Index(gridDim.x) * unpack_warps) {
        const Index of = x / groups, b = of / size.pieces;
        const int piece = static_cast<int>(of - b * size.pieces), j = piece * width + col,
                  t = static_cast<int>(x - of * groups) * at_once + lane / width;
        if (j >= size.n) continue;
        if ((tau.data || tau.list) && t == 0 && j < size.k) tau[b](j, 0) = F.tau[b * size.k + j];
        if (8 * t >= rows) continue;
        const int diagonal = piece < size.panels ? piece * width : rows;
        const T* const tile = F.images + (of * size.tiles + t) * width * 8;
        T y[8] = {};
        if (8 * t < diagonal) {
#pragma unroll
            for (int e = 0; e < 8; e += vector_size<T>) {
                const auto some = *reinterpret_cast<const Vector<T>*>(tile + 8 * col + e);
#pragma unroll
                for (int v = 0; v < vector_size<T>; ++v) y[e + v] = some.at[v];
            }
        } else if (!upper || 8 * t <= j) {
            ReflectorTile<T, width>::load_column(tile, col, y);
        }
        if (8 * t >= diagonal && 8 * t <= j) {
            const T* const square = F.squares + (b * size.panels + piece) * 2 * width * width + col;
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                const int i = 8 * t + e;
                y[e] = i <= j ? square[Index(i - diagonal) * width] : upper ? T(0) : y[e];
            }
        }
        const auto B = to[b];
        T* const p = &B(8 * t, j);
        if (B.row_stride == 1 && 8 * t + 8 <= rows && reinterpret_cast<std::uintptr_t>(p) % 16 == 0) {
#pragma unroll
            for (int e = 0; e < 8; e += vector_size<T>) {
                Vector<T> some;
#pragma unroll
                for (int v = 0; v < vector_size<T>; ++v) some.at[v] = y[e + v];
                *reinterpret_cast<Vector<T>*>(p + e) = some;
            }
        } else {
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                if (8 * t + e < rows) p[e * B.row_stride] = y[e];
            }
        }
    }
}

}  // namespace

template <class T>
void unpack(Context<Cuda>& ctx, const StripSize& size, const StripFactors<T>& F, Factor factor,
            const BatchEntries<T>& to, const BatchEntries<T>& tau) {
    if (size.count == 0) return;
    const bool upper = factor == Factor::R;
    const int rows = upper ? size.k : size.m;
    const Index warps = size.count * size.pieces * ceil_div(Index(rows), Index(256 / size.width));
    const Index blocks = std::min<Index>(ceil_div(warps, Index(unpack_warps)), 1 << 20);
    const auto unpack_with = [&](auto kernel) {
        launch(ctx.stream(), kernel, {static_cast<unsigned>(blocks), 32 * unpack_warps}, size, F, rows, upper, to, tau);
    };
    size.width == 32 ? unpack_with(unpack_images_kernel<T, 32>) : unpack_with(unpack_images_kernel<T, 16>);
}

template <class T>
void unpack_t(Context<Cuda>& ctx, const StripSize& size, const StripFactors<T>& F, MatrixView<T, Cuda> Tf) {
    const T* const squares = F.squares;
    const int width = size.width;
    for_each_element(ctx, Tf.rows, Tf.cols, [=] __device__(Index i, Index j) {
        const Index panel = j / width;
        const int row = static_cast<int>(i - panel * width), col = static_cast<int>(j - panel * width);
        const int at = width == 32 ? square_place<32>(row, col) : square_place<16>(row, col);
        Tf.data[i + j * Tf.ld] = row >= 0 && row <= col ? squares[(2 * panel + 1) * width * width + at] : T(0);
    });
}

#define QUOIN_INSTANTIATE(T)                                                                                          \
    template StripSize size_of<T>(int, Index, Index, Index);                                                          \
    template void factor<T>(Context<Cuda>&, const StripSize&, const BatchEntries<const T>&, const StripFactors<T>&,   \
                            const FiniteCheck&, Index);                                                               \
    template void apply<T>(Context<Cuda>&, const StripSize&, const StripFactors<T>&, bool, Index,                     \
                           const BatchEntries<const T>&, bool, const BatchEntries<T>&);                               \
    template void unpack<T>(Context<Cuda>&, const StripSize&, const StripFactors<T>&, Factor, const BatchEntries<T>&, \
                            const BatchEntries<T>&);                                                                  \
    template void unpack_t<T>(Context<Cuda>&, const StripSize&, const StripFactors<T>&, MatrixView<T, Cuda>);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin::cuda::strips
