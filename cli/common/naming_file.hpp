#pragma once

#include <string>

#include "quoin/error.hpp"

namespace quoin::cli {

/// Returns the error `e` of rows that begin at row `first_row` of a file, with the name of the file, and rows counted
/// from its start.
inline NonFiniteEntry in_file(const NonFiniteEntry& e, const std::string& path, std::int64_t first_row) {
    return {first_row + e.row, e.col, path};
}

/// Calls `f()`, which works on rows of the matrix in `path` that begin at `first_row`, and names the file in its
/// NonFiniteEntry.
template <class F>
decltype(auto) naming_file(const std::string& path, std::int64_t first_row, F&& f) {
    try {
        return f();
    } catch (const NonFiniteEntry& e) {
        throw in_file(e, path, first_row);
    }
}

}  // namespace quoin::cli
