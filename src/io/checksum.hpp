#pragma once

#include <cstdint>
#include <string_view>

namespace quoin::io {

/// Returns the CRC-32 of IEEE 802.3, byte by byte, without zlib: for short texts.
inline std::uint32_t crc32(std::string_view text) {
    std::uint32_t crc = ~0u;
    for (const char c : text) {
        crc ^= static_cast<unsigned char>(c);
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

}  // namespace quoin::io
