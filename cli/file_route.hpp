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

/// Memory of `quoin factor` where all of the matrix is there: A, in whose place Q is formed, and R in the factorization and on
/// its way to the file; to verify, A once more. With a full T one of V, T and S on its way too.
inline double factor_bytes(const Plan& plan, bool verify) {
    const double m = static_cast<double>(plan.rows), n = static_cast<double>(plan.cols), k = std::min(m, n);
    const double wide_q = m < n ? m * k : 0;  // the thin Q of a wide A does not fill A's place
    const double full_t = plan.full_t ? m * k : 0;
    return plan.element_bytes * ((verify ? 2 : 1) * m * n + 2 * k * n + wide_q + full_t) + plan.workspace_bytes;
}

/// The same where a GPU computes with blocks of an m×n A: A, in whose place Q comes, and R; to verify, A once more.
template <class T>
double bytes_beside_gpu(Shape shape, bool verify) {
    const double m = static_cast<double>(shape.rows), n = static_cast<double>(shape.cols);
    return sizeof(T) * (m * n * (verify ? 2 : 1) + std::min(m, n) * n);
}

/// How a file is factored from file to file within `options.memory`, as `planned(options)` says. Throws OutOfMemory, naming `who`
/// and the smallest cap that works, `otherwise` if that is less, where it cannot be.
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
