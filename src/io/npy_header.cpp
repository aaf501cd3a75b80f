// Parses and composes the header of an .npy file.

#include "io/npy_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "io/text.hpp"
#include "quoin/error.hpp"

namespace quoin::io {
namespace {

struct TypeName {
    std::string_view name;
    NpyType type;
    std::size_t bytes;
};

constexpr TypeName element_types[] = {
    {"f4", NpyType::F4, 4}, {"f8", NpyType::F8, 8}, {"i1", NpyType::I1, 1}, {"i2", NpyType::I2, 2},
    {"i4", NpyType::I4, 4}, {"i8", NpyType::I8, 8}, {"u1", NpyType::U1, 1}, {"u2", NpyType::U2, 2},
    {"u4", NpyType::U4, 4}, {"u8", NpyType::U8, 8}, {"b1", NpyType::B1, 1},
};

/// NumPy's word for the types that `element_types` leaves out, or "unknown".
std::string_view kind_of(std::string_view name) {
    if (name == "f2") return "half precision";
    if (name.empty()) return "unknown";
    switch (name[0]) {
        case 'f': return "extended precision";
        case 'c': return "complex";
        case 'O': return "object";
        case 'S':
        case 'a':
        case 'U': return "string";
        case 'M':
        case 'm': return "date or time";
        case 'V': return "structured";
        default: return "unknown";
    }
}

constexpr std::string_view supported = "Quoin reads f4, f8, the integer types and bool";

/// A parser of the Python literal that a header is: a dict with exactly the keys descr (a string), fortran_order (a
/// bool) and shape (a tuple of integers), in any order.
class HeaderParser {
public:
    HeaderParser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

    NpyHeader parse() {
        NpyHeader header;
        bool descr = false, order = false, shape = false;
        expect('{');
        while (!accept('}')) {
            const std::string_view key = string("a key");
            bool* seen = key == "descr" ? &descr : key == "fortran_order" ? &order : key == "shape" ? &shape : nullptr;
            if (seen == nullptr) refuse(fmt::format("unknown key {}", in_quotes(key)));
            if (*seen) refuse(fmt::format("key {} appears twice", in_quotes(key)));
            *seen = true;
            expect(':');
            if (seen == &descr) {
                parse_type(header);
            } else if (seen == &order) {
                header.fortran_order = boolean();
            } else {
                parse_shape(header);
            }
            if (!accept(',')) {
                expect('}');
                break;
            }
        }
        skip_blanks();
        if (position_ != text_.size()) refuse(fmt::format("text follows the dict at byte {}", position_));
        if (!descr) refuse("key 'descr' is missing");
        if (!order) refuse("key 'fortran_order' is missing");
        if (!shape) refuse("key 'shape' is missing");
        return header;
    }

private:
    [[noreturn]] void refuse(const std::string& why) const {
        throw UnreadableFile(path_, fmt::format("malformed .npy header: {}", why));
    }

    void skip_blanks() { position_ = std::min(text_.find_first_not_of(" \t\n\r", position_), text_.size()); }

    /// Returns the next character that is not a blank, or 0 at the end.
    char peek() {
        skip_blanks();
        return position_ < text_.size() ? text_[position_] : '\0';
    }

    bool accept(char c) {
        if (peek() != c) return false;
        ++position_;
        return true;
    }

    void expect(char c) {
        if (!accept(c)) refuse(fmt::format("'{}' expected at byte {}", c, position_));
    }

    std::string_view string(std::string_view what) {
        const char quote = peek();
        if (quote != '\'' && quote != '"') refuse(fmt::format("{} must be a string, at byte {}", what, position_));
        const std::size_t begin = position_ + 1;
        const std::size_t end = text_.find(quote, begin);
        if (end == text_.npos) refuse(fmt::format("the string at byte {} does not end", position_));
        position_ = end + 1;
        return text_.substr(begin, end - begin);
    }

    /// A run of letters and digits, with its sign.
    std::string_view word() {
        skip_blanks();
        const auto belongs = [](char c) {
            return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' ||
                   c == '.' || c == '_';
        };
        const std::size_t begin = position_;
        while (position_ < text_.size() && belongs(text_[position_])) ++position_;
        return text_.substr(begin, position_ - begin);
    }

    bool boolean() {
        const std::string_view value = word();
        if (value != "True" && value != "False") refuse("fortran_order is neither True nor False");
        return value == "True";
    }

    Index dimension() {
        std::string_view digits = word();
        if (digits.size() > 1 && digits.back() == 'L') digits.remove_suffix(1);  // a long integer of Python 2
        const bool negative = digits.size() > 1 && digits[0] == '-';
        const std::string_view magnitude = digits.substr(negative ? 1 : 0);
        if (magnitude.empty() || magnitude.find_first_not_of("0123456789") != magnitude.npos) {
            refuse("shape is not a tuple of integers");
        }
        const std::optional<Index> value = parse_integer(magnitude);
        if (!value) refuse(fmt::format("dimension {} exceeds 64 bits", in_quotes(digits)));
        if (negative) refuse(fmt::format("dimension {} is negative", digits));
        return *value;
    }

    void parse_shape(NpyHeader& header) {
        if (!accept('(')) refuse("shape is not a tuple");
        std::vector<Index> shape;
        bool comma = true;
        while (!accept(')')) {
            if (!comma) expect(',');
            shape.push_back(dimension());
            comma = accept(',');
        }
        if (shape.size() == 1 && !comma) refuse("shape is not a tuple");  // (3) is an integer
        if (shape.empty() || shape.size() > 2) {
            throw UnreadableFile(path_, fmt::format("a {}-dimensional array is not a matrix", shape.size()));
        }
        header.rows = shape[0];
        header.cols = shape.size() == 2 ? shape[1] : 1;
    }

    void parse_type(NpyHeader& header) {
        const char c = peek();
        if (c == '[' || c == '(') {
            throw UnreadableFile(path_, fmt::format("structured elements are not supported: {}", supported));
        }
        const std::string_view descr = string("descr");
        const bool has_order = !descr.empty() && std::string_view("<>=|").find(descr[0]) != std::string_view::npos;
        const char order = has_order ? descr[0] : '=';
        const std::string_view name = descr.substr(has_order ? 1 : 0);
        const auto* type = std::find_if(std::begin(element_types), std::end(element_types),
                                        [&](const TypeName& t) { return t.name == name; });
        if (type == std::end(element_types)) {
            throw UnreadableFile(path_, fmt::format("elements of type {} ({}) are not supported: {}", in_quotes(descr),
                                                    kind_of(name), supported));
        }
        if (order == '|' && type->bytes > 1) refuse(fmt::format("descr {} has no byte order", in_quotes(descr)));
        header.type = type->type;
        header.element_bytes = type->bytes;
        header.swapped = type->bytes > 1 && order == (std::endian::native == std::endian::little ? '>' : '<');
    }

    std::string_view text_;
    const std::string& path_;
    std::size_t position_ = 0;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view file, const std::string& path) {
    // magic, major and minor version, length of the header (little-endian, 2 bytes in version 1, then 4), header, data
    constexpr std::size_t longest_header = 65535;
    const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(file[i])); };
    if (!file.starts_with(npy_magic.substr(0, file.size()))) {
        throw UnreadableFile(path, "not an .npy file: its first bytes are not \\x93NUMPY");
    }
    if (file.size() < npy_magic.size() + 2) throw UnreadableFile(path, "truncated .npy header");
    const std::size_t major = byte(6), minor = byte(7);
    if (major < 1 || major > 3 || minor != 0) {
        throw UnreadableFile(path, fmt::format(".npy version {}.{} is not known", major, minor));
    }
    const std::size_t length_bytes = major == 1 ? 2 : 4;
    const std::size_t begin = npy_magic.size() + 2 + length_bytes;
    if (file.size() < begin) throw UnreadableFile(path, "truncated .npy header");
    std::size_t length = 0;
    for (std::size_t i = 0; i < length_bytes; ++i) length |= byte(begin - length_bytes + i) << (8 * i);
    if (length > longest_header) {
        throw UnreadableFile(
            path, fmt::format("the .npy header claims {} bytes, more than the {} that a matrix's may have", length,
                              longest_header));
    }
    if (file.size() - begin < length) {
        throw UnreadableFile(
            path, fmt::format("truncated .npy header: expected {} bytes, file has {}", length, file.size() - begin));
    }

    NpyHeader header = HeaderParser(file.substr(begin, length), path).parse();
    header.data_offset = begin + length;
    // max(1, ·): a leading dimension is as long as its side even where the other side is 0.
    Index elements, bytes;
    if (__builtin_mul_overflow(std::max<Index>(1, header.rows), std::max<Index>(1, header.cols), &elements) ||
        __builtin_mul_overflow(elements, Index{sizeof(double)}, &bytes)) {
        throw UnreadableFile(path, fmt::format("shape {} x {} is impossibly large", header.rows, header.cols));
    }
    const std::size_t expected = static_cast<std::size_t>(header.rows * header.cols) * header.element_bytes;
    const std::size_t present = file.size() - header.data_offset;
    if (present != expected) {
        throw UnreadableFile(path, fmt::format("expected {} bytes of data, file has {}", expected, present));
    }
    return header;
}

template <class T>
std::string compose_npy_header(bool fortran_order, const std::string& shape) {
    constexpr std::size_t alignment = 64;
    std::string dict =
        fmt::format("{{'descr': '{}{}{}', 'fortran_order': {}, 'shape': {}, }}",
                    std::endian::native == std::endian::little ? '<' : '>', std::is_integral_v<T> ? 'i' : 'f',
                    sizeof(T), fortran_order ? "True" : "False", shape);
    const std::size_t prefix = npy_magic.size() + 4;
    const std::size_t total = (prefix + dict.size() + 1 + alignment - 1) / alignment * alignment;
    dict.append(total - prefix - dict.size() - 1, ' ');
    dict += '\n';
    std::string header(npy_magic);
    header += {'\x01', '\x00', static_cast<char>(dict.size() & 0xff), static_cast<char>(dict.size() >> 8)};
    return header + dict;
}

template std::string compose_npy_header<float>(bool, const std::string&);
template std::string compose_npy_header<double>(bool, const std::string&);
template std::string compose_npy_header<Index>(bool, const std::string&);

}  // namespace quoin::io
