#pragma once

namespace quoin {

/// Block sizes and crossovers for one device, in src/DEVICE/tuning.hpp. Every row of a table cites its measurement.
template <class D>
struct Tuning;

}  // namespace quoin
