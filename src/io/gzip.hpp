#pragma once

// Decompression of gzip files.

#include <cstddef>
#include <string>
#include <string_view>

namespace quoin::io {

/// True if `bytes` begin as a gzip file does.
bool is_gzip(std::string_view bytes);

/// Returns the content of `bytes`, a whole gzip file of one or more members. Throws UnreadableFile for damaged or
/// truncated files, and OutOfMemory if the content has more than `most` bytes.
std::string gunzip(std::string_view bytes, std::size_t most, const std::string& path);

/// Returns the `size` bytes of the raw deflate stream `bytes`. Throws UnreadableFile if the stream is damaged or has
/// another size.
std::string inflate(std::string_view bytes, std::size_t size, const std::string& path);

/// CRC-32 of IEEE 802.3.
unsigned long crc32_of(std::string_view bytes);

}  // namespace quoin::io
