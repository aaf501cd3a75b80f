#include "results.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace quoin::cli {

Results::Results(const BenchArguments& arguments) : json_(arguments.common.json), path_(arguments.csv) {
    if (path_.empty()) return;
    file_.reset(std::fopen(path_.c_str(), "w"));
    if (!file_) throw UnwritableFile(path_, std::strerror(errno));
}

void Results::describe(const std::string& about) const { write(fmt::format("# quoin {}; {}", version(), about)); }

void Results::add(const JsonLine& line) {
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

void Results::write(const std::string& line) const {
    if (!file_) return;
    std::fputs((line + "\n").c_str(), file_.get());
    if (std::fflush(file_.get()) != 0) throw UnwritableFile(path_, std::strerror(errno));
}

}  // namespace quoin::cli
