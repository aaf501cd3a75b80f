// Names of the enumerators in Options, and access to the options of each method.

#include <fmt/format.h>

#include "quoin/error.hpp"
#include "quoin/options.hpp"

namespace quoin {

namespace {

/// Returns the name of an enumerator. `names` are in the order of declaration.
template <class Enum>
const char* name_of(Enum value, std::initializer_list<const char*> names) {
    return names.begin()[static_cast<std::size_t>(value)];
}

/// Returns the default options of `method`, searching from the i-th method on.
template <std::size_t i = 0>
MethodOptions defaults_of(Method method) {
    if (static_cast<std::size_t>(method) == i) return MethodOptions(std::in_place_index<i>);
    if constexpr (i + 1 < std::variant_size_v<MethodOptions::variant>) return defaults_of<i + 1>(method);
    return {};
}

// Each returns one option. Callable with the options of a method that has it.
constexpr auto panel_width_option = [](auto& o) -> decltype((o.panel_width)) { return o.panel_width; };
constexpr auto tree_option = [](auto& o) -> decltype((o.tree)) { return o.tree; };
constexpr auto reorthogonalization_option = [](auto& o) -> decltype((o.reorthogonalization)) {
    return o.reorthogonalization;
};
constexpr auto panel_option = [](auto& o) -> decltype((o.panel)) { return o.panel; };

template <class Option>
bool has(const MethodOptions& method, Option) {
    return std::visit([](const auto& o) { return std::is_invocable_v<Option, decltype(o)>; }, method);
}

template <class Value, class Option>
Value get(const MethodOptions& method, Option option) {
    const auto given = [option](const auto& o) {
        if constexpr (std::is_invocable_v<Option, decltype(o)>) return Value(option(o));
        return Value{};
    };
    return std::visit(given, method);
}

template <class Value, class Option>
void set(MethodOptions& method, const char* name, Value value, Option option) {
    if (!has(method, option)) {
        if (value == Value{}) return;
        std::string owners;
        for (const Method other : every_method()) {
            if (other != Method::Auto && has(other, option))
                owners += fmt::format("{}{}", owners.empty() ? "" : ", ", to_string(other));
        }
        throw InvalidArgument(fmt::format("{} belongs to {}, and the method is {}", name, owners, to_string(method)));
    }
    const auto give = [&](auto& o) {
        if constexpr (std::is_invocable_v<Option, decltype(o)>) option(o) = value;
    };
    std::visit(give, method);
}

}  // namespace

const char* to_string(Method method) {
    return name_of(method,
                   {"auto", "householder", "tsqr", "caqr", "cholesky-qr2", "randomized-cholesky-qr", "mgs", "cgs"});
}
const char* to_string(QForm q) { return name_of(q, {"any", "none", "explicit", "reflectors"}); }
const char* to_string(FullTRoute route) { return name_of(route, {"auto", "recurrence", "joined"}); }
const char* to_string(Pivots pivots) { return name_of(pivots, {"auto", "greedy", "randomized", "strong"}); }
const char* to_string(Arithmetic arithmetic) {
    return name_of(arithmetic, {"auto", "native", "tf32", "fp16", "bf16", "corrected"});
}
const char* to_string(Reorthogonalization reorthogonalization) {
    return name_of(reorthogonalization, {"off", "selective", "always"});
}
const char* to_string(GramSchmidtPanel panel) { return name_of(panel, {"auto", "mgs", "cholesky-qr2"}); }

std::span<const Method> every_method() {
    static constexpr Method methods[] = {Method::Auto,
                                         Method::BlockedHouseholder,
                                         Method::TSQR,
                                         Method::CAQR,
                                         Method::CholeskyQR2,
                                         Method::RandomizedCholeskyQR,
                                         Method::ModifiedGramSchmidt,
                                         Method::ClassicalGramSchmidt};
    return methods;
}

MethodOptions::MethodOptions(Method method) : MethodOptions(defaults_of(method)) {}

Index MethodOptions::panel_width() const { return get<Index>(*this, panel_width_option); }
TreeOptions MethodOptions::tree() const { return get<TreeOptions>(*this, tree_option); }
Reorthogonalization MethodOptions::reorthogonalization() const {
    return get<Reorthogonalization>(*this, reorthogonalization_option);
}
GramSchmidtPanel MethodOptions::panel() const { return get<GramSchmidtPanel>(*this, panel_option); }

void MethodOptions::set_panel_width(Index width) { set(*this, "panel_width", width, panel_width_option); }
void MethodOptions::set_tree(TreeOptions tree) { set(*this, "a tree's fan_in or leaf_rows", tree, tree_option); }
void MethodOptions::set_reorthogonalization(Reorthogonalization reorthogonalization) {
    set(*this, "reorthogonalization", reorthogonalization, reorthogonalization_option);
}
void MethodOptions::set_panel(GramSchmidtPanel panel) { set(*this, "panel", panel, panel_option); }

}  // namespace quoin
