#pragma once

// Costs of a plan from file to file, for given choices.

#include "quoin/file_qr.hpp"

namespace quoin {

/// Fills in what the choices of a plan (shape, route, stored, block, panel, v_block, arithmetic) cost, and how
/// `options` let it pass through the memory of a device.
template <class T, class D>
void count_file_plan(const Context<D>& ctx, FilePlan& plan, const FileOptions& options);

}  // namespace quoin
