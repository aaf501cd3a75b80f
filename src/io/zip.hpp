#pragma once

// The members of a ZIP archive, for .npz files.

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

/// Returns the members of `bytes`, a whole archive, also in ZIP64 format. Throws UnreadableFile for damaged or
/// truncated archives.
std::vector<ZipMember> zip_members(std::string_view bytes, const std::string& path);

/// Returns the content of a member: its bytes in the archive or, if they are compressed, `storage`, to which the
/// content is written. Throws UnreadableFile if it is damaged, encrypted or compressed by other methods, and
/// OutOfMemory if it is compressed and has more than `most` bytes.
std::string_view zip_content(const ZipMember& member, std::string& storage, std::size_t most, const std::string& path);

}  // namespace quoin::io
