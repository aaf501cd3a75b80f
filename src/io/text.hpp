#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "quoin/matrix.hpp"

namespace quoin::io {

/// The lines of a text in memory, without their ends (\n or \r\n), numbered from 1.
class LineReader {
public:
    explicit LineReader(std::string_view text) : rest_(text) {}
    /// The next line that holds more than blanks, or nothing at the end of the text.
    std::optional<std::string_view> next();
    /// Number of the line that `next` gave last.
    Index number() const { return number_; }

private:
    std::string_view rest_;
    Index number_ = 0;
};

/// Cuts the first word (spaces and tabs separate words) off `line`; empty when there is none.
std::string_view take_word(std::string_view& line);
/// `text` without the characters of `blanks` at its ends.
std::string_view trim(std::string_view text, std::string_view blanks);

/// The double that all of `text` spells in C's notation, whatever the locale; inf and nan are numbers, an overflow is
/// not, and what underflows is 0.
std::optional<double> parse_real(std::string_view text);
/// The integer that all of `text` spells in decimal.
std::optional<Index> parse_integer(std::string_view text);

/// `text` in quotation marks for a message: shortened, with unprintable characters as \xNN.
std::string in_quotes(std::string_view text);

}  // namespace quoin::io
