#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quoin::video {

/// Whether text with its numbers read as numbers comes before another: img2 before img10.
bool natural_less(std::string_view a, std::string_view b);

/// Whether the name's extension is one of the images that FrameReader reads.
bool names_image(std::string_view path);

/// The images that a directory or a pattern (see FrameReader) stands for, in natural order of their names; empty where
/// `path` is a file or has no pattern. Throws UnreadableFile for a directory that cannot be listed and where nothing
/// matches.
std::vector<std::string> list_images(const std::string& path);

}  // namespace quoin::video
