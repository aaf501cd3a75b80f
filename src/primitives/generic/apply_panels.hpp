#pragma once

// Panels one after the other, for a device without a fused version.

#include "primitives.hpp"

namespace quoin {

/// `apply_panels` by one `apply_panel` after the other.
template <class T, class D>
void apply_one_by_one(Context<D>& ctx, Op op, std::span<const PanelFactors<T, D>> panels, MatrixView<T, D> C,
                      Arithmetic arithmetic) {
    const std::size_t count = panels.size();
    for (std::size_t s = 0; s < count; ++s) {
        throw_if_stopped(ctx);
        // Hᵀ = … H₂ᵀ H₁ᵀ, H = H₁ H₂ …
        const auto& [V, Tf, first] = panels[op == Op::Transpose ? s : count - 1 - s];
        apply_panel<T>(ctx, op, V, Tf, C.row_block({first, C.rows}), arithmetic);
    }
}

}  // namespace quoin
