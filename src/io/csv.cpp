#include "io/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "quoin/error.hpp"

namespace quoin::io {
namespace {

char separator_of(std::string_view line) {
    for (const char c : {';', ',', '\t'}) {
        if (line.find(c) != line.npos) return c;
    }
    return ' ';
}

/// The fields of one line, without the blanks and quotation marks around them. A line has at least one.
class FieldReader {
public:
    FieldReader(std::string_view line, char separator)
        : rest_(separator == ' ' ? trim(line, " \t") : line), separator_(separator) {}

    std::optional<std::string_view> next() {
        if (finished_) return std::nullopt;
        std::string_view field;
        if (separator_ == ' ') {
            field = take_word(rest_);
            finished_ = rest_.empty();
        } else {
            const std::size_t end = std::min(rest_.find(separator_), rest_.size());
            finished_ = end == rest_.size();
            field = trim(rest_.substr(0, end), " \t");
            rest_.remove_prefix(finished_ ? end : end + 1);
        }
        if (field.size() >= 2 && field.front() == '"' && field.back() == '"') {
            field = trim(field.substr(1, field.size() - 2), " \t");
        }
        return field;
    }

private:
    std::string_view rest_;
    char separator_;
    bool finished_ = false;
};

Index count_fields(std::string_view line, char separator) {
    if (separator != ' ') return 1 + std::count(line.begin(), line.end(), separator);
    Index count = 0;
    while (!take_word(line).empty()) ++count;
    return count;
}

/// True if no field of the line is a number.
bool is_header_line(std::string_view line) {
    if (line.front() == '#') return true;
    FieldReader fields(line, separator_of(line));
    while (const std::optional<std::string_view> field = fields.next()) {
        if (parse_real(*field)) return false;
    }
    return true;
}

}  // namespace

CsvHeader parse_csv_header(std::string_view text, const std::string& path) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());

    CsvHeader header{.body = LineReader(text)};
    LineReader lines = header.body;
    std::optional<std::string_view> line = lines.next();
    if (line && is_header_line(*line)) {
        header.body = lines;
        line = lines.next();
    }
    if (!line) throw UnreadableFile(path, "holds no numbers");

    header.separator = separator_of(*line);
    header.cols = count_fields(*line, header.separator);
    const Index first = lines.number();
    for (; line; line = lines.next()) {
        ++header.rows;
        const Index fields = count_fields(*line, header.separator);
        if (fields != header.cols) {
            throw UnreadableFile(path, fmt::format("line {} has {} fields where line {} has {}", lines.number(), fields,
                                                   first, header.cols));
        }
    }
    return header;
}

Matrix<double> read_csv(const CsvHeader& header, const std::string& path) {
    Matrix<double> A(header.rows, header.cols);
    LineReader lines = header.body;
    for (Index i = 0; i < header.rows; ++i) {
        const std::optional<std::string_view> line = lines.next();
        FieldReader fields(line.value_or(""), header.separator);
        for (Index j = 0; j < header.cols; ++j) {
            const std::optional<std::string_view> field = fields.next();
            if (!line || !field) throw UnreadableFile(path, "changed while it was read");
            const std::optional<double> value = parse_real(*field);
            if (!value) {
                const std::string why =
                    field->empty() ? "is empty" : quoted(*field) + " is not a number that f64 can hold";
                throw UnreadableFile(path, fmt::format("line {}, field {}: {}", lines.number(), j + 1, why));
            }
            A(i, j) = *value;
        }
    }
    return A;
}

}  // namespace quoin::io
