#pragma once

#include <string>

namespace quoin::video {

/// Whether an input names no file but a stream: "-" standard input, an address that FFmpeg knows, as rtsp://…, or a
/// camera.
bool names_stream(const std::string& path);
/// Whether it is /dev/video0 or another of Video4Linux's devices.
bool names_camera(const std::string& path);

}  // namespace quoin::video
