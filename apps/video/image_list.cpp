#include "video/image_list.hpp"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>

#include "quoin/error.hpp"

namespace quoin::video {
namespace {

namespace fs = std::filesystem;

constexpr std::array extensions{"png", "bmp", "jpg", "jpeg", "tif", "tiff", "pgm", "ppm", "webp"};

bool is_digit(char c) { return '0' <= c && c <= '9'; }

/// The run of digits at the beginning of text.
std::string_view leading_digits(std::string_view text) {
    return text.substr(0,
                       static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin()));
}

std::string_view without_zeros(std::string_view digits) {
    return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

/// Paths of the directory's files whose names are wanted. Throws UnreadableFile(path, ...).
std::vector<std::string> matching_files(const std::string& path, const fs::path& directory,
                                        const std::function<bool(const std::string&)>& wanted) {
    std::vector<std::string> files;
    std::error_code error;
    fs::directory_iterator entry(directory.empty() ? "." : directory, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        std::error_code ignored;
        if (wanted(name) && !entry->is_directory(ignored)) files.push_back((directory / name).string());
    }
    if (error) throw UnreadableFile(path, error.message());
    return files;
}

/// A file name with one %d or %0Nd, as of printf.
struct NumberedName {
    std::string before, after;
    std::size_t width = 1;

    bool matches(std::string_view name) const {
        if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after)) {
            return false;
        }
        name.remove_prefix(before.size());
        name.remove_suffix(after.size());
        return leading_digits(name).size() == name.size() &&
               (name.size() == width || (name.size() > width && name.front() != '0'));
    }
};

std::optional<NumberedName> parse_numbered(std::string_view name) {
    NumberedName pattern;
    bool found = false;
    while (!name.empty()) {
        std::string& text = found ? pattern.after : pattern.before;
        if (name.front() != '%' || name.starts_with("%%")) {
            text += name.front();
            name.remove_prefix(name.front() == '%' ? 2 : 1);
            continue;
        }
        name.remove_prefix(1);
        const std::string_view digits = leading_digits(name);
        // %d, or %0N with N of one or two digits
        const bool valid = digits.empty() || (digits.front() == '0' && (digits.size() == 2 || digits.size() == 3));
        name.remove_prefix(digits.size());
        if (found || !valid || !name.starts_with('d')) return std::nullopt;
        name.remove_prefix(1);
        if (!digits.empty()) pattern.width = std::max<std::size_t>(1, std::stoul(std::string(digits)));
        found = true;
    }
    return found ? std::optional(pattern) : std::nullopt;
}

std::vector<std::string> expand_glob(const std::string& pattern) {
    glob_t matches{};
    const int status = glob(pattern.c_str(), GLOB_NOSORT, nullptr, &matches);
    std::vector<std::string> files;
    if (status == 0) files.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
    globfree(&matches);
    if (status == GLOB_NOSPACE) throw OutOfMemory(pattern + ": no memory for its list of files");
    std::error_code ignored;
    std::erase_if(files, [&](const std::string& file) { return fs::is_directory(file, ignored); });
    return files;
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
    const std::string_view all_a = a, all_b = b;
    while (!a.empty() && !b.empty()) {
        if (is_digit(a.front()) && is_digit(b.front())) {
            const std::string_view digits_a = leading_digits(a), digits_b = leading_digits(b);
            const std::string_view value_a = without_zeros(digits_a), value_b = without_zeros(digits_b);
            if (value_a.size() != value_b.size()) return value_a.size() < value_b.size();
            if (value_a != value_b) return value_a < value_b;
            a.remove_prefix(digits_a.size());
            b.remove_prefix(digits_b.size());
        } else {
            if (a.front() != b.front()) return a.front() < b.front();
            a.remove_prefix(1);
            b.remove_prefix(1);
        }
    }
    if (a.empty() != b.empty()) return a.empty();
    return all_a < all_b;  // they differ in leading zeros
}

bool names_image(std::string_view path) {
    std::string extension = fs::path(path).extension().string();
    std::transform(extension.begin(), extension.end(), extension.begin(),
                   [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return !extension.empty() &&
           std::find(extensions.begin(), extensions.end(), extension.substr(1)) != extensions.end();
}

std::vector<std::string> list_images(const std::string& path) {
    std::vector<std::string> files;
    std::error_code ignored;
    const fs::path target(path);
    if (fs::is_directory(target, ignored)) {
        files = matching_files(path, target,
                               [](const std::string& name) { return name.front() != '.' && names_image(name); });
        if (files.empty()) throw UnreadableFile(path, fmt::format("holds no image ({})", fmt::join(extensions, " ")));
    } else if (fs::exists(fs::symlink_status(target, ignored))) {
        return {};
    } else if (const auto numbered = parse_numbered(target.filename().string())) {
        files = matching_files(path, target.parent_path(),
                               [&](const std::string& name) { return numbered->matches(name); });
    } else if (path.find_first_of("*?[") != path.npos) {
        files = expand_glob(path);
    } else {
        return {};
    }
    if (files.empty()) throw UnreadableFile(path, "no file matches");
    std::sort(files.begin(), files.end(), natural_less);
    return files;
}

}  // namespace quoin::video
