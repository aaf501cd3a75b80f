// Reads tables of numbers in text: recognises separators, header, comments and quotes.

#include "io/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "quoin/error.hpp"

namespace quoin::io {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_whole(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_digit); }

/// Returns the end of the field in double quotes that begins `text`, or 0 if there is none. Two quotes in a row are
/// part of a field.
std::size_t end_of_quotes(std::string_view text) {
    if (text.empty() || text.front() != '"') return 0;
    for (std::size_t at = text.find('"', 1); at != text.npos; at = text.find('"', at + 2)) {
        if (at + 1 == text.size() || text[at + 1] != '"') return at + 1;
    }
    return 0;
}

/// The fields of one line, without the blanks and quotation marks around them. A line has at least one.
class FieldReader {
public:
    FieldReader(std::string_view line, char separator)
        : rest_(separator == ' ' ? trim(line, " \t") : line), separator_(separator) {}

    std::optional<std::string_view> next() {
        if (finished_) return std::nullopt;
        std::size_t begin = 0;
        while (begin < rest_.size() && is_blank(rest_[begin]) && rest_[begin] != separator_) ++begin;
        rest_.remove_prefix(begin);
        std::size_t end = end_of_quotes(rest_);
        if (separator_ == ' ') {
            while (end < rest_.size() && !is_blank(rest_[end])) ++end;
        } else {
            end = std::min(rest_.find(separator_, end), rest_.size());
        }
        std::string_view field = rest_.substr(0, end);
        finished_ = end == rest_.size();
        rest_.remove_prefix(finished_ ? end : end + 1);
        if (separator_ == ' ') {
            while (!rest_.empty() && is_blank(rest_.front())) rest_.remove_prefix(1);
        }
        while (!field.empty() && is_blank(field.back())) field.remove_suffix(1);
        quoted_ = field.size() >= 2 && field.front() == '"' && field.back() == '"';
        if (quoted_) field = trim(field.substr(1, field.size() - 2), " \t");
        return field;
    }
    /// Whether the last field stood in double quotes.
    bool quoted() const { return quoted_; }

private:
    std::string_view rest_;
    char separator_;
    bool finished_ = false;
    bool quoted_ = false;
};

struct Field {
    std::string_view text;
    bool quoted;
};

std::vector<Field> split_fields(std::string_view line, char separator) {
    std::vector<Field> out;
    FieldReader fields(line, separator);
    while (const std::optional<std::string_view> field = fields.next()) out.push_back({*field, fields.quoted()});
    return out;
}

/// `quotes`: some line of the table has quotation marks.
Index count_fields(std::string_view line, char separator, bool quotes) {
    Index count = 0;
    if (quotes) {
        for (FieldReader fields(line, separator); fields.next();) ++count;
        return count;
    }
    if (separator != ' ') return 1 + std::count(line.begin(), line.end(), separator);
    while (!take_word(line).empty()) ++count;
    return count;
}

/// Returns the first of ; , tab and blank that separates fields of `line`.
char separator_of(std::string_view line, char decimal) {
    for (const char c : {';', ',', '\t'}) {
        if (c != decimal && count_fields(line, c, true) > 1) return c;
    }
    return ' ';
}

template <class T, class U>
bool contains(const std::vector<T>& values, const U& value) {
    return std::find(values.begin(), values.end(), value) != values.end();
}

std::optional<double> value_of(std::string_view field, const CsvHeader& header) {
    const std::optional<double> value = parse_real(field, header.decimal);
    const bool missing = value ? contains(header.missing_values, *value) : contains(header.missing, field);
    return missing ? std::numeric_limits<double>::quiet_NaN() : value;
}

bool begins_like_a_name(std::string_view field) {
    if (field.empty() || field.starts_with(minus_sign)) return false;
    const auto c = static_cast<unsigned char>(field.front());
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c >= 0x80;
}

/// Whether these are names: one begins like a name, and none is a number. After an empty name, the
/// numbers 0, 1, 2 … that pandas gives to columns without names are names too.
bool are_names(const std::vector<Field>& fields, const CsvHeader& header) {
    bool names = false, numbers = false, counts = fields.size() > 1 && fields[0].text.empty();
    for (std::size_t j = 0; j < fields.size(); ++j) {
        const std::string_view field = fields[j].text;
        if (!field.empty() && value_of(field, header))
            numbers = true;
        else
            names = names || begins_like_a_name(field);
        counts = counts && (j == 0 || parse_integer(field) == static_cast<Index>(j) - 1);
    }
    return counts || (names && !numbers);
}

/// Returns the constant step between ascending whole numbers, or 0.
Index step_of(const std::vector<Field>& fields) {
    Index step = 0;
    for (std::size_t j = 0; j < fields.size(); ++j) {
        const std::optional<Index> number = parse_integer(fields[j].text);
        if (!is_whole(fields[j].text) || !number) return 0;
        if (j == 0) continue;
        const Index difference = *number - *parse_integer(fields[j - 1].text);
        if (difference <= 0 || (j > 1 && difference != step)) return 0;
        step = difference;
    }
    return step;
}

/// Whether numbers of the first line may be names: years at equal steps, or pandas' 0, 1, 2 … above fractions.
bool may_be_names(const std::vector<Field>& first, const std::vector<Field>& second, bool fractions) {
    const auto years = [](const std::vector<Field>& fields) {
        const Index start = step_of(fields) > 0 ? *parse_integer(fields[0].text) : 0;
        return start >= 1500 && start < 2500;
    };
    const bool counts = step_of(first) == 1 && first[0].text == "0";
    if (second.empty()) return false;
    return (years(first) && !years(second)) || (counts && fractions && step_of(second) != 1);
}

/// Whether the two fields of lines such as "12,5" may be one number with a decimal comma, and whether they
/// look like it.
struct DecimalCommas {
    bool possible = true;
    bool likely = false;

    void see(std::string_view line) {
        line = trim(line, " \t");
        const std::size_t comma = line.find(',');
        std::string_view whole = line.substr(0, comma);
        const std::string_view fraction = comma == line.npos ? "" : line.substr(comma + 1);
        const bool sign = !whole.empty() && (whole.front() == '-' || whole.front() == '+');
        if (sign) whole.remove_prefix(1);
        possible = possible && is_whole(whole) && is_whole(fraction);
        constexpr std::size_t many_digits = 9;
        likely = likely || (fraction.size() > 1 && fraction.front() == '0') || fraction.size() >= many_digits ||
                 (sign && whole == "0");
    }
};

constexpr const char* decimal_hint = "--decimal , reads a comma as the decimal point";

/// Returns the column of the matrix for each of `fields` fields, as --columns selects them (-1: none), and the number
/// of columns.
std::pair<std::vector<Index>, Index> chosen_columns(const std::vector<Range>& columns, Index fields,
                                                    const std::string& path) {
    std::vector<Index> targets(static_cast<std::size_t>(fields), -1);
    Index count = 0;
    for (const auto& [begin, end] : columns) {
        if (begin < 0 || begin >= end) throw InvalidArgument(path + ": a range of --columns is empty");
        if (begin >= fields || (end > fields && end != last_column)) {
            throw UnreadableFile(path, fmt::format("has {} columns, and --columns asks for column {}", fields,
                                                   begin >= fields ? begin + 1 : end));
        }
        for (Index j = begin; j < std::min(end, fields); ++j) {
            Index& target = targets[static_cast<std::size_t>(j)];
            if (target >= 0) throw InvalidArgument(fmt::format("{}: --columns asks for column {} twice", path, j + 1));
            target = count++;
        }
    }
    while (!targets.empty() && targets.back() < 0) targets.pop_back();
    return {targets, count};
}

/// Whether the first column of the two first lines holds row names as R writes them: words, or 1 and 2.
bool are_row_names(const std::vector<Field>& first, const std::vector<Field>& second, const CsvHeader& header) {
    if (first[0].quoted || !value_of(first[0].text, header)) return true;
    return first[0].text == "1" && (second.empty() || second[0].text == "2");
}

/// Says why `field`, the f-th of a line, is refused, and which option resolves it.
std::string refusal(std::string_view field, std::size_t f, bool first_line, const CsvHeader& header) {
    constexpr std::string_view begin_comments = "%!/";
    const std::string why = field.empty() ? "is empty" : in_quotes(field) + " is not a number that f64 can hold";
    const bool comma = field.find(',') != field.npos,
               blank = header.separator == ',' && field.find_first_of(" \t") != field.npos;
    const auto has_digit = std::any_of(field.begin(), field.end(), is_digit);
    if (!header.decimal_given && has_digit && (comma || blank)) return fmt::format("{}: {}", why, decimal_hint);
    if (!field.empty() && first_line && begin_comments.find(field[0]) != field.npos)
        return fmt::format("{}: --comment {} leaves out comments that begin with it", why, field[0]);
    const bool name = begins_like_a_name(field);
    std::vector<std::string> ways;
    if (first_line && !header.header) ways.emplace_back("--header takes the line for a header");
    if (first_line && header.header) ways.emplace_back("--skip N leaves out the first N lines");
    if (f == 0 && name && header.targets.size() > 1)
        ways.emplace_back("--columns 2- leaves out the first field of each line");
    if (!name || !first_line)
        ways.push_back(fmt::format("--missing {} reads it as NaN", field.empty() ? "''" : in_quotes(field)));
    return fmt::format("{}: {}", why, fmt::join(ways, ", "));
}

}  // namespace

std::optional<std::string_view> TableLines::next_before_comment() {
    constexpr std::string_view errors[] = {"#N/A", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!"};
    while (std::optional<std::string_view> line = lines_.next()) {
        bool in_quotes = false, starts = true;  // a field may start here
        for (std::size_t i = 0; i < line->size(); ++i) {
            const char c = (*line)[i];
            const auto is_here = [&](std::string_view error) { return line->substr(i).starts_with(error); };
            if (c == comment_ && starts && !in_quotes && std::none_of(std::begin(errors), std::end(errors), is_here)) {
                line = line->substr(0, i);
                break;
            }
            if (c == '"') in_quotes = !in_quotes;
            starts = is_blank(c) || c == ',' || c == ';';
        }
        if (line->find_first_not_of(" \t") != line->npos) return line;
    }
    return std::nullopt;
}

CsvHeader parse_csv_header(std::string_view text, const std::string& path, const MatrixFileOptions& options) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());

    CsvHeader header{.decimal = options.decimal == 0 ? '.' : options.decimal,
                     .decimal_given = options.decimal != 0,
                     .missing = {"NA"},
                     .body = TableLines(text, options.comment)};
    for (const std::string& word : options.missing) {
        if (const std::optional<double> value = parse_real(word, header.decimal))
            header.missing_values.push_back(*value);
        header.missing.push_back(word);
    }
    const auto separator = [&](std::string_view line) {
        return options.delimiter != 0 ? options.delimiter : separator_of(line, header.decimal);
    };

    header.body.skip(options.skip);
    TableLines lines = header.body;
    std::optional<std::string_view> line = lines.next();
    const Index top = lines.number();
    std::vector<Field> names;
    char names_separator = 0;
    if (line) {
        names_separator = separator(*line);
        names = split_fields(*line, names_separator);
        header.header = options.header.value_or(are_names(names, header));
        if (header.header) {
            if (!options.header)
                header.remark = fmt::format("line {} is taken for a header: {}", top, in_quotes(*line));
            header.body = lines;
            line = lines.next();
        } else {
            names.clear();
        }
    }
    if (!line) throw UnreadableFile(path, "holds no numbers");

    const Index first = lines.number();
    const std::string first_line = in_quotes(*line);
    header.separator = separator(*line);
    const std::vector<Field> first_fields = split_fields(*line, header.separator);
    const auto expected = static_cast<Index>(first_fields.size());
    TableLines ahead = lines;
    const std::optional<std::string_view> second = ahead.next();
    const std::vector<Field> second_fields = second ? split_fields(*second, header.separator) : std::vector<Field>();
    if (!header.header && !options.header &&
        may_be_names(first_fields, second_fields, text.find(header.decimal) != text.npos)) {
        throw UnreadableFile(path, fmt::format("line {}, {}, may be a header or data: write --header or --no-header",
                                               first, first_line));
    }

    const bool quotes = text.find('"') != text.npos;  // one search: lines may be short
    DecimalCommas commas{.possible = expected == 2 && header.separator == ',' && options.delimiter == 0 &&
                                     options.decimal == 0 && options.columns.empty() && names.size() != 2};
    for (; line; line = lines.next()) {
        ++header.rows;
        const Index fields = count_fields(*line, header.separator, quotes);
        if (fields != expected) {
            throw UnreadableFile(
                path, fmt::format("line {} has {} fields where line {} has {}{}{}", lines.number(), fields, first,
                                  expected, commas.possible ? ": " : "", commas.possible ? decimal_hint : ""));
        }
        if (commas.possible) commas.see(*line);
    }
    if (commas.possible && (commas.likely || options.one_column || names.size() == 1)) {
        throw UnreadableFile(
            path, fmt::format("line {}, {}, may be two numbers or one with a decimal comma: write --delimiter , "
                              "or --decimal ,",
                              first, first_line));
    }

    // R writes no name for its column of row names
    const Index unnamed_fields = expected - static_cast<Index>(names.size());
    const bool same_separator = names.size() == 1 || names_separator == header.separator;
    const bool one_name_less = unnamed_fields == 1 && same_separator;
    const auto take_names = [&] {
        if (names.empty() || !same_separator || (unnamed_fields != 0 && unnamed_fields != 1)) return;
        header.names.resize(static_cast<std::size_t>(header.cols));
        for (Index f = unnamed_fields; f < static_cast<Index>(header.targets.size()); ++f)
            if (header.targets[f] >= 0) header.names[header.targets[f]] = names[f - unnamed_fields].text;
    };
    if (!options.columns.empty()) {
        std::tie(header.targets, header.cols) = chosen_columns(options.columns, expected, path);
        take_names();
        return header;
    }
    const bool unnamed = !names.empty() && names[0].text.empty();
    const bool index = expected > 1 && (unnamed || one_name_less);
    if (index && !unnamed && !are_row_names(first_fields, second_fields, header)) {
        throw UnreadableFile(path,
                             fmt::format("line {} has {} names for {} columns: write --columns 2- if the first column "
                                         "holds row names, --columns 1- if it is data",
                                         top, names.size(), expected));
    }
    const auto is_quoted = [](const Field& field) { return field.quoted; };
    if (!index && expected > 1 && first_fields[0].quoted &&
        std::none_of(first_fields.begin() + 1, first_fields.end(), is_quoted)) {
        throw UnreadableFile(path,
                             fmt::format("line {}, field 1: {} alone is in double quotes, as a row name is: write "
                                         "--columns 2- to leave out the first column, --columns 1- to read it",
                                         first, in_quotes(first_fields[0].text)));
    }
    if (index) {
        header.remark += header.remark.empty() ? "" : "; ";
        header.remark +=
            "the first column has no name in the header: it is taken for row names, as pandas and R write them, and "
            "left out (--columns 1- reads it)";
    }
    header.cols = expected - index;
    for (Index j = 0; j < expected; ++j) header.targets.push_back(j - index);
    take_names();
    return header;
}

Matrix<double> read_csv(const CsvHeader& header, const std::string& path) {
    Matrix<double> A(header.rows, header.cols);
    TableLines lines = header.body;
    for (Index i = 0; i < header.rows; ++i) {
        const std::optional<std::string_view> line = lines.next();
        FieldReader fields(line.value_or(""), header.separator);
        for (std::size_t f = 0; f < header.targets.size(); ++f) {
            const std::optional<std::string_view> field = fields.next();
            if (!line || !field) throw UnreadableFile(path, "changed while it was read");
            const Index j = header.targets[f];
            if (j < 0) continue;
            const std::optional<double> value = value_of(*field, header);
            if (!value) {
                throw UnreadableFile(path, fmt::format("line {}, field {}: {}", lines.number(), f + 1,
                                                       refusal(*field, f, i == 0, header)));
            }
            A(i, j) = *value;
        }
    }
    return A;
}

}  // namespace quoin::io
