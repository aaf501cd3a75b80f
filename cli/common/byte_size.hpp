#pragma once

#include <string>

#include "quoin/matrix.hpp"

namespace CLI {
class App;
}

namespace quoin::cli {

/// Bytes in "1.5GiB", "800MB", "4096" or "64 KiB"; the units are B, KB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB,
/// TiB (powers of 1024), in either case. Throws CLI::ValidationError that names `argument`.
Index parse_byte_size(const std::string& argument, const std::string& text);

/// Adds `name` SIZE to a command; `bytes` stays as it is where that is not given.
void add_byte_size_argument(CLI::App& command, const std::string& name, Index& bytes, const std::string& help);

/// Bytes a second in "25GB/s", units as above, and seconds in "2us", "1.5 ms", "3s"; the units are ns, us, ms, s. Throw
/// as above.
double parse_byte_rate(const std::string& argument, const std::string& text);
double parse_seconds(const std::string& argument, const std::string& text);

/// "1.50 GiB", for a person.
std::string format_byte_size(double bytes);

/// A size that a user may have given, in the units of the text: powers of 1000 where `bytes` is a whole number of them.
std::string format_given_size(double bytes);

/// "3.2 MB/s", for a person.
std::string format_byte_rate(double bytes_per_second);

/// The least whole number of MiB (KiB below 16 MiB) that holds `bytes`, as an argument that `parse_byte_size` takes.
std::string byte_size_argument(double bytes);

}  // namespace quoin::cli
