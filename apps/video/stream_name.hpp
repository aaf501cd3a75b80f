#pragma once

#include <string>

namespace quoin::video {

/// Whether an input names no file but a stream: "-" standard input, or an address that FFmpeg knows, as rtsp://….
bool names_stream(const std::string& path);

}  // namespace quoin::video
