// Reads Matrix Market files, array and coordinate, with the line's number in every refusal.

#include "io/matrix_market.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "quoin/error.hpp"

namespace quoin::io {
namespace {

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return out;
}

[[noreturn]] void refuse(const std::string& path, Index line, const std::string& why) {
    throw UnreadableFile(path, fmt::format("line {}: {}", line, why));
}

/// Returns the next line that is neither blank nor a comment.
std::optional<std::string_view> next_line(LineReader& lines) {
    std::optional<std::string_view> line;
    do {
        line = lines.next();
    } while (line && line->front() == '%');
    return line;
}

Index parse_size(std::string_view word, const std::string& path, Index line) {
    const std::optional<Index> size = parse_integer(word);
    if (!size) refuse(path, line, fmt::format("size {} is not a 64-bit integer", in_quotes(word)));
    if (*size < 0) refuse(path, line, fmt::format("size {} is negative", *size));
    return *size;
}

/// Returns the zero-based index for the one-based `word`.
Index parse_index(std::string_view word, std::string_view what, Index size, const std::string& path, Index line) {
    const std::optional<Index> index = parse_integer(word);
    if (!index) refuse(path, line, fmt::format("{} index {} is not an integer", what, in_quotes(word)));
    if (*index < 1 || *index > size) refuse(path, line, fmt::format("{} index {} is not in 1..{}", what, *index, size));
    return *index - 1;
}

double parse_value(std::string_view word, const MatrixMarketHeader& header, const std::string& path, Index line) {
    if (word.empty()) refuse(path, line, "the entry has no value");
    const std::optional<double> value = parse_real(word);
    if (!value) refuse(path, line, fmt::format("{} is not a number that f64 can hold", in_quotes(word)));
    if (header.integer && std::trunc(*value) != *value) {
        refuse(path, line, fmt::format("{} is not an integer, as the banner promises", in_quotes(word)));
    }
    return *value;
}

void parse_banner(std::string_view banner, MatrixMarketHeader& header, const std::string& path) {
    take_word(banner);
    const std::string object = lower(take_word(banner));
    const std::string format = lower(take_word(banner));
    const std::string field = lower(take_word(banner));
    const std::string symmetry = lower(take_word(banner));
    if (symmetry.empty() || !take_word(banner).empty()) {
        refuse(path, 1, "the banner must read '%%MatrixMarket matrix FORMAT FIELD SYMMETRY'");
    }
    if (object != "matrix") refuse(path, 1, fmt::format("object {} is not 'matrix'", in_quotes(object)));

    header.coordinate = format == "coordinate";
    if (!header.coordinate && format != "array") {
        refuse(path, 1, fmt::format("format {} is neither 'coordinate' nor 'array'", in_quotes(format)));
    }
    header.integer = field == "integer";
    header.pattern = field == "pattern";
    if (!header.integer && !header.pattern && field != "real") {
        refuse(path, 1,
               fmt::format("field {} is not supported: Quoin reads real, integer and pattern", in_quotes(field)));
    }
    if (symmetry == "symmetric") {
        header.symmetry = MatrixMarketSymmetry::Symmetric;
    } else if (symmetry == "skew-symmetric") {
        header.symmetry = MatrixMarketSymmetry::SkewSymmetric;
    } else if (symmetry != "general") {
        refuse(path, 1,
               fmt::format("symmetry {} is not supported: Quoin reads general, symmetric and skew-symmetric",
                           in_quotes(symmetry)));
    }
    if (header.pattern && !header.coordinate) refuse(path, 1, "an array has values, so it cannot be a pattern");
    if (header.pattern && header.symmetry == MatrixMarketSymmetry::SkewSymmetric) {
        refuse(path, 1, "a pattern cannot be skew-symmetric");
    }
}

/// Returns the number of entries that an array file of this shape stores: all, or the lower triangle with or without
/// its diagonal.
Index array_entries(const MatrixMarketHeader& header) {
    const Index m = header.rows, n = header.cols;
    switch (header.symmetry) {
        case MatrixMarketSymmetry::General: return m * n;
        case MatrixMarketSymmetry::Symmetric: return n * (n + 1) / 2;
        case MatrixMarketSymmetry::SkewSymmetric: return n == 0 ? 0 : n * (n - 1) / 2;
    }
    return 0;
}

}  // namespace

bool is_matrix_market(std::string_view text) {
    constexpr std::string_view banner_start = "%%matrixmarket";
    return lower(text.substr(0, banner_start.size())) == banner_start;
}

MatrixMarketHeader parse_matrix_market_header(std::string_view text, const std::string& path) {
    MatrixMarketHeader header{.body = LineReader(text)};
    if (!is_matrix_market(text)) {
        throw UnreadableFile(path, "not a Matrix Market file: its first line is not a '%%MatrixMarket' banner");
    }
    parse_banner(*header.body.next(), header, path);

    const std::optional<std::string_view> size_line = next_line(header.body);
    if (!size_line) throw UnreadableFile(path, "ends before the size line");
    const Index line = header.body.number();
    std::string_view rest = *size_line;
    const std::string_view rows = take_word(rest), cols = take_word(rest);
    const std::string_view entries = header.coordinate ? take_word(rest) : cols;
    if (entries.empty() || !take_word(rest).empty()) {
        refuse(path, line, fmt::format("the size line must have {} numbers", header.coordinate ? 3 : 2));
    }
    header.rows = parse_size(rows, path, line);
    header.cols = parse_size(cols, path, line);
    if (header.symmetry != MatrixMarketSymmetry::General && header.rows != header.cols) {
        refuse(path, line, fmt::format("a symmetric matrix cannot be {} x {}", header.rows, header.cols));
    }
    Index elements, bytes;
    if (__builtin_mul_overflow(std::max<Index>(1, header.rows), std::max<Index>(1, header.cols), &elements) ||
        __builtin_mul_overflow(elements, Index{sizeof(double)}, &bytes)) {
        refuse(path, line, fmt::format("shape {} x {} is impossibly large", header.rows, header.cols));
    }
    header.entries = header.coordinate ? parse_size(entries, path, line) : array_entries(header);
    // An entry takes a digit and the end of its line.
    if (header.entries > static_cast<Index>(text.size()) / 2) {
        refuse(path, line, fmt::format("{} entries do not fit in a file of {} bytes", header.entries, text.size()));
    }
    return header;
}

Matrix<double> read_matrix_market(const MatrixMarketHeader& header, const std::string& path) {
    Matrix<double> A(header.rows, header.cols);
    std::fill_n(A.data(), header.rows * header.cols, 0.0);
    const bool general = header.symmetry == MatrixMarketSymmetry::General;
    const bool skew = header.symmetry == MatrixMarketSymmetry::SkewSymmetric;
    const auto add = [&](Index i, Index j, double value) {
        A(i, j) += value;
        if (!general && i != j) A(j, i) += skew ? -value : value;
    };

    LineReader lines = header.body;
    Index i = skew ? 1 : 0, j = 0;  // of an array's next entry
    for (Index entry = 0; entry < header.entries; ++entry) {
        std::optional<std::string_view> line = next_line(lines);
        if (!line) {
            throw UnreadableFile(path, fmt::format("ends after {} of {} entries", entry, header.entries));
        }
        const Index number = lines.number();
        if (header.coordinate) {
            i = parse_index(take_word(*line), "row", header.rows, path, number);
            j = parse_index(take_word(*line), "column", header.cols, path, number);
            if (!general && i < j + (skew ? 1 : 0)) {
                refuse(path, number,
                       fmt::format("entry ({}, {}) of a {} matrix must lie below the diagonal{}", i + 1, j + 1,
                                   skew ? "skew-symmetric" : "symmetric", skew ? "" : " or on it"));
            }
        }
        add(i, j, header.pattern ? 1.0 : parse_value(take_word(*line), header, path, number));
        if (const std::string_view extra = take_word(*line); !extra.empty()) {
            refuse(path, number, fmt::format("{} follows the entry", in_quotes(extra)));
        }
        if (!header.coordinate && ++i == header.rows) {
            ++j;
            i = general ? 0 : j + (skew ? 1 : 0);
        }
    }
    if (next_line(lines)) {
        refuse(path, lines.number(),
               fmt::format("more than the {} entries that the size line announces", header.entries));
    }
    return A;
}

}  // namespace quoin::io
