#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quoin::io {

/// One file in a ZIP archive.
struct ZipMember {
    std::string name;
    std::string_view packed;  ///< its bytes in the archive
    bool deflated = false;    ///< otherwise they are its content
    std::size_t size = 0;     ///< of the content
    std::uint32_t crc = 0;    ///< of the content
};

/// True if `bytes` begin as a ZIP archive does, an empty one included.
bool is_zip(std::string_view bytes);

/// The members of `bytes`, a whole archive, ZIP64 included. Throws UnreadableFile for what is damaged or cut off.
std::vector<ZipMember> zip_members(std::string_view bytes, const std::string& path);

/// The content of a member: its bytes in the archive, or, where they are compressed, `storage`, which takes it.
/// Throws UnreadableFile where it is damaged, encrypted or compressed by other methods, and OutOfMemory where it has more than
/// `most` bytes and is compressed.
std::string_view zip_content(const ZipMember& member, std::string& storage, std::size_t most, const std::string& path);

}  // namespace quoin::io
