#pragma once

// Panels in LAPACK's format: one leaf of any height.

#include <memory>
#include <span>

#include "primitives/context.hpp"
#include "quoin/qr.hpp"

namespace quoin {

/// A (m×n, m >= n) = H R (geqrt with block size n): V below the diagonal, R on and above it, Tf n×n. 3mn² flops. If an
/// update of `columns_beside` columns by n reflectors runs at the same time, a GPU leaves multiprocessors to it; the
/// bits are the same.
template <class T, class D>
void factor_panel(Context<D>& ctx, View<T, D> A, View<T, D> Tf, Index columns_beside = 0);
/// C := op(H) C for H from `factor_panel` or `compact_wy` (gemqrt): W = VᵀC, W := op(T) W, C −= V W. 4mnp flops. With
/// Corrected arithmetic, which the host does not have, the columns of C must have norms up to 2.
template <class T, class D>
void apply_panel(Context<D>& ctx, Op op, View<const T, D> V, View<const T, D> Tf, View<T, D> C,
                 Arithmetic arithmetic = Arithmetic::Native);

/// A panel's V and T, and the first row of C that it applies to.
template <class T, class D>
struct PanelFactors {
    MatrixView<const T, D> V, Tf;
    Index first = 0;
};
/// C := op(H₁H₂…) C as by one `apply_panel` after the other. The host takes a tile of C's columns through all of them
/// while it is in cache.
template <class T, class D>
void apply_panels(Context<D>& ctx, Op op, std::span<const PanelFactors<T, D>> panels, View<T, D> C,
                  Arithmetic arithmetic = Arithmetic::Native);

/// Applies op(H) to several C as `apply_panel` does, and prepares their common operands once. It uses V, Tf and
/// workspace of the context while it lives.
template <class T, class D>
class PanelProduct {
public:
    /// For C of `cols` columns in all.
    PanelProduct(Context<D>& ctx, Op op, MatrixView<const T, D> V, MatrixView<const T, D> Tf, Index cols,
                 Arithmetic arithmetic);
    ~PanelProduct();
    void apply(MatrixView<T, D> C) const;

private:
    struct Shared;
    Context<D>& ctx_;
    const Op op_;
    const MatrixView<const T, D> V_, Tf_;
    const Arithmetic arithmetic_;
    std::unique_ptr<Shared> shared_;
};

/// S := V Tᵀ for V and T from `factor_panel`, m×n, zeros above its diagonal. mn² flops.
template <class T, class D>
void form_s(Context<D>& ctx, View<const T, D> V, View<const T, D> Tf, View<T, D> S);

/// The operands of a step of the recurrence for the full T (docs/algorithms.md, section 5), besides the trailing
/// matrix.
template <class T, class D>
struct FullTStep {
    MatrixView<const T, D> S;  ///< V Tᵀ of this panel, m×n, zeros above its diagonal: HᵀC = C − S (VᵀC)
    MatrixView<T, D> S1;       ///< of the panels before it, the same rows: S₁ := HᵀS₁ = S₁ + V T₁₂ᵀ
    MatrixView<T, D> T12;      ///< := −S₁ᵀV T, of the S₁ on entry
};
/// C := HᵀC by S, and S₁ and T₁₂. 4mn(p + p₁) flops for p columns of C and p₁ of S₁.
template <class T, class D>
void apply_and_extend(Context<D>& ctx, View<const T, D> V, View<const T, D> Tf, View<T, D> C, FullTStep<T, D> step);

/// One look-ahead step. With H = (V, Tf): C := HᵀC, and the first `next.cols` columns of C below its top V.cols rows
/// are factored into `next`'s Tf as soon as they are updated, while the rest of C is updated; on a GPU on the side
/// stream. Where the step's S has data, as `apply_and_extend`; else C := HᵀC in the arithmetic of `apply_panel`.
template <class T, class D>
void apply_and_factor_next(Context<D>& ctx, View<const T, D> V, View<const T, D> Tf, View<T, D> C, View<T, D> next_Tf,
                           FullTStep<T, D> step = {}, Arithmetic arithmetic = Arithmetic::Native);

/// A := H [I; 0], the panel's own columns of Q, in place of V. 2mn² flops.
template <class T, class D>
void form_panel(Context<D>& ctx, View<T, D> A, View<const T, D> Tf);

/// T of given reflectors: T⁻¹ + T⁻ᵀ = VᵀV (Puglisi 1992), column by column as larft; tau n×1. mn² flops.
template <class T, class D>
void compact_wy(Context<D>& ctx, View<const T, D> V, View<const T, D> tau, View<T, D> Tf);
/// Computes T from G = VᵀV, whose upper triangle is read. n³/3 flops.
template <class T, class D>
void compact_wy_from_gram(Context<D>& ctx, View<const T, D> G, View<const T, D> tau, View<T, D> Tf);

}  // namespace quoin
