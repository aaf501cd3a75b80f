#pragma once

#include "quoin/out_of_core.hpp"

/// Alternatives to Quoin's choices, for comparison in benchmarks and the papers' tables. Each is slower or less
/// accurate than Quoin's choice.
namespace quoin::study {

/// Classical Gram-Schmidt block by block, out of core. Zhang and Wu (2021) compare the recursion with it.
inline constexpr OutOfCoreMethod Blocking{2};

/// Bytes of a plan by Gram-Schmidt in blocks of `block` columns, as section 3.2 of Zhang and Wu counts them. Includes
/// the copies of Q to the host, which they omit for the recursion.
struct PaperBytes {
    double in = 0, out = 0;  ///< to the device and from it
};
/// Returns these bytes of `plan`.
PaperBytes paper_bytes(const OutOfCorePlan& plan, Index block);

/// Returns a plan of BlockedHouseholder for a matrix on a GPU. Its panels are factored on the host's cores, while the
/// GPU updates the trailing matrix (Benner, Köhler and Penke's Figure 1). Method CAQR has them factored by TSQR and
/// Householder reconstruction (Anderson, Ballard, Demmel and Keutzer 2011, section III.A). For a matrix on the host it
/// returns the plan of plan_qr by householder. Throws as plan_qr, and InvalidArgument for another method.
template <class T, class D>
Plan plan_with_panels_on_host(const Context<D>& ctx, Index m, Index n, Options options = {});

}  // namespace quoin::study
