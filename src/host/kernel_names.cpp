// The host's choices among its kernels, in words. Which instruction set they use is host/kernels/dispatch.cpp's choice.

#include "primitives/kernel_names.hpp"

#include <fmt/format.h>

#include "host/device.hpp"
#include "host/kernels/kernels.hpp"
#include "host/tuning.hpp"

namespace quoin {

namespace {

using HostTuned = Tuning<Host>;
using HostNames = KernelNames<Host>;

/// Adds the instruction set and the file to the words for a kernel.
std::string with_instruction_set(const std::string& words, const char* file) {
    return fmt::format("{}, {} ({})", words, host::kernels<double>().instruction_set, file);
}

/// Describes the kernel of a panel of m rows.
std::string panel_of(Index m) {
    return with_instruction_set(
        fmt::format("recursively, the last {} columns one by one", HostTuned::column_by_column(m)),
        "host/block_reflector.hpp");
}

}  // namespace

template <>
std::string HostNames::batch(Index m, Index n, ScalarKind, BatchOf) const {
    if (!HostTuned::in_lanes(m, n)) return "";
    const bool tiny = n <= m && m <= host::tiny_rows;
    return with_instruction_set(tiny ? "a matrix a lane, in registers" : "a matrix a lane", "host/kernels/lanes.hpp");
}
template <>
std::string HostNames::panel(Index m, Index, ScalarKind) const {
    return panel_of(m);
}
template <>
std::string HostNames::update(Index m, Index, Index p, ScalarKind, Arithmetic) const {
    const bool is_short = m <= HostTuned::max_short_rows && p >= HostTuned::min_short_cols;
    return with_instruction_set(is_short ? "sums of columns, from copies of V and Vᵀ" : "blocks of rows in cache",
                                "host/panels.cpp");
}
template <>
std::string HostNames::gram(Index n, ScalarKind) const {
    return with_instruction_set(n <= HostTuned::few_streams
                                    ? "blocks of rows in cache"
                                    : "blocks of rows in cache, copied if columns collide there",
                                "host/tall.cpp");
}
template <>
std::string HostNames::solve(Index, Index n, ScalarKind scalar) const {
    return gram(n, scalar);
}
template <>
std::string HostNames::cholesky(Index) const {
    return with_instruction_set(fmt::format("blocks of {} columns", HostTuned::square_step), "host/dense.cpp");
}
template <>
std::string HostNames::reconstruction(Index n) const {
    return cholesky(n);
}
template <>
std::string HostNames::leaf(Index rows, Index) const {
    return panel_of(rows);
}
template <>
std::string HostNames::node(Index fan_in, Index width) const {
    return panel_of((fan_in - 1) * width);
}
template <>
std::string HostNames::sketch() const {
    return with_instruction_set("blocks of rows in cache", "host/sketch.cpp");
}
template <>
std::string HostNames::orthonormalization() const {
    return with_instruction_set("a sweep a column", "host/gram_schmidt.cpp");
}
template <>
std::string HostNames::inner_product(Index, Index, Index, ScalarKind, Arithmetic) const {
    return with_instruction_set("blocks of rows in cache", "host/tall.cpp");
}
template <>
std::string HostNames::subtracted_product(Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic) const {
    return inner_product(m, k, p, scalar, arithmetic);
}

}  // namespace quoin
