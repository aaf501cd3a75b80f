#pragma once

#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "quoin/quoin.hpp"

namespace CLI {
class App;
}

namespace quoin::cli {

/// Where a command computes; Auto: on a GPU if one can be used and has the memory, otherwise on the host.
enum class Device { Host, Cuda, Auto };
/// "host", "cuda", "auto".
const char* to_string(Device device);

/// What every subcommand that computes understands.
struct CommonArguments {
    int threads = 0;
    bool json = false;
    Device device = Device::Host;
    std::string trace;  ///< a path, or empty
    Options options;
};

/// Adds --threads and --json, and with `algorithm` also the options of a factorization, from --method on.
void add_common_arguments(CLI::App& command, CommonArguments& arguments, bool algorithm = true);

/// Adds --compact-wy, --keep-s and --full-t.
void add_compact_wy_arguments(CLI::App& command, Options& options);

/// Adds --device.
void add_device_argument(CLI::App& command, Device& device);

/// Adds --trace.
void add_trace_argument(CLI::App& command, std::string& path);

/// A context of --threads threads; the BLAS and the OpenMP loops of the program itself then use as many.
Context<Host> make_context(const CommonArguments& arguments);

struct Shape {
    Index rows = 0;
    Index cols = 0;
};

/// Throws CLI::ValidationError: `why`, one sentence, about `argument`.
[[noreturn]] void refuse_argument(const std::string& argument, const std::string& why);
/// Throws NoSuchName.
[[noreturn]] void refuse_name(const std::string& argument, const std::string& text, std::vector<std::string> names);
/// The parts of "a,b,c".
std::vector<std::string> split_list(const std::string& text);

// Each of these refuses what it cannot read.

/// "1000000x192".
Shape parse_shape(const std::string& argument, const std::string& text);
/// A non-negative decimal integer that fits 64 bits.
Index parse_dimension(const std::string& argument, const std::string& text);
/// Refuses a matrix whose elements, in f64, no 64-bit count of bytes can number.
void check_shape(const std::string& argument, Shape shape);
/// "a,b,c", split and each part parsed by `parse(argument, part)`.
template <class Parse>
auto parse_list(const std::string& argument, const std::string& text, Parse parse) {
    std::vector<decltype(parse(argument, text))> values;
    for (const std::string& part : split_list(text)) values.push_back(parse(argument, part));
    return values;
}

DType parse_dtype(const std::string& argument, const std::string& text);
QForm parse_q_form(const std::string& argument, const std::string& text);

/// The value among `values` whose name `name_of(value)` is `text`.
template <class Value, class NameOf>
Value parse_name(const std::string& argument, const std::string& text, std::span<const Value> values, NameOf name_of) {
    std::vector<std::string> names;
    for (const Value value : values) {
        if (text == name_of(value)) return value;
        names.emplace_back(name_of(value));
    }
    refuse_name(argument, text, std::move(names));
}
template <class Value, class NameOf>
Value parse_name(const std::string& argument, const std::string& text, std::initializer_list<Value> values,
                 NameOf name_of) {
    return parse_name(argument, text, std::span<const Value>(values.begin(), values.size()), name_of);
}

/// Calls `f(T{})` with T = float or double as `dtype` says.
template <class F>
decltype(auto) with_dtype(DType dtype, F&& f) {
    return dtype == DType::F32 ? f(float{}) : f(double{});
}

}  // namespace quoin::cli
