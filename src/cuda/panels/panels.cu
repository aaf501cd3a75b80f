// Panels in LAPACK's format. Strips factor them in one launch (strips.hpp). Panels with too many rows for that are
// reconstructed (algorithms/one_matrix/reconstruct_householder.hpp), or factored by cuSOLVER if a column is zero; their
// T is made of VᵀV. Updates are GEMMs with a copy of V that holds its unit triangle, so that V stays as it is.

#include <optional>

#include "cuda/elements/elementwise.cuh"
#include "cuda/kernel_choice.hpp"
#include "cuda/panels/diagonal_t.cuh"
#include "cuda/plain/householder.hpp"
#include "cuda/products/products_by_halves.hpp"
#include "cuda/runtime/blas.hpp"
#include "cuda/runtime/ceil_div.cuh"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/launch.hpp"
#include "cuda/strips/strips.hpp"
#include "cuda/tuning.hpp"
#include "primitives/generic/apply_panels.hpp"
#include "primitives/generic/panel_product.hpp"

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

/// op(A), as an operand of products or as their result.
template <class T>
struct Operand {
    MatrixView<T, Cuda> A;
    Op op = Op::None;

    Operand<const T> read() const { return {A, op}; }
    Operand adjoint() const { return {A, op == Op::None ? Op::Transpose : Op::None}; }
    Operand block(Range rows, Range cols) const {
        return {op == Op::None ? A.block(rows, cols) : A.block(cols, rows), op};
    }
    Operand row_block(Range rows) const { return {op == Op::None ? A.row_block(rows) : A.col_block(rows), op}; }
};

/// C := alpha A B + beta C.
template <class T>
void multiply(Context<Cuda>& ctx, T alpha, Operand<const T> A, Operand<const T> B, T beta, Operand<T> C) {
    if (C.op != Op::None) return multiply<T>(ctx, alpha, B.adjoint(), A.adjoint(), beta, C.adjoint());
    gemm<T>(ctx, A.op, B.op, alpha, A.A, B.A, beta, C.A);
}

/// Multiplies by a triangle A (k×k), upper or lower, that is stored with its ones and zeros. Goes by blocks of rows of
/// C, which takes half of the flops of a square A.
template <class T>
void multiply_by_blocks(Context<Cuda>& ctx, Index k, bool upper, T alpha, Operand<const T> A, Operand<const T> B,
                        T beta, Operand<T> C) {
    for (Index i = 0; i < k; i += triangle_block) {
        const Range rows{i, std::min(k, i + triangle_block)}, inner = upper ? Range{i, k} : Range{0, rows.end};
        multiply<T>(ctx, alpha, A.block(rows, inner), B.row_block(inner), beta, C.row_block(rows));
    }
}

/// C := op(H) C, the triangles of T and V by blocks.
template <class T>
void apply_by_blocks(Context<Cuda>& ctx, Op op, MatrixView<const T, Cuda> V, MatrixView<const T, Cuda> Tf,
                     MatrixView<T, Cuda> C) {
    using Tuned = Tuning<Cuda>;
    const Index m = V.rows, k = V.cols, p = C.cols;
    Arena::Frame frame(ctx);
    const auto L = frame.matrix<T>(k, k);
    copy_unit_lower<T>(ctx, V, L);
    const Operand<T> C1{C.row_block({0, k})}, C2{C.row_block({k, m})};
    const Operand<const T> V2{V.row_block({k, m})};
    const bool adjoint = Tuned::adjoint_pays(m, k, scalar_kind<T>);
    const auto make = [&] {
        return adjoint ? Operand<T>{frame.matrix<T>(p, k), Op::Transpose} : Operand<T>{frame.matrix<T>(k, p)};
    };
    const Operand<T> W = make(), TW = make();
    // W = VᵀC or Wᵀ = CᵀV;  TW = op(T) W;  C −= V TW
    multiply_by_blocks<T>(ctx, k, true, 1, {L, Op::Transpose}, C1.read(), 0, W);
    if (adjoint) {
        for (Index i = 0; i < m - k; i += Tuned::adjoint_run) {
            const Range run{i, std::min(m - k, i + Tuned::adjoint_run)};
            multiply<T>(ctx, 1, V2.row_block(run).adjoint(), C2.row_block(run).read(), 1, W);
        }
    } else if (m > k) {
        multiply_transposed<T>(ctx, V2.A, C2.A, W.A, true);
    }
    multiply_by_blocks<T>(ctx, k, op == Op::None, 1, {Tf, op}, W.read(), 0, TW);
    multiply_by_blocks<T>(ctx, k, false, -1, {L}, TW.read(), 1, C1);
    if (m > k) multiply<T>(ctx, -1, V2, TW.read(), 1, C2);
    ctx.state().add_flops((adjoint ? 4.0 * m : 2.0 * (m + k)) * k * p);
}

/// C := op(H) C, with the whole T, and a copy of V that has its unit triangle, or of that triangle alone.
template <class T>
void apply_by_gemm(Context<Cuda>& ctx, Op op, MatrixView<const T, Cuda> V, MatrixView<const T, Cuda> Tf,
                   MatrixView<T, Cuda> C, Arithmetic arithmetic = Arithmetic::Native) {
    using Tuned = Tuning<Cuda>;
    const Index m = V.rows, k = V.cols, p = C.cols;
    const bool all = m * k * Index(sizeof(T)) <= Tuned::max_copied_bytes;
    // the rest starts at a boundary of the memory
    const Index boundary = ceil_div(k, Tuned::boundary_rows) * Tuned::boundary_rows;
    const Range copied{0, all ? m : std::min(m, boundary)}, rest{copied.end, m};
    Arena::Frame frame(ctx);
    const auto L = frame.matrix<T>(copied.size(), k), W = frame.matrix<T>(k, p), TW = frame.matrix<T>(k, p);
    copy_unit_lower<T>(ctx, V, L);
    const auto C1 = C.row_block(copied), C2 = C.row_block(rest);
    // W = VᵀC;  W := op(T) W;  C −= V W
    multiply_transposed<T>(ctx, L, C1, W, false, arithmetic);
    if (rest.size() > 0) multiply_transposed<T>(ctx, V.row_block(rest), C2, W, true, arithmetic);
    gemm<T>(ctx, op, Op::None, 1, Tf, W, 0, TW);
    subtract_product<T>(ctx, L, TW, C1, arithmetic);
    if (rest.size() > 0) subtract_product<T>(ctx, V.row_block(rest), TW, C2, arithmetic);
}

/// C := HᵀC = C − S (VᵀC), with a copy of V that has its unit triangle; T₁₂ := −CᵀV T of the C on entry, where asked
/// for.
template <class T>
void apply_by_s(Context<Cuda>& ctx, MatrixView<const T, Cuda> unit_v, MatrixView<const T, Cuda> Tf,
                MatrixView<const T, Cuda> S, MatrixView<T, Cuda> C, MatrixView<T, Cuda> T12) {
    if (C.empty()) return;
    Arena::Frame frame(ctx);
    const auto W = frame.matrix<T>(unit_v.cols, C.cols);
    {
        const Span span(ctx, T12.data ? "T" : "update");
        multiply_transposed<T>(ctx, unit_v, C, W);
        if (T12.data) gemm<T>(ctx, Op::Transpose, Op::None, -1, W, Tf, 0, T12);
    }
    const Span span(ctx, T12.data ? "S" : "update");
    subtract_product<T>(ctx, S, W, C);
}

/// Completes T from VᵀV. Tf starts with the T of every `width` columns on its diagonal, and zeros elsewhere. T₁₂ = −T₁₁
/// (V₁ᵀV₂) T₂₂ doubles the width at each step.
template <class T>
void join_t(Context<Cuda>& ctx, Index width, MatrixView<const T, Cuda> G, MatrixView<T, Cuda> Tf) {
    const Index k = Tf.cols;
    Arena::Frame frame(ctx);
    const auto X = frame.matrix<T>(k, k);
    for (; width < k; width *= 2) {
        const Index whole = k / (2 * width), apart = 2 * width * (k + 1);
        const auto join = [&](Index first, Index right, Index count) {
            const auto at = [&](const auto& A, Index i, Index j) { return A.data + first + i + (first + j) * A.ld; };
            // X = (V₁ᵀV₂) T₂₂
            gemm_batched<T>(ctx, count, width, right, right, 1, at(G, 0, width), G.ld, 2 * width * (G.ld + 1),
                            at(Tf, width, width), Tf.ld, 2 * width * (Tf.ld + 1), at(X, 0, width), X.ld, apart);
            gemm_batched<T>(ctx, count, width, right, width, -1, at(Tf, 0, 0), Tf.ld, 2 * width * (Tf.ld + 1),
                            at(X, 0, width), X.ld, apart, at(Tf, 0, width), Tf.ld, 2 * width * (Tf.ld + 1));
        };
        if (whole > 0) join(0, width, whole);
        if (const Index first = whole * 2 * width; k - first > width) join(first, k - first - width, 1);
    }
}

/// G := VᵀV, V being its unit triangle and the rows below it.
template <class T>
void form_gram(Context<Cuda>& ctx, MatrixView<const T, Cuda> V, MatrixView<T, Cuda> G) {
    const Index k = V.cols;
    Arena::Frame frame(ctx);
    const auto L = frame.matrix<T>(k, k);
    copy_unit_lower<T>(ctx, V.row_block({0, k}), L);
    const auto rest = V.row_block({k, V.rows});
    const auto multiply_rest = [&] {
        if constexpr (std::is_same_v<T, float>) {
            if (k >= min_corrected_gram && ctx.state().kernels.tuned && ctx.state().kernels.warpgroups) {
                return multiply_corrected(ctx, corrected_operand(ctx, frame, Op::Transpose, false, rest, nullptr), rest,
                                          G);
            }
        }
        multiply_transposed<T>(ctx, rest, rest, G);
    };
    if (rest.rows > 0) multiply_rest();
    multiply_transposed<T>(ctx, L, L, G, rest.rows > 0);
}

/// A = H R as strips make it, in one launch, by at most `multiprocessors` of the device (0: all).
template <class T>
void factor_in_strips(Context<Cuda>& ctx, MatrixView<T, Cuda> A, MatrixView<T, Cuda> Tf, Index multiprocessors) {
    const auto size = strips::size_of<T>(strip_row(A.rows, scalar_kind<T>, ctx.state().kernels), 1, A.rows, A.cols);
    Arena::Frame frame(ctx);
    const strips::StripFactors<T> F{frame.take<T>(size.image_entries()), frame.take<T>(size.square_entries()),
                                    frame.take<T>(size.k)};
    strips::factor<T>(ctx, size, {A.data, 1, A.ld}, F, {}, multiprocessors);
    strips::unpack<T>(ctx, size, F, Factor::VR, {A.data, 1, A.ld});
    strips::unpack_t<T>(ctx, size, F, Tf);
    if (A.cols <= size.width) return;
    const auto G = frame.matrix<T>(A.cols, A.cols);
    form_gram<T>(ctx, A, G);
    join_t<T>(ctx, size.width, G, Tf);
}

/// Factors a panel by cuSOLVER.
template <class T>
void factor_by_library(Context<Cuda>& ctx, MatrixView<T, Cuda> A, MatrixView<T, Cuda> Tf) {
    Arena::Frame frame(ctx);
    const auto tau = frame.matrix<T>(A.cols, 1);
    plain::factor<T>(ctx, A, tau.data);
    compact_wy<T, Cuda>(ctx, A, tau, Tf);
}

}  // namespace

template <class T, class D>
void factor_panel(Context<D>& ctx, View<T, D> A, View<T, D> Tf, Index columns_beside) {
    if (A.empty()) return;
    const Tuning<Cuda>& tuning = ctx.state().tuning;
    switch (choose_panel(A.rows, scalar_kind<T>, tuning.kernels)) {
        case PanelKernel::Strips:
            factor_in_strips<T>(
                ctx, A, Tf, columns_beside > 0 ? tuning.beside_an_update(scalar_kind<T>, A.cols, columns_beside) : 0);
            break;
        case PanelKernel::Plain: factor_by_library<T>(ctx, A, Tf);
    }
    ctx.state().add_flops(2.0 * A.rows * A.cols * A.cols);  // the products that make T count themselves
}

template <class T, class D>
void apply_panel(Context<D>& ctx, Op op, View<const T, D> V, View<const T, D> Tf, View<T, D> C, Arithmetic arithmetic) {
    if (V.cols == 0 || C.cols == 0) return;
    switch (choose_update(V.rows, V.cols, C.cols, scalar_kind<T>, arithmetic, ctx.state().kernels)) {
        case UpdateKernel::Corrected:
            if constexpr (std::is_same_v<T, float>) {
                Arena::Frame frame(ctx);
                apply_corrected(ctx, corrected_reflectors(ctx, frame, op, V, Tf), C);
            }
            return;
        case UpdateKernel::Halves: return apply_by_gemm<T>(ctx, op, V, Tf, C, arithmetic);
        case UpdateKernel::Gemm: return apply_by_gemm<T>(ctx, op, V, Tf, C);
        case UpdateKernel::GemmByBlocks: return apply_by_blocks<T>(ctx, op, V, Tf, C);
    }
}

template <class T, class D>
void apply_panels(Context<D>& ctx, Op op, std::span<const PanelFactors<T, D>> panels, View<T, D> C,
                  Arithmetic arithmetic) {
    apply_one_by_one<T, D>(ctx, op, panels, C, arithmetic);
}

template <>
struct PanelProduct<float, Cuda>::Shared {
    Arena::Frame frame;
    CorrectedReflectors H;
};
template <>
PanelProduct<float, Cuda>::PanelProduct(Context<Cuda>& ctx, Op op, MatrixView<const float, Cuda> V,
                                        MatrixView<const float, Cuda> Tf, Index cols, Arithmetic arithmetic)
    : ctx_(ctx), op_(op), V_(V), Tf_(Tf), arithmetic_(arithmetic) {
    if (choose_update(V.rows, V.cols, cols, ScalarKind::F32, arithmetic, ctx.state().kernels) !=
        UpdateKernel::Corrected)
        return;
    shared_.reset(new Shared{Arena::Frame(ctx), {}});
    shared_->H = corrected_reflectors(ctx, shared_->frame, op, V, Tf);
}
template <>
PanelProduct<float, Cuda>::~PanelProduct() = default;
template <>
void PanelProduct<float, Cuda>::apply(MatrixView<float, Cuda> C) const {
    if (shared_) return apply_corrected(ctx_, shared_->H, C);
    apply_panel<float>(ctx_, op_, V_, Tf_, C, arithmetic_);
}
template class PanelProduct<double, Cuda>;

template <class T, class D>
void form_s(Context<D>& ctx, View<const T, D> V, View<const T, D> Tf, View<T, D> S) {
    const Index k = V.cols;
    if (V.empty()) return;
    if (k > Tuning<Cuda>::wy_block) {
        copy<T>(ctx, V, S);
        set_root<T>(ctx, S);
        return multiply_triangle<T>(ctx, Side::Right, Triangle::Upper, Op::Transpose, Tf, S);
    }
    Arena::Frame frame(ctx);
    const auto unit_v = frame.matrix<T>(V.rows, k), upper = frame.matrix<T>(k, k);
    copy_unit_lower<T>(ctx, V, unit_v);
    copy_triangle<T>(ctx, Tf, upper);
    gemm<T>(ctx, Op::None, Op::Transpose, 1, unit_v, upper, 0, S);
    ctx.state().add_flops(1.0 * V.rows * k * k);
}

template <class T, class D>
void apply_and_extend(Context<D>& ctx, View<const T, D> V, View<const T, D> Tf, View<T, D> C, FullTStep<T, D> step) {
    Arena::Frame frame(ctx);
    const auto unit_v = frame.matrix<T>(V.rows, V.cols);
    copy_unit_lower<T>(ctx, V, unit_v);
    apply_by_s<T>(ctx, unit_v, Tf, step.S, C, {});
    apply_by_s<T>(ctx, unit_v, Tf, step.S, step.S1, step.T12);
}

template <class T, class D>
void apply_and_factor_next(Context<D>& ctx, View<const T, D> V, View<const T, D> Tf, View<T, D> C, View<T, D> next_Tf,
                           FullTStep<T, D> step, Arithmetic arithmetic) {
    const Index k = V.cols, next = next_Tf.cols;
    std::optional<PanelProduct<T, Cuda>> H;
    if (!step.S.data) H.emplace(ctx, Op::Transpose, V, Tf, C.cols, arithmetic);
    const auto apply = [&](MatrixView<T, Cuda> columns, FullTStep<T, Cuda> also) {
        if (!H) return apply_and_extend<T>(ctx, V, Tf, columns, also);
        const Span span(ctx, "update");
        H->apply(columns);
    };
    apply(C.col_block({0, next}), {step.S, {}, {}});
    Context<Cuda>& side = side_stream(ctx);
    // the panel's clusters need neighbouring multiprocessors: they start before the update takes them all
    wait_for(ctx, side);
    {
        const Span span(side, "panel");
        factor_panel<T>(side, C.block({k, C.rows}, {0, next}), next_Tf, C.cols - next + step.S1.cols);
    }
    apply(C.col_block({next, C.cols}), step);
    wait_for(ctx, side);
}

template <class T, class D>
void form_panel(Context<D>& ctx, View<T, D> A, View<const T, D> Tf) {
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
    trmm<T>(ctx, Side::Right, Triangle::Upper, Op::None, -1, M, A_rest);
    ctx.state().add_flops(2.0 * m * k * k);
}

template <class T, class D>
void compact_wy(Context<D>& ctx, View<const T, D> V, View<const T, D> tau, View<T, D> Tf) {
    if (V.cols == 0) return;
    Arena::Frame frame(ctx);
    const auto G = frame.matrix<T>(V.cols, V.cols);
    form_gram<T>(ctx, V, G);
    compact_wy_from_gram<T>(ctx, G, tau, Tf);
}

template <class T, class D>
void compact_wy_from_gram(Context<D>& ctx, View<const T, D> G, View<const T, D> tau, View<T, D> Tf) {
    if (G.cols == 0) return;
    set_zero<T>(ctx, Tf);
    launch(ctx.stream(), diagonal_t_kernel<T>, {static_cast<unsigned>((G.cols + t_width - 1) / t_width), 32}, G, tau,
           Tf);
    join_t<T>(ctx, t_width, G, Tf);
}

QUOIN_IMPLEMENT(Cuda, factor_panel, apply_panel, apply_panels, form_s, apply_and_extend, apply_and_factor_next,
                form_panel, compact_wy, compact_wy_from_gram)

}  // namespace quoin
