#pragma once

#include "quoin/file_qr.hpp"

namespace quoin {

/// Fills in what the choices of a plan (shape, route, stored, block, panel, reach) cost.
template <class T>
void count_file_plan(const Context<Host>& ctx, FilePlan& plan);

}  // namespace quoin
