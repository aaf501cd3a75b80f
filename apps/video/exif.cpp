#include "video/exif.hpp"

#include <cstddef>
#include <cstdint>

namespace quoin::video {
namespace {

/// An unsigned number of `size` bytes; 0 beyond the end.
std::uint32_t number_at(std::string_view bytes, std::size_t at, std::size_t size, bool little_endian) {
    if (at > bytes.size() || size > bytes.size() - at) return 0;
    std::uint32_t value = 0;
    for (std::size_t k = 0; k < size; ++k) {
        value = value << 8 | static_cast<unsigned char>(bytes[little_endian ? at + size - 1 - k : at + k]);
    }
    return value;
}

/// The value of tag 274 in the first directory of a TIFF structure, which EXIF data is.
int orientation_of_tiff(std::string_view tiff) {
    const bool little = tiff.starts_with(std::string_view("II*\0", 4));
    if (!little && !tiff.starts_with(std::string_view("MM\0*", 4))) return 1;
    const std::size_t directory = number_at(tiff, 4, 4, little), entries = number_at(tiff, directory, 2, little);
    for (std::size_t k = 0; k < entries; ++k) {
        const std::size_t entry = directory + 2 + 12 * k;
        if (number_at(tiff, entry, 2, little) != 274) continue;
        const auto value = static_cast<int>(number_at(tiff, entry + 8, 2, little));
        return 1 <= value && value <= 8 ? value : 1;
    }
    return 1;
}

/// The content of the first piece called `name`, from `at` on. A piece has a header of 8 bytes, its name at `name_at`
/// and the size of its content at `size_at`. `trailer` bytes follow the content, and if `even` one more after an odd
/// size.
std::string_view find_piece(std::string_view file, std::size_t at, std::string_view name, std::size_t name_at,
                            std::size_t size_at, bool little_endian, std::size_t trailer, bool even) {
    while (at + 8 <= file.size()) {
        const std::size_t size = number_at(file, at + size_at, 4, little_endian);
        if (file.substr(at + name_at, 4) == name) return file.substr(at + 8, size);
        at += 8 + size + trailer + (even ? size % 2 : 0);
    }
    return {};
}

/// The TIFF structure after "Exif" in one of the segments before the picture of a JPEG.
std::string_view exif_of_jpeg(std::string_view file) {
    constexpr std::string_view exif("Exif\0\0", 6);
    for (std::size_t at = 2; at + 4 <= file.size() && file[at] == '\xff';) {
        const auto marker = static_cast<unsigned char>(file[at + 1]);
        if (marker == 0xff) {  // padding
            ++at;
            continue;
        }
        if (marker == 0xda) break;
        const std::size_t size = number_at(file, at + 2, 2, false);
        const std::string_view segment = file.substr(at + 4, size < 2 ? 0 : size - 2);
        if (marker == 0xe1 && segment.starts_with(exif)) return segment.substr(exif.size());
        at += 2 + size;
    }
    return {};
}

}  // namespace

int exif_orientation(std::string_view file) {
    if (file.starts_with("\xff\xd8")) return orientation_of_tiff(exif_of_jpeg(file));
    if (file.starts_with("\x89PNG")) return orientation_of_tiff(find_piece(file, 8, "eXIf", 4, 0, false, 4, false));
    if (file.starts_with("RIFF") && file.substr(8, 4) == "WEBP") {
        std::string_view exif = find_piece(file, 12, "EXIF", 0, 4, true, 0, true);
        if (exif.starts_with(std::string_view("Exif\0\0", 6))) exif.remove_prefix(6);  // as some writers have it
        return orientation_of_tiff(exif);
    }
    return orientation_of_tiff(file);
}

}  // namespace quoin::video
