#pragma once

// The memory that the kernels of a factorization take beyond their operands, for plans.

#include "quoin/options.hpp"

namespace quoin {

/// Each function returns the bytes of the frame that a primitive takes for a shape, by the kernel that an asynchronous
/// device chooses. Frames of a few columns are left out.
template <class D>
struct KernelWorkspace {
    /// A panel of m×k and its T.
    static double panel(Index m, Index k, ScalarKind scalar);
    /// H of k reflectors of m rows on p columns.
    static double update(Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic);
    /// AᵀB of an m×k A and an m×p B.
    static double inner_product(Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic);
    /// S := QᵀW and W := W − Q S for an m×k Q and an m×p W.
    static double projection(Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic);
    /// AᵀA of an m×n A; XᵀX of X = A R⁻¹, where X is stored or not.
    static double gram(Index m, Index n, ScalarKind scalar);
    static double gram_of_solution(Index m, Index n, ScalarKind scalar, bool stored);
    /// A Cholesky factor with its condition; under a demand on an eigenvalue, too.
    static double cholesky(Index n, bool with_eigenvalue);
    /// S A of an m×n A.
    static double sketch(Index m, Index n);
};

}  // namespace quoin
