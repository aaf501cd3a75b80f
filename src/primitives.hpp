#pragma once

// The contract between algorithms and devices. Algorithms call primitives unqualified and contain no loop over rows, no
// pragma and no launch. A primitive acts on a whole tree level or a whole matrix. It neither allocates nor throws for
// numerical reasons, and its result does not depend on how many threads share the work: blocks and the order of every
// sum are fixed by its arguments. On a GPU it enqueues its work on the context's stream, and waits only where its
// comment says so.
//
// A primitive is a template over the scalar T and the device D, declared once, here. D comes from the context alone, T
// from the caller, and parameters are a `View`, so that a view of T can be passed for a view of const T. A device
// defines the template in a translation unit of its own (host/*.cpp, cuda/*.cu) and instantiates it there for itself
// (QUOIN_IMPLEMENT); without T it specialises it. No other translation unit sees the definition. Where that one calls
// the same primitive of another device, it declares that instance `extern template`. Every primitive is there on every
// device: one that has no fast version instantiates the generic one, written with other primitives (generic/).
//
// These are steps of one algorithm, called from one file of algorithms/; all others serve several:
//
//     tsqr_caqr.cpp                 factor_leaves, reduce_leaves
//     reflector_forest.cpp          apply_leaves, form_leaves, form_panel
//     blocked_householder.cpp       apply_and_extend, apply_and_factor_next
//     cholesky_qr.cpp               gram_precision, pivot_gram, sketch
//     distributed_qr.cpp            pack_triangle, unpack_triangle, pack_certificate, unpack_certificate
//     gram_schmidt.cpp              orthonormalize_columns, inspect_remainders
//     out_of_core/gram_schmidt.hpp  round_columns, block_gram_schmidt_step_rounded
//     column_scaling.hpp            norm_exponents
//     full_rank.cpp                 inspect_triangle
//     mixed_precision.cpp           multiply_columns
//     qr.cpp                        max_pivoted_gram
//     pivoted_qr.cpp                factor_pivoted, pivot_sketch
//     update.cpp                    multiply_windows
//     streaming_qr.cpp              equal
//     generic/reconstruct_top.hpp   inverse_norm_estimate

#include "primitives/context.hpp"
#include "primitives/elements.hpp"
#include "primitives/gram.hpp"
#include "primitives/gram_schmidt.hpp"
#include "primitives/moves.hpp"
#include "primitives/panels.hpp"
#include "primitives/pivots.hpp"
#include "primitives/products.hpp"
#include "primitives/sketch.hpp"
#include "primitives/trees.hpp"
#include "primitives/triangles.hpp"
