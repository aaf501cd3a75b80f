#include "video/contact_sheet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "quoin/error.hpp"
#include "video/lettering.hpp"

namespace quoin::video {
namespace {

constexpr Rgb paper{255, 255, 255}, ink{32, 32, 32}, red{255, 32, 32};
constexpr Index separator = 4;

/// Frames of one format's width and height, a column under each title.
void check(const std::vector<std::vector<FrameView>>& rows, const std::vector<std::string>& titles) {
    if (rows.empty() || titles.empty()) throw InvalidArgument("a contact sheet needs a frame");
    for (const std::vector<FrameView>& row : rows) {
        if (row.size() != titles.size()) {
            throw InvalidArgument(
                fmt::format("a contact sheet has {} titles and a row of {} frames", titles.size(), row.size()));
        }
        for (const FrameView& frame : row) {
            const FrameFormat &format = frame.format, &first = rows[0][0].format;
            check_format(format);
            check_frame(format, frame.pixels);
            if (format.width != first.width || format.height != first.height) {
                throw InvalidArgument(fmt::format("a contact sheet has frames of {} x {} and of {} x {}", first.width,
                                                  first.height, format.width, format.height));
            }
        }
    }
}

/// Copies a frame, grey or RGB, to (x, y).
void place(const FrameView& frame, Image& sheet, Index x, Index y) {
    const FrameFormat& f = frame.format;
#pragma omp parallel for schedule(static)
    for (Index i = 0; i < f.height; ++i) {
        const std::uint8_t* from = frame.pixels.data() + i * f.width * f.channels;
        std::uint8_t* to = sheet.pixels.data() + 3 * ((y + i) * sheet.format.width + x);
        if (f.channels == 3) {
            std::memcpy(to, from, static_cast<std::size_t>(3 * f.width));
        } else {
            for (Index j = 0; j < f.width; ++j) std::fill_n(to + 3 * j, 3, from[j]);
        }
    }
}

/// Draws the pixels of a mask that have a neighbour outside it over the frame at (x, y).
void outline(const FrameView& mask, Image& sheet, Index x, Index y) {
    const FrameFormat& f = mask.format;
    const auto white = [&](Index i, Index j) {
        const Index row = std::clamp<Index>(i, 0, f.height - 1), col = std::clamp<Index>(j, 0, f.width - 1);
        return mask.pixels[(row * f.width + col) * f.channels] >= 128;
    };
#pragma omp parallel for schedule(static)
    for (Index i = 0; i < f.height; ++i) {
        for (Index j = 0; j < f.width; ++j) {
            if (!white(i, j) || (white(i - 1, j) && white(i + 1, j) && white(i, j - 1) && white(i, j + 1))) continue;
            std::copy(red.begin(), red.end(), sheet.pixels.begin() + 3 * ((y + i) * sheet.format.width + x + j));
        }
    }
}

}  // namespace

Image contact_sheet(const std::vector<std::vector<FrameView>>& rows, const std::vector<std::string>& titles,
                    bool outlined) {
    check(rows, titles);
    const Index columns = static_cast<Index>(titles.size()), width = rows[0][0].format.width,
                height = rows[0][0].format.height;
    Index longest = 0;
    for (const std::string& title : titles) longest = std::max(longest, static_cast<Index>(title.size()));
    // a title takes at most its column's width, and a twelfth of its height
    Index scale = std::max<Index>(1, height / (12 * text_height(1)));
    while (scale > 1 && text_width(longest, scale) > width) --scale;
    const Index margin = longest > 0 ? 2 * scale : 0, heading = longest > 0 ? text_height(scale) + 2 * margin : 0;

    Image sheet;
    sheet.format = {columns * width + (columns - 1) * separator,
                    heading + static_cast<Index>(rows.size()) * (height + separator) - separator, 3};
    sheet.pixels.assign(static_cast<std::size_t>(sheet.format.bytes()), paper[0]);
    for (Index j = 0; j < columns; ++j) {
        const Index x = j * (width + separator), fitting = (width / scale + 1) / 6;
        const std::string_view title = std::string_view(titles[j]).substr(0, static_cast<std::size_t>(fitting));
        draw_text(sheet, x + (width - text_width(static_cast<Index>(title.size()), scale)) / 2, margin, title, scale,
                  ink);
        for (Index i = 0; i < static_cast<Index>(rows.size()); ++i) {
            place(rows[i][j], sheet, x, heading + i * (height + separator));
            if (outlined && j == 0) outline(rows[i].back(), sheet, x, heading + i * (height + separator));
        }
    }
    return sheet;
}

Image side_by_side(const std::vector<FrameView>& columns, const std::vector<std::string>& titles, bool outlined) {
    return contact_sheet({columns}, titles, outlined);
}

}  // namespace quoin::video
