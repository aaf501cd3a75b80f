#pragma once

#include "quoin/out_of_core.hpp"

/// What benchmarks and the papers' tables compare Quoin's choices with. Each is slower or less accurate than these.
namespace quoin::study {

/// Operands cut to the 11 bits of TF32, sums in f32.
inline constexpr Arithmetic TF32{2};
/// Operands rounded to bf16, u = 2⁻⁸, sums in f32.
inline constexpr Arithmetic BF16{4};

/// Out of core, classical Gram-Schmidt block by block: what Zhang and Wu (2021) compare the recursion with.
inline constexpr OutOfCoreMethod Blocking{2};

/// What section 3.2 of Zhang and Wu counts for a plan by Gram-Schmidt in blocks of `block` columns, in bytes, with the copies of Q
/// to the host, which they omit for the recursion.
struct PaperBytes {
    double in = 0, out = 0;  ///< to the device and from it
};
PaperBytes paper_bytes(const OutOfCorePlan& plan, Index block);

/// A plan of BlockedHouseholder for a matrix on a GPU whose panels are factored on the host's cores, while the GPU updates the
/// trailing matrix (Benner, Köhler and Penke's Figure 1). On the host it is plan_qr's. Throws as plan_qr, and InvalidArgument for
/// another method.
template <class T, class D>
Plan plan_with_panels_on_host(const Context<D>& ctx, Index m, Index n, Options options = {});

}  // namespace quoin::study
