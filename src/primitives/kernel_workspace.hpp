#pragma once

// The memory that the kernels of a factorization take beyond their operands, for plans.

#include "primitives/tuning.hpp"
#include "quoin/options.hpp"

namespace quoin {

/// Each function returns the bytes of the frame that a primitive takes for a shape, by the kernel that an asynchronous
/// device chooses. Frames of a few columns are left out.
template <class D>
struct KernelWorkspace {
    const Tuning<D>& tuning;
    /// A panel of m×k and its T.
    double panel(Index m, Index k, ScalarKind scalar) const;
    /// H of k reflectors of m rows on p columns.
    double update(Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic) const;
    /// AᵀB of an m×k A and an m×p B.
    double inner_product(Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic) const;
    /// S := QᵀW and W := W − Q S for an m×k Q and an m×p W.
    double projection(Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic) const;
    /// AᵀA of an m×n A; XᵀX of X = A R⁻¹, where X is stored or not.
    double gram(Index m, Index n, ScalarKind scalar) const;
    double gram_of_solution(Index m, Index n, ScalarKind scalar, bool stored) const;
    /// A Cholesky factor with its condition; under a demand on an eigenvalue, too.
    double cholesky(Index n, bool with_eigenvalue) const;
    /// S A of an m×n A.
    double sketch(Index m, Index n) const;
};

}  // namespace quoin
