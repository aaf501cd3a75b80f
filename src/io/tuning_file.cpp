// Writes and reads the file of a tuning table.

#include "io/tuning_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "io/atomic_file.hpp"
#include "io/checksum.hpp"
#include "io/json_text.hpp"
#include "quoin/error.hpp"
#include "quoin/version.hpp"

namespace quoin::io {

namespace {

constexpr std::string_view last_member = "\"checksum\": \"";

/// Returns the file's text up to its checksum.
std::string checked_text(const TuningTable& t) {
    std::string text = fmt::format(
        "{{\n\"quoin\": {},\n\"device\": {},\n\"kernels\": {},\n\"threads\": {},\n\"date\": {}", json_quoted(t.version),
        json_quoted(t.device), json_quoted(t.kernels), t.threads, json_quoted(t.date));
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

/// Returns the folder of the user's tables; "" if the environment names none.
std::string tuning_folder() {
    if (const char* const config = secure_getenv("XDG_CONFIG_HOME"); config && *config == '/')
        return std::string(config) + "/quoin";
    const char* const home = secure_getenv("HOME");
    return home && *home ? std::string(home) + "/.config/quoin" : "";
}

std::string environment_choice() {
    const char* const given = secure_getenv("QUOIN_TUNING");
    return given ? given : "";
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
    table.device = words.value();
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

std::string tuning_path(const TunedDevice& device) {
    const std::string choice = environment_choice(), folder = tuning_folder();
    if (!choice.empty() && choice != "off") return choice;
    if (folder.empty()) return "";
    std::string name = "tuning";
    for (const char c : fmt::format("-{}-{}", device.name, device.kernels)) {
        const unsigned char letter = static_cast<unsigned char>(c);
        if (std::isalnum(letter))
            name += static_cast<char>(std::tolower(letter));
        else if (name.back() != '-')
            name += '-';
    }
    return folder + "/" + name + ".json";
}

TuningTable empty_tuning(const TunedDevice& device) {
    const std::time_t now = std::time(nullptr);
    char date[16] = "";
    std::tm day{};
    std::strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &day));
    TuningTable table;
    table.version = version();
    table.device = device.name;
    table.kernels = device.kernels;
    table.date = date;
    return table;
}

TableInUse read_table(TunedDevice (*device)(),
                      const std::function<void(const TuningTable&, const std::string&)>& require) {
    TableInUse read;
    const std::string choice = environment_choice(), folder = tuning_folder();
    if (choice == "off") return read;
    // a user without tables pays for this call alone
    if (choice.empty() && (folder.empty() || access(folder.c_str(), R_OK) != 0)) return read;
    const TunedDevice here = device();
    const std::string path = tuning_path(here);
    if (choice.empty() && access(path.c_str(), F_OK) != 0) return read;
    try {
        TuningTable table = load_tuning(path);
        const auto identity = [](const std::string& name, const std::string& kernels, const std::string& of_version) {
            return fmt::format("{} with the kernels {} and version {}", name, kernels, of_version);
        };
        const std::string of_table = identity(table.device, table.kernels, table.version),
                          of_this = identity(here.name, here.kernels, version());
        if (of_table != of_this)
            throw UnreadableFile(path, fmt::format("was measured on {}, and this is {}", of_table, of_this));
        if (require) require(table, path);
        read = {{table.id, table.date, ""}, std::move(table)};
    } catch (const UnreadableFile& refusal) {
        read.in_use.refusal = refusal.what();
    }
    return read;
}

}  // namespace quoin::io

namespace quoin {

std::string tuning_name(std::uint32_t id) { return id == 0 ? "built-in" : fmt::format("{:08x}", id); }

std::span<const std::string> step_time_names() {
    static const auto names = [] {
        std::array<std::string, step_time_count> list;
        std::size_t i = 0;
        for (const char* step :
             {"gram", "solve", "square", "signed_lu", "leaf", "node", "form", "tree_update", "panel", "update"})
            for (const char* of : {"flop", "entry", "column"}) list[i++] = fmt::format("{}.{}", step, of);
        for (const char* step : {"scan", "call", "certificate", "threaded_flops"}) list[i++] = step;
        return list;
    }();
    return names;
}

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
