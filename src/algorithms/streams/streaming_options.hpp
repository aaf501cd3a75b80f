#pragma once

// The options of the factorizations in a stream.

#include "devices.hpp"
#include "quoin/options.hpp"

namespace quoin {

/// Returns the options of one step of a stream, on [R; block] with m rows: always reflectors, over trees unless m < n.
template <class D>
Options streaming_options(const Context<D>&, Index m, Index n, QForm q) {
    Options options;
    options.method = m < n ? Method::BlockedHouseholder : n <= Tuning<D>::max_tree_cols ? Method::TSQR : Method::CAQR;
    options.q = q;
    options.check_finite = false;
    return options;
}

}  // namespace quoin
