// Panels in LAPACK's format: blocks of 32 columns by kernels/factor_panel.cuh, everything else by GEMM. The unit triangle
// on top of V is unpacked into L (n×n), so that V stays as it is.

#include "cuda/blas.hpp"
#include "cuda/elementwise.cuh"
#include "cuda/inner_product.hpp"
#include "cuda/kernels/factor_panel.cuh"
#include "cuda/primitives.hpp"

namespace quoin {
namespace {

using namespace cuda;

/// L := the unit lower triangle on top of V, with its ones and zeros.
template <class T>
void copy_unit_lower(Context<Cuda>& ctx, MatrixView<const T, Cuda> V, MatrixView<T, Cuda> L) {
    for_each_element(ctx, L.rows, L.cols, [=] __device__(Index i, Index j) {
        L.data[i + j * L.ld] = i > j ? V.data[i + j * V.ld] : i == j ? T(1) : T(0);
    });
}

constexpr Index most_blocks = 16;

/// Blocks in the cluster: 512 rows a block, one row a thread, as long as there are blocks.
Index cluster_blocks(Index m) {
    Index blocks = 1;
    while (blocks < most_blocks && blocks * panel_threads < m) blocks *= 2;
    return blocks;
}

template <class T>
void factor_block(Context<Cuda>& ctx, MatrixView<T, Cuda> A, MatrixView<T, Cuda> Tf) {
    const Index blocks = cluster_blocks(A.rows);
    const Index h = std::max<Index>(panel_width, ((A.rows + blocks - 1) / blocks + 31) / 32 * 32);
    const std::size_t panel_bytes = static_cast<std::size_t>(h) * A.cols * sizeof(T), fixed_bytes = 16 << 10;
    const bool staged = panel_bytes + fixed_bytes <= ctx.state().shared_bytes;
    const PanelBlock<T> panel{A.rows, static_cast<int>(A.cols), A.data, A.ld, Tf.data, Tf.ld, h, staged};

    const auto kernel = factor_panel_block<T>;
    QUOIN_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          static_cast<int>(ctx.state().shared_bytes - fixed_bytes)));
    QUOIN_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = static_cast<unsigned>(blocks);
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(panel_threads);
    config.dynamicSmemBytes = staged ? panel_bytes : 0;
    config.stream = ctx.stream();
    config.attrs = &cluster;
    config.numAttrs = 1;
    QUOIN_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, panel));
}

/// C := op(H) C, with L the top of V.
template <class T>
void apply_reflector(Context<Cuda>& ctx, Op op, MatrixView<const T, Cuda> L, MatrixView<const T, Cuda> V,
                     MatrixView<const T, Cuda> Tf, MatrixView<T, Cuda> C) {
    const Index k = V.cols, m = V.rows, p = C.cols;
    const auto V_rest = V.row_block({k, m});
    const auto C_top = C.row_block({0, k}), C_rest = C.row_block({k, m});
    Arena::Frame frame(ctx);
    const auto W = frame.matrix<T>(k, p), TW = frame.matrix<T>(k, p);
    // W = LᵀC₁ + V₂ᵀC₂;  W := op(T) W
    gemm<T>(ctx, Op::Transpose, Op::None, 1, L, C_top, 0, W);
    multiply_accumulate<T>(ctx, V_rest, C_rest, W);
    gemm<T>(ctx, op, Op::None, 1, Tf, W, 0, TW);
    // C −= [L; V₂] W
    gemm<T>(ctx, Op::None, Op::None, -1, L, TW, 1, C_top);
    gemm<T>(ctx, Op::None, Op::None, -1, V_rest, TW, 1, C_rest);
}

/// T from G = VᵀV (Puglisi 1992): T⁻¹ has G above its diagonal and 1/τ on it. τ = 0 is a reflector that is I: row and
/// column of T are zero.
template <class T>
void t_from_products(Context<Cuda>& ctx, MatrixView<T, Cuda> G, MatrixView<const T, Cuda> tau, MatrixView<T, Cuda> Tf) {
    for_each_element(ctx, G.rows, G.cols, [=] __device__(Index i, Index j) {
        const T tau_i = tau.data[i], tau_j = tau.data[j];
        T& g = G.data[i + j * G.ld];
        if (i == j) g = tau_j == 0 ? T(1) : 1 / tau_j;
        if (i != j && (tau_i == 0 || tau_j == 0)) g = 0;
    });
    set_identity<T>(ctx, 0, Tf);
    trsm<T>(ctx, Side::Left, Triangle::Upper, Op::None, G, Tf);
    for_each_element(ctx, Tf.cols, 1, [=] __device__(Index j, Index) { Tf.data[j + j * Tf.ld] = tau.data[j]; });
}

template <class T>
void build_t(Context<Cuda>& ctx, MatrixView<const T, Cuda> V, MatrixView<const T, Cuda> tau, MatrixView<T, Cuda> Tf) {
    const Index k = V.cols;
    const auto V_rest = V.row_block({k, V.rows});
    Arena::Frame frame(ctx);
    const auto L = frame.matrix<T>(k, k), G = frame.matrix<T>(k, k);
    copy_unit_lower<T>(ctx, V, L);
    gemm<T>(ctx, Op::Transpose, Op::None, 1, L, L, 0, G);
    multiply_accumulate<T>(ctx, V_rest, V_rest, G);
    t_from_products<T>(ctx, G, tau, Tf);
}

}  // namespace

template <class T>
void factor_panel(Context<Cuda>& ctx, MatrixView<T, Cuda> A, MatrixView<T, Cuda> Tf) {
    const Index m = A.rows, n = A.cols;
    if (n == 0) return;
    for (Index c = 0; c < n; c += panel_width) {
        const Index end = std::min<Index>(n, c + panel_width);
        const auto V = A.block({c, m}, {c, end}), Tc = Tf.block({c, end}, {c, end});
        factor_block<T>(ctx, V, Tc);
        if (end == n) break;
        Arena::Frame frame(ctx);
        const auto L = frame.matrix<T>(end - c, end - c);
        copy_unit_lower<T>(ctx, V, L);
        apply_reflector<T>(ctx, Op::Transpose, L, V, Tc, A.block({c, m}, {end, n}));
    }
    if (n > panel_width) {
        Arena::Frame frame(ctx);
        const auto tau = frame.matrix<T>(n, 1);
        copy_diagonal<T>(ctx, Tf, tau);
        build_t<T>(ctx, A, tau, Tf);
    }
    ctx.state().add_flops(3.0 * m * n * n);
}

template <class T>
void apply_panel(Context<Cuda>& ctx, Op op, MatrixView<const T, Cuda> V, MatrixView<const T, Cuda> Tf,
                 MatrixView<T, Cuda> C) {
    const Index k = V.cols;
    if (k == 0 || C.cols == 0) return;
    Arena::Frame frame(ctx);
    const auto L = frame.matrix<T>(k, k);
    copy_unit_lower<T>(ctx, V, L);
    apply_reflector<T>(ctx, op, L, V, Tf, C);
    ctx.state().add_flops(4.0 * V.rows * k * C.cols);
}

template <class T>
void apply_and_factor_next(Context<Cuda>& ctx, MatrixView<const T, Cuda> V, MatrixView<const T, Cuda> Tf,
                           MatrixView<T, Cuda> C, MatrixView<T, Cuda> next_Tf) {
    const Index k = V.cols, next = next_Tf.cols;
    auto& side = ctx.state().side();
    apply_panel<T>(ctx, Op::Transpose, V, Tf, C.col_block({0, next}));
    ctx.state().order(ctx, side);
    factor_panel<T>(side, C.block({k, C.rows}, {0, next}), next_Tf);
    apply_panel<T>(ctx, Op::Transpose, V, Tf, C.col_block({next, C.cols}));
    ctx.state().order(side, ctx);
}

template <class T>
void form_panel(Context<Cuda>& ctx, MatrixView<T, Cuda> A, MatrixView<const T, Cuda> Tf) {
    const Index m = A.rows, k = A.cols;
    if (k == 0) return;
    const auto A_top = A.row_block({0, k}), A_rest = A.row_block({k, m});
    Arena::Frame frame(ctx);
    const auto L = frame.matrix<T>(k, k), M = frame.matrix<T>(k, k);
    copy_unit_lower<T>(ctx, A, L);
    // M = T Lᵀ, upper triangular;  [A₁; A₂] := [I; 0] − [L; V₂] M
    gemm<T>(ctx, Op::None, Op::Transpose, 1, Tf, L, 0, M);
    set_identity<T>(ctx, 0, A_top);
    gemm<T>(ctx, Op::None, Op::None, -1, L, M, 1, A_top);
    trmm_upper<T>(ctx, Side::Right, -1, M, A_rest);
    ctx.state().add_flops(2.0 * m * k * k);
}

template <class T>
void compact_wy(Context<Cuda>& ctx, MatrixView<const T, Cuda> V, MatrixView<const T, Cuda> tau,
                MatrixView<T, Cuda> Tf) {
    if (V.cols == 0) return;
    build_t<T>(ctx, V, tau, Tf);
    ctx.state().add_flops(1.0 * V.rows * V.cols * V.cols);
}

#define QUOIN_INSTANTIATE(T)                                                                                     \
    template void factor_panel<T>(Context<Cuda>&, MatrixView<T, Cuda>, MatrixView<T, Cuda>);                     \
    template void apply_panel<T>(Context<Cuda>&, Op, MatrixView<const T, Cuda>, MatrixView<const T, Cuda>,       \
                                 MatrixView<T, Cuda>);                                                           \
    template void apply_and_factor_next<T>(Context<Cuda>&, MatrixView<const T, Cuda>, MatrixView<const T, Cuda>, \
                                           MatrixView<T, Cuda>, MatrixView<T, Cuda>);                            \
    template void form_panel<T>(Context<Cuda>&, MatrixView<T, Cuda>, MatrixView<const T, Cuda>);                 \
    template void compact_wy<T>(Context<Cuda>&, MatrixView<const T, Cuda>, MatrixView<const T, Cuda>,            \
                                MatrixView<T, Cuda>);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
