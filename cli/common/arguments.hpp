#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quoin/quoin.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace quoin::cli {

/// Where a command computes; Auto: on a GPU if one can be used and has the memory, otherwise on the host.
enum class Device { Host, Cuda, Auto };
/// "host", "cuda", "auto".
const char* to_string(Device device);

/// Arguments of every subcommand that computes.
struct CommonArguments {
    int threads = 0;
    bool json = false;
    Device device = Device::Host;
    std::string trace;  ///< a path, or empty
    Options options;
};

/// Adds --threads and --json, and with `algorithm` also what `add_algorithm_arguments` does.
void add_common_arguments(CLI::App& command, CommonArguments& arguments, bool algorithm = true);

// `group`: their heading in --help; without one the help does not list them.

/// Adds --method, --panel-width, --leaf-rows, --fan-in, --arithmetic, --reorthogonalize and --panel-method.
void add_algorithm_arguments(CLI::App& command, Options& options, const std::string& group);
/// Adds --compact-wy, --keep-s and --full-t.
void add_compact_wy_arguments(CLI::App& command, Options& options,
                              const std::string& group = "Q = I − V T Vᵀ with one T");

/// Column pivoting as --pivot, --rank and --tol describe it.
struct PivotArguments {
    std::string kind;  ///< --pivot, or empty
    Index rank = 0;
    double tolerance = 0, frobenius = 0;
    std::optional<Pivoting> pivoting() const;
};
void add_pivot_arguments(CLI::App& command, PivotArguments& arguments, bool is_in_help);

/// Adds --device.
void add_device_argument(CLI::App& command, Device& device);

/// Adds --trace.
void add_trace_argument(CLI::App& command, std::string& path);

/// Returns a context of --threads threads; the BLAS and the OpenMP loops of the program itself then use as many.
Context<Host> make_context(const CommonArguments& arguments);

struct Shape {
    Index rows = 0;
    Index cols = 0;
};

/// Throws CLI::ValidationError: `why`, one sentence, about `argument`.
[[noreturn]] void refuse_argument(const std::string& argument, const std::string& why);
/// Throws NoSuchName.
[[noreturn]] void refuse_name(const std::string& argument, const std::string& text, std::vector<std::string> names);
/// Returns the parts of "a,b,c".
std::vector<std::string> split_list(const std::string& text);

// Each of these functions refuses text that it cannot read.

/// Parses "1000000x192".
Shape parse_shape(const std::string& argument, const std::string& text);
/// Parses a non-negative decimal integer that fits 64 bits.
Index parse_dimension(const std::string& argument, const std::string& text);
/// Refuses a matrix whose size in bytes, in f64, does not fit 64 bits.
void check_shape(const std::string& argument, Shape shape);
/// Splits "a,b,c", and parses each part by `parse(argument, part)`.
template <class Parse>
auto parse_list(const std::string& argument, const std::string& text, Parse parse) {
    std::vector<decltype(parse(argument, text))> values;
    for (const std::string& part : split_list(text)) values.push_back(parse(argument, part));
    return values;
}

/// Returns the value among `values` whose name `to_string(value)` is `text`.
template <class Value>
Value parse_name(const std::string& argument, const std::string& text, std::span<const Value> values) {
    std::vector<std::string> names;
    for (const Value value : values) {
        if (text == to_string(value)) return value;
        names.emplace_back(to_string(value));
    }
    refuse_name(argument, text, std::move(names));
}
template <class Value>
Value parse_name(const std::string& argument, const std::string& text, std::initializer_list<Value> values) {
    return parse_name(argument, text, std::span<const Value>(values.begin(), values.size()));
}
ScalarKind parse_dtype(const std::string& argument, const std::string& text);

/// Adds the option `name` KIND, whose text goes to `set`.
CLI::Option* add_parsed(CLI::App& command, const std::string& name, const std::string& kind,
                        std::function<void(const std::string&)> set, const std::string& description);
/// Adds the option `name` NAME: one of `values` by its name, assigned to `value`.
template <class Target, class Value>
CLI::Option* add_choice(CLI::App& command, const std::string& name, Target& value, std::span<const Value> values,
                        const std::string& description) {
    return add_parsed(
        command, name, "NAME",
        [&value, name, values = std::vector<Value>(values.begin(), values.end())](const std::string& text) {
            value = parse_name(name, text, std::span<const Value>(values));
        },
        description);
}
template <class Target, class Value>
CLI::Option* add_choice(CLI::App& command, const std::string& name, Target& value, std::initializer_list<Value> values,
                        const std::string& description) {
    return add_choice(command, name, value, std::span<const Value>(values.begin(), values.size()), description);
}
/// Adds the option `name` N: a size.
CLI::Option* add_size(CLI::App& command, const std::string& name, Index& value, const std::string& description);
/// Adds --dtype: f32 or f64.
CLI::Option* add_dtype(CLI::App& command, ScalarKind& dtype, const std::string& description);

/// Calls `f(T{})` with T = float or double as `dtype` says. Throws InvalidArgument for complex numbers.
template <class F>
decltype(auto) with_dtype(ScalarKind dtype, F&& f) {
    return entry_for(dtype, true, false) ? f(float{}) : f(double{});
}

}  // namespace quoin::cli
