#pragma once

#include <string>
#include <vector>

#include "video/frame.hpp"

namespace quoin::video {

/// Draws rows of frames as one RGB picture. Each column has its title, thin separators are between the frames, and grey
/// and coloured frames may be mixed. Every row has one frame a title and all frames have one size. Titles are drawn in
/// capitals, as large as their columns allow, and cut off if even the smallest letters are too wide. `outlined`: the
/// last column has masks, and the edges of their white regions are drawn over the frames of the first column, in red.
/// `memory`: a picture that is no longer needed, whose memory is used. The picture's size depends on the sizes of the
/// frames and on the titles alone.
///
/// Throws InvalidArgument (no frame, frames of several sizes, rows of another length than `titles`).
Image contact_sheet(const std::vector<std::vector<FrameView>>& rows, const std::vector<std::string>& titles,
                    bool outlined = false, Image memory = {});

}  // namespace quoin::video
