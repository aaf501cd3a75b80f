#pragma once

#include "quoin/matrix.hpp"

namespace quoin {

/// Block sizes and crossovers for one device. Every row of a table cites its measurement.
template <class D>
struct Tuning;

/// Measured on 4 cores of an AMD EPYC 9005 (Zen 5, AVX-512, 1 MiB of L2 a core) with g++ 12.2; see bench/results.
template <>
struct Tuning<Host> {
    /// Columns of a Householder panel for k = min(m, n) columns: deeper updates against a longer sequential panel.
    static Index panel_width(Index k) { return k < 192 ? 32 : k < 1500 ? 64 : k < 6000 ? 96 : 128; }
    /// Columns of a T inside a leaf of n columns.
    static Index inner_block(Index n) { return n <= 16 ? n : n < 128 ? 16 : 32; }
    /// Bytes of a leaf: with its work space it has to fit into a core's L2 cache.
    static constexpr Index leaf_bytes = Index(384) << 10;
    static constexpr Index most_leaf_rows = 4096;
    /// Domains of a tree: enough for every core of a large host to find work, whatever the number of threads.
    static constexpr Index enough_domains = 64;
    /// Leaves of a domain: longer chains would save little of the tree above them, and errors add up along a chain.
    static constexpr Index most_domain_leaves = 16;
    /// One panel of all columns, by CholeskyQR2 or TSQR, pays where m >= tall_aspect·n and n <= tall_cols.
    static constexpr Index tall_aspect = 4;
    static constexpr Index tall_cols = 1024;
    /// A panel of w columns is reconstructed from an orthonormal basis where it has at least so many rows.
    static Index reconstruct_rows(Index width) { return 64 * width; }
};

}  // namespace quoin
