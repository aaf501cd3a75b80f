#pragma once

#include <string>
#include <vector>

#include "video/frame.hpp"

namespace quoin::video {

/// Rows of frames as one RGB picture: each column under its title, thin separators between, grey frames beside coloured
/// ones. Every row has one frame a title and all frames have one size. Titles are drawn in capitals, as large as their
/// columns allow, and cut off where even the smallest letters are too wide. `outlined`: frames of the last column are masks, and the
/// edges of what is white there are drawn over those of the first, in red. A picture that is needed no more may give its memory.
///
/// Throws InvalidArgument (no frame, frames of several sizes, rows of another length than `titles`).
Image contact_sheet(const std::vector<std::vector<FrameView>>& rows, const std::vector<std::string>& titles,
                    bool outlined = false, Image memory = {});

/// The contact sheet of one row: a frame of the video that compares its columns. Its size depends on the sizes and
/// titles alone.
Image side_by_side(const std::vector<FrameView>& columns, const std::vector<std::string>& titles, bool outlined = false,
                   Image memory = {});

}  // namespace quoin::video
