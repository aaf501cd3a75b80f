#include "describe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "json_line.hpp"

namespace quoin::cli {

NoSuchName::NoSuchName(const std::string& argument, const std::string& value, std::vector<std::string> names)
    : CLI::ValidationError(argument, fmt::format("'{}' is none of {}", value, fmt::join(names, ", "))),
      names_(std::move(names)) {}

namespace {

/// The names that the option takes, separated by spaces: it names them when it refuses another.
std::string choices_of(CLI::Option& option) {
    if (option.get_items_expected_max() == 0) return "";  // a flag
    try {
        option.add_result("?");
        option.run_callback();
    } catch (const NoSuchName& refusal) {
        return fmt::format("{}", fmt::join(refusal.names(), " "));
    } catch (const CLI::ParseError&) {  // a number, a size ...
    }
    return "";
}

JsonLine described(CLI::Option& option) {
    JsonLine line;
    const bool flag = option.get_items_expected_max() == 0;
    line.add("names", option.get_name(option.get_positional(), true)).add("positional", option.get_positional());
    line.add("value", flag ? "" : option.get_type_name());
    line.add("description", option.get_description()).add("group", option.get_group());
    line.add("required", option.get_required()).add("many", option.get_expected_max() > 1);
    return line.add("choices", choices_of(option));
}

JsonLine described(CLI::App& command) {
    JsonLine line;
    std::vector<JsonLine> options, commands;
    for (CLI::Option* option : command.get_options([](CLI::Option* o) { return !o->get_group().empty(); }))
        options.push_back(described(*option));
    for (CLI::App* subcommand : command.get_subcommands([](CLI::App*) { return true; }))
        commands.push_back(described(*subcommand));
    line.add("name", command.get_name()).add("description", command.get_description());
    return line.add("footer", command.get_footer()).add("options", options).add("commands", commands);
}

}  // namespace

void add_describe_flag(CLI::App& program) {
    program
        .add_flag_callback("--describe",
                           [&program] {
                               described(program).print();
                               throw CLI::Success();
                           })
        ->group("");
}

}  // namespace quoin::cli
