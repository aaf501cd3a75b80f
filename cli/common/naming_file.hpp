#pragma once

#include <string>

#include "quoin/error.hpp"

namespace quoin::cli {

/// The same error, naming the file and counting rows from its start, for rows that begin at its row `first_row`.
inline NonFiniteEntry in_file(const NonFiniteEntry& e, const std::string& path, std::int64_t first_row) {
    return {first_row + e.row, e.col, path};
}

/// Calls `f()`, which works on rows of the matrix in `path` that begin at `first_row`.
template <class F>
decltype(auto) naming_file(const std::string& path, std::int64_t first_row, F&& f) {
    try {
        return f();
    } catch (const NonFiniteEntry& e) {
        throw in_file(e, path, first_row);
    }
}

}  // namespace quoin::cli
