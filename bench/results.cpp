#include "results.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>

namespace quoin::cli {

Results::Results(const BenchArguments& arguments) : json_(arguments.common.json), path_(arguments.csv) {
    if (path_.empty()) return;
    file_.reset(std::fopen(path_.c_str(), "w"));
    if (!file_) throw UnwritableFile(path_, std::strerror(errno));
}

void Results::describe(const std::string& about) const { write(fmt::format("# quoin {}; {}", version(), about)); }

void Results::record(const JsonLine& line) {
    if (json_) line.print();
    if (!file_) return;
    std::string keys, values;
    for (auto [key, value] : line.members()) {
        std::erase(value, '"');
        keys += (keys.empty() ? "" : ",") + key;
        values += "," + (value == "null" ? std::string() : value);
    }
    if (!has_columns_) write(keys);
    has_columns_ = true;
    write(values.substr(1));
}

void Results::add(const JsonLine& line) {
    record(line);
    constexpr std::size_t widest = 210;
    std::string head, row, list;
    for (const auto& [key, value] : line.members()) {
        std::string cell = value;
        if (value == "null")
            cell = "−";
        else if (value.front() == '"')
            cell = value.substr(1, value.size() - 2);
        else if (std::isdigit(value.back()) != 0 && value.find_first_of(".e") != std::string::npos)
            cell = fmt::format("{:.4g}", std::stod(value));
        const std::size_t width = std::max<std::size_t>(key.size(), 10);
        head += fmt::format("{:>{}}  ", key, width);
        row += fmt::format("{:>{}}  ", cell, width);
        list += fmt::format("{:<24}{}\n", key, cell);
    }
    if (head.size() > widest) return say("\n{}", list);
    if (head != head_) say("\n{}\n", head);
    head_ = head;
    say("{}\n", row);
}

void Results::write(const std::string& line) const {
    if (!file_) return;
    std::fputs((line + "\n").c_str(), file_.get());
    if (std::fflush(file_.get()) != 0) throw UnwritableFile(path_, std::strerror(errno));
}

}  // namespace quoin::cli
