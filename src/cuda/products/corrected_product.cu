// Products by an operand that is split once (products/corrected_product.cuh).

#include "cuda/products/corrected_product.hpp"

#include "cuda/arch/sm80_copy_async.cuh"
#include "cuda/kernel_choice.hpp"
#include "cuda/products/corrected_product.cuh"
#include "cuda/products/corrected_update.cuh"
#include "cuda/products/sum_parts.hpp"
#include "cuda/runtime/ceil_div.cuh"
#include "cuda/runtime/launch.hpp"

namespace quoin::cuda {

namespace {

using corrected::Image;

/// Tiles of K for each part of a product. A part takes the time of its tiles and `fill` more, times its waves of
/// blocks. Parts are written and read at 4 TB/s, or 3.6 MB in the time of a tile.
Index tiles_of_part(Context<Cuda>& ctx, const Image& X, Index p) {
    constexpr Index fill = 4, max_parts = 64;
    constexpr double tile_time_bytes = 3.6e6;
    const Index tiles = X.col_blocks(), blocks = X.row_blocks() * ceil_div(p, Index(corrected::p_block));
    Index best = tiles;
    double least = 0;
    for (Index parts = 1; parts <= std::min(max_parts, tiles); ++parts) {
        const Index each = ceil_div(tiles, parts), count = ceil_div(tiles, each);
        const double written = count > 1
                                   ? 2.0 * double(count) * double(X.n) * double(p) * sizeof(float) / tile_time_bytes
                                   : 0,
                     time =
                         double(ceil_div(blocks * count, Index(ctx.state().kernels.multiprocessors)) * (each + fill)) +
                         written;
        if (parts > 1 && time >= least) continue;
        best = each;
        least = time;
    }
    return best;
}

/// Tiles of the rows of a block of an update: the number of waves that `max_tiles` allows, all of them full. A block
/// first reads W, which takes the time of two tiles. Blocks of another stream wait for the end of a block.
Index tiles_of_block(Context<Cuda>& ctx, Index tiles, Index p) {
    constexpr Index max_tiles = 32;
    const Index processors = ctx.state().kernels.multiprocessors, cols = ceil_div(p, Index(corrected::p_block)),
                waves = ceil_div(ceil_div(tiles, max_tiles) * cols, processors);
    return ceil_div(tiles, std::max<Index>(1, waves * processors / cols));
}

Image image_of(const CorrectedOperand& X) { return {X.data, X.n, X.K}; }

LaunchShape shape_of(Index blocks, Index parts) {
    return {dim3(static_cast<unsigned>(blocks), 1, static_cast<unsigned>(parts)), dim3(corrected::threads),
            corrected::aligned_shared_bytes<corrected::Shared>};
}

}  // namespace

CorrectedOperand corrected_operand(Context<Cuda>& ctx, Arena::Frame& frame, Op op, bool unit_lower,
                                   MatrixView<const float, Cuda> A, const unsigned* largest) {
    const bool transpose = op != Op::None;
    Image X{nullptr, transpose ? A.cols : A.rows, transpose ? A.rows : A.cols};
    X.data = frame.take<__half>(X.elements());
    const Index threads = X.elements() / 16;
    const auto kernel =
        transpose
            ? (unit_lower ? corrected::make_image_kernel<true, true> : corrected::make_image_kernel<false, true>)
            : (unit_lower ? corrected::make_image_kernel<true, false> : corrected::make_image_kernel<false, false>);
    const auto blocks = static_cast<unsigned>(std::min<Index>(ceil_div(threads, Index(element_threads)), 1 << 20));
    launch(ctx.stream(), kernel, {blocks, element_threads}, A, largest, X);
    return {X.data, X.n, X.K, largest};
}

void multiply_corrected(Context<Cuda>& ctx, const CorrectedOperand& X, MatrixView<const float, Cuda> B,
                        MatrixView<float, Cuda> C) {
    const Image image = image_of(X);
    const Index each = tiles_of_part(ctx, image, B.cols), parts = ceil_div(image.col_blocks(), each);
    Arena::Frame frame(ctx);
    const MatrixView<float, Cuda> to =
        parts == 1 ? C : MatrixView<float, Cuda>{frame.take<float>(parts * C.rows * C.cols), C.rows, C.cols, C.rows};
    const auto kernel = aligned_16(B.data, B.ld) ? corrected::corrected_product_kernel<true>
                                                 : corrected::corrected_product_kernel<false>;
    const LaunchShape shape = shape_of(image.row_blocks() * ceil_div(B.cols, Index(corrected::p_block)), parts);
    launch(ctx.stream(), kernel, shape, image, X.largest, B, each, to);
    if (parts > 1) sum_parts<float, float>(ctx, parts, to.data, false, false, C);
}

bool has_corrected_update(const CorrectedOperand& V_transposed) {
    return V_transposed.n <= corrected::max_update_depth;
}

void subtract_corrected(Context<Cuda>& ctx, const CorrectedOperand& V_transposed, MatrixView<const float, Cuda> W,
                        const unsigned* largest, MatrixView<float, Cuda> C) {
    const Image image = image_of(V_transposed);
    const Index tiles = image.col_blocks(), each = tiles_of_block(ctx, tiles, C.cols);
    const LaunchShape shape = shape_of(ceil_div(tiles, each) * ceil_div(C.cols, Index(corrected::p_block)), 1);
    with_constant<1, 2>(static_cast<int>(image.row_blocks()), [&](auto row_blocks) {
        const auto kernel = aligned_16(C.data, C.ld) ? corrected::corrected_update_kernel<row_blocks, true>
                                                     : corrected::corrected_update_kernel<row_blocks, false>;
        launch(ctx.stream(), kernel, shape, image, W, largest, each, C);
    });
}

}  // namespace quoin::cuda
