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

/// A line of names has no number in it, or, after an empty name, the numbers 0, 1, 2 … that pandas gives to columns without names.
bool is_header_line(std::string_view line, char separator) {
    if (line.front() == '#') return true;
    FieldReader fields(line, separator);
    const std::string_view first = *fields.next();
    bool numbers = parse_real(first).has_value(), counts = first.empty();
    for (Index i = 0; const std::optional<std::string_view> field = fields.next(); ++i) {
        numbers = numbers || parse_real(*field);
        counts = counts && parse_integer(*field) == i;
    }
    return !numbers || counts;
}

}  // namespace

CsvHeader parse_csv_header(std::string_view text, const std::string& path, const CsvOptions& options) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
    const auto separator = [&](std::string_view line) {
        return options.separator != 0 ? options.separator : separator_of(line);
    };

    CsvHeader header{.body = LineReader(text)};
    LineReader lines = header.body;
    std::optional<std::string_view> line = lines.next();
    if (line && (options.header || is_header_line(*line, separator(*line)))) {
        header.index = FieldReader(*line, separator(*line)).next()->empty();
        header.body = lines;
        line = lines.next();
    }
    if (!line) throw UnreadableFile(path, "holds no numbers");

    header.separator = separator(*line);
    header.cols = count_fields(*line, header.separator);
    const Index first = lines.number(), expected = header.cols;
    header.index = header.index && header.cols > 1;
    header.cols -= header.index;
    for (; line; line = lines.next()) {
        ++header.rows;
        const Index fields = count_fields(*line, header.separator);
        if (fields != expected) {
            throw UnreadableFile(path, fmt::format("line {} has {} fields where line {} has {}", lines.number(), fields,
                                                   first, expected));
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
        if (header.index) fields.next();
        for (Index j = 0; j < header.cols; ++j) {
            const std::optional<std::string_view> field = fields.next();
            if (!line || !field) throw UnreadableFile(path, "changed while it was read");
            const std::optional<double> value = parse_real(*field);
            if (!value) {
                const std::string why =
                    field->empty() ? "is empty" : in_quotes(*field) + " is not a number that f64 can hold";
                throw UnreadableFile(path,
                                     fmt::format("line {}, field {}: {}", lines.number(), j + 1 + header.index, why));
            }
            A(i, j) = *value;
        }
    }
    return A;
}

}  // namespace quoin::io
