#pragma once

// The kernels that compute the primitives of a factorization, in words.

#include <string>

#include "primitives/small_batch.hpp"
#include "primitives/tuning.hpp"
#include "quoin/options.hpp"

namespace quoin {

/// Each function describes the kernel that a device chooses for a shape, and names its file. "": the device has none.
template <class D>
struct KernelNames {
    const Tuning<D>& tuning;
    /// m×n matrices of a batch.
    std::string batch(Index m, Index n, ScalarKind scalar, BatchOf of) const;
    /// A panel of m×k that is not reconstructed.
    std::string panel(Index m, Index k, ScalarKind scalar) const;
    /// H of k reflectors of m rows on p columns.
    std::string update(Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic) const;
    /// AᵀA and A R⁻¹ of an m×n A, and the Cholesky factor of AᵀA.
    std::string gram(Index n, ScalarKind scalar) const;
    std::string solve(Index m, Index n, ScalarKind scalar) const;
    std::string cholesky(Index n) const;
    /// V and T from the n×n top of an orthonormal basis.
    std::string reconstruction(Index n) const;
    /// Leaves of `rows` rows, and nodes of `fan_in` members, of a tree over panels of `width` columns. Of the host
    /// alone.
    std::string leaf(Index rows, Index width) const;
    std::string node(Index fan_in, Index width) const;
    /// S A of a sketch.
    std::string sketch() const;
    /// Modified Gram-Schmidt of a few columns.
    std::string orthonormalization() const;
    /// AᵀB of an m×k A and an m×p B, and C − A B of an m×k A and an m×p C.
    std::string inner_product(Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic) const;
    std::string subtracted_product(Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic) const;
};

}  // namespace quoin
