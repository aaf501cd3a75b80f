// Writes and reads the file of a tuning table.

#include "io/tuning_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "io/atomic_file.hpp"
#include "io/checksum.hpp"
#include "io/json_text.hpp"
#include "quoin/error.hpp"

namespace quoin::io {

namespace {

constexpr std::string_view last_member = "\"checksum\": \"";

/// Returns the file's text up to its checksum.
std::string checked_text(const TuningTable& t) {
    std::string text =
        fmt::format("{{\n\"quoin\": {},\n\"cpu\": {},\n\"kernels\": {},\n\"threads\": {},\n\"date\": {}",
                    json_quoted(t.version), json_quoted(t.cpu), json_quoted(t.kernels), t.threads, json_quoted(t.date));
    for (const auto& [key, times] : {std::pair("f32", &t.f32), {"f64", &t.f64}}) {
        std::vector<std::pair<std::string, std::string>> members;
        for (std::size_t i = 0; i < step_time_count; ++i)
            members.emplace_back(step_time_names()[i], json_number((*times)[i]));
        text += fmt::format(",\n\"{}\": {}", key, json_object(members));
    }
    text += ",\n\"cases\": [";
    for (const TunedCase& c : t.cases) {
        text += fmt::format("{}\n[{}, {}, \"{}\", \"{}\"", &c == t.cases.data() ? "" : ",", c.rows, c.cols,
                            to_string(c.scalar), to_string(c.q));
        for (const double seconds : c.seconds) text += ", " + json_number(seconds);
        text += "]";
    }
    return text + "],\n";
}

/// Reads the words of a text one after the other: what is in quotes, and the numbers.
class Words {
public:
    explicit Words(std::string_view text) : rest_(text) {}
    /// Returns the next word; "" at the end.
    std::string next() {
        const std::size_t start = rest_.find_first_of("\"-0123456789");
        if (start == rest_.npos) return "";
        const bool quoted = rest_[start] == '"';
        rest_.remove_prefix(start + quoted);
        const std::string word(rest_.substr(0, rest_.find_first_of(quoted ? "\"" : ",}] \n")));
        rest_.remove_prefix(std::min(rest_.size(), word.size() + quoted));
        return word;
    }
    /// Skips a name, and returns the word after it.
    std::string value() {
        next();
        return next();
    }

private:
    std::string_view rest_;
};

/// Returns the number that `word` is; 0 if it is none.
template <class Number>
Number number_in(const std::string& word) {
    Number value = 0;
    std::from_chars(word.data(), word.data() + word.size(), value);
    return value;
}

}  // namespace

std::string tuning_text(TuningTable& table) {
    const std::string text = checked_text(table);
    table.id = crc32(text);
    return fmt::format("{}{}{:08x}\"\n}}\n", text, last_member, table.id);
}

TuningTable parse_tuning(const std::string& text, const std::string& path) {
    const std::string checked = text.substr(0, text.rfind(last_member));
    TuningTable table;
    Words words(checked);
    table.version = words.value();
    table.cpu = words.value();
    table.kernels = words.value();
    table.threads = number_in<int>(words.value());
    table.date = words.value();
    for (auto* times : {&table.f32, &table.f64}) {
        words.next();
        for (double& time : *times) time = number_in<double>(words.value());
    }
    words.next();
    for (std::string rows = words.next(); !rows.empty(); rows = words.next()) {
        TunedCase& c = table.cases.emplace_back();
        c.rows = number_in<Index>(rows);
        c.cols = number_in<Index>(words.next());
        c.scalar = words.next() == to_string(ScalarKind::F32) ? ScalarKind::F32 : ScalarKind::F64;
        const std::string q = words.next();
        for (const QForm form : {QForm::None, QForm::Explicit, QForm::Reflectors})
            if (q == to_string(form)) c.q = form;
        for (double& seconds : c.seconds) seconds = number_in<double>(words.next());
    }
    // a table's text is unique: any other text differs from what is written of what was read
    if (tuning_text(table) != text) throw UnreadableFile(path, "is no table of `quoin tune`, or was changed since");
    return table;
}

}  // namespace quoin::io

namespace quoin {

void save_tuning(TuningTable& table, const std::string& path) {
    std::error_code ignored;  // writing says what is wrong
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    io::write_text(path, io::tuning_text(table));
}

TuningTable load_tuning(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw UnreadableFile(path, "cannot be opened");
    return io::parse_tuning(std::string(std::istreambuf_iterator<char>(file), {}), path);
}

}  // namespace quoin
