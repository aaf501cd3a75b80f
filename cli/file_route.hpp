#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "arguments.hpp"
#include "memory_cap.hpp"
#include "quoin/file_qr.hpp"
#include "quoin/io.hpp"

namespace quoin::cli {

/// Returns the memory of `quoin factor` if the whole matrix is in memory: A, which Q replaces, and R in the
/// factorization and once more on its way to the file. To verify, A once more. With a full T also one of V, T and S on
/// its way to the file.
inline double factor_bytes(const Plan& plan, bool verify) {
    const double m = static_cast<double>(plan.rows), n = static_cast<double>(plan.cols), k = std::min(m, n);
    const double wide_q = m < n ? m * k : 0;  // the thin Q of a wide A does not fill A's place
    const double full_t = plan.full_t ? m * k : 0;
    return plan.element_bytes * ((verify ? 2 : 1) * m * n + 2 * k * n + wide_q + full_t) + plan.workspace_bytes;
}

/// Returns the memory of the host if a GPU computes with blocks of an m×n A: A, which Q replaces, and R. To verify, A
/// once more.
template <class T>
double bytes_beside_gpu(Shape shape, bool verify) {
    const double m = static_cast<double>(shape.rows), n = static_cast<double>(shape.cols);
    return sizeof(T) * (m * n * (verify ? 2 : 1) + std::min(m, n) * n);
}

/// Returns the plan `planned(options)` for factoring from file to file within `options.memory`. If it does not fit,
/// throws OutOfMemory, naming `who` and the smallest cap that works, or `otherwise` if it is less.
template <class T, class Planned>
FilePlan file_plan_within(Planned planned, const std::string& who, Shape shape, const FileOptions& options,
                          double otherwise = std::numeric_limits<double>::infinity()) {
    const FilePlan plan = planned(options);
    if (plan.memory_bytes <= options.memory) return plan;
    FileOptions none = options;
    none.memory = 0;
    refuse_memory_cap(who, options.memory, std::min(planned(none).memory_bytes, otherwise),
                      fmt::format("for a {} x {} {} matrix", shape.rows, shape.cols, to_string(dtype_of<T>)));
}

}  // namespace quoin::cli
