// Words and numbers of text files, whatever the locale.

#include "io/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

namespace quoin::io {

std::optional<std::string_view> LineReader::next() {
    while (!rest_.empty()) {
        const std::size_t end = std::min(rest_.find('\n'), rest_.size());
        std::string_view line = rest_.substr(0, end);
        rest_.remove_prefix(std::min(end + 1, rest_.size()));
        ++number_;
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        const bool begins_dark = !line.empty() && line.front() > ' ';  // mostly
        if (begins_dark || line.find_first_not_of(" \t") != line.npos) return line;
    }
    return std::nullopt;
}

void LineReader::skip(Index count) {
    for (; count > 0 && !rest_.empty(); --count, ++number_) {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size() - 1) + 1);
    }
}

std::string_view take_word(std::string_view& line) {
    const auto blank = [](char c) { return c == ' ' || c == '\t'; };
    std::size_t begin = 0;
    while (begin < line.size() && blank(line[begin])) ++begin;
    std::size_t end = begin;
    while (end < line.size() && !blank(line[end])) ++end;
    const std::string_view word = line.substr(begin, end - begin);
    line.remove_prefix(end);
    return word;
}

std::string_view trim(std::string_view text, std::string_view blanks) {
    const std::size_t begin = text.find_first_not_of(blanks);
    if (begin == text.npos) return {};
    return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

namespace {

/// std::from_chars of all of `text`, which may have the leading plus sign that std::from_chars refuses.
template <class T>
std::errc convert(std::string_view text, T& value) {
    if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return end == text.data() + text.size() ? error : std::errc::invalid_argument;
}

/// parse_real of C's notation.
std::optional<double> parse_c(std::string_view text) {
    double value;
    const std::errc error = convert(text, value);
    if (error == std::errc{}) return value;
    // result_out_of_range means overflow or underflow; the wider type distinguishes them.
    long double wide;
    const bool wide_holds_it = error == std::errc::result_out_of_range && convert(text, wide) == std::errc{};
    if (wide_holds_it && wide > -1 && wide < 1) return 0;
    return std::nullopt;
}

/// Writes `text` in C's notation. Text that is no number stays no number: letters and signs that make no exponent are
/// kept.
void respell(std::string_view text, char decimal, fmt::basic_memory_buffer<char, 64>& out) {
    constexpr std::size_t exponent_digits = 3;  // without a letter: Fortran drops it to make room for them
    bool digit = false, point = false;          // before this character, which may then begin an exponent
    for (std::size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (text.substr(i).starts_with(minus_sign)) {
            c = '-';
            i += minus_sign.size() - 1;
        }
        if (c == decimal) {
            c = '.';
            point = true;
        } else if (c == '.') {
            c = decimal;  // no number
        } else if (c >= '0' && c <= '9') {
            digit = true;
        } else {
            const bool letter = c == 'D' || c == 'd' || c == 'Q' || c == 'q', sign = c == '+' || c == '-';
            if (digit && letter) c = 'e';
            if (digit && sign && point && text.size() - i - 1 == exponent_digits) out.push_back('e');
            digit = point = false;
        }
        out.push_back(c);
    }
}

}  // namespace

std::optional<double> parse_real(std::string_view text, char decimal) {
    if (decimal == '.') {
        if (const std::optional<double> value = parse_c(text)) return value;
    }
    fmt::basic_memory_buffer<char, 64> spelled;
    respell(text, decimal, spelled);
    return parse_c({spelled.data(), spelled.size()});
}

std::optional<Index> parse_integer(std::string_view text) {
    Index value;
    if (convert(text, value) == std::errc{}) return value;
    return std::nullopt;
}

std::string in_quotes(std::string_view text) {
    constexpr std::size_t longest = 40;
    std::string out = "'";
    for (const char c : text.substr(0, longest)) {
        if (c >= ' ' && c <= '~') {
            out += c;
        } else {
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        }
    }
    out += text.size() > longest ? "...'" : "'";
    return out;
}

}  // namespace quoin::io
