#pragma once

// Lines, words and numbers of text files.

#include <optional>
#include <string>
#include <string_view>

#include "quoin/matrix.hpp"

namespace quoin::io {

/// The lines of a text in memory, without their ends (\n or \r\n), numbered from 1.
class LineReader {
public:
    explicit LineReader(std::string_view text) : rest_(text) {}
    /// Returns the next line that holds more than blanks, or nothing at the end of the text.
    std::optional<std::string_view> next();
    /// Passes over `count` lines, blank ones too.
    void skip(Index count);
    /// Returns the number of the line that `next` returned last.
    Index number() const { return number_; }

private:
    std::string_view rest_;
    Index number_ = 0;
};

/// U+2212, which typesetters and some programs write for '-'.
inline constexpr std::string_view minus_sign = "\xe2\x88\x92";

/// Cuts the first word (spaces and tabs separate words) off `line`; empty when there is none.
std::string_view take_word(std::string_view& line);
/// Returns `text` without the characters of `blanks` at its ends.
std::string_view trim(std::string_view text, std::string_view blanks);

/// Returns the double that all of `text` spells, whatever the locale: in C's notation; with Fortran's
/// exponents, 1.5D+00, 1.5Q0 and 1.5-304, which has three digits; with U+2212 for a minus. inf and nan are numbers. An
/// overflow is not a number, and an underflow is 0. `decimal`: the decimal point, '.' or ','.
std::optional<double> parse_real(std::string_view text, char decimal = '.');
/// Returns the integer that all of `text` spells in decimal.
std::optional<Index> parse_integer(std::string_view text);

/// Returns `text` in quotation marks for a message: shortened, with unprintable characters as \xNN.
std::string in_quotes(std::string_view text);

}  // namespace quoin::io
