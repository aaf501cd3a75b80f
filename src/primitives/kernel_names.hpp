#pragma once

// The kernels that compute the primitives of a factorization, in words.

#include <string>

#include "primitives/small_batch.hpp"
#include "quoin/options.hpp"

namespace quoin {

/// Each function describes the kernel that a device chooses for a shape, and names its file. "": the device has none.
template <class D>
struct KernelNames {
    /// m×n matrices of a batch.
    static std::string batch(Index m, Index n, ScalarKind scalar, BatchOf of);
    /// A panel of m×k that is not reconstructed.
    static std::string panel(Index m, Index k, ScalarKind scalar);
    /// H of k reflectors of m rows on p columns.
    static std::string update(Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic);
    /// AᵀA and A R⁻¹ of an m×n A, and the Cholesky factor of AᵀA.
    static std::string gram(Index n, ScalarKind scalar);
    static std::string solve(Index m, Index n, ScalarKind scalar);
    static std::string cholesky(Index n);
    /// V and T from the n×n top of an orthonormal basis.
    static std::string reconstruction(Index n);
    /// Leaves of `rows` rows, and nodes of `fan_in` members, of a tree over panels of `width` columns. Of the host
    /// alone.
    static std::string leaf(Index rows, Index width);
    static std::string node(Index fan_in, Index width);
    /// S A of a sketch.
    static std::string sketch();
    /// Modified Gram-Schmidt of a few columns.
    static std::string orthonormalization();
    /// AᵀB of an m×k A and an m×p B, and C − A B of an m×k A and an m×p C.
    static std::string inner_product(Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic);
    static std::string subtracted_product(Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic);
};

}  // namespace quoin
