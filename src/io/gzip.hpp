#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace quoin::io {

/// True if `bytes` begin as a gzip file does.
bool is_gzip(std::string_view bytes);

/// The content of `bytes`, a whole gzip file of one or more members.
/// Throws UnreadableFile for what is damaged or cut off, and OutOfMemory where the content has more than `most` bytes.
std::string gunzip(std::string_view bytes, std::size_t most, const std::string& path);

/// The `size` bytes that the raw deflate stream `bytes` holds. Throws UnreadableFile where it holds anything else.
std::string inflate(std::string_view bytes, std::size_t size, const std::string& path);

/// CRC-32 of IEEE 802.3.
unsigned long crc32_of(std::string_view bytes);

}  // namespace quoin::io
