#pragma once

// Blocked Householder QR in LAPACK's format.

#include "algorithms/one_matrix/reflector_forest.hpp"
#include "algorithms/shared/side_work.hpp"

namespace quoin {

/// Factors by blocked Householder in LAPACK's format, with look-ahead; tall panels by reconstruction if the plan says
/// so. If ST (m×k) has data, it receives S = V Tᵀ on and below its diagonal and the full T on and above it. The
/// diagonals agree if A is real. `rest` prepares the columns right of the first panel, on the context, while that panel
/// is factored.
template <class T, class D>
void factor_blocked_householder(Context<D>& ctx, const Plan& plan, ForestView<T, D> forest, MatrixView<T, D> ST = {},
                                OverlappedWork rest = OverlappedWork());

/// Factors A (m×n, m >= n) = H R, one panel of a plan of blocked Householder. `overlapped` runs on the way. Waits if
/// the panel is tall.
template <class T, class D>
void factor_one_panel(Context<D>& ctx, const Plan& plan, Index step, MatrixView<T, D> A, MatrixView<T, D> Tf,
                      OverlappedWork& overlapped);

}  // namespace quoin
